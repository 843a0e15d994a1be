//! The image store: `images/<name>.json`, `layers/<id>/rootfs` and, for layers that must be copied, `file-marks` beside
//! it, `staging`, `locks`. Other files in these directories are not touched.
//!
//! Every entry appears as a whole, by a rename. The caller of [`Store::prune`] knows which layers containers use.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use ::store::Access;

use super::{Image, ImageError, Name, copy, layer};

/// Number of digits of a layer's digest in its directory's name: an overlay must name all layers within 4096 bytes.
const ID_DIGITS: usize = 32;

/// Returns the hexadecimal digits of a digest; `None` if the digest is invalid.
pub(super) fn hex_of(digest: &str) -> Option<&str> {
    let hex = digest.strip_prefix("sha256:")?;
    (hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))).then_some(hex)
}

/// A store of images.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// A directory for incomplete images, removed when dropped.
pub(super) struct Staging(PathBuf);

impl Staging {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // The next start of an agent deletes what is left.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Numbers of images and layers that were deleted from a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Number of deleted images.
    pub images: usize,
    /// Number of deleted layers.
    pub layers: usize,
}

impl Store {
    /// Opens a store; creates it if it does not exist.
    ///
    /// # Errors
    /// An error of the system.
    pub fn open(root: &Path) -> Result<Store, ImageError> {
        for part in ["images", "layers", "staging", "locks"] {
            let directory = root.join(part);
            // Images may need a login, so other users may not read the store.
            ::store::create_private(&directory).map_err(|error| ImageError::at(directory.display(), error))?;
        }
        Ok(Store { root: root.to_owned() })
    }

    /// Deletes what earlier processes have not finished. No image may be being fetched meanwhile.
    pub fn clean(&self) {
        for entry in fs::read_dir(self.root.join("staging")).into_iter().flatten().flatten() {
            // A directory that cannot be deleted only uses space.
            let _ = fs::remove_dir_all(entry.path());
        }
    }

    /// Returns the directory of a layer's files.
    pub fn layer(&self, id: &str) -> PathBuf {
        self.root.join("layers").join(id).join("rootfs")
    }

    /// Returns the images in the store, ordered by name.
    pub fn images(&self) -> Vec<Image> {
        let entries = fs::read_dir(self.root.join("images")).into_iter().flatten().flatten();
        let mut images: Vec<Image> = entries.filter_map(|entry| read_image(&entry.path())).collect();
        images.sort_by(|a, b| a.name.cmp(&b.name));
        images
    }

    /// Returns the image with that name, if all its layers are in the store.
    pub fn find(&self, name: &Name) -> Option<Image> {
        let image = read_image(&self.file("images", name))?;
        image.layers.iter().all(|id| self.layer(id).is_dir()).then_some(image)
    }

    fn file(&self, part: &str, name: &Name) -> PathBuf {
        // The parts of a name contain no '%'.
        self.root.join(part).join(format!("{}.json", name.to_string().replace('/', "%2F")))
    }

    pub(super) fn lock_image(&self, name: &Name) -> Result<File, ImageError> {
        let path = self.file("locks", name);
        let file = ::store::create_file(&path, Access::Owner).map_err(|error| ImageError::at(path.display(), error))?;
        file.lock().map_err(|error| ImageError::at(path.display(), error))?;
        Ok(file)
    }

    pub(super) fn staging(&self) -> Result<Staging, ImageError> {
        let path = self.root.join("staging").join(std::process::id().to_string());
        ::store::create_directories(&path, Access::Owner).map_err(|error| ImageError::at(path.display(), error))?;
        Ok(Staging(path))
    }

    /// Unpacks a layer, unless it is in the store. Returns its id.
    pub(super) fn add_layer(&self, digest: &str, file: &Path, staging: &Path) -> Result<String, ImageError> {
        let hex = hex_of(digest).ok_or_else(|| ImageError(format!("'{digest}' is not a digest of a layer")))?;
        let id = hex[..ID_DIGITS].to_owned();
        let directory = self.root.join("layers").join(&id);
        if directory.join("rootfs").is_dir() {
            return Ok(id);
        }
        let half = staging.join("layer");
        let root = half.join("rootfs");
        let at = |error: std::io::Error| ImageError::at(root.display(), error);
        let _ = fs::remove_dir_all(&half);
        ::store::create_directories(&root, Access::All).map_err(at)?;
        let found = layer::unpack(file, &root)
            .map_err(|error| ImageError(format!("The layer {digest}: {}", base::error_chain(&error))))?;
        if found != hex {
            return Err(ImageError(format!("The layer {digest} has the digest sha256:{found}")));
        }
        copy::record_file_whiteouts(&root).map_err(at)?;
        // If another process was faster, it has stored the same files.
        match fs::rename(&half, &directory) {
            Err(error) if !directory.join("rootfs").is_dir() => Err(ImageError::at(directory.display(), error)),
            _ => Ok(id),
        }
    }

    pub(super) fn add(&self, name: &Name, image: &Image) -> Result<(), ImageError> {
        let path = self.file("images", name);
        let half = path.with_extension("new");
        let text = serde_json::to_vec(image).map_err(|error| ImageError::at(path.display(), error))?;
        let written = ::store::write_file(&half, &text, Access::Owner).and_then(|()| fs::rename(&half, &path));
        written.map_err(|error| ImageError::at(path.display(), error))
    }

    /// Deletes the images that are not among `keep` and not in use, and the layers that neither a remaining image nor
    /// `used` names. No image may be being fetched meanwhile.
    pub fn prune(&self, keep: &[String], used: &BTreeSet<String>) -> Pruned {
        let keep: BTreeSet<String> = keep.iter().filter_map(|name| Some(Name::parse(name).ok()?.to_string())).collect();
        let mut pruned = Pruned::default();
        let mut needed = used.clone();
        for image in self.images() {
            let in_use =
                image.layers.iter().any(|id| used.contains(id)) && image.layers.iter().all(|id| used.contains(id));
            if keep.contains(&image.name) || in_use {
                needed.extend(image.layers);
            } else if let Ok(name) = Name::parse(&image.name) {
                pruned.images += usize::from(fs::remove_file(self.file("images", &name)).is_ok());
            }
        }
        for entry in fs::read_dir(self.root.join("layers")).into_iter().flatten().flatten() {
            let id = entry.file_name().to_string_lossy().into_owned();
            if !needed.contains(&id) {
                pruned.layers += usize::from(fs::remove_dir_all(entry.path()).is_ok());
            }
        }
        pruned
    }
}

fn read_image(path: &Path) -> Option<Image> {
    let text = fs::read(path).ok().filter(|_| path.extension().is_some_and(|end| end == "json"))?;
    serde_json::from_slice(&text).ok()
}
