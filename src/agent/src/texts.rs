//! Texts that stay the same while an agent runs, and are part of every task.

use base::format_duration;

use crate::config::Config;

/// Texts of what stays the same for as long as an agent runs.
pub(crate) struct Texts {
    /// The agent's pid.
    pub(crate) pid: String,
    /// Its address with the port.
    pub(crate) endpoint: String,
    /// Its address without the port.
    pub(crate) ip: String,
    /// `--executor_shutdown_grace_period`.
    pub(crate) grace_period: String,
    /// `--recovery_timeout`.
    pub(crate) recovery_timeout: String,
    /// `--executor_reregistration_timeout`.
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
