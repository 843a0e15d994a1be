//! A root made by copying layers on top of each other, for hosts whose store cannot be the lower part of an overlay.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown, lchown, symlink};
use std::path::Path;

use rustix::fs as sys;

use super::layer::OPAQUE;

/// Copies layers, the lowest one first, into the empty folder `root`.
///
/// # Errors
/// What the system refuses.
pub fn copy_layers(layers: &[std::path::PathBuf], root: &Path) -> io::Result<()> {
    layers.iter().try_for_each(|layer| copy(layer, root))
}

/// Copies what is in `from` over what is in `to`. No path of the copy leads through a link: each folder is made, or is one.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let metadata = source.symlink_metadata()?;
        let kind = metadata.file_type();
        let below = target.symlink_metadata().ok();
        let hidden = kind.is_dir() && sys::lgetxattr(&source, OPAQUE, &mut [0_u8; 1]).is_ok_and(|length| length == 1);
        if let Some(below) = below
            && (!(kind.is_dir() && below.is_dir()) || hidden)
        {
            match below.is_dir() {
                true => fs::remove_dir_all(&target)?,
                false => fs::remove_file(&target)?,
            }
        }
        if kind.is_char_device() {
            // Only the mark of what is gone.
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
