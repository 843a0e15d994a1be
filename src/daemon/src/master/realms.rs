//! Who may ask what by HTTP: the realms of wire/http.md 2.1, and users and passwords (HTTP Basic) in those that ask for them.
//!
//! It knows no endpoints; `handler` says in which realm each is.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::same_text;
use wire::auth::{MASTER_READONLY, MASTER_READWRITE, MASTER_SCHEDULER, check_basic};
use wire::http::{Request, Response};

use crate::flags::{FlagError, Flags};

/// A set of endpoints that ask alike who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Realm {
    /// Whoever asks gets an answer.
    Open,
    ReadOnly,
    ReadWrite,
    Scheduler,
}

/// Which realms ask who calls, and whom they know.
pub(super) struct Realms {
    read_only: bool,
    read_write: bool,
    scheduler: bool,
    /// Passwords by user: the same list as agents and drivers have.
    known: BTreeMap<String, String>,
}

impl Realms {
    /// Reads the flags; `known` is what `--credentials` says.
    ///
    /// # Errors
    /// A way of authenticating that is not here, or nobody who could.
    pub(super) fn read(flags: &Flags, known: Option<&BTreeMap<String, String>>) -> Result<Realms, FlagError> {
        let refused = |name, why: &str| Err(FlagError::Refused { name, why: why.to_owned() });
        let (read_only, read_write) = (flags.on("authenticate_http_readonly"), flags.on("authenticate_http_readwrite"));
        let scheduler = flags.on("authenticate_http_frameworks");
        for name in ["http_authenticators", "http_framework_authenticators"] {
            if flags.get(name).is_some_and(|text| !matches!(text, "" | "basic")) {
                return refused(name, "there is only basic");
            }
        }
        if scheduler && flags.text("http_framework_authenticators").is_empty() {
            return refused("authenticate_http_frameworks", "--http_framework_authenticators=basic is needed, too");
        }
        let demanding = [
            (read_only, "authenticate_http_readonly"),
            (read_write, "authenticate_http_readwrite"),
            (scheduler, "authenticate_http_frameworks"),
        ];
        if let Some((_, name)) = demanding.into_iter().find(|(on, _)| *on && known.is_none()) {
            return refused(name, "nobody could authenticate: --credentials is needed, too");
        }
        Ok(Realms { read_only, read_write, scheduler, known: known.cloned().unwrap_or_default() })
    }

    /// Who asks; nobody in particular in a realm that does not ask for it.
    ///
    /// # Errors
    /// 401.
    pub(super) fn principal(&self, realm: Realm, request: &Request) -> Result<Option<Arc<str>>, Box<Response>> {
        let name = match realm {
            Realm::ReadOnly if self.read_only => MASTER_READONLY,
            Realm::ReadWrite if self.read_write => MASTER_READWRITE,
            Realm::Scheduler if self.scheduler => MASTER_SCHEDULER,
            _ => return Ok(None),
        };
        let is_known =
            |user: &str, password: &str| self.known.get(user).is_some_and(|known| same_text(known, password));
        check_basic(request.header("authorization"), name, is_known).map(|user| Some(user.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    #[test]
    fn what_cannot_be_is_refused() {
        let known = BTreeMap::from([("ann".to_owned(), "x".to_owned())]);
        let read = |given: &[(&str, &str)], known| {
            let mut flags = Flags::defaults(Part::Master);
            given.iter().for_each(|(name, value)| flags.set(name, value).unwrap());
            Realms::read(&flags, known).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(read(&[], None), Ok(()));
        let frameworks = ("authenticate_http_frameworks", "true");
        let basic = ("http_framework_authenticators", "basic");
        assert_eq!(read(&[frameworks, basic, ("authenticate_http_readonly", "true")], Some(&known)), Ok(()));
        assert!(read(&[frameworks], Some(&known)).unwrap_err().contains("authenticators=basic is needed"));
        assert!(read(&[frameworks, basic], None).unwrap_err().contains("--credentials is needed"));
        assert!(read(&[("authenticate_http_readwrite", "1")], None).unwrap_err().contains("--credentials is needed"));
        assert!(read(&[("http_authenticators", "basic,jwt")], None).unwrap_err().contains("only basic"));
    }
}
