//! HTTP authentication: users and passwords (HTTP Basic) in the protected realms (docs/mesos/security.md).
//!
//! It assigns the endpoints of both daemons to realms; each daemon's handler assigns its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::same_text;
use wire::auth::check_basic;
use wire::http::{HeaderName, Request, Response, StatusCode};
use wire::libprocess::ConnectionId;

use crate::audit::Audit;
use crate::common::Shared;
use crate::flags::FlagError;
use crate::logins::{Attempt, Logins};

/// A set of endpoints with the same authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Realm {
    /// No authentication is needed.
    Open,
    ReadOnly,
    ReadWrite,
    Scheduler,
}

impl Realm {
    /// Returns the realm of an endpoint that both daemons have.
    pub(crate) fn of(shared: Shared) -> Realm {
        match shared {
            Shared::Health | Shared::Version | Shared::Help | Shared::Webui(_) => Realm::Open,
            Shared::LoggingToggle => Realm::ReadWrite,
            Shared::Flags | Shared::SystemStats => Realm::ReadOnly,
            Shared::FilesBrowse | Shared::FilesRead | Shared::FilesDownload | Shared::FilesDebug => Realm::ReadOnly,
        }
    }
}

/// A realm that a flag can protect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) realm: Realm,
    /// Name in the header `WWW-Authenticate`.
    pub(crate) name: &'static str,
    /// Name of the flag.
    pub(crate) flag: &'static str,
    /// Value of the flag.
    pub(crate) is_on: bool,
}

/// The protected realms, and their users.
pub(crate) struct Realms {
    /// Protected realms, with their names.
    asking: Vec<(Realm, &'static str)>,
    /// Passwords by user.
    known: BTreeMap<String, String>,
    logins: Logins,
    /// Audit log for failed log-ins.
    audit: Audit,
}

impl Realms {
    /// Protects the realms whose flags are on. `known` are the passwords by user of the flag `source`.
    ///
    /// # Errors
    /// A realm is protected, and there are no users.
    pub(crate) fn read(
        guards: &[Guard],
        source: &str,
        known: Option<BTreeMap<String, String>>,
    ) -> Result<Realms, FlagError> {
        let on = || guards.iter().filter(|guard| guard.is_on);
        if let (Some(guard), None) = (on().next(), &known) {
            let why = format!("no client could authenticate: --{source} is needed, too");
            return Err(FlagError::Refused { name: guard.flag, why });
        }
        let asking = on().map(|guard| (guard.realm, guard.name)).collect();
        Ok(Realms { asking, known: known.unwrap_or_default(), logins: Logins::default(), audit: Audit::default() })
    }

    /// Makes failed log-ins be written to the audit log.
    #[must_use]
    pub(crate) fn audited(self, audit: Audit) -> Realms {
        Realms { audit, ..self }
    }

    /// Authenticates a request. Returns its principal; `None` in an unprotected realm.
    ///
    /// # Errors
    /// 401; 429 after too many failures of the user from that address.
    pub(crate) fn principal(&self, realm: Realm, request: &Request) -> Result<Option<Arc<str>>, Box<Response>> {
        let Some((_, name)) = self.asking.iter().find(|(asking, _)| *asking == realm) else { return Ok(None) };
        let mut wait = None;
        let is_known = |user: &str, password: &str| {
            let attempt = Attempt { source: request.peer.ip(), connection: request.connection, user };
            if let Err(time) = self.logins.check(attempt) {
                wait = Some(time);
                return false;
            }
            let is_known = self.known.get(user).is_some_and(|known| same_text(known, password));
            if is_known {
                self.logins.succeeded(attempt)
            } else {
                self.logins.failed(attempt)
            }
            is_known
        };
        let header = request.header("authorization");
        let checked = check_basic(header, name, is_known);
        let checked = match wait {
            Some(wait) => Err(Box::new(too_many(wait))),
            None => checked,
        };
        if let Err(refusal) = &checked {
            self.audit.failed_http_login(header, request.peer, name, refusal.status());
        }
        checked.map(|user| Some(user.into()))
    }

    /// Returns the numbers of log-ins that failed, and that had to wait.
    pub(crate) fn failures(&self) -> (u64, u64) {
        self.logins.counts()
    }

    /// Forgets a connection that has closed.
    pub(crate) fn closed(&self, connection: ConnectionId) {
        self.logins.closed(connection);
    }
}

/// Returns the response to an attempt that must wait, whether its password is right or not.
fn too_many(wait: Duration) -> Response {
    let seconds = wait.as_secs() + 1;
    let text = format!("Too many failed log-ins of this user from this address; try again in {seconds} s");
    Response::text(StatusCode::TOO_MANY_REQUESTS, text)
        .with_header(HeaderName::from_static("retry-after"), &seconds.to_string())
}
