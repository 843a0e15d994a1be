//! Garbage collection of sandboxes and checkpoints (docs/mesos/disk.md).
//!
//! Directories are kept as long as the disk has room, but not longer than `--gc_delay`; and a limited number of them,
//! for an agent may run a thousand tasks a second. Due directories are released oldest first and at a bounded rate, so
//! that a backlog does not compete with launches for the disk. The core decides what is deleted; the shell deletes it.

use std::collections::VecDeque;
use std::time::Duration;

use base::{AgentId, Time};
use cores::TimerKey;
use rustc_hash::FxHashMap;

use crate::agent::Agent;
use crate::disk::Directory;
use crate::output::{Outbox, Output};
use crate::timers::Timer;

/// Limit of kept directories.
const MAX_KEPT: usize = 100_000;
/// Directories in one output.
const CHUNK: usize = 256;
/// The shortest time between two releases.
const PAUSE: Duration = Duration::from_secs(1);
/// The share of the directories that are due which one release deletes. A backlog shrinks to a third within a minute;
/// under a steady load each directory is deleted a minute after it is due, and as many are there as were discarded in
/// that minute.
///
/// That distance matters on ext4 without a journal, which searches for free inodes near the newest directories and
/// passes over those that were freed within the last minute (docs/decisions.md).
const BACKLOG_SHARE: usize = 60;

/// What is garbage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Garbage {
    /// Oldest first. A directory that became garbage again is in it twice.
    kept: VecDeque<(Time, Directory)>,
    /// When each directory last became garbage.
    newest: FxHashMap<Directory, Time>,
    /// How full the disk was when last looked at, between 0 and 1.
    usage: f64,
    timer: Option<TimerKey>,
    /// Before this time nothing more is released, unless the disk lacks room.
    next_release: Time,
}

impl Garbage {
    /// Number of directories that wait for their deletion.
    pub(crate) fn len(&self) -> usize {
        self.newest.len()
    }
}

impl Agent {
    /// A directory is not used any more.
    pub(crate) fn discard(&mut self, directory: Directory, now: Time) {
        self.garbage.newest.insert(directory.clone(), now);
        self.garbage.kept.push_back((now, directory));
        // Set once each time the limit is exceeded: a timer that every directory resets would never expire.
        if self.garbage.timer.is_none() || self.garbage.kept.len() == MAX_KEPT + 1 {
            self.look_again(now);
        }
    }

    /// The container of this sandbox, which is not an executor's, has ended.
    pub(crate) fn discard_sandbox(&mut self, sandbox: &str, now: Time) {
        let inside = sandbox.strip_prefix(&self.config.work_dir).and_then(|path| path.strip_prefix('/'));
        if let Some(path) = inside.filter(|_| self.config.gc_sandboxes_inside) {
            self.discard(Directory::Sandbox(path.to_owned()), now);
        }
    }

    /// The disk was examined: the fuller it is, the sooner garbage goes.
    pub(crate) fn disk_usage(&mut self, fraction: f64, now: Time, out: &mut Outbox) {
        self.garbage.usage = if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 };
        self.collect_garbage(now, out);
    }

    /// Deletes what is too old, or too much: at a bounded rate, or all of it at once if the disk lacks room.
    pub(crate) fn collect_garbage(&mut self, now: Time, out: &mut Outbox) {
        if now >= self.garbage.next_release || self.needs_room() {
            let count = self.release_size(now);
            self.release(count, now, out);
        }
        self.look_again(now);
    }

    /// How many of the oldest directories are to be deleted now.
    fn release_size(&self, now: Time) -> usize {
        let age = self.kept_for();
        let due = self.garbage.kept.partition_point(|(since, _)| *since + age <= now);
        if self.needs_room() {
            return due;
        }
        let excess = self.garbage.kept.len().saturating_sub(MAX_KEPT);
        due.div_ceil(BACKLOG_SHARE).max(excess)
    }

    /// Deletes the `count` oldest directories, except those that are in use again.
    fn release(&mut self, count: usize, now: Time, out: &mut Outbox) {
        let (work, meta) = (self.config.work_dir.clone(), self.config.meta_dir());
        // Directories of agents before this one need no id of this one.
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

    /// How long garbage is kept, with the disk as full as it is.
    pub(crate) fn kept_for(&self) -> Duration {
        if self.needs_room() {
            return Duration::ZERO;
        }
        let room = (1.0 - self.config.gc_disk_headroom - self.garbage.usage).clamp(0.0, 1.0);
        self.config.gc_delay.mul_f64(room)
    }

    /// Whether the owner of a directory has come back.
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
