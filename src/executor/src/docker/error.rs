//! Errors of Docker tasks: a task that breaks a rule, and a container that the daemon does not create or run.

use containers::DirectoryError;

use super::client::ClientError;

/// A task from which no Docker container can be created.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTask {
    /// The bytes are not a `TaskInfo`, or those of its command are not a `CommandInfo`.
    #[error(transparent)]
    Malformed(#[from] prost::DecodeError),
    /// The field `container` is missing.
    #[error("The task has no container")]
    NoContainer,
    /// The field `docker` of the container is missing.
    #[error("The container has no 'docker'")]
    NoDocker,
    /// The task sets a host name and the network HOST.
    #[error("A container on the host's network cannot have a host name of its own")]
    HostName,
    /// The task sets the network USER without a name.
    #[error("A network of the kind USER needs its name in network_infos")]
    UnnamedNetwork,
    /// The volumes have different drivers; this is the second one.
    #[error("Only one volume driver is supported for a container ('{0}' is another)")]
    SecondDriver(String),
    /// The volume has neither a host path nor a source.
    #[error("The volume '{0}' has no source")]
    NoSource(String),
    /// The source of the volume cannot be created.
    #[error("The volume '{volume}' has no source")]
    Source {
        /// Path of the volume in the container.
        volume: String,
        /// Error of the creation.
        source: DirectoryError,
    },
    /// The source of the volume has `..` in its path.
    #[error("The volume '{0}' leads out of the sandbox")]
    OutsideSandbox(String),
    /// The task sets port mappings and the network HOST or NONE.
    #[error("Port mappings need the network BRIDGE or USER")]
    PortMappings,
    /// The host port of a mapping is not among the task's resources.
    #[error("Port {host} [{container}] is not included in resources")]
    Port {
        /// Port of the host.
        host: u32,
        /// Port of the container.
        container: u32,
    },
    /// A parameter of `docker run` is unknown.
    #[error("The Docker parameter '{0}' is not supported")]
    Unsupported(String),
    /// The value of a parameter has the wrong type.
    #[error("The Docker parameter '{key}' is no {kind}: '{value}'")]
    Parameter {
        /// Name of the parameter.
        key: String,
        /// Required type of the value.
        kind: &'static str,
        /// Value of the parameter.
        value: String,
    },
    /// The value of the parameter `ulimit` is not `name=soft:hard`.
    #[error("The Docker parameter 'ulimit' cannot be read: '{0}'")]
    Ulimit(String),
}

/// An error of creating or running a container.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// A call to the daemon failed.
    #[error("{action}")]
    Call {
        /// Action that failed.
        action: &'static str,
        /// Error of the call.
        source: ClientError,
    },
    /// The image is missing and was not pulled.
    #[error("Failed to pull the image '{image}'")]
    Pull {
        /// Name of the image.
        image: String,
        /// Error of the pull.
        source: PullError,
    },
}

/// An error of pulling an image.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The call to the daemon failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The daemon reported this message.
    #[error("{0}")]
    Failed(String),
    /// The daemon answered with this status, without a message.
    #[error("the Docker daemon answers {0}")]
    Status(u16),
}

/// Returns a function that adds the action that failed to an error of the client.
pub(super) fn failed(action: &'static str) -> impl Fn(ClientError) -> DockerError {
    move |source| DockerError::Call { action, source }
}
