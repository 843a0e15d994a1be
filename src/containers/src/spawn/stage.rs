//! The child stage: what a new process does before it runs its program.
//!
//! It may share the parent's memory, or be a copy of one thread of many. So nothing here allocates, locks, or calls a
//! function that is not async-signal-safe. The user is switched by plain system calls, because the C library's
//! functions would switch the threads of the parent too.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use super::prepare::Prepared;
use super::{Step, mounts, rights};
use crate::RlimitKind;
use crate::cgroups::Entry;

/// The failed step and the errno.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    pub(super) step: u32,
    pub(super) errno: i32,
}

impl Failure {
    pub(super) const BYTES: usize = 8;

    fn to_bytes(self) -> [u8; Failure::BYTES] {
        (u64::from(self.step) << 32 | u64::from(self.errno.cast_unsigned())).to_ne_bytes()
    }

    pub(super) fn from_bytes(bytes: [u8; Failure::BYTES]) -> Failure {
        let whole = u64::from_ne_bytes(bytes);
        Failure { step: (whole >> 32) as u32, errno: (whole as u32).cast_signed() }
    }
}

/// The data that the child reads, and the failure that it writes.
pub(super) struct Stage<'a> {
    prepared: &'a mut Prepared,
    streams: [RawFd; 3],
    /// Descriptor to which the child writes a failure, beside `failure`; -1 for none.
    reporter: RawFd,
    /// The failure, written by a child that shares the parent's memory.
    pub(super) failure: Option<Failure>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(prepared: &'a mut Prepared, reporter: RawFd) -> Stage<'a> {
        Stage { streams: prepared.stream_fds(), prepared, reporter, failure: None }
    }
}

/// Runs all steps and executes the program. Ends the process if one fails.
///
/// # Safety
/// The caller is a new process with all signals blocked, in which nothing but this runs.
pub(super) unsafe fn run_stage(stage: &mut Stage<'_>) -> ! {
    // SAFETY: the preconditions of the steps are this function's.
    let Err(step) = unsafe { steps(stage) };
    let failure = Failure { step: step as u32, errno: errno() };
    stage.failure = Some(failure);
    // SAFETY: write and _exit are async-signal-safe; the bytes are valid.
    unsafe {
        if stage.reporter >= 0 {
            let bytes = failure.to_bytes();
            libc::write(stage.reporter, bytes.as_ptr().cast(), bytes.len());
        }
        libc::_exit(127)
    }
}

pub(super) fn errno() -> i32 {
    // SAFETY: the C library's errno of this thread; always valid.
    unsafe { *libc::__errno_location() }
}

/// Returns `Err(step)` unless the system call succeeded.
fn check(result: impl Into<i64>, step: Step) -> Result<(), Step> {
    if result.into() < 0 { Err(step) } else { Ok(()) }
}

/// Runs the steps one by one. Returns only if one fails.
///
/// # Safety
/// As [`run_stage`].
unsafe fn steps(stage: &mut Stage<'_>) -> Result<std::convert::Infallible, Step> {
    // SAFETY: only async-signal-safe calls, on data that the parent prepared and keeps.
    unsafe {
        default_signals();
        settle(stage.prepared, stage.streams)?;
        if stage.prepared.die_with_parent {
            // Set after the user is switched, which would reset it.
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), Step::Session)?;
        }
        unblock_signals();
        execute(stage.prepared);
    }
    Err(Step::Exec)
}

/// Sets up the state in which the program starts: group, namespaces, session, limits, streams, mounts, directory, user.
///
/// # Safety
/// The caller is a new process, with one thread, in which nothing but this runs.
pub(super) unsafe fn settle(prepared: &Prepared, streams: [RawFd; 3]) -> Result<(), Step> {
    // SAFETY: only async-signal-safe calls, on data that was prepared and is kept.
    unsafe {
        enter(prepared)?;
        if prepared.new_session {
            check(libc::setsid(), Step::Session)?;
        }
        for (kind, limit) in &prepared.rlimits {
            check(libc::setrlimit64(resource(*kind), limit), Step::Rlimit)?;
        }
        for (target, source) in (0..).zip(streams) {
            if source >= 0 {
                check(libc::dup2(source, target), Step::Streams)?;
            }
        }
        if prepared.isolation.terminal {
            check(libc::ioctl(0, libc::TIOCSCTTY, 0), Step::Terminal)?;
        }
        if prepared.isolation.mounts_of_its_own {
            mounts::make(&prepared.isolation.mounts, prepared.isolation.root.as_ref())?;
        }
        // Descriptors of this program are closed on exec anyway; this is for those that a library has opened without
        // that flag. An older kernel that does not know the call leaves them open.
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, CLOSE_RANGE_CLOEXEC);
        if let Some(directory) = &prepared.directory {
            check(libc::fchdir(directory.as_raw_fd()), Step::Chdir)?;
        } else if let Some(directory) = &prepared.working_dir {
            check(libc::chdir(directory.as_ptr()), Step::Chdir)?;
        }
        become_user(prepared)
    }
}

const CLOSE_RANGE_CLOEXEC: u32 = 1 << 2;

/// Switches to the user, with the rights of the spec and no others.
///
/// # Safety
/// As [`run_stage`].
unsafe fn become_user(prepared: &Prepared) -> Result<(), Step> {
    let isolation = &prepared.isolation;
    // SAFETY: system calls on numbers and on data that the parent keeps.
    unsafe {
        if let Some(capabilities) = &isolation.capabilities {
            rights::before_user(capabilities)?;
        }
        // Without `no_new_privs`, which is set below, a filter needs rights that the user does not have any more.
        if !isolation.no_new_privileges {
            rights::filter(&isolation.seccomp)?;
        }
        if let Some(user) = &prepared.user {
            let groups = (user.groups.len(), user.groups.as_ptr());
            check(libc::syscall(libc::SYS_setgroups, groups.0, groups.1), Step::User)?;
            check(libc::syscall(libc::SYS_setresgid, user.gid, user.gid, user.gid), Step::User)?;
            check(libc::syscall(libc::SYS_setresuid, user.uid, user.uid, user.uid), Step::User)?;
        }
        if let Some(capabilities) = &isolation.capabilities {
            rights::after_user(capabilities)?;
        }
        if isolation.no_new_privileges {
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), Step::Capabilities)?;
            rights::filter(&isolation.seccomp)?;
        }
    }
    Ok(())
}

/// Enters the control group and the namespaces of another container's process, and sets the properties of new ones.
///
/// # Safety
/// As [`run_stage`].
unsafe fn enter(prepared: &Prepared) -> Result<(), Step> {
    let isolation = &prepared.isolation;
    // SAFETY: system calls on descriptors and C strings that the parent keeps.
    unsafe {
        if let Some(Entry::Files(files)) = &isolation.cgroup {
            for file in files {
                check(libc::write(file.as_raw_fd(), c"0".as_ptr().cast(), 1) as i64, Step::Cgroup)?;
            }
        }
        if let Some(file) = &isolation.tasks {
            check(libc::write(file.as_raw_fd(), c"0".as_ptr().cast(), 1) as i64, Step::Cgroup)?;
        }
        if let Some(text) = &isolation.oom_score {
            let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
            // An error is ignored: the process can run with another OOM score.
            libc::write(file, text.as_ptr().cast(), text.as_bytes().len());
            libc::close(file);
        }
        if let Some(target) = &isolation.enter {
            // The parent has entered the pid namespace.
            let flags = isolation.enter_flags & !libc::CLONE_NEWPID;
            if flags != 0 {
                check(libc::setns(target.as_raw_fd(), flags), Step::Enter)?;
            }
        }
        if let Some(network) = &isolation.network {
            check(libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET), Step::Enter)?;
        }
        if isolation.new_inside != 0 {
            check(libc::unshare(isolation.new_inside), Step::Enter)?;
        }
        if let Some(name) = isolation.hostname.as_ref().filter(|_| isolation.new & libc::CLONE_NEWUTS != 0) {
            check(libc::sethostname(name.as_ptr(), name.as_bytes().len()), Step::Enter)?;
        }
    }
    Ok(())
}

/// Tries the candidates in turn, as `execvp(3)` does; returns with errno set if none can be run.
///
/// # Safety
/// As [`run_stage`].
unsafe fn execute(prepared: &mut Prepared) {
    if let Some(file) = &prepared.open {
        // SAFETY: an open descriptor, an empty path, and null-terminated arrays of C strings, all kept by the parent.
        unsafe {
            let (argv, environment) = (prepared.argv.as_ptr(), prepared.environment.as_ptr());
            let (fd, path, flags) = (file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH);
            libc::syscall(libc::SYS_execveat, fd, path, argv, environment, flags);
        }
        return;
    }
    let mut refused = false;
    for &file in prepared.files.items() {
        // SAFETY: null-terminated arrays of C strings, kept by the parent.
        unsafe { libc::execve(file, prepared.argv.as_ptr(), prepared.environment.as_ptr()) };
        match errno() {
            libc::ENOEXEC => {
                prepared.script_argv[1] = file;
                // SAFETY: as above.
                unsafe {
                    libc::execve(c"/bin/sh".as_ptr(), prepared.script_argv.as_ptr(), prepared.environment.as_ptr())
                };
                return;
            }
            libc::EACCES => refused = true,
            libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
            _ => return,
        }
    }
    if refused {
        // SAFETY: the C library's errno of this thread.
        unsafe { *libc::__errno_location() = libc::EACCES };
    }
}

/// The signals that this process handles or ignores, a bit for each, after [`note_signals`] has run; bit 0 is set then.
static NOTED: AtomicU32 = AtomicU32::new(0);

/// Records which signals this process handles or ignores. For a process that will not change that again, nor will its
/// copies: then starting a process does not query each signal.
pub(crate) fn note_signals() {
    let changed = SIGNALS.filter(|signal| is_changed(*signal)).fold(0, |mask, signal| mask | 1 << signal);
    NOTED.store(changed | 1, Ordering::Relaxed);
}

/// Signals whose actions are reset. The others are real-time signals, some of them the C library's own.
const SIGNALS: std::ops::Range<libc::c_int> = 1..32;

fn is_changed(signal: libc::c_int) -> bool {
    // SAFETY: an all-zero sigaction is one; sigaction fills it, and only reads what is set.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction != libc::SIG_DFL
    }
}

/// Resets signals that the parent handles or ignores to their default actions: a handler must not run here, and a task
/// must not start with SIGPIPE ignored, as every Rust program does.
///
/// # Safety
/// As [`run_stage`].
unsafe fn default_signals() {
    let noted = NOTED.load(Ordering::Relaxed);
    for signal in SIGNALS {
        let changed = if noted == 0 { is_changed(signal) } else { noted >> signal & 1 == 1 };
        if changed {
            // SAFETY: an all-zero sigaction is the default action with an empty mask. Numbers that cannot be set
            // (SIGKILL, SIGSTOP) are refused and stay as they are.
            unsafe {
                let default: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, &raw const default, std::ptr::null_mut());
            }
        }
    }
}

/// Unblocks all signals.
///
/// # Safety
/// As [`run_stage`].
unsafe fn unblock_signals() {
    // SAFETY: an all-zero set is empty; sigprocmask reads it.
    unsafe {
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

fn resource(kind: RlimitKind) -> libc::__rlimit_resource_t {
    match kind {
        RlimitKind::As => libc::RLIMIT_AS,
        RlimitKind::Core => libc::RLIMIT_CORE,
        RlimitKind::Cpu => libc::RLIMIT_CPU,
        RlimitKind::Data => libc::RLIMIT_DATA,
        RlimitKind::Fsize => libc::RLIMIT_FSIZE,
        RlimitKind::Locks => libc::RLIMIT_LOCKS,
        RlimitKind::Memlock => libc::RLIMIT_MEMLOCK,
        RlimitKind::Msgqueue => libc::RLIMIT_MSGQUEUE,
        RlimitKind::Nice => libc::RLIMIT_NICE,
        RlimitKind::Nofile => libc::RLIMIT_NOFILE,
        RlimitKind::Nproc => libc::RLIMIT_NPROC,
        RlimitKind::Rss => libc::RLIMIT_RSS,
        RlimitKind::Rtprio => libc::RLIMIT_RTPRIO,
        RlimitKind::Rttime => libc::RLIMIT_RTTIME,
        RlimitKind::Sigpending => libc::RLIMIT_SIGPENDING,
        RlimitKind::Stack => libc::RLIMIT_STACK,
    }
}
