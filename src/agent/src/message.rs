//! The libprocess messages that an agent receives and sends (docs/mesos/libprocess.md).
//!
//! This file has their names and their encoding; each message is handled in the file of its name.

use prost::Message as _;
use protos::mesos::internal::*;

/// Common prefix of the names of all messages.
const PACKAGE: &str = "mesos.internal.";

/// Reason why a message is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// An agent does not accept messages of this name.
    #[error("an agent handles no message named '{0}'")]
    Unknown(String),
    /// The body cannot be decoded as such a message.
    #[error("the body is not a valid {name}: {why}")]
    Body {
        /// Full name of the message.
        name: String,
        /// Error of the decoder.
        why: String,
    },
}

macro_rules! incoming {
    ($($name:ident($message:ident)),* $(,)?) => {
        /// A message that `slave(1)` receives.
        #[allow(clippy::large_enum_variant)] // Each is made once, behind a box, and never moved again.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Incoming {
            $(
                #[doc = concat!("`mesos.internal.", stringify!($message), "`.")]
                $name($message),
            )*
        }

        impl Incoming {
            /// Decodes the message with this full name, such as `mesos.internal.PingSlaveMessage`.
            ///
            /// # Errors
            /// The agent does not handle such a message, or the body is invalid.
            pub fn decode(name: &str, body: &[u8]) -> Result<Incoming, MessageError> {
                let broken = |why: protos::DecodeError| MessageError::Body { name: name.to_owned(), why: why.to_string() };
                match name.strip_prefix(PACKAGE) {
                    $(Some(stringify!($message)) => protos::decode(body).map(Incoming::$name).map_err(broken),)*
                    _ => Err(MessageError::Unknown(name.to_owned())),
                }
            }
        }
    };
}

macro_rules! outgoing {
    ($($name:ident($message:ident)),* $(,)?) => {
        /// A message that an agent sends.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Outgoing {
            $(
                #[doc = concat!("`mesos.internal.", stringify!($message), "`.")]
                $name(Box<$message>),
            )*
        }

        $(
            impl From<$message> for Outgoing {
                fn from(message: $message) -> Outgoing {
                    Outgoing::$name(Box::new(message))
                }
            }
        )*

        impl Outgoing {
            /// Returns the message's full name, such as `mesos.internal.PongSlaveMessage`.
            pub fn full_name(&self) -> &'static str {
                match self {
                    $(Outgoing::$name(_) => concat!("mesos.internal.", stringify!($message)),)*
                }
            }

            /// Returns the encoded message.
            pub fn encode(&self) -> Vec<u8> {
                match self {
                    $(Outgoing::$name(message) => message.encode_to_vec(),)*
                }
            }
        }
    };
}

incoming! {
    SlaveRegistered(SlaveRegisteredMessage),
    SlaveReregistered(SlaveReregisteredMessage),
    RunTask(RunTaskMessage),
    RunTaskGroup(RunTaskGroupMessage),
    KillTask(KillTaskMessage),
    ShutdownExecutor(ShutdownExecutorMessage),
    ShutdownFramework(ShutdownFrameworkMessage),
    FrameworkToExecutor(FrameworkToExecutorMessage),
    UpdateFramework(UpdateFrameworkMessage),
    CheckpointResources(CheckpointResourcesMessage),
    ApplyOperation(ApplyOperationMessage),
    ReconcileOperations(ReconcileOperationsMessage),
    StatusUpdateAcknowledgement(StatusUpdateAcknowledgementMessage),
    AcknowledgeOperationStatus(AcknowledgeOperationStatusMessage),
    Shutdown(ShutdownMessage),
    DrainSlave(DrainSlaveMessage),
    PingSlave(PingSlaveMessage),
    RegisterExecutor(RegisterExecutorMessage),
    ReregisterExecutor(ReregisterExecutorMessage),
    StatusUpdate(StatusUpdateMessage),
    ExecutorToFramework(ExecutorToFrameworkMessage),
}

outgoing! {
    RegisterSlave(RegisterSlaveMessage),
    ReregisterSlave(ReregisterSlaveMessage),
    UnregisterSlave(UnregisterSlaveMessage),
    UpdateSlave(UpdateSlaveMessage),
    Authenticate(AuthenticateMessage),
    AuthenticationStart(AuthenticationStartMessage),
    AuthenticationStep(AuthenticationStepMessage),
    PongSlave(PongSlaveMessage),
    StatusUpdate(StatusUpdateMessage),
    UpdateOperationStatus(UpdateOperationStatusMessage),
    ExitedExecutor(ExitedExecutorMessage),
    ExecutorToFramework(ExecutorToFrameworkMessage),
    ExecutorRegistered(ExecutorRegisteredMessage),
    ExecutorReregistered(ExecutorReregisteredMessage),
    ReconnectExecutor(ReconnectExecutorMessage),
    RunTask(RunTaskMessage),
    KillTask(KillTaskMessage),
    StatusUpdateAcknowledgement(StatusUpdateAcknowledgementMessage),
    FrameworkToExecutor(FrameworkToExecutorMessage),
    ShutdownExecutor(ShutdownExecutorMessage),
}

/// A message from a master's authenticator.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum AuthMessage {
    Mechanisms(AuthenticationMechanismsMessage),
    Step(AuthenticationStepMessage),
    Completed(AuthenticationCompletedMessage),
    Failed(AuthenticationFailedMessage),
    Error(AuthenticationErrorMessage),
}

impl AuthMessage {
    /// Decodes a message for the process `to`. Returns the number of the attempt and the message; `None` if such a
    /// process does not handle it.
    pub fn decode(to: &str, name: &str, body: &[u8]) -> Option<(u64, AuthMessage)> {
        let attempt = to.strip_prefix("crammd5-authenticatee(")?.strip_suffix(')')?.parse().ok()?;
        let message = match name.strip_prefix("mesos.internal.")? {
            "AuthenticationMechanismsMessage" => protos::decode(body).map(AuthMessage::Mechanisms),
            "AuthenticationStepMessage" => protos::decode(body).map(AuthMessage::Step),
            "AuthenticationCompletedMessage" => protos::decode(body).map(AuthMessage::Completed),
            "AuthenticationFailedMessage" => protos::decode(body).map(AuthMessage::Failed),
            "AuthenticationErrorMessage" => protos::decode(body).map(AuthMessage::Error),
            _ => return None,
        };
        Some((attempt, message.ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_schema() {
        use prost::Name as _;
        assert_eq!(Outgoing::from(PongSlaveMessage {}).full_name(), PongSlaveMessage::full_name());
        assert_eq!(
            Incoming::decode("mesos.internal.PingSlaveMessage", &[8, 1]),
            Ok(Incoming::PingSlave(PingSlaveMessage { connected: true }))
        );
    }

    #[test]
    fn foreign_and_broken_messages_are_refused() {
        // A message without its required ids is invalid.
        assert!(matches!(Incoming::decode("mesos.internal.KillTaskMessage", &[]), Err(MessageError::Body { .. })));
        let unknown = Incoming::decode("mesos.internal.RegisterSlaveMessage", &[]);
        assert_eq!(unknown, Err(MessageError::Unknown("mesos.internal.RegisterSlaveMessage".into())));
        assert!(matches!(Incoming::decode("mesos.internal.KillTaskMessage", &[0xff]), Err(MessageError::Body { .. })));
    }
}
