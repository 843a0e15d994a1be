//! Paths of checkpoints below the meta directory, and of sandboxes below the work directory.
//!
//! All ids are validated, so none can lead out of its directory.

use base::{AgentId, ExecutorId, FrameworkId, TaskId};

/// Path of the checkpointed boot id of the kernel.
pub(crate) const BOOT_ID: &str = "boot_id";
/// Path of the link to the directory of the agent's current id.
pub(crate) const LATEST: &str = "slaves/latest";
/// Path of the file of reservations, volumes and operations.
pub(crate) const RESOURCES: &str = "resources/resources_and_operations.state";
/// Path of the next content of [`RESOURCES`], while volumes are created and deleted.
pub(crate) const RESOURCES_TARGET: &str = "resources/resources_and_operations.target";
/// Path of the file of reservations and volumes only, for older agents.
pub(crate) const RESOURCES_INFO: &str = "resources/resources.info";
/// Path of the next content of [`RESOURCES_INFO`], while volumes are created and deleted.
pub(crate) const RESOURCES_INFO_TARGET: &str = "resources/resources.target";
/// Name of the file in a run's directory that marks an executor as one that uses HTTP.
pub(crate) const HTTP_MARKER: &str = "http.marker";
/// Content of [`HTTP_MARKER`] if the executor's calls need its token. Mesos only checks whether the file exists.
pub(crate) const TOKEN_MARK: &[u8] = b"token";
/// Name of the file of status updates in a task's directory.
pub(crate) const UPDATES: &str = "task.updates";

/// Returns the path of an agent's directory.
pub(crate) fn agent(agent: &AgentId) -> String {
    ["slaves/", agent.as_str()].concat()
}

/// Returns the path of a framework's directory.
pub(crate) fn framework(agent: &AgentId, framework: &FrameworkId) -> String {
    ["slaves/", agent.as_str(), "/frameworks/", framework.as_str()].concat()
}

/// Returns the path of an executor's directory.
pub(crate) fn executor(agent: &AgentId, framework: &FrameworkId, executor: &ExecutorId) -> String {
    ["slaves/", agent.as_str(), "/frameworks/", framework.as_str(), "/executors/", executor.as_str()].concat()
}

/// Returns the path of one run of an executor.
pub(crate) fn run(agent: &AgentId, framework: &FrameworkId, executor: &ExecutorId, container: &str) -> String {
    run_of(&self::executor(agent, framework, executor), container)
}

/// Returns the path of one run, from the path of its executor's directory.
pub(crate) fn run_of(executor: &str, container: &str) -> String {
    [executor, "/runs/", container].concat()
}

/// Returns the path of a task's directory in a run's directory.
pub(crate) fn task(run: &str, task: &TaskId) -> String {
    [run, "/tasks/", task.as_str()].concat()
}

/// Returns the path of a file in a task's directory in a run's directory.
pub(crate) fn task_file(run: &str, task: &TaskId, file: &str) -> String {
    [run, "/tasks/", task.as_str(), "/", file].concat()
}

/// Joins a directory and a path below it.
pub(crate) fn below(directory: &str, path: &str) -> String {
    [directory, "/", path].concat()
}
