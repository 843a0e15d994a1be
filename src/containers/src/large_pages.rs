//! Large pages for a process that accesses much memory at random.
//!
//! It changes only how the kernel maps memory, and nothing where large pages are disabled.

use crate::mappings::{self, Mapping};

/// The smallest mapping, in bytes, for which large pages are worth it: a few of them.
const LEAST: usize = 8 << 20;

/// Makes the kernel use large pages (2 MiB) for the calling process's large anonymous mappings. A program with random
/// accesses in hundreds of megabytes spends a tenth of its time on TLB misses. Its memory grows by about as much.
///
/// Call it again when there may be more memory. Not for a process that forks, or that is idle.
pub fn use_large_pages() {
    for (start, length) in mappings::list().lines().filter_map(large_memory) {
        // SAFETY: the advice changes neither the content of the memory nor its access rights. If the range has been
        // unmapped or mapped again meanwhile, the call fails, or advises the new mapping. An error changes nothing.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_HUGEPAGE) };
    }
}

/// Returns start and length of the mapping in a line of `/proc/self/maps`, if it is large, anonymous and writable.
fn large_memory(line: &str) -> Option<(usize, usize)> {
    let part = Mapping::read(line)?;
    let length = part.end.checked_sub(part.start)?;
    // Stacks and the kernel's own mappings have a name; the heap has one, too, and is small.
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
