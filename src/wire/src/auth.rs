//! HTTP Basic authentication (docs/mesos/security.md). It keeps no passwords.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::http::Response;

/// Realm of a master's read-only endpoints.
pub const MASTER_READONLY: &str = "mesos-master-readonly";
/// Realm of a master's `/api/v1` and of endpoints that change something.
pub const MASTER_READWRITE: &str = "mesos-master-readwrite";
/// Realm of a master's `/api/v1/scheduler`.
pub const MASTER_SCHEDULER: &str = "mesos-master-scheduler";
/// Realm of an agent's read-only endpoints.
pub const AGENT_READONLY: &str = "mesos-agent-readonly";
/// Realm of an agent's `/api/v1`.
pub const AGENT_READWRITE: &str = "mesos-agent-readwrite";
/// Realm of an agent's `/api/v1/executor`.
pub const AGENT_EXECUTOR: &str = "mesos-agent-executor";
/// Realm of an agent's `/api/v1/resource_provider`.
pub const AGENT_RESOURCE_PROVIDER: &str = "mesos-agent-resource-provider";

/// Parses user and password of an `Authorization` header.
///
/// The scheme is compared case-sensitively and followed by one space. The decoded text has exactly one `:`, so a
/// password that contains one never works.
pub fn basic_credentials(authorization: Option<&str>) -> Option<(String, String)> {
    let encoded = authorization?.strip_prefix("Basic ")?;
    let decoded = String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    if password.contains(':') {
        return None;
    }
    Some((user.to_owned(), password.to_owned()))
}

/// Returns the principal of a request, if its user and password are known.
///
/// # Errors
/// 401 with the challenge of the realm, whatever was wrong.
pub fn check_basic(
    authorization: Option<&str>,
    realm: &str,
    is_known: impl FnOnce(&str, &str) -> bool,
) -> Result<String, Box<Response>> {
    match basic_credentials(authorization) {
        Some((user, password)) if is_known(&user, &password) => Ok(user),
        _ => Err(Box::new(Response::unauthorized(&format!("Basic realm=\"{realm}\"")))),
    }
}

/// Returns the `Authorization` header of a client with these credentials.
pub fn basic_header(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known() {
        let header = basic_header("ann", "secret");
        assert_eq!(header, "Basic YW5uOnNlY3JldA==");
        let check = |user: &str, password: &str| (user, password) == ("ann", "secret");
        assert_eq!(check_basic(Some(&header), MASTER_READONLY, check).unwrap(), "ann");
    }

    #[test]
    fn refused() {
        let colon = basic_header("ann", "se:cret");
        for header in [
            None,
            Some("Basic"),
            Some("basic YW5uOnNlY3JldA=="),
            Some("Basic  YW5uOnNlY3JldA=="),
            Some("Bearer YW5uOnNlY3JldA=="),
            Some("Basic !!!"),
            Some("Basic YW5u"),
            Some(colon.as_str()),
        ] {
            let response = check_basic(header, MASTER_SCHEDULER, |_, _| true).unwrap_err();
            assert_eq!(response.status(), 401);
            assert_eq!(response.headers()["www-authenticate"], "Basic realm=\"mesos-master-scheduler\"");
            assert_eq!(response.body().unwrap(), "401 Unauthorized.");
        }
    }
}
