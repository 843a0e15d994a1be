//! Handing the program's code and constants down to copies of this process, as they are mapped; and keeping from them
//! what they do not need, which costs at their birth and at their end.
//!
//! The best is one large page: a copy maps it with its first fault, and gives one entry of its page tables back at its
//! end instead of hundreds. It needs a program in memory that is linked for that, and a kernel that has such pages
//! (Linux 6.1).
//!
//! Else, a copy finds in its page tables what its template had in them, but only of mappings that hold something of the
//! process's own: the kernel leaves out what can be mapped from a file again. A copy that lives for milliseconds would
//! spend a good part of them doing that, fault by fault. So one page of each such mapping becomes the template's own,
//! byte for byte what it was.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::mappings::{self, Mapping};
use crate::program_file::LARGE_PAGE;
use crate::trim::parts_of_the_program;

/// Maps all of the program's code and constants, and makes copies inherit that. Where the system does not allow it
/// (what was code is not to be written anywhere), copies map them again as they need them.
pub(super) fn hand_down_program() {
    let in_large_pages = gather().unwrap_or(false);
    if in_large_pages || counts_promises() {
        return;
    }
    for (start, end, code) in parts_of_the_program() {
        let (first, length) = (start as *mut libc::c_void, end - start);
        let before = libc::PROT_READ | if code { libc::PROT_EXEC } else { 0 };
        // SAFETY: the range is a private mapping of the program's file, as the kernel has just told, and stays mapped.
        // Mapping its pages changes nothing of what is in them. It can be read, and run if it could be before, all the
        // time, so it does not matter that this very code lies in it; one thread runs (`become_copy` makes sure), so
        // nothing sees it writable; what is written to it is what was in it.
        unsafe {
            // The whole, because a part would stay a mapping of its own.
            if libc::mprotect(first, length, before | libc::PROT_WRITE) == 0 {
                let byte = first.cast::<u8>();
                byte.write_volatile(byte.read_volatile());
                libc::mprotect(first, length, before);
            }
            libc::madvise(first, length, libc::MADV_POPULATE_READ);
        }
    }
}

/// Maps all of the program's code and constants as large pages; whether that is so now.
fn gather() -> io::Result<bool> {
    let file = File::open("/proc/self/exe")?;
    let length = file.metadata()?.len();
    // Code alone: it begins with the file then, and the constants are in it.
    let [(start, end, true)] = parts_of_the_program()[..] else { return Ok(false) };
    let whole = (end - start).next_multiple_of(LARGE_PAGE);
    if start % LARGE_PAGE != 0 || length < whole as u64 {
        return Ok(false);
    }
    let (readable, fd) = (libc::PROT_READ | libc::PROT_EXEC, file.as_raw_fd());
    // SAFETY: behind the program's part nothing is mapped over (`MAP_FIXED_NOREPLACE`). The part itself is replaced, in
    // one step, by the same bytes of the same file, with the same rights: this code goes on in it as before. An offset
    // is below the file's length, which fits. Where these pages lie changes nothing of what is in them.
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

/// Whether the system promises no memory that it does not have (proc_sys_vm(5)): there a mapping that was writable once
/// counts as a whole in each process that has it.
fn counts_promises() -> bool {
    std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2")
}

/// Memory for this process alone, all zero and never given back: its copies have none at that place.
pub(super) fn room_of_the_template(length: usize) -> io::Result<&'static mut [u8]> {
    let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at a place of the kernel's choice is used by nothing else, is never unmapped, and is all
    // zero. A copy has the reference and not the memory, and may have something else there by then: it must not use it,
    // and does not (`become_copy` puts a long order together before it makes the copy, and reads nothing else after).
    unsafe {
        let first = libc::mmap(std::ptr::null_mut(), length, rights, flags, -1, 0);
        if first == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        libc::madvise(first, length, libc::MADV_DONTFORK);
        Ok(std::slice::from_raw_parts_mut(first.cast(), length))
    }
}

/// Gives up the stack of its own on which this thread would say that its stack is full, and the two signals that lead
/// to it, which end the process anyway. Each copy would have two mappings for it, and what a copy starts two signals to
/// set back.
pub(super) fn leave_signal_stack() {
    // SAFETY: zeroed, both are valid, and the action is the default one. The signals are only handled by Rust's
    // runtime, as it says, for those words. The stack is left before copies are kept from inheriting it, and stays
    // mapped here. The runtime gives it back when `main` is left: in a copy that would take whatever lies there by
    // then, which is why copies end by `end_now` and by aborts only.
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
        // The stack, and the page below it that must not be touched.
        for part in parts.filter(|part| {
            part.start == start && part.end == end || part.end == start && part.permissions.starts_with("---")
        }) {
            libc::madvise(part.start as *mut libc::c_void, part.end - part.start, libc::MADV_DONTFORK);
        }
    }
}
