//! What an agent's flags say of who may ask what by HTTP.
//!
//! Executors' calls are in a realm of their own, which asks nobody. What executors ask of `/api/v1`, as those of pods do, is in
//! the operators' realm.

use wire::auth::{AGENT_READONLY, AGENT_READWRITE};

use crate::credentials;
use crate::flags::{FlagError, Flags};
use crate::realms::{Guard, Realm, Realms};

const GUARDS: [Guard; 2] = [
    (Realm::ReadOnly, "authenticate_http_readonly", AGENT_READONLY),
    (Realm::ReadWrite, "authenticate_http_readwrite", AGENT_READWRITE),
];
/// The flag that names the users.
const USERS: &str = "http_credentials";

/// Reads the flags.
///
/// # Errors
/// Credentials that cannot be read, or nobody who could authenticate.
pub(super) fn read(flags: &Flags) -> Result<Realms, FlagError> {
    Realms::read(flags, &GUARDS, USERS, credentials::of_list(flags, USERS)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    #[test]
    fn nobody_could_authenticate() {
        for name in ["authenticate_http_readonly", "authenticate_http_readwrite"] {
            let mut flags = Flags::defaults(Part::Agent);
            assert!(read(&flags).is_ok());
            flags.set(name, "true").unwrap();
            let error = read(&flags).err().unwrap().to_string();
            assert!(error.contains("--http_credentials is needed"), "{error}");
        }
    }
}
