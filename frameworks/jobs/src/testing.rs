//! A small cluster without I/O for tests of schedulers: agents, offers and tasks, as a scheduler sees them through a
//! real session.
//!
//! It checks that no offer is overfilled, that no task id is launched twice, and that state that must survive a restart
//! is saved before messages are sent. Tests decide when offers arrive and how tasks end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use base::Time;
use resources::{Role, parse_text};
use sdk::task::{from_v1, to_v1};
use sdk::v1::scheduler::{self, Call, call, event};
use sdk::v1::{Address, AgentId, Offer, OfferId, TaskId, TaskInfo, TaskState, TaskStatus, Url};
use sdk::{Calls, Ending, Event, Input, Output, Scheduler, Session, Settings};

use crate::need::{NAMES, Need};
use crate::request_handler::RequestHandler;

/// A scheduler with its queue of requests, and a callback after each event.
pub type RequestServer<C> = crate::request_handler::RequestServer<C, Box<dyn FnMut(&mut C)>>;

/// A scheduler that stays accessible while the session owns it.
struct Shared<C: RequestHandler>(Rc<RefCell<RequestServer<C>>>);

impl<C: RequestHandler> Scheduler for Shared<C> {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        self.0.borrow_mut().on_event(event, now, calls);
    }
}

/// Interval of the master's heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// An agent, with its resources that are in use or offered.
#[derive(Clone, Debug, Default)]
pub struct Agent {
    /// Total resources of the agent, as text.
    pub total: String,
    /// Attributes of the agent by name.
    pub attributes: Vec<(&'static str, &'static str)>,
    /// Whether the agent is removed; it makes no offers then.
    pub is_lost: bool,
    used: Need,
    offered: Option<String>,
    /// End of the filter on its resources.
    refused: Time,
}

/// A task that has not ended.
#[derive(Clone, Debug)]
pub struct Task {
    /// Index of the agent.
    pub agent: usize,
    /// Resources of the task.
    pub need: Need,
    /// Message that launched the task.
    pub info: TaskInfo,
    /// Last state of the task.
    pub state: TaskState,
}

/// A simulated cluster with its scheduler.
pub struct Cluster<C: RequestHandler> {
    session: Session<Shared<C>>,
    served: Rc<RefCell<RequestServer<C>>>,
    /// Current time.
    pub now: Time,
    /// Agents of the cluster. Their ids are `S0`, `S1`, ...
    pub agents: Vec<Agent>,
    /// Tasks that have not ended.
    pub tasks: BTreeMap<String, Task>,
    /// Tasks that were killed and have not ended.
    pub killed: BTreeSet<String>,
    /// Number of KILL calls.
    pub kills: usize,
    /// Ids of all launched tasks, in order.
    pub launched: Vec<String>,
    /// Saved state of the framework, by key.
    pub store: BTreeMap<String, Vec<u8>>,
    /// Whether the framework has suppressed offers.
    pub suppressed: bool,
    /// Calls since the test last took them.
    pub calls: Vec<Call>,
    /// Whether a kill ends a task at once.
    pub kills_at_once: bool,
    /// Id and final state of every task that has ended.
    pub ended: Vec<(String, TaskState)>,
    /// Agents of which the master no longer knows anything, by index.
    pub forgotten: BTreeSet<usize>,
    /// Ending of the session; `None` while it runs.
    pub ending: Option<Ending>,
    offers: u64,
    uuids: u64,
}

impl<C: RequestHandler> Cluster<C> {
    /// Creates a cluster of agents with these resources, to which the scheduler is subscribed.
    pub fn new(served: RequestServer<C>, agents: impl IntoIterator<Item = String>) -> Cluster<C> {
        let agent = |total| Agent { total, ..Agent::default() };
        let now = Time::from_secs(1_000);
        let (session, served) = session(served, now);
        let mut cluster = Cluster {
            session,
            served,
            now,
            agents: agents.into_iter().map(agent).collect(),
            tasks: BTreeMap::new(),
            killed: BTreeSet::new(),
            kills: 0,
            launched: Vec::new(),
            store: BTreeMap::new(),
            suppressed: false,
            calls: Vec::new(),
            kills_at_once: true,
            ended: Vec::new(),
            forgotten: BTreeSet::new(),
            ending: None,
            offers: 0,
            uuids: 0,
        };
        cluster.begin();
        cluster
    }

    /// Restores the saved state and subscribes.
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
        self.send(scheduler::Event { subscribed: Some(Box::new(subscribed)), ..of(event::Type::Subscribed) });
    }

    /// Ends the scheduler and starts another one with its saved state; tasks keep running.
    pub fn restart(&mut self, served: RequestServer<C>) {
        (self.session, self.served) = session(served, self.now);
        for agent in &mut self.agents {
            (agent.offered, agent.refused) = (None, Time::EPOCH);
        }
        self.suppressed = false;
        self.begin();
    }

    /// Sends a request to the scheduler and returns its answer.
    pub fn request(&mut self, request: C::Request) -> C::Answer {
        let mut answer = self.served.borrow().requests().put(request).unwrap();
        self.put(Input::WakeSignal);
        answer.take().unwrap().unwrap()
    }

    /// Advances the time, and wakes the scheduler when it has asked for it.
    pub fn pass(&mut self, time: Duration) {
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
        // The master sends heartbeats.
        self.send(of(event::Type::Heartbeat));
    }

    /// Offers all resources that are free and neither offered nor filtered.
    pub fn offer(&mut self) {
        if self.suppressed {
            return;
        }
        let agents: Vec<usize> = (0..self.agents.len()).collect();
        self.offer_of(&agents);
    }

    /// Offers the resources of some agents, even if offers are suppressed.
    pub fn offer_of(&mut self, agents: &[usize]) {
        let mut offers = Vec::new();
        for &number in agents {
            let free = self.free(number);
            let agent = &mut self.agents[number];
            let is_refused = agent.is_lost || self.now < agent.refused;
            if is_refused || agent.offered.is_some() || free.0.iter().all(|amount| *amount <= 0) {
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
            let address = Address { ip: Some(format!("10.0.0.{number}")), port: 5051, ..Default::default() };
            offers.push(Offer {
                id: OfferId { value: id.into() },
                agent_id: agent_id(number),
                hostname: format!("host{number}"),
                url: Some(Url { address, scheme: "http".into(), ..Default::default() }),
                resources: to_v1(&parse_text(&text(&free), &Role::star()).unwrap()),
                attributes: agent.attributes.iter().map(attribute).collect(),
                ..Default::default()
            });
        }
        if !offers.is_empty() {
            self.send(scheduler::Event { offers: Some(event::Offers { offers }), ..of(event::Type::Offers) });
        }
    }

    fn free(&self, agent: usize) -> Need {
        let agent = &self.agents[agent];
        needs(&to_v1(&parse_text(&agent.total, &Role::star()).unwrap())).minus(&agent.used)
    }

    /// Rescinds an agent's offer.
    pub fn rescind(&mut self, agent: usize) {
        let Some(id) = self.agents[agent].offered.take() else { return };
        let rescind = event::Rescind { offer_id: OfferId { value: id.into() } };
        self.send(scheduler::Event { rescind: Some(rescind), ..of(event::Type::Rescind) });
    }

    /// Sends a status update of a task with this state; `change` completes the status.
    pub fn update(&mut self, id: &str, state: TaskState, change: impl FnOnce(&mut TaskStatus)) {
        self.uuids += 1;
        let mut status = self.status(id, state);
        status.uuid = Some(self.uuids.to_be_bytes().to_vec());
        change(&mut status);
        if let Some(task) = self.tasks.get_mut(id) {
            task.state = state;
        }
        if sdk::is_terminal(state) {
            self.ended.push((id.to_owned(), state));
            if let Some(task) = self.tasks.remove(id) {
                let agent = &mut self.agents[task.agent];
                agent.used = agent.used.minus(&task.need);
                // There are more resources than the filter covers.
                agent.refused = Time::EPOCH;
            }
        }
        self.send(scheduler::Event { update: Some(event::Update { status }), ..of(event::Type::Update) });
    }

    fn status(&self, id: &str, state: TaskState) -> TaskStatus {
        let agent = self.tasks.get(id).map(|task| agent_id(task.agent));
        TaskStatus { task_id: TaskId { value: id.into() }, state: state as i32, agent_id: agent, ..Default::default() }
    }

    /// Returns the ids of all tasks on an agent.
    pub fn of_agent(&self, agent: usize) -> Vec<String> {
        self.tasks.iter().filter(|(_, task)| task.agent == agent).map(|(id, _)| id.clone()).collect()
    }

    /// Removes an agent with its tasks.
    pub fn lose(&mut self, agent: usize) {
        self.agents[agent].is_lost = true;
        self.agents[agent].offered = None;
        for id in self.of_agent(agent) {
            self.update(&id, TaskState::TaskLost, |status| status.message = Some("agent lost".to_owned()));
        }
        let failure = event::Failure { agent_id: Some(agent_id(agent)), ..Default::default() };
        self.send(scheduler::Event { failure: Some(Box::new(failure)), ..of(event::Type::Failure) });
    }

    fn send(&mut self, event: scheduler::Event) {
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
                Output::Answer(answer) => answer.deliver(),
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
                self.killed.insert(id.clone());
                self.kills += 1;
                assert!(self.kills < 10_000, "{id} is killed again and again");
                // A task that the master does not know is reconciled instead.
                if self.tasks.get(&id).is_none_or(|t| t.state == TaskState::TaskUnreachable) {
                    self.reconcile(&id);
                } else if self.kills_at_once {
                    self.update(&id, TaskState::TaskKilled, |_| ());
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

    /// Answers a reconciliation with the task's state; the answer needs no acknowledgement.
    fn reconcile(&mut self, id: &str) {
        let state = match self.tasks.get(id) {
            Some(task) if self.forgotten.contains(&task.agent) => TaskState::TaskUnknown,
            Some(task) => task.state,
            None => TaskState::TaskGone,
        };
        let update = Some(event::Update { status: self.status(id, state) });
        self.send(scheduler::Event { update, ..of(event::Type::Update) });
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
            // An offer that was rescinded meanwhile has no resources.
            let Some(number) = self.take_back(&id.value, refuse) else { return };
            room = room.plus(&self.free(number));
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
            assert!(!self.launched.contains(&id), "{id} was launched twice");
            self.launched.push(id.clone());
            assert_eq!(info.agent_id, agent_id(agent));
            self.tasks.insert(id, Task { agent, need, info: info.clone(), state: TaskState::TaskStaging });
        }
    }
}

fn session<C: RequestHandler>(
    served: RequestServer<C>,
    now: Time,
) -> (Session<Shared<C>>, Rc<RefCell<RequestServer<C>>>) {
    let served = Rc::new(RefCell::new(served));
    (Session::new(Shared(served.clone()), Settings::new(Default::default()), now), served)
}

fn of(kind: event::Type) -> scheduler::Event {
    scheduler::Event { r#type: Some(kind as i32), ..Default::default() }
}

fn agent_id(number: usize) -> AgentId {
    AgentId { value: format!("S{number}").into() }
}

fn needs(resources: &[sdk::v1::Resource]) -> Need {
    let all = from_v1(resources).unwrap();
    let [cpus, mem, disk, gpus] = [all.cpus(), all.mem(), all.disk(), all.gpus()].map(|amount| amount.thousandths());
    Need([cpus, mem, disk, gpus, i64::try_from(all.ports().count()).unwrap() * 1_000])
}

/// Returns amounts as a resource text; ports start at 1000.
fn text(free: &Need) -> String {
    let mut text: Vec<String> =
        (0..4).filter(|&k| free.0[k] > 0).map(|k| format!("{}:{}", NAMES[k], free.amount(k))).collect();
    if free.ports() > 0 {
        text.push(format!("ports:[1000-{}]", 999 + free.ports()));
    }
    text.join(";")
}
