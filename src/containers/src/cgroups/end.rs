//! Kills all processes of a control group, and removes it.
//!
//! Version 2 has a file for killing. In version 1 the group is frozen first, so that it cannot grow while its processes
//! are read.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::group::{Group, LEAF, below};
use super::{CgroupError, failed, read, write};

const PAUSE: Duration = Duration::from_millis(1);
/// Time limit for freezing. Processes that wait for memory or a disk cannot be frozen, only killed.
const FREEZE_LIMIT: Duration = Duration::from_millis(20);
/// Time limit for the last process to leave a group that is removed.
const REMOVE_LIMIT: Duration = Duration::from_secs(5);

impl Group {
    /// Kills all processes in the group and below it by SIGKILL, and waits until they are gone.
    ///
    /// # Errors
    /// [`CgroupError::Remaining`] if processes are left after `limit`.
    #[allow(clippy::disallowed_methods)] // a deadline of real processes needs the real clock
    pub fn end(&self, limit: Duration) -> Result<(), CgroupError> {
        let deadline = Instant::now() + limit;
        let main = self.main();
        let mut pause = PAUSE;
        loop {
            let processes = self.processes();
            if processes.is_empty() {
                return Ok(());
            }
            if self.is_v2() {
                write(&main.join("cgroup.kill"), "1")?;
            } else {
                freeze_and_kill(self, main);
            }
            // Zombies leave the group at once; other processes need a moment to exit.
            while !self.processes().is_empty() && Instant::now() < deadline {
                crate::spawn::pause(pause);
                if pause >= Duration::from_millis(64) {
                    break;
                }
                pause *= 2;
            }
            if Instant::now() >= deadline {
                let remaining = self.processes();
                return match remaining.is_empty() {
                    true => Ok(()),
                    false => Err(CgroupError::Remaining { path: main.to_owned(), remaining }),
                };
            }
        }
    }

    /// Removes the group if it contains neither processes nor groups. Returns whether it is gone. This is enough for a
    /// container that ended normally.
    pub fn remove_if_empty(&self) -> bool {
        if self.is_v2() {
            // If the leaf cannot be removed, neither can the group.
            let _ = std::fs::remove_dir(self.main().join(LEAF));
        }
        let gone = match std::fs::remove_dir(self.main()) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        gone && self.remove().is_ok()
    }

    /// Removes the group, which must have no processes, with all groups below it. A group that does not exist is not an
    /// error.
    ///
    /// # Errors
    /// The error of the system after some tries: the last process of a group may take a moment to leave it.
    #[allow(clippy::disallowed_methods)]
    pub fn remove(&self) -> Result<(), CgroupError> {
        let deadline = Instant::now() + REMOVE_LIMIT;
        for directory in self.all() {
            while let Err(error) = remove_tree(directory) {
                let busy = error.raw_os_error() == Some(libc::EBUSY);
                if !busy || Instant::now() >= deadline {
                    return Err(failed("remove the cgroup", directory)(error));
                }
                crate::spawn::pause(PAUSE);
            }
        }
        Ok(())
    }
}

fn remove_tree(directory: &Path) -> io::Result<()> {
    // The usual case: the group has no groups below it.
    match std::fs::remove_dir(directory) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(_) => {}
    }
    let mut result = Ok(());
    below(directory, &mut |inner| match std::fs::remove_dir(inner) {
        Err(error) if error.kind() != io::ErrorKind::NotFound && result.is_ok() => result = Err(error),
        _ => {}
    });
    result
}

#[allow(clippy::disallowed_methods)]
fn freeze_and_kill(group: &Group, main: &Path) {
    let state = main.join("freezer.state");
    let deadline = Instant::now() + FREEZE_LIMIT;
    // A group that cannot be frozen is killed nevertheless, so an error is not reported.
    let asked = write(&state, "FROZEN").is_ok();
    while asked && Instant::now() < deadline && read(&state).is_some_and(|text| text.trim() != "FROZEN") {
        crate::spawn::pause(PAUSE / 10);
        let _ = write(&state, "FROZEN");
    }
    for pid in group.processes() {
        if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 1) {
            // A process in a frozen group cannot end, so its pid cannot be reused.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    let _ = write(&state, "THAWED");
}
