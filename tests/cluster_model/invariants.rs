//! What must hold, and the memory that it takes to tell. The list is at the top of `main.rs`.

use std::collections::{BTreeMap, BTreeSet};

use agent::{AgentState, Recovered};
use protos::mesos::internal::status_update_record::Type;
use protos::mesos::{self as pb, TaskState};

use crate::scheduler::TaskView;
use crate::world::World;

/// What has happened in a history, as a reader of all minds knows it.
#[derive(Default)]
pub struct Truth {
    /// Tasks that an executor was given, by framework.
    started: BTreeSet<(String, String)>,
    /// Updates of executors: whose, and its number among those of its task.
    made: BTreeMap<Vec<u8>, (String, String, usize)>,
    counts: BTreeMap<(String, String), usize>,
    /// The number of the next update that a task's scheduler should see.
    expected: BTreeMap<(String, String), usize>,
    /// Updates that an agent has confirmed to an executor.
    pub confirmed: BTreeSet<Vec<u8>>,
    offers: BTreeMap<String, usize>,
    /// How often agents have ended themselves.
    pub agent_exits: u64,
}

impl World {
    /// After every event: the books of the master.
    pub fn check(&mut self) {
        let Some(master) = &mut self.master.core else { return };
        if let Err(why) = master::testing::check_invariants(master) {
            return self.fail(why);
        }
        let snapshot = master.snapshot();
        for agent in snapshot.agents.values() {
            let mut taken = agent.used.unallocated();
            taken += &agent.offered.unallocated();
            if !agent.total.contains(&taken) {
                return self.fail(format!("agent {} has {}, and {taken} is taken", agent.id, agent.total));
            }
        }
    }

    /// A task is given to an executor.
    pub fn task_started(&mut self, framework: &str, task: &str) {
        if !self.truth.started.insert((framework.to_owned(), task.to_owned())) {
            self.fail(format!("task {framework}/{task} is started twice"));
        }
    }

    /// An executor makes an update.
    pub fn update_made(&mut self, framework: &str, task: &str, uuid: Vec<u8>) {
        let count = self.truth.counts.entry((framework.to_owned(), task.to_owned())).or_default();
        self.truth.made.insert(uuid, (framework.to_owned(), task.to_owned(), *count));
        *count += 1;
    }

    /// An offer comes to a scheduler.
    pub fn offer_came(&mut self, who: usize, offer: &pb::Offer) {
        if let Some(other) = self.truth.offers.insert(offer.id.value.clone(), who) {
            self.fail(format!("offer {} is made to {other} and to {who}", offer.id.value));
        }
    }

    /// An update that wants an acknowledgement comes to a scheduler.
    pub fn update_came(&mut self, who: usize, task: &str, uuid: &[u8]) {
        let Some((framework, owner, number)) = self.truth.made.get(uuid).cloned() else { return };
        let own = self.schedulers[who].id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
        if (framework.as_str(), owner.as_str()) != (own, task) {
            return self.fail(format!("an update of {framework}/{owner} comes to {own}/{task}"));
        }
        let expected = self.truth.expected.entry((framework, owner)).or_default();
        let before = *expected;
        *expected = before.max(number + 1);
        if number > before && self.schedulers[who].kind.checkpoint {
            self.fail(format!("scheduler {who} sees update {number} of {task} before update {before}"));
        }
    }

    /// A task's state changes for its scheduler: the end of a task is its end.
    pub fn state_changed(&mut self, who: usize, task: &str, before: &TaskView, status: &pb::TaskStatus) {
        let kind = &self.schedulers[who].kind;
        // Of the others TASK_LOST may be taken back, by an agent that was away.
        let last = [TaskState::TaskFinished, TaskState::TaskFailed, TaskState::TaskKilled, TaskState::TaskError];
        let ended = before.state.is_some_and(|state| last.contains(&state));
        let lives = [TaskState::TaskStarting, TaskState::TaskRunning, TaskState::TaskStaging];
        if kind.checkpoint && ended && lives.contains(&status.state()) && status.uuid.is_none() {
            self.fail(format!("scheduler {who}: {task} has ended, and lives again"));
        }
    }

    /// At the end of a history, when all is healed and has come to rest.
    pub fn check_end(&mut self) {
        self.check_processes();
        for who in 0..self.schedulers.len() {
            if !self.schedulers[who].gone {
                self.check_tasks(who);
            }
        }
        self.check_ended_frameworks();
        self.check_streams();
        self.check_confirmed();
    }

    fn check_ended_frameworks(&mut self) {
        let Some(core) = self.master.core.as_mut() else { return };
        let snapshot = core.snapshot();
        let ended: BTreeSet<&str> = snapshot.completed.values().map(|framework| framework.id.as_str()).collect();
        let living = self.executors.iter().find(|e| !e.dead && ended.contains(e.framework.as_str()));
        if let Some(executor) = living {
            self.fail(format!("framework {} has ended, and its executor {} lives", executor.framework, executor.id));
        }
    }

    fn check_processes(&mut self) {
        for agent in 0..self.agents.len() {
            let state = self.agents[agent].core.as_mut().map(|core| core.snapshot().state);
            if state != Some(AgentState::Running) {
                self.fail(format!("agent {agent} is {state:?} at the end"));
            }
        }
        for who in 0..self.schedulers.len() {
            if !self.schedulers[who].gone && !self.schedulers[who].subscribed {
                self.fail(format!("scheduler {who} is not subscribed at the end"));
            }
        }
        let connected = self.master.core.as_mut().map(|core| {
            let snapshot = core.snapshot();
            snapshot.agents.values().filter(|agent| agent.connected).count()
        });
        if connected != Some(self.agents.len()) {
            self.fail(format!("{connected:?} agents are connected at the end"));
        }
    }

    /// Every task has ended, or runs where the master and the agent know it; and what runs has not ended.
    fn check_tasks(&mut self, who: usize) {
        let Some(id) = self.schedulers[who].id.clone() else { return };
        let of_framework = self.executors.iter().filter(|e| !e.dead && e.framework == id.value && !e.ended);
        let running: BTreeMap<String, usize> =
            of_framework.filter_map(|e| Some((e.task.as_ref()?.task_id.value.clone(), e.agent))).collect();
        let mut booked = BTreeSet::new();
        if let Some(core) = self.master.core.as_mut() {
            let snapshot = core.snapshot();
            let framework = snapshot.frameworks.values().find(|framework| framework.id.as_str() == id.value);
            for task in framework.into_iter().flat_map(|framework| framework.tasks.values()) {
                booked.insert(task.id.as_str().to_owned());
            }
        }
        for (task, view) in self.schedulers[who].tasks.clone() {
            let runs = running.contains_key(&task);
            if view.has_ended() && runs {
                self.fail(format!("scheduler {who} believes that {task} has ended ({:?}), but it runs", view.state));
            }
            if !view.has_ended() && !runs {
                self.fail(format!("scheduler {who} waits for {task} ({:?}), which does not run", view.state));
            }
            if runs != booked.contains(&task) {
                self.fail(format!("task {task} of scheduler {who}: runs {runs}, and the master says otherwise"));
            }
        }
    }

    /// What agents have written down is acknowledged.
    fn check_streams(&mut self) {
        let mut unacknowledged = Vec::new();
        // Nobody acknowledges for a framework that has left.
        let ended = self.schedulers.iter().filter(|scheduler| scheduler.gone);
        let ended: BTreeSet<String> = ended.filter_map(|s| s.id.as_ref().map(|id| id.value.clone())).collect();
        for (n, host) in self.agents.iter().enumerate() {
            let Ok(recovered) = Recovered::read(&host.disk, true) else { continue };
            let frameworks = recovered.agent.into_iter().flat_map(|agent| agent.frameworks);
            let executors =
                frameworks.flat_map(|f| f.executors.into_iter().map(move |e| (f.id.as_str().to_owned(), e)));
            let runs = executors.filter_map(|(framework, executor)| Some((framework, executor.latest?)));
            let runs = runs.filter(|(framework, _)| !ended.contains(framework));
            for task in runs.flat_map(|(_, run)| run.tasks) {
                let of = |kind: Type| task.records.iter().filter(|record| record.r#type == kind as i32).count();
                if of(Type::Update) != of(Type::Ack) {
                    unacknowledged.push(format!(
                        "agent {n}: {} updates of {}, {} acknowledged",
                        of(Type::Update),
                        task.id,
                        of(Type::Ack)
                    ));
                }
            }
        }
        unacknowledged.into_iter().for_each(|why| self.fail(why));
    }

    /// What an agent has confirmed to an executor has come to the scheduler.
    fn check_confirmed(&mut self) {
        let mut lost = Vec::new();
        for uuid in &self.truth.confirmed {
            let Some((framework, task, number)) = self.truth.made.get(uuid) else { continue };
            let owner = |s: &&crate::scheduler::Scheduler| s.id.as_ref().is_some_and(|id| id.value == *framework);
            let Some(scheduler) = self.schedulers.iter().find(owner) else { continue };
            let seen = self.truth.expected.get(&(framework.clone(), task.clone())).copied().unwrap_or_default();
            if seen <= *number && scheduler.kind.checkpoint && !scheduler.gone {
                lost.push(format!("update {number} of {framework}/{task} was confirmed, and never told"));
            }
        }
        lost.into_iter().for_each(|why| self.fail(why));
    }
}
