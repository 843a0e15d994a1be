//! Restricts this process, and threads that read archives, to the files that they need, with Landlock: landlock(7).
//!
//! Other code resolves paths with care; this file limits the damage where that has a defect. It does not restrict which
//! files a download reads: the task's user decides that. A kernel that is older than 5.19, or without Landlock,
//! restricts nothing.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use crate::archive_error::ArchiveError;

/// The first version under which files can be renamed between directories, as the store of images does.
const OLDEST: ABI = ABI::V2;
/// The newest version that this file supports.
const NEWEST: ABI = ABI::V6;

/// Reason why a restriction cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    /// A directory that stays accessible cannot be opened.
    #[error("'{path}' cannot be opened")]
    Open {
        /// Path of the directory.
        path: String,
        /// Cause of the error.
        source: landlock::PathFdError,
    },
    /// The kernel rejects the rule of a directory.
    #[error("the restriction to '{path}' is refused")]
    Refused {
        /// Path of the directory.
        path: String,
        /// Cause of the error.
        source: RulesetError,
    },
    /// The kernel rejects the restriction.
    #[error("the restriction cannot be created")]
    Ruleset(#[from] RulesetError),
}

/// Restricts this process: it may create, change and delete files only below `directories`, may bind no port, and may
/// start programs only if `programs` is set. Threads that already run are not restricted.
pub(crate) fn process(directories: &[&Path], programs: bool) -> Result<(), ConfineError> {
    let mut rights = AccessFs::from_write(NEWEST);
    if !programs {
        rights |= AccessFs::Execute;
    }
    let ruleset = ruleset(rights)?.handle_access(AccessNet::BindTcp)?.scope(Scope::from_all(NEWEST))?.create()?;
    // Programs without input or output use this device instead.
    let null = Path::new("/dev/null");
    let ruleset = allow(ruleset, null, AccessFs::WriteFile.into())?;
    let below = |ruleset, directory: &&Path| allow(ruleset, directory, AccessFs::from_write(NEWEST));
    directories.iter().try_fold(ruleset, below)?.restrict_self()?;
    Ok(())
}

/// Calls `work` in a thread that reads and writes files only below `directory`, starts no programs, and has no network.
/// Files that are already open can be read.
pub(crate) fn thread<T: Send>(
    directory: &Path,
    work: impl FnOnce() -> Result<T, ArchiveError> + Send,
) -> Result<T, ArchiveError> {
    let confined = || {
        let ruleset = ruleset(AccessFs::from_all(NEWEST))?.handle_access(AccessNet::from_all(NEWEST))?;
        let ruleset = ruleset.scope(Scope::from_all(NEWEST))?.create()?;
        let rights = AccessFs::from_all(NEWEST) & !BitFlags::from(AccessFs::Execute);
        allow(ruleset, directory, rights)?.restrict_self()?;
        Ok::<(), ConfineError>(())
    };
    let run = || {
        confined()?;
        work()
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap_or(Err(ArchiveError::Panicked)))
}

fn ruleset(rights: BitFlags<AccessFs>) -> Result<Ruleset, ConfineError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::SoftRequirement);
    let ruleset = ruleset.handle_access(rights & AccessFs::from_all(OLDEST))?;
    Ok(ruleset.set_compatibility(CompatLevel::BestEffort).handle_access(rights)?)
}

fn allow(ruleset: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> Result<RulesetCreated, ConfineError> {
    let name = || path.display().to_string();
    let file = PathFd::new(path).map_err(|source| ConfineError::Open { path: name(), source })?;
    // Rights of directories do not apply to a file.
    let rule = PathBeneath::new(file, rights);
    ruleset.add_rule(rule).map_err(|source| ConfineError::Refused { path: name(), source })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;

    use super::*;

    /// Returns a directory with `inside/a`, `inside/below` and `outside/b`.
    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        for directory in ["inside/below", "outside"] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        fs::write(place.path().join("inside/a"), "a").unwrap();
        fs::write(place.path().join("outside/b"), "b").unwrap();
        std::os::unix::fs::symlink("../outside", place.path().join("inside/link")).unwrap();
        place
    }

    fn denied<T>(result: std::io::Result<T>) -> bool {
        result.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    }

    #[test]
    fn a_thread_has_its_directory_only() {
        let place = place();
        let (inside, outside) = (place.path().join("inside"), place.path().join("outside"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread(&inside, || {
            fs::rename(inside.join("a"), inside.join("below/a")).unwrap();
            assert_eq!(fs::read_to_string(inside.join("below/a")).unwrap(), "a");
            for refused in [
                denied(fs::read(outside.join("b"))),
                denied(fs::write(inside.join("link/c"), "c")),
                denied(fs::remove_file(outside.join("b"))),
                denied(fs::create_dir(outside.join("d"))),
                denied(Command::new("/bin/true").status()),
                denied(TcpStream::connect(address)),
            ] {
                assert!(refused);
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read_to_string(outside.join("b")).unwrap(), "b", "other threads are not restricted");
    }

    #[test]
    fn a_process_writes_to_its_directories_only() {
        let place = place();
        let (inside, outside) = (place.path().join("inside"), place.path().join("outside"));
        let restricted = |programs| {
            process(&[&inside], programs).unwrap();
            fs::copy(outside.join("b"), inside.join("below/b")).unwrap();
            assert!(denied(fs::write(inside.join("link/c"), "c")));
            assert!(denied(fs::remove_file(outside.join("b"))));
            assert_eq!(denied(Command::new("/bin/true").stdout(std::process::Stdio::null()).status()), !programs);
        };
        for programs in [true, false] {
            std::thread::scope(|scope| scope.spawn(|| restricted(programs)).join().unwrap());
        }
    }

    #[test]
    fn a_directory_that_is_not_there() {
        assert_eq!(process(&[Path::new("/no/such")], true).unwrap_err().to_string(), "'/no/such' cannot be opened");
        assert!(
            thread(Path::new("/no/such"), || Ok(()))
                .unwrap_err()
                .to_string()
                .starts_with("'/no/such' cannot be opened")
        );
    }
}
