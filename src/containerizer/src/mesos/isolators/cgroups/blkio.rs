//! Isolator `cgroups/blkio`, which counts a container's use of block devices. It limits nothing.

use agent::ContainerName;
use containers::cgroups::Group;

use super::GroupUse;
use crate::mesos::isolators::Isolator;

/// The isolator `cgroups/blkio`.
pub(crate) struct Blkio;

impl Isolator for Blkio {
    fn usage(&self, _: &ContainerName, group: &Group, usage: &mut GroupUse) {
        usage.io = group.io_statistics();
    }
}
