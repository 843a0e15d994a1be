//! Unpacks a layer: a tar archive with owners, and with whiteouts for files of lower layers.
//!
//! Nothing is written outside the directory: each directory of a path is opened without following links. Whiteouts are
//! written in the overlay's form: a device 0/0, and an attribute of an opaque directory. Where the file system supports
//! neither, the archive's own files remain as whiteouts: then layers can only be copied.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use base::hex;
use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use rustix::fs::{self as sys, AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use tar::{Entry, EntryType};

use super::ImageError;
use super::zstd::{MAGIC, Zstd};
use crate::archive_error::ArchiveError;
use crate::entries::each;

/// Maximum number of bytes of a layer, and of all its files.
pub(super) const BYTES_MAX: u64 = 64 << 30;
const ENTRIES_MAX: usize = 4_000_000;
/// Maximum memory for an .xz layer, in KiB.
const XZ_MEMORY_KB: u32 = 1 << 20;

/// Prefix of a whiteout's name.
pub(super) const WHITEOUT_PREFIX: &str = ".wh.";
/// Name of the whiteout of all entries of its directory.
pub(super) const OPAQUE_WHITEOUT: &str = ".wh..wh..opq";
/// Name of the attribute that makes a directory opaque in an overlay.
pub(super) const OPAQUE_ATTRIBUTE: &str = "trusted.overlay.opaque";

/// A reader that also computes the digest of what was read.
struct Hashed<R> {
    reader: R,
    hash: Sha256,
    bytes: u64,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.hash.update(&buffer[..length]);
        self.bytes += length as u64;
        if self.bytes > BYTES_MAX {
            return Err(io::Error::other(format!("it has more than {BYTES_MAX} bytes")));
        }
        Ok(length)
    }
}

/// Unpacks the file `layer` into `root`, an empty directory. Returns the digest of the archive as hexadecimal digits.
///
/// # Errors
/// The archive breaks a rule, or an error of the system. Some of it may be unpacked then.
pub fn unpack(layer: &Path, root: &Path) -> Result<String, ArchiveError> {
    let reader = open(layer)?;
    crate::confine::thread(root, || unpack_opened(reader, root))
}

fn unpack_opened(reader: impl Read, root: &Path) -> Result<String, ArchiveError> {
    let mut hashed = Hashed { reader, hash: Sha256::new(), bytes: 0 };
    let directory = Directory::open(root)?;
    let mut directories = Vec::new();
    let (mut count, mut bytes) = (0, 0_u64);
    let one = |entry: &mut Entry<'_, _>| {
        count += 1;
        if count > ENTRIES_MAX {
            return Err(ArchiveError::Entries(ENTRIES_MAX));
        }
        // Sparse files have more bytes than the archive.
        bytes = bytes.saturating_add(entry.size());
        if bytes > BYTES_MAX {
            return Err(ArchiveError::Bytes(BYTES_MAX));
        }
        let path = entry.path()?.into_owned();
        let put = put(&directory, entry, &path, &mut directories);
        put.map_err(|source| ArchiveError::Entry { path, source: Box::new(source) })
    };
    each(&mut hashed, false, |_| (), one)?;
    // The time of a directory changes with its entries, so it is set last.
    for (directory, time) in directories {
        let _ = sys::futimens(&directory, &time);
    }
    io::copy(&mut hashed, &mut io::sink())?;
    Ok(hex(&hashed.hash.finalize()))
}

/// Returns the digest of the uncompressed archive in a file, for a layer whose digest is not known.
pub(super) fn digest(layer: &Path) -> Result<String, ImageError> {
    let at = |error| ImageError::at(layer.display(), error);
    let mut hashed = Hashed { reader: open(layer).map_err(at)?, hash: Sha256::new(), bytes: 0 };
    io::copy(&mut hashed, &mut io::sink()).map_err(at)?;
    Ok(format!("sha256:{}", hex(&hashed.hash.finalize())))
}

/// Opens an archive and decompresses it; its first bytes identify the compression.
fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let mut file = File::open(path)?;
    let mut start = [0; 6];
    let length = file.read(&mut start)?;
    file.rewind()?;
    let file = BufReader::with_capacity(1 << 18, file);
    Ok(match &start[..length] {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
        [b'B', b'Z', b'h', ..] => Box::new(MultiBzDecoder::new(file)),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Box::new(XzReader::new_mem_limit(file, true, XZ_MEMORY_KB)),
        start if start.starts_with(&MAGIC) => Box::new(Zstd::new(file)),
        _ => Box::new(file),
    })
}

/// An open directory that paths cannot leave.
struct Directory(OwnedFd);

const DIR: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::RDONLY).union(OFlags::CLOEXEC);

impl Directory {
    fn open(path: &Path) -> io::Result<Directory> {
        Ok(Directory(sys::open(path, DIR, Mode::empty())?))
    }

    /// Opens the directory of `path`, and returns it with the last name of the path; missing directories are created.
    fn parent(&self, path: &Path) -> Result<Option<(OwnedFd, PathBuf)>, ArchiveError> {
        let mut parts: Vec<&std::ffi::OsStr> = Vec::new();
        for part in path.components() {
            match part {
                Component::Normal(part) => parts.push(part),
                Component::CurDir | Component::RootDir => {}
                Component::ParentDir | Component::Prefix(_) => return Err(ArchiveError::Outside),
            }
        }
        let Some(name) = parts.pop() else { return Ok(None) };
        let mut directory = self.0.try_clone()?;
        for part in parts {
            directory = match sys::openat(&directory, part, DIR, Mode::empty()) {
                Err(rustix::io::Errno::NOENT) => {
                    sys::mkdirat(&directory, part, Mode::from_raw_mode(0o755)).map_err(io::Error::from)?;
                    sys::openat(&directory, part, DIR, Mode::empty())
                }
                opened => opened,
            }
            .map_err(|errno| ArchiveError::Directory { directory: part.into(), source: errno.into() })?;
        }
        Ok(Some((directory, PathBuf::from(name))))
    }
}

type Times = Vec<(OwnedFd, Timestamps)>;

fn put(
    root: &Directory,
    entry: &mut Entry<'_, impl Read>,
    path: &Path,
    directories: &mut Times,
) -> Result<(), ArchiveError> {
    let Some((directory, name)) = root.parent(path)? else { return Ok(()) };
    let text = name.to_string_lossy().into_owned();
    let failed = |errno: Errno| ArchiveError::Io(errno.into());
    if text == OPAQUE_WHITEOUT {
        return sys::fsetxattr(&directory, OPAQUE_ATTRIBUTE, b"y", XattrFlags::empty())
            .or_else(|errno| instead_of_mark(errno, &directory, &name))
            .map_err(failed);
    }
    if let Some(gone) = text.strip_prefix(WHITEOUT_PREFIX) {
        // Other names with a second prefix are records of aufs.
        if gone.is_empty() || gone.starts_with(WHITEOUT_PREFIX) {
            return Ok(());
        }
        remove(&directory, Path::new(gone))?;
        let mode = Mode::empty();
        return sys::mknodat(&directory, gone, FileType::CharacterDevice, mode, 0)
            .or_else(|errno| instead_of_mark(errno, &directory, &name))
            .map_err(failed);
    }
    let header = entry.header();
    let kind = header.entry_type();
    let mode = Mode::from_raw_mode(header.mode().unwrap_or(0o755) & 0o7777);
    let owner = (
        Uid::from_raw(u32::try_from(header.uid().unwrap_or(0)).unwrap_or(0)),
        Gid::from_raw(u32::try_from(header.gid().unwrap_or(0)).unwrap_or(0)),
    );
    let time = Timespec { tv_sec: i64::try_from(header.mtime().unwrap_or(0)).unwrap_or(0), tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    if kind != EntryType::Directory {
        remove(&directory, &name)?;
    }
    let made = match kind {
        EntryType::Directory => {
            let made = match sys::mkdirat(&directory, &name, mode) {
                Err(rustix::io::Errno::EXIST) if !is_directory(&directory, &name) => {
                    remove(&directory, &name)?;
                    sys::mkdirat(&directory, &name, mode)
                }
                Err(rustix::io::Errno::EXIST) => Ok(()),
                made => made,
            };
            made.map_err(failed)?;
            sys::openat(&directory, &name, DIR, Mode::empty()).map_err(failed)?
        }
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = sys::openat(&directory, &name, flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
            let mut file = File::from(file);
            let copied = match kind {
                EntryType::GNUSparse => copy_sparse(entry, &mut file),
                _ => io::copy(entry, &mut file).map(drop),
            };
            copied?;
            file.into()
        }
        EntryType::Symlink => {
            let target = entry.link_name()?.ok_or(ArchiveError::NoTarget)?;
            sys::symlinkat(&*target, &directory, &name).map_err(failed)?;
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            return sys::chownat(&directory, &name, Some(owner.0), Some(owner.1), flags).map_err(failed);
        }
        EntryType::Link => {
            let target = entry.link_name()?.ok_or(ArchiveError::NoTarget)?;
            let (from, file) = root.parent(&target)?.ok_or(ArchiveError::RootTarget)?;
            return sys::linkat(&from, &file, &directory, &name, AtFlags::empty()).map_err(failed);
        }
        EntryType::Fifo => {
            sys::mknodat(&directory, &name, FileType::Fifo, mode, 0).map_err(failed)?;
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            return sys::chownat(&directory, &name, Some(owner.0), Some(owner.1), flags).map_err(failed);
        }
        // Devices are skipped: containers get theirs from the agent, and an image's could be any.
        _ => return Ok(()),
    };
    sys::fchown(&made, Some(owner.0), Some(owner.1)).map_err(failed)?;
    // The mode is set after the owner, whose change clears the set-user-id bit.
    sys::fchmod(&made, mode).map_err(failed)?;
    set_attributes(entry, &made)?;
    match kind {
        EntryType::Directory => directories.push((made, times)),
        _ => drop(sys::futimens(&made, &times)),
    }
    // Limit of open directories; further ones keep the current time.
    if directories.len() > 256 {
        directories.remove(0);
    }
    Ok(())
}

/// Writes a file without its holes, which may be far larger than the archive.
fn copy_sparse(from: &mut impl Read, to: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = from.read(&mut buffer)?;
        match &buffer[..length] {
            [] => break,
            zeros if zeros.iter().all(|byte| *byte == 0) => drop(to.seek_relative(length as i64)?),
            bytes => to.write_all(bytes)?,
        }
    }
    let end = to.stream_position()?;
    to.set_len(end)
}

/// Creates a file in the place of a whiteout in the overlay's form, where the file system or the process's rights do
/// not permit that.
fn instead_of_mark(errno: Errno, directory: &OwnedFd, name: &Path) -> Result<(), Errno> {
    if !matches!(errno, Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL) {
        return Err(errno);
    }
    let flags = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    sys::openat(directory, name, flags, Mode::from_raw_mode(0o600)).map(drop)
}

fn is_directory(directory: &OwnedFd, name: &Path) -> bool {
    let status = sys::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    status.is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Directory)
}

/// Deletes an earlier entry with the same path: the later one counts.
fn remove(directory: &OwnedFd, name: &Path) -> Result<(), ArchiveError> {
    match sys::unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(rustix::io::Errno::ISDIR) => {
            sys::unlinkat(directory, name, AtFlags::REMOVEDIR).map_err(|errno| ArchiveError::Occupied(errno.into()))
        }
        Err(errno) => Err(ArchiveError::Io(errno.into())),
    }
}

/// Sets file capabilities and user attributes. Those that this host does not support are skipped.
fn set_attributes(entry: &mut Entry<'_, impl Read>, file: &OwnedFd) -> Result<(), ArchiveError> {
    let Some(records) = entry.pax_extensions()? else { return Ok(()) };
    for record in records.filter_map(Result::ok) {
        let name = record.key().ok().and_then(|key| key.strip_prefix("SCHILY.xattr."));
        // Only this process sets the attributes of overlays.
        if let Some(name) = name.filter(|name| name.starts_with("security.capability") || name.starts_with("user.")) {
            let _ = sys::fsetxattr(file, name, record.value_bytes(), XattrFlags::empty());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tepui-layer-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("root")).unwrap();
        path
    }

    fn entry(tar: &mut tar::Builder<Vec<u8>>, name: &str, kind: EntryType, link: &str, data: &[u8]) {
        let mut header = tar::Header::new_gnu();
        // A hostile archive is not restricted by the library's check of the path.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_uid(u64::from(rustix::process::getuid().as_raw()));
        header.set_gid(u64::from(rustix::process::getgid().as_raw()));
        header.set_size(data.len() as u64);
        header.set_cksum();
        tar.append(&header, data).unwrap();
    }

    fn unpacked(name: &str, entries: &[(&str, EntryType, &str)]) -> (PathBuf, Result<String, ArchiveError>) {
        let directory = directory(name);
        let mut tar = tar::Builder::new(Vec::new());
        for (name, kind, link) in entries {
            entry(&mut tar, name, *kind, link, if kind.is_file() { b"data" } else { b"" });
        }
        let file = directory.join("layer.tar");
        std::fs::write(&file, tar.into_inner().unwrap()).unwrap();
        let result = unpack(&file, &directory.join("root"));
        (directory, result)
    }

    #[test]
    fn nothing_leads_out() {
        use EntryType::{Link, Regular, Symlink};
        for (name, entries) in [
            ("parent", &[("../evil", Regular, "")][..]),
            ("deep", &[("a/../../evil", Regular, "")]),
            ("link", &[("a", Symlink, ".."), ("a/evil", Regular, "")]),
            ("absolute-link", &[("a", Symlink, "/tmp"), ("a/evil", Regular, "")]),
            ("hard", &[("evil", Link, "../layer.tar")]),
            ("hard-through-link", &[("a", Symlink, ".."), ("evil", Link, "a/layer.tar")]),
        ] {
            let (directory, result) = unpacked(name, entries);
            assert!(result.is_err(), "{name}");
            assert!(!directory.join("evil").exists() && !directory.join("root/evil").exists(), "{name}");
            std::fs::remove_dir_all(directory).unwrap();
        }
        let (directory, result) = unpacked("absolute", &[("/etc/passwd", EntryType::Regular, "")]);
        assert!(result.is_ok() && directory.join("root/etc/passwd").exists());
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn holes_take_no_room() {
        use std::os::unix::fs::MetadataExt;
        let sparse = |length: u64| {
            let mut header = tar::Header::new_gnu();
            header.set_path("f").unwrap();
            header.set_entry_type(EntryType::GNUSparse);
            header.set_mode(0o644);
            header.set_uid(u64::from(rustix::process::getuid().as_raw()));
            header.set_gid(u64::from(rustix::process::getgid().as_raw()));
            header.set_size(4);
            let gnu = header.as_gnu_mut().unwrap();
            gnu.set_real_size(length);
            gnu.sparse[0].set_offset(0);
            gnu.sparse[0].set_length(4);
            gnu.sparse[1].set_offset(length);
            gnu.sparse[1].set_length(0);
            header.set_cksum();
            let mut tar = tar::Builder::new(Vec::new());
            tar.append(&header, &b"data"[..]).unwrap();
            tar.into_inner().unwrap()
        };
        let directory = directory("sparse");
        let file = directory.join("layer.tar");
        std::fs::write(&file, sparse(64 << 20)).unwrap();
        unpack(&file, &directory.join("root")).unwrap();
        let found = std::fs::metadata(directory.join("root/f")).unwrap();
        assert_eq!(found.len(), 64 << 20);
        assert!(found.blocks() * 512 < 1 << 20, "{} blocks", found.blocks());
        std::fs::write(&file, sparse(1 << 40)).unwrap();
        let error = unpack(&file, &directory.join("root")).unwrap_err();
        assert!(base::error_chain(&error).contains("files have more than"), "{error}");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_later_entry_counts_and_links_stay_links() {
        use EntryType::{Directory, Link, Regular, Symlink};
        let entries = [("d", Directory, ""), ("d/f", Regular, ""), ("l", Symlink, "/etc/passwd"), ("l", Regular, "")];
        let (directory, result) = unpacked("twice", &entries);
        assert_eq!(result.unwrap().len(), 64);
        assert!(directory.join("root/l").symlink_metadata().unwrap().is_file());
        std::fs::remove_dir_all(directory).unwrap();
        let (directory, result) = unpacked("hardlink", &[("f", Regular, ""), ("g", Link, "f")]);
        result.unwrap();
        assert_eq!(std::fs::read(directory.join("root/g")).unwrap(), b"data");
        std::fs::remove_dir_all(directory).unwrap();
    }
}
