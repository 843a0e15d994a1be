//! A small cluster without I/O: agents, offers and tasks, as a scheduler sees them through a real session.
//!
//! It checks that no offer is overfilled, that no task id is launched twice, and that a stage's tasks are launched only
//! after all stages that it waits for. Tests decide when offers arrive and how tasks end.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use base::Time;
use jobs::Need;
use resources::{Role, parse_text};
use sdk::task::{from_v1, to_v1};
use sdk::v1::scheduler::{self, Call, call, event};
use sdk::v1::{Address, AgentId, Offer, OfferId, TaskId, TaskInfo, TaskState, TaskStatus, Url};
use sdk::{Calls, Ending, Event, Input, Output, Scheduler, Session};

use crate::core::{Answer, Core, Happening, JobView, Reply, Request, Settings, State, Wish};
use crate::job::{Job, Syntax, read};

type Served = jobs::served::Served<Core, Box<dyn FnMut(&mut Core)>>;

#[derive(Clone)]
struct Shared(Rc<RefCell<Served>>);

impl Scheduler for Shared {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        self.0.borrow_mut().on_event(event, now, calls);
    }
}

#[derive(Clone, Debug)]
pub(super) struct Agent {
    total: Need,
    used: Need,
    offered: Option<String>,
    refused: Time,
    is_lost: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) agent: usize,
    need: Need,
    pub(super) info: TaskInfo,
    pub(super) state: TaskState,
}

pub(super) struct World {
    session: Session<Shared>,
    served: Shared,
    happenings: Rc<RefCell<Vec<Happening>>>,
    wishes: Rc<RefCell<Vec<Wish>>>,
    settings: Settings,
    pub(super) now: Time,
    agents: Vec<Agent>,
    /// Tasks that have not ended.
    pub(super) tasks: BTreeMap<String, Task>,
    /// Every task id that was ever launched, in order.
    pub(super) launched: Vec<String>,
    pub(super) store: BTreeMap<String, Vec<u8>>,
    offers: u64,
    suppressed: bool,
    pub(super) ending: Option<Ending>,
    uuids: u64,
}

impl World {
    pub(super) fn new(settings: Settings, agents: usize, cpus: f64) -> World {
        let agent = Agent {
            total: Need::of(cpus, 4_096.0),
            used: Need::default(),
            offered: None,
            refused: Time::EPOCH,
            is_lost: false,
        };
        let now = Time::from_secs(1_000);
        let (happenings, wishes) = (Rc::default(), Rc::default());
        let (session, served) = session(&settings, now, &happenings, &wishes);
        let mut world = World {
            session,
            served,
            happenings,
            wishes,
            settings,
            now,
            agents: vec![agent; agents],
            tasks: BTreeMap::new(),
            launched: Vec::new(),
            store: BTreeMap::new(),
            offers: 0,
            suppressed: false,
            ending: None,
            uuids: 0,
        };
        world.begin();
        world
    }

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
        self.wishes.borrow_mut().clear();
        (self.session, self.served) = session(&self.settings, self.now, &self.happenings, &self.wishes);
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

    /// Submits the jobs of a file in TOML.
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

    pub(super) fn take_wishes(&mut self) -> Vec<Wish> {
        self.wishes.take()
    }

    pub(super) fn happenings(&mut self) -> Vec<Happening> {
        self.happenings.take()
    }

    /// Advances the time; the scheduler is woken when it asks for it.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        let mut wakes = 0;
        while let Some(at) = self.session.next_wake().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.put(Input::Wake);
            self.tell(of(event::Type::Heartbeat));
            wakes += 1;
            assert!(wakes < 100_000, "the scheduler wakes itself all the time");
        }
        self.now = end;
        self.tell(of(event::Type::Heartbeat));
    }

    /// Advances the time a little, and makes offers.
    pub(super) fn soon(&mut self) {
        self.pass(Duration::from_millis(1_100));
        self.offer();
    }

    /// Offers everything that is free, not on offer, and not refused.
    pub(super) fn offer(&mut self) {
        let mut offers = Vec::new();
        for number in 0..self.agents.len() {
            let free = self.free(number);
            let agent = &mut self.agents[number];
            if self.suppressed || agent.is_lost || agent.offered.is_some() || self.now < agent.refused || free.0[0] <= 0
            {
                continue;
            }
            self.offers += 1;
            let id = format!("O{}", self.offers);
            agent.offered = Some(id.clone());
            let text = format!("cpus:{};mem:{}", free.amount(0), free.amount(1));
            let address = Address { ip: Some(format!("10.0.0.{number}")), port: 5051, ..Default::default() };
            offers.push(Offer {
                id: OfferId { value: id.into() },
                agent_id: AgentId { value: format!("S{number}").into() },
                hostname: format!("host{number}"),
                url: Some(Url { address, scheme: "http".into(), ..Default::default() }),
                resources: to_v1(&parse_text(&text, &Role::star()).unwrap()),
                ..Default::default()
            });
        }
        if !offers.is_empty() {
            self.tell(scheduler::Event { offers: Some(event::Offers { offers }), ..of(event::Type::Offers) });
        }
    }

    fn free(&self, agent: usize) -> Need {
        self.agents[agent].total.minus(&self.agents[agent].used)
    }

    /// A task reaches a state.
    pub(super) fn update(&mut self, id: &str, state: TaskState, message: &str) {
        self.uuids += 1;
        let mut status = self.status(id, state);
        status.uuid = Some(self.uuids.to_be_bytes().to_vec());
        status.message = Some(message.to_owned());
        if let Some(task) = self.tasks.get_mut(id) {
            task.state = state;
        }
        if sdk::is_terminal(state)
            && let Some(task) = self.tasks.remove(id)
        {
            let agent = &mut self.agents[task.agent];
            agent.used = agent.used.minus(&task.need);
            agent.refused = Time::EPOCH;
        }
        self.tell(scheduler::Event { update: Some(event::Update { status }), ..of(event::Type::Update) });
    }

    pub(super) fn finish(&mut self, id: &str) {
        self.update(id, TaskState::TaskFinished, "");
    }

    fn status(&self, id: &str, state: TaskState) -> TaskStatus {
        let agent = self.tasks.get(id).map(|t| AgentId { value: format!("S{}", t.agent).into() });
        TaskStatus { task_id: TaskId { value: id.into() }, state: state as i32, agent_id: agent, ..Default::default() }
    }

    /// The ids of the tasks of a stage that have not ended, in order.
    pub(super) fn of_stage(&self, stage: &str) -> Vec<String> {
        let part = format!(".{stage}.");
        self.tasks.keys().filter(|id| id.contains(&part)).cloned().collect()
    }

    /// Finishes all that runs, and offers again, until nothing runs.
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

    /// An agent is lost with its tasks.
    pub(super) fn lose(&mut self, agent: usize) {
        let ids: Vec<String> = self.tasks.iter().filter(|(_, t)| t.agent == agent).map(|(id, _)| id.clone()).collect();
        self.agents[agent].is_lost = true;
        self.agents[agent].offered = None;
        for id in ids {
            self.update(&id, TaskState::TaskLost, "agent lost");
        }
        let failure =
            event::Failure { agent_id: Some(AgentId { value: format!("S{agent}").into() }), ..Default::default() };
        self.tell(scheduler::Event { failure: Some(Box::new(failure)), ..of(event::Type::Failure) });
    }

    /// Another agent takes its place.
    pub(super) fn find(&mut self, agent: usize) {
        self.agents[agent].is_lost = false;
    }

    pub(super) fn environment(&self, id: &str, name: &str) -> Option<String> {
        let variables = &self.tasks[id].info.command.as_ref()?.environment.as_ref()?.variables;
        variables.iter().find(|v| v.name == name)?.value.clone()
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
                if self.tasks.contains_key(&id) {
                    self.update(&id, TaskState::TaskKilled, "");
                }
            }
            call::Type::Reconcile => {
                for task in call.reconcile.unwrap().tasks {
                    let id = task.task_id.value.to_string();
                    let state = self.tasks.get(&id).map_or(TaskState::TaskGone, |task| task.state);
                    let update = Some(event::Update { status: self.status(&id, state) });
                    self.tell(scheduler::Event { update, ..of(event::Type::Update) });
                }
            }
            _ => {}
        }
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
            let Some(number) = self.take_back(&id.value, refuse) else { return };
            room = room.plus(&self.free(number));
            agents.insert(number);
        }
        assert_eq!(agents.len(), 1, "one call is for one agent");
        let agent = agents.pop_first().unwrap();
        for info in accept.operations.iter().flat_map(|o| &o.launch.as_ref().unwrap().task_infos) {
            let all = from_v1(&info.resources).unwrap();
            let need = Need([all.cpus().thousandths(), all.mem().thousandths(), 0, 0, 0]);
            assert!(need.fits(&room), "overfilled: {need} into {room}");
            room = room.minus(&need);
            self.agents[agent].used = self.agents[agent].used.plus(&need);
            let id = info.task_id.value.to_string();
            assert!(!self.launched.contains(&id), "{id} was launched twice");
            assert_eq!(info.agent_id.value, format!("S{agent}"));
            self.launched.push(id.clone());
            self.tasks.insert(id, Task { agent, need, info: info.clone(), state: TaskState::TaskStaging });
        }
    }
}

fn session(
    settings: &Settings,
    now: Time,
    happenings: &Rc<RefCell<Vec<Happening>>>,
    wishes: &Rc<RefCell<Vec<Wish>>>,
) -> (Session<Shared>, Shared) {
    let (happenings, wishes) = (happenings.clone(), wishes.clone());
    let after = Box::new(move |core: &mut Core| {
        happenings.borrow_mut().extend(core.take_happenings());
        wishes.borrow_mut().extend(core.take_wishes());
    });
    let (served, _) = Served::new(Core::new(settings.clone()), after);
    let served = Shared(Rc::new(RefCell::new(served)));
    (Session::new(served.clone(), sdk::Settings::new(Default::default()), now), served)
}

fn of(kind: event::Type) -> scheduler::Event {
    scheduler::Event { r#type: Some(kind as i32), ..Default::default() }
}
