//! How much disk containers use (the isolator `disk/du`, mesos-features.md AGT-101), and which disks the agent may use.
//!
//! Sandboxes are looked at one after the other on a thread that may block. Who uses too much is ended, and the core
//! hears of it, if `--enforce_container_disk_quota` is set.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::{Agent, ContainerName, Executor, ExecutorState, Input};
use protos::mesos;
use resources::{Amount, Format, Name, Resource, Resources, SourceKind};

use super::containers::Containers;
use crate::driver::Driver;
use crate::flags::{FlagError, Flags};
use crate::sync::lock;

/// The shortest time between two looks at all sandboxes.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// What a container was last seen to use, and may use, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskUse {
    pub(super) used: u64,
    pub(super) limit: Option<u64>,
}

/// The last look at the sandboxes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct DiskUses(Arc<Mutex<BTreeMap<ContainerName, DiskUse>>>);

impl DiskUses {
    pub(super) fn of(&self, container: &ContainerName) -> Option<DiskUse> {
        lock(&self.0).get(container).copied()
    }
}

/// Watches sandboxes, if `--isolation` asks for it.
pub(super) fn watch(
    flags: &Flags,
    uses: DiskUses,
    driver: Driver<Agent>,
    live: Containers,
) -> Option<tokio::task::JoinHandle<()>> {
    if !super::has_isolator(flags, &["disk/du", "posix/disk"]) {
        return None;
    }
    let interval = flags.duration("container_disk_watch_interval").unwrap_or_default().max(INTERVAL_MIN);
    let enforce = flags.on("enforce_container_disk_quota");
    Some(tokio::spawn(async move {
        loop {
            tokio::time::sleep(interval).await;
            let snapshot = driver.read(Agent::snapshot).await;
            let looked = tokio::task::spawn_blocking(move || {
                let executors = snapshot.frameworks.values().flat_map(|framework| framework.executors.values());
                let running = executors.filter(|executor| executor.state != ExecutorState::Terminated);
                running.map(|executor| (executor.container.clone(), look(executor))).collect::<BTreeMap<_, _>>()
            });
            let Ok(found) = looked.await else { continue };
            for (container, used) in &found {
                if let Some(limit) = used.limit.filter(|limit| enforce && used.used > *limit) {
                    driver.submit(exceeded(container, used.used, limit));
                    live.destroy(container.clone());
                }
            }
            *lock(&uses.0) = found;
        }
    }))
}

/// What an executor's sandbox takes; volumes in it are links, and are not its own.
fn look(executor: &Executor) -> DiskUse {
    let held = resources::from_proto(&executor.resources()).unwrap_or_default();
    let own = held.filter(|resource| *resource.name() == Name::Disk && !resource.is_persistent_volume());
    let megabytes = own.disk().to_f64();
    let limit = (!own.is_empty()).then_some((megabytes * MEGABYTE as f64) as u64);
    DiskUse { used: containers::disk_usage(Path::new(&*executor.directory)), limit }
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

/// Disks that `--resources` names: folders are made, mounts have to be there (RES-40).
///
/// # Errors
/// The first one that cannot be used.
pub(super) fn prepare(resources: &Resources, work_dir: &Path) -> Result<(), FlagError> {
    let refused = |why: String| FlagError::Refused { name: "resources", why };
    for disk in resources.iter().filter_map(Resource::disk) {
        let Some(root) = disk.root().map(|root| work_dir.join(root)) else { continue };
        let shown = root.display();
        match disk.source() {
            Some(SourceKind::Path) => store::create_directories(&root, store::Access::All)
                .map_err(|error| refused(format!("the disk '{shown}' cannot be created: {error}")))?,
            Some(SourceKind::Mount) => {
                let real = root.canonicalize();
                let real = real.map_err(|error| refused(format!("the disk '{shown}' cannot be used: {error}")))?;
                if !crate::host::is_mount_point(&real) {
                    return Err(refused(format!("the disk '{shown}' is not a mount point")));
                }
            }
            _ => {}
        }
    }
    Ok(())
}
