//! Frees the memory of a program's own code and constants while the program is idle.
//!
//! They are mapped from their file, so nothing is lost: what is needed again is mapped again.

use crate::mappings::{self, Mapping};

/// Removes the calling program's code and constants, and its libraries', from its resident memory, until they are used
/// again.
///
/// For a process that waits for long, beside many similar ones. Mapping them again takes some microseconds for each
/// part of the code that is used. Breakpoints that a debugger has set are lost.
pub fn trim_program() {
    for (start, end, _) in parts_of_the_program() {
        // SAFETY: the range is a private mapping of a file that may not be written, as the kernel has just reported,
        // and only the dynamic loader unmaps such ranges (this program unloads no library). It is code, or the segment
        // with the file's header and the constants behind it; neither has ever been changed (Rust programs and their C
        // library have no relocations there; what the loader relocates is in a segment behind the code), so the same
        // bytes are read from the file again. An error leaves everything as it is.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
}

/// Returns start and end of each such part of the program and its libraries, and whether it is code.
pub(crate) fn parts_of_the_program() -> Vec<(usize, usize, bool)> {
    mappings::list().lines().filter_map(unchanged_part_of_a_file).collect()
}

/// Returns the range of a line of `/proc/self/maps`, if it is a program file's code or its first segment: header and
/// constants.
fn unchanged_part_of_a_file(line: &str) -> Option<(usize, usize, bool)> {
    let part = Mapping::read(line)?;
    let first = part.permissions == "r--p" && usize::from_str_radix(part.offset, 16) == Ok(0);
    let code = part.permissions == "r-xp";
    let of_a_file = part.name.is_some_and(|name| name.starts_with('/'));
    ((code || first) && of_a_file).then_some((part.start, part.end, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_never_changes() {
        assert_eq!(
            unchanged_part_of_a_file("00327000-008c5000 r-xp 00126000 fe:00 1234   /a/b c"),
            Some((0x327000, 0x8c5000, true))
        );
        let constants = "00200000-00327000 r--p 00000000 fe:00 1234   /a/b";
        assert_eq!(unchanged_part_of_a_file(constants), Some((0x200000, 0x327000, false)));
        for line in [
            "00200000-00327000 r--p 00126000 fe:00 1234   /a/b",
            "00200000-00327000 rwxp 00000000 fe:00 1234   /a/b",
            "7fe9c5a9b000-7fe9c5a9d000 r-xp 00000000 00:00 0   [vdso]",
            "7fe9c5a9b000-7fe9c5a9d000 r-xp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(unchanged_part_of_a_file(line), None, "{line}");
        }
    }

    #[test]
    fn the_program_goes_on() {
        trim_program();
        assert_eq!((1..=10).sum::<i32>(), 55);
    }
}
