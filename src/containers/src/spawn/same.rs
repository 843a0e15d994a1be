//! Creates a process that continues with this program, in the environment of a spec.
//!
//! Only for a process with one thread: see `template/`.

use std::io;
use std::os::fd::BorrowedFd;

use super::clone::CloneArguments;
use super::prepare::Prepared;
use super::stage::{errno, settle};

unsafe extern "C" {
    /// The C library's pointer to the environment.
    static mut environ: *const *const libc::c_char;
}

/// The process that continues after [`copy_of_this`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// The calling process, the template.
    Template,
    /// The new process, a copy of the template.
    Copy,
}

/// Creates a copy of the calling process, as a child of its parent, in new namespaces and a control group if requested.
///
/// # Errors
/// The system's error.
pub(crate) fn copy_of_this(namespaces: libc::c_int, born: Option<BorrowedFd<'_>>) -> io::Result<Copied> {
    // The parent receives the same signal at the end of such a child as at that of the caller.
    let arguments = CloneArguments::new(libc::CLONE_PARENT | namespaces, 0, born);
    // SAFETY: the caller has one thread (`become_copy` makes sure), so no lock is held by a thread that the copy does
    // not have.
    match unsafe { arguments.fork(None) }? {
        0 => Ok(Copied::Copy),
        _ => Ok(Copied::Template),
    }
}

/// In a copy: sets up the prepared state, with its environment. Errors are the step's number and the errno.
pub(crate) fn settle_copy(prepared: Prepared) -> Result<(), (u32, i32)> {
    // SAFETY: this is a new process with one thread, the caller, which runs nothing else meanwhile.
    unsafe { settle(&prepared, prepared.stream_fds()) }.map_err(|step| (step as u32, errno()))?;
    if prepared.user.is_some() {
        // A process that has changed its user cannot be examined, not even by itself, until it executes a program: its
        // memory may contain secrets of the former user. Here it contains none.
        let dumpable: libc::c_ulong = 1;
        // SAFETY: a system call on numbers.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, dumpable, 0, 0, 0) };
    }
    let environment: &'static _ = Box::leak(Box::new(prepared.environment));
    // SAFETY: a null-terminated list of C strings that lives forever; there is no other thread that could be reading
    // the old one.
    unsafe { environ = environment.as_ptr() };
    Ok(())
}
