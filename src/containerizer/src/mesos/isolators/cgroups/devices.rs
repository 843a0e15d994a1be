//! Isolator `cgroups/devices`, which allows every container to open the devices of `--allowed_devices`. Devices that a
//! container holds are allowed by `gpu/nvidia`.

use containers::cgroups::{Device, Group};

use crate::config::Cgroups;
use crate::mesos::isolators::{Container, Isolator, Launch};

/// The isolator `cgroups/devices`.
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
