//! Persistent volumes of a campaign's frameworks: each framework has slots, and creates, uses and destroys their
//! volumes.
//!
//! A slot holds one volume after another, each with its own id. The state of a volume is known only from offers: a
//! request may be lost, and a volume that was abandoned may exist.

use std::time::Duration;

use base::Time;
use protos::mesos::resource::{DiskInfo, disk_info::Persistence};
use protos::mesos::{Volume, volume::Mode};
use resources::{Amount, Disk, Name, Reservation, Resource, Resources, Role};
use sdk::task::to_v1;
use sdk::v1::offer::{Operation, operation};

/// Time after which a volume is abandoned that has neither been offered nor been in use.
pub(super) const ABANDON_AFTER: Duration = Duration::from_secs(10 * 60);
/// Time after which a volume is abandoned whose agent has no resources for its tasks.
pub(super) const IDLE: Duration = Duration::from_secs(3 * 60);
/// Size of a volume, in megabytes.
const SIZE: f64 = 64.0;

/// A slot that holds one persistent volume after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// Number of the present volume, or of the last one.
    pub attempt: u32,
    /// Whether the scheduler assumes that the volume exists.
    pub live: bool,
    /// Time when the volume was last offered or in use.
    pub seen: Option<Time>,
    /// Time since when tasks that wait for the volume cannot use it.
    pub idle: Option<Time>,
}

/// Returns the key under which a slot is stored.
pub(super) fn key(slot: usize) -> String {
    format!("slot{slot}")
}

impl Slot {
    /// Encodes the slot for storage.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.attempt.to_le_bytes().to_vec();
        bytes.push(u8::from(self.live));
        bytes
    }

    /// Decodes a stored slot, whose volume counts as seen at `now`.
    pub fn from_bytes(bytes: &[u8], now: Time) -> Option<Slot> {
        let [a, b, c, d, live] = *bytes else { return None };
        Some(Slot { attempt: u32::from_le_bytes([a, b, c, d]), live: live == 1, seen: Some(now), idle: None })
    }
}

/// Returns the id of a volume.
pub(super) fn volume_id(framework: usize, slot: usize, attempt: u32) -> String {
    format!("f{framework}v{slot}.{attempt}")
}

/// Returns slot and number of a volume, if it belongs to this framework.
pub(super) fn read_id(framework: usize, volume: &Resource) -> Option<(usize, u32)> {
    let id = volume.disk()?.persistence_id()?;
    let (slot, attempt) = id.strip_prefix(&format!("f{framework}v"))?.split_once('.')?;
    Some((slot.parse().ok()?, attempt.parse().ok()?))
}

/// Returns reserved, unallocated disk for one volume.
pub(super) fn reserved(role: &Role) -> Resource {
    let disk = Resource::scalar(Name::Disk, Amount::from_f64(SIZE));
    disk.with_reservations(&[Reservation::dynamic(role.clone(), None, None)])
}

/// Returns a persistent volume on disk that is reserved to the role.
pub(super) fn volume(role: &Role, id: &str, shared: bool) -> Resource {
    let info = DiskInfo {
        persistence: Some(Persistence { id: id.to_owned(), principal: None }),
        volume: Some(Volume { mode: Mode::Rw as i32, container_path: "data".to_owned(), ..Volume::default() }),
        source: None,
    };
    reserved(role).with_disk(Some(Disk::from(info))).with_copies(u32::from(shared))
}

/// Returns the operations that create a volume. They reserve its disk first, if it is not reserved.
pub(super) fn make(role: &Role, volume: Resource, is_reserved: bool) -> Vec<Operation> {
    let mut operations = Vec::new();
    if !is_reserved {
        let reserve = operation::Reserve { resources: messages(role, reserved(role)), ..Default::default() };
        operations.push(Operation { reserve: Some(reserve), ..of(operation::Type::Reserve) });
    }
    let create = operation::Create { volumes: messages(role, volume) };
    operations.push(Operation { create: Some(create), ..of(operation::Type::Create) });
    operations
}

/// Returns the operations that destroy a volume and release its disk.
pub(super) fn unmake(role: &Role, volume: &Resource) -> Vec<Operation> {
    let destroy = operation::Destroy { volumes: messages(role, volume.clone()) };
    let mut operations = vec![Operation { destroy: Some(destroy), ..of(operation::Type::Destroy) }];
    operations.push(free(role, &volume.without_volume()));
    operations
}

/// Returns the operation that ends a reservation.
pub(super) fn free(role: &Role, disk: &Resource) -> Operation {
    let unreserve = operation::Unreserve { resources: messages(role, disk.clone()) };
    Operation { unreserve: Some(unreserve), ..of(operation::Type::Unreserve) }
}

fn messages(role: &Role, resource: Resource) -> Vec<sdk::v1::Resource> {
    to_v1(&Resources::from(resource).allocated(role))
}

fn of(kind: operation::Type) -> Operation {
    Operation { r#type: Some(kind as i32), ..Operation::default() }
}
