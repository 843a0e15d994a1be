//! Events for frameworks, each in the form of the framework's connection (docs/mesos/scheduler-api.md).
//!
//! It makes no decisions. An event for a framework without a connection is dropped here.

use std::cell::Cell;
use std::sync::Arc;

use base::Pid;
use protos::mesos::scheduler::{self, Event, event};
use protos::mesos::{self, internal};

use crate::frameworks::Frameworks;
use crate::io::{Outbox, Output};
use crate::message::Outgoing;
use crate::state::{Connection, FrameworkKey};

/// Returns an empty event of a type.
pub(crate) fn blank(kind: event::Type) -> Event {
    Event { r#type: Some(kind as i32), ..Event::default() }
}

/// Returns the event that makes a scheduler abort.
pub(crate) fn error(message: String) -> Event {
    Event { error: Some(event::Error { message }), ..blank(event::Type::Error) }
}

impl Frameworks {
    /// Sends a framework an event: `http` by stream, `driver` by message.
    fn send(
        &mut self,
        key: FrameworkKey,
        kind: event::Type,
        out: &mut Outbox,
        http: impl FnOnce(&mut Event),
        driver: impl FnOnce() -> Option<Outgoing>,
    ) {
        let Some(framework) = self.get(key) else { return };
        match &framework.connection {
            Connection::Http { stream, .. } => {
                let mut event = blank(kind);
                http(&mut event);
                out.push(Output::SchedulerEvent { stream: *stream, event: Arc::new(event) });
            }
            Connection::Driver(pid) => match driver() {
                Some(message) => out.push(Output::send(pid, message)),
                None => return,
            },
            Connection::Recovered | Connection::Disconnected => return,
        }
        if let Some(counts) = self.counts(key) {
            *counts.events.entry(kind as i32).or_default() += 1;
        }
    }

    /// Sends SUBSCRIBED; `again` selects one of the two messages for drivers.
    pub(crate) fn send_subscribed(
        &mut self,
        key: FrameworkKey,
        again: bool,
        info: &mesos::MasterInfo,
        out: &mut Outbox,
    ) {
        self.count_call(key, scheduler::call::Type::Subscribe);
        let Some(framework_id) = self.get(key).map(|framework| framework.proto_id()) else { return };
        let master_info = info.clone();
        let (id, info) = (framework_id.clone(), master_info.clone());
        self.send(
            key,
            event::Type::Subscribed,
            out,
            |event| {
                event.subscribed = Some(Box::new(event::Subscribed {
                    framework_id,
                    heartbeat_interval_seconds: Some(crate::HEARTBEAT_INTERVAL.as_secs_f64()),
                    master_info: Some(master_info),
                }));
            },
            || {
                Some(match again {
                    true => internal::FrameworkReregisteredMessage { framework_id: id, master_info: info }.into(),
                    false => internal::FrameworkRegisteredMessage { framework_id: id, master_info: info }.into(),
                })
            },
        );
    }

    /// Sends HEARTBEAT to a framework with a stream.
    pub(crate) fn send_heartbeat(&mut self, key: FrameworkKey, out: &mut Outbox) {
        self.send(key, event::Type::Heartbeat, out, |_| {}, || None);
    }

    /// Sends OFFERS, with the pid of each offer's agent.
    pub(crate) fn send_offers(
        &mut self,
        key: FrameworkKey,
        offers: Vec<mesos::Offer>,
        pids: Vec<String>,
        out: &mut Outbox,
    ) {
        let mut offers = Some(offers);
        let for_driver = match self.get(key).is_some_and(|f| f.pid().is_some()) {
            true => offers.take(),
            false => None,
        };
        self.send(
            key,
            event::Type::Offers,
            out,
            |event| event.offers = Some(event::Offers { offers: offers.unwrap_or_default() }),
            || Some(internal::ResourceOffersMessage { offers: for_driver.unwrap_or_default(), pids }.into()),
        );
    }

    /// Sends RESCIND.
    pub(crate) fn send_rescind(&mut self, key: FrameworkKey, offer_id: mesos::OfferId, out: &mut Outbox) {
        let id = offer_id.clone();
        self.send(
            key,
            event::Type::Rescind,
            out,
            |event| event.rescind = Some(event::Rescind { offer_id }),
            || Some(internal::RescindResourceOfferMessage { offer_id: id }.into()),
        );
    }

    /// Sends INVERSE_OFFERS, with the pid of each one's agent. Drivers ignore them.
    pub(crate) fn send_inverse_offers(
        &mut self,
        key: FrameworkKey,
        inverse_offers: Vec<mesos::InverseOffer>,
        pids: Vec<String>,
        out: &mut Outbox,
    ) {
        let list = Cell::new(inverse_offers);
        self.send(
            key,
            event::Type::InverseOffers,
            out,
            |event| event.inverse_offers = Some(event::InverseOffers { inverse_offers: list.take() }),
            || Some(internal::InverseOffersMessage { inverse_offers: list.take(), pids }.into()),
        );
    }

    /// Sends RESCIND_INVERSE_OFFER.
    pub(crate) fn send_rescind_inverse(
        &mut self,
        key: FrameworkKey,
        inverse_offer_id: mesos::OfferId,
        out: &mut Outbox,
    ) {
        let id = inverse_offer_id.clone();
        self.send(
            key,
            event::Type::RescindInverseOffer,
            out,
            |event| event.rescind_inverse_offer = Some(event::RescindInverseOffer { inverse_offer_id }),
            || Some(internal::RescindInverseOfferMessage { inverse_offer_id: id }.into()),
        );
    }

    /// Sends UPDATE. `pid` is the agent's for updates that need an acknowledgement, else `None`.
    pub(crate) fn send_update(
        &mut self,
        key: FrameworkKey,
        update: internal::StatusUpdate,
        pid: Option<&str>,
        out: &mut Outbox,
    ) {
        // Only one of the two closures runs; the update is moved into it.
        let update = Cell::new(Some(update));
        self.send(
            key,
            event::Type::Update,
            out,
            |event| event.update = update.take().map(|update| event::Update { status: update.status }),
            || {
                let pid = Pid::parse_lenient(pid.unwrap_or_default()).to_string();
                Some(internal::StatusUpdateMessage { update: update.take()?, pid: Some(pid) }.into())
            },
        );
    }

    /// Sends UPDATE_OPERATION_STATUS; drivers have no such message.
    pub(crate) fn send_operation_status(
        &mut self,
        key: FrameworkKey,
        status: mesos::OperationStatus,
        out: &mut Outbox,
    ) {
        self.send(
            key,
            event::Type::UpdateOperationStatus,
            out,
            |event| event.update_operation_status = Some(Box::new(event::UpdateOperationStatus { status })),
            || None,
        );
    }

    /// Sends MESSAGE with the data of an executor.
    pub(crate) fn send_message(
        &mut self,
        key: FrameworkKey,
        message: internal::ExecutorToFrameworkMessage,
        out: &mut Outbox,
    ) {
        let copy = message.clone();
        self.send(
            key,
            event::Type::Message,
            out,
            |event| {
                event.message = Some(Box::new(event::Message {
                    slave_id: message.slave_id,
                    executor_id: message.executor_id,
                    data: message.data,
                }));
            },
            || Some(copy.into()),
        );
    }

    /// Sends FAILURE for a lost agent.
    pub(crate) fn send_lost_agent(&mut self, key: FrameworkKey, slave_id: mesos::SlaveId, out: &mut Outbox) {
        let id = slave_id.clone();
        self.send(
            key,
            event::Type::Failure,
            out,
            |event| event.failure = Some(Box::new(event::Failure { slave_id: Some(slave_id), ..Default::default() })),
            || Some(internal::LostSlaveMessage { slave_id: id }.into()),
        );
    }

    /// Sends FAILURE for an executor that has terminated.
    pub(crate) fn send_exited_executor(
        &mut self,
        key: FrameworkKey,
        message: internal::ExitedExecutorMessage,
        out: &mut Outbox,
    ) {
        let copy = message.clone();
        self.send(
            key,
            event::Type::Failure,
            out,
            |event| {
                event.failure = Some(Box::new(event::Failure {
                    slave_id: Some(message.slave_id),
                    executor_id: Some(message.executor_id),
                    status: Some(message.status),
                }));
            },
            || Some(copy.into()),
        );
    }

    /// Sends ERROR, which makes the scheduler abort.
    pub(crate) fn send_error(&mut self, key: FrameworkKey, message: &str, out: &mut Outbox) {
        self.send(
            key,
            event::Type::Error,
            out,
            |event| event.error = Some(event::Error { message: message.to_owned() }),
            || Some(internal::FrameworkErrorMessage { message: message.to_owned() }.into()),
        );
    }
}
