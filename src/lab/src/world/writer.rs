//! Durable writes of a process: one at a time. Batches that arrive meanwhile are in the next one, and outputs wait for
//! their write.
//!
//! The daemons' writing threads work the same way. A write that a crash interrupts is lost, or partly durable.

use std::collections::VecDeque;
use std::time::Duration;

use base::Time;
use cores::Outbox;

/// The most batches that are written together, as in the daemons.
const BATCHES_MAX: usize = 64;

/// The writes of one process.
#[derive(Debug)]
pub(super) struct Writer<P, O> {
    waiting: VecDeque<Outbox<P, O>>,
    /// Number of batches that are being written.
    busy: usize,
    /// Time until which each write takes longer by `slow_by`.
    slow_until: Time,
    slow_by: Duration,
}

impl<P, O> Default for Writer<P, O> {
    fn default() -> Writer<P, O> {
        Writer { waiting: VecDeque::new(), busy: 0, slow_until: Time::EPOCH, slow_by: Duration::ZERO }
    }
}

impl<P, O> Writer<P, O> {
    /// Returns whether no batch is being written or waits.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds the output of a batch, and leaves `out` empty.
    pub fn push(&mut self, out: &mut Outbox<P, O>) {
        self.waiting.push_back(std::mem::take(out));
    }

    /// Starts the next write unless one is in progress. Returns whether it has entries; `None` if none was started.
    pub fn begin(&mut self) -> Option<bool> {
        if self.busy > 0 || self.waiting.is_empty() {
            return None;
        }
        self.busy = self.waiting.len().min(BATCHES_MAX);
        Some(self.writes())
    }

    /// Returns whether the write in progress has entries.
    pub fn writes(&self) -> bool {
        self.waiting.iter().take(self.busy).any(|batch| !batch.persist.is_empty())
    }

    /// Removes and returns the entries of the write in progress.
    pub fn take_entries(&mut self) -> Vec<P> {
        let mut entries = Vec::new();
        for batch in self.waiting.iter_mut().take(self.busy) {
            entries.append(&mut batch.persist);
        }
        entries
    }

    /// Ends the write in progress and returns its batches.
    pub fn done(&mut self) -> Vec<Outbox<P, O>> {
        self.waiting.drain(..std::mem::take(&mut self.busy)).collect()
    }

    /// Drops all batches when the process ends, and returns those that were being written, of which a part may be
    /// durable.
    pub fn broken(&mut self) -> Vec<Outbox<P, O>> {
        let broken = self.done();
        self.waiting.clear();
        broken
    }

    /// Makes each write take longer until a time.
    pub fn slow(&mut self, until: Time, by: Duration) {
        (self.slow_until, self.slow_by) = (until, by);
    }

    /// Returns by how much a write takes longer now.
    pub fn slowness(&self, now: Time) -> Duration {
        if now < self.slow_until { self.slow_by } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_during_a_write_are_written_together() {
        let mut writer: Writer<u32, &str> = Writer::default();
        let out = |persist, outputs| Outbox { persist, outputs, ..Outbox::default() };
        assert_eq!(writer.begin(), None);
        writer.push(&mut out(vec![1], vec!["a"]));
        assert_eq!(writer.begin(), Some(true));
        writer.push(&mut out(Vec::new(), vec!["b"]));
        writer.push(&mut out(Vec::new(), vec!["c"]));
        assert_eq!(writer.begin(), None);
        assert_eq!(writer.done().iter().map(|batch| batch.outputs[0]).collect::<Vec<_>>(), ["a"]);
        assert_eq!(writer.begin(), Some(false));
        writer.push(&mut out(vec![2], Vec::new()));
        assert_eq!(writer.broken().len(), 2);
        assert!(writer.is_idle());
    }
}
