//! Lets copies of this process inherit the mappings of the program's code and constants, and keeps from them what they
//! do not need, which costs time when they start and end.
//!
//! The best is one large page: a copy maps it with its first fault, and frees one entry of its page tables at its end
//! instead of hundreds. It needs a program in memory that is linked for that, and a kernel that has such pages (Linux
//! 6.1).
//!
//! Otherwise, a copy inherits page table entries only of mappings that contain private pages: the kernel leaves out
//! what can be mapped from a file again. A copy that lives for milliseconds would spend a good part of them on mapping
//! it again, fault by fault. So one page of each such mapping becomes private to the template, with the same bytes. In
//! a large program copies use few of the pages: inheriting all of them would cost more than the faults.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::mappings::{self, Mapping};
use crate::program_file::LARGE_PAGE;
use crate::trim::parts_of_the_program;

/// Size of code and constants in bytes above which copies do not inherit them. The executors' own program has 2 MB.
/// With the whole program (42 MB), inheriting all pages costs 1.0 ms of CPU time for each task of `true`; without, a
/// task takes 2.0 ms.
const INHERITED_MAX: usize = 8 << 20;

/// Maps all of the code and constants of a small program, and makes copies inherit that. Where the system forbids it
/// (code must never be writable), copies map them again as they need them.
pub(super) fn hand_down_program() {
    let in_large_pages = gather().unwrap_or(false);
    if in_large_pages || counts_promises() {
        return;
    }
    let parts = parts_of_the_program();
    if parts.iter().map(|(start, end, _)| end - start).sum::<usize>() > INHERITED_MAX {
        return;
    }
    for (start, end, code) in parts {
        let (first, length) = (start as *mut libc::c_void, end - start);
        let before = libc::PROT_READ | if code { libc::PROT_EXEC } else { 0 };
        // SAFETY: the range is a private mapping of the program's file, as the kernel has just reported, and stays
        // mapped. Mapping its pages does not change their content. It stays readable, and executable if it was before,
        // all the time, so it does not matter that this very code is in it. Only one thread runs (`become_copy` makes
        // sure), so no code observes it writable. The bytes that are written to it are those that were in it.
        unsafe {
            // The whole range, because a part would stay a mapping of its own.
            if libc::mprotect(first, length, before | libc::PROT_WRITE) == 0 {
                let byte = first.cast::<u8>();
                byte.write_volatile(byte.read_volatile());
                libc::mprotect(first, length, before);
            }
            libc::madvise(first, length, libc::MADV_POPULATE_READ);
        }
    }
}

/// Maps all of the program's code and constants as large pages. Returns whether that succeeded.
fn gather() -> io::Result<bool> {
    let file = File::open("/proc/self/exe")?;
    let length = file.metadata()?.len();
    // Only a program with a single range of code: it starts at the beginning of the file then, and contains the
    // constants.
    let [(start, end, true)] = parts_of_the_program()[..] else { return Ok(false) };
    let whole = (end - start).next_multiple_of(LARGE_PAGE);
    if start % LARGE_PAGE != 0 || length < whole as u64 {
        return Ok(false);
    }
    let (readable, fd) = (libc::PROT_READ | libc::PROT_EXEC, file.as_raw_fd());
    // SAFETY: behind the program's part no mapping is replaced (`MAP_FIXED_NOREPLACE`). The part itself is replaced, in
    // one step, by the same bytes of the same file, with the same rights: this code continues in it as before. An
    // offset is below the file's length, which fits. The location of these pages does not change their content.
    unsafe {
        let free = libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE;
        let behind = (end as *mut libc::c_void, whole - (end - start));
        if behind.1 > 0 && libc::mmap(behind.0, behind.1, readable, free, fd, (end - start) as i64) != behind.0 {
            return Ok(false);
        }
        let first = start as *mut libc::c_void;
        if libc::mmap(first, whole, readable, libc::MAP_PRIVATE | libc::MAP_FIXED, fd, 0) == libc::MAP_FAILED {
            return Ok(false);
        }
        Ok(libc::madvise(first, whole, libc::MADV_COLLAPSE) == 0)
    }
}

/// Returns whether the system does not overcommit memory (proc_sys_vm(5)): there a mapping that was writable once
/// counts in full for each process that has it.
fn counts_promises() -> bool {
    std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2")
}

/// Returns memory of this process alone, all zero and never freed: copies do not inherit it.
pub(super) fn room_of_the_template(length: usize) -> io::Result<&'static mut [u8]> {
    let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice is used by no other code, is never unmapped, and is
    // all zero. A copy has the reference and not the memory, and may have another mapping there by then: it must not
    // use it, and does not (`become_copy` puts a long order together before it creates the copy, and reads nothing else
    // after).
    unsafe {
        let first = libc::mmap(std::ptr::null_mut(), length, rights, flags, -1, 0);
        if first == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        libc::madvise(first, length, libc::MADV_DONTFORK);
        Ok(std::slice::from_raw_parts_mut(first.cast(), length))
    }
}

/// Removes the signal stack of this thread, on which Rust's runtime reports a stack overflow, and the handlers of the
/// two signals for it, which end the process anyway. Each copy would have two mappings for the stack, and each process
/// that a copy starts would have to reset two signals.
pub(super) fn leave_signal_stack() {
    // SAFETY: zeroed, both are valid, and the action is the default one. Only Rust's runtime handles the signals, for
    // its message about a stack overflow. The stack is disabled before copies are kept from inheriting it, and stays
    // mapped here. The runtime unmaps it when `main` returns: in a copy that would unmap another mapping at that
    // address, which is why copies end by `end_now` and by aborts only.
    unsafe {
        let mut own: libc::stack_t = std::mem::zeroed();
        if libc::sigaltstack(std::ptr::null(), &raw mut own) != 0 || own.ss_flags != 0 || own.ss_sp.is_null() {
            return;
        }
        let default: libc::sigaction = std::mem::zeroed();
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            libc::sigaction(signal, &raw const default, std::ptr::null_mut());
        }
        let none = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        if libc::sigaltstack(&raw const none, std::ptr::null_mut()) != 0 {
            return;
        }
        let (start, end) = (own.ss_sp as usize, own.ss_sp as usize + own.ss_size);
        let list = mappings::list();
        let parts = list.lines().filter_map(Mapping::read);
        // The stack, and the guard page below it.
        for part in parts.filter(|part| {
            part.start == start && part.end == end || part.end == start && part.permissions.starts_with("---")
        }) {
            libc::madvise(part.start as *mut libc::c_void, part.end - part.start, libc::MADV_DONTFORK);
        }
    }
}
