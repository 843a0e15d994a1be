//! Names and descriptions of containers, as the core has them.
//!
//! It starts nothing; see the crate `containers`.

use std::fmt;
use std::sync::Arc;

use base::{ContainerId, IdError};
use protos::mesos as pb;

use super::limits::Limits;

/// Name of a container: its id, after those of its parents, joined by dots.
///
/// Container ids contain no dots, so the name can be split again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerName(Arc<str>);

impl ContainerName {
    /// Returns the name of a container without a parent.
    pub fn top(id: &ContainerId) -> ContainerName {
        ContainerName(id.as_str().into())
    }

    /// Returns the name of a container inside this one.
    pub fn child(&self, id: &ContainerId) -> ContainerName {
        ContainerName(format!("{}.{}", self.0, id).into())
    }

    /// Returns the name of the container that a message refers to.
    ///
    /// # Errors
    /// When one of the ids is invalid.
    pub fn from_proto(id: &pb::ContainerId) -> Result<ContainerName, IdError> {
        let own = ContainerId::new(&id.value)?;
        match &id.parent {
            Some(parent) => Ok(ContainerName::from_proto(parent)?.child(&own)),
            None => Ok(ContainerName::top(&own)),
        }
    }

    /// Returns the container's id in the form of messages.
    pub fn to_proto(&self) -> pb::ContainerId {
        let (parent, id) = self.parts();
        let parent = parent.map(|parent| Box::new(ContainerName(parent.into()).to_proto()));
        pb::ContainerId { value: id.to_owned(), parent }
    }

    /// Returns the whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Splits the name into that of the parent container, and the container's own id.
    fn parts(&self) -> (Option<&str>, &str) {
        self.0.rsplit_once('.').map_or((None, &self.0), |(parent, id)| (Some(parent), id))
    }

    /// Returns the container's own id, without its parents.
    pub fn id(&self) -> &str {
        self.parts().1
    }

    /// Returns the name of the parent container; `None` if there is none.
    pub fn parent(&self) -> Option<ContainerName> {
        self.parts().0.map(|parent| ContainerName(parent.into()))
    }

    /// Returns the name of the outermost container around this one, or its own if it has no parent.
    pub fn root(&self) -> ContainerName {
        match self.0.split_once('.') {
            Some((root, _)) => ContainerName(root.into()),
            None => self.clone(),
        }
    }

    /// Returns whether this container is inside `other`, at any depth.
    pub fn is_inside(&self, other: &ContainerName) -> bool {
        self.0.strip_prefix(&*other.0).is_some_and(|rest| rest.starts_with('.'))
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ContainerId> for ContainerName {
    fn from(id: ContainerId) -> ContainerName {
        ContainerName::top(&id)
    }
}

/// Preparation of a directory before a container uses it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prepare {
    /// The directory must exist, and its owner becomes the container's user.
    ChangeOwner,
    /// The directory must exist, and is not changed: other containers use it too.
    KeepOwner,
    /// The directory is created if it is missing, inside another sandbox and with that sandbox's owner.
    Create {
        /// Absolute path of the other sandbox.
        sandbox: String,
    },
}

/// A directory outside a container's sandbox that is visible in the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeLink {
    /// Path at which the directory is visible, relative to the sandbox.
    pub container_path: String,
    /// Absolute path of the directory.
    pub directory: String,
    /// Preparation of the directory.
    pub prepare: Prepare,
}

/// Everything that is needed to start a container.
///
/// The sandbox is created first (mode 0750, owned by `user`), and is the working directory. Its files `stdout` and
/// `stderr` receive the output; standard input is empty. The process gets exactly `environment`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerSpec {
    /// Absolute path of the sandbox.
    pub sandbox: String,
    /// Absolute path of a symbolic link to the sandbox that is created or replaced; `None` for nested containers.
    pub latest: Option<String>,
    /// Arguments of the program, including its name.
    pub argv: Vec<String>,
    /// Program to run; it is searched in the environment's `PATH` if it has no slash.
    pub program: String,
    /// Environment variables in order, each name once.
    pub environment: Vec<(String, String)>,
    /// User to run as; `None`: the agent's own user.
    pub user: Option<String>,
    /// URIs that are fetched into the sandbox before the start.
    pub uris: Vec<pb::command_info::Uri>,
    /// Resources that the container holds.
    pub resources: Vec<pb::Resource>,
    /// Limits beyond these resources.
    pub limits: Limits,
    /// Directories outside the sandbox that are visible in it.
    pub volumes: Vec<VolumeLink>,
    /// Description of the container: image, volumes, network, limits.
    pub container: Option<pb::ContainerInfo>,
    /// Variables whose values are secrets that are still to be resolved. They are added to those of `environment`, or
    /// replace them.
    pub secrets: Vec<(String, pb::Secret)>,
    /// Executor of the container; `None` if it is not an executor's.
    pub executor: Option<ExecutorKey>,
    /// Whether the container runs the agent's own executor: the command executor or the default executor. Its program
    /// is trusted, whatever its arguments are.
    pub is_builtin_executor: bool,
    /// Set for a session in a parent container. `sandbox` is then the parent's; it is not created and receives no
    /// output.
    pub session: Option<Session>,
}

/// Ids of the executor in a container. The container's variables have them too, but a task may change those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorKey {
    /// Id of the framework.
    pub framework: String,
    /// Id of the executor.
    pub executor: String,
}

/// A container whose input and output are connected to the client that launched it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Initial number of rows and columns of the terminal; `None` without a terminal.
    pub terminal: Option<(u32, u32)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_apart() {
        let top = ContainerName::top(&ContainerId::new("a").unwrap());
        let inner = top.child(&ContainerId::new("b").unwrap()).child(&ContainerId::new("c").unwrap());
        assert_eq!(inner.as_str(), "a.b.c");
        assert_eq!(inner.id(), "c");
        assert_eq!(inner.parent().unwrap().as_str(), "a.b");
        assert_eq!(inner.root(), top);
        assert!(inner.is_inside(&top) && !top.is_inside(&inner) && !top.is_inside(&top));
        assert_eq!(ContainerName::from_proto(&inner.to_proto()).unwrap(), inner);
    }

    #[test]
    fn bad_ids_are_refused() {
        let bad = pb::ContainerId { value: "a.b".into(), parent: None };
        assert!(ContainerName::from_proto(&bad).is_err());
    }
}
