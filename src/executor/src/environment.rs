//! Reads the environment variables by which the agent configures an executor (docs/mesos/libprocess.md).
//!
//! `link.rs` connects.

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use base::{ExecutorId, FrameworkId, IdError, parse_duration};

/// Address of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Tcp(SocketAddr),
    Tls(SocketAddr),
    Unix(PathBuf),
}

/// Settings for reconnecting with an agent that has disconnected; only executors of checkpointing frameworks have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// Time without an agent after which the executor shuts down.
    pub(crate) timeout: Duration,
    /// Upper limit of the random wait before each attempt.
    pub(crate) backoff_max: Duration,
}

/// Parsed settings of an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) framework_id: FrameworkId,
    pub(crate) executor_id: ExecutorId,
    pub(crate) endpoint: Endpoint,
    /// Value of the header `Host` of requests; empty for a unix socket.
    pub(crate) host: String,
    pub(crate) recovery: Option<Recovery>,
    pub(crate) shutdown_grace: Duration,
    pub(crate) token: Option<String>,
    /// Path of the executor's sandbox, as the executor sees it.
    pub(crate) sandbox: Option<PathBuf>,
    /// IP address that the executor's containers share, as text.
    pub(crate) address: Option<String>,
}

/// An error of an environment that is not one of an agent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("Expecting '{0}' to be set in the environment")]
    Missing(&'static str),
    #[error("Cannot parse '{name}' = '{value}'")]
    Malformed { name: &'static str, value: String },
    #[error("'{name}' is not an id")]
    Id { name: &'static str, source: IdError },
    #[error("'{name}' is not a duration")]
    Duration { name: &'static str, source: base::DurationTextError },
}

/// Function that returns the value of a variable: of the process, or of a test.
pub(crate) type Lookup<'a> = &'a dyn Fn(&'static str) -> Option<OsString>;

/// Name of the variable with the executor's token; tasks must not see it.
pub(crate) const TOKEN: &str = "MESOS_EXECUTOR_AUTHENTICATION_TOKEN";

impl Settings {
    /// Reads the variables of docs/mesos/libprocess.md.
    pub(crate) fn read(lookup: Lookup<'_>) -> Result<Settings, SettingsError> {
        let framework_id = required(lookup, "MESOS_FRAMEWORK_ID")?;
        let executor_id = required(lookup, "MESOS_EXECUTOR_ID")?;
        let id = |name| move |source| SettingsError::Id { name, source };
        let (endpoint, host) = endpoint(lookup)?;
        Ok(Settings {
            framework_id: framework_id.parse().map_err(id("MESOS_FRAMEWORK_ID"))?,
            executor_id: executor_id.parse().map_err(id("MESOS_EXECUTOR_ID"))?,
            endpoint,
            host,
            recovery: recovery(lookup)?,
            shutdown_grace: duration(lookup, "MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD")?.unwrap_or(SHUTDOWN_GRACE),
            token: text(lookup, TOKEN)?,
            sandbox: lookup("MESOS_SANDBOX").or_else(|| lookup("MESOS_DIRECTORY")).map(PathBuf::from),
            address: text(lookup, "LIBPROCESS_IP")?.or(agent_ip(lookup)?),
        })
    }
}

/// The grace period of a shutdown if the variable is missing: the agent's default of
/// `--executor_shutdown_grace_period`.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

fn text(lookup: Lookup<'_>, name: &'static str) -> Result<Option<String>, SettingsError> {
    let malformed = |value: OsString| SettingsError::Malformed { name, value: value.to_string_lossy().into_owned() };
    lookup(name).map(|value| value.into_string().map_err(malformed)).transpose()
}

fn required(lookup: Lookup<'_>, name: &'static str) -> Result<String, SettingsError> {
    text(lookup, name)?.ok_or(SettingsError::Missing(name))
}

fn duration(lookup: Lookup<'_>, name: &'static str) -> Result<Option<Duration>, SettingsError> {
    let parse = |value: String| parse_duration(&value).map_err(|source| SettingsError::Duration { name, source });
    text(lookup, name)?.map(parse).transpose()
}

fn recovery(lookup: Lookup<'_>) -> Result<Option<Recovery>, SettingsError> {
    if text(lookup, "MESOS_CHECKPOINT")?.as_deref() != Some("1") {
        return Ok(None);
    }
    let needed = |name| duration(lookup, name)?.ok_or(SettingsError::Missing(name));
    Ok(Some(Recovery {
        timeout: needed("MESOS_RECOVERY_TIMEOUT")?,
        backoff_max: needed("MESOS_SUBSCRIPTION_BACKOFF_MAX")?,
    }))
}

/// Returns the agent's IP address, which on the host's network is the executor's too.
fn agent_ip(lookup: Lookup<'_>) -> Result<Option<String>, SettingsError> {
    let endpoint = text(lookup, "MESOS_AGENT_ENDPOINT")?;
    Ok(endpoint.and_then(|text| text.parse().ok()).map(|address: SocketAddr| address.ip().to_string()))
}

fn endpoint(lookup: Lookup<'_>) -> Result<(Endpoint, String), SettingsError> {
    if let Some(path) = lookup("MESOS_DOMAIN_SOCKET") {
        return Ok((Endpoint::Unix(path.into()), String::new()));
    }
    const NAME: &str = "MESOS_AGENT_ENDPOINT";
    let value = required(lookup, NAME)?;
    // An agent writes IP addresses; names are for executors that are started by hand.
    let address = value.parse().ok().or_else(|| value.to_socket_addrs().ok()?.next());
    let address = address.ok_or_else(|| SettingsError::Malformed { name: NAME, value: value.clone() })?;
    let endpoint = if crate::tls::is_needed(lookup) { Endpoint::Tls(address) } else { Endpoint::Tcp(address) };
    Ok((endpoint, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        Settings::read(&|name| find(name))
    }

    const LEAST: [(&str, &str); 3] =
        [("MESOS_FRAMEWORK_ID", "F"), ("MESOS_EXECUTOR_ID", "E"), ("MESOS_AGENT_ENDPOINT", "127.0.0.1:5051")];

    #[test]
    fn least() {
        let settings = read(&LEAST).unwrap();
        assert_eq!((settings.framework_id.as_str(), settings.executor_id.as_str()), ("F", "E"));
        assert_eq!(settings.endpoint, Endpoint::Tcp("127.0.0.1:5051".parse().unwrap()));
        assert_eq!((settings.recovery, settings.shutdown_grace), (None, Duration::from_secs(5)));
    }

    #[test]
    fn most() {
        let mut all = LEAST.to_vec();
        all.extend([
            ("MESOS_CHECKPOINT", "1"),
            ("MESOS_RECOVERY_TIMEOUT", "15mins"),
            ("MESOS_SUBSCRIPTION_BACKOFF_MAX", "2secs"),
            ("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", "1500ms"),
            ("MESOS_DOMAIN_SOCKET", "/run/agent.sock"),
            (TOKEN, "t"),
        ]);
        let settings = read(&all).unwrap();
        let recovery = Recovery { timeout: Duration::from_secs(900), backoff_max: Duration::from_secs(2) };
        assert_eq!((settings.recovery, settings.shutdown_grace), (Some(recovery), Duration::from_millis(1500)));
        assert_eq!((settings.endpoint, settings.host.as_str()), (Endpoint::Unix("/run/agent.sock".into()), ""));
        assert_eq!((settings.token.as_deref(), settings.address.as_deref()), (Some("t"), Some("127.0.0.1")));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (change, said) in [
            (("MESOS_FRAMEWORK_ID", "a/b"), "'MESOS_FRAMEWORK_ID' is not an id"),
            (("MESOS_AGENT_ENDPOINT", "nothing"), "Cannot parse 'MESOS_AGENT_ENDPOINT' = 'nothing'"),
            (("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", "5"), "'MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD' is not a duration"),
            (("MESOS_CHECKPOINT", "1"), "Expecting 'MESOS_RECOVERY_TIMEOUT' to be set in the environment"),
        ] {
            let mut all = vec![change];
            all.extend(LEAST);
            assert_eq!(read(&all).unwrap_err().to_string(), said);
        }
        assert!(matches!(read(&LEAST[1..]), Err(SettingsError::Missing("MESOS_FRAMEWORK_ID"))));
    }
}
