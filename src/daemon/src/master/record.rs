//! `--record`: writes all inputs of the core to a file, for `tepui lab replay`.
//!
//! A batch is written before the next one is handled. If the file cannot be written, or is too large, the recording
//! ends and the master continues.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use allocator::policies::Policies;
use anyhow::Context;
use base::Time;
use master::record::{FRAME_MAX, Head, MAGIC, RecordEncoder};
use master::{Input, Outbox};
use store::Access;

/// Maximum size of a recording, in bytes.
const BYTES_MAX: u64 = 16 << 30;

/// A recording in progress.
pub(super) struct Recording {
    file: Option<File>,
    recorder: RecordEncoder,
    written: u64,
}

impl Recording {
    /// Starts a recording if the flag is set.
    ///
    /// # Errors
    /// The file exists already, or cannot be created.
    pub(super) fn begin(path: Option<&Path>, policies: &Policies, head: Head) -> anyhow::Result<Option<Recording>> {
        let Some(path) = path else { return Ok(None) };
        // Calls may contain secrets, such as variables of tasks.
        let file = store::create_new(path, Access::Owner);
        let file = file
            .with_context(|| format!("--record: cannot create the file '{}', which must not exist", path.display()))?;
        let mut recording = Recording { file: Some(file), recorder: RecordEncoder::default(), written: 0 };
        let mut flags: Vec<(String, String)> = head.flags;
        flags.push((POLICIES.to_owned(), text(policies)));
        recording.write(MAGIC.as_slice());
        recording.write_frame(&Head { flags, ..head }.frame());
        tracing::info!("Recording the inputs of this master into {}", path.display());
        Ok(Some(recording))
    }

    /// Records an input of the current batch.
    pub(super) fn input(&mut self, input: &Input) {
        if self.file.is_some() {
            self.recorder.input(input, &text);
        }
    }

    /// Writes the batch, with a hash of its outbox.
    pub(super) fn end_batch(&mut self, now: Time, out: &Outbox) {
        if self.file.is_some() {
            let frame = self.recorder.end(now, master::record::result_hash(out));
            self.write_frame(&frame);
        }
    }

    fn write_frame(&mut self, frame: &[u8]) {
        if frame.len() > FRAME_MAX || self.written > BYTES_MAX {
            tracing::warn!("The recording ends: it is too large");
            self.file = None;
            return;
        }
        let mut bytes = Vec::with_capacity(frame.len() + 4);
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend_from_slice(frame);
        self.write(&bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        match file.write_all(bytes) {
            Ok(()) => self.written += bytes.len() as u64,
            Err(why) => {
                tracing::warn!("The recording ends: {why}");
                self.file = None;
            }
        }
    }
}

/// Name of the policies among the flags of a recording; no flag has this name.
pub const POLICIES: &str = "policies in force";

fn text(policies: &Policies) -> String {
    serde_json::to_string(policies).unwrap_or_default()
}
