//! The flags of `tepui agent`: names, types, defaults and help, as of Mesos 1.11.
//!
//! Rules that need more than one value are checked by the readers.

use std::path::PathBuf;
use std::time::Duration;

use super::shared::{AuditFlags, LoggingFlags, NetworkFlags, TlsFlags};
use super::spec::{Address, Bytes, Flag, Group, Json, Kind, flags};
use super::{FlagError, Flags};

flags! {
    /// What the agent registers with, and its directories.
    NodeFlags {
        /// Port to listen on; part of the agent's info
        port: u64 = "5051",
        /// Directory of the agent's state and sandboxes; required
        work_dir: Option<PathBuf>,
        /// Directory for state that must not survive a reboot
        runtime_dir: Option<PathBuf>,
        /// Attributes of the agent, such as rack:r1;zone:a
        attributes: Option<String>,
        /// Fault domain as JSON
        domain: Option<Json>,
        /// Role of resources that name none
        default_role: String = "*",
        /// Resources of the agent, as text or JSON
        resources: Option<String>,
        /// How resources and attributes may change at recovery: equal or additive
        reconfiguration_policy: String = "equal",
        /// Capabilities of the agent, as JSON: {"capabilities": [{"type": ...}]}; only RESIZE_VOLUME may be left out
        agent_features: Option<Json>,
    }
}

flags! {
    /// Finding the master, and registering with it.
    RegistrationFlags {
        /// Host:port, a list h1:port,h2:port, zk://[user:password@]host:port,.../path, or file:// with one of these
        master: Option<Address>,
        /// Name of the module that detects the master
        master_detector: Option<String>,
        /// Timeout of the ZooKeeper session
        zk_session_timeout: Duration = "10secs",
        /// Longest random wait before the first registration
        registration_backoff_factor: Duration = "1secs",
        /// File with the agent's credential, as JSON
        credential: Option<PathBuf>,
        /// Factor of the retry spread of authentication: min + factor×2^n
        authentication_backoff_factor: Duration = "1secs",
        /// Timeout of the first authentication attempt
        authentication_timeout_min: Duration = "5secs",
        /// Upper bound of the timeout of authentication attempts
        authentication_timeout_max: Duration = "1mins",
    }
}

flags! {
    /// Who may call the agent, and what they may do.
    AccessFlags {
        /// Access control lists as JSON, or a file that contains them
        acls: Option<Json>,
        /// Authorizer
        authorizer: String = "local",
        /// Require executors to authenticate
        authenticate_http_executors: bool = "false",
        /// Require authentication for the realm mesos-agent-readonly
        authenticate_http_readonly: bool = "false",
        /// Require authentication for the realm mesos-agent-readwrite
        authenticate_http_readwrite: bool = "false",
        /// File with the users of HTTP basic authentication
        http_credentials: Option<PathBuf>,
        /// File with the key that signs executors' tokens
        jwt_secret_key (executor_secret_key): Option<PathBuf>,
        /// Interval of heartbeats on attach streams
        http_heartbeat_interval: Duration = "30secs",
    }
}

flags! {
    /// Executors and their recovery.
    ExecutorFlags {
        /// What to do with executors of an earlier run: reconnect or cleanup
        recover: String = "reconnect",
        /// Time that executors wait for an agent that is away
        recovery_timeout: Duration = "15mins",
        /// Refuse to start if a checkpoint is damaged
        strict: bool = "true",
        /// Base environment of executors, as JSON
        executor_environment_variables: Option<Json>,
        /// Time from an executor's launch within which it must register
        executor_registration_timeout: Duration = "1mins",
        /// Interval of attempts of v0 executors to reregister
        executor_reregistration_retry_interval: Option<Duration>,
        /// Time within which executors must reregister after a restart of the agent; at most 15secs
        executor_reregistration_timeout: Duration = "2secs",
        /// Time that an executor has to end
        executor_shutdown_grace_period: Duration = "5secs",
        /// Default ContainerInfo, as JSON
        default_container_info: Option<Json>,
        /// Run command executors over the HTTP API
        http_command_executor: bool = "false",
        /// Run tasks as the user of the framework or command
        switch_user: bool = "true",
        /// Number of completed executors to keep for each framework
        max_completed_executors_per_framework: u64 = "150",
    }
}

flags! {
    /// Garbage collection of sandboxes and checkpoints.
    GcFlags {
        /// Age at which sandboxes are removed
        gc_delay: Duration = "1weeks",
        /// Fraction of the disk that garbage collection keeps free, 0 to 1
        gc_disk_headroom: f64 = "0.1",
        /// Also remove sandboxes of nested and standalone containers
        gc_non_executor_container_sandboxes: bool = "false",
        /// Interval of disk usage checks for garbage collection
        disk_watch_interval: Duration = "1mins",
    }
}

flags! {
    /// Downloads of URIs into sandboxes.
    FetcherFlags {
        /// Parent directory of each agent's fetcher cache
        fetcher_cache_dir: PathBuf = "/tmp/mesos/fetch",
        /// Size of the fetcher cache; 0 disables it
        fetcher_cache_size: Bytes = "2GB",
        /// Time after which a download slower than 1 B/s is aborted
        fetcher_stall_timeout: Duration = "1mins",
        /// Prefix of relative URIs
        frameworks_home: String = "",
        /// Hosts of https:// URIs, separated by commas, that are verified with --tls_ca_file and receive
        /// --tls_cert_file
        fetcher_tls_hosts: Option<String>,
        /// Home directory of the Hadoop client, which fetches URIs other than file, http(s) and ftp(s)
        hadoop_home: Option<String>,
    }
}

flags! {
    /// The launcher, the isolators and their limits.
    IsolationFlags {
        /// Isolators, separated by commas; see docs/agent-guide.md
        isolation: String = "posix/cpu,posix/mem",
        /// Launcher: linux or posix
        launcher: Option<String>,
        /// Name of the root control group, below which the agent creates its own
        cgroups_root: String = "mesos",
        /// Limit CPU time to the requested cpus (CFS quota)
        cgroups_enable_cfs: bool = "false",
        /// Limit swap along with memory
        cgroups_limit_swap: bool = "false",
        /// Extra devices to allow, for cgroups/devices and linux/devices
        allowed_devices: Option<String>,
        /// Give 10 instead of 1024 CPU shares for each revocable cpu
        revocable_cpu_low_priority: bool = "true",
        /// `linux/capabilities`: default capabilities of tasks
        effective_capabilities (allowed_capabilities): Option<Json>,
        /// `linux/capabilities`: upper bound of the capabilities of tasks
        bounding_capabilities: Option<Json>,
        /// Directory of seccomp profiles
        seccomp_config_dir: Option<PathBuf>,
        /// Default seccomp profile, relative to --seccomp_config_dir
        seccomp_profile_name: Option<String>,
        /// Reject top-level containers that share the agent's IPC namespace
        disallow_sharing_agent_ipc_namespace: bool = "false",
        /// Reject top-level containers that share the agent's PID namespace
        disallow_sharing_agent_pid_namespace: bool = "false",
        /// Default size of a container's /dev/shm
        default_container_shm_size: Option<Bytes>,
        /// Directories, separated by colons, below which missing host paths are created
        host_path_volume_force_creation: Option<String>,
        /// Events that the perf_event isolator samples
        perf_events: Option<String>,
        /// Interval of perf samples
        perf_interval: Duration = "60secs",
        /// Duration of a perf sample; at most --perf_interval
        perf_duration: Duration = "10secs",
        /// Indexes of the NVIDIA GPUs to offer
        nvidia_gpu_devices: Option<String>,
        /// Indexes of the GPUs to share, as the resource gpu_share
        gpu_share_devices: Option<String>,
        /// `disk/du`: interval between measurements of sandboxes
        container_disk_watch_interval: Duration = "15secs",
        /// `disk/du`: kill containers that exceed their disk
        enforce_container_disk_quota: bool = "false",
    }
}

flags! {
    /// Networks and ports of containers.
    ContainerNetworkFlags {
        /// Directory of CNI network configurations
        network_cni_config_dir: Option<PathBuf>,
        /// Search path of CNI plugins
        network_cni_plugins_dir: Option<PathBuf>,
        /// Name servers of containers on CNI and Docker networks, as JSON
        default_container_dns: Option<Json>,
        /// `network/ports`: check only ports among the agent's resources
        check_agent_port_range_only: bool = "false",
        /// `network/ports`: check only ports in this range, such as [1024-32767]
        container_ports_isolated_range: Option<String>,
        /// `network/ports`: interval between checks
        container_ports_watch_interval: Duration = "30secs",
        /// `network/ports`: kill containers that listen on ports not allocated to them
        enforce_container_ports: bool = "false",
        /// Primary net_cls handle, 16 bits such as `0xAAAA`; enables the management of handles
        cgroups_net_cls_primary_handle: Option<String>,
        /// Range of secondary net_cls handles, `0xAAAA,0xBBBB`
        cgroups_net_cls_secondary_handles: Option<String>,
    }
}

flags! {
    /// The containerizers.
    ContainerizerFlags {
        /// Containerizers, separated by commas: mesos, docker or both
        containerizers: String = "mesos",
        /// Container logger; org_apache_mesos_LogrotateContainerLogger rotates stdout and stderr
        container_logger: Option<String>,
        /// Directory of secrets, or program that resolves secrets, for secrets by reference
        secret_resolver: Option<String>,
        /// Mount point of the sandbox inside images
        sandbox_directory: PathBuf = "/mnt/mesos/sandbox",
        /// Where systemd is the init: run executors in a slice of their own, so that they outlive the agent's unit
        systemd_enable_support: bool = "true",
        /// Directory for the slice's unit; a host without it has no systemd
        systemd_runtime_directory: PathBuf = "/run/systemd/system",
        /// Address of the Docker daemon's socket
        docker_socket: Address = "/var/run/docker.sock",
        /// Time for a Docker container to stop without a kill policy; 0secs means 3secs
        docker_stop_timeout: Duration = "0secs",
        /// Time to wait before `docker rm`
        docker_remove_delay: Duration = "6hrs",
        /// Stop unknown mesos-* containers at recovery
        docker_kill_orphans: bool = "true",
        /// For an agent that is in a Docker container: its image, from which executors of Docker tasks get containers
        /// of their own
        docker_mesos_image: Option<String>,
    }
}

flags! {
    /// Container images.
    ImageFlags {
        /// Image providers; `docker` provides Docker and OCI images
        image_providers: Option<String>,
        /// Automatic garbage collection of images, as JSON
        image_gc_config: Option<Json>,
        /// Backend that provisions images: auto, overlay, aufs, bind or copy
        image_provisioner_backend: String = "auto",
        /// Docker registry: a URL, or a directory of archives
        docker_registry: String = "https://registry-1.docker.io",
        /// Directory of the image cache
        docker_store_dir: PathBuf = "/tmp/mesos/store/docker",
        /// Credentials of registries, as JSON
        docker_config: Option<Json>,
        /// Ignore the configuration of images
        docker_ignore_runtime: bool = "false",
    }
}

flags! {
    /// Oversubscription.
    OversubscriptionFlags {
        /// Modules, as JSON
        modules: Option<Json>,
        /// Name of the resource estimator module
        resource_estimator: Option<String>,
        /// Name of the QoS controller module
        qos_controller: Option<String>,
        /// Interval at which estimates are forwarded to the master
        oversubscribed_resources_interval: Duration = "15secs",
        /// Shortest interval between QoS corrections
        qos_correction_interval_min: Duration = "0secs",
    }
}

/// Flags that no code reads.
pub(super) const UNREAD: &[Flag] = &[
    Flag::unsupported("agent_subsystems", Kind::Text, None, "cgroup subsystems for the agent process itself")
        .with_aliases(&["slave_subsystems"]),
    Flag::unsupported("appc_simple_discovery_uri_prefix", Kind::Text, Some("http://"), "Appc discovery prefix"),
    Flag::unsupported("appc_store_dir", Kind::Path, Some("/tmp/mesos/store/appc"), "Appc cache"),
    Flag::unsupported("authenticatee", Kind::Text, Some("crammd5"), "v0 authenticatee"),
    Flag::without_effect(
        "cgroups_cpu_enable_pids_and_tids_count",
        Kind::Bool,
        Some("false"),
        "process/thread statistics",
        "processes and threads are always counted",
    ),
    Flag::without_effect(
        "cgroups_destroy_timeout",
        Kind::Duration,
        Some("60secs"),
        "destroy considered failed after this",
        "destruction is repeated until no process remains",
    ),
    Flag::without_effect(
        "cgroups_hierarchy",
        Kind::Path,
        Some("/sys/fs/cgroup"),
        "v1 hierarchy base",
        "mount points of cgroups are read from the kernel",
    ),
    Flag::unsupported("csi_plugin_config_dir", Kind::Path, None, "volume/csi"),
    Flag::unsupported("disk_profile_adaptor", Kind::Text, None, "CSI profiles module"),
    Flag::without_effect(
        "docker",
        Kind::Text,
        Some("docker"),
        "CLI path",
        "Docker is called through its socket (--docker_socket)",
    ),
    Flag::unsupported(
        "docker_volume_checkpoint_dir",
        Kind::Path,
        Some("/var/run/mesos/isolators/docker/volume"),
        "docker/volume isolator state",
    ),
    Flag::unsupported("docker_volume_chown", Kind::Bool, Some("false"), "chown mount point to task user"),
    Flag::unsupported("domain_socket_location", Kind::Path, None, "or systemd:<id>; <108 chars"),
    Flag::unsupported("egress_rate_limit_per_container", Kind::Bytes, None, "port_mapping"),
    Flag::unsupported("egress_unique_flow_per_container", Kind::Bool, Some("false"), "port_mapping build"),
    Flag::unsupported("egress_flow_classifier_parent", Kind::Text, Some("root"), "port_mapping build"),
    Flag::unsupported("ephemeral_ports_per_container", Kind::Count, Some("1024"), "port_mapping build"),
    Flag::unsupported("eth0_name", Kind::Text, Some("auto"), "port_mapping build"),
    Flag::unsupported("lo_name", Kind::Text, Some("auto"), "port_mapping build"),
    Flag::unsupported("hooks", Kind::Text, None, "hook modules"),
    Flag::unsupported("http_authenticators", Kind::Text, None, "basic, jwt or modules"),
    Flag::unsupported("http_executor_domain_sockets", Kind::Bool, Some("false"), "unix socket for executors"),
    Flag::unsupported("ip6", Kind::Text, None, "IPv6 reported to tasks"),
    Flag::unsupported("ip6_discovery_command", Kind::Text, None, "exclusive with ip6"),
    Flag::without_effect("launcher_dir", Kind::Path, None, "helper binaries", "all helpers are in this program"),
    Flag::unsupported("memory_profiling", Kind::Bool, Some("false"), "jemalloc endpoints"),
    Flag::unsupported("modules_dir", Kind::Path, None, "exclusive with modules"),
    Flag::without_effect(
        "network_cni_metrics",
        Kind::Bool,
        Some("true"),
        "CNI container network statistics",
        "networks of containers are not measured",
    ),
    Flag::unsupported("network_cni_root_dir_persist", Kind::Bool, Some("false"), "keep state across reboot"),
    Flag::unsupported("network_enable_snmp_statistics", Kind::Bool, Some("false"), "port_mapping statistics"),
    Flag::unsupported("network_enable_socket_statistics_details", Kind::Bool, Some("false"), "port_mapping statistics"),
    Flag::unsupported("network_enable_socket_statistics_summary", Kind::Bool, Some("false"), "port_mapping statistics"),
    Flag::unsupported("resource_provider_config_dir", Kind::Path, None, "local resource provider configs"),
    Flag::unsupported("volume_gid_range", Kind::Text, None, "gids for shared volumes, e.g. `[10000-20000]`"),
    Flag::unsupported("xfs_kill_containers", Kind::Bool, Some("false"), "soft/hard gap and kill"),
    Flag::unsupported("xfs_project_range", Kind::Text, Some("[5000-10000]"), "project ids"),
];

/// All flags of the agent.
#[derive(Clone, Debug)]
pub struct AgentFlags {
    pub(crate) network: NetworkFlags,
    pub(crate) audit: AuditFlags,
    pub(crate) node: NodeFlags,
    pub(crate) registration: RegistrationFlags,
    pub(crate) access: AccessFlags,
    pub(crate) executors: ExecutorFlags,
    pub(crate) gc: GcFlags,
    pub(crate) fetcher: FetcherFlags,
    pub(crate) isolation: IsolationFlags,
    pub(crate) container_network: ContainerNetworkFlags,
    pub(crate) containerizer: ContainerizerFlags,
    pub(crate) images: ImageFlags,
    pub(crate) oversubscription: OversubscriptionFlags,
}

/// The groups of flags, and the flags that no code reads.
pub(super) const AGENT: &[Group] = &[
    NetworkFlags::GROUP,
    TlsFlags::GROUP,
    LoggingFlags::GROUP,
    AuditFlags::GROUP,
    NodeFlags::GROUP,
    RegistrationFlags::GROUP,
    AccessFlags::GROUP,
    ExecutorFlags::GROUP,
    GcFlags::GROUP,
    FetcherFlags::GROUP,
    IsolationFlags::GROUP,
    ContainerNetworkFlags::GROUP,
    ContainerizerFlags::GROUP,
    ImageFlags::GROUP,
    OversubscriptionFlags::GROUP,
    super::shared::GENERAL,
    Group { about: " Not supported, or without effect.", flags: UNREAD },
    Group { about: " Not supported, or without effect, in both daemons.", flags: super::shared::UNREAD },
];

impl AgentFlags {
    /// Converts the texts of all flags to typed values.
    ///
    /// # Errors
    /// The first value that does not have the type of its flag.
    pub fn read(given: &Flags) -> Result<AgentFlags, FlagError> {
        Ok(AgentFlags {
            network: NetworkFlags::read(given)?,
            audit: AuditFlags::read(given)?,
            node: NodeFlags::read(given)?,
            registration: RegistrationFlags::read(given)?,
            access: AccessFlags::read(given)?,
            executors: ExecutorFlags::read(given)?,
            gc: GcFlags::read(given)?,
            fetcher: FetcherFlags::read(given)?,
            isolation: IsolationFlags::read(given)?,
            container_network: ContainerNetworkFlags::read(given)?,
            containerizer: ContainerizerFlags::read(given)?,
            images: ImageFlags::read(given)?,
            oversubscription: OversubscriptionFlags::read(given)?,
        })
    }
}
