//! HTTP authentication of a master, from its flags.
//!
//! `handler.rs` assigns endpoints to realms.

use std::collections::BTreeMap;

use wire::auth::{MASTER_READONLY, MASTER_READWRITE, MASTER_SCHEDULER};

use crate::flags::FlagError;
use crate::flags::master::AccessFlags;
use crate::realms::{Guard, Realm, Realms};

fn guards(flags: &AccessFlags) -> [Guard; 3] {
    let guard = |realm, name, flag, is_on| Guard { realm, name, flag, is_on };
    [
        guard(Realm::ReadOnly, MASTER_READONLY, "authenticate_http_readonly", flags.authenticate_http_readonly),
        guard(Realm::ReadWrite, MASTER_READWRITE, "authenticate_http_readwrite", flags.authenticate_http_readwrite),
        guard(Realm::Scheduler, MASTER_SCHEDULER, "authenticate_http_frameworks", flags.authenticate_http_frameworks),
    ]
}

/// Reads the flags for HTTP authentication, and returns the protected realms. `known` are the users of `--credentials`,
/// which agents and drivers use as well.
///
/// # Errors
/// An unknown authenticator, or a protected realm without users.
pub(super) fn read(flags: &AccessFlags, known: Option<BTreeMap<String, String>>) -> Result<Realms, FlagError> {
    let refused = |name, why: &str| Err(FlagError::Refused { name, why: why.to_owned() });
    let of_frameworks = flags.http_framework_authenticators.as_deref().unwrap_or_default();
    for (name, text) in
        [("http_authenticators", flags.http_authenticators.as_str()), ("http_framework_authenticators", of_frameworks)]
    {
        if !matches!(text, "" | "basic") {
            return refused(name, "must be 'basic'");
        }
    }
    if flags.authenticate_http_frameworks && of_frameworks.is_empty() {
        return refused("authenticate_http_frameworks", "--http_framework_authenticators=basic is needed, too");
    }
    Realms::read(&guards(flags), "credentials", known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MasterFlags;

    #[test]
    fn invalid_combinations_are_rejected() {
        let known = BTreeMap::from([("ann".to_owned(), "x".to_owned())]);
        let read = |given: &[(&str, &str)], known| {
            super::read(&MasterFlags::with(given).access, known).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(read(&[], None), Ok(()));
        let frameworks = ("authenticate_http_frameworks", "true");
        let basic = ("http_framework_authenticators", "basic");
        assert_eq!(read(&[frameworks, basic, ("authenticate_http_readonly", "true")], Some(known.clone())), Ok(()));
        assert!(read(&[frameworks], Some(known.clone())).unwrap_err().contains("authenticators=basic is needed"));
        assert!(read(&[frameworks, basic], None).unwrap_err().contains("--credentials is needed"));
        assert!(read(&[("authenticate_http_readwrite", "1")], None).unwrap_err().contains("--credentials is needed"));
        assert!(read(&[("http_authenticators", "basic,jwt")], None).unwrap_err().contains("must be 'basic'"));
    }
}
