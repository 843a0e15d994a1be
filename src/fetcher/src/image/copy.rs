//! Copies layers on top of each other to make a root, for hosts whose store cannot be the lower part of an overlay.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown, lchown, symlink};
use std::path::Path;

use rustix::fs as sys;

use super::layer::{OPAQUE_ATTRIBUTE, OPAQUE_WHITEOUT, WHITEOUT_PREFIX};

/// Name of the file that marks a layer whose whiteouts are files.
const FILE_WHITEOUTS: &str = "file-marks";
/// Name of the file that records whether a layer has whiteouts in the overlay's form.
const OVERLAY_WHITEOUTS: &str = "overlay-marks";
const SOME: &str = "some";
const NONE: &str = "none";

/// Copies layers, the lowest one first, into the empty directory `root`.
///
/// # Errors
/// An error of the system.
pub fn copy_layers(layers: &[std::path::PathBuf], root: &Path) -> io::Result<()> {
    layers.iter().try_for_each(|layer| copy(layer, root))
}

/// Copies the content of `from` over that of `to`. No path of the copy goes through a link: each directory is created,
/// or is a directory.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let metadata = source.symlink_metadata()?;
        let kind = metadata.file_type();
        let below = target.symlink_metadata().ok();
        let name = entry.file_name();
        if let Some(gone) = name.to_str().and_then(|name| name.strip_prefix(WHITEOUT_PREFIX)) {
            // A whiteout does not delete an entry of its own layer.
            if name != OPAQUE_WHITEOUT && from.join(gone).symlink_metadata().is_err() {
                remove(&to.join(gone))?;
            }
            continue;
        }
        let hidden = kind.is_dir() && (is_opaque(&source) || source.join(OPAQUE_WHITEOUT).symlink_metadata().is_ok());
        if below.is_some_and(|below| !(kind.is_dir() && below.is_dir()) || hidden) {
            remove(&target)?;
        }
        if kind.is_char_device() {
            // The device is only a whiteout.
            continue;
        }
        if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
            lchown(&target, Some(metadata.uid()), Some(metadata.gid()))?;
            continue;
        }
        if kind.is_dir() {
            if !target.is_dir() {
                fs::create_dir(&target)?;
            }
            copy(&source, &target)?;
        } else if kind.is_fifo() {
            sys::mknodat(sys::CWD, &target, sys::FileType::Fifo, sys::Mode::from_raw_mode(0o600), 0)?;
        } else {
            fs::copy(&source, &target)?;
        }
        chown(&target, Some(metadata.uid()), Some(metadata.gid()))?;
        fs::set_permissions(&target, metadata.permissions())?;
        let capability = "security.capability";
        let mut value = [0; 64];
        if let Ok(length) = sys::lgetxattr(&source, capability, &mut value) {
            let _ = sys::lsetxattr(&target, capability, &value[..length], sys::XattrFlags::empty());
        }
    }
    Ok(())
}

fn is_opaque(directory: &Path) -> bool {
    sys::lgetxattr(directory, OPAQUE_ATTRIBUTE, &mut [0_u8; 1]).is_ok_and(|length| length == 1)
}

/// Deletes the entry at a path, if there is one.
fn remove(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

/// Returns whether a layer has whiteouts that only an overlay supports. The result is recorded beside the layer's
/// files, which never change, because checking all of them takes long.
///
/// # Errors
/// An error of the system.
pub fn has_whiteouts(layer: &Path) -> io::Result<bool> {
    let note = layer.with_file_name(OVERLAY_WHITEOUTS);
    match fs::read_to_string(&note).as_deref() {
        Ok(SOME) => return Ok(true),
        Ok(NONE) => return Ok(false),
        _ => {}
    }
    let found = has_overlay_whiteouts(layer)?;
    // Without the record the layer is checked again.
    let _ = fs::write(note, if found { SOME } else { NONE });
    Ok(found)
}

fn has_overlay_whiteouts(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_char_device() || kind.is_dir() && (is_opaque(&entry.path()) || has_overlay_whiteouts(&entry.path())?)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a layer has files as whiteouts, so that it can only be copied. `record_file_whiteouts` has recorded
/// it beside the layer's files.
pub fn needs_copy(layer: &Path) -> bool {
    layer.with_file_name(FILE_WHITEOUTS).exists()
}

/// Records beside a layer that was just unpacked whether it has files as whiteouts.
///
/// # Errors
/// An error of the system.
pub(super) fn record_file_whiteouts(layer: &Path) -> io::Result<()> {
    if has_file_whiteouts(layer)? { fs::write(layer.with_file_name(FILE_WHITEOUTS), "") } else { Ok(()) }
}

fn has_file_whiteouts(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_mark = entry.file_name().as_bytes().starts_with(WHITEOUT_PREFIX.as_bytes());
        if is_mark || entry.file_type()?.is_dir() && has_file_whiteouts(&entry.path())? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn marks_are_looked_for_once() {
        let place = std::env::temp_dir().join(format!("tepui-marks-{}", std::process::id()));
        let layer = place.join("rootfs");
        fs::create_dir_all(layer.join("directory")).unwrap();
        assert!(!has_whiteouts(&layer).unwrap());
        // The record is used, even after the layer was deleted.
        fs::remove_dir_all(&layer).unwrap();
        assert!(!has_whiteouts(&layer).unwrap());
        fs::write(place.join(OVERLAY_WHITEOUTS), SOME).unwrap();
        assert!(has_whiteouts(&layer).unwrap());
        // A truncated record is ignored.
        fs::write(place.join(OVERLAY_WHITEOUTS), "").unwrap();
        assert!(has_whiteouts(&layer).is_err());
        fs::remove_dir_all(&place).unwrap();
    }

    /// Layers in a store whose file system supports only files as whiteouts.
    #[test]
    fn what_is_gone_by_files() {
        let directory = std::env::temp_dir().join(format!("tepui-copy-{}", std::process::id()));
        let write = |layer: &str, files: &[&str]| -> PathBuf {
            for file in files {
                let path = directory.join(layer).join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, layer).unwrap();
            }
            directory.join(layer)
        };
        let lower = write("lower", &["a/gone", "a/kept", "hidden/old", "directory/inside", "again"]);
        let upper =
            write("upper", &["a/.wh.gone", "hidden/.wh..wh..opq", "hidden/new", ".wh.directory", ".wh.again", "again"]);
        let root = directory.join("root");
        fs::create_dir(&root).unwrap();
        assert!(!has_whiteouts(&upper).unwrap());
        assert!(has_file_whiteouts(&upper).unwrap() && !has_file_whiteouts(&lower).unwrap());
        record_file_whiteouts(&lower).unwrap();
        assert!(!needs_copy(&upper));
        record_file_whiteouts(&upper).unwrap();
        assert!(needs_copy(&upper));
        copy_layers(&[lower, upper], &root).unwrap();
        let mut found = Vec::new();
        let mut directories = vec![root.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => directories.push(path),
                    false => found.push(path.strip_prefix(&root).unwrap().display().to_string()),
                }
            }
        }
        found.sort();
        assert_eq!(found, ["a/kept", "again", "hidden/new"]);
        assert_eq!(fs::read_to_string(root.join("again")).unwrap(), "upper");
        fs::remove_dir_all(&directory).unwrap();
    }
}
