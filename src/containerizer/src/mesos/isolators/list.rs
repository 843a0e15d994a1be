//! List of the isolators, in the order in which they prepare a container, and of what containers may not request
//! without one.
//!
//! The order matters for mounts, which are made in order, and where an isolator changes what another one has set.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent::ContainerSpec;
use containers::cgroups::Controller;

use super::cgroups::{
    blkio::Blkio, cpu::Cpu, devices::Devices, mem::Mem, net_cls::NetCls, perf_event::PerfEvent, pids::Pids,
};
use super::disk::du::Du;
use super::filesystem::linux::Filesystem;
use super::gpu::nvidia::{Gpus, Nvidia};
use super::linux::{capabilities::Capabilities, nnp::NoNewPrivileges, resctrl::Resctrl, seccomp::Seccomp};
use super::namespaces::{ipc::Ipc, pid::Pid};
use super::network::{cni::Cni, ports::Ports};
use super::posix::rlimits::Rlimits;
use super::{Isolator, filesystem, linux, namespaces, network};
use crate::config::{Config, FILESYSTEM, Isolation};
use crate::fetcher::Fetcher;
use crate::mesos::provisioner::Provisioner;

/// Components that isolators use.
pub(crate) struct IsolatorContext {
    pub(crate) images: Provisioner,
    pub(crate) fetcher: Fetcher,
    /// GPUs of the agent; `None` if they are not isolated.
    pub(crate) gpus: Option<Gpus>,
    /// Resources of the agent.
    pub(crate) resources: Vec<protos::mesos::Resource>,
    /// Function that returns the current time.
    pub(crate) now: Arc<dyn Fn() -> base::Time + Send + Sync>,
}

/// Arguments for the creation of isolators.
struct Setup<'a> {
    config: &'a Config,
    context: &'a IsolatorContext,
}

/// Condition under which an isolator of the list is created.
enum When {
    /// `--isolation` has one of these names.
    Named(&'static [&'static str]),
    /// Containers use this controller of control groups, which some names stand for.
    Controls(Controller),
}

use When::{Controls, Named};

type Make = fn(&Setup<'_>) -> anyhow::Result<Arc<dyn Isolator>>;

const ALL: [(When, Make); 18] = [
    (Named(&["posix/rlimits"]), |_| Ok(Arc::new(Rlimits))),
    (Named(&["linux/capabilities"]), |setup| Ok(Arc::new(Capabilities::new(&setup.config.isolation)))),
    (Named(&["linux/nnp"]), |_| Ok(Arc::new(NoNewPrivileges))),
    (Named(&["linux/seccomp"]), |setup| Ok(Arc::new(Seccomp::new(&setup.config.isolation)?))),
    (Named(&FILESYSTEM), |setup| {
        Ok(Arc::new(Filesystem::new(setup.config, setup.context.images.clone(), setup.context.fetcher.clone())))
    }),
    (Named(&["namespaces/ipc"]), |setup| Ok(Arc::new(Ipc::new(&setup.config.isolation)))),
    (Named(&["network/cni"]), |setup| Ok(Arc::new(Cni::new(setup.config)))),
    (Named(&["namespaces/pid"]), |setup| Ok(Arc::new(Pid::new(&setup.config.isolation)))),
    (Named(&["linux/devices"]), |setup| Ok(Arc::new(linux::devices::Devices::new(&setup.config.isolation.cgroups)))),
    (Named(&["linux/resctrl"]), |setup| Ok(Arc::new(Resctrl::start(&setup.context.resources)?))),
    (Controls(Controller::Cpu), |setup| Ok(Arc::new(Cpu::new(&setup.config.isolation.cgroups)))),
    (Controls(Controller::Devices), |setup| Ok(Arc::new(Devices::new(&setup.config.isolation.cgroups)))),
    (Controls(Controller::Memory), |setup| Ok(Arc::new(Mem::new(&setup.config.isolation.cgroups)))),
    (Controls(Controller::Pids), |_| Ok(Arc::new(Pids))),
    (Controls(Controller::Blkio), |_| Ok(Arc::new(Blkio))),
    // It permits more devices than cgroups/devices, so it comes later.
    (Named(&["gpu/nvidia"]), |setup| {
        let gpus = setup.context.gpus.clone().unwrap_or_default();
        Ok(Arc::new(Nvidia::new(gpus, &setup.config.isolation.cgroups)))
    }),
    (Controls(Controller::NetClass), |setup| Ok(Arc::new(NetCls::new(setup.config.isolation.cgroups.net_cls)))),
    (Controls(Controller::PerfEvent), |setup| Ok(Arc::new(PerfEvent::start(setup.config, setup.context.now.clone())?))),
];

/// Isolators that only observe containers, on any launcher.
const WATCHES: [(When, Make); 2] = [
    (Named(&["disk/du", "posix/disk"]), |setup| Ok(Arc::new(Du::new(setup.config.isolation.disk)))),
    (Named(&["network/ports"]), |setup| {
        Ok(Arc::new(Ports::new(&setup.config.isolation.ports, &setup.context.resources)))
    }),
];

/// Creates the configured isolators.
///
/// # Errors
/// What the host lacks.
pub(super) fn make(
    config: &Config,
    controllers: &[Controller],
    context: &IsolatorContext,
) -> anyhow::Result<Vec<Arc<dyn Isolator>>> {
    let setup = Setup { config, context };
    let is_wanted = |when: &When| match when {
        Named(names) => config.isolation.has(names),
        Controls(controller) => controllers.contains(controller),
    };
    let wanted = ALL.iter().chain(&WATCHES).filter(|(when, _)| is_wanted(when));
    wanted.map(|(_, make)| make(&setup)).collect()
}

/// Returns the controllers that the names of isolators stand for. `cgroups/all` stands for all that the host has.
pub(super) fn controllers(isolation: &Isolation) -> Vec<Controller> {
    CONTROLLERS.into_iter().filter(|(names, _)| isolation.has(names)).map(|(_, controller)| controller).collect()
}

const CONTROLLERS: [(&[&str], Controller); 11] = [
    (&["cgroups", "cgroups/cpu"], Controller::Cpu),
    (&["cgroups", "cgroups/cpu"], Controller::Cpuacct),
    (&["cgroups", "cgroups/mem"], Controller::Memory),
    (&["cgroups/pids"], Controller::Pids),
    (&["cgroups/blkio"], Controller::Blkio),
    (&["cgroups/cpuset"], Controller::Cpuset),
    (&["cgroups/devices"], Controller::Devices),
    (&["cgroups/hugetlb"], Controller::Hugetlb),
    (&["cgroups/net_cls"], Controller::NetClass),
    (&["cgroups/net_prio"], Controller::NetPriority),
    (&["cgroups/perf_event"], Controller::PerfEvent),
];

/// Returns the names of all supported isolators.
pub fn isolators() -> BTreeSet<&'static str> {
    let named = ALL.iter().chain(&WATCHES).filter_map(|(when, _)| match when {
        Named(names) => Some(*names),
        Controls(_) => None,
    });
    named.chain(CONTROLLERS.iter().map(|(names, _)| *names)).flatten().copied().chain(["cgroups/all"]).collect()
}

/// A request of a container that is refused without an isolator.
pub(super) struct Refusal {
    /// Names of the isolator.
    without: &'static [&'static str],
    /// Whether the request is ignored, not refused, with the launcher `posix`.
    is_linux: bool,
    pub(super) asks: fn(&ContainerSpec) -> bool,
    pub(super) why: &'static str,
}

/// All refusals: a task must not run without what it requests.
const REFUSALS: [Refusal; 6] = [
    Refusal {
        without: &FILESYSTEM,
        is_linux: false,
        asks: filesystem::linux::asks,
        why: "Volumes in ContainerInfo need the isolator filesystem/linux",
    },
    Refusal {
        without: &FILESYSTEM,
        is_linux: false,
        asks: Provisioner::are_wanted,
        why: "Container images need --image_providers=docker",
    },
    Refusal {
        without: &["network/cni"],
        is_linux: false,
        asks: network::cni::wanted,
        why: "The container's networks need the isolator network/cni",
    },
    Refusal {
        without: &["linux/capabilities"],
        is_linux: true,
        asks: linux::capabilities::asks,
        why: "Capabilities need the isolator linux/capabilities",
    },
    Refusal {
        without: &["linux/seccomp"],
        is_linux: true,
        asks: linux::seccomp::asks,
        why: "Seccomp profiles need the isolator linux/seccomp",
    },
    Refusal {
        without: &["namespaces/ipc"],
        is_linux: true,
        asks: namespaces::ipc::asks,
        why: namespaces::ipc::NEEDS_OWN,
    },
];

/// Returns the refusals with these isolators.
pub(super) fn refusals(isolation: &Isolation) -> Vec<&'static Refusal> {
    let is_missing = |refusal: &&Refusal| (isolation.linux || !refusal.is_linux) && !isolation.has(refusal.without);
    REFUSALS.iter().filter(is_missing).collect()
}

#[cfg(test)]
mod tests {
    use protos::mesos::{ContainerInfo, LinuxInfo, SeccompInfo, Volume};

    use super::*;

    #[test]
    fn what_no_isolator_gives_is_refused() {
        let refused = |names: &[&str], linux, container: ContainerInfo| {
            let isolators = names.iter().map(|name| (*name).to_owned()).collect();
            let isolation = Isolation { isolators, linux, ..Isolation::default() };
            let spec = ContainerSpec { container: Some(container), ..ContainerSpec::default() };
            refusals(&isolation).into_iter().find(|refusal| (refusal.asks)(&spec)).map(|refusal| refusal.why)
        };
        let volume = || ContainerInfo { volumes: vec![Volume::default()], ..ContainerInfo::default() };
        assert!(refused(&[], false, volume()).unwrap().contains("filesystem/linux"));
        assert_eq!(refused(&["volume/host_path"], true, volume()), None);
        let linux = LinuxInfo { seccomp: Some(SeccompInfo::default()), ..LinuxInfo::default() };
        let seccomp = || ContainerInfo { linux_info: Some(linux.clone()), ..ContainerInfo::default() };
        assert_eq!(refused(&[], false, seccomp()), None, "the launcher posix passes it over");
        assert!(refused(&[], true, seccomp()).unwrap().contains("linux/seccomp"));
        assert_eq!(refused(&["linux/seccomp"], true, seccomp()), None);
    }

    #[test]
    fn names_of_isolators_stand_for_controllers() {
        let of = |name: &str| controllers(&Isolation { isolators: [name.to_owned()].into(), ..Isolation::default() });
        assert_eq!(of("cgroups"), [Controller::Cpu, Controller::Cpuacct, Controller::Memory]);
        assert_eq!(of("cgroups/mem"), [Controller::Memory]);
        assert_eq!(of("namespaces/pid"), []);
        assert!(isolators().is_superset(&["cgroups/all", "cgroups/hugetlb", "linux/nnp", "volume/secret"].into()));
    }
}
