//! Errors of Docker tasks: a task that breaks a rule, and a container that the daemon does not create or run.

use containers::DirectoryError;

use super::client::ClientError;

/// A task that no Docker container can be made of.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTask {
    /// The bytes are not `TaskInfo`, or those of its command no `CommandInfo`.
    #[error(transparent)]
    Malformed(#[from] prost::DecodeError),
    /// The field `container` is missing.
    #[error("The task has no container")]
    NoContainer,
    /// The field `docker` of the container is missing.
    #[error("The container has no 'docker'")]
    NoDocker,
    /// A host name and the network HOST.
    #[error("A container on the host's network cannot have a host name of its own")]
    HostName,
    /// The network USER without a name.
    #[error("A network of the kind USER needs its name in network_infos")]
    UnnamedNetwork,
    /// Volumes of this and of another driver.
    #[error("Only one volume driver is supported for a container ('{0}' is another)")]
    SecondDriver(String),
    /// The volume has neither a host path nor a source.
    #[error("The volume '{0}' has no source")]
    NoSource(String),
    /// The source of the volume cannot be created.
    #[error("The volume '{volume}' has no source")]
    Source {
        /// The path in the container.
        volume: String,
        /// Why it cannot be created.
        source: DirectoryError,
    },
    /// The source of the volume has `..` in its path.
    #[error("The volume '{0}' leads out of the sandbox")]
    OutsideSandbox(String),
    /// Port mappings and the network HOST or NONE.
    #[error("Port mappings need the network BRIDGE or USER")]
    PortMappings,
    /// The task does not hold the port of the host.
    #[error("Port {host} [{container}] is not included in resources")]
    Port {
        /// The port of the host.
        host: u32,
        /// The port of the container.
        container: u32,
    },
    /// An unknown parameter.
    #[error("The Docker parameter '{0}' is not supported")]
    Unsupported(String),
    /// The value of a parameter is of another kind.
    #[error("The Docker parameter '{key}' is no {kind}: '{value}'")]
    Parameter {
        /// The parameter.
        key: String,
        /// What its value must be.
        kind: &'static str,
        /// Its value.
        value: String,
    },
    /// The value of the parameter `ulimit` is not `name=soft:hard`.
    #[error("The Docker parameter 'ulimit' cannot be read: '{0}'")]
    Ulimit(String),
}

/// A container that was not created, or whose state is unknown.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// A call to the daemon failed.
    #[error("{action}")]
    Call {
        /// What failed.
        action: &'static str,
        /// The error of the call.
        source: ClientError,
    },
    /// The image is missing and was not pulled.
    #[error("Failed to pull the image '{image}'")]
    Pull {
        /// The image.
        image: String,
        /// The cause.
        source: PullError,
    },
}

/// A pull that failed.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The call failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The daemon's message.
    #[error("{0}")]
    Failed(String),
    /// The daemon's status without a message.
    #[error("the Docker daemon answers {0}")]
    Status(u16),
}

/// Returns a conversion of an error of the client, with what failed.
pub(super) fn failed(action: &'static str) -> impl Fn(ClientError) -> DockerError {
    move |source| DockerError::Call { action, source }
}
