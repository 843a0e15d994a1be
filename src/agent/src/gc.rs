//! Garbage collection of sandboxes and checkpoints (wire/disk.md 7).
//!
//! Folders are kept for as long as the disk has room, but not longer than `--gc_delay`; and not more of them than a
//! limit, for an agent may run a thousand tasks a second. It says what goes; the shell deletes it.

use std::collections::VecDeque;
use std::time::Duration;

use base::{AgentId, ExecutorId, FrameworkId, Time};
use rustc_hash::FxHashMap;

use crate::agent::Agent;
use crate::disk::paths;
use crate::output::{Outbox, Output};
use crate::timers::{Timer, TimerKey};

/// How many folders are kept at most.
const MAX_KEPT: usize = 100_000;
/// How many folders go in one output.
const CHUNK: usize = 256;
/// The shortest time between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// A folder that nobody uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Folder {
    /// An older run of an executor.
    Run(FrameworkId, ExecutorId, String),
    /// An executor with its runs.
    Executor(FrameworkId, ExecutorId),
    /// A framework with its executors.
    Framework(FrameworkId),
    /// The sandbox of a container that is no executor's, by its path below the work folder.
    Sandbox(String),
    /// An agent of another id.
    Agent(String),
}

impl Folder {
    /// Below the work folder and below the meta folder alike.
    fn path(&self, agent: &AgentId) -> String {
        match self {
            Folder::Run(framework, executor, run) => paths::run(agent, framework, executor, run),
            Folder::Executor(framework, executor) => paths::executor(agent, framework, executor),
            Folder::Framework(framework) => paths::framework(agent, framework),
            Folder::Sandbox(path) => path.clone(),
            Folder::Agent(id) => format!("slaves/{id}"),
        }
    }
}

/// What is garbage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Garbage {
    /// Oldest first. A folder that became garbage again is in it twice.
    kept: VecDeque<(Time, Folder)>,
    /// When each folder became garbage for the last time.
    newest: FxHashMap<Folder, Time>,
    /// How full the disk was when last looked at, between 0 and 1.
    usage: f64,
    timer: Option<TimerKey>,
}

impl Garbage {
    /// How many folders wait for their deletion.
    pub(crate) fn len(&self) -> usize {
        self.newest.len()
    }
}

impl Agent {
    /// A folder is used no more.
    pub(crate) fn discard(&mut self, folder: Folder, now: Time) {
        self.garbage.newest.insert(folder.clone(), now);
        self.garbage.kept.push_back((now, folder));
        if self.garbage.timer.is_none() || self.garbage.kept.len() > MAX_KEPT {
            self.look_again(now);
        }
    }

    /// The container of this sandbox, which is no executor's, has ended.
    pub(crate) fn discard_sandbox(&mut self, sandbox: &str, now: Time) {
        let inside = sandbox.strip_prefix(&self.config.work_dir).and_then(|path| path.strip_prefix('/'));
        if let Some(path) = inside.filter(|_| self.config.gc_sandboxes_inside) {
            self.discard(Folder::Sandbox(path.to_owned()), now);
        }
    }

    /// The disk was looked at: the fuller it is, the sooner garbage goes.
    pub(crate) fn disk_usage(&mut self, fraction: f64, now: Time, out: &mut Outbox) {
        self.garbage.usage = if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 };
        self.collect_garbage(now, out);
    }

    /// Lets go what is too old, or too much.
    pub(crate) fn collect_garbage(&mut self, now: Time, out: &mut Outbox) {
        let (age, work, meta) = (self.kept_for(), self.config.work_dir.clone(), self.config.meta_dir());
        // Folders of agents before this one need no id of this one.
        let agent = self.id.clone().or_else(|| AgentId::new("none").ok());
        let mut gone = Vec::new();
        while let Some((since, _)) = self.garbage.kept.front() {
            if *since + age > now && self.garbage.kept.len() <= MAX_KEPT {
                break;
            }
            let Some((since, folder)) = self.garbage.kept.pop_front() else { break };
            if self.garbage.newest.get(&folder) != Some(&since) {
                continue;
            }
            self.garbage.newest.remove(&folder);
            if let Some(agent) = agent.as_ref().filter(|_| !self.is_in_use(&folder)) {
                let path = folder.path(agent);
                gone.extend([format!("{work}/{path}"), format!("{meta}/{path}")]);
                self.counters.gc_paths_removed += 1;
            }
        }
        for chunk in gone.chunks(CHUNK) {
            out.outputs.push(Output::Delete { paths: chunk.to_vec() });
        }
        self.look_again(now);
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

    /// Whether what a folder belongs to has come back.
    fn is_in_use(&self, folder: &Folder) -> bool {
        match folder {
            Folder::Run(..) => false,
            Folder::Sandbox(path) => self.nested.values().any(|nested| {
                nested.ended.is_none()
                    && nested.sandbox.strip_prefix(&self.config.work_dir) == Some(&format!("/{path}"))
            }),
            Folder::Executor(framework, executor) => self.executor(framework.as_str(), executor.as_str()).is_some(),
            Folder::Framework(framework) => self.frameworks.contains_key(framework),
            Folder::Agent(id) => self.id.as_ref().is_some_and(|own| own.as_str() == id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::disk::Recovered;

    #[test]
    fn how_much_waits_and_for_how_long() {
        let (now, mut out) = (Time::from_secs(1), Outbox::default());
        let pid = "slave(1)@10.0.0.2:5051".parse().unwrap();
        let config = Config::new(pid, "/w");
        let mut agent =
            Agent::new(config, protos::mesos::SlaveInfo::default(), Recovered::default(), 2, now, &mut out).unwrap();
        let framework = FrameworkId::new("f").unwrap();
        agent.discard(Folder::Framework(framework.clone()), now);
        agent.discard(Folder::Framework(framework), now);
        agent.discard(Folder::Agent("old".to_owned()), now);
        let snapshot = agent.snapshot();
        assert_eq!(snapshot.garbage, 2);
        // What the recorded agent of Mesos tells before it has looked at its disk.
        assert_eq!(snapshot.garbage_kept_for, Duration::from_secs(544_320));
    }
}
