//! `cgroups/blkio`: what a container does with block devices is counted. It limits nothing.

use agent::ContainerName;
use containers::cgroups::Group;

use super::GroupUse;
use crate::mesos::isolators::Isolator;

/// The isolator.
pub(crate) struct Blkio;

impl Isolator for Blkio {
    fn usage(&self, _: &ContainerName, group: &Group, usage: &mut GroupUse) {
        usage.io = group.io_statistics();
    }
}
