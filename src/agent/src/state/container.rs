//! Containers as the core names and describes them.
//!
//! It starts nothing; see the crate `containers`.

use std::fmt;
use std::sync::Arc;

use base::{ContainerId, IdError};
use protos::mesos as pb;

use super::limits::Limits;

/// A container's name: its id, and before it those of its parents, joined by dots.
///
/// Container ids contain no dots, so the name can be taken apart again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerName(Arc<str>);

impl ContainerName {
    /// The name of a container without a parent.
    pub fn top(id: &ContainerId) -> ContainerName {
        ContainerName(id.as_str().into())
    }

    /// The name of a container inside this one.
    pub fn child(&self, id: &ContainerId) -> ContainerName {
        ContainerName(format!("{}.{}", self.0, id).into())
    }

    /// The name of the container that a message means.
    ///
    /// # Errors
    /// When an id cannot be one.
    pub fn from_proto(id: &pb::ContainerId) -> Result<ContainerName, IdError> {
        let own = ContainerId::new(&id.value)?;
        match &id.parent {
            Some(parent) => Ok(ContainerName::from_proto(parent)?.child(&own)),
            None => Ok(ContainerName::top(&own)),
        }
    }

    /// The container as messages name it.
    pub fn to_proto(&self) -> pb::ContainerId {
        let (parent, id) = self.parts();
        let parent = parent.map(|parent| Box::new(ContainerName(parent.into()).to_proto()));
        pb::ContainerId { value: id.to_owned(), parent }
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the container around this one, and its own id.
    fn parts(&self) -> (Option<&str>, &str) {
        self.0.rsplit_once('.').map_or((None, &self.0), |(parent, id)| (Some(parent), id))
    }

    /// The container's own id, without its parents.
    pub fn id(&self) -> &str {
        self.parts().1
    }

    /// The container around this one.
    pub fn parent(&self) -> Option<ContainerName> {
        self.parts().0.map(|parent| ContainerName(parent.into()))
    }

    /// The outermost container around this one, or itself.
    pub fn root(&self) -> ContainerName {
        match self.0.split_once('.') {
            Some((root, _)) => ContainerName(root.into()),
            None => self.clone(),
        }
    }

    /// Whether this container is somewhere inside `other`.
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

/// How a directory is prepared before a container sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prepare {
    /// It must be there, and is given to the container's user.
    Give,
    /// It must be there, and stays as it is: others use it too.
    Leave,
    /// It is made if it is missing, inside this other sandbox and for that one's owner.
    Make {
        /// The absolute path of the other sandbox.
        sandbox: String,
    },
}

/// A directory outside a container's sandbox that is visible in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeLink {
    /// Where it is seen, relative to the sandbox.
    pub seen: String,
    /// The directory, absolute.
    pub directory: String,
    /// How the directory is prepared.
    pub prepare: Prepare,
}

/// Everything that is needed to start a container.
///
/// The sandbox is created first (mode 0750, owned by `user`), and is the working directory; its files `stdout` and
/// `stderr` take the output; standard input is empty. The process gets exactly `environment`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerSpec {
    /// The sandbox's absolute path.
    pub sandbox: String,
    /// A symbolic link to the sandbox that is made or replaced, absolute; none for nested containers.
    pub latest: Option<String>,
    /// The program and its whole argv.
    pub argv: Vec<String>,
    /// The program that is run; it is looked up in the environment's `PATH` if it has no slash.
    pub program: String,
    /// The environment, in order, each name once.
    pub environment: Vec<(String, String)>,
    /// The user to run as; none means the agent's own user.
    pub user: Option<String>,
    /// What is fetched into the sandbox before the start.
    pub uris: Vec<pb::command_info::Uri>,
    /// What the container may use.
    pub resources: Vec<pb::Resource>,
    /// How much more than these it may use.
    pub limits: Limits,
    /// The directories outside its sandbox that are visible in it.
    pub volumes: Vec<VolumeLink>,
    /// Image, volumes, network, limits.
    pub container: Option<pb::ContainerInfo>,
    /// Variables whose values are secrets that have to be asked for: they come beside, or in the place of, those of
    /// `environment`.
    pub secrets: Vec<(String, pb::Secret)>,
    /// The executor, if it is an executor's container.
    pub executor: Option<ExecutorKey>,
    /// Whether it is an executor that the agent has made up, or a pod's: its program is ours, whatever its words look
    /// like.
    pub ours: bool,
    /// Set if it is a session in its parent: `sandbox` is the parent's then, is not made, and takes no output.
    pub session: Option<Session>,
}

/// Which executor a container is. Its variables say so too, but those a task may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorKey {
    /// The framework's id.
    pub framework: String,
    /// The executor's id.
    pub executor: String,
}

/// A container whose input and output are those of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Whether it has a terminal, with how many rows and columns at first.
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
