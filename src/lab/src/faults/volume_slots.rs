//! The persistent volumes of a campaign's frameworks: each framework has slots for some, and creates, uses and destroys
//! their volumes.
//!
//! A slot holds one volume after another, each with its own id. The state of a volume is known only from offers: a
//! request may be lost, and a volume that was given up may exist.

use std::time::Duration;

use base::Time;
use protos::mesos::resource::{DiskInfo, disk_info::Persistence};
use protos::mesos::{Volume, volume::Mode};
use resources::{Amount, Disk, Name, Reservation, Resource, Resources, Role};
use sdk::task::to_v1;
use sdk::v1::offer::{Operation, operation};

/// A volume that has neither been offered nor been in use for that long is given up.
pub(super) const GIVEN_UP: Duration = Duration::from_secs(10 * 60);
/// A volume that lies where there is no room for its tasks for that long is given up, too.
pub(super) const IDLE: Duration = Duration::from_secs(3 * 60);
/// How large volumes are, in megabytes.
const SIZE: f64 = 64.0;

/// A place for volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// The number of the present volume, or of the last one.
    pub attempt: u32,
    /// A volume is thought to be there.
    pub live: bool,
    /// When it was last offered or in use.
    pub seen: Option<Time>,
    /// Since when it has been of no use to tasks that wait for it.
    pub idle: Option<Time>,
}

/// The key under which a place is written down.
pub(super) fn key(slot: usize) -> String {
    format!("slot{slot}")
}

impl Slot {
    /// As it is written down.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.attempt.to_le_bytes().to_vec();
        bytes.push(u8::from(self.live));
        bytes
    }

    /// From what was written down.
    pub fn from_bytes(bytes: &[u8], now: Time) -> Option<Slot> {
        let [a, b, c, d, live] = *bytes else { return None };
        Some(Slot { attempt: u32::from_le_bytes([a, b, c, d]), live: live == 1, seen: Some(now), idle: None })
    }
}

/// The id of a volume.
pub(super) fn volume_id(who: usize, slot: usize, attempt: u32) -> String {
    format!("f{who}v{slot}.{attempt}")
}

/// Place and number of a volume, if it is one of this framework.
pub(super) fn read_id(who: usize, volume: &Resource) -> Option<(usize, u32)> {
    let id = volume.disk()?.persistence_id()?;
    let (slot, attempt) = id.strip_prefix(&format!("f{who}v"))?.split_once('.')?;
    Some((slot.parse().ok()?, attempt.parse().ok()?))
}

/// Reserved, unallocated disk for one volume.
pub(super) fn reserved(role: &Role) -> Resource {
    let disk = Resource::scalar(Name::Disk, Amount::from_f64(SIZE));
    disk.with_reservations(&[Reservation::dynamic(role.clone(), None, None)])
}

/// A volume on such disk.
pub(super) fn volume(role: &Role, id: &str, shared: bool) -> Resource {
    let info = DiskInfo {
        persistence: Some(Persistence { id: id.to_owned(), principal: None }),
        volume: Some(Volume { mode: Mode::Rw as i32, container_path: "data".to_owned(), ..Volume::default() }),
        source: None,
    };
    reserved(role).with_disk(Some(Disk::from(info))).with_copies(u32::from(shared))
}

/// The operations that make a volume; the disk for it is reserved first, if it is not.
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

/// The operations after which a volume's disk is free.
pub(super) fn unmake(role: &Role, volume: &Resource) -> Vec<Operation> {
    let destroy = operation::Destroy { volumes: messages(role, volume.clone()) };
    let mut operations = vec![Operation { destroy: Some(destroy), ..of(operation::Type::Destroy) }];
    operations.push(free(role, &volume.without_volume()));
    operations
}

/// The operation that ends a reservation.
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
