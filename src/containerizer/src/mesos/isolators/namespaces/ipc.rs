//! Isolator `namespaces/ipc`: a container has System V IPC objects, message queues and `/dev/shm` of its own.

use agent::ContainerSpec;
use containers::isolation::Mount;
use protos::mesos::{LinuxInfo, linux_info::IpcMode};

use crate::config::Isolation;
use crate::mesos::isolators::{Container, Isolator, Launch};

/// Text of the error if a size of `/dev/shm` is refused.
pub(crate) const NEEDS_OWN: &str =
    "'shm_size' needs a private ipc namespace (the isolator namespaces/ipc and ipc_mode PRIVATE)";

/// The isolator `namespaces/ipc`.
pub(crate) struct Ipc {
    /// Whether containers may not share the agent's IPC namespace (`--disallow_sharing_agent_ipc_namespace`).
    is_forced: bool,
    /// Default size of `/dev/shm` in bytes (`--default_container_shm_size`).
    shm_size: Option<u64>,
}

impl Ipc {
    pub(crate) fn new(config: &Isolation) -> Ipc {
        Ipc { is_forced: config.no_agent_ipc, shm_size: config.shm_size }
    }
}

impl Isolator for Ipc {
    fn prepare(&self, container: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        let linux = container.spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
        let is_outermost = container.outer_process.is_none();
        let is_private = is_outermost && linux.is_none_or(|linux| linux.ipc_mode() != IpcMode::ShareParent);
        anyhow::ensure!(
            is_private || !is_outermost || !self.is_forced,
            "Sharing the agent's ipc namespace is not allowed (--disallow_sharing_agent_ipc_namespace)"
        );
        let size = linux.map_or(Ok(None), |linux| own_memory(linux, is_private))?;
        if is_private {
            launch.isolation.namespaces.ipc = true;
            launch.isolation.namespaces.mount = true;
            let size = size.or(self.shm_size).map(|bytes| format!(",size={bytes}")).unwrap_or_default();
            let target = launch.view.root().map_or("/dev/shm".into(), |root| root.path().join("dev/shm"));
            launch.isolation.mounts.push(Mount::Memory { target, options: format!("mode=1777{size}") });
        }
        Ok(())
    }
}

/// Returns whether a container requests a size of `/dev/shm`.
pub(crate) fn asks(spec: &ContainerSpec) -> bool {
    let linux = spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
    linux.is_some_and(|linux| linux.shm_size.is_some())
}

/// Returns the size of `/dev/shm` in bytes that a container requests; `is_private` if it gets a `/dev/shm` of its own.
///
/// # Errors
/// A size without the request for a private IPC namespace.
fn own_memory(linux: &LinuxInfo, is_private: bool) -> anyhow::Result<Option<u64>> {
    let size = linux.shm_size.map(|megabytes| u64::from(megabytes) << 20);
    anyhow::ensure!(size.is_none() || is_private && linux.ipc_mode() == IpcMode::Private, NEEDS_OWN);
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_shared_memory_goes_with_a_private_one() {
        let asked = |mode: Option<IpcMode>, size, is_private| {
            let linux = LinuxInfo { ipc_mode: mode.map(|mode| mode as i32), shm_size: size, ..LinuxInfo::default() };
            own_memory(&linux, is_private).map_err(|error| error.to_string())
        };
        assert_eq!(asked(Some(IpcMode::Private), Some(2), true), Ok(Some(2 << 20)));
        assert_eq!(asked(Some(IpcMode::Private), None, true), Ok(None));
        assert_eq!(asked(None, None, false), Ok(None));
        for (mode, is_private) in [(None, true), (Some(IpcMode::ShareParent), false), (Some(IpcMode::Private), false)] {
            assert!(asked(mode, Some(2), is_private).unwrap_err().contains("'shm_size'"), "{mode:?}");
        }
    }
}
