//! What an earlier agent has left on disk, taken out of a [`Tree`] (wire/disk.md 5).
//!
//! Missing files are tolerated at each level, as a crash between two writes leaves them. Damaged ones are an
//! error if the agent is strict, else they are counted and skipped.

use base::{AgentId, ExecutorId, FrameworkId, Pid, TaskId, Time};
use prost::Message;
use protos::mesos::{self as pb, internal};

use super::{Tree, paths, unframe};

/// Why the checkpoints cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// A file that holds something else than it should.
    #[error("the checkpoint '{path}' is damaged: {why}")]
    Damaged {
        /// The file, below the meta folder.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What an earlier agent has left on disk.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The boot id at that agent's last recovery.
    pub boot_id: Option<String>,
    /// Reservations, volumes and operations.
    pub resources: Option<internal::slave::ResourceState>,
    /// What these were about to become, if the agent ended before all volumes were made and deleted.
    pub target: Option<internal::slave::ResourceState>,
    /// The agent that `slaves/latest` leads to.
    pub agent: Option<RecoveredAgent>,
    /// The ids of agents before that one, whose folders can go.
    pub old_agents: Vec<String>,
    /// How many damaged files were skipped.
    pub errors: u32,
    /// Containers inside other ones that the launcher knows to run, or to have ended; the shell adds them.
    pub nested: Vec<(crate::ContainerName, RecoveredNested)>,
}

/// A container inside another one, or by itself, as the launcher's own records tell.
#[derive(Clone, Debug, Default)]
pub struct RecoveredNested {
    /// Its first process.
    pub pid: u32,
    /// When that pid was written down.
    pub recorded: Option<Time>,
    /// Whether it is an executor's own. Those that can go on are in the checkpoints.
    pub is_executor: bool,
    /// Whether it is a session, which ends with the agent that carried its streams.
    pub is_session: bool,
    /// What it runs, and its description, as far as a session in it has to know.
    pub command: Option<pb::CommandInfo>,
    /// The rest of its description.
    pub description: Option<pb::ContainerInfo>,
    /// How it has ended, if it has.
    pub termination: Option<pb::slave::ContainerTermination>,
}

/// An agent's own checkpoints.
#[derive(Clone, Debug)]
pub struct RecoveredAgent {
    /// The id that a master gave it.
    pub id: AgentId,
    /// What it registered with.
    pub info: Option<pb::SlaveInfo>,
    /// Set while the agent is being drained.
    pub drain: Option<pb::DrainConfig>,
    /// Its frameworks that checkpoint.
    pub frameworks: Vec<RecoveredFramework>,
}

/// A framework's checkpoints.
#[derive(Clone, Debug)]
pub struct RecoveredFramework {
    /// The framework.
    pub id: FrameworkId,
    /// Its info; none when the agent crashed before it was written.
    pub info: Option<pb::FrameworkInfo>,
    /// Its driver's pid; none for an HTTP framework.
    pub pid: Option<Pid>,
    /// Its executors.
    pub executors: Vec<RecoveredExecutor>,
}

/// An executor's checkpoints.
#[derive(Clone, Debug)]
pub struct RecoveredExecutor {
    /// The executor.
    pub id: ExecutorId,
    /// Its info; none when the agent crashed before it was written.
    pub info: Option<pb::ExecutorInfo>,
    /// Whether the agent made it up for a command task.
    pub generated_for_command_task: bool,
    /// The run that `runs/latest` leads to.
    pub latest: Option<RecoveredRun>,
    /// The container ids of older runs.
    pub old_runs: Vec<String>,
}

/// One run of an executor.
#[derive(Clone, Debug)]
pub struct RecoveredRun {
    /// The container.
    pub container: String,
    /// The container's first process.
    pub forked_pid: Option<u32>,
    /// When that pid was written down, if the tree tells.
    pub forked_at: Option<Time>,
    /// Where its driver is, for a v0 executor that had registered.
    pub libprocess_pid: Option<Pid>,
    /// Whether it had subscribed over HTTP.
    pub http: bool,
    /// Whether it has ended and all is acknowledged.
    pub completed: bool,
    /// Its tasks.
    pub tasks: Vec<RecoveredTask>,
}

/// A task's checkpoints.
#[derive(Clone, Debug)]
pub struct RecoveredTask {
    /// The task.
    pub id: TaskId,
    /// The task as it was handed to its executor.
    pub info: Option<pb::Task>,
    /// Its updates and their acknowledgements, in order.
    pub records: Vec<internal::StatusUpdateRecord>,
    /// The whole records' bytes, if more follows them: the file has to be cut to these.
    pub torn: Option<Vec<u8>>,
}

/// Reads a tree; keeps count of what is damaged.
struct Reader<'a> {
    tree: &'a Tree,
    strict: bool,
    errors: u32,
}

impl Recovered {
    /// Takes the checkpoints out of a tree.
    ///
    /// # Errors
    /// If `strict`, when a file is damaged.
    pub fn read(tree: &Tree, strict: bool) -> Result<Recovered, RecoveryError> {
        let mut reader = Reader { tree, strict, errors: 0 };
        let mut recovered = Recovered {
            boot_id: tree.text(paths::BOOT_ID).map(|text| text.trim().to_owned()),
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
        recovered.errors = reader.errors;
        Ok(recovered)
    }
}

impl Reader<'_> {
    /// Notes a damaged file: an error if strict, else `Ok(None)`.
    fn damaged<T>(&mut self, path: &str, why: &impl ToString) -> Result<Option<T>, RecoveryError> {
        if self.strict {
            return Err(RecoveryError::Damaged { path: path.to_owned(), why: why.to_string() });
        }
        self.errors += 1;
        Ok(None)
    }

    /// The one framed message of a file; an empty or missing file is none.
    fn message<M: Message + Default>(&mut self, path: &str) -> Result<Option<M>, RecoveryError> {
        let Some(bytes) = self.tree.files.get(path).filter(|bytes| !bytes.is_empty()) else {
            return Ok(None);
        };
        match unframe::<M>(bytes) {
            Ok((messages, _)) => match messages.into_iter().next() {
                Some(message) => Ok(Some(message)),
                None => self.damaged(path, &"its end is missing"),
            },
            Err(why) => self.damaged(path, &why),
        }
    }

    /// Resources with operations from `path`, or else without from `older`.
    fn resources(&mut self, path: &str, older: &str) -> Result<Option<internal::slave::ResourceState>, RecoveryError> {
        if let Some(state) = self.message(path)? {
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
            // Those before the end would pass for all that is reserved.
            Ok(_) => self.damaged(older, &"its end is missing"),
            Err(why) => self.damaged(older, &why),
        }
    }

    fn agent(&mut self, id: AgentId) -> Result<RecoveredAgent, RecoveryError> {
        let folder = paths::agent(&id);
        let mut frameworks = Vec::new();
        for name in self.tree.names_in(&format!("{folder}/frameworks")) {
            if let Ok(framework) = FrameworkId::new(&name) {
                frameworks.push(self.framework(&id, framework)?);
            }
        }
        let info = self.message(&format!("{folder}/slave.info"))?;
        let drain = self.message(&format!("{folder}/drain.config"))?;
        Ok(RecoveredAgent { id, info, drain, frameworks })
    }

    fn framework(&mut self, agent: &AgentId, id: FrameworkId) -> Result<RecoveredFramework, RecoveryError> {
        let folder = paths::framework(agent, &id);
        let info = self.message(&format!("{folder}/framework.info"))?;
        let pid = self.tree.text(&format!("{folder}/framework.pid")).map(|text| Pid::parse_lenient(&text));
        let mut executors = Vec::new();
        for name in self.tree.names_in(&format!("{folder}/executors")) {
            if let Ok(executor) = ExecutorId::new(&name) {
                executors.push(self.executor(agent, &id, executor)?);
            }
        }
        Ok(RecoveredFramework { id, info, pid: pid.filter(|pid| !pid.is_empty()), executors })
    }

    fn executor(
        &mut self,
        agent: &AgentId,
        framework: &FrameworkId,
        id: ExecutorId,
    ) -> Result<RecoveredExecutor, RecoveryError> {
        let folder = paths::executor(agent, framework, &id);
        let info = self.message(&format!("{folder}/executor.info"))?;
        let generated = self.tree.text(&format!("{folder}/executor_generated_for_command_task"));
        let runs = format!("{folder}/runs");
        let latest = self.tree.links.get(&format!("{runs}/latest")).and_then(|target| target.rsplit('/').next());
        let (mut run, mut old_runs) = (None, Vec::new());
        for name in self.tree.names_in(&runs) {
            if latest == Some(&name) {
                run = Some(self.run(&format!("{runs}/{name}"), &name)?);
            } else if name != "latest" {
                old_runs.push(name);
            }
        }
        let generated_for_command_task = generated.as_deref() == Some("1");
        Ok(RecoveredExecutor { id, info, generated_for_command_task, latest: run, old_runs })
    }

    fn run(&mut self, folder: &str, container: &str) -> Result<RecoveredRun, RecoveryError> {
        let text = |name: &str| self.tree.text(&format!("{folder}/{name}"));
        let forked = text("pids/forked.pid").filter(|text| !text.is_empty());
        let libprocess_pid = text("pids/libprocess.pid").map(|text| Pid::parse_lenient(&text));
        let has = |name: &str| self.tree.files.contains_key(&format!("{folder}/{name}"));
        let (http, completed) = (has("http.marker"), has("executor.sentinel"));
        let forked_pid = match forked.as_deref().map(str::parse) {
            Some(Ok(pid)) => Some(pid),
            Some(Err(why)) => self.damaged(&format!("{folder}/pids/forked.pid"), &why)?,
            None => None,
        };
        let mut tasks = Vec::new();
        for name in self.tree.names_in(&format!("{folder}/tasks")) {
            if let Ok(task) = TaskId::new(&name) {
                tasks.push(self.task(folder, task)?);
            }
        }
        Ok(RecoveredRun {
            container: container.to_owned(),
            forked_pid,
            forked_at: self.tree.times.get(&format!("{folder}/pids/forked.pid")).copied(),
            libprocess_pid: libprocess_pid.filter(|pid| !pid.is_empty()),
            http,
            completed,
            tasks,
        })
    }

    fn task(&mut self, run: &str, id: TaskId) -> Result<RecoveredTask, RecoveryError> {
        let folder = paths::task(run, &id);
        let info = self.message(&format!("{folder}/task.info"))?;
        let path = format!("{folder}/task.updates");
        let (mut records, mut torn) = (Vec::new(), None);
        if let Some(bytes) = self.tree.files.get(&path) {
            match unframe(bytes) {
                Ok((whole, length)) => {
                    records = whole;
                    torn = (length < bytes.len()).then(|| bytes[..length].to_vec());
                }
                Err(why) => self.damaged(&path, &why).map(|_: Option<()>| ())?,
            }
        }
        Ok(RecoveredTask { id, info, records, torn })
    }
}
