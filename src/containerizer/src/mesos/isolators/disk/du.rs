//! Isolator `disk/du`, which measures the disk use of executors' containers (AGT-101).
//!
//! Sandboxes are measured one after the other on a blocking thread. With `--enforce_container_disk_quota` a container
//! that exceeds its disk is reported and destroyed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::{ContainerName, Input};
use base::lock;
use protos::mesos;
use resources::{Amount, Format, Name, Resource, Resources};
use tokio::task::JoinHandle;

use crate::composing::{ComposingContainerizer, ContainerResources, ListContainerResources};
use crate::config::Disk;
use crate::mesos::isolators::Isolator;

/// Shortest interval between measurements of all sandboxes.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Last measured disk use of a container, and its limit, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct DiskUse {
    /// Number of bytes in use.
    pub used: u64,
    /// Maximum number of bytes; `None` if the container holds no disk.
    pub limit: Option<u64>,
}

/// The isolator `disk/du`.
pub(crate) struct Du {
    config: Disk,
    /// Last measurements of the sandboxes.
    uses: Mutex<BTreeMap<ContainerName, DiskUse>>,
}

impl Du {
    pub(crate) fn new(config: Disk) -> Du {
        Du { config, uses: Mutex::default() }
    }
}

impl Isolator for Du {
    fn watch(self: Arc<Self>, running: ComposingContainerizer, held: ListContainerResources) -> Option<JoinHandle<()>> {
        let Disk { interval, enforce } = self.config;
        Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(interval.max(INTERVAL_MIN)).await;
                let held = held().await;
                let looked = tokio::task::spawn_blocking(move || {
                    held.into_iter().map(|holding| (holding.container.clone(), look(&holding))).collect()
                });
                let Ok(found): Result<BTreeMap<_, _>, _> = looked.await else { continue };
                for (container, used) in &found {
                    if let Some(limit) = used.limit.filter(|limit| enforce && used.used > *limit) {
                        running.report(exceeded(container, used.used, limit));
                        running.destroy(container.clone());
                    }
                }
                *lock(&self.uses) = found;
            }
        }))
    }

    fn disk_use(&self, container: &ContainerName) -> Option<DiskUse> {
        lock(&self.uses).get(container).copied()
    }
}

/// Measures an executor's sandbox. Volumes in it are links, which do not count.
fn look(held: &ContainerResources) -> DiskUse {
    let own = held.resources.filter(|resource| *resource.name() == Name::Disk && !resource.is_persistent_volume());
    let megabytes = own.disk().to_f64();
    let limit = (!own.is_empty()).then_some((megabytes * MEGABYTE as f64) as u64);
    DiskUse { used: containers::disk_usage(&held.sandbox), limit }
}

const MEGABYTE: u64 = 1 << 20;

fn exceeded(container: &ContainerName, used: u64, limit: u64) -> Input {
    let amount = Amount::from_f64((limit / MEGABYTE) as f64);
    let limited: Resources = [Resource::scalar(Name::Disk, amount)].into_iter().collect();
    Input::ContainerLimited {
        container: container.clone(),
        reason: mesos::task_status::Reason::ContainerLimitationDisk,
        message: format!("Disk usage ({}MB) exceeds quota ({}MB)", used / MEGABYTE, limit / MEGABYTE),
        resources: limited.to_proto(Format::PostRefinement),
    }
}
