//! Recording of a world's master in the format of the live one, for tests of the replay.

use base::Time;
use master::record::{Head, MAGIC, Recorder, outcome};
use master::{Input, Outbox};
use protos::mesos::MasterInfo;
use protos::mesos::internal::Registry;

/// A recording in memory.
#[derive(Default)]
pub(crate) struct Recording {
    recorder: Recorder,
    pub bytes: Vec<u8>,
}

impl Recording {
    pub fn begin(&mut self, info: &MasterInfo, registry: &Registry, seed: u64, start: Time) {
        let head = Head { flags: Vec::new(), info: info.clone(), registry: registry.clone(), seed, start };
        *self = Recording { recorder: Recorder::default(), bytes: MAGIC.to_vec() };
        self.frame(&head.frame());
    }

    pub fn input(&mut self, input: &Input) {
        self.recorder.input(input, &|_| String::new());
    }

    pub fn end_batch(&mut self, now: Time, out: &Outbox) {
        let frame = self.recorder.end(now, outcome(out));
        self.frame(&frame);
    }

    fn frame(&mut self, frame: &[u8]) {
        self.bytes.extend((frame.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(frame);
    }
}
