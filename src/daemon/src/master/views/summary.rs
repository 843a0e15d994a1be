//! The document `/state-summary`: agents and frameworks with counts of tasks instead of tasks (LEG-02).

use std::collections::BTreeSet;

use master::{AgentKey, Framework, FrameworkKey, Task};
use protos::json::Writer;
use protos::mesos::TaskState;
use rustc_hash::FxHashMap;

use super::index::Index;
use super::{Context, frameworks, slaves};

/// Task states that are counted, in their order in the document.
const STATES: [TaskState; 10] = [
    TaskState::TaskStaging,
    TaskState::TaskStarting,
    TaskState::TaskRunning,
    TaskState::TaskKilling,
    TaskState::TaskFinished,
    TaskState::TaskKilled,
    TaskState::TaskFailed,
    TaskState::TaskLost,
    TaskState::TaskError,
    TaskState::TaskUnreachable,
];

/// Numbers of tasks by state of an agent or a framework, and the ids of its frameworks or agents.
#[derive(Clone, Default)]
struct Counts<'s> {
    by_state: [u64; STATES.len()],
    partners: BTreeSet<&'s str>,
}

impl Counts<'_> {
    fn count(&mut self, task: &Task) {
        if let Some(index) = STATES.iter().position(|state| *state == task.state()) {
            self.by_state[index] += 1;
        }
    }

    fn write(&self, w: &mut Writer<'_>, partners: &str) {
        for (state, count) in STATES.iter().zip(self.by_state) {
            w.key(state.as_str_name()).uint(count);
        }
        w.key(partners).array(|w| {
            for id in &self.partners {
                w.string(id);
            }
        });
    }
}

/// Writes the document `/state-summary`.
pub(in crate::master) fn write(context: &Context, out: &mut Vec<u8>) {
    let snapshot = &context.snapshot;
    let index = Index::new(snapshot, &context.chunk_cache);
    let mut agents: FxHashMap<AgentKey, Counts<'_>> = FxHashMap::default();
    let mut owners: FxHashMap<FrameworkKey, Counts<'_>> = FxHashMap::default();
    let frameworks =
        || snapshot.frameworks.iter().filter(|(_, framework)| context.visibility.framework(&framework.info));
    for (key, framework) in frameworks() {
        let counts = owners.entry(FrameworkKey(key)).or_default();
        for task in all_tasks(framework) {
            counts.count(task);
            counts.partners.insert(&task.proto.slave_id.value);
            let there = agents.entry(task.agent).or_default();
            there.count(task);
            there.partners.insert(framework.id.as_str());
        }
    }
    for framework in snapshot.completed.values().filter(|framework| context.visibility.framework(&framework.info)) {
        for task in all_tasks(framework) {
            agents.entry(task.agent).or_default().count(task);
        }
    }
    Writer::new(out).object(|w| {
        w.key("hostname").string(snapshot.info.hostname.as_deref().unwrap_or_default());
        if let Some(cluster) = &context.flags.identity.cluster {
            w.key("cluster").string(cluster);
        }
        w.key("slaves").array(|w| {
            for (key, agent) in snapshot.agents.iter() {
                w.object(|w| {
                    slaves::fields(w, agent, &context.visibility);
                    agents.entry(AgentKey(key)).or_default().write(w, "framework_ids");
                });
            }
        });
        w.key("frameworks").array(|w| {
            for (key, framework) in frameworks() {
                w.object(|w| {
                    frameworks::fields(w, framework, index.of(FrameworkKey(key)));
                    owners.entry(FrameworkKey(key)).or_default().write(w, "slave_ids");
                });
            }
        });
    });
}

fn all_tasks(framework: &Framework) -> impl Iterator<Item = &Task> {
    let all = framework.tasks.values().chain(framework.unreachable_tasks.values());
    all.chain(framework.completed_tasks.values()).map(|task| &**task)
}
