//! The calling process's memory mappings, from `/proc/self/maps`.
//!
//! It changes nothing; `trim.rs`, `large_pages.rs` and `template/hand_down.rs` advise the kernel about memory.

/// Returns the text of `/proc/self/maps`, one line for each mapping; empty if it cannot be read.
pub(crate) fn list() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default()
}

/// A memory mapping, with the fields of its line as texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping<'a> {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) permissions: &'a str,
    /// Offset of the mapping in its file.
    pub(crate) offset: &'a str,
    /// Inode of its file; 0 for an anonymous mapping.
    pub(crate) inode: &'a str,
    /// Path of its file, or the kernel's name for the mapping: the first word of that.
    pub(crate) name: Option<&'a str>,
}

impl Mapping<'_> {
    /// Parses a line of `/proc/self/maps`; `None` if it is invalid.
    pub(crate) fn read(line: &str) -> Option<Mapping<'_>> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (permissions, offset, _device) = (words.next()?, words.next()?, words.next()?);
        Some(Mapping {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            permissions,
            offset,
            inode: words.next()?,
            name: words.next(),
        })
    }
}
