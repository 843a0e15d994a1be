//! Large pages for a process that accesses much memory at random.
//!
//! It changes only how the kernel maps the memory, and nothing where large pages are disabled.

use crate::mappings::{self, Mapping};

/// The least length of memory that is worth it: some large pages.
const LEAST: usize = 8 << 20;

/// Has the kernel keep the calling process's large anonymous memory in large pages (2 MiB): a program that jumps about
/// in hundreds of megabytes spends a tenth of its time on finding where they lie. The memory that it takes grows by
/// about as much.
///
/// To be called again when there may be more memory. Not for a process that children are forked from, or that rests.
pub fn use_large_pages() {
    for (start, length) in mappings::list().lines().filter_map(large_memory) {
        // SAFETY: the advice changes neither what is in the memory nor who may use it. If the range is gone by now, or
        // has become something else's, the call fails, or advises that. An error leaves everything as it is.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_HUGEPAGE) };
    }
}

/// Start and length of the memory in a line of `/proc/self/maps`, if it is large, belongs to no file, and may be
/// written.
fn large_memory(line: &str) -> Option<(usize, usize)> {
    let part = Mapping::read(line)?;
    let length = part.end.checked_sub(part.start)?;
    // Stacks and the kernel's own have a name; the heap has one, too, and is small.
    let plain = part.permissions == "rw-p" && part.inode == "0" && part.name.is_none();
    (plain && length >= LEAST).then_some((part.start, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_memory_that_belongs_to_no_file() {
        assert_eq!(large_memory("7f0000000000-7f0040000000 rw-p 00000000 00:00 0"), Some((0x7f00_0000_0000, 1 << 30)));
        for line in [
            "7f0000000000-7f0000100000 rw-p 00000000 00:00 0",
            "7f0000000000-7f0040000000 ---p 00000000 00:00 0",
            "7f0000000000-7f0040000000 rw-p 00000000 00:00 0    [stack]",
            "7f0000000000-7f0040000000 rw-p 00000000 fe:00 1234   /a/b",
            "7f0000000000 rw-p",
            "",
        ] {
            assert_eq!(large_memory(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_in_the_memory_stays() {
        let memory: Vec<usize> = (0..4_000_000).collect();
        use_large_pages();
        assert!(memory.iter().enumerate().all(|(place, value)| place == *value));
    }
}
