//! Reads the checkpoints of the previous agent process from a [`Tree`] (docs/mesos/disk.md).
//!
//! Missing files are tolerated at each level, as a crash between two writes leaves them. Damaged ones are an error if
//! the agent is strict; otherwise they are counted and skipped. Each skipped file is listed with its effect.

use base::{AgentId, ExecutorId, FrameworkId, Pid, TaskId, Time};
use prost::Message;
use protos::mesos::{self as pb, internal};

use super::{Tree, paths, unframe};

/// Reason why the checkpoints cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// A file does not have the expected content.
    #[error("the checkpoint '{path}' is damaged: {why}")]
    Damaged {
        /// Path of the file, below the meta directory.
        path: String,
        /// What is wrong with the content.
        why: String,
    },
}

/// State that the previous agent process left on disk.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// Boot id of the kernel at that process's last recovery.
    pub boot_id: Option<String>,
    /// Checkpointed reservations, volumes and operations.
    pub resources: Option<internal::slave::ResourceState>,
    /// State that `resources` was about to become; set if the agent ended before all volumes were created and deleted.
    pub target: Option<internal::slave::ResourceState>,
    /// Agent that the link `slaves/latest` points to.
    pub agent: Option<RecoveredAgent>,
    /// Ids of earlier agents, whose directories are garbage.
    pub old_agents: Vec<String>,
    /// Number of damaged files that were skipped.
    pub errors: u32,
    /// Files that were skipped although they should have been used.
    pub skipped: Vec<Skipped>,
    /// Nested and standalone containers that the launcher knows to run, or to have ended. The shell adds them.
    pub nested: Vec<(crate::ContainerName, RecoveredNested)>,
}

/// A checkpoint file that is empty or damaged, or missing although a file that is written later is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Path of the file, below the meta directory.
    pub path: String,
    /// What is wrong with the file: "is empty", "is damaged: its end is missing".
    pub why: String,
    /// Consequence for the agent, the executor or the task.
    pub effect: &'static str,
}

/// A nested or standalone container, from the launcher's own records.
#[derive(Clone, Debug, Default)]
pub struct RecoveredNested {
    /// Pid of the container's first process.
    pub pid: u32,
    /// Time at which the pid was recorded.
    pub recorded: Option<Time>,
    /// Whether the container is an executor's. Executors that can be recovered are in the checkpoints.
    pub is_executor: bool,
    /// Whether the container is a session, which ends with the agent process that carried its streams.
    pub is_session: bool,
    /// Command of the container; a session in it inherits the environment.
    pub command: Option<pb::CommandInfo>,
    /// Description of the container; a session in it inherits the rights.
    pub description: Option<pb::ContainerInfo>,
    /// How the container has ended; `None` while it runs.
    pub termination: Option<pb::slave::ContainerTermination>,
}

/// Checkpoints of one agent id.
#[derive(Clone, Debug)]
pub struct RecoveredAgent {
    /// Agent id that a master assigned.
    pub id: AgentId,
    /// Agent info of the registration.
    pub info: Option<pb::SlaveInfo>,
    /// Configuration of the drain; set while the agent is being drained.
    pub drain: Option<pb::DrainConfig>,
    /// Frameworks that checkpoint.
    pub frameworks: Vec<RecoveredFramework>,
}

/// Checkpoints of a framework.
#[derive(Clone, Debug)]
pub struct RecoveredFramework {
    /// Id of the framework.
    pub id: FrameworkId,
    /// Framework info; `None` when the agent crashed before it was written.
    pub info: Option<pb::FrameworkInfo>,
    /// Pid of the framework's driver; `None` for an HTTP framework.
    pub pid: Option<Pid>,
    /// Executors of the framework.
    pub executors: Vec<RecoveredExecutor>,
}

/// Checkpoints of an executor.
#[derive(Clone, Debug)]
pub struct RecoveredExecutor {
    /// Id of the executor.
    pub id: ExecutorId,
    /// Executor info; `None` when the agent crashed before it was written.
    pub info: Option<pb::ExecutorInfo>,
    /// Whether the agent created the executor for a command task.
    pub generated_for_command_task: bool,
    /// Run that the link `runs/latest` points to.
    pub latest: Option<RecoveredRun>,
    /// Container ids of older runs.
    pub old_runs: Vec<String>,
}

/// Checkpoints of one run of an executor.
#[derive(Clone, Debug)]
pub struct RecoveredRun {
    /// Container id of the run.
    pub container: String,
    /// Pid of the container's first process.
    pub forked_pid: Option<u32>,
    /// Time at which that pid was recorded, if the tree has it.
    pub forked_at: Option<Time>,
    /// Pid of the executor's driver, for a v0 executor that had registered.
    pub libprocess_pid: Option<Pid>,
    /// Whether the executor had subscribed over HTTP.
    pub http: bool,
    /// Whether the executor's calls need a token.
    pub needs_token: bool,
    /// Whether the run has ended and all its updates are acknowledged.
    pub completed: bool,
    /// Tasks of the run.
    pub tasks: Vec<RecoveredTask>,
}

/// Checkpoints of a task.
#[derive(Clone, Debug)]
pub struct RecoveredTask {
    /// Id of the task.
    pub id: TaskId,
    /// The task as it was sent to its executor.
    pub info: Option<pb::Task>,
    /// Status updates and their acknowledgements, in order.
    pub records: Vec<internal::StatusUpdateRecord>,
    /// Bytes of the whole records, if a partial record follows them: the file must be truncated to these.
    pub torn: Option<Vec<u8>>,
}

/// Consequences of a skipped file, as `Skipped::effect` has them.
mod effect {
    pub(super) const BOOT_ID: &str = "the agent assumes that the host has not rebooted";
    pub(super) const RESOURCES: &str = "its reservations, persistent volumes and operations are unknown";
    pub(super) const AGENT: &str =
        "the agent registers as a new one; executors of the old one are ended and their tasks are lost";
    pub(super) const DRAIN: &str = "the agent is not draining until the master requests it again";
    pub(super) const FRAMEWORK: &str = "the framework's executors are ended and its tasks are lost";
    pub(super) const FRAMEWORK_PID: &str = "messages for the framework go through the master";
    pub(super) const EXECUTOR: &str = "the executor is ended and its tasks are lost";
    pub(super) const GENERATED: &str = "the executor counts as one that the framework has specified";
    pub(super) const FORKED_PID: &str = "the executor counts as ended, and its tasks are reported as such";
    pub(super) const LIBPROCESS_PID: &str = "the agent does not contact the executor, which must reregister by itself";
    pub(super) const TASK: &str = "the task is lost";
    pub(super) const UPDATES: &str = "the task's updates are unknown, and it counts as staging";
    pub(super) const TORN: &str = "the incomplete update is cut off, and the executor repeats it";
}

/// A reader of a tree that counts damaged files.
struct Reader<'a> {
    tree: &'a Tree,
    strict: bool,
    errors: u32,
    skipped: Vec<Skipped>,
}

impl Recovered {
    /// Reads the checkpoints of a tree.
    ///
    /// # Errors
    /// If `strict`, when a file is damaged.
    pub fn read(tree: &Tree, strict: bool) -> Result<Recovered, RecoveryError> {
        let mut reader = Reader { tree, strict, errors: 0, skipped: Vec::new() };
        let mut recovered = Recovered {
            boot_id: reader.text(paths::BOOT_ID, effect::BOOT_ID).map(|text| text.trim().to_owned()),
            resources: reader.resources(paths::RESOURCES, paths::RESOURCES_INFO)?,
            target: reader.resources(paths::RESOURCES_TARGET, paths::RESOURCES_INFO_TARGET)?,
            ..Recovered::default()
        };
        let latest = tree.links.get(paths::LATEST).and_then(|target| target.rsplit('/').next());
        for name in tree.names_in("slaves") {
            match AgentId::new(&name) {
                Ok(id) if latest == Some(&name) => recovered.agent = Some(reader.agent(id)?),
                Ok(_) if name != "latest" => recovered.old_agents.push(name),
                _ => {}
            }
        }
        (recovered.errors, recovered.skipped) = (reader.errors, reader.skipped);
        Ok(recovered)
    }
}

impl<'a> Reader<'a> {
    fn skip(&mut self, path: &str, why: impl Into<String>, effect: &'static str) {
        self.skipped.push(Skipped { path: path.to_owned(), why: why.into(), effect });
    }

    /// Records a damaged file: an error if strict, else `Ok(None)`.
    fn damaged<T>(
        &mut self,
        path: &str,
        why: &impl ToString,
        effect: &'static str,
    ) -> Result<Option<T>, RecoveryError> {
        let why = why.to_string();
        if self.strict {
            return Err(RecoveryError::Damaged { path: path.to_owned(), why });
        }
        self.errors += 1;
        self.skip(path, format!("is damaged: {why}"), effect);
        Ok(None)
    }

    /// Returns the content of a file; `None` if it is empty or missing.
    fn content(&mut self, path: &str, effect: &'static str) -> Option<&'a [u8]> {
        let tree = self.tree;
        let bytes = tree.files.get(path)?;
        if bytes.is_empty() {
            self.skip(path, "is empty", effect);
            return None;
        }
        Some(bytes)
    }

    /// Returns the text of a file; `None` if it is empty or missing.
    fn text(&mut self, path: &str, effect: &'static str) -> Option<String> {
        self.content(path, effect).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns the framed message of a file; `None` if it is empty or missing.
    fn message<M: Message + Default>(&mut self, path: &str, effect: &'static str) -> Result<Option<M>, RecoveryError> {
        let Some(bytes) = self.content(path, effect) else { return Ok(None) };
        match unframe::<M>(bytes) {
            Ok((messages, _)) => match messages.into_iter().next() {
                Some(message) => Ok(Some(message)),
                None => self.damaged(path, &"its end is missing", effect),
            },
            Err(why) => self.damaged(path, &why, effect),
        }
    }

    /// Returns the resources with operations from the file `path`, or else those without operations from `older`.
    fn resources(&mut self, path: &str, older: &str) -> Result<Option<internal::slave::ResourceState>, RecoveryError> {
        if let Some(state) = self.message(path, effect::RESOURCES)? {
            return Ok(Some(state));
        }
        // An empty list of resources is an empty file: nothing is reserved.
        let Some(bytes) = self.tree.files.get(older).filter(|bytes| !bytes.is_empty()) else {
            return Ok(None);
        };
        match unframe(bytes) {
            Ok((resources, length)) if length == bytes.len() => {
                Ok(Some(internal::slave::ResourceState { operations: Vec::new(), resources }))
            }
            // The resources before the damage would be taken for all that is reserved.
            Ok(_) => self.damaged(older, &"its end is missing", effect::RESOURCES),
            Err(why) => self.damaged(older, &why, effect::RESOURCES),
        }
    }

    fn agent(&mut self, id: AgentId) -> Result<RecoveredAgent, RecoveryError> {
        let directory = paths::agent(&id);
        let mut frameworks = Vec::new();
        for name in self.tree.names_in(&format!("{directory}/frameworks")) {
            if let Ok(framework) = FrameworkId::new(&name) {
                frameworks.push(self.framework(&id, framework)?);
            }
        }
        let path = format!("{directory}/slave.info");
        let info = self.message(&path, effect::AGENT)?;
        // The agent writes this file before the link `latest`.
        if !self.tree.files.contains_key(&path) {
            self.skip(&path, "is missing", effect::AGENT);
        }
        let drain = self.message(&format!("{directory}/drain.config"), effect::DRAIN)?;
        Ok(RecoveredAgent { id, info, drain, frameworks })
    }

    fn framework(&mut self, agent: &AgentId, id: FrameworkId) -> Result<RecoveredFramework, RecoveryError> {
        let directory = paths::framework(agent, &id);
        let path = format!("{directory}/framework.info");
        let info = self.message(&path, effect::FRAMEWORK)?;
        let pid = self.text(&format!("{directory}/framework.pid"), effect::FRAMEWORK_PID);
        let pid = pid.map(|text| Pid::parse_lenient(&text)).filter(|pid| !pid.is_empty());
        let mut executors = Vec::new();
        for name in self.tree.names_in(&format!("{directory}/executors")) {
            if let Ok(executor) = ExecutorId::new(&name) {
                executors.push(self.executor(agent, &id, executor)?);
            }
        }
        let goes_on = |executor: &RecoveredExecutor| executor.latest.as_ref().is_some_and(|run| !run.completed);
        if !self.tree.files.contains_key(&path) && executors.iter().any(goes_on) {
            self.skip(&path, "is missing", effect::FRAMEWORK);
        }
        Ok(RecoveredFramework { id, info, pid, executors })
    }

    fn executor(
        &mut self,
        agent: &AgentId,
        framework: &FrameworkId,
        id: ExecutorId,
    ) -> Result<RecoveredExecutor, RecoveryError> {
        let directory = paths::executor(agent, framework, &id);
        let path = format!("{directory}/executor.info");
        let info = self.message(&path, effect::EXECUTOR)?;
        let generated = self.text(&format!("{directory}/executor_generated_for_command_task"), effect::GENERATED);
        let runs = format!("{directory}/runs");
        let latest = self.tree.links.get(&format!("{runs}/latest")).and_then(|target| target.rsplit('/').next());
        let (mut run, mut old_runs) = (None, Vec::new());
        for name in self.tree.names_in(&runs) {
            if latest == Some(&name) {
                run = Some(self.run(&format!("{runs}/{name}"), &name)?);
            } else if name != "latest" {
                old_runs.push(name);
            }
        }
        let goes_on = run.as_ref().is_some_and(|run| !run.completed);
        if !self.tree.files.contains_key(&path) && goes_on {
            self.skip(&path, "is missing", effect::EXECUTOR);
        }
        let generated_for_command_task = generated.as_deref() == Some("1");
        Ok(RecoveredExecutor { id, info, generated_for_command_task, latest: run, old_runs })
    }

    fn run(&mut self, directory: &str, container: &str) -> Result<RecoveredRun, RecoveryError> {
        let forked_path = format!("{directory}/pids/forked.pid");
        let forked = self.text(&forked_path, effect::FORKED_PID);
        let libprocess_pid = self.text(&format!("{directory}/pids/libprocess.pid"), effect::LIBPROCESS_PID);
        let libprocess_pid = libprocess_pid.map(|text| Pid::parse_lenient(&text));
        let file = |name: &str| self.tree.files.get(&format!("{directory}/{name}"));
        let (marker, completed) = (file(paths::HTTP_MARKER), file("executor.sentinel").is_some());
        let forked_pid = match forked.as_deref().map(str::parse) {
            Some(Ok(pid)) => Some(pid),
            Some(Err(why)) => self.damaged(&forked_path, &why, effect::FORKED_PID)?,
            None => None,
        };
        let mut tasks = Vec::new();
        for name in self.tree.names_in(&format!("{directory}/tasks")) {
            if let Ok(task) = TaskId::new(&name) {
                tasks.push(self.task(directory, task, completed)?);
            }
        }
        Ok(RecoveredRun {
            container: container.to_owned(),
            forked_pid,
            forked_at: self.tree.times.get(&forked_path).copied(),
            libprocess_pid: libprocess_pid.filter(|pid| !pid.is_empty()),
            http: marker.is_some(),
            needs_token: marker.is_some_and(|content| content == paths::TOKEN_MARK),
            completed,
            tasks,
        })
    }

    fn task(&mut self, run: &str, id: TaskId, completed: bool) -> Result<RecoveredTask, RecoveryError> {
        let directory = paths::task(run, &id);
        let info_path = format!("{directory}/task.info");
        let info = self.message(&info_path, effect::TASK)?;
        let path = format!("{directory}/task.updates");
        let (mut records, mut torn) = (Vec::new(), None);
        if let Some(bytes) = self.content(&path, effect::UPDATES) {
            match unframe(bytes) {
                Ok((whole, length)) => {
                    records = whole;
                    torn = (length < bytes.len()).then(|| bytes[..length].to_vec());
                }
                Err(why) => self.damaged(&path, &why, effect::UPDATES).map(|_: Option<()>| ())?,
            }
        }
        if torn.is_some() {
            self.skip(&path, "ends within an update", effect::TORN);
        }
        if !self.tree.files.contains_key(&info_path) && !records.is_empty() && !completed {
            self.skip(&info_path, "is missing", effect::TASK);
        }
        Ok(RecoveredTask { id, info, records, torn })
    }
}
