//! Mounts the host's GPU driver in containers with an image that has the label `com.nvidia.volumes.needed` (AGT-108).
//!
//! The driver's programs and libraries must match the kernel's module, so images do not contain them. Each file is
//! mounted below `/usr/local/nvidia`, where such images expect it; nothing is copied.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use containers::isolation::{Isolation, Mount, MountPath};

use crate::mesos::provisioner::Root;

/// Directory in which images expect the driver.
const TARGET: &str = "/usr/local/nvidia";
/// Directories of programs on hosts, and of libraries.
const PROGRAMS: [&str; 3] = ["usr/bin", "usr/local/bin", "usr/local/nvidia/bin"];
const LIBRARIES: [&str; 5] =
    ["usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib", "usr/local/nvidia/lib64"];
/// Names of the driver's programs.
const OWN: [&str; 5] =
    ["nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "nvidia-debugdump", "nvidia-persistenced", "nvidia-smi"];
/// Names of the driver's libraries, without `.so` and what follows it.
const NAMES: [&str; 9] = [
    "libcuda",
    "libcudadebugger",
    "libnvcuvid",
    "libnvoptix",
    "libvdpau_nvidia",
    "libGLX_nvidia",
    "libEGL_nvidia",
    "libGLESv1_CM_nvidia",
    "libGLESv2_nvidia",
];
/// Prefix of the other libraries of the driver, and the prefix of similar names that are not part of it.
const PREFIX: &str = "libnvidia-";
const FOREIGN: &str = "libnvidia-container";
/// Maximum number of files. A driver has some sixty files, each with a few names.
const MOST: usize = 1000;

/// Mounts the driver in a container, if its image requires it.
///
/// # Errors
/// The host has no driver, or it cannot be mounted in the image.
pub(crate) fn add(root: &Root, isolation: &mut Isolation) -> anyhow::Result<()> {
    if !root.wants_gpu_driver() {
        return Ok(());
    }
    let files = files(Path::new("/"));
    ensure!(
        !files.is_empty(),
        "The image requires the host's GPU driver (com.nvidia.volumes.needed), which is not installed"
    );
    for (seen, file) in files {
        let target = root.point(&Path::new(TARGET).join(seen), false)?;
        isolation.mounts.push(Mount::Bind { source: MountPath::trusted(file), target, read_only: true });
    }
    Ok(())
}

/// Returns the driver's files below `host`: paths in the container and on the host.
fn files(host: &Path) -> BTreeMap<PathBuf, PathBuf> {
    let mut found = BTreeMap::new();
    let mut look = |directories: &[&str], target: &str, is_one: fn(&str) -> bool| {
        for entry in directories.iter().flat_map(|directory| fs::read_dir(host.join(directory))).flatten().flatten() {
            let name = entry.file_name();
            // A link is resolved, but keeps its own name, by which programs find the library.
            let file = entry.path().canonicalize().ok().filter(|file| file.is_file());
            if let (Some(name), Some(file)) = (name.to_str().filter(|name| is_one(name)), file)
                && found.len() < MOST
            {
                found.entry(Path::new(target).join(name)).or_insert(file);
            }
        }
    };
    look(&PROGRAMS, "bin", |name| OWN.contains(&name));
    look(&LIBRARIES, "lib64", is_library);
    found
}

fn is_library(name: &str) -> bool {
    let Some((stem, rest)) = name.split_once(".so") else { return false };
    let own = NAMES.contains(&stem) || stem.starts_with(PREFIX) && !stem.starts_with(FOREIGN);
    own && (rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_files_by_all_their_names() {
        let host = tempfile::tempdir().unwrap();
        let libraries = host.path().join("usr/lib/x86_64-linux-gnu");
        fs::create_dir_all(&libraries).unwrap();
        fs::create_dir_all(host.path().join("usr/bin")).unwrap();
        assert!(files(host.path()).is_empty());
        for name in ["libcuda.so.550.1", "libnvidia-ml.so.1", "libc.so.6", "libnvidia-container.so.1", "libcuda.a"] {
            fs::write(libraries.join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("libcuda.so.550.1", libraries.join("libcuda.so.1")).unwrap();
        std::os::unix::fs::symlink("nowhere", libraries.join("libcuda.so")).unwrap();
        fs::create_dir(libraries.join("libnvidia-directory.so")).unwrap();
        fs::write(host.path().join("usr/bin/nvidia-smi"), "").unwrap();
        fs::write(host.path().join("usr/bin/sh"), "").unwrap();
        let found = files(host.path());
        let names: Vec<&str> = found.keys().map(|name| name.to_str().unwrap()).collect();
        let all = ["bin/nvidia-smi", "lib64/libcuda.so.1", "lib64/libcuda.so.550.1", "lib64/libnvidia-ml.so.1"];
        assert_eq!(names, all);
        assert!(found[Path::new("lib64/libcuda.so.1")].ends_with("libcuda.so.550.1"));
    }
}
