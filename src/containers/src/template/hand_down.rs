//! Handing the program's code and constants down to copies of this process, as they are mapped.
//!
//! A copy finds in its page tables what its template had in them, but only of mappings that hold something of the process's
//! own: the kernel leaves out what can be mapped from a file again. A copy that lives for milliseconds would spend a good part
//! of them doing that, fault by fault. So one page of each such mapping becomes the template's own, byte for byte what it was.

use crate::trim::parts_of_the_program;

/// Maps all of the program's code and constants, and makes copies inherit that. Where the system does not allow it (what was
/// code is not to be written anywhere), copies map them again as they need them.
pub(super) fn hand_down_program() {
    if counts_promises() {
        return;
    }
    for (start, end, code) in parts_of_the_program() {
        let (first, length) = (start as *mut libc::c_void, end - start);
        let before = libc::PROT_READ | if code { libc::PROT_EXEC } else { 0 };
        // SAFETY: the range is a private mapping of the program's file, as the kernel has just told, and stays mapped. Mapping
        // its pages changes nothing of what is in them. It can be read, and run if it could be before, all the time, so it does
        // not matter that this very code lies in it; one thread runs (`become_copy` makes sure), so nobody sees it writable;
        // what is written to it is what was in it.
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

/// Whether the system promises no memory that it does not have (proc_sys_vm(5)): there a mapping that was writable once counts
/// as a whole in each process that has it.
fn counts_promises() -> bool {
    std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2")
}
