//! What a master's flags say of who may ask what by HTTP.
//!
//! It knows no endpoints; `handler` says in which realm each is.

use std::collections::BTreeMap;

use wire::auth::{MASTER_READONLY, MASTER_READWRITE, MASTER_SCHEDULER};

use crate::flags::{FlagError, Flags};
use crate::realms::{Guard, Realm, Realms};

const GUARDS: [Guard; 3] = [
    (Realm::ReadOnly, "authenticate_http_readonly", MASTER_READONLY),
    (Realm::ReadWrite, "authenticate_http_readwrite", MASTER_READWRITE),
    (Realm::Scheduler, "authenticate_http_frameworks", MASTER_SCHEDULER),
];

/// Reads the flags; `known` is what `--credentials` says, the same list as agents and drivers have.
///
/// # Errors
/// A way of authenticating that is not here, or nobody who could.
pub(super) fn read(flags: &Flags, known: Option<BTreeMap<String, String>>) -> Result<Realms, FlagError> {
    let refused = |name, why: &str| Err(FlagError::Refused { name, why: why.to_owned() });
    for name in ["http_authenticators", "http_framework_authenticators"] {
        if flags.get(name).is_some_and(|text| !matches!(text, "" | "basic")) {
            return refused(name, "there is only basic");
        }
    }
    if flags.on("authenticate_http_frameworks") && flags.text("http_framework_authenticators").is_empty() {
        return refused("authenticate_http_frameworks", "--http_framework_authenticators=basic is needed, too");
    }
    Realms::read(flags, &GUARDS, "credentials", known)
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
            super::read(&flags, known).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(read(&[], None), Ok(()));
        let frameworks = ("authenticate_http_frameworks", "true");
        let basic = ("http_framework_authenticators", "basic");
        assert_eq!(read(&[frameworks, basic, ("authenticate_http_readonly", "true")], Some(known.clone())), Ok(()));
        assert!(read(&[frameworks], Some(known.clone())).unwrap_err().contains("authenticators=basic is needed"));
        assert!(read(&[frameworks, basic], None).unwrap_err().contains("--credentials is needed"));
        assert!(read(&[("authenticate_http_readwrite", "1")], None).unwrap_err().contains("--credentials is needed"));
        assert!(read(&[("http_authenticators", "basic,jwt")], None).unwrap_err().contains("only basic"));
    }
}
