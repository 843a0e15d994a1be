//! Isolator `linux/devices`, which creates the devices of `--allowed_devices` as files in the `/dev` of containers with
//! images (AGT-106).
//!
//! Containers without an image see the host's `/dev`. Whether a container may open a device is decided by
//! `cgroups/devices`.

use crate::config::{Cgroups, DeviceFile};
use crate::mesos::isolators::{Container, Isolator, Launch};

/// The isolator `linux/devices`.
pub(crate) struct Devices(Vec<DeviceFile>);

impl Devices {
    pub(crate) fn new(config: &Cgroups) -> Devices {
        Devices(config.device_files.clone())
    }
}

impl Isolator for Devices {
    fn prepare(&self, _: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        let Some(root) = launch.view.root() else { return Ok(()) };
        self.0.iter().try_for_each(|file| root.make_device(file))
    }
}
