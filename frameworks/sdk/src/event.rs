//! Events of a scheduler.
//!
//! The wire's `Event` is one message with a type and many optional parts; here each kind has exactly its own.

use std::collections::BTreeMap;

use crate::v1::scheduler::{self, event::Type};
use crate::v1::{
    AgentId, ExecutorId, FrameworkId, InverseOffer, MasterInfo, Offer, OfferId, OperationStatus, TaskStatus,
};

/// An event of the session. Heartbeats are not among them: the session handles them itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// What the scheduler [saved](crate::Calls::save) before it was restarted; the ledger knows its tasks again. Comes
    /// once, before everything else, and only where there is a store; it is empty at the first start.
    Restored(BTreeMap<String, Vec<u8>>),
    /// The master took the framework in. From here on offers come.
    Subscribed {
        /// The framework's id: what to keep if the framework is to be known again after a restart.
        framework_id: FrameworkId,
        /// The master that leads.
        master: Option<MasterInfo>,
        /// Whether this session was subscribed before. Earlier offers are void, tasks keep running.
        again: bool,
    },
    /// The connection is lost; the session subscribes again. All offers are void.
    Disconnected {
        /// Why, in words.
        why: String,
    },
    /// Resources to use or to give back; each until it is used, declined or rescinded.
    Offers(Vec<Offer>),
    /// Requests of the operator to vacate resources for maintenance.
    InverseOffers(Vec<InverseOffer>),
    /// An offer is void.
    Rescinded(OfferId),
    /// An inverse offer is void.
    InverseRescinded(OfferId),
    /// A task has a new state. The ledger has it already.
    Update(TaskStatus),
    /// An offer operation with an id has a new state.
    OperationUpdate(OperationStatus),
    /// An executor sends bytes.
    Message {
        /// Where the executor runs.
        agent_id: AgentId,
        /// Which executor.
        executor_id: ExecutorId,
        /// Its content.
        data: Vec<u8>,
    },
    /// An agent is lost. Updates for its tasks arrive without a request.
    AgentLost(AgentId),
    /// A custom executor ended.
    ExecutorExited {
        /// Where it ran.
        agent_id: AgentId,
        /// Which executor.
        executor_id: ExecutorId,
        /// Its raw status from wait(2); -1 if unknown.
        status: i32,
    },
    /// A call was not taken: by the master, or by this library because it would break the ledger.
    Refused {
        /// The call, without the framework's id.
        call: Box<scheduler::Call>,
        /// Why, in words.
        why: String,
    },
    /// The master refuses the framework for good; the session ends after this event.
    Error {
        /// The master's words.
        message: String,
    },
    /// The time given to [`Calls::wake_at`](crate::Calls::wake_at) has come, or another thread has woken the scheduler.
    Wake,
}

impl Event {
    /// Converts an event of the wire; `None` for heartbeats, for unknown kinds, and for events without their own part.
    /// `again` is true if the session was subscribed before.
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

/// A failure with an executor is the executor's, one without is the agent's.
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
