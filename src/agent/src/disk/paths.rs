//! Where each checkpoint lies below the meta folder, and each sandbox below the work folder.
//!
//! All ids are checked ones, so none can lead out of its folder.

use base::{AgentId, ExecutorId, FrameworkId, TaskId};

/// The content of the kernel's boot id.
pub(crate) const BOOT_ID: &str = "boot_id";
/// The link to the folder of the agent's current id.
pub(crate) const LATEST: &str = "slaves/latest";
/// Reservations, volumes and operations.
pub(crate) const RESOURCES: &str = "resources/resources_and_operations.state";
/// What the former is to become once volumes have been made and deleted.
pub(crate) const RESOURCES_TARGET: &str = "resources/resources_and_operations.target";
/// Reservations and volumes only, for older agents.
pub(crate) const RESOURCES_INFO: &str = "resources/resources.info";
/// What the former is to become.
pub(crate) const RESOURCES_INFO_TARGET: &str = "resources/resources.target";
/// The file of a task's updates, in its directory.
pub(crate) const UPDATES: &str = "task.updates";

/// The agent's folder.
pub(crate) fn agent(agent: &AgentId) -> String {
    ["slaves/", agent.as_str()].concat()
}

/// A framework's folder.
pub(crate) fn framework(agent: &AgentId, framework: &FrameworkId) -> String {
    ["slaves/", agent.as_str(), "/frameworks/", framework.as_str()].concat()
}

/// An executor's folder.
pub(crate) fn executor(agent: &AgentId, framework: &FrameworkId, executor: &ExecutorId) -> String {
    ["slaves/", agent.as_str(), "/frameworks/", framework.as_str(), "/executors/", executor.as_str()].concat()
}

/// The folder of one run of an executor.
pub(crate) fn run(agent: &AgentId, framework: &FrameworkId, executor: &ExecutorId, container: &str) -> String {
    run_of(&self::executor(agent, framework, executor), container)
}

/// The folder of one run of the executor with this folder.
pub(crate) fn run_of(executor: &str, container: &str) -> String {
    [executor, "/runs/", container].concat()
}

/// The folder of a task in a run's folder.
pub(crate) fn task(run: &str, task: &TaskId) -> String {
    [run, "/tasks/", task.as_str()].concat()
}

/// A file in the folder of a task in a run's folder.
pub(crate) fn task_file(run: &str, task: &TaskId, file: &str) -> String {
    [run, "/tasks/", task.as_str(), "/", file].concat()
}

/// What lies in a folder.
pub(crate) fn below(folder: &str, path: &str) -> String {
    [folder, "/", path].concat()
}
