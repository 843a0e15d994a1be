//! Paths of checkpoints below the meta directory, and of sandboxes below the work directory.
//!
//! All ids are validated, so none can lead out of its directory.

use base::{AgentId, ExecutorId, FrameworkId, TaskId};

/// The content of the kernel's boot id.
pub(crate) const BOOT_ID: &str = "boot_id";
/// The link to the directory of the agent's current id.
pub(crate) const LATEST: &str = "slaves/latest";
/// Reservations, volumes and operations.
pub(crate) const RESOURCES: &str = "resources/resources_and_operations.state";
/// What the former is to become once volumes have been made and deleted.
pub(crate) const RESOURCES_TARGET: &str = "resources/resources_and_operations.target";
/// Reservations and volumes only, for older agents.
pub(crate) const RESOURCES_INFO: &str = "resources/resources.info";
/// What the former is to become.
pub(crate) const RESOURCES_INFO_TARGET: &str = "resources/resources.target";
/// The file in a run's directory by which an executor that speaks HTTP is known.
pub(crate) const HTTP_MARKER: &str = "http.marker";
/// The content of that file if the executor's calls need its token. Mesos looks only at whether the file is there.
pub(crate) const TOKEN_MARK: &[u8] = b"token";
/// The file of a task's updates, in its directory.
pub(crate) const UPDATES: &str = "task.updates";

/// The agent's directory.
pub(crate) fn agent(agent: &AgentId) -> String {
    ["slaves/", agent.as_str()].concat()
}

/// A framework's directory.
pub(crate) fn framework(agent: &AgentId, framework: &FrameworkId) -> String {
    ["slaves/", agent.as_str(), "/frameworks/", framework.as_str()].concat()
}

/// An executor's directory.
pub(crate) fn executor(agent: &AgentId, framework: &FrameworkId, executor: &ExecutorId) -> String {
    ["slaves/", agent.as_str(), "/frameworks/", framework.as_str(), "/executors/", executor.as_str()].concat()
}

/// The directory of one run of an executor.
pub(crate) fn run(agent: &AgentId, framework: &FrameworkId, executor: &ExecutorId, container: &str) -> String {
    run_of(&self::executor(agent, framework, executor), container)
}

/// The directory of one run of the executor with this directory.
pub(crate) fn run_of(executor: &str, container: &str) -> String {
    [executor, "/runs/", container].concat()
}

/// The directory of a task in a run's directory.
pub(crate) fn task(run: &str, task: &TaskId) -> String {
    [run, "/tasks/", task.as_str()].concat()
}

/// A file in the directory of a task in a run's directory.
pub(crate) fn task_file(run: &str, task: &TaskId, file: &str) -> String {
    [run, "/tasks/", task.as_str(), "/", file].concat()
}

/// A path in a directory.
pub(crate) fn below(directory: &str, path: &str) -> String {
    [directory, "/", path].concat()
}
