//! Texts for messages and environments that stay the same while an agent runs.

use base::format_duration;

use crate::config::Config;

/// Texts that stay the same while an agent runs, rendered once because every task needs them.
pub(crate) struct Texts {
    /// Pid of the agent.
    pub(crate) pid: String,
    /// Address of the agent with the port.
    pub(crate) endpoint: String,
    /// Address of the agent without the port.
    pub(crate) ip: String,
    /// Value of `--executor_shutdown_grace_period`.
    pub(crate) grace_period: String,
    /// Value of `--recovery_timeout`.
    pub(crate) recovery_timeout: String,
    /// Value of `--executor_reregistration_timeout`.
    pub(crate) reregistration_timeout: String,
}

impl Texts {
    pub(crate) fn of(config: &Config) -> Texts {
        Texts {
            pid: config.pid.to_string(),
            endpoint: config.pid.address().to_string(),
            ip: config.pid.address().ip().to_string(),
            grace_period: format_duration(config.executor_shutdown_grace_period),
            recovery_timeout: format_duration(config.recovery_timeout),
            reregistration_timeout: format_duration(config.executor_reregistration_timeout),
        }
    }
}
