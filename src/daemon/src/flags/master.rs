//! The flags of `tepui master`: names, types, defaults and help, as of Mesos 1.11.
//!
//! Rules that need more than one value are checked by the readers.

use std::path::PathBuf;
use std::time::Duration;

use super::shared::{AuditFlags, LoggingFlags, NetworkFlags, TlsFlags};
use super::spec::{Address, Bytes, Flag, Group, Json, Kind, flags};
use super::{FlagError, Flags};

flags! {
    /// The name and the place of the master, and its web page.
    IdentityFlags {
        /// Cluster name shown in UI/state
        cluster: Option<String>,
        /// Fault domain JSON; must define fault_domain
        domain: Option<Json>,
        /// Listen port
        port: u64 = "5050",
        /// Directory of another web page: index.html, app, assets, node_modules
        webui_dir: Option<PathBuf>,
    }
}

flags! {
    /// Who may connect, and what they may do.
    AccessFlags {
        /// Access control lists as JSON, or their file
        acls: Option<Json>,
        /// Authorizer
        authorizers: String = "local",
        /// Require agent authentication
        authenticate_agents (authenticate_slaves): bool = "false",
        /// Require v0 framework authentication
        authenticate_frameworks (authenticate): bool = "false",
        /// Require HTTP scheduler authentication
        authenticate_http_frameworks: bool = "false",
        /// Realm mesos-master-readonly
        authenticate_http_readonly: bool = "false",
        /// Realm mesos-master-readwrite
        authenticate_http_readwrite (authenticate_http): bool = "false",
        /// CRAM-MD5 handshake limit
        authentication_v0_timeout: Duration = "15secs",
        /// Authenticator of libprocess clients
        authenticators: String = "crammd5",
        /// JSON credentials file
        credentials: Option<PathBuf>,
        /// HTTP authenticators for operator realms
        http_authenticators: String = "basic",
        /// Required by authenticate_http_frameworks
        http_framework_authenticators: Option<String>,
        /// Limits of messages by principal, as JSON
        rate_limits: Option<Json>,
    }
}

flags! {
    /// State that outlives the process: the registry, the election, recordings.
    StateFlags {
        /// Required with replicated_log
        work_dir: Option<PathBuf>,
        /// `replicated_log` (in the work directory, in ZooKeeper with --zk, in etcd with --etcd) or `in_memory`
        registry: String = "replicated_log",
        /// Accept the loss of this number, which a master that refuses to start has reported
        registry_accept_loss: Option<u64>,
        /// Limit of reading the registry
        registry_fetch_timeout: Duration = "60secs",
        /// Limit of writing the registry; the master exits after it
        registry_store_timeout: Duration = "20secs",
        /// Interval between removals of old unreachable and gone agents
        registry_gc_interval: Duration = "15mins",
        /// Age at which unreachable and gone agents are removed
        registry_max_agent_age: Duration = "2weeks",
        /// Number of unreachable and gone agents that are kept
        registry_max_agent_count: u64 = "102400",
        /// host:port of all masters of a group that needs no ZooKeeper, separated by commas
        peers: Option<String>,
        /// The one of --peers that this master is; default: the one at which it is advertised
        peer_address: Option<String>,
        /// File with a secret of the group; its messages are authenticated with it
        peer_secret: Option<PathBuf>,
        /// After a leader is lost, the others wait so long before they elect another one; 100ms–60secs
        peer_timeout: Duration = "1secs",
        /// Addresses of etcd and a prefix, http[s]://host:port,host:port[/prefix], or the file that contains them
        etcd: Option<Address>,
        /// File with user:password for etcd
        etcd_credential: Option<PathBuf>,
        /// Certificates of the authorities of https:// addresses in --etcd; default: the host's
        etcd_ca_file: Option<PathBuf>,
        /// Certificate of this master for etcd
        etcd_cert_file: Option<PathBuf>,
        /// Private key of etcd_cert_file
        etcd_key_file: Option<PathBuf>,
        /// Length of the leader's lease in etcd; 2secs–1hrs
        etcd_lease_timeout: Duration = "10secs",
        /// Required with --zk and replicated_log
        quorum: Option<u64>,
        /// `zk://` URL, or the file that contains it
        zk: Option<Address>,
        /// Timeout of the ZooKeeper session
        zk_session_timeout: Duration = "10secs",
        /// New file for the inputs of this master, for `tepui lab replay`
        record: Option<PathBuf>,
    }
}

flags! {
    /// When agents are unreachable or removed.
    AgentHealthFlags {
        /// PONG wait; 1secs–15mins
        agent_ping_timeout (slave_ping_timeout): Duration = "15secs",
        /// Missed pings before unreachable; ≥1
        max_agent_ping_timeouts (max_slave_ping_timeouts): u64 = "5",
        /// `n/duration` limit for marking agents unreachable
        agent_removal_rate_limit (slave_removal_rate_limit): Option<String>,
        /// Time for agents to reregister after a disconnection or a failover
        agent_reregister_timeout (slave_reregister_timeout): Duration = "10mins",
        /// Largest share of agents that may be missing after a failover; with more the master exits
        recovery_agent_removal_limit (recovery_slave_removal_limit): String = "100%",
        /// Refuse agents without domain
        require_agent_domain: bool = "false",
    }
}

flags! {
    /// The allocator and its policies.
    AllocationFlags {
        /// Batch allocation period
        allocation_interval: Duration = "1secs",
        /// Allocator module name
        allocator: String = "hierarchical",
        /// Share of agents awaited when quotas exist
        allocator_agent_recovery_factor: f64 = "0.8",
        /// Longest wait for that share of agents
        allocator_recovery_timeout: Duration = "10mins",
        /// Names ignored by DRF shares
        fair_sharing_excluded_resource_names: Option<String>,
        /// Hide GPU agents from non-GPU frameworks
        filter_gpu_resources: bool = "true",
        /// `drf`, `random`, `psdsf` or `bfdrf`
        framework_sorter: String = "drf",
        /// `drf`, `random`, `psdsf` or `bfdrf`
        role_sorter (user_sorter): String = "drf",
        /// Smallest offer; alternatives by `|`
        min_allocatable_resources: String = "cpus:0.01|mem:32",
        /// RE2 memory bytes
        offer_constraints_re2_max_mem: Bytes = "4KB",
        /// RE2 program size
        offer_constraints_re2_max_program_size: u64 = "100",
        /// Offer larger agents in slices of at most this, such as cpus:8;mem:32768
        offer_granularity: Option<String>,
        /// Rescind unanswered offers; >0
        offer_timeout: Option<Duration>,
        /// File (TOML or JSON) of policies of holding and refusal; see docs/allocation.md
        policies: Option<PathBuf>,
        /// Deprecated role whitelist
        roles: Option<String>,
        /// Deprecated `role=w,…`; ignored once registry has weights
        weights: Option<String>,
        /// File of agent hostnames
        whitelist: Option<PathBuf>,
    }
}

flags! {
    /// Frameworks, and how much of their history is kept.
    FrameworkFlags {
        /// Whether frameworks of the user root are accepted
        root_submissions: bool = "true",
        /// Completed frameworks that are kept
        max_completed_frameworks: u64 = "50",
        /// Completed tasks that are kept of each framework
        max_completed_tasks_per_framework: u64 = "1000",
        /// Unreachable tasks that are kept of each framework
        max_unreachable_tasks_per_framework: u64 = "1000",
        /// Streams of operator events
        max_operator_event_stream_subscribers: u64 = "1000",
        /// Per-framework metrics
        publish_per_framework_metrics: bool = "true",
    }
}

/// Flags that no code reads.
pub(super) const UNREAD: &[Flag] = &[
    Flag::unsupported("hooks", Kind::Text, None, "hook modules"),
    Flag::without_effect(
        "log_auto_initialize",
        Kind::Bool,
        Some("true"),
        "replicated log bootstrap",
        "the registry is created at the first start",
    ),
    Flag::unsupported("master_contender", Kind::Text, None, "module; pair with master_detector"),
    Flag::unsupported("master_detector", Kind::Text, None, "module"),
    Flag::without_effect(
        "max_executors_per_agent",
        Kind::Count,
        None,
        "only with port-mapping build",
        "only the isolator network/port_mapping of Mesos has such a limit",
    )
    .with_aliases(&["max_executors_per_slave"]),
    Flag::without_effect("memory_profiling", Kind::Bool, Some("false"), "jemalloc endpoints", "memory is not profiled"),
    Flag::unsupported("modules", Kind::Json, None, "module JSON"),
    Flag::unsupported("modules_dir", Kind::Path, None, "directory of module manifests; exclusive with modules"),
    Flag::unsupported("registry_strict", Kind::Bool, Some("false"), "true is rejected (disabled flag)"),
];

/// All flags of the master.
#[derive(Clone, Debug)]
pub struct MasterFlags {
    pub(crate) network: NetworkFlags,
    pub(crate) audit: AuditFlags,
    pub(crate) identity: IdentityFlags,
    pub(crate) access: AccessFlags,
    pub(crate) state: StateFlags,
    pub(crate) agents: AgentHealthFlags,
    pub(crate) allocation: AllocationFlags,
    pub(crate) frameworks: FrameworkFlags,
}

/// The groups of flags, and the flags that no code reads.
pub(super) const MASTER: &[Group] = &[
    NetworkFlags::GROUP,
    TlsFlags::GROUP,
    LoggingFlags::GROUP,
    AuditFlags::GROUP,
    IdentityFlags::GROUP,
    AccessFlags::GROUP,
    StateFlags::GROUP,
    AgentHealthFlags::GROUP,
    AllocationFlags::GROUP,
    FrameworkFlags::GROUP,
    super::shared::GENERAL,
    Group { about: " Not supported, or without effect.", flags: UNREAD },
    Group { about: " Not supported, or without effect, in both daemons.", flags: super::shared::UNREAD },
];

impl MasterFlags {
    /// Converts the texts of all flags to typed values.
    ///
    /// # Errors
    /// The first value that does not have the type of its flag.
    pub fn read(given: &Flags) -> Result<MasterFlags, FlagError> {
        Ok(MasterFlags {
            network: NetworkFlags::read(given)?,
            audit: AuditFlags::read(given)?,
            identity: IdentityFlags::read(given)?,
            access: AccessFlags::read(given)?,
            state: StateFlags::read(given)?,
            agents: AgentHealthFlags::read(given)?,
            allocation: AllocationFlags::read(given)?,
            frameworks: FrameworkFlags::read(given)?,
        })
    }
}
