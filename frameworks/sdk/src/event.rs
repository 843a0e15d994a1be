//! Events of a scheduler.
//!
//! The `Event` of the v1 API is one message with a type and many optional parts; here each kind of event has its own
//! fields.

use std::collections::BTreeMap;

use crate::v1::scheduler::{self, event::Type};
use crate::v1::{
    AgentId, ExecutorId, FrameworkId, InverseOffer, MasterInfo, Offer, OfferId, OperationStatus, TaskStatus,
};

/// An event of a scheduler's session. Heartbeats are not among them: the session handles them itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// State that the scheduler [saved](crate::Calls::save) before it was restarted; the ledger contains its tasks
    /// again. It is the first event if there is a store, and occurs once. It is empty at the first start.
    Restored(BTreeMap<String, Vec<u8>>),
    /// The master accepted the subscription. Offers follow.
    Subscribed {
        /// Id of the framework, with which the framework can subscribe again after a restart.
        framework_id: FrameworkId,
        /// The leading master.
        master: Option<MasterInfo>,
        /// Whether this session was subscribed before. If so, earlier offers are void, and tasks keep running.
        again: bool,
    },
    /// The connection is lost; the session subscribes again. All offers are void.
    Disconnected {
        /// Reason, for people.
        why: String,
    },
    /// Offered resources. An offer is valid until it is accepted, declined or rescinded.
    Offers(Vec<Offer>),
    /// Requests of the operator to vacate resources for maintenance.
    InverseOffers(Vec<InverseOffer>),
    /// An offer was rescinded.
    Rescinded(OfferId),
    /// An inverse offer was rescinded.
    InverseRescinded(OfferId),
    /// A task has a new state. The ledger contains it already.
    Update(TaskStatus),
    /// An offer operation with an id has a new state.
    OperationUpdate(OperationStatus),
    /// An executor sent a message to the scheduler.
    Message {
        /// Id of the executor's agent.
        agent_id: AgentId,
        /// Id of the executor.
        executor_id: ExecutorId,
        /// Content of the message.
        data: Vec<u8>,
    },
    /// An agent is lost. Updates for its tasks follow without a request.
    AgentLost(AgentId),
    /// A custom executor ended.
    ExecutorExited {
        /// Id of the executor's agent.
        agent_id: AgentId,
        /// Id of the executor.
        executor_id: ExecutorId,
        /// Raw exit status of the executor from wait(2); -1 if unknown.
        status: i32,
    },
    /// A call was refused: by the master, or by this library because it would launch a task twice.
    Refused {
        /// The refused call, without the framework's id.
        call: Box<scheduler::Call>,
        /// Reason, for people.
        why: String,
    },
    /// The master refuses the framework for good; the session ends after this event.
    Error {
        /// Message of the master.
        message: String,
    },
    /// The time given to [`Calls::wake_at`](crate::Calls::wake_at) has come, or another thread has woken the scheduler.
    Wake,
}

impl Event {
    /// Converts an event of the v1 API. Returns `None` for heartbeats, for unknown kinds, and for events without their
    /// own part. `again` is true if the session was subscribed before.
    pub fn from_wire(event: scheduler::Event, again: bool) -> Option<Event> {
        Some(match event.r#type() {
            Type::Subscribed => {
                let part = event.subscribed?;
                Event::Subscribed { framework_id: part.framework_id, master: part.master_info, again }
            }
            Type::Offers => Event::Offers(event.offers?.offers),
            Type::InverseOffers => Event::InverseOffers(event.inverse_offers?.inverse_offers),
            Type::Rescind => Event::Rescinded(event.rescind?.offer_id),
            Type::RescindInverseOffer => Event::InverseRescinded(event.rescind_inverse_offer?.inverse_offer_id),
            Type::Update => Event::Update(event.update?.status),
            Type::UpdateOperationStatus => Event::OperationUpdate(event.update_operation_status?.status),
            Type::Message => {
                let part = event.message?;
                Event::Message { agent_id: part.agent_id, executor_id: part.executor_id, data: part.data }
            }
            Type::Failure => failure(*event.failure?)?,
            Type::Error => Event::Error { message: event.error?.message },
            Type::Heartbeat | Type::Unknown => return None,
        })
    }
}

/// Converts a FAILURE event: one with an executor is the executor's exit, one without is the loss of the agent.
fn failure(part: scheduler::event::Failure) -> Option<Event> {
    let agent_id = part.agent_id?;
    Some(match part.executor_id {
        Some(executor_id) => Event::ExecutorExited { agent_id, executor_id, status: part.status.unwrap_or(-1) },
        None => Event::AgentLost(agent_id),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_without_its_part_is_none() {
        for kind in
            [Type::Subscribed, Type::Offers, Type::Rescind, Type::Update, Type::Message, Type::Failure, Type::Error]
        {
            let event = scheduler::Event { r#type: Some(kind as i32), ..Default::default() };
            assert_eq!(Event::from_wire(event, false), None, "{kind:?}");
        }
    }

    #[test]
    fn failures() {
        let agent_id = AgentId { value: "S0".into() };
        let mut part = scheduler::event::Failure { agent_id: Some(agent_id.clone()), ..Default::default() };
        assert_eq!(failure(part.clone()), Some(Event::AgentLost(agent_id.clone())));
        let executor_id = ExecutorId { value: "e".into() };
        part.executor_id = Some(executor_id.clone());
        assert_eq!(failure(part), Some(Event::ExecutorExited { agent_id, executor_id, status: -1 }));
    }
}
