//! HTTP authentication of an agent, from its flags.
//!
//! Calls of executors are in a realm of their own, which accepts their tokens (`executor_tokens.rs`). `/api/v1`, the
//! operators' realm, accepts tokens beside passwords.

use std::sync::Arc;

use agent::ContainerName;
use base::ContainerId;
use wire::auth::{AGENT_READONLY, AGENT_READWRITE};
use wire::http::{HeaderName, Request, Response, StatusCode};

use super::executor_tokens::{ExecutorTokens, challenge, is_bearer};
use crate::credentials;
use crate::flags::FlagError;
use crate::flags::agent::AccessFlags;
use crate::realms::{Guard, Realm, Realms};

const WWW_AUTHENTICATE: HeaderName = HeaderName::from_static("www-authenticate");
/// Name of the flag with the users.
const USERS: &str = "http_credentials";

/// Reads the flags for HTTP authentication, and returns the protected realms.
///
/// # Errors
/// Invalid credentials, or a protected realm without users.
pub(super) fn read(flags: &AccessFlags) -> Result<Realms, FlagError> {
    let guard = |realm, name, flag, is_on| Guard { realm, name, flag, is_on };
    let guards = [
        guard(Realm::ReadOnly, AGENT_READONLY, "authenticate_http_readonly", flags.authenticate_http_readonly),
        guard(Realm::ReadWrite, AGENT_READWRITE, "authenticate_http_readwrite", flags.authenticate_http_readwrite),
    ];
    Realms::read(&guards, USERS, credentials::of_list(USERS, flags.http_credentials.as_deref())?)
}

/// Returns the container of the executor that sends a request to `/api/v1`, by its token; `None` without a valid one.
pub(super) fn executor(tokens: &ExecutorTokens, request: &Request) -> Option<ContainerName> {
    let header = request.header("authorization").filter(|header| is_bearer(header))?;
    let claims = tokens.bearer(header).ok()?;
    Some(ContainerName::top(&ContainerId::new(&claims.container).ok()?))
}

/// Authenticates a request to `/api/v1`: a user by password, or an executor by its token (SEC-13). Returns the user;
/// `None` if it is an executor, or if the realm is open.
///
/// An open realm ignores an invalid token.
///
/// # Errors
/// 401; 429 after too many failures of the user. The challenge offers tokens only if they are required or one was sent:
/// Mesos does not accept them by default.
pub(super) fn operator(
    realms: &Realms,
    tokens: &ExecutorTokens,
    request: &Request,
) -> Result<Option<Arc<str>>, Box<Response>> {
    if executor(tokens, request).is_some() {
        return Ok(None);
    }
    let header = request.header("authorization");
    let sent = header.filter(|header| is_bearer(header)).map(|header| tokens.bearer(header));
    let refusal = match realms.principal(Realm::ReadWrite, request) {
        Ok(principal) => return Ok(principal),
        Err(refusal) if refusal.status() != StatusCode::UNAUTHORIZED => return Err(refusal),
        Err(refusal) => refusal,
    };
    let error = match sent {
        Some(sent) => sent.err(),
        None if !tokens.required => return Err(refusal),
        None => header.and_then(|header| tokens.bearer(header).err()),
    };
    Err(Box::new(both(&refusal, &challenge(AGENT_READWRITE, error.as_ref()))))
}

/// Combines the refusals of both authenticators in one response.
fn both(basic: &Response, bearer: &str) -> Response {
    let challenge = basic.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let said = |scheme: &str| format!("\"{scheme}\" authenticator returned:\n401 Unauthorized.");
    Response::text(StatusCode::UNAUTHORIZED, [said("Basic"), said("Bearer")].join("\n\n"))
        .with_header(WWW_AUTHENTICATE, &format!("{challenge},{bearer}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::AgentFlags;

    #[test]
    fn a_protected_realm_needs_users() {
        assert!(read(&AgentFlags::with(&[]).access).is_ok());
        for name in ["authenticate_http_readonly", "authenticate_http_readwrite"] {
            let error = read(&AgentFlags::with(&[(name, "true")]).access).err().unwrap().to_string();
            assert!(error.contains("--http_credentials is needed"), "{error}");
        }
    }
}
