//! Isolator `cgroups/pids`, which counts the processes and threads of a container. It limits nothing.

use agent::ContainerName;
use containers::cgroups::Group;

use super::GroupUse;
use crate::mesos::isolators::Isolator;

/// The isolator `cgroups/pids`.
pub(crate) struct Pids;

impl Isolator for Pids {
    fn usage(&self, _: &ContainerName, group: &Group, usage: &mut GroupUse) {
        usage.pids = group.pid_statistics();
    }
}
