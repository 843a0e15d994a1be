//! The scheduler on a small cluster without I/O ([`jobs::testing`]), with the requests and reports of its tests.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;

use jobs::testing::{Cluster, RequestServer};
use sdk::v1::TaskState;

use crate::core::{Core, JobEvent, JobView, Reply, Request, Settings, State, WorkItem};
use crate::job::{Job, Syntax, read};

/// Events and work that the scheduler has reported since they were last taken.
#[derive(Clone, Default)]
struct Reports {
    events: Rc<RefCell<Vec<JobEvent>>>,
    work_items: Rc<RefCell<Vec<WorkItem>>>,
}

pub(super) struct World {
    cluster: Cluster<Core>,
    reports: Reports,
    settings: Settings,
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
    pub(super) fn new(settings: Settings, agents: usize, cpus: f64) -> World {
        let reports = Reports::default();
        let agents = std::iter::repeat_n(format!("cpus:{cpus};mem:4096"), agents);
        World { cluster: Cluster::new(served(&settings, &reports), agents), reports, settings }
    }

    /// Kills and restarts the scheduler; its tasks keep running.
    pub(super) fn restart(&mut self) {
        self.reports.work_items.borrow_mut().clear();
        self.cluster.restart(served(&self.settings, &self.reports));
    }

    /// Submits the jobs of a TOML file.
    pub(super) fn submit(&mut self, text: &str) {
        let jobs: Vec<Job> = read("test.toml", text, Syntax::Toml).unwrap();
        self.request(Request::Submit(jobs)).unwrap();
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

    pub(super) fn take_work_items(&mut self) -> Vec<WorkItem> {
        self.reports.work_items.take()
    }

    pub(super) fn events(&mut self) -> Vec<JobEvent> {
        self.reports.events.take()
    }

    /// Advances the time a little and makes offers.
    pub(super) fn soon(&mut self) {
        self.pass(Duration::from_millis(1_100));
        self.offer();
    }

    /// Sends a status update of a task.
    pub(super) fn update(&mut self, id: &str, state: TaskState, message: &str) {
        self.cluster.update(id, state, |status| status.message = Some(message.to_owned()));
    }

    pub(super) fn finish(&mut self, id: &str) {
        self.update(id, TaskState::TaskFinished, "");
    }

    /// Returns the ids of the tasks of a stage that have not ended, in order.
    pub(super) fn of_stage(&self, stage: &str) -> Vec<String> {
        let part = format!(".{stage}.");
        self.tasks.keys().filter(|id| id.contains(&part)).cloned().collect()
    }

    /// Finishes all running tasks and makes offers, until no task runs.
    pub(super) fn run_dry(&mut self) {
        for _ in 0..10_000 {
            let Some(id) = self.tasks.keys().next().cloned() else {
                self.soon();
                if self.tasks.is_empty() {
                    return;
                }
                continue;
            };
            self.finish(&id);
            self.offer();
        }
        panic!("it does not end");
    }

    /// Replaces a lost agent by another one.
    pub(super) fn find(&mut self, agent: usize) {
        self.agents[agent].is_lost = false;
    }

    pub(super) fn environment(&self, id: &str, name: &str) -> Option<String> {
        let variables = &self.tasks[id].info.command.as_ref()?.environment.as_ref()?.variables;
        variables.iter().find(|v| v.name == name)?.value.clone()
    }
}

fn served(settings: &Settings, reports: &Reports) -> RequestServer<Core> {
    let Reports { events, work_items } = reports.clone();
    let after = Box::new(move |core: &mut Core| {
        events.borrow_mut().extend(core.take_events());
        work_items.borrow_mut().extend(core.take_work_items());
    });
    RequestServer::new(Core::new(settings.clone()), after as _).0
}
