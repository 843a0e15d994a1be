//! A scheduler over HTTP: it does what steps say, and by itself subscribes again, acknowledges and keeps its books.

use std::collections::BTreeMap;

use master::{Input, RequestId, StreamId};
use protos::mesos::scheduler::{Call, Event as Said, call, event};
use protos::mesos::{self as pb, TaskState, framework_info::capability};

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
        let mut call = Call { r#type: Some(call::Type::Subscribe as i32), ..Call::default() };
        call.framework_id.clone_from(&scheduler.id);
        call.subscribe = Some(Box::new(call::Subscribe { framework_info, ..call::Subscribe::default() }));
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

    /// Another instance of a scheduler, with the books of the first, takes over while the first is still connected.
    pub fn fail_over(&mut self, who: usize) {
        let scheduler = &mut self.schedulers[who];
        if !scheduler.subscribed || scheduler.cut {
            return;
        }
        (scheduler.connection, scheduler.subscribed) = (None, false);
        scheduler.offers.clear();
        self.subscribe(who);
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
}
