//! Looks up users in the user database: from a name to numbers.
//!
//! It does not switch users; the child stage of `spawn/` does.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// A user of this host, with all that is needed to switch to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Id of the primary group.
    pub gid: u32,
    /// Ids of all groups, the primary one included.
    pub groups: Vec<u32>,
}

/// The error when a user could not be looked up.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The host does not know the name.
    #[error("No such user '{0}'")]
    Unknown(String),
    /// The user database could not be read.
    #[error("Failed to look up user '{name}'")]
    Lookup {
        /// The user's name.
        name: String,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Maximum size of an entry or a list of groups, more than any needs: a broken database must not exhaust the memory.
const LIMIT: usize = 1 << 20;

impl User {
    /// Looks up `name` in the host's user database.
    ///
    /// # Errors
    /// [`UserError::Unknown`] if there is no such user.
    pub fn by_name(name: &str) -> Result<User, UserError> {
        let unknown = || UserError::Unknown(name.to_owned());
        let c_name = CString::new(name).map_err(|_| unknown())?;
        let failed =
            |code| UserError::Lookup { name: name.to_owned(), source: std::io::Error::from_raw_os_error(code) };
        let (uid, gid) = passwd_entry(&c_name).map_err(failed)?.ok_or_else(unknown)?;
        Ok(User { name: name.to_owned(), uid, gid, groups: group_list(&c_name, gid) })
    }

    /// Looks up `name` as [`User::by_name`] does. Returns `None` if the calling process runs as this user already. The
    /// name of its own user is looked up once.
    ///
    /// # Errors
    /// As [`User::by_name`].
    pub fn other(name: &str) -> Result<Option<User>, UserError> {
        static OWN: OnceLock<Option<CString>> = OnceLock::new();
        let own = OWN.get_or_init(|| name_of(rustix::process::geteuid().as_raw()));
        if own.as_ref().is_some_and(|own| own.as_bytes() == name.as_bytes()) {
            return Ok(None);
        }
        User::by_name(name).map(|user| Some(user).filter(|user| !user.is_current()))
    }

    /// Returns whether the calling process runs as this user.
    pub fn is_current(&self) -> bool {
        rustix::process::geteuid().as_raw() == self.uid
    }
}

/// Returns the uid and primary gid of `name`; `Err` contains an errno.
fn passwd_entry(name: &CStr) -> Result<Option<(u32, u32)>, i32> {
    let mut buffer: Vec<libc::c_char> = vec![0; 1024];
    loop {
        let mut entry = MaybeUninit::<libc::passwd>::uninit();
        let mut found: *mut libc::passwd = std::ptr::null_mut();
        // SAFETY: every pointer is valid for the call, the length is that of the buffer.
        let code = unsafe {
            libc::getpwnam_r(name.as_ptr(), entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut found)
        };
        match code {
            0 if found.is_null() => return Ok(None),
            // SAFETY: `found` is not null, so the call has filled `entry`; the two numbers are copied out of it.
            0 => return Ok(Some(unsafe { ((*found).pw_uid, (*found).pw_gid) })),
            libc::ERANGE if buffer.len() < LIMIT => buffer.resize(buffer.len() * 4, 0),
            libc::EINTR => {}
            // Some C libraries return these errors instead of "not found".
            libc::ENOENT | libc::ESRCH => return Ok(None),
            other => return Err(other),
        }
    }
}

/// Returns the name of a user; `None` if there is none.
fn name_of(uid: u32) -> Option<CString> {
    let mut buffer: Vec<libc::c_char> = vec![0; 1024];
    loop {
        let mut entry = MaybeUninit::<libc::passwd>::uninit();
        let mut found: *mut libc::passwd = std::ptr::null_mut();
        let (entry_room, room) = (entry.as_mut_ptr(), buffer.as_mut_ptr());
        // SAFETY: every pointer is valid for the call, the length is that of the buffer.
        let code = unsafe { libc::getpwuid_r(uid, entry_room, room, buffer.len(), &raw mut found) };
        match code {
            libc::ERANGE if buffer.len() < LIMIT => buffer.resize(buffer.len() * 4, 0),
            libc::EINTR => {}
            // SAFETY: `found` is not null, so the call has filled the entry, whose name lies in the buffer.
            0 if !found.is_null() => return Some(unsafe { CStr::from_ptr((*found).pw_name) }.to_owned()),
            _ => return None,
        }
    }
}

/// Returns the ids of all groups of `name`, `gid` included.
fn group_list(name: &CStr, gid: u32) -> Vec<u32> {
    let mut groups: Vec<libc::gid_t> = vec![0; 32];
    loop {
        let mut count = libc::c_int::try_from(groups.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: `count` is the length of `groups`; the call writes at most this many.
        let code = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        let count = usize::try_from(count).unwrap_or(0);
        if code >= 0 {
            groups.truncate(count);
            return groups;
        }
        if groups.len() >= LIMIT {
            return vec![gid];
        }
        groups.resize((groups.len() * 2).max(count), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known() {
        let root = User::by_name("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert!(root.groups.contains(&0));
    }

    #[test]
    fn unknown_is_named() {
        for name in ["no-such-user-here", "", "a\0b"] {
            let error = User::by_name(name).unwrap_err();
            assert!(matches!(&error, UserError::Unknown(n) if n == name), "{error}");
        }
    }
}
