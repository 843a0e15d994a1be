//! A scheduler over HTTP: it does what steps say, and by itself subscribes again, acknowledges and keeps its books.

use std::collections::BTreeMap;

use master::{Input, RequestId, StreamId};
use protos::mesos::scheduler::{Call, Event as Said, call, event};
use protos::mesos::{self as pb, TaskState, framework_info::capability, offer::Operation, offer::operation};
use resources::{Format, Role, parse_text};

use crate::network::Channel;
use crate::steps::Kind;
use crate::world::{Event, ToScheduler, World};

/// What a scheduler knows of a task.
#[derive(Clone, Debug)]
pub struct TaskView {
    pub agent: pb::SlaveId,
    /// The last state that it was told.
    pub state: Option<TaskState>,
}

impl TaskView {
    /// Whether the task will do no more, as far as its scheduler knows.
    pub fn has_ended(&self) -> bool {
        use TaskState as S;
        let ends = [
            S::TaskFinished,
            S::TaskFailed,
            S::TaskKilled,
            S::TaskError,
            S::TaskLost,
            S::TaskDropped,
            S::TaskGone,
            S::TaskGoneByOperator,
            S::TaskUnknown,
        ];
        self.state.is_some_and(|state| ends.contains(&state))
    }
}

/// A scheduler and its books.
pub struct Scheduler {
    pub kind: Kind,
    pub id: Option<pb::FrameworkId>,
    pub connection: Option<u64>,
    /// Whether the connection is broken and the scheduler has not noticed.
    cut: bool,
    pub subscribed: bool,
    pub offers: BTreeMap<String, pb::Offer>,
    pub tasks: BTreeMap<String, TaskView>,
    /// Updates that it has not acknowledged.
    pub owed: Vec<call::Acknowledge>,
    /// Whether it has left for good.
    pub gone: bool,
    name: String,
}

impl Scheduler {
    /// A scheduler that has never subscribed.
    pub fn new(index: usize, kind: &Kind) -> Scheduler {
        Scheduler {
            kind: kind.clone(),
            id: None,
            connection: None,
            cut: false,
            subscribed: false,
            offers: BTreeMap::new(),
            tasks: BTreeMap::new(),
            owed: Vec::new(),
            gone: false,
            name: format!("f{index}"),
        }
    }

    fn info(&self) -> pb::FrameworkInfo {
        let mut kinds = vec![capability::Type::MultiRole, capability::Type::ReservationRefinement];
        if self.kind.aware {
            kinds.push(capability::Type::PartitionAware);
        }
        let capability = |kind: capability::Type| pb::framework_info::Capability { r#type: Some(kind as i32) };
        pb::FrameworkInfo {
            user: "nobody".to_owned(),
            name: self.name.clone(),
            id: self.id.clone(),
            failover_timeout: Some(7.0 * 86400.0),
            checkpoint: Some(self.kind.checkpoint),
            roles: vec![self.kind.role.to_owned()],
            capabilities: kinds.into_iter().map(capability).collect(),
            ..pb::FrameworkInfo::default()
        }
    }
}

fn call_of(kind: call::Type) -> Call {
    Call { r#type: Some(kind as i32), ..Call::default() }
}

impl World {
    /// A scheduler without a connection subscribes.
    pub fn subscribe(&mut self, who: usize) {
        let scheduler = &self.schedulers[who];
        if scheduler.gone || scheduler.connection.is_some() {
            return;
        }
        if self.master.core.is_none() {
            let delay = 500 + self.rng.below(2000);
            return self.after(delay, Event::Subscribe(who));
        }
        let (connection, request) = (self.id(), self.id());
        let scheduler = &mut self.schedulers[who];
        (scheduler.connection, scheduler.cut) = (Some(connection), false);
        let framework_info = scheduler.info();
        let mut call = call_of(call::Type::Subscribe);
        call.framework_id.clone_from(&scheduler.id);
        call.subscribe = Some(call::Subscribe { framework_info, ..call::Subscribe::default() });
        self.note(|| format!("scheduler {who} subscribes as {connection}"));
        self.master.streams.insert(connection, who);
        let input = Input::Subscribe {
            request: RequestId(request),
            stream: StreamId(connection),
            stream_text: World::stream_text(connection),
            call: Box::new(call),
            principal: None,
        };
        self.post(Channel::Calls(who), Event::Master { life: self.master.life, input });
    }

    /// A scheduler's connections break; both sides notice later.
    pub fn cut_scheduler(&mut self, who: usize) {
        let scheduler = &mut self.schedulers[who];
        let Some(connection) = scheduler.connection.filter(|_| !scheduler.cut) else { return };
        scheduler.cut = true;
        self.net.break_channel(Channel::Calls(who));
        self.net.break_channel(Channel::Events(who));
        let delay = self.rng.below(3000);
        let input = Input::StreamClosed { stream: StreamId(connection) };
        self.after(delay, Event::Master { life: self.master.life, input });
        let delay = self.rng.below(2000);
        self.after(delay, Event::Scheduler { who, connection, what: ToScheduler::Closed });
    }

    /// A call of a subscribed scheduler; without a connection it is not made. Whether it went out.
    pub fn call(&mut self, who: usize, mut call: Call) -> bool {
        let scheduler = &self.schedulers[who];
        let Some(connection) = scheduler.connection.filter(|_| scheduler.subscribed) else { return false };
        call.framework_id.clone_from(&scheduler.id);
        if scheduler.cut {
            return true;
        }
        if let Err(why) = master::validate_call(&call) {
            self.fail(format!("scheduler {who} makes a bad call: {why}"));
            return false;
        }
        let request = self.id();
        self.master.requests.insert(request, (who, connection));
        let stream_id = Some(World::stream_text(connection).to_string());
        let input =
            Input::SchedulerCall { request: RequestId(request), stream_id, call: Box::new(call), principal: None };
        self.post(Channel::Calls(who), Event::Master { life: self.master.life, input });
        true
    }

    /// Something has come to a scheduler.
    pub fn scheduler_input(&mut self, who: usize, connection: u64, what: ToScheduler) {
        let scheduler = &mut self.schedulers[who];
        if scheduler.connection != Some(connection) {
            return;
        }
        match what {
            ToScheduler::Closed => {
                (scheduler.connection, scheduler.subscribed) = (None, false);
                scheduler.offers.clear();
                let delay = 50 + self.rng.below(3000);
                self.after(delay, Event::Subscribe(who));
            }
            _ if scheduler.cut => {}
            ToScheduler::Answer(200 | 202) => {}
            ToScheduler::Answer(400 | 403) => self.cut_scheduler(who),
            ToScheduler::Answer(status) => self.fail(format!("scheduler {who} is answered {status}")),
            ToScheduler::Event(event) => self.scheduler_event(who, &event),
        }
    }

    fn scheduler_event(&mut self, who: usize, said: &Said) {
        match said.r#type() {
            event::Type::Subscribed => {
                let id = said.subscribed.as_ref().map(|subscribed| subscribed.framework_id.clone());
                let scheduler = &mut self.schedulers[who];
                if scheduler.id.is_some() && scheduler.id != id {
                    return self.fail(format!("scheduler {who} is given another id"));
                }
                (scheduler.id, scheduler.subscribed) = (id, true);
                self.note(|| format!("scheduler {who} is subscribed"));
            }
            event::Type::Offers => {
                for offer in said.offers.iter().flat_map(|offers| &offers.offers) {
                    self.offer_came(who, offer);
                    self.schedulers[who].offers.insert(offer.id.value.clone(), offer.clone());
                    if self.calm {
                        self.decline(who, usize::MAX, 7200.0);
                    }
                }
            }
            event::Type::Rescind => {
                let id = said.rescind.as_ref().map(|rescind| rescind.offer_id.value.clone()).unwrap_or_default();
                self.schedulers[who].offers.remove(&id);
            }
            event::Type::Update => {
                if let Some(update) = &said.update {
                    self.status(who, &update.status);
                }
            }
            event::Type::Error => self.fail(format!("scheduler {who} is told {:?}", said.error)),
            _ => {}
        }
    }

    fn status(&mut self, who: usize, status: &pb::TaskStatus) {
        let (task, state) = (status.task_id.value.clone(), status.state());
        let uuid = status.uuid.clone().filter(|uuid| !uuid.is_empty());
        let number = uuid.as_deref().map(|uuid| u32::from_be_bytes([uuid[12], uuid[13], uuid[14], uuid[15]]));
        let (name, reason) = (state.as_str_name(), status.reason.map(|_| status.reason().as_str_name()));
        self.note(|| format!("scheduler {who} is told {task} {name} {reason:?} {number:x?}"));
        if let Some(uuid) = &uuid {
            self.update_came(who, &task, uuid);
        }
        let Some(view) = self.schedulers[who].tasks.get_mut(&task) else {
            return self.fail(format!("scheduler {who} is told of {task}, which it never launched"));
        };
        let before = view.clone();
        view.state = Some(state);
        self.state_changed(who, &task, &before, status);
        if let (Some(uuid), Some(slave_id)) = (uuid, status.slave_id.clone()) {
            self.schedulers[who].owed.push(call::Acknowledge { slave_id, task_id: status.task_id.clone(), uuid });
            if self.calm || !self.rng.one_in(4) {
                self.acknowledge(who);
            }
        }
    }

    /// Acknowledges all that is owed.
    pub fn acknowledge(&mut self, who: usize) {
        for acknowledge in std::mem::take(&mut self.schedulers[who].owed) {
            let mut call = call_of(call::Type::Acknowledge);
            call.acknowledge = Some(acknowledge);
            self.call(who, call);
        }
    }

    fn take_offer(&mut self, who: usize, pick: usize) -> Option<pb::Offer> {
        let offers = &mut self.schedulers[who].offers;
        let id = offers.keys().nth(pick % offers.len().max(1))?.clone();
        offers.remove(&id)
    }

    /// Launches tasks on one of the offers. Every sixteenth task asks for more than any agent has.
    pub fn accept(&mut self, who: usize, pick: usize, tasks: usize, refuse: f64) {
        let Some(offer) = self.take_offer(who, pick) else { return };
        let role = Role::parse(self.schedulers[who].kind.role).unwrap();
        let mut infos = Vec::new();
        for _ in 0..tasks {
            let id = format!("t{}", self.id());
            let wanted = if self.rng.one_in(16) { "cpus:64;mem:64" } else { "cpus:0.5;mem:64" };
            let mut resources = parse_text(wanted, &Role::star()).unwrap().to_proto(Format::PostRefinement);
            for resource in &mut resources {
                let role = Some(role.as_str().to_owned());
                resource.allocation_info = Some(pb::resource::AllocationInfo { role });
            }
            let view = TaskView { agent: offer.slave_id.clone(), state: None };
            self.schedulers[who].tasks.insert(id.clone(), view);
            infos.push(pb::TaskInfo {
                name: id.clone(),
                task_id: pb::TaskId { value: id },
                slave_id: offer.slave_id.clone(),
                resources,
                command: Some(pb::CommandInfo { value: Some("true".to_owned()), ..pb::CommandInfo::default() }),
                ..pb::TaskInfo::default()
            });
        }
        self.note(|| format!("scheduler {who} accepts {} with {tasks} tasks", offer.id.value));
        let launch = Operation {
            r#type: Some(operation::Type::Launch as i32),
            launch: Some(operation::Launch { task_infos: infos }),
            ..Operation::default()
        };
        let mut call = call_of(call::Type::Accept);
        let filters = Some(pb::Filters { refuse_seconds: Some(refuse) });
        let operations = if tasks == 0 { Vec::new() } else { vec![launch] };
        call.accept = Some(call::Accept { offer_ids: vec![offer.id], operations, filters });
        self.call(who, call);
    }

    /// Declines one of the offers.
    pub fn decline(&mut self, who: usize, pick: usize, refuse: f64) {
        let Some(offer) = self.take_offer(who, pick) else { return };
        let mut call = call_of(call::Type::Decline);
        let filters = Some(pb::Filters { refuse_seconds: Some(refuse) });
        call.decline = Some(call::Decline { offer_ids: vec![offer.id], filters });
        self.call(who, call);
    }

    /// Kills one of the tasks that have not ended.
    pub fn kill(&mut self, who: usize, pick: usize) {
        let living: Vec<_> = self.schedulers[who].tasks.iter().filter(|(_, view)| !view.has_ended()).collect();
        let Some((id, view)) = living.get(pick % living.len().max(1)) else { return };
        let mut call = call_of(call::Type::Kill);
        let slave_id = Some(view.agent.clone());
        call.kill = Some(call::Kill { task_id: pb::TaskId { value: (*id).clone() }, slave_id, kill_policy: None });
        self.call(who, call);
    }

    /// Asks about all tasks: those that the master knows, or each that has not ended.
    pub fn reconcile(&mut self, who: usize, explicit: bool) {
        let living = self.schedulers[who].tasks.iter().filter(|(_, view)| explicit && !view.has_ended());
        let tasks: Vec<_> = living
            .map(|(id, view)| call::reconcile::Task {
                task_id: pb::TaskId { value: id.clone() },
                slave_id: Some(view.agent.clone()),
            })
            .collect();
        if explicit && tasks.is_empty() {
            return;
        }
        let mut call = call_of(call::Type::Reconcile);
        call.reconcile = Some(call::Reconcile { tasks });
        self.call(who, call);
    }

    /// Wants no offers, or wants them again.
    pub fn want_offers(&mut self, who: usize, wanted: bool) {
        self.call(who, call_of(if wanted { call::Type::Revive } else { call::Type::Suppress }));
    }

    /// Ends the framework, if the call can be made.
    pub fn tear_down(&mut self, who: usize) {
        if self.call(who, call_of(call::Type::Teardown)) {
            self.note(|| format!("scheduler {who} tears down"));
            self.schedulers[who].gone = true;
        }
    }
}
