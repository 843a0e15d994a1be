//! Libprocess messages that the master receives and sends, each a variant with its protobuf type.
//!
//! It does not act on them; `messages/` does.

use protos::mesos::internal as m;
use protos::mesos::scheduler;

/// Error of decoding a message's body.
#[derive(Debug, thiserror::Error)]
#[error("{name} could not be read")]
pub struct DecodeError {
    /// Full name of the message.
    name: String,
    /// Error of the protobuf decoder.
    #[source]
    source: protos::DecodeError,
}

macro_rules! incoming {
    ($($(#[$doc:meta])* $variant:ident($kind:ty) = $name:literal,)*) => {
        /// A message for the process `master` (docs/mesos/libprocess.md), or a pong for a `slave-observer(n)`.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Message {
            $($(#[$doc])* $variant(Box<$kind>),)*
            /// An agent answers a ping.
            PongSlave {
                /// The `n` of the `slave-observer(n)` that the pong is for.
                observer: u64,
            },
        }

        impl Message {
            /// Returns the message's name without its package.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Message::$variant(_) => $name,)*
                    Message::PongSlave { .. } => "PongSlaveMessage",
                }
            }

            /// Returns the message's name with its package.
            pub(crate) fn full_name(&self) -> String {
                match self {
                    Message::Call(_) => format!("mesos.scheduler.{}", self.name()),
                    _ => format!("mesos.internal.{}", self.name()),
                }
            }

            /// Returns the encoded body; that of a pong is empty.
            pub(crate) fn encode(&self) -> Vec<u8> {
                match self {
                    $(Message::$variant(message) => prost::Message::encode_to_vec(&**message),)*
                    Message::PongSlave { .. } => Vec::new(),
                }
            }

            /// Returns the length of the encoded body, in bytes.
            pub(crate) fn encoded_len(&self) -> usize {
                match self {
                    $(Message::$variant(message) => prost::Message::encoded_len(&**message),)*
                    Message::PongSlave { .. } => 0,
                }
            }

            /// Restores a message from [`Message::name`] and [`Message::encode`]. Returns `None` if they are invalid.
            pub(crate) fn read(name: &str, body: &[u8]) -> Option<Message> {
                Some(match name {
                    $($name => Message::$variant(Box::new(<$kind as prost::Message>::decode(body).ok()?)),)*
                    _ => return None,
                })
            }

            fn decode_for_master(name: &str, body: &[u8]) -> Result<Option<Message>, protos::DecodeError> {
                Ok(match name.strip_prefix("mesos.internal.").or(name.strip_prefix("mesos.scheduler.").filter(|n| *n == "Call")) {
                    $(Some($name) => Some(Message::$variant(Box::new(protos::decode::<$kind>(body)?))),)*
                    _ => None,
                })
            }
        }
    };
}

incoming! {
    /// A v0 framework makes a call.
    Call(scheduler::Call) = "Call",
    /// A framework asks whether it may submit; the answer is no.
    SubmitScheduler(m::SubmitSchedulerRequest) = "SubmitSchedulerRequest",
    /// A v0 framework without an id subscribes.
    RegisterFramework(m::RegisterFrameworkMessage) = "RegisterFrameworkMessage",
    /// A v0 framework with an id subscribes.
    ReregisterFramework(m::ReregisterFrameworkMessage) = "ReregisterFrameworkMessage",
    /// A v0 framework unregisters.
    UnregisterFramework(m::UnregisterFrameworkMessage) = "UnregisterFrameworkMessage",
    /// A v0 framework aborts: it receives no more offers.
    DeactivateFramework(m::DeactivateFrameworkMessage) = "DeactivateFrameworkMessage",
    /// A v0 framework hints at resources that it needs; without effect.
    ResourceRequest(m::ResourceRequestMessage) = "ResourceRequestMessage",
    /// A v0 framework accepts offers with one LAUNCH.
    LaunchTasks(m::LaunchTasksMessage) = "LaunchTasksMessage",
    /// A v0 framework revives offers.
    ReviveOffers(m::ReviveOffersMessage) = "ReviveOffersMessage",
    /// A v0 framework kills a task.
    KillTask(m::KillTaskMessage) = "KillTaskMessage",
    /// A v0 framework acknowledges a status update.
    StatusUpdateAcknowledgement(m::StatusUpdateAcknowledgementMessage) = "StatusUpdateAcknowledgementMessage",
    /// A v0 framework sends data to an executor.
    FrameworkToExecutor(m::FrameworkToExecutorMessage) = "FrameworkToExecutorMessage",
    /// A v0 framework asks for the states of tasks.
    ReconcileTasks(m::ReconcileTasksMessage) = "ReconcileTasksMessage",
    /// An agent without an id registers.
    RegisterSlave(m::RegisterSlaveMessage) = "RegisterSlaveMessage",
    /// An agent with an id reregisters.
    ReregisterSlave(m::ReregisterSlaveMessage) = "ReregisterSlaveMessage",
    /// An agent unregisters.
    UnregisterSlave(m::UnregisterSlaveMessage) = "UnregisterSlaveMessage",
    /// An agent reports the state of a task.
    StatusUpdate(m::StatusUpdateMessage) = "StatusUpdateMessage",
    /// An executor sends data to its framework.
    ExecutorToFramework(m::ExecutorToFrameworkMessage) = "ExecutorToFrameworkMessage",
    /// An agent reports the state of an operation.
    UpdateOperationStatus(m::UpdateOperationStatusMessage) = "UpdateOperationStatusMessage",
    /// An agent reports that an executor has terminated.
    ExitedExecutor(m::ExitedExecutorMessage) = "ExitedExecutorMessage",
    /// An agent reports its resources, resource providers and operations.
    UpdateSlave(m::UpdateSlaveMessage) = "UpdateSlaveMessage",
}

impl Message {
    /// Returns whether the message asks to register its sender, as an agent or as a framework's driver.
    pub fn asks_for_admission(&self) -> bool {
        match self {
            Message::RegisterSlave(_)
            | Message::ReregisterSlave(_)
            | Message::RegisterFramework(_)
            | Message::ReregisterFramework(_) => true,
            Message::Call(call) => call.r#type() == scheduler::call::Type::Subscribe,
            _ => false,
        }
    }

    /// Decodes a message for the process `to`. `name` is the full protobuf name.
    ///
    /// Returns `Ok(None)` if no process of the master handles such a message, which must be dropped.
    ///
    /// # Errors
    /// The body cannot be decoded.
    pub fn decode(to: &str, name: &str, body: &[u8]) -> Result<Option<Message>, DecodeError> {
        if let Some(observer) = observer_of(to) {
            let pong = name == "mesos.internal.PongSlaveMessage";
            return Ok(pong.then_some(Message::PongSlave { observer }));
        }
        if to != "master" {
            return Ok(None);
        }
        Message::decode_for_master(name, body).map_err(|source| DecodeError { name: name.to_owned(), source })
    }

    /// Returns whether `id` names a process of the master: `master` or a `slave-observer(n)`.
    pub fn is_process(id: &str) -> bool {
        id == "master" || observer_of(id).is_some()
    }
}

fn observer_of(id: &str) -> Option<u64> {
    id.strip_prefix("slave-observer(")?.strip_suffix(')')?.parse().ok()
}

macro_rules! outgoing {
    ($($(#[$doc:meta])* $variant:ident($kind:ty),)*) => {
        /// A message that the master sends. The shell encodes it, so that the core's thread need not.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Outgoing {
            $($(#[$doc])* $variant(Box<$kind>),)*
        }

        impl Outgoing {
            /// Returns the full protobuf name, as it stands in the request's path.
            pub fn full_name(&self) -> String {
                match self {
                    $(Outgoing::$variant(_) => <$kind as prost::Name>::full_name(),)*
                }
            }

            /// Returns the encoded body.
            pub fn encode(&self) -> Vec<u8> {
                match self {
                    $(Outgoing::$variant(message) => prost::Message::encode_to_vec(&**message),)*
                }
            }
        }

        $(impl From<$kind> for Outgoing {
            fn from(message: $kind) -> Outgoing {
                Outgoing::$variant(Box::new(message))
            }
        })*
    };
}

outgoing! {
    /// Tells an agent that it is admitted, with its id.
    SlaveRegistered(m::SlaveRegisteredMessage),
    /// Tells an agent that it is admitted again, with tasks whose state it must report.
    SlaveReregistered(m::SlaveReregisteredMessage),
    /// Pings an agent.
    PingSlave(m::PingSlaveMessage),
    /// Tells an agent to exit.
    Shutdown(m::ShutdownMessage),
    /// Tells an agent to run a task.
    RunTask(m::RunTaskMessage),
    /// Tells an agent to run a task group.
    RunTaskGroup(m::RunTaskGroupMessage),
    /// Tells an agent to kill a task.
    KillTask(m::KillTaskMessage),
    /// Tells an agent that the framework has acknowledged a status update.
    StatusUpdateAcknowledgement(m::StatusUpdateAcknowledgementMessage),
    /// Tells an agent to shut down an executor.
    ShutdownExecutor(m::ShutdownExecutorMessage),
    /// Tells an agent to shut down all executors of a framework.
    ShutdownFramework(m::ShutdownFrameworkMessage),
    /// Tells an agent a framework's info and pid.
    UpdateFramework(m::UpdateFrameworkMessage),
    /// Tells an agent without RESOURCE_PROVIDER its reservations and volumes.
    CheckpointResources(m::CheckpointResourcesMessage),
    /// Tells an agent to apply an operation.
    ApplyOperation(m::ApplyOperationMessage),
    /// Tells an agent that an operation's status is acknowledged.
    AcknowledgeOperationStatus(m::AcknowledgeOperationStatusMessage),
    /// Asks an agent for the states of operations.
    ReconcileOperations(m::ReconcileOperationsMessage),
    /// Tells an agent to drain.
    DrainSlave(m::DrainSlaveMessage),
    /// Forwards a framework's data for an executor to the agent.
    FrameworkToExecutor(m::FrameworkToExecutorMessage),
    /// Tells a framework that it is subscribed.
    FrameworkRegistered(m::FrameworkRegisteredMessage),
    /// Tells a framework that it is subscribed again.
    FrameworkReregistered(m::FrameworkReregisteredMessage),
    /// Sends a framework offers, with the pids of their agents.
    ResourceOffers(m::ResourceOffersMessage),
    /// Tells a framework that an offer is rescinded.
    RescindResourceOffer(m::RescindResourceOfferMessage),
    /// Sends a framework inverse offers, with the pids of their agents.
    InverseOffers(m::InverseOffersMessage),
    /// Tells a framework that an inverse offer is rescinded.
    RescindInverseOffer(m::RescindInverseOfferMessage),
    /// Tells a framework the state of a task.
    StatusUpdate(m::StatusUpdateMessage),
    /// Tells a framework that an agent is lost.
    LostSlave(m::LostSlaveMessage),
    /// Tells a framework that an executor has terminated.
    ExitedExecutor(m::ExitedExecutorMessage),
    /// Forwards an executor's data to its framework.
    ExecutorToFramework(m::ExecutorToFrameworkMessage),
    /// Tells a framework to abort.
    FrameworkError(m::FrameworkErrorMessage),
    /// Tells a framework that it may not submit.
    SubmitScheduler(m::SubmitSchedulerResponse),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_by_process_and_name() {
        let body = prost::Message::encode_to_vec(&m::UnregisterSlaveMessage::default());
        let read = Message::decode("master", "mesos.internal.UnregisterSlaveMessage", &body).unwrap().unwrap();
        assert_eq!(read.name(), "UnregisterSlaveMessage");
        let pong = Message::decode("slave-observer(12)", "mesos.internal.PongSlaveMessage", b"").unwrap();
        assert_eq!(pong, Some(Message::PongSlave { observer: 12 }));
        assert!(Message::decode("master", "mesos.scheduler.Call", b"").unwrap().is_some());
        assert!(Message::decode("master", "mesos.scheduler.RegisterSlaveMessage", b"").unwrap().is_none());
        assert!(Message::decode("master", "mesos.internal.Unheard", b"").unwrap().is_none());
        assert!(Message::decode("elsewhere", "mesos.scheduler.Call", b"").unwrap().is_none());
        assert!(Message::decode("master", "mesos.scheduler.Call", b"\xff").is_err());
        // A required field is missing.
        assert!(Message::decode("master", "mesos.internal.UnregisterSlaveMessage", b"").is_err());
        assert!(Message::is_process("slave-observer(3)") && !Message::is_process("slave(1)"));
    }

    #[test]
    fn names_what_it_sends() {
        let ping = Outgoing::from(m::PingSlaveMessage { connected: true });
        assert_eq!((ping.full_name().as_str(), ping.encode()), ("mesos.internal.PingSlaveMessage", vec![8, 1]));
    }
}
