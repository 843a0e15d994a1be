//! Isolator `namespaces/pid`: a container sees only its own processes.

use containers::isolation::Mount;

use crate::config::Isolation;
use crate::mesos::isolators::{Container, Isolator, Launch};

/// The isolator `namespaces/pid`.
pub(crate) struct Pid {
    /// Whether containers may not share the agent's pid namespace (`--disallow_sharing_agent_pid_namespace`).
    is_forced: bool,
}

impl Pid {
    pub(crate) fn new(config: &Isolation) -> Pid {
        Pid { is_forced: config.no_agent_pid }
    }
}

impl Isolator for Pid {
    fn prepare(&self, container: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        if container.outer_process.is_some() {
            return Ok(());
        }
        let linux = container.spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
        if linux.is_some_and(|linux| linux.share_pid_namespace()) {
            anyhow::ensure!(
                !self.is_forced,
                "Sharing the agent's pid namespace is not allowed (--disallow_sharing_agent_pid_namespace)"
            );
            return Ok(());
        }
        launch.isolation.namespaces.pid = true;
        launch.isolation.namespaces.mount = true;
        // A root file system of the container's own has a `/proc` already.
        if launch.view.root().is_none() {
            launch.isolation.mounts.push(Mount::Processes { target: "/proc".into() });
        }
        launch.init = container.spec.argv.get(1).is_none_or(|word| word != "executor");
        Ok(())
    }
}
