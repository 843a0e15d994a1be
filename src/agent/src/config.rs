//! What the agent's flags and its host decide.
//!
//! It does not read flags; the shell fills it in.

use std::time::Duration;

use authorizer::Authorizer;
use base::Pid;
use protos::mesos as pb;

/// What an agent may have changed since it registered (`--reconfiguration_policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reconfiguration {
    /// Nothing.
    #[default]
    Equal,
    /// It may have more resources, attributes, or a domain that it had not.
    Additive,
}

/// What to do with what an earlier agent left behind (`--recover`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoverMode {
    /// Take over the running executors.
    #[default]
    Reconnect,
    /// End everything and exit.
    Cleanup,
}

/// Which limits of `TaskInfo.limits` an agent can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Limitable {
    pub cpus: bool,
    pub mem: bool,
}

/// What the agent's flags and its host decide.
#[derive(Clone, Debug)]
pub struct Config {
    /// The agent's own pid, `slave(1)@<advertised ip>:<port>`.
    pub pid: Pid,
    /// `--work_dir`, absolute, without a slash at the end.
    pub work_dir: String,
    /// The program that is run as `<program> executor command` and `<program> executor default`.
    pub program: String,
    /// The content of `/proc/sys/kernel/random/boot_id`, trimmed.
    pub boot_id: String,
    /// The version in the agent's registration.
    pub version: String,
    /// What the agent can do (`--agent_features`).
    pub capabilities: Vec<pb::slave_info::capability::Type>,
    /// `--acls`: the access control lists.
    pub authorizer: Authorizer,
    /// `--registration_backoff_factor`.
    pub registration_backoff_factor: Duration,
    /// The longest random wait before the first registration with a master that was just detected. Mesos waits up to
    /// the back-off factor, because ZooKeeper reports a new leader to all agents at once; zero where each agent detects
    /// it at a time of its own.
    pub first_registration_wait: Duration,
    /// `--credential`: with one the agent authenticates before it registers.
    pub credential: Option<Credential>,
    /// `--authentication_timeout_min`: the least time that an attempt to authenticate is given.
    pub authentication_timeout_min: Duration,
    /// `--authentication_backoff_factor`: how much longer the first attempt may take, doubled each time.
    pub authentication_backoff_factor: Duration,
    /// `--authentication_timeout_max`: the most time that an attempt is given.
    pub authentication_timeout_max: Duration,
    /// `--executor_registration_timeout`.
    pub executor_registration_timeout: Duration,
    /// `--executor_reregistration_timeout`.
    pub executor_reregistration_timeout: Duration,
    /// `--executor_reregistration_retry_interval`.
    pub executor_reregistration_retry_interval: Option<Duration>,
    /// `--executor_shutdown_grace_period`.
    pub executor_shutdown_grace_period: Duration,
    /// Interval of heartbeats on executors' event streams; `None`: no heartbeats.
    pub executor_heartbeat: Option<Duration>,
    /// `--recovery_timeout`.
    pub recovery_timeout: Duration,
    /// `--reconfiguration_policy`.
    pub reconfiguration_policy: Reconfiguration,
    /// `--recover`.
    pub recover: RecoverMode,
    /// `--gc_delay`.
    pub gc_delay: Duration,
    /// `--gc_disk_headroom`, a fraction between 0 and 1.
    pub gc_disk_headroom: f64,
    /// `--gc_non_executor_container_sandboxes`: whether sandboxes of containers that are not executors' are garbage,
    /// too.
    pub gc_sandboxes_inside: bool,
    /// `--switch_user`: whether tasks run as their own user.
    pub switch_user: bool,
    /// `--http_command_executor`.
    pub http_command_executor: bool,
    /// `--executor_environment_variables`, in order.
    pub executor_environment: Vec<(String, String)>,
    /// `LIBPROCESS_IP` of the agent's own environment, if it is set there.
    pub libprocess_ip: Option<String>,
    /// The path of libmesos, if that file exists.
    pub native_library: Option<String>,
    /// `--default_container_info`.
    pub default_container_info: Option<pb::ContainerInfo>,
    /// `--cgroups_enable_cfs`: whether containers get no more processors than they hold.
    pub cpu_quotas: bool,
    /// Whether containers can be limited in processors, and in memory, beyond what they hold (`TaskInfo.limits`).
    pub can_limit: Limitable,
    /// Whether the shell applies changes of a running container's resources.
    pub resizes: bool,
    /// `--max_completed_executors_per_framework`.
    pub max_completed_executors_per_framework: usize,
}

/// How many completed frameworks are kept in memory.
pub(crate) const MAX_COMPLETED_FRAMEWORKS: usize = 50;
/// How many completed tasks are kept for each executor.
pub(crate) const MAX_COMPLETED_TASKS_PER_EXECUTOR: usize = 200;

impl Config {
    /// Mesos's defaults, for an agent with this pid and work directory.
    pub fn new(pid: Pid, work_dir: &str) -> Config {
        use pb::slave_info::capability::Type;
        Config {
            pid,
            work_dir: work_dir.trim_end_matches('/').to_owned(),
            program: "/proc/self/exe".to_owned(),
            boot_id: String::new(),
            version: "1.11.0".to_owned(),
            capabilities: vec![
                Type::MultiRole,
                Type::HierarchicalRole,
                Type::ReservationRefinement,
                Type::ResourceProvider,
                Type::ResizeVolume,
                Type::AgentOperationFeedback,
                Type::AgentDraining,
                Type::TaskResourceLimits,
            ],
            authorizer: Authorizer::default(),
            registration_backoff_factor: Duration::from_secs(1),
            first_registration_wait: Duration::from_secs(1),
            credential: None,
            authentication_timeout_min: Duration::from_secs(5),
            authentication_backoff_factor: Duration::from_secs(1),
            authentication_timeout_max: Duration::from_secs(60),
            executor_registration_timeout: Duration::from_secs(60),
            executor_reregistration_timeout: Duration::from_secs(2),
            executor_reregistration_retry_interval: None,
            executor_shutdown_grace_period: Duration::from_secs(5),
            executor_heartbeat: None,
            recovery_timeout: Duration::from_secs(15 * 60),
            reconfiguration_policy: Reconfiguration::Equal,
            recover: RecoverMode::Reconnect,
            gc_delay: Duration::from_secs(7 * 24 * 3600),
            gc_disk_headroom: 0.1,
            gc_sandboxes_inside: false,
            switch_user: true,
            http_command_executor: false,
            executor_environment: Vec::new(),
            libprocess_ip: None,
            native_library: None,
            default_container_info: None,
            cpu_quotas: false,
            can_limit: Limitable { cpus: true, mem: true },
            resizes: false,
            max_completed_executors_per_framework: 150,
        }
    }

    /// The directory of checkpoints.
    pub fn meta_dir(&self) -> String {
        format!("{}/meta", self.work_dir)
    }

    /// A path in the directory of checkpoints.
    pub(crate) fn meta_path(&self, path: &str) -> String {
        [&self.work_dir, "/meta/", path].concat()
    }
}

/// The credential of an agent (`--credential`).
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// Its name.
    pub principal: String,
    /// What proves it.
    pub secret: Option<String>,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Secrets do not get into logs.
        f.debug_struct("Credential").field("principal", &self.principal).finish_non_exhaustive()
    }
}
