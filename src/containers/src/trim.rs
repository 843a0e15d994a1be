//! Giving back the memory that a program's own code takes while the program has nothing to do.
//!
//! Code is mapped from its file, so nothing is lost: what is needed again is mapped again.

/// Takes the calling program's code, and its libraries', out of its resident memory, until it is run again.
///
/// For a process that will wait long beside many of its like. Coming back costs some microseconds for each part of the
/// code that is used. Breakpoints that a debugger has set are lost.
pub fn trim_program() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, end) in maps.lines().filter_map(code_of_a_file) {
        // SAFETY: the range is a private mapping of a file that may be executed but not written, as the kernel has just
        // told, and only the dynamic loader unmaps such ranges (this program unloads no library). Such a page has never
        // been written (Rust programs and their C library have no relocations in code), so what is read from the file
        // again is what was there. An error leaves everything as it is.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
}

/// The range of a line of `/proc/self/maps`, if it is a file's code.
fn code_of_a_file(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, permissions) = (words.next()?, words.next()?);
    let path = words.nth(3)?;
    if permissions != "r-xp" || !path.starts_with('/') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files() {
        assert_eq!(code_of_a_file("00327000-008c5000 r-xp 00126000 fe:00 1234   /a/b c"), Some((0x327000, 0x8c5000)));
        for line in [
            "00200000-00327000 r--p 00000000 fe:00 1234   /a/b",
            "00200000-00327000 rwxp 00000000 fe:00 1234   /a/b",
            "7fe9c5a9b000-7fe9c5a9d000 r-xp 00000000 00:00 0   [vdso]",
            "7fe9c5a9b000-7fe9c5a9d000 r-xp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(code_of_a_file(line), None, "{line}");
        }
    }

    #[test]
    fn the_program_goes_on() {
        trim_program();
        assert_eq!((1..=10).sum::<i32>(), 55);
    }
}
