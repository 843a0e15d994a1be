//! Configuration of the agent: its flags and the properties of its host.
//!
//! It does not read flags; the shell fills it in.

use std::time::Duration;

use authorizer::Authorizer;
use base::Pid;
use protos::mesos as pb;

/// Changes that an agent may have since it registered (`--reconfiguration_policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reconfiguration {
    /// No change is permitted.
    #[default]
    Equal,
    /// The agent may have more resources or attributes, or a domain where it had none.
    Additive,
}

/// Handling of the executors of the previous agent process (`--recover`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecoverMode {
    /// Reconnects with the running executors.
    #[default]
    Reconnect,
    /// Ends all executors and exits.
    Cleanup,
}

/// Limits of `TaskInfo.limits` that an agent can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Limitable {
    pub cpus: bool,
    pub mem: bool,
}

/// Configuration of the agent: its flags and the properties of its host.
#[derive(Clone, Debug)]
pub struct Config {
    /// Pid of the agent: `slave(1)@<advertised ip>:<port>`.
    pub pid: Pid,
    /// Work directory (`--work_dir`), absolute, without a slash at the end.
    pub work_dir: String,
    /// Program that is run as `<program> executor command` and `<program> executor default`.
    pub program: String,
    /// Content of `/proc/sys/kernel/random/boot_id`, trimmed.
    pub boot_id: String,
    /// Version in the agent's registration.
    pub version: String,
    /// Capabilities of the agent (`--agent_features`).
    pub capabilities: Vec<pb::slave_info::capability::Type>,
    /// Authorizer with the access control lists (`--acls`).
    pub authorizer: Authorizer,
    /// Base of the back-off between registrations (`--registration_backoff_factor`).
    pub registration_backoff_factor: Duration,
    /// Longest random wait before the first registration with a master that was just detected.
    ///
    /// Mesos waits up to the back-off factor, because ZooKeeper reports a new leader to all agents at once. It is zero
    /// where each agent detects the leader at a different time.
    pub first_registration_wait: Duration,
    /// Credential of the agent (`--credential`). With one, the agent authenticates before it registers.
    pub credential: Option<Credential>,
    /// Minimum timeout of an attempt to authenticate (`--authentication_timeout_min`).
    pub authentication_timeout_min: Duration,
    /// Time by which the timeout of the first attempt may exceed the minimum (`--authentication_backoff_factor`); it
    /// doubles with each attempt.
    pub authentication_backoff_factor: Duration,
    /// Maximum timeout of an attempt to authenticate (`--authentication_timeout_max`).
    pub authentication_timeout_max: Duration,
    /// Time in which a started executor must register (`--executor_registration_timeout`).
    pub executor_registration_timeout: Duration,
    /// Time in which a running executor must reconnect after a restart of the agent
    /// (`--executor_reregistration_timeout`).
    pub executor_reregistration_timeout: Duration,
    /// Interval at which a recovering agent asks v0 executors again to reconnect
    /// (`--executor_reregistration_retry_interval`); `None`: it asks once.
    pub executor_reregistration_retry_interval: Option<Duration>,
    /// Time that an executor has to shut down before its container is destroyed (`--executor_shutdown_grace_period`).
    pub executor_shutdown_grace_period: Duration,
    /// Interval of heartbeats on executors' event streams; `None`: no heartbeats.
    pub executor_heartbeat: Option<Duration>,
    /// Time that executors wait for a restarted agent before they exit (`--recovery_timeout`).
    pub recovery_timeout: Duration,
    /// Changes that are permitted when an agent restarts with its old id (`--reconfiguration_policy`).
    pub reconfiguration_policy: Reconfiguration,
    /// Handling of running executors when the agent starts (`--recover`).
    pub recover: RecoverMode,
    /// Longest time that garbage is kept (`--gc_delay`).
    pub gc_delay: Duration,
    /// Part of the disk that garbage collection tries to keep free (`--gc_disk_headroom`), between 0 and 1.
    pub gc_disk_headroom: f64,
    /// Whether sandboxes of nested and standalone containers are collected as garbage
    /// (`--gc_non_executor_container_sandboxes`).
    pub gc_sandboxes_inside: bool,
    /// Whether tasks run as their own user (`--switch_user`).
    pub switch_user: bool,
    /// Value of `--http_command_executor`, which executors receive in their environment.
    pub http_command_executor: bool,
    /// Environment variables of executors (`--executor_environment_variables`), in order.
    pub executor_environment: Vec<(String, String)>,
    /// `LIBPROCESS_IP` of the agent's own environment; `None` if it is not set there.
    pub libprocess_ip: Option<String>,
    /// Path of libmesos; `None` if that file does not exist.
    pub native_library: Option<String>,
    /// Container description of executors that have none (`--default_container_info`).
    pub default_container_info: Option<pb::ContainerInfo>,
    /// Whether containers get no more CPU time than they hold (`--cgroups_enable_cfs`).
    pub cpu_quotas: bool,
    /// Resources of which a container may have a limit beyond what it holds (`TaskInfo.limits`).
    pub can_limit: Limitable,
    /// Whether the shell applies changes of a running container's resources.
    pub resizes: bool,
    /// Maximum number of completed executors that are kept for each framework
    /// (`--max_completed_executors_per_framework`).
    pub max_completed_executors_per_framework: usize,
}

/// Maximum number of completed frameworks that are kept in memory.
pub(crate) const MAX_COMPLETED_FRAMEWORKS: usize = 50;
/// Maximum number of completed tasks that are kept for each executor.
pub(crate) const MAX_COMPLETED_TASKS_PER_EXECUTOR: usize = 200;

impl Config {
    /// Returns Mesos's defaults for an agent with this pid and work directory.
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

    /// Returns the path of the directory of checkpoints.
    pub fn meta_dir(&self) -> String {
        format!("{}/meta", self.work_dir)
    }

    /// Returns the absolute path of a checkpoint.
    pub(crate) fn meta_path(&self, path: &str) -> String {
        [&self.work_dir, "/meta/", path].concat()
    }
}

/// Credential with which an agent authenticates (`--credential`).
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// Principal of the agent.
    pub principal: String,
    /// Shared secret of the principal.
    pub secret: Option<String>,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keep the secret out of logs.
        f.debug_struct("Credential").field("principal", &self.principal).finish_non_exhaustive()
    }
}
