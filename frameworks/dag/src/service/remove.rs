//! Removes the outputs that ended jobs have left in a shared directory.
//!
//! Tasks write into these directories, possibly as other users than the framework's. So symbolic links are removed and
//! never followed, apart from those in the path of the shared directory itself, and only entries with names that
//! runners use are removed. Directories are removed when nothing else is left in them. A missing entry is not an error.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};

use crate::core::{Removal, StageRemoval};
use crate::task::{Entry, entry_of};

/// An entry that cannot be removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove {}", path.display())]
pub(super) struct RemoveError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl RemoveError {
    fn at(path: &Path) -> impl FnOnce(io::Error) -> RemoveError {
        let path = path.to_owned();
        move |source| RemoveError { path, source }
    }
}

/// Removes a job's outputs.
///
/// # Errors
/// Returns an error if the shared directory cannot be opened; nothing is removed then. If an entry cannot be removed,
/// the others still are, and the first error is returned.
pub(super) fn remove(removal: &Removal) -> Result<(), RemoveError> {
    let shared = Path::new(&removal.shared);
    let root = Directory { file: File::open(shared).map_err(RemoveError::at(shared))?, path: shared.to_owned() };
    let Some(job) = root.below(&removal.directory)? else { return Ok(()) };
    let mut result = Ok(());
    for stage_removal in &removal.stages {
        result = result.and(stage(&job, stage_removal));
    }
    result.and_then(|()| root.remove_if_empty(&removal.directory))
}

fn stage(job: &Directory, stage_removal: &StageRemoval) -> Result<(), RemoveError> {
    let Some(stage) = job.below(&stage_removal.stage)? else { return Ok(()) };
    let is_left = |name: &str| match entry_of(name) {
        Some(Entry::Published(index)) => index < stage_removal.tasks && !stage_removal.keeps_outputs,
        Some(Entry::Attempt(index)) => index < stage_removal.tasks,
        None => false,
    };
    let mut result = Ok(());
    for name in stage.names()?.iter().filter(|name| is_left(name)) {
        result = result.and(stage.remove(name));
    }
    result.and_then(|()| job.remove_if_empty(&stage_removal.stage))
}

/// An open directory.
struct Directory {
    file: File,
    /// Path of the directory, for messages.
    path: PathBuf,
}

impl Directory {
    /// Opens the directory of this name; `None` if there is none. A link or another kind of file is an error, since
    /// runners create none.
    fn below(&self, name: &str) -> Result<Option<Directory>, RemoveError> {
        let path = self.path.join(name);
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        match openat(&self.file, name, flags, Mode::empty()).map_err(io::Error::from) {
            Ok(file) => Ok(Some(Directory { file: file.into(), path })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(RemoveError { path, source }),
        }
    }

    /// Returns a path of an entry that leads through this directory and no other, even if directories are moved
    /// meanwhile.
    fn entry(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.file.as_raw_fd()))
    }

    fn names(&self) -> Result<Vec<String>, RemoveError> {
        let read = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in fs::read_dir(self.entry("."))? {
                // Runners use no names that are not UTF-8.
                names.extend(entry?.file_name().into_string());
            }
            Ok(names)
        };
        read().map_err(RemoveError::at(&self.path))
    }

    /// Removes an entry with everything in it. Neither it nor anything below it is followed if it is a link.
    fn remove(&self, name: &str) -> Result<(), RemoveError> {
        let entry = self.entry(name);
        let removed = match fs::symlink_metadata(&entry) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&entry),
            Ok(_) => fs::remove_file(&entry),
            Err(error) => Err(error),
        };
        gone(removed).map_err(RemoveError::at(&self.path.join(name)))
    }

    /// Removes a directory if it is empty.
    fn remove_if_empty(&self, name: &str) -> Result<(), RemoveError> {
        match fs::remove_dir(self.entry(name)) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => gone(removed).map_err(RemoveError::at(&self.path.join(name))),
        }
    }
}

/// Treats a missing entry as removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A temporary shared directory, which is removed at the end of a test.
    struct Shared(PathBuf);

    impl Shared {
        fn new(name: &str) -> Shared {
            let path = std::env::temp_dir().join(format!("tepui-remove-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Shared(path)
        }

        fn file(&self, name: &str) {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }

        fn has(&self, name: &str) -> bool {
            fs::symlink_metadata(self.0.join(name)).is_ok()
        }

        fn removal(&self, stages: &[(&str, bool)]) -> Removal {
            Removal {
                name: "job".into(),
                shared: self.0.join("shared").display().to_string(),
                directory: "job.1.F".into(),
                stages: stages
                    .iter()
                    .map(|(stage, keeps_outputs)| StageRemoval {
                        stage: (*stage).to_owned(),
                        tasks: 2,
                        keeps_outputs: *keeps_outputs,
                    })
                    .collect(),
            }
        }
    }

    impl Drop for Shared {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_the_job_made_goes_and_its_results_stay() {
        let all = Shared::new("all");
        for name in ["map/0/out", "map/1/deep/er/out", "map/.tepui-1.2/part", "map/.tepui-0.damaged/x"] {
            all.file(&format!("shared/job.1.F/{name}"));
        }
        for name in ["sum/0/total", "sum/.tepui-0.1/total"] {
            all.file(&format!("shared/job.1.F/{name}"));
        }
        all.file("shared/job.2.F/map/0/out");
        let removal = all.removal(&[("map", false), ("sum", true), ("never", false)]);
        remove(&removal).unwrap();
        assert!(!all.has("shared/job.1.F/map"));
        assert!(all.has("shared/job.1.F/sum/0/total") && !all.has("shared/job.1.F/sum/.tepui-0.1"));
        assert!(all.has("shared/job.2.F/map/0/out"), "another job's");
        remove(&removal).unwrap();
        remove(&all.removal(&[("sum", false)])).unwrap();
        assert!(!all.has("shared/job.1.F") && all.has("shared"), "nothing is left of the job");
        remove(&all.removal(&[("sum", false)])).unwrap();
    }

    #[test]
    fn what_the_job_did_not_make_stays() {
        let all = Shared::new("others");
        // Notes of a user, and outputs of tasks that the job does not have.
        let others =
            ["job.1.F/README", "job.1.F/map/notes", "job.1.F/map/2/out", "job.1.F/map/01/out", "job.1.F/other/0/x"];
        for name in ["job.1.F/map/0/out", "job.1.F/map/.tepui-2.1/x"].into_iter().chain(others) {
            all.file(&format!("shared/{name}"));
        }
        remove(&all.removal(&[("map", false)])).unwrap();
        assert!(!all.has("shared/job.1.F/map/0"));
        assert!(all.has("shared/job.1.F/map/.tepui-2.1/x"));
        assert!(others.iter().all(|name| all.has(&format!("shared/{name}"))));
    }

    #[test]
    fn links_are_not_followed() {
        let all = Shared::new("links");
        for name in ["victim/0/precious", "victim/map/0/precious"] {
            all.file(name);
        }
        let victim = all.0.join("victim");
        // Links in an output, in place of one, of a stage, and of the job.
        all.file("shared/job.1.F/map/0/out");
        symlink(&victim, all.0.join("shared/job.1.F/map/0/link")).unwrap();
        symlink(&victim, all.0.join("shared/job.1.F/map/1")).unwrap();
        symlink(&victim, all.0.join("shared/job.1.F/sum")).unwrap();
        let error = remove(&all.removal(&[("sum", false), ("map", false)])).unwrap_err();
        assert!(error.to_string().ends_with("shared/job.1.F/sum"), "{error}");
        assert!(!all.has("shared/job.1.F/map"), "the rest is removed");
        assert!(all.has("victim/0/precious") && all.has("victim/map/0/precious"));
        fs::remove_dir_all(all.0.join("shared/job.1.F")).unwrap();
        symlink(&victim, all.0.join("shared/job.1.F")).unwrap();
        assert!(remove(&all.removal(&[("map", false)])).is_err());
        assert!(all.has("victim/map/0/precious"));
    }

    #[test]
    fn a_shared_directory_that_is_not_there_is_told() {
        let all = Shared::new("none");
        let error = remove(&all.removal(&[("map", false)])).unwrap_err();
        assert!(base::error_chain(&error).contains("shared: No such file"), "{}", base::error_chain(&error));
    }
}
