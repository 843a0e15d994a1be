//! Configuration of the containerizer as types: paths, durations, bytes, lists and documents that are already parsed.
//!
//! It parses no text; the agent's daemon makes a [`Config`] from its flags.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use containers::cgroups::Device;
use resources::Ranges;

pub use crate::default_dns::{DefaultDns, Dns, DnsEntry};

/// Isolators that are enabled together with `filesystem/linux`, as in Mesos.
pub(crate) const FILESYSTEM: [&str; 5] =
    ["filesystem/linux", "volume/host_path", "volume/image", "volume/secret", "docker/runtime"];

/// A setting that this host does not support.
#[derive(Debug, thiserror::Error)]
#[error("flag '--{flag}': {why}")]
pub struct ConfigError {
    /// Flag of the setting.
    pub flag: &'static str,
    /// Rule that the setting breaks.
    pub why: String,
}

impl ConfigError {
    pub(crate) fn new(flag: &'static str, why: impl Into<String>) -> ConfigError {
        ConfigError { flag, why: why.into() }
    }
}

/// Configuration of the containerizer.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Work directory (`--work_dir`), which exists.
    pub work_dir: PathBuf,
    /// Runtime directory (`--runtime_dir`), for files that need not survive a reboot.
    pub runtime_dir: PathBuf,
    /// Configuration of the launcher and the isolators.
    pub isolation: Isolation,
    /// Configuration of container images.
    pub provisioner: Provisioner,
    /// Configuration of the Docker containerizer; `None` if it is disabled.
    pub docker: Option<Docker>,
    /// Configuration of the fetcher.
    pub fetcher: Fetcher,
    /// Configuration of log rotation; `None` if the output is not rotated.
    pub logger: Option<Logger>,
    /// Resolver of secrets (`--secret_resolver`).
    pub secrets: SecretResolver,
    /// Directory in which systemd searches for units, if executors run in a slice of their own.
    pub systemd: Option<PathBuf>,
    /// Default name servers of containers (`--default_container_dns`).
    pub dns: DefaultDns,
    /// Logins to registries, in the format of Docker's configuration file (`--docker_config`).
    pub docker_config: String,
}

/// Configuration of the launcher and the isolators (`--launcher`, `--isolation`).
#[derive(Clone, Debug, Default)]
pub struct Isolation {
    /// Whether the launcher is `linux`, with control groups and namespaces.
    pub linux: bool,
    /// Names of the enabled isolators (`--isolation`); all of them are known.
    pub isolators: BTreeSet<String>,
    /// Configuration of the `cgroups` isolators.
    pub cgroups: Cgroups,
    /// Whether containers may not share the agent's pid namespace (`--disallow_sharing_agent_pid_namespace`).
    pub no_agent_pid: bool,
    /// Whether containers may not share the agent's IPC namespace (`--disallow_sharing_agent_ipc_namespace`).
    pub no_agent_ipc: bool,
    /// Default size of `/dev/shm` in bytes (`--default_container_shm_size`).
    pub shm_size: Option<u64>,
    /// Default effective capabilities as a bit set (`--effective_capabilities`).
    pub effective: Option<u64>,
    /// Default bounding capabilities as a bit set (`--bounding_capabilities`).
    pub bounding: Option<u64>,
    /// Directory of seccomp profiles (`--seccomp_config_dir`).
    pub seccomp_profiles: Option<PathBuf>,
    /// Name of the default seccomp profile (`--seccomp_profile_name`).
    pub seccomp_default: Option<String>,
    /// Directories below which missing host paths of volumes are created (`--host_path_volume_force_creation`).
    pub force_creation: Vec<PathBuf>,
    /// Configuration of CNI networks; `None` without the isolator `network/cni`.
    pub cni: Option<Cni>,
    /// GPUs that are allocated as a whole (`--nvidia_gpu_devices`); empty: all that are not shared.
    pub gpus: Vec<u32>,
    /// GPUs that containers share (`--gpu_share_devices`).
    pub shared_gpus: Vec<u32>,
    /// Configuration of the isolator `network/ports`.
    pub ports: Ports,
    /// Configuration of the isolator `disk/du`.
    pub disk: Disk,
}

impl Isolation {
    /// Returns whether one of these isolators is enabled.
    pub fn has(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.isolators.contains(*name))
    }

    /// Returns whether volumes are mounted; otherwise they are symbolic links.
    pub fn mounts(&self) -> bool {
        self.has(&FILESYSTEM)
    }
}

/// Configuration of the `cgroups` isolators.
#[derive(Clone, Debug, Default)]
pub struct Cgroups {
    /// Parent of the containers' control groups (`--cgroups_root`).
    pub root: String,
    /// Whether CPU quotas are set (`--cgroups_enable_cfs`).
    pub enable_cfs: bool,
    /// Whether swap is limited too (`--cgroups_limit_swap`).
    pub limit_swap: bool,
    /// Whether containers with revocable CPUs have a low priority (`--revocable_cpu_low_priority`).
    pub revocable_low: bool,
    /// Devices that containers may access (`--allowed_devices`).
    pub devices: Vec<Device>,
    /// Those of the devices that are below `/dev`, as files for `linux/devices`.
    pub device_files: Vec<DeviceFile>,
    /// Range of network class handles; `None`: containers get none.
    pub net_cls: Option<NetCls>,
    /// Configuration of `perf` sampling; `None` if it is disabled.
    pub perf: Option<Perf>,
}

/// A device file that is created in containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFile {
    /// Path below `/dev`.
    pub path: PathBuf,
    /// Whether it is a block device; otherwise it is a character device.
    pub is_block: bool,
    /// Device number: major and minor, as the system combines them.
    pub number: u64,
    /// Permission bits of the file.
    pub mode: u32,
}

/// Range of network class handles (`--cgroups_net_cls_primary_handle` and `--cgroups_net_cls_secondary_handles`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetCls {
    /// Primary handle of all classes.
    pub primary: u16,
    /// First secondary handle.
    pub first: u16,
    /// Last secondary handle.
    pub last: u16,
}

/// Configuration of `perf` sampling (`--perf_events`, `--perf_interval` and `--perf_duration`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Perf {
    /// Names of the events to count; [`crate::is_perf_event`] accepts all of them.
    pub events: Vec<String>,
    /// Time from the start of one sample to that of the next.
    pub interval: Duration,
    /// Duration of a sample, at most `interval`.
    pub duration: Duration,
}

/// Configuration of CNI networks (`--network_cni_config_dir` and `--network_cni_plugins_dir`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cni {
    /// Directory of network configurations.
    pub configs: PathBuf,
    /// Directories of plugins, separated by colons.
    pub plugins: String,
}

/// Configuration of the isolator `network/ports`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ports {
    /// Interval between checks (`--container_ports_watch_interval`).
    pub interval: Duration,
    /// Whether containers that use other ports are destroyed (`--enforce_container_ports`).
    pub enforce: bool,
    /// Ports that are checked.
    pub within: PortRange,
}

/// Range of ports that are checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PortRange {
    /// All ports.
    #[default]
    All,
    /// Ports that are resources of the agent (`--check_agent_port_range_only`).
    Agents,
    /// Ports in these ranges (`--container_ports_isolated_range`).
    Only(Ranges),
}

/// Configuration of the isolator `disk/du`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// Interval between measurements (`--container_disk_watch_interval`).
    pub interval: Duration,
    /// Whether containers that exceed their disk are destroyed (`--enforce_container_disk_quota`).
    pub enforce: bool,
}

/// Configuration of container images.
#[derive(Clone, Debug, Default)]
pub struct Provisioner {
    /// Whether Docker images are enabled (`--image_providers`).
    pub enabled: bool,
    /// Registry of images (`--docker_registry`), without `file://`.
    pub registry: String,
    /// Directory of the image store (`--docker_store_dir`).
    pub store: PathBuf,
    /// Name of the backend that builds root file systems (`--image_provisioner_backend`).
    pub backend: String,
    /// Whether the runtime configuration of images is ignored (`--docker_ignore_runtime`).
    pub ignore_runtime: bool,
    /// Path of the sandbox inside a container with a root file system of its own (`--sandbox_directory`).
    pub sandbox: String,
    /// Configuration of image garbage collection (`--image_gc_config`); `None` if it is disabled.
    pub gc: Option<ImageGc>,
}

/// Configuration of image garbage collection.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageGc {
    /// Part of the disk that is to stay free, 0 to 1.
    pub headroom: f64,
    /// Interval between checks of the disk.
    pub interval: Duration,
    /// Names of images that are never deleted.
    pub excluded: Vec<String>,
}

/// Configuration of the Docker containerizer.
#[derive(Clone, Debug, Default)]
pub struct Docker {
    /// Path of the daemon's socket (`--docker_socket`), without `unix://`.
    pub socket: String,
    /// Path of the sandbox inside containers (`--sandbox_directory`).
    pub sandbox: String,
    /// Whether CPU quotas are set (`--cgroups_enable_cfs`).
    pub enable_cfs: bool,
    /// Text of `--docker_stop_timeout`; `None` if it is not set or zero.
    pub stop_timeout: Option<String>,
    /// Time for which containers of ended tasks are kept (`--docker_remove_delay`).
    pub remove_delay: Duration,
    /// Whether unknown containers of the previous agent process are killed (`--docker_kill_orphans`).
    pub kill_orphans: bool,
    /// Image of the agent's own container (`--docker_mesos_image`); `None` if the agent runs in none.
    pub mesos_image: Option<String>,
    /// Whether Docker is the only containerizer.
    pub alone: bool,
}

/// Configuration of the fetcher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetcher {
    /// Directory of the cache (`--fetcher_cache_dir`).
    pub cache_dir: PathBuf,
    /// Size of the cache in bytes (`--fetcher_cache_size`); zero: there is no cache.
    pub cache_size: u64,
    /// Directory for relative paths of URIs (`--frameworks_home`).
    pub frameworks_home: String,
    /// Directory of Hadoop (`--hadoop_home`).
    pub hadoop_home: String,
    /// Time without progress after which a download fails (`--fetcher_stall_timeout`).
    pub stall: Duration,
    /// TLS configuration for hosts of the cluster.
    pub tls: FetcherTls,
}

/// Hosts whose certificates the fetcher verifies with an authority of its own, and to which it presents a client
/// certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetcherTls {
    /// Host names, separated by commas (`--fetcher_tls_hosts`).
    pub hosts: String,
    /// File of the certificate authority; `None`: those of the system.
    pub ca_file: Option<PathBuf>,
    /// File of the client certificate.
    pub cert_file: Option<PathBuf>,
    /// File of the certificate's private key.
    pub key_file: Option<PathBuf>,
}

/// Rule for the rotation of `stdout` or `stderr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name of the file.
    pub name: &'static str,
    /// Maximum size in bytes.
    pub most: u64,
    /// Number of older parts that are kept.
    pub keep: u32,
}

/// Configuration of log rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logger {
    /// Default rules for `stdout` and `stderr`.
    pub rules: [Rule; 2],
    /// Prefix of environment variables by which a container changes the rules for its own output.
    pub prefix: String,
}

/// Resolver of secrets that are given by reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SecretResolver {
    /// There is no resolver.
    #[default]
    None,
    /// Reads files named after the secrets: `<directory>/<name>`, or `<directory>/<name>/<key>`.
    Directory(PathBuf),
    /// Runs a program with the secret's name, and its key if there is one. The program prints the value.
    Program(PathBuf),
}
