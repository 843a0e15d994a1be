//! File systems of a few megabytes that a test can fill: in memory, or ext4 in a file.
//!
//! Mounting needs root. Where that is not possible there is no disk, and the test reports that it was not run.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Directory, until};

/// Arguments of mount(8) for a file system in memory.
const TMPFS: [&str; 5] = ["-t", "tmpfs", "-o", "size=16m", "tmpfs"];

/// A mounted file system, which is unmounted and removed when this is dropped.
pub struct SmallDisk {
    mount: PathBuf,
    directory: Directory,
}

impl SmallDisk {
    /// Mounts a file system of 16 MB in memory.
    pub fn tmpfs(name: &str) -> Option<SmallDisk> {
        let directory = directory(name)?;
        let mount = directory.path().join("mount");
        SmallDisk::mount(directory, mount, &TMPFS.map(str::to_owned))
    }

    /// Mounts a file system of 16 MB in memory at this directory.
    pub fn tmpfs_at(name: &str, mount: PathBuf) -> Option<SmallDisk> {
        SmallDisk::mount(directory(name)?, mount, &TMPFS.map(str::to_owned))
    }

    /// Mounts an ext4 file system of 64 MB with this many inodes, on a loop device.
    pub fn ext4(name: &str, inodes: u32) -> Option<SmallDisk> {
        let directory = directory(name)?;
        let (image, mount) = (directory.path().join("image"), directory.path().join("mount"));
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let mut make = Command::new("mkfs.ext4");
        make.args(["-q", "-m", "0", "-N", &inodes.to_string()]).arg(&image);
        if !make.status().is_ok_and(|status| status.success()) {
            println!("not run: there is no mkfs.ext4");
            return None;
        }
        SmallDisk::mount(directory, mount, &["-o".to_owned(), "loop".to_owned(), image.display().to_string()])
    }

    fn mount(directory: Directory, mount: PathBuf, words: &[String]) -> Option<SmallDisk> {
        fs::create_dir_all(&mount).unwrap();
        let mut command = Command::new("mount");
        command.args(words).arg(&mount);
        if !command.status().is_ok_and(|status| status.success()) {
            println!("not run: no file system can be mounted here ({command:?})");
            return None;
        }
        Some(SmallDisk { mount, directory })
    }

    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// Remounts the file system with other options.
    pub fn remount(&self, how: &str) {
        let mut command = Command::new("mount");
        command.args(["-o", &format!("remount,{how}")]).arg(&self.mount).stderr(Stdio::null());
        // An ending process may still have a file open for writing.
        until("it is mounted in another way", || command.status().unwrap().success());
    }

    /// Mounts a copy of an ext4 file system in its place, as after a repair. Files of the old one that processes have
    /// open stay open.
    pub fn replace(&self) {
        let [old, new] = ["image", "copy"].map(|name| self.directory.path().join(name));
        fs::copy(old, &new).unwrap();
        self.unmount();
        let mounted = Command::new("mount").args(["-o", "loop"]).arg(new).arg(&self.mount).status();
        assert!(mounted.unwrap().success());
    }

    fn unmount(&self) {
        let _ = Command::new("umount").arg("-l").arg(&self.mount).status();
    }

    /// Fills all blocks.
    pub fn fill(&self) -> Filling {
        let path = self.mount.join("fill");
        let mut file = fs::File::create(&path).unwrap();
        loop {
            let before = file.metadata().unwrap().len();
            for size in [1 << 16, 4096, 1] {
                let bytes = vec![b'x'; size];
                while file.write_all(&bytes).is_ok() {}
            }
            // Blocks that were reserved for metadata become free when that is written.
            let _ = file.sync_all();
            if file.metadata().unwrap().len() == before {
                return Filling(path);
            }
        }
    }

    /// Uses up all inodes.
    pub fn fill_inodes(&self) -> Filling {
        let path = self.mount.join("fill");
        fs::create_dir(&path).unwrap();
        for number in 0.. {
            if fs::File::create(path.join(number.to_string())).is_err() {
                break;
            }
        }
        Filling(path)
    }
}

/// Returns the directory for a disk and its image, if file systems can be mounted.
fn directory(name: &str) -> Option<Directory> {
    if nix::unistd::geteuid().is_root() {
        return Some(Directory::new(&format!("disk-{name}")));
    }
    println!("not run: it needs root, to mount a small file system");
    None
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// Files that fill a disk; [`Filling::remove`] deletes them.
pub struct Filling(PathBuf);

impl Filling {
    pub fn remove(self) {
        let removed = if self.0.is_dir() { fs::remove_dir_all(&self.0) } else { fs::remove_file(&self.0) };
        removed.unwrap();
    }
}
