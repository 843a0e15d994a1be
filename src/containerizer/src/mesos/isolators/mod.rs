//! Isolators: each gives containers one resource or namespace of their own, or one limit. This file has their trait,
//! and applies all of them to a container.
//!
//! The file of an isolator has the path of its name: `cgroups/mem.rs` is `cgroups/mem`. Processes are started and ended
//! elsewhere.

pub(crate) mod cgroups;
pub(crate) mod disk;
pub(crate) mod filesystem;
pub(crate) mod gpu;
pub(crate) mod linux;
pub(crate) mod list;
pub(crate) mod namespaces;
pub(crate) mod network;
pub(crate) mod posix;

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use agent::{ContainerName, ContainerSpec, Input, Limits};
use anyhow::Context;
use containers::cgroups::{Controller, Group, Hierarchies, OomWatch};
use containers::isolation::{Isolation, Namespaces};
use containers::{Rlimit, User};
use protos::mesos::Resource;
use tokio::task::JoinHandle;

use crate::composing::{ComposingContainerizer, ListContainerResources};
use crate::config::{self, Config};
use crate::mesos::provisioner::Provisioner;
pub use cgroups::GroupUse;
pub use cgroups::perf_event::is_perf_event;
pub use disk::du::DiskUse;
use filesystem::view::View;

/// A container that is about to start.
#[derive(Clone, Copy)]
pub(crate) struct Container<'a> {
    pub(crate) name: &'a ContainerName,
    pub(crate) spec: &'a ContainerSpec,
    /// User that the container runs as; `None`: the agent's own user.
    pub(crate) user: Option<&'a User>,
    /// First process of the container whose namespaces it shares.
    pub(crate) outer_process: Option<i32>,
}

/// Attributes for the start of a container's first process, which isolators add.
#[derive(Default)]
pub(crate) struct Launch {
    pub(crate) isolation: Isolation,
    pub(crate) rlimits: Vec<Rlimit>,
    /// Container's view of the host's directories.
    pub(crate) view: View,
    /// Whether the container needs an init process. The first process of a pid namespace gets no signal that it does
    /// not handle, and has to reap orphans.
    pub(crate) init: bool,
    /// Environment variables that describe the container's resources.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Control group of the container; `None` with the launcher `posix`.
    pub(crate) group: Option<Group>,
    /// Watch for the event that the container runs out of memory.
    pub(crate) oom: Option<OomWatch>,
    /// Inputs that report the container to the agent.
    pub(crate) reports: Vec<Input>,
}

/// An isolator, with the methods named as in Mesos. All of them may block for as long as a system call takes;
/// `recover`, `provision` and `cleanup` for longer.
pub(crate) trait Isolator: Send + Sync {
    /// Releases what the previous agent process has given to containers other than these top-level ones.
    fn recover(&self, _kept: &BTreeSet<String>) {}

    /// Returns whether [`Isolator::provision`] has something to do for a container.
    fn needs_provisioning(&self, _spec: &ContainerSpec) -> bool {
        false
    }

    /// Prepares what takes long, before [`Isolator::prepare`]. Returns a report to the agent.
    ///
    /// # Errors
    /// A request of the container that cannot be satisfied; nothing of it is left then.
    fn provision(&self, _container: &ContainerName, _spec: &ContainerSpec) -> anyhow::Result<Option<Input>> {
        Ok(None)
    }

    /// Adds to the attributes with which the container's first process is started.
    ///
    /// # Errors
    /// What the container requests but cannot get; [`Isolator::cleanup`] releases the rest.
    fn prepare(&self, _container: Container<'_>, _launch: &mut Launch) -> anyhow::Result<()> {
        Ok(())
    }

    /// Configures the control group of a container with its own, before a process enters it.
    ///
    /// # Errors
    /// An error of the system.
    fn isolate(&self, _container: Container<'_>, _group: &Group, _launch: &mut Launch) -> anyhow::Result<()> {
        Ok(())
    }

    /// Updates the resources and limits of a running container.
    ///
    /// # Errors
    /// An error of the system.
    fn update(&self, _: &ContainerName, _group: &Group, _held: &[Resource], _: Limits) -> anyhow::Result<()> {
        Ok(())
    }

    /// Adds the resource use of a container that this isolator has measured.
    fn usage(&self, _container: &ContainerName, _group: &Group, _usage: &mut GroupUse) {}

    /// Returns the report about a running container of the previous agent process.
    fn status(&self, _container: &ContainerName, _group: Option<&Group>) -> Option<Input> {
        None
    }

    /// Starts the task that watches running containers, if this isolator needs one.
    fn watch(
        self: Arc<Self>,
        _running: ComposingContainerizer,
        _held: ListContainerResources,
    ) -> Option<JoinHandle<()>> {
        None
    }

    /// Returns the last measured disk use of a container, if this isolator measures it.
    fn disk_use(&self, _container: &ContainerName) -> Option<DiskUse> {
        None
    }

    /// Releases everything that a container holds after it has ended, or could not be started.
    fn cleanup(&self, _container: &ContainerName) {}
}

/// The configured isolators, and the host's control groups if the launcher is `linux`. Clones share them.
#[derive(Clone)]
pub(crate) struct Isolators(Arc<Inner>);

struct Inner {
    /// Isolators in the order in which they prepare a container.
    list: Vec<Arc<dyn Isolator>>,
    /// Requests that are refused because their isolator is not configured.
    refusals: Vec<&'static list::Refusal>,
    groups: Option<Hierarchies>,
    /// Controllers of containers' control groups: the freezer, by which containers are destroyed, and those of
    /// isolators.
    controllers: Vec<Controller>,
    images: Provisioner,
    mounts: bool,
}

impl Isolators {
    /// Creates the agent's own control groups and the configured isolators.
    ///
    /// # Errors
    /// What the host lacks.
    pub(crate) fn start(config: &Config, context: list::IsolatorContext) -> anyhow::Result<Isolators> {
        let isolation = &config.isolation;
        let mut controllers = list::controllers(isolation);
        let groups = make_groups(isolation, &mut controllers).context("containers cannot be isolated")?;
        let (images, mounts) = (context.images.clone(), isolation.mounts());
        let list = list::make(config, &controllers, &context)?;
        let refusals = list::refusals(isolation);
        Ok(Isolators(Arc::new(Inner { list, refusals, groups, controllers, images, mounts })))
    }

    /// Returns whether containers run in control groups and namespaces.
    pub(crate) fn is_linux(&self) -> bool {
        self.0.groups.is_some()
    }

    /// Returns which resources of a task can have a limit beyond what it holds.
    pub(crate) fn limitable(&self) -> agent::Limitable {
        let has = |controller| self.0.controllers.contains(&controller);
        agent::Limitable { cpus: has(Controller::Cpu), mem: has(Controller::Memory) }
    }

    /// Returns whether volumes are mounted; otherwise they are symbolic links.
    pub(crate) fn mounts(&self) -> bool {
        self.0.mounts
    }

    /// Returns the provisioner of container images.
    pub(crate) fn images(&self) -> &Provisioner {
        &self.0.images
    }

    /// Releases what the previous agent process has given to containers other than these top-level ones. Blocks.
    pub(crate) fn recover(&self, kept: &BTreeSet<String>) {
        self.0.list.iter().for_each(|isolator| isolator.recover(kept));
    }

    /// Refuses a container that needs an isolator which is not configured.
    ///
    /// # Errors
    /// The name of the isolator.
    pub(crate) fn check(&self, spec: &ContainerSpec) -> anyhow::Result<()> {
        match self.0.refusals.iter().find(|refusal| (refusal.asks)(spec)) {
            Some(refusal) => anyhow::bail!(refusal.why),
            None => Ok(()),
        }
    }

    /// Returns whether the preparation of a container takes long.
    pub(crate) fn needs_provisioning(&self, spec: &ContainerSpec) -> bool {
        self.0.list.iter().any(|isolator| isolator.needs_provisioning(spec))
    }

    /// Prepares what takes long. Returns reports to the agent. Blocks.
    ///
    /// # Errors
    /// A request of the container that cannot be satisfied.
    pub(crate) fn provision(&self, container: &ContainerName, spec: &ContainerSpec) -> anyhow::Result<Vec<Input>> {
        let wanted = self.0.list.iter().filter(|isolator| isolator.needs_provisioning(spec));
        wanted.filter_map(|isolator| isolator.provision(container, spec).transpose()).collect()
    }

    /// Returns the control group of a container, which may not exist; `None` with the launcher `posix`.
    pub(crate) fn group(&self, container: &ContainerName) -> Option<Group> {
        self.0.groups.as_ref().map(|groups| groups.group(container.as_str()))
    }

    /// Prepares the attributes with which a container is started.
    ///
    /// # Errors
    /// What the container requests but cannot get; no control group is left then.
    pub(crate) fn prepare(&self, container: Container<'_>) -> anyhow::Result<Launch> {
        let mut launch = Launch::default();
        if self.is_linux() {
            if let Some(pid) = container.outer_process {
                // Nested containers share the namespaces of the top-level container.
                launch.isolation.enter_which = differing(pid);
                launch.isolation.enter = launch.isolation.enter_which.any().then(|| pidfd(pid)).transpose()?;
            }
            launch.view = View::of(&self.0.images, container.name, container.spec)?;
        }
        for isolator in &self.0.list {
            isolator.prepare(container, &mut launch)?;
        }
        launch.view.enter(container.spec, &mut launch.isolation);
        if let Some(groups) = &self.0.groups {
            let group = groups.group(container.name.as_str());
            self.create_group(groups, &group, container, &mut launch).inspect_err(|_| drop(group.remove()))?;
            launch.group = Some(group);
        }
        Ok(launch)
    }

    /// Creates a container's control group. Isolators configure it, unless the container shares that of its parent.
    fn create_group(
        &self,
        groups: &Hierarchies,
        group: &Group,
        container: Container<'_>,
        launch: &mut Launch,
    ) -> anyhow::Result<()> {
        let all = &self.0.controllers;
        let linux = container.spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
        let shares = container.name.parent().is_some() && linux.is_none_or(|linux| linux.share_cgroups());
        let (own, shared) = all.split_at(if shares { 1 } else { all.len() });
        group.create(own)?;
        launch.isolation.cgroup = Some(group.entry(own, shared, &groups.group(container.name.root().as_str()))?);
        if !shares {
            for isolator in &self.0.list {
                isolator.isolate(container, group, launch)?;
            }
        }
        Ok(())
    }

    /// Updates the resources and limits of a running container. Failures are logged.
    pub(crate) fn update(&self, container: &ContainerName, held: &[Resource], limits: Limits) {
        let Some(group) = self.group(container).filter(Group::exists) else { return };
        for isolator in &self.0.list {
            if let Err(error) = isolator.update(container, &group, held, limits) {
                tracing::warn!(%container, "{error:#}");
            }
        }
    }

    /// Returns whether the container's memory is limited by a control group of its own.
    pub(crate) fn limits_memory(&self, container: &ContainerName) -> bool {
        self.0.controllers.contains(&Controller::Memory)
            && self.group(container).is_some_and(|group| group.memory_limit().is_some() || container.parent().is_none())
    }

    /// Returns the statistics of a container's control group.
    pub(crate) fn usage(&self, container: &ContainerName) -> Option<GroupUse> {
        let group = self.group(container).filter(Group::exists)?;
        let mut usage = GroupUse { pressures: group.pressures(), ..GroupUse::default() };
        self.0.list.iter().for_each(|isolator| isolator.usage(container, &group, &mut usage));
        Some(usage)
    }

    /// Returns the last measured disk use of a container, if an isolator measures it.
    pub(crate) fn disk_use(&self, container: &ContainerName) -> Option<DiskUse> {
        self.0.list.iter().find_map(|isolator| isolator.disk_use(container))
    }

    /// Returns the reports about a running container of the previous agent process.
    pub(crate) fn status(&self, container: &ContainerName) -> Vec<Input> {
        let group = self.group(container);
        self.0.list.iter().filter_map(|isolator| isolator.status(container, group.as_ref())).collect()
    }

    /// Starts the tasks that watch running containers.
    pub(crate) fn watch(&self, running: &ComposingContainerizer, held: &ListContainerResources) -> Vec<JoinHandle<()>> {
        let all = self.0.list.iter();
        all.filter_map(|isolator| Arc::clone(isolator).watch(running.clone(), held.clone())).collect()
    }

    /// Releases everything that a container holds after it has ended, or could not be started. Blocks.
    pub(crate) fn cleanup(&self, container: &ContainerName) {
        self.0.list.iter().for_each(|isolator| isolator.cleanup(container));
    }
}

/// Creates the agent's own control groups; `None` with the launcher `posix`.
fn make_groups(
    isolation: &config::Isolation,
    controllers: &mut Vec<Controller>,
) -> anyhow::Result<Option<Hierarchies>> {
    if !isolation.linux {
        return Ok(None);
    }
    if !nix::unistd::geteuid().is_root() {
        let named: Vec<&str> = isolation.isolators.iter().map(String::as_str).collect();
        anyhow::bail!(
            "the launcher linux, with --isolation={}, needs root; without root use --launcher=posix and --isolation=posix/cpu,posix/mem",
            named.join(",")
        );
    }
    let groups = Hierarchies::of_this_host(&isolation.cgroups.root)?;
    if isolation.has(&["cgroups/all"]) {
        *controllers = groups.available();
    }
    controllers.insert(0, Controller::Freezer);
    groups.prepare(controllers)?;
    Ok(Some(groups))
}

/// Returns the namespaces that a process does not share with this one.
fn differing(pid: i32) -> Namespaces {
    let differs = |name: &str| {
        let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/{name}")).ok();
        of(&pid.to_string()).is_some_and(|theirs| of("self") != Some(theirs))
    };
    Namespaces {
        mount: differs("mnt"),
        pid: differs("pid"),
        ipc: differs("ipc"),
        uts: differs("uts"),
        network: differs("net"),
    }
}

fn pidfd(pid: i32) -> anyhow::Result<Arc<OwnedFd>> {
    let attached = containers::Attached::open(pid, containers::Guard::StartedBefore(base::Time::NEVER))?;
    let (_, pidfd) = attached.ok_or_else(|| anyhow::anyhow!("The parent container has ended"))?.into_parts();
    Ok(Arc::new(pidfd))
}
