//! A small cluster without I/O: agents, offers and tasks, as a scheduler sees them through a real session.
//!
//! It checks that no offer is overfilled, that no task id is launched twice, and that what must survive a restart is
//! saved before it is sent. Tests decide when offers arrive and how tasks end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use base::Time;
use resources::{Role, parse_text};
use sdk::task::{from_v1, to_v1};
use sdk::v1::scheduler::{self, Call, call, event};
use sdk::v1::task_status::Reason;
use sdk::v1::{AgentId, Offer, OfferId, TaskId, TaskInfo, TaskState, TaskStatus};
use sdk::{Calls, Ending, Event, Input, Output, Scheduler, Session, Settings};

use crate::core::{Answer, Core, Happening, JobView, Reply, Request, State, Submitted};
use crate::job::Job;
use crate::{Knobs, Need};

/// The scheduler, reachable while the session has it.
type Served = jobs::served::Served<Core, Box<dyn FnMut(&mut Core)>>;

#[derive(Clone)]
struct Shared(Rc<RefCell<Served>>);

impl Scheduler for Shared {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        self.0.borrow_mut().on_event(event, now, calls);
    }
}

/// Interval of the master's heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// An agent, and what of it is in use or on offer.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) text: &'static str,
    pub(super) attributes: Vec<(&'static str, &'static str)>,
    used: Need,
    offered: Option<String>,
    /// Until when what it has is refused.
    refused: Time,
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) agent: usize,
    pub(super) need: Need,
    pub(super) info: TaskInfo,
    pub(super) state: TaskState,
}

pub(super) struct World {
    session: Session<Shared>,
    served: Shared,
    happenings: Rc<RefCell<Vec<Happening>>>,
    pub(super) knobs: Knobs,
    pub(super) now: Time,
    pub(super) agents: Vec<Agent>,
    /// Tasks that have not ended.
    pub(super) tasks: BTreeMap<String, Task>,
    /// Tasks whose end was asked for.
    pub(super) unwanted: BTreeSet<String>,
    /// How often in all.
    pub(super) kills: usize,
    /// Every task id that was ever launched.
    launched: BTreeSet<String>,
    pub(super) store: BTreeMap<String, Vec<u8>>,
    offers: u64,
    pub(super) suppressed: bool,
    /// Calls since they were examined last.
    pub(super) calls: Vec<Call>,
    /// Whether a kill ends a task at once.
    pub(super) kills_at_once: bool,
    /// The end of every task: id and state.
    pub(super) ended: Vec<(String, TaskState)>,
    /// Agents that the master has forgotten.
    forgotten: BTreeSet<usize>,
    /// How the session ended, if it did.
    pub(super) ending: Option<Ending>,
    uuids: u64,
}

impl World {
    pub(super) fn new(knobs: Knobs, agents: &[&'static str]) -> World {
        let agent = |text: &&'static str| Agent {
            text,
            attributes: Vec::new(),
            used: Need::default(),
            offered: None,
            refused: Time::EPOCH,
        };
        let now = Time::from_secs(1_000);
        let happenings = Rc::default();
        let (session, served) = session(&knobs, now, &happenings);
        let mut world = World {
            session,
            served,
            happenings,
            knobs,
            now,
            agents: agents.iter().map(agent).collect(),
            tasks: BTreeMap::new(),
            unwanted: BTreeSet::new(),
            kills: 0,
            launched: BTreeSet::new(),
            store: BTreeMap::new(),
            offers: 0,
            suppressed: false,
            calls: Vec::new(),
            kills_at_once: true,
            ended: Vec::new(),
            forgotten: BTreeSet::new(),
            ending: None,
            uuids: 0,
        };
        world.begin();
        world
    }

    /// Restores and subscribes.
    fn begin(&mut self) {
        let entries = self.store.clone();
        let mut outputs = Vec::new();
        self.session.restore(entries, self.now, &mut outputs).unwrap();
        self.carry_out(outputs);
        if self.ending.is_some() {
            return;
        }
        self.put(Input::Wake);
        let subscribed =
            event::Subscribed { framework_id: sdk::v1::FrameworkId { value: "F".into() }, ..Default::default() };
        self.tell(scheduler::Event { subscribed: Some(Box::new(subscribed)), ..of(event::Type::Subscribed) });
    }

    /// Kills and restarts the scheduler; its tasks keep running.
    pub(super) fn restart(&mut self) {
        (self.session, self.served) = session(&self.knobs, self.now, &self.happenings);
        for agent in &mut self.agents {
            (agent.offered, agent.refused) = (None, Time::EPOCH);
        }
        self.suppressed = false;
        self.begin();
    }

    pub(super) fn request(&mut self, request: Request) -> Answer {
        let mut answer = self.served.0.borrow().requests().put(request).unwrap();
        self.put(Input::Nudge);
        answer.take().unwrap().unwrap()
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

    /// Advances the time; the scheduler is woken when it asks for it.
    pub(super) fn pass(&mut self, time: Duration) {
        let mut left = time;
        while left > HEARTBEAT {
            self.pass_some(HEARTBEAT);
            left -= HEARTBEAT;
        }
        self.pass_some(left);
    }

    fn pass_some(&mut self, time: Duration) {
        let end = self.now + time;
        let mut wakes = 0;
        while let Some(at) = self.session.next_wake().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.put(Input::Wake);
            wakes += 1;
            assert!(wakes < 100_000, "the scheduler wakes itself all the time");
        }
        self.now = end;
        // The master is alive.
        self.tell(of(event::Type::Heartbeat));
    }

    /// Advances the time to the next revive, and makes offers.
    pub(super) fn soon(&mut self) {
        self.pass(Duration::from_millis(500));
        self.offer();
    }

    /// Offers everything that is free, not on offer, and not refused.
    pub(super) fn offer(&mut self) {
        if self.suppressed {
            return;
        }
        let agents: Vec<usize> = (0..self.agents.len()).collect();
        self.offer_of(&agents);
    }

    pub(super) fn offer_of(&mut self, agents: &[usize]) {
        let mut offers = Vec::new();
        for &number in agents {
            let free = self.free(number);
            let agent = &mut self.agents[number];
            if agent.offered.is_some() || self.now < agent.refused || free.0.iter().all(|a| *a <= 0) {
                continue;
            }
            self.offers += 1;
            let id = format!("O{}", self.offers);
            agent.offered = Some(id.clone());
            let attribute = |(name, value): &(&str, &str)| sdk::v1::Attribute {
                name: (*name).to_owned(),
                r#type: sdk::v1::value::Type::Text as i32,
                text: Some(sdk::v1::value::Text { value: (*value).to_owned() }),
                ..Default::default()
            };
            offers.push(Offer {
                id: OfferId { value: id.into() },
                agent_id: AgentId { value: format!("S{number}").into() },
                hostname: format!("host{number}"),
                resources: to_v1(&parse_text(&text(&free), &Role::star()).unwrap()),
                attributes: agent.attributes.iter().map(attribute).collect(),
                ..Default::default()
            });
        }
        if !offers.is_empty() {
            self.tell(scheduler::Event { offers: Some(event::Offers { offers }), ..of(event::Type::Offers) });
        }
    }

    fn free(&self, agent: usize) -> Need {
        let agent = &self.agents[agent];
        needs(&to_v1(&parse_text(agent.text, &Role::star()).unwrap())).minus(&agent.used)
    }

    /// Takes an offer back from the scheduler.
    pub(super) fn rescind(&mut self, agent: usize) {
        let Some(id) = self.agents[agent].offered.take() else { return };
        let rescind = event::Rescind { offer_id: OfferId { value: id.into() } };
        self.tell(scheduler::Event { rescind: Some(rescind), ..of(event::Type::Rescind) });
    }

    /// A task reaches a state.
    pub(super) fn update(&mut self, id: &str, state: TaskState) {
        self.update_with(id, state, None);
    }

    pub(super) fn update_with(&mut self, id: &str, state: TaskState, healthy: Option<bool>) {
        let mut status = self.status(id, state);
        status.healthy = healthy;
        self.report(id, status);
    }

    /// A task reaches a state for this reason.
    pub(super) fn update_for(&mut self, id: &str, state: TaskState, reason: Reason) {
        let mut status = self.status(id, state);
        status.reason = Some(reason as i32);
        self.report(id, status);
    }

    fn report(&mut self, id: &str, mut status: TaskStatus) {
        let state = status.state();
        self.uuids += 1;
        status.uuid = Some(self.uuids.to_be_bytes().to_vec());
        if let Some(task) = self.tasks.get_mut(id) {
            task.state = state;
        }
        if sdk::is_terminal(state) {
            self.ended.push((id.to_owned(), state));
            if let Some(task) = self.tasks.remove(id) {
                let agent = &mut self.agents[task.agent];
                agent.used = agent.used.minus(&task.need);
                // More than what was refused.
                agent.refused = Time::EPOCH;
            }
        }
        self.tell(scheduler::Event { update: Some(event::Update { status }), ..of(event::Type::Update) });
    }

    fn status(&self, id: &str, state: TaskState) -> TaskStatus {
        let agent = self.tasks.get(id).map(|t| AgentId { value: format!("S{}", t.agent).into() });
        TaskStatus { task_id: TaskId { value: id.into() }, state: state as i32, agent_id: agent, ..Default::default() }
    }

    /// Every task that was launched and nothing else runs.
    pub(super) fn run_all(&mut self) {
        for id in self.ids_in(TaskState::TaskStaging) {
            self.update(&id, TaskState::TaskRunning);
        }
    }

    /// The ids of the tasks in this state, in their order.
    pub(super) fn ids_in(&self, state: TaskState) -> Vec<String> {
        self.tasks.iter().filter(|(_, t)| t.state == state).map(|(id, _)| id.clone()).collect()
    }

    /// The ids of all tasks of a job that have not ended.
    pub(super) fn of_job(&self, name: &str) -> Vec<String> {
        let prefix = format!("{name}.");
        self.tasks.keys().filter(|id| id.starts_with(&prefix)).cloned().collect()
    }

    /// What has happened since the last look.
    pub(super) fn happenings(&mut self) -> Vec<Happening> {
        self.happenings.take()
    }

    /// The kinds of the calls since the last look, without acknowledgements.
    pub(super) fn kinds(&mut self) -> Vec<call::Type> {
        let calls = std::mem::take(&mut self.calls);
        calls.iter().map(Call::r#type).filter(|kind| *kind != call::Type::Acknowledge).collect()
    }

    fn tell(&mut self, event: scheduler::Event) {
        self.put(Input::Event(Box::new(event)));
    }

    fn put(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.session.handle(input, self.now, &mut outputs);
        self.carry_out(outputs);
    }

    fn carry_out(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Save(changes) => {
                    for change in changes {
                        match change.value {
                            Some(value) => self.store.insert(change.key, value),
                            None => self.store.remove(&change.key),
                        };
                    }
                }
                Output::Send(call) => self.call(*call),
                Output::Answer(answer) => answer.give(),
                Output::Subscribe(_) | Output::Disconnect => {}
                Output::End(ending) => self.ending = Some(ending),
            }
        }
    }

    fn call(&mut self, call: Call) {
        self.calls.push(call.clone());
        match call.r#type() {
            call::Type::Accept => self.accept(&call.accept.unwrap()),
            call::Type::Decline => {
                let decline = call.decline.unwrap();
                let refuse = decline.filters.and_then(|f| f.refuse_seconds).unwrap_or(5.0);
                for id in &decline.offer_ids {
                    self.take_back(&id.value, refuse);
                }
            }
            call::Type::Suppress => self.suppressed = true,
            call::Type::Revive => {
                self.suppressed = false;
                self.agents.iter_mut().for_each(|a| a.refused = Time::EPOCH);
            }
            call::Type::Kill => {
                let id = call.kill.unwrap().task_id.value.to_string();
                self.unwanted.insert(id.clone());
                self.kills += 1;
                assert!(self.kills < 10_000, "{id} is killed again and again");
                // A task that the master does not have is reconciled instead.
                if self.tasks.get(&id).is_none_or(|t| t.state == TaskState::TaskUnreachable) {
                    self.reconcile(&id);
                } else if self.kills_at_once {
                    self.update(&id, TaskState::TaskKilled);
                }
            }
            call::Type::Reconcile => {
                for task in call.reconcile.unwrap().tasks {
                    self.reconcile(&task.task_id.value);
                }
            }
            _ => {}
        }
    }

    /// The master's answer to a reconciliation, which needs no acknowledgement.
    fn reconcile(&mut self, id: &str) {
        let state = match self.tasks.get(id) {
            Some(task) if self.forgotten.contains(&task.agent) => TaskState::TaskUnknown,
            Some(task) => task.state,
            None => TaskState::TaskGone,
        };
        let update = Some(event::Update { status: self.status(id, state) });
        self.tell(scheduler::Event { update, ..of(event::Type::Update) });
    }

    /// Makes an agent unreachable; its tasks may keep running.
    pub(super) fn silence(&mut self, agent: usize) {
        for id in self.of_agent(agent) {
            self.update(&id, TaskState::TaskUnreachable);
        }
    }

    /// The master removes an agent that was unreachable for too long.
    pub(super) fn forget_agent(&mut self, agent: usize) {
        self.forgotten.insert(agent);
    }

    /// The ids of all tasks on an agent.
    pub(super) fn of_agent(&self, agent: usize) -> Vec<String> {
        self.tasks.iter().filter(|(_, task)| task.agent == agent).map(|(id, _)| id.clone()).collect()
    }

    /// Number of tasks in the session's ledger, from its store.
    pub(super) fn in_ledger(&self) -> usize {
        self.store.keys().filter(|key| key.starts_with("sdk/task/")).count()
    }

    fn take_back(&mut self, offer: &str, refuse: f64) -> Option<usize> {
        let number = self.agents.iter().position(|a| a.offered.as_deref() == Some(offer))?;
        let agent = &mut self.agents[number];
        agent.offered = None;
        agent.refused = self.now + Duration::from_secs_f64(refuse);
        Some(number)
    }

    fn accept(&mut self, accept: &call::Accept) {
        let refuse = accept.filters.and_then(|f| f.refuse_seconds).unwrap_or(5.0);
        let mut room = Need::default();
        let mut agents = BTreeSet::new();
        for id in &accept.offer_ids {
            // An offer that was rescinded meanwhile.
            let Some(number) = self.agents.iter().position(|a| a.offered.as_deref() == Some(&id.value)) else { return };
            room = room.plus(&self.free(number));
            self.take_back(&id.value, refuse);
            agents.insert(number);
        }
        assert_eq!(agents.len(), 1, "one call is for one agent");
        let agent = agents.pop_first().unwrap();
        for info in accept.operations.iter().flat_map(|o| &o.launch.as_ref().unwrap().task_infos) {
            let need = needs(&info.resources);
            assert!(need.fits(&room), "overfilled: {need} into {room}");
            room = room.minus(&need);
            self.agents[agent].used = self.agents[agent].used.plus(&need);
            let id = info.task_id.value.to_string();
            assert!(self.launched.insert(id.clone()), "{id} was launched twice");
            assert_eq!(info.agent_id.value, format!("S{agent}"));
            self.tasks.insert(id, Task { agent, need, info: info.clone(), state: TaskState::TaskStaging });
        }
    }
}

fn session(knobs: &Knobs, now: Time, happenings: &Rc<RefCell<Vec<Happening>>>) -> (Session<Shared>, Shared) {
    let happenings = happenings.clone();
    let after = Box::new(move |core: &mut Core| happenings.borrow_mut().extend(core.take_happenings()));
    let (served, _) = Served::new(Core::new(knobs.clone()), after);
    let served = Shared(Rc::new(RefCell::new(served)));
    (Session::new(served.clone(), Settings::new(Default::default()), now), served)
}

fn of(kind: event::Type) -> scheduler::Event {
    scheduler::Event { r#type: Some(kind as i32), ..Default::default() }
}

fn needs(resources: &[sdk::v1::Resource]) -> Need {
    let all = from_v1(resources).unwrap();
    let ports = i64::try_from(all.ports().count()).unwrap() * 1_000;
    Need(
        [all.cpus(), all.mem(), all.disk(), all.gpus()]
            .map(|a| a.thousandths())
            .into_iter()
            .chain([ports])
            .collect::<Vec<_>>()
            .try_into()
            .unwrap(),
    )
}

/// What is free, as a resource text; ports from 1000 on.
fn text(free: &Need) -> String {
    let mut text: Vec<String> =
        (0..4).filter(|&k| free.0[k] > 0).map(|k| format!("{}:{}", crate::need::NAMES[k], free.amount(k))).collect();
    if free.ports() > 0 {
        text.push(format!("ports:[1000-{}]", 999 + free.ports()));
    }
    text.join(";")
}
