//! The parent's side of creating a process.
//!
//! There are two ways: sharing memory with a suspended parent (clone with VM and VFORK, as posix_spawn does), or, when
//! the user is switched, a fork.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::pipe::PipeFlags;

use super::clone::CloneArguments;
use super::prepare::Prepared;
use super::stage::{Failure, Stage, run_stage};
use super::{SpawnError, Step};
use crate::cgroups::Entry;
use crate::child::{poll_readable, signal_pidfd, wait};

/// Size of the child stage's stack while it shares the parent's memory. The stage uses some hundred bytes; the C
/// library's functions that it calls use a few thousand at most.
const STACK_BYTES: usize = 64 * 1024;
/// Size of the stack of a stage that makes no mounts and restricts no rights: it makes little but system calls. So much
/// is usually in pages of the caller's stack that were touched before, and each page that a small process does not
/// touch counts.
const SMALL_STACK_BYTES: usize = 4 * 1024;
/// Time limit for a forked child to run its program. A loaded machine needs far less; the limit exists because the new
/// user may stop the process at once, and then the parent must not wait forever.
const FORKED_LIMIT: Duration = Duration::from_secs(30);

/// A process that runs its program, and its pidfd if one was requested. Opening a second one for each task costs too
/// much.
pub(super) struct Started {
    pub(super) pid: libc::pid_t,
    pub(super) pidfd: Option<OwnedFd>,
}

/// Starts the process, and opens a pidfd if it is `watched`.
pub(super) fn start(prepared: &mut Prepared, watched: bool) -> Result<Started, SpawnError> {
    let entered = Entered::new(prepared);
    let copy = prepared.user.is_some() || prepared.isolation.needs_a_copy();
    let small = prepared.isolation.is_little();
    let result = match entered {
        Ok(_guard) if copy => fork(prepared),
        Ok(_guard) if small => vfork_on_own_stack(prepared, watched),
        Ok(_guard) => {
            vfork(prepared, watched, Vec::with_capacity(STACK_BYTES / size_of::<u128>()).spare_capacity_mut())
        }
        Err(error) => Err((Step::Enter, error)),
    };
    result.map_err(|(step, source)| SpawnError::Failed { step, program: prepared.program.clone(), source })
}

/// Sleeps for `time`, or less if a signal arrives.
pub(crate) fn pause(time: Duration) {
    let nanos = i64::try_from(time.as_nanos()).unwrap_or(0);
    // An error means that a signal ended the sleep.
    let _ = rustix::thread::nanosleep(&rustix::time::Timespec { tv_sec: 0, tv_nsec: nanos });
}

/// A guard that blocks all signals for the calling thread until it is dropped: no handler of this process may run in
/// the child.
struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    fn new() -> SignalsBlocked {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both sets are valid for writing; sigfillset fills `all` before it is read, and pthread_sigmask fills
        // `before` (it cannot fail with SIG_BLOCK and valid pointers).
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            SignalsBlocked { before: before.assume_init() }
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by pthread_sigmask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// A guard: until it is dropped, processes that this thread starts are created in another pid namespace.
struct Entered {
    back: Option<OwnedFd>,
}

impl Entered {
    fn new(prepared: &Prepared) -> io::Result<Entered> {
        let target = prepared.isolation.enter.as_ref();
        let Some(target) = target.filter(|_| prepared.isolation.enter_flags & libc::CLONE_NEWPID != 0) else {
            return Ok(Entered { back: None });
        };
        let own = std::fs::File::open("/proc/self/ns/pid")?;
        // SAFETY: an open pidfd. The pid namespace of a thread concerns only the children that this thread starts.
        if unsafe { libc::setns(target.as_raw_fd(), libc::CLONE_NEWPID) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Entered { back: Some(own.into()) })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(own) = &self.back {
            // SAFETY: an open descriptor of our own namespace, which can always be entered again.
            unsafe { libc::setns(own.as_raw_fd(), libc::CLONE_NEWPID) };
        }
    }
}

type Outcome = Result<Started, (Step, io::Error)>;

extern "C" fn enter(stage: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `vfork` passes a pointer to its own Stage, which lives until this process has run its program or ended,
    // and nothing else uses it meanwhile: the parent is suspended.
    let stage = unsafe { &mut *stage.cast::<Stage<'_>>() };
    // SAFETY: this is a process of its own, as run_stage requires.
    unsafe { run_stage(stage) }
}

/// Number of words at the end of the small stack that the child overwrites only if the stack is too small.
const GUARD: usize = 4;
const GUARD_WORD: u128 = 0x7465_7075_6920_6775_6172_6420_776f_7264;

#[inline(never)]
fn vfork_on_own_stack(prepared: &mut Prepared, watched: bool) -> Outcome {
    let mut stack = [const { MaybeUninit::uninit() }; SMALL_STACK_BYTES / size_of::<u128>()];
    let (guard, stack) = stack.split_at_mut(GUARD);
    guard.iter_mut().for_each(|word| *word = MaybeUninit::new(GUARD_WORD));
    let outcome = vfork(prepared, watched, stack);
    // SAFETY: all words were set above. The child may have written to them, which the compiler does not know. If it
    // has, a preloaded library needs more stack than the usual ones, and the memory below, this thread's own stack, may
    // be overwritten.
    if guard.iter().any(|word| unsafe { word.as_ptr().read_volatile() } != GUARD_WORD) {
        std::process::abort();
    }
    outcome
}

fn vfork(prepared: &mut Prepared, watched: bool, stack: &mut [MaybeUninit<u128>]) -> Outcome {
    let mut pidfd: libc::c_int = -1;
    let blocked = SignalsBlocked::new();
    let watch = if watched { libc::CLONE_PIDFD } else { 0 };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD | watch | prepared.isolation.new;
    let mut stage = Stage::new(prepared, -1);
    // SAFETY: `enter` runs on a stack of its own (it grows down from the end of `stack`, which is 16-byte aligned) and
    // only touches `stage`. CLONE_VFORK suspends this thread until the child has left this memory by execve or exit, so
    // stack, stage and pidfd outlive its use of them. Signals are blocked, so no handler runs in the child.
    let pid = unsafe {
        libc::clone(enter, stack.as_mut_ptr_range().end.cast(), flags, (&raw mut stage).cast(), &raw mut pidfd)
    };
    let failed_clone = (pid < 0).then(io::Error::last_os_error);
    let failure = stage.failure;
    drop(blocked);
    if let Some(error) = failed_clone {
        return Err((Step::Clone, error));
    }
    // SAFETY: the clone has succeeded, so the kernel has put a new descriptor here that nothing else owns, if it was
    // to.
    let pidfd = watched.then(|| unsafe { OwnedFd::from_raw_fd(pidfd) });
    match failure {
        None => Ok(Started { pid, pidfd }),
        Some(failure) => Err(reap_failed_child(pid, failure)),
    }
}

fn fork(prepared: &mut Prepared) -> Outcome {
    let (report, reporter) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|e| (Step::Clone, e.into()))?;
    let mut pidfd: libc::c_int = -1;
    let blocked = SignalsBlocked::new();
    let born = match &prepared.isolation.cgroup {
        Some(Entry::Born(directory)) => Some(directory.as_fd()),
        _ => None,
    };
    let arguments = CloneArguments::new(prepared.isolation.new, libc::SIGCHLD, born);
    let mut stage = Stage::new(prepared, reporter.as_raw_fd());
    // SAFETY: the child runs run_stage alone, which takes no locks.
    let forked = unsafe { arguments.fork(Some(&mut pidfd)) };
    if let Ok(0) = forked {
        // SAFETY: this is the child; other threads' locks may be held forever, which is why only run_stage runs.
        unsafe { run_stage(&mut stage) };
    }
    drop(blocked);
    drop(reporter);
    let pid = forked.map_err(|error| (Step::Clone, error))?;
    // SAFETY: the clone has succeeded, so the kernel has put a new descriptor here that nothing else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    match read_report(&report) {
        Ok(None) => Ok(Started { pid, pidfd: Some(pidfd) }),
        Ok(Some(failure)) => Err(reap_failed_child(pid, failure)),
        Err(error) => {
            // Best effort: the process may have ended meanwhile.
            let _ = signal_pidfd(pidfd.as_fd(), libc::SIGKILL);
            let _ = wait(pid);
            Err((Step::Exec, error))
        }
    }
}

/// Returns the failure that the child reported before it ended; `None` if its program runs, because that closes the
/// pipe.
fn read_report(report: &OwnedFd) -> io::Result<Option<Failure>> {
    let mut bytes = [0; Failure::BYTES];
    if !poll_readable(report.as_fd(), Some(FORKED_LIMIT))? {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let length = rustix::io::retry_on_intr(|| rustix::io::read(report, &mut bytes))?;
    Ok((length == bytes.len()).then(|| Failure::from_bytes(bytes)))
}

/// Reaps a child that has reported its failure, and is ending. Returns the failure as an error.
fn reap_failed_child(pid: libc::pid_t, failure: Failure) -> (Step, io::Error) {
    // The pid can only be that of the ended child; if it were not, there would be nothing left to do.
    let _ = wait(pid);
    (Step::from_number(failure.step), io::Error::from_raw_os_error(failure.errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Program, Rlimit, RlimitKind, Spec};

    #[test]
    fn half_of_the_small_stack_would_do() {
        let script = std::env::temp_dir().join(format!("tepui-script-{}", std::process::id()));
        std::fs::write(&script, "true").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let argv = |file: &std::path::Path| Program::Argv { file: file.into(), argv: Vec::new() };
        let limit = Rlimit { kind: RlimitKind::Nofile, soft: Some(64), hard: Some(64) };
        // The shell runs a file that is not a program, and a missing one is looked up along the path.
        for (program, runs) in
            [(Program::Shell("true".into()), true), (argv(&script), true), (argv("no-such-program".as_ref()), false)]
        {
            let mut spec = Spec::new(program);
            (spec.working_dir, spec.die_with_parent, spec.rlimits) = (Some("/".into()), true, vec![limit]);
            let mut stack = [MaybeUninit::new(u128::MAX); SMALL_STACK_BYTES / size_of::<u128>()];
            let started = vfork(&mut Prepared::new(&spec).unwrap(), false, &mut stack);
            assert_eq!(started.is_ok(), runs);
            if let Ok(started) = started {
                assert!(wait(started.pid).unwrap().success());
            }
            // SAFETY: all words were set above, and stay initialized whatever the child has written.
            let words = stack.map(|word| unsafe { word.assume_init() });
            let untouched = words.iter().take_while(|word| **word == u128::MAX).count();
            assert!(untouched > words.len() / 2, "{untouched} of {} words are untouched", words.len());
        }
        std::fs::remove_file(&script).unwrap();
    }
}
