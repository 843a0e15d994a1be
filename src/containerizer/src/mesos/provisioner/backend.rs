//! Backends of the provisioner: how the layers of an image become a root file system or a volume (AGT-122).
//!
//! Mounts are only described here; a container's first process makes them.

use std::path::{Path, PathBuf};

use containers::isolation::Mount;
use fetcher::image::{Backend, has_whiteouts, needs_copy};

/// Maximum length of the options of a mount.
const OPTIONS_MAX: usize = 4000;

/// The way in which layers become a root file system.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RootAssembly {
    /// The layers are mounted on top of each other.
    Mounted(Mount),
    /// The only layer is used, read-only.
    Single(PathBuf),
    /// The layers are copied.
    Copied,
}

impl RootAssembly {
    /// Returns how the layers, the lowest one first, become the root of a container in its directory `directory`: by
    /// mounts, or else by copying.
    ///
    /// # Errors
    /// The backend supports one layer only.
    pub(crate) fn of(backend: Backend, layers: &[PathBuf], directory: &Path) -> anyhow::Result<RootAssembly> {
        let target = directory.join("rootfs");
        let mount = match backend {
            Backend::Bind => {
                let [layer] = layers else {
                    anyhow::bail!(
                        "--image_provisioner_backend=bind takes images of one layer, and this one has {}",
                        layers.len()
                    );
                };
                return Ok(RootAssembly::Single(layer.clone()));
            }
            // The layers may have been unpacked where an overlay could not be used.
            Backend::Overlay if layers.iter().any(|layer| needs_copy(layer)) => None,
            Backend::Overlay => overlay(layers, directory).map(|options| Mount::Overlay { target, options }),
            // The whiteouts of these layers are in the overlay's form.
            Backend::Aufs => match layers.iter().any(|layer| has_whiteouts(layer).unwrap_or(true)) {
                true => None,
                false => aufs(layers, directory).map(|options| Mount::Aufs { target, options }),
            },
            Backend::Copy => None,
        };
        Ok(mount.map_or(RootAssembly::Copied, RootAssembly::Mounted))
    }
}

/// Returns the options of an overlay mount; `None` if they would be too long.
fn overlay(layers: &[PathBuf], directory: &Path) -> Option<String> {
    let (lower, directory) = names(layers, directory, &[])?;
    let options = format!("lowerdir={},upperdir={directory}/upper,workdir={directory}/work", lower.join(":"));
    (options.len() <= OPTIONS_MAX).then_some(options)
}

/// Returns the options of an aufs mount; `None` if they would be too long. The file with inode numbers is in no branch.
fn aufs(layers: &[PathBuf], directory: &Path) -> Option<String> {
    let (lower, directory) = names(layers, directory, &['='])?;
    let options = format!("br:{directory}/upper=rw:{}=ro,xino={directory}/work/xino", lower.join("=ro:"));
    (options.len() <= OPTIONS_MAX).then_some(options)
}

/// Returns the layers, the highest one first, and the directory; `None` if a path cannot be a mount option.
fn names(layers: &[PathBuf], directory: &Path, more: &[char]) -> Option<(Vec<String>, String)> {
    let lower: Vec<String> = layers.iter().rev().map(|layer| layer.to_string_lossy().into_owned()).collect();
    let directory = directory.to_string_lossy().into_owned();
    let plain = lower.iter().chain([&directory]).all(|path| !path.contains([':', ',', '\\']) && !path.contains(more));
    (plain && !lower.is_empty()).then_some((lower, directory))
}

/// Returns whether a layer has a directory, or else a file, at this path, without a link on the way.
pub(crate) fn has(layer: &Path, path: &str, is_directory: bool) -> bool {
    let mut sofar = layer.to_owned();
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        sofar.push(part);
        let is_last = parts.peek().is_none();
        let fits = |found: std::fs::Metadata| if is_last && !is_directory { found.is_file() } else { found.is_dir() };
        if part == ".." || !sofar.symlink_metadata().is_ok_and(fits) {
            return false;
        }
    }
    true
}

/// Checks that a read-only layer has the directories on which a container's own are mounted.
///
/// # Errors
/// The first missing directory.
pub(crate) fn check_points(layer: &Path, sandbox: &str) -> anyhow::Result<()> {
    for point in ["proc", "dev", sandbox] {
        anyhow::ensure!(
            has(layer, point, true),
            "The image has no directory '/{}', and with --image_provisioner_backend=bind nothing can be created in it",
            point.trim_start_matches('/')
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_backend_has_its_way() {
        let place = tempfile::tempdir().unwrap();
        let directory = Path::new("/c");
        let layers = ["1", "2"].map(|name| place.path().join(name));
        layers.iter().for_each(|layer| std::fs::create_dir(layer).unwrap());
        let [lower, upper] = [0, 1].map(|number: usize| layers[number].display().to_string());
        let of = |backend, layers: &[PathBuf]| RootAssembly::of(backend, layers, directory);
        let target = PathBuf::from("/c/rootfs");
        let options = format!("lowerdir={upper}:{lower},upperdir=/c/upper,workdir=/c/work");
        let overlay = RootAssembly::Mounted(Mount::Overlay { target: target.clone(), options });
        assert_eq!(of(Backend::Overlay, &layers).unwrap(), overlay);
        let options = format!("br:/c/upper=rw:{upper}=ro:{lower}=ro,xino=/c/work/xino");
        assert_eq!(of(Backend::Aufs, &layers).unwrap(), RootAssembly::Mounted(Mount::Aufs { target, options }));
        assert_eq!(of(Backend::Copy, &layers).unwrap(), RootAssembly::Copied);
        assert_eq!(of(Backend::Bind, &layers[..1]).unwrap(), RootAssembly::Single(layers[0].clone()));
        assert!(of(Backend::Bind, &layers).unwrap_err().to_string().ends_with("this one has 2"));
        for backend in [Backend::Overlay, Backend::Aufs] {
            assert_eq!(of(backend, &[]).unwrap(), RootAssembly::Copied);
            assert_eq!(RootAssembly::of(backend, &layers, Path::new("/a:b")).unwrap(), RootAssembly::Copied);
        }
    }

    #[test]
    fn what_a_layer_has() {
        let place = tempfile::tempdir().unwrap();
        let layer = place.path();
        std::fs::create_dir_all(layer.join("mnt/mesos/sandbox")).unwrap();
        std::fs::create_dir(layer.join("proc")).unwrap();
        std::fs::write(layer.join("mnt/file"), "").unwrap();
        std::os::unix::fs::symlink("/dev", layer.join("dev")).unwrap();
        assert!(has(layer, "/mnt/mesos/sandbox", true) && has(layer, "mnt/file", false));
        assert!(!has(layer, "mnt/file", true) && !has(layer, "mnt", false) && !has(layer, "mnt/..", true));
        let error = check_points(layer, "/mnt/mesos/sandbox").unwrap_err().to_string();
        assert!(error.starts_with("The image has no directory '/dev', and"), "{error}");
        std::fs::remove_file(layer.join("dev")).unwrap();
        std::fs::create_dir(layer.join("dev")).unwrap();
        check_points(layer, "/mnt/mesos/sandbox").unwrap();
        assert!(check_points(layer, "/s").unwrap_err().to_string().starts_with("The image has no directory '/s'"));
    }
}
