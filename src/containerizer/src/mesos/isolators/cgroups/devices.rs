//! `cgroups/devices`: the devices that every container may open (`--allowed_devices`). Those that a container holds are
//! `gpu/nvidia`'s.

use containers::cgroups::{Device, Group};

use crate::config::Cgroups;
use crate::mesos::isolators::{Container, Isolator, Launch};

/// The isolator.
pub(crate) struct Devices(Vec<Device>);

impl Devices {
    pub(crate) fn new(config: &Cgroups) -> Devices {
        Devices(config.devices.clone())
    }
}

impl Isolator for Devices {
    fn isolate(&self, _: Container<'_>, group: &Group, _: &mut Launch) -> anyhow::Result<()> {
        Ok(group.allow_devices(&self.0)?)
    }
}
