//! Reads the entries of a tar archive with a limit on the memory that the library uses before it returns an entry: for
//! long names and attributes, which an archive of a few megabytes can make as large as it likes.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use tar::{Archive, Entry};

use crate::archive_error::ArchiveError;

/// Maximum size in bytes of the headers, long names and attributes of one entry, with the padding of the one before.
const HEAD_MAX: u64 = 4 << 20;

/// A reader of an archive that limits the size of heads: `left` is the number of bytes that are left for the current
/// head.
pub(crate) struct Heads<R> {
    reader: R,
    left: Rc<Cell<Option<u64>>>,
}

impl<R: Read> Read for Heads<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        if let Some(left) = self.left.get() {
            let left = left.checked_sub(length as u64);
            self.left.set(Some(left.ok_or_else(|| io::Error::other(format!("its head exceeds {HEAD_MAX} bytes")))?));
        }
        Ok(length)
    }
}

/// Passes the entries of an archive to `take`, in order. If `late`, directories come last, the deepest first. `set`
/// configures how entries are unpacked.
///
/// # Errors
/// The bytes are not an archive, or the first error of `take`.
pub(crate) fn each<R: Read>(
    reader: R,
    late: bool,
    set: impl FnOnce(&mut Archive<Heads<R>>),
    mut take: impl FnMut(&mut Entry<'_, Heads<R>>) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let left = Rc::new(Cell::new(None));
    let mut archive = Archive::new(Heads { reader, left: left.clone() });
    set(&mut archive);
    let mut entries = archive.entries()?;
    let mut directories = Vec::new();
    loop {
        left.set(Some(HEAD_MAX));
        let Some(entry) = entries.next() else { break };
        left.set(None);
        let mut entry = entry.map_err(ArchiveError::Malformed)?;
        if late && entry.header().entry_type().is_dir() {
            directories.push(entry);
            continue;
        }
        take(&mut entry)?;
        // Bytes after the entry belong to the next head.
        io::copy(&mut entry, &mut io::sink())?;
    }
    left.set(None);
    directories.sort_by(|one, two| two.path_bytes().cmp(&one.path_bytes()));
    directories.iter_mut().try_for_each(take)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an archive with one entry behind a long name of `length` bytes.
    fn archive(length: u64) -> impl Read {
        let mut head = tar::Header::new_gnu();
        head.set_entry_type(tar::EntryType::GNULongName);
        head.set_size(length);
        head.set_cksum();
        let mut file = tar::Header::new_gnu();
        file.set_size(0);
        file.set_cksum();
        let name = io::repeat(b'n').take(length.next_multiple_of(512));
        let (head, file) = (io::Cursor::new(*head.as_bytes()), io::Cursor::new(*file.as_bytes()));
        head.chain(name).chain(file).chain(io::repeat(0).take(1024))
    }

    #[test]
    fn a_head_is_limited() {
        let names = |length| {
            let mut names = Vec::new();
            each(
                archive(length),
                false,
                |_| (),
                |entry| {
                    names.push(entry.path_bytes().len() as u64);
                    Ok(())
                },
            )
            .map(|()| names)
        };
        assert_eq!(names(5000).unwrap(), [5000]);
        let error = base::error_chain(&names(1 << 40).unwrap_err());
        assert!(error.contains("head exceeds 4194304 bytes"), "{error}");
    }
}
