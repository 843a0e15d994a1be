//! Runs the scheduler on a small cluster without I/O ([`jobs::testing`]), with the requests and reports of its tests.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;

use jobs::testing::{Cluster, RequestServer};
use sdk::v1::scheduler::{Call, call};
use sdk::v1::task_status::Reason;
use sdk::v1::{TaskState, TaskStatus};

use crate::Knobs;
use crate::core::{Core, JobEvent, JobView, Reply, Request, State, Submitted};
use crate::job::Job;

pub(super) struct World {
    cluster: Cluster<Core>,
    events: Rc<RefCell<Vec<JobEvent>>>,
    knobs: Knobs,
}

impl Deref for World {
    type Target = Cluster<Core>;

    fn deref(&self) -> &Cluster<Core> {
        &self.cluster
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Cluster<Core> {
        &mut self.cluster
    }
}

impl World {
    pub(super) fn new(knobs: Knobs, agents: &[&str]) -> World {
        let events = Rc::default();
        let agents = agents.iter().map(|agent| (*agent).to_owned());
        World { cluster: Cluster::new(served(&knobs, &events), agents), events, knobs }
    }

    /// Kills and restarts the scheduler; its tasks keep running.
    pub(super) fn restart(&mut self) {
        self.cluster.restart(served(&self.knobs, &self.events));
    }

    pub(super) fn submit(&mut self, jobs: Vec<Job>) -> Vec<Submitted> {
        match self.request(Request::Submit(jobs)) {
            Ok(Reply::Submitted(submitted)) => submitted,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn show(&mut self, name: &str) -> JobView {
        match self.request(Request::Show { name: name.to_owned() }) {
            Ok(Reply::Job(view)) => *view,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn state(&mut self, name: &str) -> State {
        self.show(name).summary.state
    }

    /// Advances the time to the next revive, and makes offers.
    pub(super) fn soon(&mut self) {
        self.pass(Duration::from_millis(500));
        self.offer();
    }

    /// Reports this state of a task.
    pub(super) fn update(&mut self, id: &str, state: TaskState) {
        self.update_by(id, state, |_| ());
    }

    pub(super) fn update_with(&mut self, id: &str, state: TaskState, healthy: Option<bool>) {
        self.update_by(id, state, |status| status.healthy = healthy);
    }

    /// Reports this state of a task, with a reason.
    pub(super) fn update_for(&mut self, id: &str, state: TaskState, reason: Reason) {
        self.update_by(id, state, |status| status.reason = Some(reason as i32));
    }

    fn update_by(&mut self, id: &str, state: TaskState, change: impl FnOnce(&mut TaskStatus)) {
        self.cluster.update(id, state, change);
    }

    /// Reports every task that was launched and has no update yet as running.
    pub(super) fn run_all(&mut self) {
        for id in self.ids_in(TaskState::TaskStaging) {
            self.update(&id, TaskState::TaskRunning);
        }
    }

    /// Returns the ids of the tasks in this state, in their order.
    pub(super) fn ids_in(&self, state: TaskState) -> Vec<String> {
        self.tasks.iter().filter(|(_, t)| t.state == state).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the ids of all tasks of a job that have not ended.
    pub(super) fn of_job(&self, name: &str) -> Vec<String> {
        let prefix = format!("{name}.");
        self.tasks.keys().filter(|id| id.starts_with(&prefix)).cloned().collect()
    }

    /// Returns the events for followers since the last call.
    pub(super) fn events(&mut self) -> Vec<JobEvent> {
        self.events.take()
    }

    /// Returns the types of the calls since the last call of this function, without acknowledgements.
    pub(super) fn kinds(&mut self) -> Vec<call::Type> {
        let calls = std::mem::take(&mut self.calls);
        calls.iter().map(Call::r#type).filter(|kind| *kind != call::Type::Acknowledge).collect()
    }

    /// Makes an agent unreachable; its tasks may keep running.
    pub(super) fn silence(&mut self, agent: usize) {
        for id in self.of_agent(agent) {
            self.update(&id, TaskState::TaskUnreachable);
        }
    }

    /// Removes an agent that was unreachable for too long, as the master does.
    pub(super) fn forget_agent(&mut self, agent: usize) {
        self.forgotten.insert(agent);
    }

    /// Returns the number of tasks in the session's ledger, from its store.
    pub(super) fn in_ledger(&self) -> usize {
        self.store.keys().filter(|key| key.starts_with("sdk/task/")).count()
    }
}

fn served(knobs: &Knobs, events: &Rc<RefCell<Vec<JobEvent>>>) -> RequestServer<Core> {
    let events = events.clone();
    let after = Box::new(move |core: &mut Core| events.borrow_mut().extend(core.take_events()));
    RequestServer::new(Core::new(knobs.clone()), after as _).0
}
