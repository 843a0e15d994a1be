//! The libprocess messages that the master takes in and sends out, each a variant with its protobuf type.
//!
//! It does not act on them; see `messages/` for what each one does.

use protos::mesos::internal as m;
use protos::mesos::scheduler;

/// Why a message's body could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{name} could not be read")]
pub struct DecodeError {
    /// The full name of the message.
    name: String,
    /// The reader's error.
    #[source]
    source: protos::DecodeError,
}

macro_rules! incoming {
    ($($(#[$doc:meta])* $variant:ident($kind:ty) = $name:literal,)*) => {
        /// A message for the process `master` (docs/mesos/libprocess.md), or a pong for a `slave-observer(n)`.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Message {
            $($(#[$doc])* $variant(Box<$kind>),)*
            /// An agent is there.
            PongSlave {
                /// The `n` of the `slave-observer(n)` that the pong is for.
                observer: u64,
            },
        }

        impl Message {
            /// The message's name without its package.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Message::$variant(_) => $name,)*
                    Message::PongSlave { .. } => "PongSlaveMessage",
                }
            }

            /// The name with its package.
            pub(crate) fn full_name(&self) -> String {
                match self {
                    Message::Call(_) => format!("mesos.scheduler.{}", self.name()),
                    _ => format!("mesos.internal.{}", self.name()),
                }
            }

            /// The body; a pong has none.
            pub(crate) fn encode(&self) -> Vec<u8> {
                match self {
                    $(Message::$variant(message) => prost::Message::encode_to_vec(&**message),)*
                    Message::PongSlave { .. } => Vec::new(),
                }
            }

            /// How long the body is.
            pub(crate) fn encoded_len(&self) -> usize {
                match self {
                    $(Message::$variant(message) => prost::Message::encoded_len(&**message),)*
                    Message::PongSlave { .. } => 0,
                }
            }

            /// Restores a message from [`Message::name`] and [`Message::encode`]; `None` if they are invalid.
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
    /// A call of a v0 framework.
    Call(scheduler::Call) = "Call",
    /// A framework asks whether it may submit; it may not.
    SubmitScheduler(m::SubmitSchedulerRequest) = "SubmitSchedulerRequest",
    /// A v0 framework without an id.
    RegisterFramework(m::RegisterFrameworkMessage) = "RegisterFrameworkMessage",
    /// A v0 framework with an id.
    ReregisterFramework(m::ReregisterFrameworkMessage) = "ReregisterFrameworkMessage",
    /// A v0 framework ends.
    UnregisterFramework(m::UnregisterFrameworkMessage) = "UnregisterFrameworkMessage",
    /// A v0 framework aborts: it gets no more offers.
    DeactivateFramework(m::DeactivateFrameworkMessage) = "DeactivateFrameworkMessage",
    /// A hint about requested resources; without effect.
    ResourceRequest(m::ResourceRequestMessage) = "ResourceRequestMessage",
    /// ACCEPT with one LAUNCH.
    LaunchTasks(m::LaunchTasksMessage) = "LaunchTasksMessage",
    /// REVIVE.
    ReviveOffers(m::ReviveOffersMessage) = "ReviveOffersMessage",
    /// KILL.
    KillTask(m::KillTaskMessage) = "KillTaskMessage",
    /// ACKNOWLEDGE.
    StatusUpdateAcknowledgement(m::StatusUpdateAcknowledgementMessage) = "StatusUpdateAcknowledgementMessage",
    /// MESSAGE.
    FrameworkToExecutor(m::FrameworkToExecutorMessage) = "FrameworkToExecutorMessage",
    /// RECONCILE.
    ReconcileTasks(m::ReconcileTasksMessage) = "ReconcileTasksMessage",
    /// An agent without an id.
    RegisterSlave(m::RegisterSlaveMessage) = "RegisterSlaveMessage",
    /// An agent with an id.
    ReregisterSlave(m::ReregisterSlaveMessage) = "ReregisterSlaveMessage",
    /// An agent ends.
    UnregisterSlave(m::UnregisterSlaveMessage) = "UnregisterSlaveMessage",
    /// A task's state.
    StatusUpdate(m::StatusUpdateMessage) = "StatusUpdateMessage",
    /// An executor's message for its framework.
    ExecutorToFramework(m::ExecutorToFrameworkMessage) = "ExecutorToFrameworkMessage",
    /// An operation's state.
    UpdateOperationStatus(m::UpdateOperationStatusMessage) = "UpdateOperationStatusMessage",
    /// An executor has ended.
    ExitedExecutor(m::ExitedExecutorMessage) = "ExitedExecutorMessage",
    /// An agent's resources, providers and operations.
    UpdateSlave(m::UpdateSlaveMessage) = "UpdateSlaveMessage",
}

impl Message {
    /// Whether the message asks to register its sender, as an agent or as a framework's driver.
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

    /// Reads a message for the process `to`. `name` is the full protobuf name.
    ///
    /// `Ok(None)`: no process of the master's takes such a message; it is to be dropped.
    ///
    /// # Errors
    /// The body is no such message.
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

    /// Whether `id` names a process of the master's: `master` or a `slave-observer(n)`.
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
            /// The full protobuf name, as it stands in the request's path.
            pub fn full_name(&self) -> String {
                match self {
                    $(Outgoing::$variant(_) => <$kind as prost::Name>::full_name(),)*
                }
            }

            /// The body.
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
    /// Agent: you are admitted under this id.
    SlaveRegistered(m::SlaveRegisteredMessage),
    /// Agent: you are admitted again; answer for these tasks.
    SlaveReregistered(m::SlaveReregisteredMessage),
    /// Agent: are you there?
    PingSlave(m::PingSlaveMessage),
    /// Agent: end.
    Shutdown(m::ShutdownMessage),
    /// Agent: run a task.
    RunTask(m::RunTaskMessage),
    /// Agent: run a task group.
    RunTaskGroup(m::RunTaskGroupMessage),
    /// Agent: kill a task.
    KillTask(m::KillTaskMessage),
    /// Agent: the framework has taken an update.
    StatusUpdateAcknowledgement(m::StatusUpdateAcknowledgementMessage),
    /// Agent: end an executor.
    ShutdownExecutor(m::ShutdownExecutorMessage),
    /// Agent: end a framework's executors.
    ShutdownFramework(m::ShutdownFrameworkMessage),
    /// Agent: a framework's info and pid.
    UpdateFramework(m::UpdateFrameworkMessage),
    /// Agent without RESOURCE_PROVIDER: its reservations and volumes.
    CheckpointResources(m::CheckpointResourcesMessage),
    /// Agent: apply an operation.
    ApplyOperation(m::ApplyOperationMessage),
    /// Agent: an operation's status was taken.
    AcknowledgeOperationStatus(m::AcknowledgeOperationStatusMessage),
    /// Agent: say what became of these operations.
    ReconcileOperations(m::ReconcileOperationsMessage),
    /// Agent: drain.
    DrainSlave(m::DrainSlaveMessage),
    /// Agent: a framework's message for an executor.
    FrameworkToExecutor(m::FrameworkToExecutorMessage),
    /// Framework: you are subscribed.
    FrameworkRegistered(m::FrameworkRegisteredMessage),
    /// Framework: you are subscribed again.
    FrameworkReregistered(m::FrameworkReregisteredMessage),
    /// Framework: offers, and their agents' pids.
    ResourceOffers(m::ResourceOffersMessage),
    /// Framework: an offer is void.
    RescindResourceOffer(m::RescindResourceOfferMessage),
    /// Framework: agents are asked back, and their pids.
    InverseOffers(m::InverseOffersMessage),
    /// Framework: an agent is not asked back any more.
    RescindInverseOffer(m::RescindInverseOfferMessage),
    /// Framework: a task's state.
    StatusUpdate(m::StatusUpdateMessage),
    /// Framework: an agent is lost.
    LostSlave(m::LostSlaveMessage),
    /// Framework: an executor has ended.
    ExitedExecutor(m::ExitedExecutorMessage),
    /// Framework: an executor's message.
    ExecutorToFramework(m::ExecutorToFrameworkMessage),
    /// Framework: abort.
    FrameworkError(m::FrameworkErrorMessage),
    /// Framework: no, you may not submit.
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
