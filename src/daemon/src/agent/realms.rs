//! HTTP authentication of an agent, from its flags.
//!
//! Executors' calls are in a realm of their own without authentication. Calls of executors to `/api/v1`, as those of
//! pods, are in the operators' realm.

use wire::auth::{AGENT_READONLY, AGENT_READWRITE};

use crate::credentials;
use crate::flags::FlagError;
use crate::flags::agent::AccessFlags;
use crate::realms::{Guard, Realm, Realms};

/// The flag that names the users.
const USERS: &str = "http_credentials";

/// Reads the flags.
///
/// # Errors
/// Credentials that cannot be read, or a protected realm without users.
pub(super) fn read(flags: &AccessFlags) -> Result<Realms, FlagError> {
    let guard = |realm, name, flag, is_on| Guard { realm, name, flag, is_on };
    let guards = [
        guard(Realm::ReadOnly, AGENT_READONLY, "authenticate_http_readonly", flags.authenticate_http_readonly),
        guard(Realm::ReadWrite, AGENT_READWRITE, "authenticate_http_readwrite", flags.authenticate_http_readwrite),
    ];
    Realms::read(&guards, USERS, credentials::of_list(USERS, flags.http_credentials.as_deref())?)
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
