//! A slice of systemd: a group that new processes enter in systemd's own hierarchies. So they are not part of the unit
//! whose process starts them, and do not end with it.
//!
//! Other code communicates with systemd. Here are only the groups, in the hierarchies by which systemd knows the
//! processes of a unit: `name=systemd` with version 1, the unified one with version 2, and both on a host that has
//! both.

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{CgroupError, Entry, failed};

/// Version 2: name of the group below the slice that holds the processes. A slice may have units below it, and a group
/// with controllers for groups below it can hold no process itself.
const LEAF: &str = "executors";

/// The groups of a slice in each of systemd's hierarchies that are mounted; they need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The files into which a new process writes itself.
    files: Vec<PathBuf>,
}

impl Slice {
    /// Returns the slice called `name` on this host, from `/proc/self/mountinfo`.
    ///
    /// # Errors
    /// If neither of systemd's hierarchies is mounted.
    pub fn of_this_host(name: &str) -> Result<Slice, CgroupError> {
        let path = Path::new("/proc/self/mountinfo");
        let text = std::fs::read_to_string(path).map_err(failed("read", path))?;
        Slice::detect(&text, name)
    }

    /// Returns the slice called `name` for a text in the format of `mountinfo`.
    ///
    /// # Errors
    /// As [`Slice::of_this_host`].
    pub fn detect(mountinfo: &str, name: &str) -> Result<Slice, CgroupError> {
        let (mut first, mut second) = (None, None);
        for line in mountinfo.lines() {
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let (mut left, mut rest) = (left.split(' '), right.split(' '));
            // In a container that sees only a part of the hierarchy, the groups that it creates end with the container.
            let (Some("/"), Some(point)) = (left.nth(3), left.next()) else { continue };
            let slice = Path::new(point).join(name);
            match (rest.next(), rest.nth(1)) {
                (Some("cgroup"), Some(options)) if options.split(',').any(|option| option == "name=systemd") => {
                    // A new process is one thread; see `Group::entry`.
                    first = first.or_else(|| Some(slice.join("tasks")));
                }
                (Some("cgroup2"), _) => second = second.or_else(|| Some(slice.join(LEAF).join("cgroup.procs"))),
                _ => {}
            }
        }
        let files: Vec<PathBuf> = first.into_iter().chain(second).collect();
        if files.is_empty() { Err(CgroupError::Missing("name=systemd")) } else { Ok(Slice { files }) }
    }

    /// Creates the groups that do not exist.
    ///
    /// # Errors
    /// An error of the system.
    pub fn make(&self) -> Result<(), CgroupError> {
        for directory in self.files.iter().filter_map(|file| file.parent()) {
            std::fs::create_dir_all(directory).map_err(failed("create the cgroup", directory))?;
        }
        Ok(())
    }

    /// Returns the entry of a process that would otherwise enter `entry`: it enters the slice as well. A process that
    /// is created in a group of its own does not enter the slice: version 2 has one group for each process, and that
    /// one is not the unit's either.
    ///
    /// # Errors
    /// A group does not exist and cannot be created.
    pub fn with(&self, entry: Option<Entry>) -> Result<Entry, CgroupError> {
        let mut files = match entry {
            Some(Entry::Born(directory)) => return Ok(Entry::Born(directory)),
            Some(Entry::Files(files)) => files,
            None => Vec::new(),
        };
        let own = self.open().or_else(|_| {
            // The process that stops the slice removes its groups.
            self.make()?;
            self.open()
        })?;
        files.extend(own);
        Ok(Entry::Files(files))
    }

    fn open(&self) -> Result<Vec<Arc<OwnedFd>>, CgroupError> {
        let one = |path: &PathBuf| {
            let file = OpenOptions::new().write(true).open(path).map_err(failed("open", path))?;
            Ok(Arc::new(OwnedFd::from(file)))
        };
        self.files.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(root: &Path, first: bool, second: bool) -> String {
        let root = root.display();
        let mut text = format!("31 25 0:27 / {root}/freezer rw - cgroup cgroup rw,freezer\n");
        if first {
            text += &format!("33 25 0:29 / {root}/systemd rw - cgroup cgroup rw,name=systemd\n");
        }
        if second {
            text += &format!("32 25 0:28 / {root}/unified rw - cgroup2 cgroup2 rw\n");
        }
        text
    }

    fn count(entry: &Entry) -> usize {
        match entry {
            Entry::Files(files) => files.len(),
            Entry::Born(_) => 0,
        }
    }

    #[test]
    fn what_a_process_enters() {
        let root = std::env::temp_dir().join(format!("tepui-slice-{}", std::process::id()));
        let detect = |first, second| Slice::detect(&mounts(&root, first, second), "x.slice");
        assert!(matches!(detect(false, false), Err(CgroupError::Missing("name=systemd"))));
        let part = mounts(&root, true, true).replace(" / ", " /docker/c1 ");
        assert!(Slice::detect(&part, "x.slice").is_err(), "a part of the hierarchy is not systemd's");
        let (first, second) = (root.join("systemd/x.slice"), root.join("unified/x.slice/executors"));
        for (slice, directories) in [
            (detect(true, false).unwrap(), vec![&first]),
            (detect(false, true).unwrap(), vec![&second]),
            (detect(true, true).unwrap(), vec![&first, &second]),
        ] {
            slice.make().unwrap();
            assert!(slice.with(None).is_err(), "a directory that is not a control group has none of the files");
            for (directory, file) in directories.iter().zip(&slice.files) {
                assert_eq!(file.parent(), Some(directory.as_path()));
                std::fs::write(file, "").unwrap();
            }
            let own = slice.with(None).unwrap();
            assert_eq!(count(&own), directories.len());
            assert_eq!(count(&slice.with(Some(own)).unwrap()), 2 * directories.len(), "what else is entered stays");
            let born = Entry::Born(Arc::new(std::fs::File::open(&root).unwrap().into()));
            assert!(matches!(slice.with(Some(born)), Ok(Entry::Born(_))));
            std::fs::remove_dir_all(&root).unwrap();
        }
    }
}
