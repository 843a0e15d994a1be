//! What containerizers have in common: each launches containers of one kind, by the launcher and the reaper that all
//! share.
//!
//! The list of containers and the reports about them are in `composing.rs`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::pin::Pin;
use std::sync::Arc;

use agent::{ContainerName, ContainerSpec, Input, Limits};
use containers::cgroups::{Group, OomWatch};
use containers::{Spec, User};
use protos::mesos::Resource;

use crate::composing::Used;

/// A container that is about to be launched.
#[derive(Clone, Copy)]
pub(crate) struct Container<'a> {
    pub(crate) name: &'a ContainerName,
    pub(crate) spec: &'a ContainerSpec,
    /// The user that it runs as, if it is another one than the agent's.
    pub(crate) user: Option<&'a User>,
}

/// What the launcher has to know of a container's first process besides what it is started with.
#[derive(Default)]
pub(crate) struct Launched {
    /// Whether it needs a first process that is not its own program.
    pub(crate) init: bool,
    /// The subcommand of the executors' program that is started in the place of the container's own.
    pub(crate) ours: Option<&'static str>,
    /// The process whose terminals a session sees, if these are not the host's.
    pub(crate) around: Option<i32>,
    /// Its control group; none with the launcher `posix`.
    pub(crate) group: Option<Group>,
    /// Tells when it runs out of memory.
    pub(crate) oom: Option<OomWatch>,
    /// Inputs that report it to the agent.
    pub(crate) reports: Vec<Input>,
}

/// A containerizer, in Mesos's verbs. A method about a container that another one has launched does nothing.
pub(crate) trait Containerizer: Send + Sync {
    /// Whether it launches a container, rather than those after it.
    fn takes(&self, spec: &ContainerSpec) -> bool;

    /// Refuses a container that it takes and cannot launch.
    ///
    /// # Errors
    /// What the container needs.
    fn check(&self, spec: &ContainerSpec) -> anyhow::Result<()>;

    /// Whether it mounts volumes; otherwise they are links in the sandbox.
    fn mounts(&self) -> bool;

    /// Whether a container needs what takes long to make ready, besides its URIs.
    fn provides(&self, spec: &ContainerSpec) -> bool;

    /// Provides that, and fetches the URIs at the right point; returns the inputs that report it to the agent. Blocks.
    ///
    /// # Errors
    /// What the container asks for and cannot get; [`Containerizer::cleanup`] takes back the rest.
    fn provide(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        fetch: &dyn Fn() -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Input>>;

    /// Completes what a container's first process is started with.
    ///
    /// # Errors
    /// What the container asks for and cannot get; [`Containerizer::cleanup`] takes back the rest.
    fn launch(&self, container: Container<'_>, process: &mut Spec) -> anyhow::Result<Launched>;

    /// Whether an executor's container that it launches is noted in the runtime directory once it has run for a while.
    fn is_noted(&self) -> bool;

    /// The size of the terminal of a container that clients can attach to, in rows and columns, if it has one.
    fn attach(&self, spec: &ContainerSpec) -> Option<(u32, u32)>;

    /// Sets what a running container may use from now on.
    fn update(&self, container: &ContainerName, held: &[Resource], limits: Limits);

    /// Adds what it has counted of a container.
    fn usage(&self, _container: &ContainerName, _used: &mut Used) {}

    /// The processes of a container, as far as it knows them. Blocks.
    fn processes(&self, container: &ContainerName) -> Vec<i32>;

    /// A container is to end; its processes are ended after that.
    fn destroy(&self, _container: &ContainerName) {}

    /// Whether a container has ended when its first process has.
    fn wait(&self, _container: &ContainerName) -> bool {
        true
    }

    /// Recovers the outermost containers `kept` of an earlier agent, and ends others that it has left.
    fn recover<'a>(
        &'a self,
        kept: &'a BTreeSet<String>,
    ) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send + 'a>>;

    /// The variables of the process beside an executor's container that keeps running while its first process has
    /// ended; `None` if there is no such container.
    fn reattach(&self, _container: &ContainerName, _sandbox: &str) -> Option<Vec<(OsString, OsString)>> {
        None
    }

    /// Returns the inputs that report a running container of an earlier agent.
    fn status(&self, _container: &ContainerName) -> Vec<Input> {
        Vec::new()
    }

    /// Whether there may be something to take back of a container.
    fn has(&self, container: &ContainerName) -> bool;

    /// Takes back what a container has that has ended, or has not been started. Blocks.
    fn cleanup(&self, container: &ContainerName);
}

/// The containerizers of an agent, in the order in which they are tried. Clones share them.
#[derive(Clone)]
pub(crate) struct Containerizers(pub(crate) Arc<[Arc<dyn Containerizer>]>);

impl Containerizers {
    /// The one that launches a container.
    pub(crate) fn of(&self, spec: &ContainerSpec) -> &dyn Containerizer {
        let taker = self.0.iter().find(|one| one.takes(spec));
        // The last one takes what is left.
        &**taker.unwrap_or(&self.0[self.0.len() - 1])
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Containerizer>> {
        self.0.iter()
    }
}
