//! The files below `<runtime_dir>/containers` (docs/mesos/disk.md), for the next agent process and for administrators'
//! tools. They also tell which control groups are this agent's.
//!
//! Executors' own containers are in the agent's checkpoints, too; nested and standalone containers are only here.
//! `container_config.rs` has the messages in Mesos's formats.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use agent::{ContainerName, RecoveredNested};
use base::lock;
use base::{ContainerId, Time};
use prost::Message;
use protos::mesos::slave::ContainerTermination;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{Access, create_directories, create_file, write_file};

use crate::container_config::{ContainerConfig, ContainerDescription};
use crate::spares::Spares;

/// Name of the file with the pid of a container's first process.
const PID: &str = "pid";
/// Name of the file with the first process's status, in the form of wait(2).
const STATUS: &str = "status";
/// Maximum size of a status in bytes.
const STATUS_MAX: u64 = 16;
/// Names of the files with the requested container, and with how its process was started.
const CONFIG: &str = "config";
const LAUNCH_INFO: &str = "launch_info";
/// Name of the file with how a nested container has ended.
const TERMINATION: &str = "termination";
/// Name of the file that marks a standalone container.
const STANDALONE: &str = "standalone.marker";
/// Name of the file that marks a session, which cannot outlive the agent.
const SESSION: &str = "force_destroy_on_recovery";
/// Name of the directory about the switchboard of a container's terminal.
const SWITCHBOARD: &str = "io_switchboard";
/// Name of the file with the owner of a tree of containers: several agents may share a runtime directory.
const OWNER: &str = "agent";
/// Further records about a container, each in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// Variables that change the rotation of its output.
    Logger,
    /// Ports of a standalone container.
    Ports,
}

impl RecordKind {
    fn file(self) -> &'static str {
        match self {
            RecordKind::Logger => "logger",
            RecordKind::Ports => "ports",
        }
    }
}

/// Maximum depth of nested containers.
const DEPTH_MAX: usize = 32;

/// Records about containers. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    /// Directory of the records, `<runtime_dir>/containers`.
    root: PathBuf,
    /// Text of the owner: the path of the agent's `meta` directory.
    owner: String,
    /// Top-level containers with records; most containers have none.
    noted: Arc<Mutex<BTreeSet<ContainerName>>>,
    /// Directories of top-level containers that have ended.
    spares: Spares,
}

impl Records {
    pub(crate) fn new(runtime_dir: &Path, meta: &Path) -> Records {
        Records {
            root: runtime_dir.join("containers"),
            owner: meta.to_string_lossy().into_owned(),
            noted: Arc::default(),
            spares: Spares::new(runtime_dir.join("spares"), OWNER),
        }
    }

    /// Returns the directory of the records about a container.
    pub(crate) fn directory(&self, container: &ContainerName) -> PathBuf {
        let mut parts = container.as_str().split('.');
        let root = self.root.join(parts.next().unwrap_or_default());
        parts.fold(root, |directory, id| directory.join("containers").join(id))
    }

    /// Records that a container runs. Without the record, a container that is not an executor's cannot be recovered.
    pub(crate) fn note(&self, container: &ContainerName, pid: i32, described: &ContainerDescription) {
        self.note_owner(container);
        let directory = self.directory(container);
        let write = || {
            create_directories(&directory, Access::Owner)?;
            let config = described.config();
            if described.is_session() {
                write_file(&directory.join(SESSION), b"", Access::Owner)?;
            } else if container.parent().is_none() && config.executor_info.is_none() {
                write_file(&directory.join(STANDALONE), b"", Access::Owner)?;
            }
            write_for_us(&directory.join(CONFIG), &config)?;
            write_for_us(&directory.join(LAUNCH_INFO), &described.launch_info())?;
            // This file comes last: with it the container counts as recorded.
            write_file(&directory.join(PID), pid.to_string().as_bytes(), Access::Owner)
        };
        self.warn_of_failure(container, write());
    }

    /// Records the switchboard of a container's terminal.
    pub(crate) fn note_switchboard(&self, container: &ContainerName, pid: i32) {
        let directory = self.directory(container).join(SWITCHBOARD);
        let written = create_directories(&directory, Access::Owner)
            .and_then(|()| write_file(&directory.join(PID), pid.to_string().as_bytes(), Access::Owner));
        self.warn_of_failure(container, written);
    }

    /// Creates the file for the status of a container's program; `None` if it cannot be created.
    pub(crate) fn open_status(&self, container: &ContainerName) -> Option<File> {
        self.note_owner(container);
        let directory = self.directory(container);
        let opened = create_directories(&directory, Access::Owner)
            .and_then(|()| create_file(&directory.join(STATUS), Access::Owner));
        opened.inspect_err(|error| tracing::warn!(%container, "its exit will not be recorded: {error}")).ok()
    }

    /// Returns whether the first process of a running container is the agent's init, which records the status of its
    /// program.
    pub(crate) fn has_init(&self, container: &ContainerName) -> bool {
        self.directory(container).join(STATUS).exists()
    }

    /// Records the status of a nested container's first process.
    fn note_status(&self, container: &ContainerName, status: i32) {
        // The init process may have written it already, and that may be all that the next agent process has.
        if self.status(container).is_none() {
            self.warn_of_failure(
                container,
                unless_gone(write_file(
                    &self.directory(container).join(STATUS),
                    status.to_string().as_bytes(),
                    Access::Owner,
                )),
            );
        }
    }

    /// Records how a nested container has ended.
    pub(crate) fn record_termination(&self, container: &ContainerName, termination: &ContainerTermination) {
        self.warn_of_failure(
            container,
            unless_gone(write_for_us(&self.directory(container).join(TERMINATION), termination)),
        );
    }

    /// Returns the recorded status of a container's first process. That process runs as the task's user, so the file
    /// may have any content.
    pub(crate) fn status(&self, container: &ContainerName) -> Option<i32> {
        let (mut text, file) = (String::new(), File::open(self.directory(container).join(STATUS)).ok()?);
        file.take(STATUS_MAX).read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    fn warn_of_failure(&self, container: &ContainerName, written: io::Result<()>) {
        if let Err(error) = written {
            let directory = self.directory(container);
            tracing::warn!(%container, "a container cannot be recorded in '{}': {error}", directory.display());
        }
    }

    /// Creates the private directory for records about a container, which is deleted with the container.
    ///
    /// # Errors
    /// It cannot be created.
    pub(crate) fn make_directory(&self, container: &ContainerName) -> std::io::Result<PathBuf> {
        self.note_owner(container);
        let directory = self.directory(container);
        create_directories(&directory, Access::Owner)?;
        Ok(directory)
    }

    /// Writes a further record about a container.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(crate) fn write_record(
        &self,
        container: &ContainerName,
        what: RecordKind,
        value: &impl Serialize,
    ) -> std::io::Result<()> {
        let directory = self.make_directory(container)?;
        write_file(&directory.join(what.file()), &serde_json::to_vec(value)?, Access::Owner)
    }

    /// Reads a further record about a container; `None` if there is none, or it cannot be read.
    pub(crate) fn read_record<T: DeserializeOwned>(&self, container: &ContainerName, what: RecordKind) -> Option<T> {
        let noted = std::fs::read(self.directory(container).join(what.file())).ok()?;
        serde_json::from_slice(&noted).ok()
    }

    /// Records that a container, and whatever is left of it after a crash, belongs to this agent.
    pub(crate) fn note_owner(&self, container: &ContainerName) {
        if !lock(&self.noted).insert(container.root()) {
            return;
        }
        let directory = self.directory(&container.root());
        if self.spares.take(&directory) {
            return;
        }
        let written = create_directories(&directory, Access::Owner)
            .and_then(|()| write_file(&directory.join(OWNER), self.owner.as_bytes(), Access::Owner));
        self.warn_of_failure(container, written);
    }

    /// Handles the end of a container. If it is inside a running one, its status is recorded.
    ///
    /// The end of a top-level container deletes all records below it. A nested container that was started too late for
    /// that deletes them with its own end.
    pub(crate) fn ended(&self, container: &ContainerName, status: Option<i32>, is_inside: bool) {
        match (is_inside, status) {
            (false, _) => self.forget(&container.root()),
            (true, Some(status)) => self.note_status(container, status),
            (true, None) => {}
        }
    }

    /// Deletes the records of a container and of those inside it.
    pub(crate) fn forget(&self, container: &ContainerName) {
        let noted = match container.parent() {
            None => lock(&self.noted).remove(container),
            Some(_) => true,
        };
        if !noted {
            return;
        }
        let directory = self.directory(container);
        let deleted = match container.parent() {
            None => self.spares.put(&directory),
            Some(_) => std::fs::remove_dir_all(&directory),
        };
        match deleted {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%container, "cannot delete '{}': {error}", directory.display());
            }
            _ => {}
        }
    }

    /// Returns the top-level containers with records of this agent.
    pub(crate) fn owned(&self) -> Vec<ContainerName> {
        lock(&self.noted).iter().cloned().collect()
    }

    /// Reads the records of this agent, outer containers first.
    pub(crate) fn read(&self) -> Vec<(ContainerName, RecoveredNested)> {
        self.spares.delete_left_overs(&self.owner);
        let mut found = Vec::new();
        for (id, directory) in children(&self.root) {
            let owner = std::fs::read_to_string(directory.join(OWNER)).unwrap_or_default();
            if owner == self.owner {
                let top = ContainerName::top(&id);
                lock(&self.noted).insert(top.clone());
                found.extend(read_one(&directory).map(|one| (top.clone(), one)));
                read_inside(&top, &directory, DEPTH_MAX, &mut found);
            }
        }
        found
    }
}

/// Writes a message that other users cannot read: a container's variables may be secret.
fn write_for_us(path: &Path, message: &impl Message) -> io::Result<()> {
    write_file(path, &store::frame(message), Access::Owner)
}

/// Ignores an error because the directory has been deleted.
fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Reads the only message of a file; `None` if the file is missing, empty or damaged.
fn read_message<M: Message + Default>(path: &Path) -> Option<M> {
    store::read_frames(&std::fs::read(path).ok()?).ok()?.0.pop()
}

fn read_one(directory: &Path) -> Option<RecoveredNested> {
    let (pid, recorded) = read_pid(&directory.join(PID))?;
    let config: Option<ContainerConfig> = read_message(&directory.join(CONFIG));
    Some(RecoveredNested {
        pid,
        recorded: Some(recorded),
        is_executor: config.as_ref().is_some_and(|config| config.executor_info.is_some()),
        is_session: directory.join(SESSION).exists(),
        termination: read_message(&directory.join(TERMINATION)),
        description: config.as_ref().and_then(|config| config.container_info.clone()),
        command: config.map(|config| config.command_info),
    })
}

fn read_inside(
    container: &ContainerName,
    directory: &Path,
    depth: usize,
    found: &mut Vec<(ContainerName, RecoveredNested)>,
) {
    if depth == 0 {
        return;
    }
    for (id, directory) in children(&directory.join("containers")) {
        let child = container.child(&id);
        found.extend(read_one(&directory).map(|one| (child.clone(), one)));
        read_inside(&child, &directory, depth - 1, found);
    }
}

fn children(directory: &Path) -> Vec<(ContainerId, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
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
    use agent::{ContainerSpec, Session};
    use containers::{Program, Spec};

    #[test]
    fn what_is_noted_is_read_by_the_same_agent_only() {
        let directory = std::env::temp_dir().join(format!("tepui-records-{}", std::process::id()));
        let own = Records::new(&directory, Path::new("/w/meta"));
        let id = |text: &str| ContainerId::new(text).unwrap();
        let root = ContainerName::top(&id("a"));
        let (child, inner) = (root.child(&id("b")), root.child(&id("b")).child(&id("c")));
        own.note_owner(&root);
        own.note(&child, 2, &described(false));
        own.note(&inner, 3, &described(false));
        let names = |records: &Records| -> Vec<(String, u32)> {
            records.read().iter().map(|(name, nested)| (name.to_string(), nested.pid)).collect()
        };
        assert_eq!(names(&own), [("a.b".to_owned(), 2), ("a.b.c".to_owned(), 3)]);
        assert_eq!(names(&Records::new(&directory, Path::new("/other/meta"))), []);
        own.write_record(&child, RecordKind::Ports, &[(80, 81)]).unwrap();
        assert_eq!(own.read_record(&child, RecordKind::Ports), Some(vec![(80, 81)]));
        assert_eq!(own.read_record::<Vec<u64>>(&inner, RecordKind::Ports), None);
        own.forget(&inner);
        assert_eq!(names(&own), [("a.b".to_owned(), 2)]);
        own.forget(&root);
        own.forget(&root);
        assert_eq!(names(&own), []);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_is_started_after_its_root_has_ended_leaves_nothing() {
        let directory = std::env::temp_dir().join(format!("tepui-ended-{}", std::process::id()));
        let own = Records::new(&directory, Path::new("/w/meta"));
        let root = ContainerName::top(&ContainerId::new("a").unwrap());
        let child = root.child(&ContainerId::new("b").unwrap());
        own.note_owner(&root);
        own.note(&child, 2, &described(false));
        own.ended(&child, Some(256), true);
        assert_eq!(own.status(&child), Some(256));
        own.ended(&root, Some(0), false);
        assert!(!own.directory(&root).exists());
        // This container was being started when its root ended.
        own.note(&child, 3, &described(false));
        assert_eq!(own.owned(), std::slice::from_ref(&root));
        own.ended(&child, Some(9), false);
        assert!(!own.directory(&root).exists() && own.owned().is_empty());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    fn described(session: bool) -> ContainerDescription {
        let spec = ContainerSpec {
            sandbox: "/w/containers/a".into(),
            environment: vec![("A".into(), "b".into())],
            session: session.then_some(Session { terminal: None }),
            ..ContainerSpec::default()
        };
        ContainerDescription { spec: Box::new(spec), launched: Spec::new(Program::Shell("true".into())).into() }
    }

    #[test]
    fn what_is_recorded_of_a_container() {
        use std::os::unix::fs::PermissionsExt;
        let directory = std::env::temp_dir().join(format!("tepui-described-{}", std::process::id()));
        let own = Records::new(&directory, Path::new("/w/meta"));
        let root = ContainerName::top(&ContainerId::new("a").unwrap());
        let (child, gone) = (root.child(&ContainerId::new("b").unwrap()), root.child(&ContainerId::new("c").unwrap()));
        own.note(&root, 1, &described(false));
        own.note(&child, 2, &described(true));
        own.note_switchboard(&child, 5);
        own.note_status(&child, 256);
        let termination = ContainerTermination { status: Some(256), ..ContainerTermination::default() };
        own.record_termination(&child, &termination);
        own.record_termination(&gone, &termination);
        assert!(!own.directory(&gone).exists());
        let at = directory.join("containers/a");
        let text = |path: &str| std::fs::read_to_string(at.join(path)).unwrap();
        assert!(at.join("standalone.marker").exists() && !at.join("containers/b/standalone.marker").exists());
        assert!(at.join("containers/b/force_destroy_on_recovery").exists());
        assert_eq!((text("pid"), text("containers/b/status")), ("1".to_owned(), "256".to_owned()));
        assert_eq!(text("containers/b/io_switchboard/pid"), "5");
        assert_eq!(own.status(&child), Some(256));
        for file in ["config", "launch_info", "containers/b/termination"] {
            assert_eq!(at.join(file).metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file}");
        }
        let read = own.read();
        assert!(!read[0].1.is_executor && !read[0].1.is_session && read[0].1.termination.is_none());
        assert!(read[1].1.is_session);
        assert_eq!(read[1].1.termination, Some(termination));
        let variables = &read[0].1.command.as_ref().unwrap().environment.as_ref().unwrap().variables;
        assert_eq!((variables[0].name.as_str(), variables[0].value.as_deref()), ("A", Some("b")));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
