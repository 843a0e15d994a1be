//! What an operator can configure, as types: paths, durations, bytes, lists and documents that are read already.
//!
//! It parses no text; the agent's daemon makes a [`Config`] from its flags.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use containers::cgroups::Device;
use resources::Ranges;

pub use crate::default_dns::{DefaultDns, Dns, DnsEntry};

/// Names of one isolator: the others come with `filesystem/linux`, as with Mesos.
pub(crate) const FILESYSTEM: [&str; 5] =
    ["filesystem/linux", "volume/host_path", "volume/image", "volume/secret", "docker/runtime"];

/// A setting that this host cannot give.
#[derive(Debug, thiserror::Error)]
#[error("flag '--{flag}': {why}")]
pub struct Refused {
    /// The flag that has it.
    pub flag: &'static str,
    /// The rule that it breaks.
    pub why: String,
}

impl Refused {
    pub(crate) fn new(flag: &'static str, why: impl Into<String>) -> Refused {
        Refused { flag, why: why.into() }
    }
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `--work_dir`, which exists.
    pub work_dir: PathBuf,
    /// `--runtime_dir`: for what need not survive a reboot.
    pub runtime_dir: PathBuf,
    /// How containers are kept apart.
    pub isolation: Isolation,
    /// Container images.
    pub provisioner: Provisioner,
    /// The Docker containerizer, if it is in force.
    pub docker: Option<Docker>,
    /// Fetching URIs.
    pub fetcher: Fetcher,
    /// How the output of containers is rotated, if it is.
    pub logger: Option<Logger>,
    /// `--secret_resolver`
    pub secrets: SecretResolver,
    /// Where systemd looks for units, if executors are to be in a slice of their own.
    pub systemd: Option<PathBuf>,
    /// `--default_container_dns`
    pub dns: DefaultDns,
    /// `--docker_config`: logins to registries, as Docker's own configuration file has them.
    pub docker_config: String,
}

/// `--launcher`, `--isolation` and the settings of isolators.
#[derive(Clone, Debug, Default)]
pub struct Isolation {
    /// Whether the launcher is `linux`: with control groups and namespaces.
    pub linux: bool,
    /// The isolators that `--isolation` names; all of them are known ones.
    pub isolators: BTreeSet<String>,
    /// Control groups.
    pub cgroups: Cgroups,
    /// `--disallow_sharing_agent_pid_namespace`
    pub no_agent_pid: bool,
    /// `--disallow_sharing_agent_ipc_namespace`
    pub no_agent_ipc: bool,
    /// `--default_container_shm_size`, in bytes.
    pub shm_size: Option<u64>,
    /// `--effective_capabilities`, as a set of bits.
    pub effective: Option<u64>,
    /// `--bounding_capabilities`, as a set of bits.
    pub bounding: Option<u64>,
    /// `--seccomp_config_dir`
    pub seccomp_profiles: Option<PathBuf>,
    /// `--seccomp_profile_name`
    pub seccomp_default: Option<String>,
    /// `--host_path_volume_force_creation`
    pub force_creation: Vec<PathBuf>,
    /// Networks of containers, if `network/cni` is in force.
    pub cni: Option<Cni>,
    /// `--nvidia_gpu_devices`: the devices that are given as a whole; without any, all that are not shared.
    pub gpus: Vec<u32>,
    /// `--gpu_share_devices`
    pub shared_gpus: Vec<u32>,
    /// `network/ports`
    pub ports: Ports,
    /// `disk/du`
    pub disk: Disk,
}

impl Isolation {
    /// Whether one of these isolators is in force.
    pub fn has(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.isolators.contains(*name))
    }

    /// Whether volumes are mounts, not links.
    pub fn mounts(&self) -> bool {
        self.has(&FILESYSTEM)
    }
}

/// The settings of `cgroups/...`.
#[derive(Clone, Debug, Default)]
pub struct Cgroups {
    /// `--cgroups_root`
    pub root: String,
    /// `--cgroups_enable_cfs`
    pub enable_cfs: bool,
    /// `--cgroups_limit_swap`
    pub limit_swap: bool,
    /// `--revocable_cpu_low_priority`
    pub revocable_low: bool,
    /// `--allowed_devices`
    pub devices: Vec<Device>,
    /// Those of them that are below `/dev`, as files for `linux/devices`.
    pub device_files: Vec<DeviceFile>,
    /// The handles of network classes; none are given without.
    pub net_cls: Option<NetCls>,
    /// What `perf` counts, if it does.
    pub perf: Option<Perf>,
}

/// A device as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFile {
    /// Its path below `/dev`.
    pub path: PathBuf,
    /// Whether it is a block device; a character device otherwise.
    pub is_block: bool,
    /// Major and minor number, as the system combines them.
    pub number: u64,
    /// Who may read and write it.
    pub mode: u32,
}

/// `--cgroups_net_cls_primary_handle` and `--cgroups_net_cls_secondary_handles`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetCls {
    /// The primary handle of all classes.
    pub primary: u16,
    /// The first secondary handle.
    pub first: u16,
    /// The last secondary handle.
    pub last: u16,
}

/// `--perf_events`, `--perf_interval` and `--perf_duration`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perf {
    /// Events that [`is_perf_event`] knows.
    pub events: Vec<String>,
    /// From the start of one sample to that of the next.
    pub interval: Duration,
    /// How long a sample is, at most `interval`.
    pub duration: Duration,
}

/// `--network_cni_config_dir` and `--network_cni_plugins_dir`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cni {
    /// Where networks are configured.
    pub configs: PathBuf,
    /// The directories of plugins, with colons in between.
    pub plugins: String,
}

/// The settings of `network/ports`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ports {
    /// `--container_ports_watch_interval`
    pub interval: Duration,
    /// `--enforce_container_ports`
    pub enforce: bool,
    /// The ports that matter.
    pub within: PortRange,
}

/// Which ports are examined.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PortRange {
    /// All.
    #[default]
    All,
    /// Those that are resources of the agent (`--check_agent_port_range_only`).
    Agents,
    /// `--container_ports_isolated_range`
    Only(Ranges),
}

/// The settings of `disk/du`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// `--container_disk_watch_interval`
    pub interval: Duration,
    /// `--enforce_container_disk_quota`
    pub enforce: bool,
}

/// Container images.
#[derive(Clone, Debug, Default)]
pub struct Provisioner {
    /// Whether `--image_providers` names docker.
    pub enabled: bool,
    /// `--docker_registry`, without `file://`.
    pub registry: String,
    /// `--docker_store_dir`
    pub store: PathBuf,
    /// `--image_provisioner_backend`
    pub backend: String,
    /// `--docker_ignore_runtime`
    pub ignore_runtime: bool,
    /// `--sandbox_directory`: where a container with a root of its own finds its sandbox.
    pub sandbox: String,
    /// `--image_gc_config`
    pub gc: Option<ImageGc>,
}

/// When images are deleted, and which never are.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageGc {
    /// The part of the disk that is to stay free, 0 to 1.
    pub headroom: f64,
    /// Interval between checks of the disk.
    pub interval: Duration,
    /// Images that are kept.
    pub excluded: Vec<String>,
}

/// The Docker containerizer.
#[derive(Clone, Debug, Default)]
pub struct Docker {
    /// `--docker_socket`, without `unix://`.
    pub socket: String,
    /// `--sandbox_directory`
    pub sandbox: String,
    /// `--cgroups_enable_cfs`
    pub enable_cfs: bool,
    /// `--docker_stop_timeout` as text, if it is set and not zero.
    pub stop_timeout: Option<String>,
    /// `--docker_remove_delay`: how long the containers of ended tasks are kept.
    pub remove_delay: Duration,
    /// `--docker_kill_orphans`
    pub kill_orphans: bool,
    /// `--docker_mesos_image`: what this agent's own container is made from, if it is in one.
    pub mesos_image: Option<String>,
    /// Whether it is the only containerizer.
    pub alone: bool,
}

/// Fetching URIs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetcher {
    /// `--fetcher_cache_dir`
    pub cache_dir: PathBuf,
    /// `--fetcher_cache_size`, in bytes; zero: there is no cache.
    pub cache_size: u64,
    /// `--frameworks_home`
    pub frameworks_home: String,
    /// `--hadoop_home`
    pub hadoop_home: String,
    /// `--fetcher_stall_timeout`
    pub stall: Duration,
    /// Hosts of `https://` URIs that are of the cluster.
    pub tls: FetcherTls,
}

/// Hosts whose servers the fetcher verifies by an authority of its own, and to which it shows a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetcherTls {
    /// `--fetcher_tls_hosts`, separated by commas.
    pub hosts: String,
    /// The authority; without it those of the system.
    pub ca_file: Option<PathBuf>,
    /// The certificate.
    pub cert_file: Option<PathBuf>,
    /// Its key.
    pub key_file: Option<PathBuf>,
}

/// How one of the two files is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The file.
    pub name: &'static str,
    /// The most bytes that it may have.
    pub most: u64,
    /// How many older parts are kept.
    pub keep: u32,
}

/// The logger that rotates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logger {
    /// How `stdout` and `stderr` are rotated.
    pub rules: [Rule; 2],
    /// How the names of variables begin that are about a container's own output.
    pub prefix: String,
}

/// Resolver of secrets that are given by reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SecretResolver {
    /// Nothing does.
    #[default]
    None,
    /// Files by their names: `<directory>/<name>`, or `<directory>/<name>/<key>`.
    Directory(PathBuf),
    /// A program that is given a name, and a key if there is one, and prints the value.
    Program(PathBuf),
}
