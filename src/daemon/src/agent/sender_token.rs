//! The session token by which masters recognise this agent, and it recognises its master: `meta/session` in the work
//! directory.
//!
//! It survives the agent's process, so that no other process can take the agent's place while it restarts.

use std::io;
use std::path::Path;

use wire::libprocess::SenderToken;

use crate::random;

/// Returns the token in the directory; a new one if the file is missing or invalid. If a new one cannot be written,
/// only this process uses it.
pub(super) fn of(meta: &Path) -> SenderToken {
    let path = meta.join("session");
    match std::fs::read_to_string(&path).map(|text| text.trim().parse()) {
        Ok(Ok(sender_token)) => return sender_token,
        Ok(Err(error)) => tracing::warn!("'{}' is replaced: {error}", path.display()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!("'{}' is replaced, because it cannot be read: {error}", path.display()),
    }
    let sender_token = SenderToken::new(random::bytes());
    if let Err(error) = store::replace_file(&path, sender_token.digits().as_bytes()) {
        tracing::warn!(
            "The session of this agent cannot be saved for its next start: {:#}",
            anyhow::Error::from(error)
        );
    }
    sender_token
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_session_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let first = of(directory.path());
        assert_eq!(of(directory.path()), first);
        let path = directory.path().join("session");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "x").unwrap();
        let second = of(directory.path());
        assert_ne!(second, first);
        assert_eq!(of(directory.path()), second);
        assert_ne!(of(Path::new("/proc/no/such/directory")), second);
    }
}
