//! Unpacks archives, which are identified by their names (AGT-63).
//!
//! Nothing of an archive is written outside its target directory.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::archive_error::ArchiveError;
use crate::entries::each;

/// Maximum memory for an .xz file, in KiB; `xz -9` needs a tenth of it.
const XZ_MEMORY_KB: u32 = 1 << 20;

/// Kind of an archive or a compressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A tar archive.
    Tar,
    /// A tar archive, compressed with gzip.
    TarGz,
    /// A tar archive, compressed with bzip2.
    TarBz2,
    /// A tar archive, compressed with xz.
    TarXz,
    /// A zip archive.
    Zip,
    /// A single file, compressed with gzip.
    Gz,
}

impl Kind {
    /// Returns the kind of a file by its name; `None` if it is not the name of an archive.
    pub fn of(path: &Path) -> Option<Kind> {
        let name = path.file_name()?.to_str()?;
        let kinds = [
            (Kind::Tar, &[".tar"][..]),
            (Kind::TarGz, &[".tar.gz", ".tgz"]),
            (Kind::TarBz2, &[".tar.bz2", ".tbz2"]),
            (Kind::TarXz, &[".tar.xz", ".txz"]),
            (Kind::Zip, &[".zip"]),
            (Kind::Gz, &[".gz"]),
        ];
        kinds.into_iter().find(|(_, ends)| ends.iter().any(|end| name.ends_with(end))).map(|(kind, _)| kind)
    }
}

/// Unpacks `archive` into `directory`; a single compressed file is unpacked to `target` without `.gz`.
///
/// # Errors
/// The archive breaks a rule, or an error of the system. Some of it may be unpacked then.
pub fn unpack(kind: Kind, archive: &Path, target: &Path, directory: &Path) -> Result<(), ArchiveError> {
    let file = File::open(archive).map_err(ArchiveError::Open)?;
    crate::confine::thread(directory, || unpack_opened(kind, BufReader::new(file), target, directory))
}

fn unpack_opened(kind: Kind, file: BufReader<File>, target: &Path, directory: &Path) -> Result<(), ArchiveError> {
    match kind {
        Kind::Tar => tar(file, directory),
        Kind::TarGz => tar(MultiGzDecoder::new(file), directory),
        Kind::TarBz2 => tar(MultiBzDecoder::new(file), directory),
        Kind::TarXz => tar(XzReader::new_mem_limit(file, true, XZ_MEMORY_KB), directory),
        Kind::Zip => {
            let opened = zip::ZipArchive::new(file);
            opened.and_then(|mut zip| zip.extract(directory)).map_err(ArchiveError::Zip)
        }
        Kind::Gz => {
            let unpacked = File::create(target.with_extension(""));
            let written = unpacked.and_then(|mut unpacked| io::copy(&mut MultiGzDecoder::new(file), &mut unpacked));
            written.map(drop).map_err(|error| ArchiveError::Unpack(Box::new(error.into())))
        }
    }
}

fn tar(reader: impl Read, directory: &Path) -> Result<(), ArchiveError> {
    // The files belong to the user of this process, which is the task's user.
    untar(reader, directory, true).map_err(|error| ArchiveError::Unpack(Box::new(error)))
}

/// Unpacks a tar archive into a directory, which is created if it does not exist. The files belong to this process's
/// user, and have the modes of the archive if `keeps_modes` is set.
pub(crate) fn untar(reader: impl Read, directory: &Path, keeps_modes: bool) -> Result<(), ArchiveError> {
    std::fs::create_dir_all(directory)?;
    // The library compares paths with the directory's resolved path.
    let directory = &directory.canonicalize()?;
    let set = |archive: &mut tar::Archive<_>| {
        archive.set_preserve_permissions(keeps_modes);
        archive.set_preserve_ownerships(false);
    };
    // The mode of a directory may forbid writing to it, so directories come last.
    each(reader, true, set, |entry| Ok(entry.unpack_in(directory).map(drop)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_name() {
        for (name, kind) in [
            ("a.tar", Some(Kind::Tar)),
            ("a.tar.gz", Some(Kind::TarGz)),
            ("a.tgz", Some(Kind::TarGz)),
            ("a.tar.bz2", Some(Kind::TarBz2)),
            ("a.tbz2", Some(Kind::TarBz2)),
            ("a.tar.xz", Some(Kind::TarXz)),
            ("a.txz", Some(Kind::TarXz)),
            ("a.zip", Some(Kind::Zip)),
            ("a.txt.gz", Some(Kind::Gz)),
            ("a.xz", None),
            ("tar", None),
            ("a.jar", None),
        ] {
            assert_eq!(Kind::of(Path::new("/x").join(name).as_path()), kind, "{name}");
        }
    }
}
