//! Directories of agents, frameworks, executors and runs, named by their ids.

use base::{AgentId, ExecutorId, FrameworkId};

use super::paths;

/// A directory that exists below the work directory and below its `meta` directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Directory {
    /// An older run of an executor.
    Run(FrameworkId, ExecutorId, String),
    /// An executor with its runs.
    Executor(FrameworkId, ExecutorId),
    /// A framework with its executors.
    Framework(FrameworkId),
    /// The sandbox of a nested or standalone container, by its path below the work directory.
    Sandbox(String),
    /// An agent with another id.
    Agent(String),
}

impl Directory {
    /// Returns the path, relative to the work directory and to its `meta` directory.
    pub(crate) fn path(&self, agent: &AgentId) -> String {
        match self {
            Directory::Run(framework, executor, run) => paths::run(agent, framework, executor, run),
            Directory::Executor(framework, executor) => paths::executor(agent, framework, executor),
            Directory::Framework(framework) => paths::framework(agent, framework),
            Directory::Sandbox(path) => path.clone(),
            Directory::Agent(id) => format!("slaves/{id}"),
        }
    }
}
