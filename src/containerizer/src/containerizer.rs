//! The interface of containerizers: each launches containers of one kind, with the launcher and the reaper that all
//! share.
//!
//! The table of containers and the reports about them are in `composing.rs`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::pin::Pin;
use std::sync::Arc;

use agent::{ContainerName, ContainerSpec, Input, Limits};
use containers::cgroups::{Group, OomWatch};
use containers::{Spec, User};
use protos::mesos::Resource;

use crate::composing::ContainerUsage;

/// A container that is about to be launched.
#[derive(Clone, Copy)]
pub(crate) struct Container<'a> {
    pub(crate) name: &'a ContainerName,
    pub(crate) spec: &'a ContainerSpec,
    /// User that the container runs as; `None`: the agent's own user.
    pub(crate) user: Option<&'a User>,
}

/// Properties of a container's first process that the launcher has to know, besides the spawn request.
#[derive(Default)]
pub(crate) struct Launched {
    /// Whether the container needs an init process, which starts its program.
    pub(crate) init: bool,
    /// Subcommand of the executors' program that is started instead of the container's own program.
    pub(crate) subcommand: Option<&'static str>,
    /// Process in whose `/dev/pts` a session's terminal is opened; `None`: the host's.
    pub(crate) outer_process: Option<i32>,
    /// Control group of the container; `None` with the launcher `posix`.
    pub(crate) group: Option<Group>,
    /// Watch for the event that the container runs out of memory.
    pub(crate) oom: Option<OomWatch>,
    /// Inputs that report the container to the agent.
    pub(crate) reports: Vec<Input>,
}

/// A containerizer, with the methods named as in Mesos. A method does nothing for a container that another
/// containerizer has launched.
pub(crate) trait Containerizer: Send + Sync {
    /// Returns whether this containerizer launches a container. The first one that does is used.
    fn supports(&self, spec: &ContainerSpec) -> bool;

    /// Checks that a container can be launched.
    ///
    /// # Errors
    /// What the container needs.
    fn check(&self, spec: &ContainerSpec) -> anyhow::Result<()>;

    /// Returns whether volumes are mounted; otherwise they are symbolic links in the sandbox.
    fn mounts(&self) -> bool;

    /// Returns whether the preparation of a container takes long, besides its URIs.
    fn needs_provisioning(&self, spec: &ContainerSpec) -> bool;

    /// Prepares what takes long, and fetches the URIs at the right point. Returns the inputs that report it to the
    /// agent. Blocks.
    ///
    /// # Errors
    /// What the container requests but cannot get; [`Containerizer::cleanup`] releases the rest.
    fn provision(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        fetch: &dyn Fn() -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Input>>;

    /// Completes the spawn request of a container's first process.
    ///
    /// # Errors
    /// What the container requests but cannot get; [`Containerizer::cleanup`] releases the rest.
    fn launch(&self, container: Container<'_>, process: &mut Spec) -> anyhow::Result<Launched>;

    /// Returns whether the executors' containers that it launches are recorded in the runtime directory once they have
    /// run for a while.
    fn records_executors(&self) -> bool;

    /// Returns the size of a container's terminal in rows and columns; `None` if it has none that clients can attach
    /// to.
    fn attach(&self, spec: &ContainerSpec) -> Option<(u32, u32)>;

    /// Updates the resources and limits of a running container.
    fn update(&self, container: &ContainerName, held: &[Resource], limits: Limits);

    /// Adds the resource use of a container that this containerizer has measured.
    fn usage(&self, _container: &ContainerName, _used: &mut ContainerUsage) {}

    /// Returns the processes of a container, as far as it knows them. Blocks.
    fn processes(&self, container: &ContainerName) -> Vec<i32>;

    /// Records that a container is being destroyed; its processes are killed after that.
    fn destroy(&self, _container: &ContainerName) {}

    /// Returns whether a container has ended when its first process has.
    fn wait(&self, _container: &ContainerName) -> bool {
        true
    }

    /// Recovers the top-level containers `kept` of the previous agent process, and destroys others that it has left.
    fn recover<'a>(
        &'a self,
        kept: &'a BTreeSet<String>,
    ) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send + 'a>>;

    /// Returns the variables of a new process beside an executor's container that keeps running although its first
    /// process has ended; `None` if there is no such container.
    fn reattach(&self, _container: &ContainerName, _sandbox: &str) -> Option<Vec<(OsString, OsString)>> {
        None
    }

    /// Returns the inputs that report a running container of the previous agent process.
    fn status(&self, _container: &ContainerName) -> Vec<Input> {
        Vec::new()
    }

    /// Returns whether a container may have something to clean up.
    fn needs_cleanup(&self, container: &ContainerName) -> bool;

    /// Releases everything that a container holds after it has ended, or could not be started. Blocks.
    fn cleanup(&self, container: &ContainerName);
}

/// The containerizers of an agent, in the order in which they are tried. Clones share them.
#[derive(Clone)]
pub(crate) struct Containerizers(pub(crate) Arc<[Arc<dyn Containerizer>]>);

impl Containerizers {
    /// Returns the containerizer that launches a container.
    pub(crate) fn of(&self, spec: &ContainerSpec) -> &dyn Containerizer {
        let taker = self.0.iter().find(|one| one.supports(spec));
        // The last one launches all containers that the others do not.
        &**taker.unwrap_or(&self.0[self.0.len() - 1])
    }

    /// Returns an iterator over all containerizers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Containerizer>> {
        self.0.iter()
    }
}
