//! Garbage collection of sandboxes and checkpoints (docs/mesos/disk.md).
//!
//! Directories are kept as long as the disk has space, but not longer than `--gc_delay`. Their number is limited,
//! because an agent may run a thousand tasks a second. Due directories are deleted oldest first and at a bounded rate,
//! so that a backlog does not compete with launches for the disk.
//!
//! The core decides what is deleted; the shell deletes it.

use std::collections::VecDeque;
use std::time::Duration;

use base::{AgentId, Time};
use cores::TimerKey;
use rustc_hash::FxHashMap;

use crate::agent::Agent;
use crate::disk::Directory;
use crate::output::{Outbox, Output};
use crate::timers::Timer;

/// Maximum number of directories that are kept.
const MAX_KEPT: usize = 100_000;
/// Maximum number of paths in one [`Output::Delete`]; each directory has two.
const CHUNK: usize = 256;
/// Shortest time between two deletions.
const PAUSE: Duration = Duration::from_secs(1);
/// Divisor of the number of due directories: one deletion takes a sixtieth of them. A backlog shrinks to a third within
/// a minute. Under a steady load each directory is deleted a minute after it is due, and as many are due as were
/// discarded in that minute.
///
/// That distance matters on ext4 without a journal, which searches for free inodes near the newest directories and
/// skips those that were freed within the last minute (docs/decisions.md).
const BACKLOG_SHARE: usize = 60;

/// Directories that are no longer used and will be deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Garbage {
    /// Directories with the time of their discard, oldest first. A directory that became garbage again is in it twice.
    kept: VecDeque<(Time, Directory)>,
    /// Time at which each directory last became garbage.
    newest: FxHashMap<Directory, Time>,
    /// Used part of the disk at the last measurement, between 0 and 1.
    usage: f64,
    timer: Option<TimerKey>,
    /// Time before which nothing more is deleted, unless the disk lacks space.
    next_release: Time,
}

impl Garbage {
    /// Returns the number of directories that wait for their deletion.
    pub(crate) fn len(&self) -> usize {
        self.newest.len()
    }
}

impl Agent {
    /// Schedules the deletion of a directory that is not used any more.
    pub(crate) fn discard(&mut self, directory: Directory, now: Time) {
        self.garbage.newest.insert(directory.clone(), now);
        self.garbage.kept.push_back((now, directory));
        // The timer is set once each time the limit is exceeded: if every directory reset it, it would never expire.
        if self.garbage.timer.is_none() || self.garbage.kept.len() == MAX_KEPT + 1 {
            self.look_again(now);
        }
    }

    /// Schedules the deletion of the sandbox of a nested or standalone container that has ended, if the flags say so.
    pub(crate) fn discard_sandbox(&mut self, sandbox: &str, now: Time) {
        let inside = sandbox.strip_prefix(&self.config.work_dir).and_then(|path| path.strip_prefix('/'));
        if let Some(path) = inside.filter(|_| self.config.gc_sandboxes_inside) {
            self.discard(Directory::Sandbox(path.to_owned()), now);
        }
    }

    /// Handles a measurement of the disk: the fuller it is, the sooner garbage is deleted.
    pub(crate) fn disk_usage(&mut self, fraction: f64, now: Time, out: &mut Outbox) {
        self.garbage.usage = if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 };
        self.collect_garbage(now, out);
    }

    /// Deletes directories that are too old, or too many: at a bounded rate, or all of them at once if the disk lacks
    /// space.
    pub(crate) fn collect_garbage(&mut self, now: Time, out: &mut Outbox) {
        if now >= self.garbage.next_release || self.lacks_space() {
            let count = self.release_size(now);
            self.release(count, now, out);
        }
        self.look_again(now);
    }

    /// Returns how many of the oldest directories are to be deleted now.
    fn release_size(&self, now: Time) -> usize {
        let age = self.kept_for();
        let due = self.garbage.kept.partition_point(|(since, _)| *since + age <= now);
        if self.lacks_space() {
            return due;
        }
        let excess = self.garbage.kept.len().saturating_sub(MAX_KEPT);
        due.div_ceil(BACKLOG_SHARE).max(excess)
    }

    /// Deletes the `count` oldest directories, except those that are in use again.
    fn release(&mut self, count: usize, now: Time, out: &mut Outbox) {
        let (work, meta) = (self.config.work_dir.clone(), self.config.meta_dir());
        // The path of an earlier agent's directory does not depend on this agent's id.
        let agent = self.id.clone().or_else(|| AgentId::new("none").ok());
        let mut gone = Vec::new();
        for _ in 0..count {
            let Some((since, directory)) = self.garbage.kept.pop_front() else { break };
            if self.garbage.newest.get(&directory) != Some(&since) {
                continue;
            }
            self.garbage.newest.remove(&directory);
            if let Some(agent) = agent.as_ref().filter(|_| !self.is_in_use(&directory)) {
                let path = directory.path(agent);
                gone.extend([format!("{work}/{path}"), format!("{meta}/{path}")]);
                self.counters.gc_paths_removed += 1;
            }
        }
        for chunk in gone.chunks(CHUNK) {
            out.outputs.push(Output::Delete { paths: chunk.to_vec() });
        }
        self.garbage.next_release = now + PAUSE;
    }

    fn look_again(&mut self, now: Time) {
        self.timers.cancel(self.garbage.timer.take());
        let Some((since, _)) = self.garbage.kept.front() else { return };
        let due = if self.garbage.kept.len() > MAX_KEPT { now } else { *since + self.kept_for() };
        self.garbage.timer = Some(self.timers.set(due.max(now + PAUSE), Timer::CollectGarbage));
    }

    /// Returns how long garbage is kept, given the use of the disk.
    pub(crate) fn kept_for(&self) -> Duration {
        if self.lacks_space() {
            return Duration::ZERO;
        }
        let room = (1.0 - self.config.gc_disk_headroom - self.garbage.usage).clamp(0.0, 1.0);
        self.config.gc_delay.mul_f64(room)
    }

    /// Returns whether the owner of a directory exists again.
    fn is_in_use(&self, directory: &Directory) -> bool {
        match directory {
            Directory::Run(..) => false,
            Directory::Sandbox(path) => self.nested.values().any(|nested| {
                nested.ended.is_none()
                    && nested.sandbox.strip_prefix(&self.config.work_dir) == Some(&format!("/{path}"))
            }),
            Directory::Executor(framework, executor) => self.executor(framework.as_str(), executor.as_str()).is_some(),
            Directory::Framework(framework) => self.frameworks.contains(framework.as_str()),
            Directory::Agent(id) => self.id.as_ref().is_some_and(|own| own.as_str() == id),
        }
    }
}

#[cfg(test)]
#[path = "gc_tests.rs"]
mod tests;
