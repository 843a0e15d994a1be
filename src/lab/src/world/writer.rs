//! Durable writes of a process: one at a time; everything that arrives meanwhile is in the next one, and outputs wait
//! for their write.
//!
//! The daemons' writing threads work the same way. A write that a crash interrupts is lost, or partly done.

use std::collections::VecDeque;
use std::time::Duration;

use base::Time;
use cores::Outbox;

/// Batches that are written together at most, as in the daemons.
const TOGETHER: usize = 64;

/// The writes of one process.
#[derive(Debug)]
pub(super) struct Writer<P, O> {
    waiting: VecDeque<Outbox<P, O>>,
    /// This many of them are being written.
    busy: usize,
    /// Until then each write takes longer by `slow_by`.
    slow_until: Time,
    slow_by: Duration,
}

impl<P, O> Default for Writer<P, O> {
    fn default() -> Writer<P, O> {
        Writer { waiting: VecDeque::new(), busy: 0, slow_until: Time::EPOCH, slow_by: Duration::ZERO }
    }
}

impl<P, O> Writer<P, O> {
    /// Whether nothing is being written.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds what a batch has led to, and leaves `out` empty.
    pub fn push(&mut self, out: &mut Outbox<P, O>) {
        self.waiting.push_back(std::mem::take(out));
    }

    /// Starts the next write unless one is in progress. Returns whether there is something to write.
    pub fn begin(&mut self) -> Option<bool> {
        if self.busy > 0 || self.waiting.is_empty() {
            return None;
        }
        self.busy = self.waiting.len().min(TOGETHER);
        Some(self.writes())
    }

    /// Whether the write in progress has entries.
    pub fn writes(&self) -> bool {
        self.waiting.iter().take(self.busy).any(|batch| !batch.persist.is_empty())
    }

    /// Takes what the write is to make durable.
    pub fn take_entries(&mut self) -> Vec<P> {
        let mut entries = Vec::new();
        for batch in self.waiting.iter_mut().take(self.busy) {
            entries.append(&mut batch.persist);
        }
        entries
    }

    /// The write is done: what was written.
    pub fn done(&mut self) -> Vec<Outbox<P, O>> {
        self.waiting.drain(..std::mem::take(&mut self.busy)).collect()
    }

    /// The process has ended: what was being written, of which a part is durable.
    pub fn broken(&mut self) -> Vec<Outbox<P, O>> {
        let broken = self.done();
        self.waiting.clear();
        broken
    }

    /// From now until then each write takes longer.
    pub fn slow(&mut self, until: Time, by: Duration) {
        (self.slow_until, self.slow_by) = (until, by);
    }

    /// How much longer a write takes now.
    pub fn slowness(&self, now: Time) -> Duration {
        if now < self.slow_until { self.slow_by } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_during_a_write_is_written_together() {
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
