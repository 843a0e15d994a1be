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
        /// Name of the cluster, shown in the web page and in /state
        cluster: Option<String>,
        /// Fault domain as JSON; must define fault_domain
        domain: Option<Json>,
        /// Port to listen on
        port: u64 = "5050",
        /// Directory of a web page to serve instead of the built-in one: index.html, app, assets, node_modules
        webui_dir: Option<PathBuf>,
    }
}

flags! {
    /// Who may connect, and what they may do.
    AccessFlags {
        /// Access control lists as JSON, or a file that contains them
        acls: Option<Json>,
        /// Authorizer
        authorizers: String = "local",
        /// Require agents to authenticate
        authenticate_agents (authenticate_slaves): bool = "false",
        /// Require v0 frameworks to authenticate
        authenticate_frameworks (authenticate): bool = "false",
        /// Require HTTP schedulers to authenticate
        authenticate_http_frameworks: bool = "false",
        /// Require authentication for the realm mesos-master-readonly
        authenticate_http_readonly: bool = "false",
        /// Require authentication for the realm mesos-master-readwrite
        authenticate_http_readwrite (authenticate_http): bool = "false",
        /// Timeout of the CRAM-MD5 handshake
        authentication_v0_timeout: Duration = "15secs",
        /// Authenticator of libprocess clients
        authenticators: String = "crammd5",
        /// File of credentials, as JSON
        credentials: Option<PathBuf>,
        /// HTTP authenticators of the operator realms
        http_authenticators: String = "basic",
        /// HTTP authenticators of frameworks; required by --authenticate_http_frameworks
        http_framework_authenticators: Option<String>,
        /// Rate limits of messages for each principal, as JSON
        rate_limits: Option<Json>,
    }
}

flags! {
    /// State that outlives the process: the registry, the election, recordings.
    StateFlags {
        /// Directory of the master's state; required with --registry=replicated_log
        work_dir: Option<PathBuf>,
        /// `replicated_log` (in the work directory, in ZooKeeper with --zk, in etcd with --etcd) or `in_memory`
        registry: String = "replicated_log",
        /// Accept this loss of registry data, by the number that a master reports when it refuses to start
        registry_accept_loss: Option<u64>,
        /// Timeout of reading the registry
        registry_fetch_timeout: Duration = "60secs",
        /// Timeout of writing the registry; the master then exits
        registry_store_timeout: Duration = "20secs",
        /// Interval between removals of old unreachable and gone agents
        registry_gc_interval: Duration = "15mins",
        /// Age at which unreachable and gone agents are removed
        registry_max_agent_age: Duration = "2weeks",
        /// Number of unreachable and gone agents to keep
        registry_max_agent_count: u64 = "102400",
        /// All masters of a group without ZooKeeper, as host:port, separated by commas
        peers: Option<String>,
        /// Entry of --peers that is this master; default: its advertised address
        peer_address: Option<String>,
        /// File with the secret that authenticates the messages of the group
        peer_secret: Option<PathBuf>,
        /// Time without a leader after which the other masters elect a new one; 100ms–60secs
        peer_timeout: Duration = "1secs",
        /// Addresses of etcd and a prefix, http[s]://host:port,host:port[/prefix], or the file that contains them
        etcd: Option<Address>,
        /// File with user:password for etcd
        etcd_credential: Option<PathBuf>,
        /// Certificates of trusted authorities for https:// addresses in --etcd; default: those of the system
        etcd_ca_file: Option<PathBuf>,
        /// Certificate of this master for etcd
        etcd_cert_file: Option<PathBuf>,
        /// Private key of --etcd_cert_file
        etcd_key_file: Option<PathBuf>,
        /// Duration of the leader's lease in etcd; 2secs–1hrs
        etcd_lease_timeout: Duration = "10secs",
        /// Size of the quorum of masters; required with --zk and --registry=replicated_log
        quorum: Option<u64>,
        /// `zk://` URL, or the file that contains it
        zk: Option<Address>,
        /// Timeout of the ZooKeeper session
        zk_session_timeout: Duration = "10secs",
        /// New file to record this master's inputs in, for `tepui lab replay`
        record: Option<PathBuf>,
    }
}

flags! {
    /// When agents are unreachable or removed.
    AgentHealthFlags {
        /// Time to wait for an agent's answer to a ping; 1secs–15mins
        agent_ping_timeout (slave_ping_timeout): Duration = "15secs",
        /// Missed pings after which an agent is unreachable; at least 1
        max_agent_ping_timeouts (max_slave_ping_timeouts): u64 = "5",
        /// Limit of the rate at which agents are marked unreachable, as `n/duration`
        agent_removal_rate_limit (slave_removal_rate_limit): Option<String>,
        /// Time for agents to reregister after a disconnection or a failover
        agent_reregister_timeout (slave_reregister_timeout): Duration = "10mins",
        /// Largest share of agents that may be missing after a failover; if more are missing, the master exits
        recovery_agent_removal_limit (recovery_slave_removal_limit): String = "100%",
        /// Refuse agents without a domain
        require_agent_domain: bool = "false",
    }
}

flags! {
    /// The allocator and its policies.
    AllocationFlags {
        /// Interval of batch allocations
        allocation_interval: Duration = "1secs",
        /// Name of the allocator
        allocator: String = "hierarchical",
        /// Share of agents to wait for after a failover if quotas exist
        allocator_agent_recovery_factor: f64 = "0.8",
        /// Longest wait for the share of agents that --allocator_agent_recovery_factor sets
        allocator_recovery_timeout: Duration = "10mins",
        /// Names of resources that DRF shares ignore, separated by commas
        fair_sharing_excluded_resource_names: Option<String>,
        /// Make no offers of GPU agents to frameworks without GPU_RESOURCES
        filter_gpu_resources: bool = "true",
        /// Order of frameworks: `drf`, `random`, `psdsf` or `bfdrf`
        framework_sorter: String = "drf",
        /// Order of roles: `drf`, `random`, `psdsf` or `bfdrf`
        role_sorter (user_sorter): String = "drf",
        /// Least resources to offer; alternatives are separated by `|`
        min_allocatable_resources: String = "cpus:0.01|mem:32",
        /// Limit of the memory of a regular expression in offer constraints
        offer_constraints_re2_max_mem: Bytes = "4KB",
        /// Limit of the RE2 program size of a regular expression in offer constraints
        offer_constraints_re2_max_program_size: u64 = "100",
        /// Largest slice of an agent to offer at once, such as cpus:8;mem:32768
        offer_granularity: Option<String>,
        /// Time after which unanswered offers are rescinded, more than 0; default: never
        offer_timeout: Option<Duration>,
        /// File of offer holding and refusal policies, TOML or JSON; see docs/allocation.md
        policies: Option<PathBuf>,
        /// Deprecated: the only roles that frameworks may have
        roles: Option<String>,
        /// Deprecated: weights of roles, `role=w,…`; ignored once the registry has weights
        weights: Option<String>,
        /// File with the host names of agents to make offers of
        whitelist: Option<PathBuf>,
    }
}

flags! {
    /// Frameworks, and how much of their history is kept.
    FrameworkFlags {
        /// Accept frameworks of the user root
        root_submissions: bool = "true",
        /// Number of completed frameworks to keep
        max_completed_frameworks: u64 = "50",
        /// Number of completed tasks to keep for each framework
        max_completed_tasks_per_framework: u64 = "1000",
        /// Number of unreachable tasks to keep for each framework
        max_unreachable_tasks_per_framework: u64 = "1000",
        /// Largest number of operator event streams
        max_operator_event_stream_subscribers: u64 = "1000",
        /// Publish metrics of each framework
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
