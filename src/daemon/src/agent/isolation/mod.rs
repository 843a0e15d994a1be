//! What keeps containers apart: the isolators that `--isolation` names, as one container gets them.
//!
//! `flags.rs` reads the flags, `group.rs` is about control groups, `volumes.rs` about mounts, `rights.rs` about
//! capabilities, `seccomp.rs` about system calls, `cni/` about networks. Starting and waiting is `containers.rs`.

mod classes;
mod cni;
mod flags;
mod gpu_driver;
mod gpus;
mod group;
mod perf;
mod resctrl;
mod rights;
mod seccomp;
mod shortages;
mod view;
mod volumes;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use agent::{ContainerName, ContainerSpec, Limits};
use containers::User;
use containers::cgroups::{Controller, Group, Hierarchies, OomWatch};
use containers::isolation::{Isolation, Mount, Namespaces};

pub(super) use classes::Classes;
pub(super) use cni::Networks;
pub(super) use flags::Isolators;
pub(super) use gpus::Gpus;
pub(super) use group::{GroupUse, out_of_memory};
pub(super) use perf::Perf;
pub(super) use resctrl::Resctrl;
pub(super) use shortages::Shortages;
use view::View;

use super::docker::Docker;
use super::images::Images;

/// The isolators in force, and the host's control groups if the launcher is `linux`.
#[derive(Clone, Debug)]
pub(super) struct Isolator {
    isolators: Arc<Isolators>,
    groups: Option<Hierarchies>,
    parts: Parts,
}

/// Isolators with a state of their own.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) images: Images,
    pub(super) networks: Networks,
    pub(super) gpus: Gpus,
    pub(super) resctrl: Resctrl,
    pub(super) classes: Classes,
    pub(super) perf: Perf,
    pub(super) shortages: Shortages,
}

/// What a container is started with.
pub(super) struct Isolated {
    pub(super) isolation: Isolation,
    /// Its control group; none with the launcher `posix`.
    pub(super) group: Option<Group>,
    /// Tells when it runs out of memory.
    pub(super) oom: Option<OomWatch>,
    /// Whether it needs a first process that is not its own program: that of a pid namespace gets no signal that it
    /// does not handle, and has to wait for orphans.
    pub(super) init: bool,
    /// How it sees the host's folders.
    pub(super) view: View,
    /// Variables that tell it what it has.
    pub(super) variables: Vec<(&'static str, String)>,
    /// What its packets are marked with.
    pub(super) class: Option<u32>,
}

impl Isolator {
    /// Makes the agent's own control groups.
    ///
    /// # Errors
    /// What the host lacks.
    pub(super) fn start(mut isolators: Isolators, parts: Parts) -> anyhow::Result<Isolator> {
        let groups = match isolators.linux {
            true => {
                anyhow::ensure!(
                    nix::unistd::geteuid().is_root(),
                    "the launcher linux needs root; use --launcher=posix"
                );
                let groups = Hierarchies::of_this_host(&isolators.root)?;
                if isolators.all_controllers {
                    isolators.controllers = groups.available();
                }
                groups.prepare(&isolators.with_freezer())?;
                Some(groups)
            }
            false => None,
        };
        Ok(Isolator { isolators: Arc::new(isolators), groups, parts })
    }

    /// Whether containers are in control groups and namespaces.
    pub(super) fn is_linux(&self) -> bool {
        self.groups.is_some()
    }

    /// Which limits tasks can have beyond what they hold.
    pub(super) fn limitable(&self) -> agent::Limitable {
        let isolators = &self.isolators;
        agent::Limitable { cpus: isolators.has(Controller::Cpu), mem: isolators.has(Controller::Memory) }
    }

    /// Whether volumes are mounts, not links.
    pub(super) fn mounts(&self) -> bool {
        self.isolators.mounts
    }

    /// The images that containers' roots are made of.
    pub(super) fn images(&self) -> &Images {
        &self.parts.images
    }

    /// The networks that containers can be connected to.
    pub(super) fn networks(&self) -> &Networks {
        &self.parts.networks
    }

    /// Deletes what was made for a container that has ended.
    pub(super) fn clean_up(&self, container: &ContainerName) {
        self.parts.networks.disconnect(container);
        self.take_back(container);
        self.parts.images.remove(container);
        super::secrets::remove(&self.isolators.secrets, container);
    }

    /// Takes back what is counted, of a container that has ended, or has not been started.
    pub(super) fn take_back(&self, container: &ContainerName) {
        self.parts.gpus.take_back(container.as_str());
        self.parts.resctrl.take_back(container.as_str());
        self.parts.classes.take_back(container.as_str());
        self.parts.shortages.take_back(container.as_str());
    }

    /// Deletes what an earlier agent has made for others than these outermost containers.
    pub(super) fn clean(&self, wanted: &std::collections::BTreeSet<String>) {
        if self.is_linux() {
            self.parts.gpus.clean(wanted);
            self.parts.resctrl.clean(wanted);
            let (networks, known) = (self.parts.networks.clone(), wanted.clone());
            tokio::task::spawn_blocking(move || networks.clean(&known));
            self.parts.images.clean(wanted);
        }
    }

    /// Whether containers get the resource limits that they ask for.
    pub(super) fn limits(&self) -> bool {
        self.isolators.rlimits
    }

    /// The group of a container that may be running.
    pub(super) fn group(&self, container: &ContainerName) -> Option<Group> {
        self.groups.as_ref().map(|groups| groups.group(container.as_str()))
    }

    /// Makes ready what the container is started with. `around` is the first process of the outermost container around it.
    ///
    /// # Errors
    /// What it asks for and cannot get; nothing of it is left then.
    pub(super) fn isolate(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        user: Option<&User>,
        around: Option<i32>,
    ) -> anyhow::Result<Isolated> {
        let Some(groups) = self.groups.as_ref().filter(|_| !Docker::runs(spec)) else {
            let nothing = Isolation::default();
            let view = View::default();
            return Ok(Isolated {
                isolation: nothing,
                group: None,
                oom: None,
                init: false,
                view,
                variables: Vec::new(),
                class: None,
            });
        };
        let mut isolation = self.isolators.rights(spec)?;
        self.add_namespaces(&mut isolation, spec, around)?;
        let view = View::of(&self.parts.images, container, spec)?;
        if container.parent().is_none() || !spec.volumes.is_empty() || spec.container.is_some() {
            let (isolators, images) = (&*self.isolators, &self.parts.images);
            let wanted = volumes::Wanted { isolators, images, container, spec, user, view: &view };
            wanted.add(&mut isolation)?;
        }
        if let Some(network) = self.parts.networks.open(container)? {
            network.enter(&mut isolation, &view);
        }
        view.enter(spec, &mut isolation);
        if isolation.namespaces.pid && isolation.root.is_none() {
            isolation.mounts.push(Mount::Processes { target: "/proc".into() });
        }
        let init = isolation.namespaces.pid && spec.argv.get(1).is_none_or(|word| word != "executor");
        let gpus = match container.parent() {
            None => {
                isolation.tasks = self.parts.resctrl.give(container, &spec.resources)?;
                self.parts.gpus.give(container, &spec.resources)?
            }
            // What is inside has what the outermost one has.
            Some(_) => self.parts.gpus.of(&container.root()),
        };
        if let (Some(_), Some(root)) = (&gpus, view.root()) {
            gpu_driver::add(root, &mut isolation)?;
        }
        let variables = gpus.as_ref().map(gpus::Held::variables).unwrap_or_default();
        let group = groups.group(container.as_str());
        let made = self.enter_group(groups, &group, container, spec, &mut isolation);
        let made = made.and_then(|oom| {
            self.allow(&group, container, gpus.as_ref())?;
            Ok((oom, self.mark(&group, container)?))
        });
        let (oom, class) = made.inspect_err(|_| {
            let _ = group.remove();
        })?;
        Ok(Isolated { isolation, group: Some(group), oom, init, view, variables, class })
    }

    /// The GPUs of a container that Docker runs, in the words of its executor (`executor::docker::DEVICES`).
    ///
    /// # Errors
    /// More than there is left.
    pub(super) fn gpus_for_docker(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
    ) -> anyhow::Result<Option<String>> {
        if !Docker::runs(spec) {
            return Ok(None);
        }
        self.parts.gpus.give_docker(container, &spec.resources)
    }

    /// Marks what an outermost container sends; those inside it send as it does.
    fn mark(&self, group: &Group, container: &ContainerName) -> anyhow::Result<Option<u32>> {
        let own = container.parent().is_none() && self.isolators.has(Controller::NetClass);
        let class = if own { self.parts.classes.give(container)? } else { None };
        if let Some(class) = class {
            group.set_net_class(class)?;
        }
        Ok(class)
    }

    /// What the packets of a container of an earlier agent are marked with.
    pub(super) fn class_again(&self, container: &ContainerName) -> Option<u32> {
        let group = self.group(container).filter(|_| self.parts.classes.are_given())?;
        let class = group.net_class()?;
        self.parts.classes.note(container, class);
        Some(class)
    }

    /// Lets a container with a group of its own open its GPUs.
    fn allow(&self, group: &Group, container: &ContainerName, gpus: Option<&gpus::Held>) -> anyhow::Result<()> {
        let Some(held) = gpus.filter(|_| container.parent().is_none() && self.isolators.has(Controller::Devices))
        else {
            return Ok(());
        };
        let mut devices = self.isolators.devices.clone();
        devices.extend(self.parts.gpus.devices(held)?);
        Ok(group.allow_devices(&devices)?)
    }

    fn enter_group(
        &self,
        groups: &Hierarchies,
        group: &Group,
        container: &ContainerName,
        spec: &ContainerSpec,
        isolation: &mut Isolation,
    ) -> anyhow::Result<Option<OomWatch>> {
        let all = self.isolators.with_freezer();
        let linux = spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
        let shares = container.parent().is_some() && linux.is_none_or(|linux| linux.share_cgroups());
        let own: Vec<Controller> = if shares { vec![Controller::Freezer] } else { all.clone() };
        group.create(&own)?;
        let shared: Vec<Controller> = if shares { all[1..].to_vec() } else { Vec::new() };
        isolation.cgroup = Some(group.entry(&own, &shared, &groups.group(container.root().as_str()))?);
        if shares {
            return Ok(None);
        }
        group::set_first(&self.isolators, group, &spec.resources, spec.limits, isolation)
    }

    fn add_namespaces(
        &self,
        isolation: &mut Isolation,
        spec: &ContainerSpec,
        around: Option<i32>,
    ) -> anyhow::Result<()> {
        if let Some(pid) = around {
            // What the outermost container has of its own, those inside it share.
            isolation.enter_which = differing(pid);
            isolation.enter = isolation.enter_which.any().then(|| pidfd(pid)).transpose()?;
            return Ok(());
        }
        let linux = spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
        let pid = self.isolators.pid && !linux.is_some_and(|linux| linux.share_pid_namespace());
        let ipc = self.isolators.ipc && !volumes::shares_ipc(linux);
        anyhow::ensure!(
            pid || !(self.isolators.pid && self.isolators.no_agent_pid),
            "Sharing the agent's pid namespace is not allowed (--disallow_sharing_agent_pid_namespace)"
        );
        anyhow::ensure!(
            ipc || !(self.isolators.ipc && self.isolators.no_agent_ipc),
            "Sharing the agent's ipc namespace is not allowed (--disallow_sharing_agent_ipc_namespace)"
        );
        let hostname = spec.container.as_ref().and_then(|container| container.hostname.clone());
        isolation.hostname = hostname.filter(|_| self.isolators.mounts);
        isolation.namespaces = Namespaces {
            mount: self.isolators.mounts || pid || ipc,
            pid,
            ipc,
            uts: isolation.hostname.is_some(),
            network: false,
        };
        Ok(())
    }

    /// Sets what a running container may use from now on.
    pub(super) fn resize(&self, container: &ContainerName, held: &[protos::mesos::Resource], limits: Limits) {
        let Some(group) = self.group(container).filter(Group::exists) else { return };
        if let Err(error) = group::set_again(&self.isolators, &group, held, limits) {
            tracing::warn!(%container, "{:#}", anyhow::Error::from(error));
        }
        let gpus = self.parts.gpus.give(container, held);
        if let Err(error) = gpus.and_then(|gpus| self.allow(&group, container, gpus.as_ref())) {
            tracing::warn!(%container, "{error:#}");
        }
    }

    /// Whether the container's memory is limited by a group of its own.
    pub(super) fn limits_memory(&self, container: &ContainerName) -> bool {
        self.isolators.has(Controller::Memory)
            && self.group(container).is_some_and(|group| group.memory_limit().is_some() || container.parent().is_none())
    }

    /// What a container's group has counted.
    pub(super) fn used(&self, container: &ContainerName) -> Option<GroupUse> {
        let group = self.group(container).filter(Group::exists)?;
        let used = group::used(&self.isolators, &group);
        // Containers that share another one's group have nothing of their own to be short of.
        let shortages = used.memory.and_then(|_| self.parts.shortages.of(container.as_str(), &group));
        Some(GroupUse { perf: self.parts.perf.of(container), shortages, ..used })
    }
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
