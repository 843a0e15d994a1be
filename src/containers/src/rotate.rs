//! Rotates the output file of a running process: moves the older part of the file to another one, while the process
//! continues to write to its own.
//!
//! The file was opened for appending. On file systems that can remove a range at the beginning of a file (ext4, xfs) no
//! output is lost; elsewhere the file is truncated, and output between the copy and the truncation is lost.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, fchown};
use std::path::Path;

use rustix::fs::{self as sys, AtFlags, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

const DIR: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::RDONLY).union(OFlags::CLOEXEC);
/// Alignment of ranges that can be removed: a multiple of the block sizes of all file systems.
const BLOCK: u64 = 64 * 1024;

/// Moves the older part of `name` in `directory` to `name.1`, that to `name.2` and so on up to `keep`, if the file has
/// more than `most` bytes. Returns whether it had. A part has less than twice `most`: if a lot was written since the
/// last call, the newest parts are kept.
///
/// The directory may belong to a task's user, who may create any file there: links are not followed, and a file that is
/// not the directory's owner's, or has other names elsewhere, is left alone.
///
/// # Errors
/// An error of the system.
pub fn rotate(directory: &Path, name: &str, most: u64, keep: u32) -> io::Result<bool> {
    let directory = sys::open(directory, DIR, Mode::empty())?;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match sys::openat(&directory, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(false),
        Err(errno) => return Err(errno.into()),
    };
    let found = file.metadata()?;
    let owner = sys::fstat(&directory)?.st_uid;
    if found.len() <= most || !found.is_file() || found.nlink() != 1 || found.uid() != owner {
        return Ok(false);
    }
    // At least a byte is left, so that whole blocks are removed.
    let piece = (found.len() - 1) / BLOCK * BLOCK;
    let taken = if piece == 0 { found.len() } else { piece };
    let fit = taken / most.max(1);
    let parts = fit.clamp(1, u64::from(keep.max(1)));
    let mut at = if fit > parts { taken - parts * most } else { 0 };
    // `parts` is at most `keep`, which is a u32.
    let new = u32::try_from(parts).unwrap_or(keep);
    shift(&directory, name, new, keep)?;
    for number in (1..=new).rev() {
        let bytes = (taken - at) / u64::from(number);
        if keep > 0 {
            copy(&file, (at, bytes), &directory, &format!("{name}.{number}"), (found.uid(), found.gid()))?;
        }
        at += bytes;
    }
    let collapse = || sys::fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, taken);
    if piece == 0 || collapse().is_err() {
        file.set_len(0)?;
    }
    Ok(true)
}

/// Renames the parts so that `new` more fit before them: `name.1` becomes `name.<1 + new>`, and so on. Those beyond
/// `keep` are deleted. The cost depends on the number of parts, not on `keep`.
fn shift(directory: &OwnedFd, name: &str, new: u32, keep: u32) -> io::Result<()> {
    let numbered = |number: u32| format!("{name}.{number}");
    let is_there = |number: &u32| sys::statat(directory, numbered(*number), AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let there = (1..=keep.max(1)).take_while(is_there).count();
    for number in (1..=u32::try_from(there).unwrap_or(keep)).rev() {
        let moved = match number.checked_add(new).filter(|later| *later <= keep) {
            Some(later) => sys::renameat(directory, numbered(number), directory, numbered(later)),
            None => sys::unlinkat(directory, numbered(number), AtFlags::empty()),
        };
        match moved {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn copy(file: &File, (at, bytes): (u64, u64), directory: &OwnedFd, name: &str, owner: (u32, u32)) -> io::Result<()> {
    // A file that an interrupted rotation left behind a gap is replaced.
    match sys::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut target = File::from(sys::openat(directory, name, flags, Mode::from_raw_mode(0o644))?);
    io::copy(&mut Part { file, at }.take(bytes), &mut target)?;
    fchown(&target, Some(owner.0), Some(owner.1))?;
    target.flush()
}

/// A reader of a file from an offset on, independent of the file's own position.
struct Part<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.at)?;
        self.at += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tepui-rotate-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// The cost depends on the number of parts, and a gap among them does no harm.
    #[test]
    fn any_number_of_parts_may_be_kept() {
        let directory = directory("many");
        let read = |part: &str| fs::read_to_string(directory.join(part)).unwrap();
        for round in 0..4 {
            fs::write(directory.join("stdout"), format!("{round}").repeat(10)).unwrap();
            assert!(rotate(&directory, "stdout", 5, u32::MAX).unwrap());
        }
        assert_eq!(["stdout.1", "stdout.8"].map(read), ["33333", "00000"]);
        fs::remove_file(directory.join("stdout.2")).unwrap();
        fs::write(directory.join("stdout"), "next").unwrap();
        assert!(rotate(&directory, "stdout", 3, u32::MAX).unwrap());
        assert_eq!(["stdout.1", "stdout.2", "stdout.3"].map(read), ["next", "33333", "22222"]);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn nothing_is_lost_while_it_is_written() {
        let directory = directory("written");
        let path = directory.join("stdout");
        let mut writer = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        let (mut all, mut rotated) = (Vec::new(), 0);
        for number in 0..40_000 {
            let line = format!("line {number}\n");
            writer.write_all(line.as_bytes()).unwrap();
            all.extend_from_slice(line.as_bytes());
            if number % 1000 == 0 {
                rotated += u32::from(rotate(&directory, "stdout", 100_000, 99).unwrap());
            }
        }
        assert!(rotated > 2);
        let mut found = Vec::new();
        for number in (1..=rotated).rev() {
            found.extend(fs::read(directory.join(format!("stdout.{number}"))).unwrap());
        }
        found.extend(fs::read(&path).unwrap());
        assert!(found == all, "{} bytes were written, {} are there", all.len(), found.len());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn so_many_are_kept() {
        let directory = directory("kept");
        for round in 0..5 {
            fs::write(directory.join("stdout"), format!("{round}").repeat(10)).unwrap();
            assert!(rotate(&directory, "stdout", 6, 2).unwrap());
        }
        assert!(!rotate(&directory, "stdout", 6, 2).unwrap() && !rotate(&directory, "none", 6, 2).unwrap());
        assert_eq!(fs::read_to_string(directory.join("stdout.1")).unwrap(), "4444444444");
        assert_eq!(fs::read_to_string(directory.join("stdout.2")).unwrap(), "3333333333");
        assert!(!directory.join("stdout.3").exists());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn of_a_flood_the_newest_parts_are_kept() {
        let directory = directory("flood");
        let all: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
        fs::write(directory.join("stdout"), &all).unwrap();
        assert!(rotate(&directory, "stdout", 1_000_000, 3).unwrap());
        let mut found = Vec::new();
        for name in ["stdout.3", "stdout.2", "stdout.1", "stdout"] {
            let part = fs::read(directory.join(name)).unwrap();
            assert!(part.len() < 2_000_000, "{name} has {} bytes", part.len());
            found.extend(part);
        }
        assert!(found.len() > 3_000_000 && all.ends_with(&found), "{} bytes are kept", found.len());
        assert!(!directory.join("stdout.4").exists());
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn links_are_left_alone() {
        let directory = directory("links");
        let other = directory.join("other");
        fs::write(&other, "precious").unwrap();
        std::os::unix::fs::symlink(&other, directory.join("stdout")).unwrap();
        fs::hard_link(&other, directory.join("stderr")).unwrap();
        assert!(!rotate(&directory, "stdout", 1, 2).unwrap() && !rotate(&directory, "stderr", 1, 2).unwrap());
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
        // A file at the name of the older part is replaced, not written through.
        fs::remove_file(directory.join("stdout")).unwrap();
        fs::write(directory.join("stdout"), "long enough").unwrap();
        std::os::unix::fs::symlink(&other, directory.join("stdout.1")).unwrap();
        assert!(rotate(&directory, "stdout", 1, 1).unwrap());
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");
        fs::remove_dir_all(directory).unwrap();
    }
}
