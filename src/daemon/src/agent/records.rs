//! Notes about containers inside executors and by themselves, for the agent's next start: `<runtime_dir>/containers`
//! (wire/disk.md 6); and which control groups are this agent's.
//!
//! Executors' own containers are in the agent's checkpoints; these are not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use agent::{ContainerName, RecoveredNested};
use base::{ContainerId, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sync::lock;

/// The file with a container's first process.
const PID: &str = "pid";
/// The file that names the agent that a tree of containers belongs to: several agents may share a runtime folder.
const OWNER: &str = "agent";
/// What else is noted of a container, each in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// The variables that say how its output is rotated.
    Logger,
    /// The ports that a container by itself holds.
    Ports,
}

impl Note {
    fn file(self) -> &'static str {
        match self {
            Note::Logger => "logger",
            Note::Ports => "ports",
        }
    }
}

/// How deep containers may lie in each other.
const DEPTH_MAX: usize = 32;

/// Notes about containers inside executors. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Records {
    /// `<runtime_dir>/containers`.
    root: PathBuf,
    /// What names this agent: its meta folder.
    owner: String,
    /// The executors' containers below which something is noted: most have nothing.
    noted: Arc<Mutex<BTreeSet<ContainerName>>>,
}

impl Records {
    pub(super) fn new(runtime_dir: &Path, meta: &Path) -> Records {
        Records {
            root: runtime_dir.join("containers"),
            owner: meta.to_string_lossy().into_owned(),
            noted: Arc::default(),
        }
    }

    /// Where notes about a container are.
    pub(super) fn folder(&self, container: &ContainerName) -> PathBuf {
        let mut parts = container.as_str().split('.');
        let root = self.root.join(parts.next().unwrap_or_default());
        parts.fold(root, |folder, id| folder.join("containers").join(id))
    }

    /// Notes that a container runs that is no executor's. Without the note it only cannot be found again.
    pub(super) fn note(&self, container: &ContainerName, pid: i32) {
        self.note_owner(container);
        let folder = self.folder(container);
        let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join(PID), pid.to_string()));
        if let Err(error) = written {
            tracing::warn!(%container, "a container cannot be noted in '{}': {error}", folder.display());
        }
    }

    /// Makes the folder for notes about a container, which nobody else can look into; it goes with the container.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn make_folder(&self, container: &ContainerName) -> std::io::Result<PathBuf> {
        use std::os::unix::fs::PermissionsExt;
        self.note_owner(container);
        let folder = self.folder(container);
        std::fs::create_dir_all(&folder)?;
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
        Ok(folder)
    }

    /// Notes more about a container.
    ///
    /// # Errors
    /// If that cannot be written.
    pub(super) fn note_more(
        &self,
        container: &ContainerName,
        what: Note,
        value: &impl Serialize,
    ) -> std::io::Result<()> {
        let folder = self.make_folder(container)?;
        std::fs::write(folder.join(what.file()), serde_json::to_vec(value)?)
    }

    /// What was noted by that; none if nothing was, or if it cannot be read.
    pub(super) fn more<T: DeserializeOwned>(&self, container: &ContainerName, what: Note) -> Option<T> {
        let noted = std::fs::read(self.folder(container).join(what.file())).ok()?;
        serde_json::from_slice(&noted).ok()
    }

    /// Notes that a container, and whatever is left of it after a crash, is this agent's.
    pub(super) fn note_owner(&self, container: &ContainerName) {
        if !lock(&self.noted).insert(container.root()) {
            return;
        }
        let folder = self.folder(&container.root());
        let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join(OWNER), &self.owner));
        if let Err(error) = written {
            tracing::warn!(%container, "a container cannot be noted in '{}': {error}", folder.display());
        }
    }

    /// Forgets a container, with those inside it.
    pub(super) fn forget(&self, container: &ContainerName) {
        let noted = match container.parent() {
            None => lock(&self.noted).remove(container),
            Some(_) => true,
        };
        if !noted {
            return;
        }
        let folder = self.folder(container);
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%container, "cannot delete '{}': {error}", folder.display());
            }
            _ => {}
        }
    }

    /// The outermost containers that this agent has noted and not forgotten.
    pub(super) fn owned(&self) -> Vec<ContainerName> {
        lock(&self.noted).iter().cloned().collect()
    }

    /// What this agent has noted and not forgotten, outer containers first.
    pub(super) fn read(&self) -> Vec<RecoveredNested> {
        let mut found = Vec::new();
        for (id, folder) in children(&self.root) {
            let owner = std::fs::read_to_string(folder.join(OWNER)).unwrap_or_default();
            if owner == self.owner {
                let top = ContainerName::top(&id);
                lock(&self.noted).insert(top.clone());
                if let Some((pid, recorded)) = read_pid(&folder.join(PID)) {
                    found.push(RecoveredNested { container: top.clone(), pid, recorded: Some(recorded) });
                }
                read_inside(&top, &folder, DEPTH_MAX, &mut found);
            }
        }
        found
    }
}

fn read_inside(container: &ContainerName, folder: &Path, depth: usize, found: &mut Vec<RecoveredNested>) {
    if depth == 0 {
        return;
    }
    for (id, folder) in children(&folder.join("containers")) {
        let child = container.child(&id);
        if let Some((pid, recorded)) = read_pid(&folder.join(PID)) {
            found.push(RecoveredNested { container: child.clone(), pid, recorded: Some(recorded) });
        }
        read_inside(&child, &folder, depth - 1, found);
    }
}

fn children(folder: &Path) -> Vec<(ContainerId, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let child = |entry: std::fs::DirEntry| Some((ContainerId::new(entry.file_name().to_str()?).ok()?, entry.path()));
    let mut children: Vec<_> = entries.filter_map(child).collect();
    children.sort_by(|a, b| a.1.cmp(&b.1));
    children
}

fn read_pid(path: &Path) -> Option<(u32, Time)> {
    let written: SystemTime = std::fs::metadata(path).ok()?.modified().ok()?;
    let pid = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some((pid, Time::from_epoch(written.duration_since(UNIX_EPOCH).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_by_the_same_agent_only() {
        let folder = std::env::temp_dir().join(format!("tepui-records-{}", std::process::id()));
        let own = Records::new(&folder, Path::new("/w/meta"));
        let id = |text: &str| ContainerId::new(text).unwrap();
        let root = ContainerName::top(&id("a"));
        let (child, inner) = (root.child(&id("b")), root.child(&id("b")).child(&id("c")));
        own.note_owner(&root);
        own.note(&child, 2);
        own.note(&inner, 3);
        let names = |records: &Records| -> Vec<(String, u32)> {
            records.read().iter().map(|nested| (nested.container.to_string(), nested.pid)).collect()
        };
        assert_eq!(names(&own), [("a.b".to_owned(), 2), ("a.b.c".to_owned(), 3)]);
        assert_eq!(names(&Records::new(&folder, Path::new("/other/meta"))), []);
        own.note_more(&child, Note::Ports, &[(80, 81)]).unwrap();
        assert_eq!(own.more(&child, Note::Ports), Some(vec![(80, 81)]));
        assert_eq!(own.more::<Vec<u64>>(&inner, Note::Ports), None);
        own.forget(&inner);
        assert_eq!(names(&own), [("a.b".to_owned(), 2)]);
        own.forget(&root);
        own.forget(&root);
        assert_eq!(names(&own), []);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
