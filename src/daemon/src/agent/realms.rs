//! Who may ask an agent what by HTTP: users and passwords (HTTP Basic) in the realms that ask for them (wire/http.md 2.1).
//!
//! Executors' calls are in a realm of their own, which asks nobody. What executors ask of `/api/v1`, as those of pods do, is in
//! the operators' realm.

use std::collections::BTreeMap;

use base::same_text;
use wire::auth::{AGENT_READONLY, AGENT_READWRITE, check_basic};
use wire::http::{Request, Response};

use crate::credentials;
use crate::flags::{FlagError, Flags};

/// A set of endpoints that ask alike who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Realm {
    /// Whoever asks gets an answer.
    Open,
    ReadOnly,
    ReadWrite,
}

/// Which realms ask who calls, and whom they know.
pub(super) struct Realms {
    read_only: bool,
    read_write: bool,
    /// Passwords by user.
    known: BTreeMap<String, String>,
}

impl Realms {
    /// Reads the flags.
    ///
    /// # Errors
    /// Credentials that cannot be read, or nobody who could authenticate.
    pub(super) fn read(flags: &Flags) -> Result<Realms, FlagError> {
        let (read_only, read_write) = (flags.on("authenticate_http_readonly"), flags.on("authenticate_http_readwrite"));
        let known = credentials::of_list(flags, "http_credentials")?;
        let demanding = [(read_only, "authenticate_http_readonly"), (read_write, "authenticate_http_readwrite")];
        if let Some((_, name)) = demanding.into_iter().find(|(on, _)| *on && known.is_none()) {
            let why = "nobody could authenticate: --http_credentials is needed, too".to_owned();
            return Err(FlagError::Refused { name, why });
        }
        Ok(Realms { read_only, read_write, known: known.unwrap_or_default() })
    }

    /// Lets a request pass.
    ///
    /// # Errors
    /// 401.
    pub(super) fn check(&self, realm: Realm, request: &Request) -> Result<(), Box<Response>> {
        let name = match realm {
            Realm::ReadOnly if self.read_only => AGENT_READONLY,
            Realm::ReadWrite if self.read_write => AGENT_READWRITE,
            _ => return Ok(()),
        };
        let is_known =
            |user: &str, password: &str| self.known.get(user).is_some_and(|known| same_text(known, password));
        check_basic(request.header("authorization"), name, is_known).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    #[test]
    fn nobody_could_authenticate() {
        for name in ["authenticate_http_readonly", "authenticate_http_readwrite"] {
            let mut flags = Flags::defaults(Part::Agent);
            assert!(Realms::read(&flags).is_ok());
            flags.set(name, "true").unwrap();
            let error = Realms::read(&flags).err().unwrap().to_string();
            assert!(error.contains("--http_credentials is needed"), "{error}");
        }
    }
}
