//! Looks up program files by the rules of `execvp(3)`, applied to the environment of the new process.
//!
//! It does not access the file system; execve finds out which candidate exists.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The search path when the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Returns the files to try for a program called `file`, in order.
pub(crate) fn candidates(file: &OsStr, environment: &[(OsString, OsString)]) -> Vec<OsString> {
    if file.as_bytes().contains(&b'/') || file.is_empty() {
        return vec![file.to_owned()];
    }
    let path = environment.iter().rev().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value);
    let join = |directory: &[u8]| {
        let mut whole = OsString::from(OsStr::from_bytes(directory));
        if !directory.is_empty() {
            whole.push("/");
        }
        whole.push(file);
        whole
    };
    path.as_bytes().split(|&b| b == b':').map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn along_the_path() {
        let environment =
            [("PATH".into(), "/x".into()), ("A".into(), "b".into()), ("PATH".into(), "/a:/b/c::d".into())];
        assert_eq!(candidates(OsStr::new("ls"), &environment), ["/a/ls", "/b/c/ls", "ls", "d/ls"]);
        assert_eq!(candidates(OsStr::new("./ls"), &environment), ["./ls"]);
        assert_eq!(candidates(OsStr::new("ls"), &[])[0], "/usr/local/sbin/ls");
    }
}
