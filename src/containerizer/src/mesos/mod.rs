//! The Mesos containerizer: containers are processes of the agent, which isolators separate.

pub(crate) mod isolators;
pub(crate) mod provisioner;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use agent::{ContainerName, ContainerSpec, Input, Limits};
use base::lock;
use containers::Spec;
use protos::mesos::Resource;

use crate::composing::{ContainerUsage, RunningContainer};
use crate::containerizer::{Container, Containerizer, Launched};
use crate::io_switchboard::terminals;
use isolators::{Isolators, Launch};

/// The Mesos containerizer, which launches all containers that Docker does not.
pub(crate) struct MesosContainerizer {
    isolators: Isolators,
    /// Whether `--containerizers` names the Mesos containerizer.
    is_on: bool,
    live: Arc<Mutex<BTreeMap<ContainerName, RunningContainer>>>,
}

impl MesosContainerizer {
    pub(crate) fn new(
        isolators: Isolators,
        is_on: bool,
        live: Arc<Mutex<BTreeMap<ContainerName, RunningContainer>>>,
    ) -> MesosContainerizer {
        MesosContainerizer { isolators, is_on, live }
    }

    /// Returns the first process of the container whose namespaces this one shares. A session shares those of its
    /// parent; others those of the top-level container, or of the nearest one with a root file system of its own.
    fn outer_process(&self, container: &ContainerName, spec: &ContainerSpec) -> Option<i32> {
        let mut outer = container.parent()?;
        while spec.session.is_none()
            && !self.isolators.images().has_root(&outer)
            && let Some(parent) = outer.parent()
        {
            outer = parent;
        }
        lock(&self.live).get(&outer).map(|live| live.pid)
    }
}

impl Containerizer for MesosContainerizer {
    fn supports(&self, _: &ContainerSpec) -> bool {
        true
    }

    fn check(&self, spec: &ContainerSpec) -> anyhow::Result<()> {
        anyhow::ensure!(self.is_on, "This agent runs Docker containers only (--containerizers=docker)");
        self.isolators.check(spec)
    }

    fn mounts(&self) -> bool {
        self.isolators.mounts()
    }

    fn needs_provisioning(&self, spec: &ContainerSpec) -> bool {
        self.isolators.needs_provisioning(spec)
    }

    fn provision(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        fetch: &dyn Fn() -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Input>> {
        let reports = self.isolators.provision(container, spec)?;
        fetch()?;
        Ok(reports)
    }

    fn launch(&self, container: Container<'_>, process: &mut Spec) -> anyhow::Result<Launched> {
        let Container { name, spec, user } = container;
        let outer_process = self.outer_process(name, spec);
        let launch = self.isolators.prepare(isolators::Container { name, spec, user, outer_process })?;
        let Launch { isolation, rlimits, view, init, variables, group, oom, reports } = launch;
        (process.isolation, process.rlimits) = (isolation, rlimits);
        view.apply(spec, process).inspect_err(|_| crate::reaper::remove(name, group.as_ref()))?;
        process.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        let parent = name.parent().filter(|_| spec.session.is_some());
        let inside = parent.filter(|parent| self.isolators.images().is_below_root(parent));
        let outer_process = inside.and_then(|parent| lock(&self.live).get(&parent).map(|live| live.pid));
        Ok(Launched { init, subcommand: None, outer_process, group, oom, reports })
    }

    fn records_executors(&self) -> bool {
        true
    }

    fn attach(&self, spec: &ContainerSpec) -> Option<(u32, u32)> {
        terminals::wanted(spec)
    }

    fn update(&self, container: &ContainerName, held: &[Resource], limits: Limits) {
        self.isolators.update(container, held, limits);
    }

    fn usage(&self, container: &ContainerName, used: &mut ContainerUsage) {
        (used.group, used.disk) = (self.isolators.usage(container), self.isolators.disk_use(container));
    }

    fn processes(&self, container: &ContainerName) -> Vec<i32> {
        self.isolators.group(container).map(|group| group.processes()).unwrap_or_default()
    }

    fn recover<'a>(
        &'a self,
        kept: &'a BTreeSet<String>,
    ) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send + 'a>> {
        self.isolators.recover(kept);
        Box::pin(std::future::ready(Ok(())))
    }

    fn status(&self, container: &ContainerName) -> Vec<Input> {
        self.isolators.status(container)
    }

    fn needs_cleanup(&self, _: &ContainerName) -> bool {
        self.isolators.is_linux()
    }

    fn cleanup(&self, container: &ContainerName) {
        self.isolators.cleanup(container);
    }
}
