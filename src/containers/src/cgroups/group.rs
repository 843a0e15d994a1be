//! The control group of a container: creates it, lets a new process enter it, and finds its processes.
//!
//! `end.rs` kills and removes; the files of the controllers set limits.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{CgroupError, Controller, INSIDE, failed, hand_down, make, read};

/// Version 2: name of the group below a container's own that holds its processes. A group that sets limits for groups
/// below it must hold no process itself.
pub(super) const LEAF: &str = "leaf";

/// How a new process enters a group.
#[derive(Clone, Debug)]
pub enum Entry {
    /// The process writes itself into these files (version 1).
    Files(Vec<Arc<OwnedFd>>),
    /// The process is created in the group with this directory (version 2).
    Born(Arc<OwnedFd>),
}

/// The control group of a container, in each hierarchy that is mounted; it need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    directories: Directories,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Directories {
    V1(BTreeMap<Controller, PathBuf>),
    V2(PathBuf),
}

impl Group {
    pub(super) fn v1(directories: BTreeMap<Controller, PathBuf>) -> Group {
        Group { directories: Directories::V1(directories) }
    }

    pub(super) fn v2(directory: PathBuf) -> Group {
        Group { directories: Directories::V2(directory) }
    }

    pub(super) fn is_v2(&self) -> bool {
        matches!(self.directories, Directories::V2(_))
    }

    /// Creates the group for these controllers. A nested container without limits of its own needs the freezer only: it
    /// shares the other groups of its parent.
    ///
    /// # Errors
    /// A controller that is not mounted, or an error of the system.
    pub fn create(&self, controllers: &[Controller]) -> Result<(), CgroupError> {
        match &self.directories {
            Directories::V1(directories) => {
                for controller in controllers {
                    let directory = directories.get(controller).ok_or(CgroupError::Missing(controller.name()))?;
                    make_below(directory)?;
                    if *controller == Controller::Cpuset {
                        super::others::inherit_cpuset(directory.parent().unwrap_or(directory), directory)?;
                    }
                }
                Ok(())
            }
            Directories::V2(directory) => {
                make_below(directory)?;
                let own: Vec<Controller> = controllers.iter().copied().filter(|c| c.unified_name().is_some()).collect();
                let between = directory.parent().filter(|parent| parent.ends_with(INSIDE));
                if let (false, Some(between)) = (own.is_empty(), between) {
                    hand_down(between.parent().unwrap_or(between), &own)?;
                    hand_down(between, &own)?;
                }
                make(&directory.join(LEAF))
            }
        }
    }

    /// Opens the files by which a new process enters the group: those of the group's own controllers, and those of the
    /// controllers that it shares with `parent`.
    ///
    /// # Errors
    /// If a file of the group cannot be opened.
    pub fn entry(&self, own: &[Controller], shared: &[Controller], parent: &Group) -> Result<Entry, CgroupError> {
        match (&self.directories, &parent.directories) {
            (Directories::V2(directory), _) => {
                let leaf = directory.join(LEAF);
                let opened = File::open(&leaf).map_err(failed("open the cgroup", &leaf))?;
                Ok(Entry::Born(Arc::new(opened.into())))
            }
            (Directories::V1(directories), Directories::V1(parents)) => {
                let of = |from: &BTreeMap<Controller, PathBuf>, list: &[Controller]| -> Vec<PathBuf> {
                    list.iter().filter_map(|controller| from.get(controller).cloned()).collect()
                };
                let mut paths = [of(parents, shared), of(directories, own)].concat();
                paths.dedup();
                let open = |directory: &PathBuf| {
                    // A new process has one thread. A thread that moves itself need not wait for all threads of the
                    // host that are being created or ended, as every write to `cgroup.procs` does: milliseconds for
                    // each hierarchy.
                    let path = directory.join("tasks");
                    let file = OpenOptions::new().write(true).open(&path).map_err(failed("open", &path))?;
                    Ok(Arc::new(OwnedFd::from(file)))
                };
                Ok(Entry::Files(paths.iter().map(open).collect::<Result<_, CgroupError>>()?))
            }
            (Directories::V1(_), Directories::V2(_)) => Err(CgroupError::None),
        }
    }

    /// Returns the group's directory in the hierarchy of a controller; `None` if that is not mounted.
    pub(super) fn directory(&self, controller: Controller) -> Option<&Path> {
        match &self.directories {
            Directories::V1(directories) => directories.get(&controller).map(PathBuf::as_path),
            Directories::V2(directory) => Some(directory),
        }
    }

    /// Returns the directory by which processes are found and killed.
    pub(super) fn main(&self) -> &Path {
        match &self.directories {
            Directories::V1(directories) => {
                directories.get(&Controller::Freezer).map_or(Path::new("/nowhere"), PathBuf::as_path)
            }
            Directories::V2(directory) => directory,
        }
    }

    /// Returns the group's directories in all hierarchies, each once.
    pub(super) fn all(&self) -> Vec<&Path> {
        match &self.directories {
            Directories::V1(directories) => {
                let mut all: Vec<&Path> = directories.values().map(PathBuf::as_path).collect();
                all.sort();
                all.dedup();
                all
            }
            Directories::V2(directory) => vec![directory],
        }
    }

    /// Returns whether the group exists.
    pub fn exists(&self) -> bool {
        self.main().is_dir()
    }

    /// Returns whether the group exists in the hierarchy of this controller. Version 2 has one hierarchy for all.
    pub fn exists_for(&self, controller: Controller) -> bool {
        self.directory(controller).is_some_and(Path::is_dir)
    }

    /// Returns the pids of the processes in the group and in the groups below it.
    pub fn processes(&self) -> Vec<i32> {
        let mut found = Vec::new();
        below(self.main(), &mut |directory| {
            let text = read(&directory.join("cgroup.procs")).unwrap_or_default();
            found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
        });
        found
    }
}

/// Creates a group and the missing ones above it.
fn make_below(directory: &Path) -> Result<(), CgroupError> {
    if let Some(between) = directory.parent().filter(|parent| parent.ends_with(INSIDE)) {
        if let Some(outer) = between.parent() {
            make(outer)?;
        }
        make(between)?;
    }
    make(directory)
}

/// Visits `directory` and every group below it, inner ones first.
pub(super) fn below(directory: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), visit);
        }
    }
    visit(directory);
}
