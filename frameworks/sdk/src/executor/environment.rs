//! Reads the environment variables by which an agent configures an executor (docs/mesos/libprocess.md).

use std::time::Duration;

use base::parse_duration;

use crate::v1::{ExecutorId, FrameworkId};

/// The grace period of a shutdown if the variable is missing: the agent's default of
/// `--executor_shutdown_grace_period`.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Identity and settings of an executor, as its agent passes them.
#[derive(Clone, PartialEq)]
pub struct Environment {
    /// Id of the executor's framework.
    pub framework_id: FrameworkId,
    /// Id of the executor.
    pub executor_id: ExecutorId,
    /// Address of the agent, as `host:port`.
    pub endpoint: String,
    /// Settings for a restart of the agent; `None` if the executor ends with its agent.
    pub recovery: Option<Recovery>,
    /// Grace period of a shutdown.
    pub shutdown_grace: Duration,
    /// Token that the agent requires with every call, if it authenticates executors.
    pub token: Option<String>,
}

/// Settings with which an executor waits for an agent that restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Maximum time for which the executor waits for the agent.
    pub timeout: Duration,
    /// Longest wait between two attempts to subscribe.
    pub backoff_max: Duration,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token is a secret.
        f.debug_struct("Environment")
            .field("framework_id", &self.framework_id.value)
            .field("executor_id", &self.executor_id.value)
            .field("endpoint", &self.endpoint)
            .field("recovery", &self.recovery)
            .field("shutdown_grace", &self.shutdown_grace)
            .finish_non_exhaustive()
    }
}

/// An environment that is not that of an executor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// A required variable is missing.
    #[error("{0} is not set: an executor is started by an agent")]
    Missing(&'static str),
    /// A variable is not a duration.
    #[error("{name}='{value}' is not a duration such as 15mins")]
    Duration {
        /// Name of the variable.
        name: &'static str,
        /// Value of the variable.
        value: String,
    },
}

impl Environment {
    /// Reads the variables through `lookup`.
    ///
    /// # Errors
    /// Names the variable that is missing or malformed.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Environment, EnvironmentError> {
        let required = |name| lookup(name).ok_or(EnvironmentError::Missing(name));
        let duration = |name| match lookup(name) {
            Some(value) => parse_duration(&value).map(Some).map_err(|_| EnvironmentError::Duration { name, value }),
            None => Ok(None),
        };
        let recovery = if lookup("MESOS_CHECKPOINT").as_deref() == Some("1") {
            let needed = |name| duration(name)?.ok_or(EnvironmentError::Missing(name));
            let timeout = needed("MESOS_RECOVERY_TIMEOUT")?;
            Some(Recovery { timeout, backoff_max: needed("MESOS_SUBSCRIPTION_BACKOFF_MAX")? })
        } else {
            None
        };
        Ok(Environment {
            framework_id: FrameworkId { value: required("MESOS_FRAMEWORK_ID")?.into() },
            executor_id: ExecutorId { value: required("MESOS_EXECUTOR_ID")?.into() },
            endpoint: required("MESOS_AGENT_ENDPOINT")?,
            recovery,
            shutdown_grace: duration("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD")?.unwrap_or(SHUTDOWN_GRACE),
            token: lookup("MESOS_EXECUTOR_AUTHENTICATION_TOKEN"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
        Environment::read(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
    }

    const LEAST: [(&str, &str); 3] =
        [("MESOS_FRAMEWORK_ID", "F"), ("MESOS_EXECUTOR_ID", "E"), ("MESOS_AGENT_ENDPOINT", "127.0.0.1:5051")];

    #[test]
    fn reads_what_an_agent_writes() {
        let least = read(&LEAST).unwrap();
        assert_eq!((least.recovery, least.shutdown_grace, least.token), (None, SHUTDOWN_GRACE, None));
        let more = [
            ("MESOS_CHECKPOINT", "1"),
            ("MESOS_RECOVERY_TIMEOUT", "15mins"),
            ("MESOS_SUBSCRIPTION_BACKOFF_MAX", "2secs"),
            ("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", "7secs"),
            ("MESOS_EXECUTOR_AUTHENTICATION_TOKEN", "secret"),
        ];
        let all = read(&[&LEAST[..], &more].concat()).unwrap();
        let recovery = Recovery { timeout: Duration::from_secs(900), backoff_max: Duration::from_secs(2) };
        assert_eq!((all.recovery, all.shutdown_grace), (Some(recovery), Duration::from_secs(7)));
        assert!(!format!("{all:?}").contains("secret"));
    }

    #[test]
    fn names_what_is_wrong() {
        assert_eq!(read(&LEAST[1..]).unwrap_err(), EnvironmentError::Missing("MESOS_FRAMEWORK_ID"));
        let half = read(&[&LEAST[..], &[("MESOS_CHECKPOINT", "1")]].concat()).unwrap_err();
        assert_eq!(half, EnvironmentError::Missing("MESOS_RECOVERY_TIMEOUT"));
        let soon = read(&[&LEAST[..], &[("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", "soon")]].concat()).unwrap_err();
        assert!(soon.to_string().contains("'soon'"), "{soon}");
    }
}
