//! Checks archives: layers of images, and archives that the fetcher unpacks into sandboxes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fetcher::image::unpack_layer;
use fetcher::unpack::{Kind, unpack};
use store::Access;
use tar::{EntryType, Header};

use crate::files;
use crate::pieces::Pieces;

const KINDS: [Kind; 6] = [Kind::Tar, Kind::TarGz, Kind::TarBz2, Kind::TarXz, Kind::Zip, Kind::Gz];
/// Maximum number of bytes on disk that an archive with described entries may expand to; all data are in the archive
/// itself.
const OUTPUT_MAX: u64 = 1 << 20;

/// Unpacks an archive. The first byte says whether the rest describes its entries or is the archive itself. Nothing is
/// written outside of the target directory, and no more than the archive contains.
pub fn layer(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    let way = pieces.byte();
    let (archive, kind) = match way {
        b'e' => (built(pieces), Kind::Tar),
        way => (pieces.rest().to_vec(), KINDS[usize::from(way) % KINDS.len()]),
    };
    let directory = files::scratch();
    let file = directory.path().join("archive");
    files::write(&file, &archive);
    let canary = directory.path().join("canary");
    files::write(&canary, b"alive");
    for is_layer in [true, false] {
        let root = directory.path().join(if is_layer { "layer" } else { "sandbox" });
        store::create_directory(&root, Access::Owner).expect("a directory");
        let _ = match is_layer {
            true => unpack_layer(&file, &root).map(drop),
            false => unpack(kind, &file, &root.join("target.gz"), &root),
        };
        assert_eq!(fs::read(&canary).expect("the canary"), b"alive");
        assert_eq!(fs::metadata(&canary).expect("the canary").len(), 5);
        if way == b'e' {
            assert!(
                size(&root) <= OUTPUT_MAX,
                "the archive of {} bytes grew to {} on the disk",
                archive.len(),
                size(&root)
            );
        }
    }
    let names: BTreeMap<_, _> = fs::read_dir(directory.path())
        .expect("the directory")
        .map(|entry| entry.map(|entry| (entry.file_name(), ())))
        .collect::<Result<_, _>>()
        .expect("the directory");
    let expected = ["archive", "canary", "layer", "sandbox"];
    assert!(names.keys().eq(expected), "{names:?}");
}

/// Returns the disk usage of the files below a directory in bytes, without following links.
fn size(directory: &Path) -> u64 {
    let mut size = 0;
    let mut left: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        if found.is_dir() {
            left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if found.is_file() {
            // Holes use no blocks.
            size += found.blocks() * 512;
        }
    }
    size
}

/// Builds a tar archive with the entries that an input describes. Its checksums are correct, which a fuzzer rarely
/// achieves.
fn built(mut pieces: Pieces<'_>) -> Vec<u8> {
    let mut archive = Vec::new();
    while !pieces.is_empty() && archive.len() < 1 << 16 {
        let kind = pieces.byte();
        let (name, link) = (pieces.line(), pieces.line());
        let (mode, size) = (pieces.byte(), pieces.byte());
        let content = pieces.bytes();
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::new(kind));
        header.set_mode(0o700 | u32::from(mode));
        for (to, from) in [(0..100, name), (157..257, link)] {
            let part = &mut header.as_mut_bytes()[to];
            let length = from.len().min(part.len());
            part[..length].copy_from_slice(&from[..length]);
        }
        // The declared size is that of the content, or far from it.
        let declared = if size < 0xf0 { content.len() as u64 } else { 1 << ((size & 0x0f) * 4) };
        header.set_size(declared);
        if kind == b'S'
            && let Some(gnu) = header.as_gnu_mut()
        {
            let octal = |field: &mut [u8], number: u64| {
                let text = format!("{number:011o}\0");
                field.copy_from_slice(&text.as_bytes()[..field.len()]);
            };
            octal(&mut gnu.realsize, 1 << (mode & 0x1f));
            octal(&mut gnu.sparse[0].offset, 0);
            octal(&mut gnu.sparse[0].numbytes, content.len() as u64);
            octal(&mut gnu.sparse[1].offset, 1 << (mode & 0x1f));
            octal(&mut gnu.sparse[1].numbytes, 0);
        }
        header.set_cksum();
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(content);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    archive
}
