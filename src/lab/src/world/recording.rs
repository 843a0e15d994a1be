//! Records the inputs of a world's master in the format of `tepui master --record`.

use base::Time;
use master::record::{Head, MAGIC, RecordEncoder, result_hash};
use master::{Input, Outbox};
use protos::mesos::MasterInfo;
use protos::mesos::internal::Registry;

use super::{Observer, World};

/// A recording of a master's inputs, in memory.
#[derive(Default)]
pub(super) struct Recording {
    recorder: RecordEncoder,
    bytes: Vec<u8>,
}

impl Recording {
    pub fn begin(&mut self, info: &MasterInfo, registry: &Registry, seed: u64, start: Time) {
        let head = Head { flags: Vec::new(), info: info.clone(), registry: registry.clone(), seed, start };
        *self = Recording { recorder: RecordEncoder::default(), bytes: MAGIC.to_vec() };
        self.frame(&head.frame());
    }

    pub fn input(&mut self, input: &Input) {
        self.recorder.input(input, &|_| String::new());
    }

    pub fn end_batch(&mut self, now: Time, out: &Outbox) {
        let frame = self.recorder.end(now, result_hash(out));
        self.frame(&frame);
    }

    fn frame(&mut self, frame: &[u8]) {
        self.bytes.extend((frame.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(frame);
    }
}

impl<O: Observer> World<O> {
    /// Starts recording the inputs of every master that starts from now on. Each one begins a new recording.
    pub fn record(&mut self) {
        self.recording = Some(Recording::default());
    }

    /// Ends the recording and returns it, in the form that [`replay`](crate::replay::replay) reads.
    pub fn take_recording(&mut self) -> Option<Vec<u8>> {
        self.recording.take().map(|recording| recording.bytes)
    }
}
