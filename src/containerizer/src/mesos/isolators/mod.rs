//! Isolators: each gives containers one thing of their own, or one limit. This file has their trait, and what all of
//! them together do to a container.
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

use crate::composing::{ComposingContainerizer, Holdings};
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
    /// The user that it runs as, if it is another one than the agent's.
    pub(crate) user: Option<&'a User>,
    /// The first process of the container whose namespaces it shares.
    pub(crate) around: Option<i32>,
}

/// What a container's first process is started with.
#[derive(Default)]
pub(crate) struct Launch {
    pub(crate) isolation: Isolation,
    pub(crate) rlimits: Vec<Rlimit>,
    /// How it sees the host's directories.
    pub(crate) view: View,
    /// Whether it needs a first process that is not its own program: that of a pid namespace gets no signal that it
    /// does not handle, and has to wait for orphans.
    pub(crate) init: bool,
    /// Variables that describe what it has.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// Its control group; none with the launcher `posix`.
    pub(crate) group: Option<Group>,
    /// Tells when it runs out of memory.
    pub(crate) oom: Option<OomWatch>,
    /// Reports about it to the agent.
    pub(crate) reports: Vec<Input>,
}

/// One isolator, in Mesos's verbs. All of them may block for as long as a system call takes; `recover`, `provide` and
/// `cleanup` for longer.
pub(crate) trait Isolator: Send + Sync {
    /// Takes back what an earlier agent has given to other containers than these outermost ones.
    fn recover(&self, _kept: &BTreeSet<String>) {}

    /// Whether [`Isolator::provide`] has something to do for a container.
    fn provides(&self, _spec: &ContainerSpec) -> bool {
        false
    }

    /// Provides what takes long, before the container is prepared. Returns a report to the agent.
    ///
    /// # Errors
    /// A request of the container that cannot be satisfied; nothing of it is left then.
    fn provide(&self, _container: &ContainerName, _spec: &ContainerSpec) -> anyhow::Result<Option<Input>> {
        Ok(None)
    }

    /// Adds to what the container's first process is started with.
    ///
    /// # Errors
    /// What the container asks for and cannot get; [`Isolator::cleanup`] takes back the rest.
    fn prepare(&self, _container: Container<'_>, _launch: &mut Launch) -> anyhow::Result<()> {
        Ok(())
    }

    /// Sets the control group of a container that has its own, before a process enters it.
    ///
    /// # Errors
    /// The system refuses.
    fn isolate(&self, _container: Container<'_>, _group: &Group, _launch: &mut Launch) -> anyhow::Result<()> {
        Ok(())
    }

    /// Sets what a running container may use from now on.
    ///
    /// # Errors
    /// What the system refuses.
    fn update(&self, _: &ContainerName, _group: &Group, _held: &[Resource], _: Limits) -> anyhow::Result<()> {
        Ok(())
    }

    /// Adds what it has counted of a container.
    fn usage(&self, _container: &ContainerName, _group: &Group, _usage: &mut GroupUse) {}

    /// The report about a running container of an earlier agent.
    fn status(&self, _container: &ContainerName, _group: Option<&Group>) -> Option<Input> {
        None
    }

    /// Watches running containers from now on, if it has to.
    fn watch(self: Arc<Self>, _running: ComposingContainerizer, _held: Holdings) -> Option<JoinHandle<()>> {
        None
    }

    /// What it has seen a container use of the disk.
    fn disk_use(&self, _container: &ContainerName) -> Option<DiskUse> {
        None
    }

    /// Takes back what a container has that has ended, or has not been started.
    fn cleanup(&self, _container: &ContainerName) {}
}

/// The isolators in force, and the host's control groups if the launcher is `linux`. Clones share them.
#[derive(Clone)]
pub(crate) struct Isolators(Arc<Inner>);

struct Inner {
    /// In the order in which they prepare a container.
    list: Vec<Arc<dyn Isolator>>,
    /// What containers may not ask for.
    refusals: Vec<&'static list::Refusal>,
    groups: Option<Hierarchies>,
    /// The controllers of containers' groups: the freezer, by which they are ended, and those of isolators.
    controllers: Vec<Controller>,
    images: Provisioner,
    mounts: bool,
}

impl Isolators {
    /// Makes the agent's own control groups and the isolators that are configured.
    ///
    /// # Errors
    /// What the host lacks.
    pub(crate) fn start(config: &Config, parts: list::Parts) -> anyhow::Result<Isolators> {
        let isolation = &config.isolation;
        let mut controllers = list::controllers(isolation);
        let groups = make_groups(isolation, &mut controllers).context("containers cannot be isolated")?;
        let (images, mounts) = (parts.images.clone(), isolation.mounts());
        let list = list::make(config, &controllers, &parts)?;
        let refusals = list::refusals(isolation);
        Ok(Isolators(Arc::new(Inner { list, refusals, groups, controllers, images, mounts })))
    }

    /// Whether containers are in control groups and namespaces.
    pub(crate) fn is_linux(&self) -> bool {
        self.0.groups.is_some()
    }

    /// Which limits tasks can have beyond what they hold.
    pub(crate) fn limitable(&self) -> agent::Limitable {
        let has = |controller| self.0.controllers.contains(&controller);
        agent::Limitable { cpus: has(Controller::Cpu), mem: has(Controller::Memory) }
    }

    /// Whether volumes are mounts, not links.
    pub(crate) fn mounts(&self) -> bool {
        self.0.mounts
    }

    /// The images that containers' roots are made of.
    pub(crate) fn images(&self) -> &Provisioner {
        &self.0.images
    }

    /// Takes back what an earlier agent has given to other containers than these outermost ones. Blocks.
    pub(crate) fn recover(&self, kept: &BTreeSet<String>) {
        self.0.list.iter().for_each(|isolator| isolator.recover(kept));
    }

    /// Refuses what needs an isolator that is not in force.
    ///
    /// # Errors
    /// Names the isolator.
    pub(crate) fn check(&self, spec: &ContainerSpec) -> anyhow::Result<()> {
        match self.0.refusals.iter().find(|refusal| (refusal.asks)(spec)) {
            Some(refusal) => anyhow::bail!(refusal.why),
            None => Ok(()),
        }
    }

    /// Whether a container needs what takes long to make ready.
    pub(crate) fn provides(&self, spec: &ContainerSpec) -> bool {
        self.0.list.iter().any(|isolator| isolator.provides(spec))
    }

    /// Provides that. Returns reports to the agent. Blocks.
    ///
    /// # Errors
    /// A request of the container that cannot be satisfied.
    pub(crate) fn provide(&self, container: &ContainerName, spec: &ContainerSpec) -> anyhow::Result<Vec<Input>> {
        let wanted = self.0.list.iter().filter(|isolator| isolator.provides(spec));
        wanted.filter_map(|isolator| isolator.provide(container, spec).transpose()).collect()
    }

    /// The group of a container that may be running.
    pub(crate) fn group(&self, container: &ContainerName) -> Option<Group> {
        self.0.groups.as_ref().map(|groups| groups.group(container.as_str()))
    }

    /// Makes ready what the container is started with.
    ///
    /// # Errors
    /// What it asks for and cannot get; no group is left then.
    pub(crate) fn prepare(&self, container: Container<'_>) -> anyhow::Result<Launch> {
        let mut launch = Launch::default();
        if self.is_linux() {
            if let Some(pid) = container.around {
                // What the outermost container has of its own, those inside it share.
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
            self.isolate(groups, &group, container, &mut launch).inspect_err(|_| drop(group.remove()))?;
            launch.group = Some(group);
        }
        Ok(launch)
    }

    /// Makes a container's group, and has isolators set it if the container does not share that of the one around it.
    fn isolate(
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

    /// Sets what a running container may use from now on.
    pub(crate) fn update(&self, container: &ContainerName, held: &[Resource], limits: Limits) {
        let Some(group) = self.group(container).filter(Group::exists) else { return };
        for isolator in &self.0.list {
            if let Err(error) = isolator.update(container, &group, held, limits) {
                tracing::warn!(%container, "{error:#}");
            }
        }
    }

    /// Whether the container's memory is limited by a group of its own.
    pub(crate) fn limits_memory(&self, container: &ContainerName) -> bool {
        self.0.controllers.contains(&Controller::Memory)
            && self.group(container).is_some_and(|group| group.memory_limit().is_some() || container.parent().is_none())
    }

    /// What a container's group has counted.
    pub(crate) fn usage(&self, container: &ContainerName) -> Option<GroupUse> {
        let group = self.group(container).filter(Group::exists)?;
        let mut usage = GroupUse { pressures: group.pressures(), ..GroupUse::default() };
        self.0.list.iter().for_each(|isolator| isolator.usage(container, &group, &mut usage));
        Some(usage)
    }

    /// What a container was last seen to use of the disk, if anything looks.
    pub(crate) fn disk_use(&self, container: &ContainerName) -> Option<DiskUse> {
        self.0.list.iter().find_map(|isolator| isolator.disk_use(container))
    }

    /// The reports about a running container of an earlier agent.
    pub(crate) fn status(&self, container: &ContainerName) -> Vec<Input> {
        let group = self.group(container);
        self.0.list.iter().filter_map(|isolator| isolator.status(container, group.as_ref())).collect()
    }

    /// Watches running containers from now on.
    pub(crate) fn watch(&self, running: &ComposingContainerizer, held: &Holdings) -> Vec<JoinHandle<()>> {
        let all = self.0.list.iter();
        all.filter_map(|isolator| Arc::clone(isolator).watch(running.clone(), held.clone())).collect()
    }

    /// Takes back what a container has that has ended, or has not been started. Blocks.
    pub(crate) fn cleanup(&self, container: &ContainerName) {
        self.0.list.iter().for_each(|isolator| isolator.cleanup(container));
    }
}

/// Makes the agent's own control groups; none with the launcher `posix`.
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

/// The namespaces that a process does not share with this one.
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
