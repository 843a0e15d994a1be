//! Observer of a fault campaign: records launches, updates, operations and acknowledgements, and reports the first rule
//! that is broken.
//!
//! Rules about the master's state are in `invariants.rs`, rules about the end of a run in `convergence.rs`.

use std::cell::RefCell;
use std::rc::Rc;

use base::Time;
use master::ErrorKind;
use protos::mesos::TaskState;
use rustc_hash::{FxHashMap, FxHashSet};
use sdk::Ending;
use sdk::v1::scheduler::{Call, Event};
use sdk::v1::task_status::{Reason, Source};
use sdk::v1::{TaskState as ReportedState, TaskStatus};

use super::log::{self, Log};
use super::operator_checks::OperatorChecks;
use super::plan::FrameworkPlan;
use super::volumes::Volumes;
use super::worker::View;
use crate::world::{CallRefusal, Note, Observer};

/// A broken rule, with the observation that breaks it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {text}")]
pub struct Violation {
    /// Name of the rule, in a few words.
    pub rule: &'static str,
    /// The observation that breaks the rule.
    pub text: String,
}

/// Identifies a task by the ids of its framework and of itself.
pub(super) type TaskName = (String, String);

/// A status update that an executor has created.
#[derive(Debug)]
pub(super) struct CreatedUpdate {
    pub task: TaskName,
    /// Number of the update among those of its task.
    pub number: usize,
}

/// A framework with what the checker knows of it.
#[derive(Debug)]
pub(super) struct CheckedFramework {
    pub plan: Rc<FrameworkPlan>,
    pub view: Rc<RefCell<View>>,
    /// Whether the framework's session has ended.
    pub ended: bool,
    /// Tasks that the framework has launched, with the last state that it received for each.
    tasks: FxHashMap<String, Option<ReportedState>>,
}

/// The observer that checks rules in the course of a run.
#[derive(Debug)]
pub(super) struct Checker {
    pub checked_frameworks: Vec<CheckedFramework>,
    pub log: Log,
    pub broken: Option<Violation>,
    started: FxHashSet<TaskName>,
    pub created: FxHashMap<Vec<u8>, CreatedUpdate>,
    counts: FxHashMap<TaskName, usize>,
    /// Number of the next update of each task that its scheduler should receive.
    pub expected: FxHashMap<TaskName, usize>,
    /// UUIDs of the updates that agents have confirmed to executors, in order.
    pub confirmed: Vec<Vec<u8>>,
    offers: FxHashMap<String, usize>,
    volumes: Volumes,
    /// Tasks that an agent received from a master which it had left.
    from_former_master: FxHashSet<TaskName>,
    /// Tasks that agents have dropped because a master had shut their framework down.
    pub dropped: FxHashSet<TaskName>,
    /// Tasks that an agent received while it knew that its disk refuses writes.
    refused: FxHashSet<TaskName>,
    /// Acknowledged operator calls.
    pub operator_checks: OperatorChecks,
    /// Task groups, with the numbers of their schedulers.
    groups: Vec<(usize, Vec<String>)>,
    /// Number of the scheduler that has had each framework id.
    ids: FxHashMap<String, usize>,
    /// Host of each agent id.
    hosts: FxHashMap<String, String>,
    /// Number of tasks that were started.
    pub tasks: u64,
    pub updates: u64,
}

impl Checker {
    pub fn new(checked_frameworks: Vec<(Rc<FrameworkPlan>, Rc<RefCell<View>>)>, log: Log) -> Checker {
        let checked = |(plan, view)| CheckedFramework { plan, view, ended: false, tasks: FxHashMap::default() };
        Checker {
            checked_frameworks: checked_frameworks.into_iter().map(checked).collect(),
            log,
            broken: None,
            started: FxHashSet::default(),
            created: FxHashMap::default(),
            counts: FxHashMap::default(),
            expected: FxHashMap::default(),
            confirmed: Vec::new(),
            offers: FxHashMap::default(),
            volumes: Volumes::default(),
            from_former_master: FxHashSet::default(),
            dropped: FxHashSet::default(),
            refused: FxHashSet::default(),
            operator_checks: OperatorChecks::default(),
            groups: Vec::new(),
            ids: FxHashMap::default(),
            hosts: FxHashMap::default(),
            tasks: 0,
            updates: 0,
        }
    }

    /// Records that a rule is broken. Only the first one is kept.
    pub fn fail(&mut self, rule: &'static str, text: impl FnOnce() -> String) {
        self.broken.get_or_insert_with(|| Violation { rule, text: text() });
    }

    /// Returns the ids of frameworks whose sessions have ended.
    pub fn left(&self) -> Vec<String> {
        let ended = |id: &&String| self.checked_frameworks[self.ids[*id]].ended;
        let mut left: Vec<String> = self.ids.keys().filter(ended).cloned().collect();
        left.sort();
        left
    }

    /// Returns a task group of which some tasks were started and others not.
    pub fn partly_started_group(&self) -> Option<&[String]> {
        let started = |scheduler: usize, task: &String| {
            let mut ids = self.ids.iter().filter(|(_, owner)| **owner == scheduler);
            ids.any(|(id, _)| self.started.contains(&(id.clone(), task.clone())))
        };
        let torn = self.groups.iter().find(|(scheduler, tasks)| {
            let count = tasks.iter().filter(|task| started(*scheduler, task)).count();
            count > 0 && count < tasks.len()
        });
        torn.map(|(_, tasks)| tasks.as_slice())
    }

    fn update(&mut self, scheduler: usize, status: &TaskStatus) {
        let task = status.task_id.value.as_str();
        let Some(before) = self.checked_frameworks[scheduler].tasks.get(task).copied() else {
            // A scheduler that ended between recording a launch and sending it reconciles the task.
            if status.uuid.is_none() {
                return;
            }
            return self.fail("updates go to their owners", || {
                format!("scheduler {scheduler} receives an update of {task}, which it never launched")
            });
        };
        let state = status.state();
        self.refusal(scheduler, status);
        self.checked_frameworks[scheduler].tasks.insert(task.to_owned(), Some(state));
        let lives = [ReportedState::TaskStaging, ReportedState::TaskStarting, ReportedState::TaskRunning];
        let last = [
            ReportedState::TaskFinished,
            ReportedState::TaskFailed,
            ReportedState::TaskKilled,
            ReportedState::TaskError,
        ];
        let ended = before.is_some_and(|before| last.contains(&before));
        let checkpoint = self.checked_frameworks[scheduler].plan.checkpoint;
        // An update with a UUID may be a retransmission whose acknowledgement was lost.
        if checkpoint && ended && lives.contains(&state) && status.uuid.is_none() {
            self.fail("a terminal state is final", || {
                format!("scheduler {scheduler}: {task} has ended ({before:?}), and is reported as {state:?}")
            });
        }
        let Some(created) = status.uuid.as_ref().and_then(|uuid| self.created.get(uuid)) else { return };
        let (name, number) = (created.task.clone(), created.number);
        let owner = self.ids.get(&name.0).copied();
        if owner != Some(scheduler) || name.1 != *task {
            return self.fail("updates go to their owners", || {
                format!(
                    "an update of {}/{} of {owner:?} is delivered to scheduler {scheduler} for {task}",
                    name.0, name.1
                )
            });
        }
        let expected = self.expected.entry(name).or_default();
        let before = *expected;
        *expected = before.max(number + 1);
        if number > before && checkpoint {
            self.fail("no update is lost or overtaken", || {
                format!("scheduler {scheduler} receives update {number} of {task} before update {before}")
            });
        }
    }
}

impl Checker {
    /// Checks that a disk that refuses writes ends no running task, and that a task that is refused for it is reported
    /// with a reason.
    fn refusal(&mut self, scheduler: usize, status: &TaskStatus) {
        let task = status.task_id.value.to_string();
        let name = (self.checked_frameworks[scheduler].view.borrow().id.clone().unwrap_or_default(), task);
        let is_for_disk = status.reason.is_some() && status.reason() == Reason::GcError;
        if is_for_disk && self.started.contains(&name) {
            self.fail("a failing disk ends no task", || format!("{}/{}: {:?}", name.0, name.1, status.message));
        }
        let is_agents = status.source.is_some() && status.source() == Source::Agent;
        if is_agents && self.refused.contains(&name) && status.message().is_empty() {
            self.fail("a task is refused with a reason", || format!("{}/{}: {:?}", name.0, name.1, status.state()));
        }
    }
}

impl Observer for Checker {
    fn received(&mut self, scheduler: usize, event: &Event, now: Time) {
        if let Some(line) = log::received(scheduler, event) {
            self.log.line(now, || line);
        }
        if let Some(part) = &event.subscribed {
            let id = part.framework_id.value.to_string();
            if let Some(other) = self.ids.insert(id.clone(), scheduler).filter(|other| *other != scheduler) {
                self.fail("ids are given once", || format!("framework {id} is of schedulers {other} and {scheduler}"));
            }
        }
        for offer in event.offers.iter().flat_map(|part| &part.offers) {
            if self.offers.insert(offer.id.value.to_string(), scheduler).is_some() {
                self.fail("an offer is made once", || {
                    format!("scheduler {scheduler} receives {} again", offer.id.value)
                });
            }
            let (agent, host) = (&offer.agent_id.value, &offer.hostname);
            if let Some(other) = self.hosts.insert(agent.to_string(), host.clone()).filter(|other| other != host) {
                self.fail("ids are given once", || format!("agent {agent} is on {other} and on {host}"));
            }
        }
        if let Some(part) = &event.update {
            self.updates += 1;
            self.update(scheduler, &part.status);
        }
    }

    fn called(&mut self, scheduler: usize, call: &Call, now: Time) {
        self.log.line(now, || log::called(scheduler, call));
        self.volumes.called(call);
        let operations = call.accept.iter().flat_map(|accept| &accept.operations);
        for group in operations.filter_map(|operation| operation.launch_group.as_ref()) {
            let tasks = group.task_group.tasks.iter().map(|task| task.task_id.value.to_string());
            self.groups.push((scheduler, tasks.collect()));
        }
        for task in log::launched(call) {
            if self.checked_frameworks[scheduler].tasks.insert(task.task_id.value.to_string(), None).is_some() {
                let id = &task.task_id.value;
                self.fail("a task is launched once", || format!("scheduler {scheduler} launches {id} again"));
            }
        }
    }

    fn started(&mut self, framework: &str, task: &str, _: Time) {
        self.tasks += 1;
        let name = (framework.to_owned(), task.to_owned());
        if self.from_former_master.contains(&name) {
            self.fail("only the leading master is obeyed", || format!("{framework}/{task} is started"));
        }
        if self.refused.contains(&name) {
            self.fail("no task starts on a failing disk", || format!("{framework}/{task} is started"));
        }
        if !self.started.insert(name) {
            self.fail("no task is started twice", || format!("{framework}/{task} is started again"));
        }
    }

    fn ended(&mut self, framework: &str, task: &str, _: Time) {
        self.volumes.ended(framework, task);
    }

    fn noted(&mut self, note: &Note<'_>, now: Time) {
        self.log.line(now, || note.to_string());
        let (ids, checked_frameworks) = (&self.ids, &self.checked_frameworks);
        let is_kept = |id: &str| ids.get(id).is_some_and(|scheduler| checked_frameworks[*scheduler].plan.checkpoint);
        if let Some((rule, text)) = self.volumes.noted(note, &is_kept) {
            self.fail(rule, || text);
        }
        match note {
            Note::UpdateCreated { framework, task, uuid, .. } => {
                let task = ((*framework).to_owned(), (*task).to_owned());
                let count = self.counts.entry(task.clone()).or_default();
                self.created.insert(uuid.to_vec(), CreatedUpdate { task, number: *count });
                *count += 1;
            }
            Note::TaskFromFormerMaster { framework, task, .. } => {
                self.from_former_master.insert(((*framework).to_owned(), (*task).to_owned()));
            }
            Note::TaskForFailingDisk { framework, task, .. } => {
                self.refused.insert(((*framework).to_owned(), (*task).to_owned()));
            }
            Note::TaskDropped { framework, task, .. } => {
                self.dropped.insert(((*framework).to_owned(), (*task).to_owned()));
            }
            Note::OperatorCalls { request, call } => self.operator_checks.called(*request, call),
            Note::OperatorAnswered { request, done } => self.operator_checks.answered(*request, *done),
            Note::UpdateAcknowledged { uuid, .. } => self.confirmed.push(uuid.to_vec()),
            Note::AgentCannotStart { agent, why } => {
                self.fail("an agent starts from its checkpoints", || format!("agent {agent}: {why}"));
            }
            Note::MasterExits { reason } => self.fail("a master does not exit", || (*reason).to_owned()),
            Note::SchedulerEnds { scheduler, ending } => {
                let checked = &mut self.checked_frameworks[*scheduler as usize];
                checked.ended = true;
                // A framework that was disconnected for longer than its failover timeout is removed.
                let patient = checked.plan.failover.as_secs() > 3600;
                if patient && **ending != Ending::Stopped {
                    self.fail("a framework is not removed", || format!("scheduler {scheduler}: {ending:?}"));
                }
            }
            // The call used a stream that another one has replaced.
            Note::CallRefused { why: CallRefusal::Rejected(error), .. }
                if matches!(error.kind, ErrorKind::Invalid | ErrorKind::Forbidden) => {}
            Note::CallRefused { scheduler, call, why } => {
                self.fail("a valid call is accepted", || {
                    format!("{} of scheduler {scheduler}: {why}", call.r#type().as_str_name())
                });
            }
            _ => {}
        }
    }
}

/// Returns whether it is unknown if a task in this state exists.
pub(super) fn is_doubtful(state: ReportedState) -> bool {
    matches!(state, ReportedState::TaskUnreachable | ReportedState::TaskUnknown)
}

/// Returns whether a task in this state has ended.
pub(super) fn is_over(state: TaskState) -> bool {
    use TaskState as S;
    !matches!(
        state,
        S::TaskStaging | S::TaskStarting | S::TaskRunning | S::TaskKilling | S::TaskUnreachable | S::TaskUnknown
    )
}
