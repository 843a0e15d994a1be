//! Kills a scheduler between any two outputs, and restarts it with what was saved.
//!
//! Invariants:
//! - every job finishes exactly once: no two of its tasks run to their end;
//! - the scheduler handles each end exactly once, over all restarts.
//!
//! The cluster is a model of one agent: a task runs from its launch to its end, each update is repeated until it is
//! acknowledged, and reconciliation is answered as by a master that knows all agents.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use base::Time;
use proptest::prelude::*;

use super::*;
use crate::state::{Memory, State as _};
use crate::v1::scheduler::event::{self, Type};
use crate::v1::{Offer, OfferId, TaskInfo};

const JOBS: u32 = 4;

/// A scheduler that runs jobs, one task at a time for each; a job whose task is lost gets another task.
#[derive(Default)]
struct Jobs {
    /// Number of the newest task of each job, and whether it is launched; `None` when the job is done.
    jobs: BTreeMap<u32, Option<(u32, bool)>>,
    ends_heard: u32,
}

impl Jobs {
    fn write(&self, job: u32, calls: &mut Calls) {
        let text = self.jobs[&job].map(|(attempt, launched)| format!("{attempt} {launched}"));
        calls.save(&job.to_string(), text.unwrap_or_default().into_bytes());
    }

    fn read(saved: &BTreeMap<String, Vec<u8>>) -> Jobs {
        let mut jobs = Jobs { jobs: (0..JOBS).map(|job| (job, Some((0, false)))).collect(), ends_heard: 0 };
        for (key, value) in saved {
            let text = std::str::from_utf8(value).unwrap();
            if key == "ends" {
                jobs.ends_heard = text.parse().unwrap();
                continue;
            }
            let state = text.split_once(' ').map(|(a, l)| (a.parse().unwrap(), l.parse().unwrap()));
            jobs.jobs.insert(key.parse().unwrap(), state);
        }
        jobs
    }
}

impl Scheduler for Jobs {
    fn on_event(&mut self, event: Event, _now: Time, calls: &mut Calls) {
        match event {
            Event::Restored(saved) => {
                *self = Jobs::read(&saved);
                let launched = self.jobs.iter().filter_map(|(job, state)| Some((job, (*state)?)));
                for (job, (attempt, launched)) in launched {
                    let in_ledger = calls.tasks().get(&format!("{job}.{attempt}")).is_some();
                    assert_eq!(in_ledger, launched, "the ledger and what was saved with it are of one instant");
                }
            }
            Event::Offers(offers) => {
                let waiting = self.jobs.iter_mut().find_map(|(job, state)| match state {
                    Some((attempt, launched @ false)) => {
                        *launched = true;
                        Some((*job, format!("{job}.{attempt}")))
                    }
                    _ => None,
                });
                let Some((job, id)) = waiting else { return calls.decline(vec![offers[0].id.clone()], Duration::ZERO) };
                self.write(job, calls);
                let task = TaskInfo { task_id: TaskId { value: id.into() }, ..Default::default() };
                calls.launch(&offers[0], vec![task], Duration::ZERO);
            }
            Event::Update(status) if crate::is_terminal(status.state()) => {
                let (job, attempt) = status.task_id.value.split_once('.').unwrap();
                let (job, attempt): (u32, u32) = (job.parse().unwrap(), attempt.parse().unwrap());
                self.ends_heard += 1;
                calls.save("ends", self.ends_heard.to_string().into_bytes());
                let finished = status.state() == TaskState::TaskFinished;
                self.jobs.insert(job, if finished { None } else { Some((attempt + 1, false)) });
                self.write(job, calls);
            }
            _ => {}
        }
    }
}

/// An agent's state of a task: whether it has ended, and its unacknowledged updates.
#[derive(Default)]
struct Running {
    ended: bool,
    updates: VecDeque<TaskStatus>,
}

/// Model of the master and the agent.
#[derive(Default)]
struct Cluster {
    tasks: BTreeMap<String, Running>,
    gone: BTreeSet<String>,
    finished: Vec<String>,
    lost_answers: u32,
    stream: VecDeque<scheduler::Event>,
    connected: bool,
    offers: u32,
    uuids: u32,
}

fn wire(kind: Type) -> scheduler::Event {
    scheduler::Event { r#type: Some(kind as i32), ..Default::default() }
}

fn answer(id: &str, state: TaskState) -> TaskStatus {
    let agent_id = Some(AgentId { value: "S0".into() });
    TaskStatus { task_id: TaskId { value: id.into() }, state: state as i32, agent_id, ..Default::default() }
}

impl Cluster {
    fn disconnect(&mut self) {
        self.connected = false;
        self.stream.clear();
    }

    fn subscribe(&mut self) {
        self.disconnect();
        self.connected = true;
        let subscribed = event::Subscribed { framework_id: FrameworkId { value: "F".into() }, ..Default::default() };
        self.stream.push_back(scheduler::Event { subscribed: Some(Box::new(subscribed)), ..wire(Type::Subscribed) });
        self.repeat();
    }

    fn deliver(&mut self, status: TaskStatus) {
        if self.connected {
            let update = event::Update { status };
            self.stream.push_back(scheduler::Event { update: Some(update), ..wire(Type::Update) });
        }
    }

    /// Sends every task's oldest update that is not acknowledged, possibly again.
    fn repeat(&mut self) {
        let waiting: Vec<TaskStatus> = self.tasks.values().filter_map(|t| t.updates.front().cloned()).collect();
        waiting.into_iter().for_each(|status| self.deliver(status));
    }

    fn offer(&mut self) {
        if !self.connected {
            return;
        }
        self.offers += 1;
        let id = OfferId { value: self.offers.to_string().into() };
        let offer = Offer { id, agent_id: AgentId { value: "S0".into() }, ..Default::default() };
        let offers = event::Offers { offers: vec![offer] };
        self.stream.push_back(scheduler::Event { offers: Some(offers), ..wire(Type::Offers) });
    }

    fn update(&mut self, id: &str, state: TaskState) {
        self.uuids += 1;
        let status = TaskStatus { uuid: Some(self.uuids.to_be_bytes().to_vec()), ..answer(id, state) };
        let task = self.tasks.get_mut(id).unwrap();
        task.updates.push_back(status.clone());
        if task.updates.len() == 1 {
            self.deliver(status);
        }
    }

    fn end_one(&mut self) {
        let Some(id) = self.tasks.iter().find(|(_, t)| !t.ended).map(|(id, _)| id.clone()) else { return };
        self.tasks.get_mut(&id).unwrap().ended = true;
        self.finished.push(id.clone());
        self.update(&id, TaskState::TaskFinished);
    }

    fn take(&mut self, call: &Call) {
        for operation in call.accept.iter().flat_map(|a| &a.operations) {
            for task in &operation.launch.as_ref().unwrap().task_infos {
                let id = task.task_id.value.as_str();
                let fresh = !self.gone.contains(id) && !self.tasks.contains_key(id);
                assert!(fresh, "the task {id} was launched twice");
                self.tasks.insert(id.to_owned(), Running::default());
                self.update(id, TaskState::TaskRunning);
            }
        }
        if let Some(part) = &call.acknowledge {
            self.acknowledge(&part.task_id.value, &part.uuid);
        }
        for task in call.reconcile.iter().flat_map(|r| &r.tasks) {
            let id = task.task_id.value.as_str();
            let known = self.tasks.get(id);
            // A master answers with the state of the newest update.
            let newest = known.map(|t| t.updates.back().map_or(TaskState::TaskRunning, |s| s.state()));
            self.lost_answers += u32::from(newest.is_none());
            self.deliver(answer(id, newest.unwrap_or(TaskState::TaskGone)));
        }
    }

    fn acknowledge(&mut self, id: &str, uuid: &[u8]) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        if task.updates.front().is_none_or(|s| s.uuid() != uuid) {
            return;
        }
        task.updates.pop_front();
        match task.updates.front().cloned() {
            Some(next) => self.deliver(next),
            None if task.ended => {
                self.tasks.remove(id);
                self.gone.insert(id.to_owned());
            }
            None => {}
        }
    }
}

/// A cluster and a scheduler that is killed after a number of outputs.
struct World {
    cluster: Cluster,
    store: Memory,
    session: Session<Jobs>,
    now: Time,
    /// Number of outputs that are carried out before the scheduler is killed.
    lives_for: Option<u8>,
}

impl World {
    fn new() -> World {
        let mut store = Memory::default();
        let now = Time::from_secs(1);
        let session = World::start(&mut store, now);
        World { cluster: Cluster::default(), store, session, now, lives_for: None }
    }

    fn start(store: &mut Memory, now: Time) -> Session<Jobs> {
        let framework = FrameworkInfo { user: "u".into(), name: "n".into(), ..Default::default() };
        let mut session = Session::new(Jobs::default(), Settings::new(framework), now);
        let mut outputs = Vec::new();
        session.restore(store.load().unwrap(), now, &mut outputs).unwrap();
        assert_eq!(outputs, [], "nothing new is known by a restart alone");
        session
    }

    fn input(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.session.handle(input, self.now, &mut outputs);
        for output in outputs {
            if self.lives_for == Some(0) {
                return self.kill();
            }
            self.lives_for = self.lives_for.map(|n| n - 1);
            match output {
                Output::Save(changes) => self.store.commit(&changes).unwrap(),
                Output::Subscribe(_) => self.cluster.subscribe(),
                Output::Send(call) => self.cluster.take(&call),
                Output::Answer(answer) => answer.deliver(),
                Output::Disconnect => self.cluster.disconnect(),
                Output::End(ending) => panic!("{ending:?}"),
            }
        }
    }

    fn kill(&mut self) {
        self.lives_for = None;
        self.cluster.disconnect();
        self.session = World::start(&mut self.store, self.now);
    }

    fn step(&mut self, step: u8) {
        match step % 8 {
            0 => self.cluster.end_one(),
            1 => self.cluster.repeat(),
            2 => self.lives_for = Some(step / 8 % 8),
            3 if step > 200 => {
                self.cluster.disconnect();
                self.input(Input::Disconnected("cut".into()));
            }
            4 => self.cluster.offer(),
            5 => {
                self.now = self.session.next_wake().unwrap().max(self.now);
                self.input(Input::Wake);
            }
            _ => {
                if let Some(event) = self.cluster.stream.pop_front() {
                    self.input(Input::Event(Box::new(event)));
                }
            }
        }
    }

    /// Runs the scheduler to its end without further kills.
    fn run_to_end(&mut self) {
        self.lives_for = None;
        for round in 0..200 {
            if self.session.scheduler.jobs.values().all(Option::is_none) && self.cluster.tasks.is_empty() {
                return;
            }
            if !self.cluster.connected || round % 20 == 19 {
                self.kill();
                self.now = self.session.next_wake().unwrap().max(self.now);
                self.input(Input::Wake);
            }
            self.cluster.offer();
            self.cluster.repeat();
            self.cluster.end_one();
            while let Some(event) = self.cluster.stream.pop_front() {
                self.input(Input::Event(Box::new(event)));
            }
        }
        panic!("jobs are lost: {:?}", self.session.scheduler.jobs);
    }
}

proptest! {
    #[test]
    fn a_killed_scheduler_neither_loses_nor_doubles_a_task(steps in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.run_to_end();
        let mut finished: Vec<&str> =
            world.cluster.finished.iter().map(|id| id.split_once('.').unwrap().0).collect();
        finished.sort_unstable();
        prop_assert_eq!(finished, ["0", "1", "2", "3"]);
        let relaunched: u32 = world.cluster.gone.iter().map(|id| id.split_once('.').unwrap().1.parse::<u32>().unwrap()).sum();
        prop_assert_eq!(world.session.scheduler.ends_heard, JOBS + relaunched);
    }
}
