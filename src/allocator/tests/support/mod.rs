//! Support of the tests: the real allocator and the naive one, checked against each other after every step.

pub mod oracle;
pub mod world;

use protos::mesos::resource::DiskInfo;
use protos::mesos::resource::disk_info::Persistence;
use resources::{Amount, Reservation, Resource, Role};

/// Returns a shared volume of this many megabytes, reserved for a role.
pub fn shared_volume(role: Role, megabytes: Amount) -> Resource {
    let persistence = Persistence { id: "data".to_owned(), ..Persistence::default() };
    let disk = DiskInfo { persistence: Some(persistence), ..DiskInfo::default() };
    Resource::scalar("disk", megabytes)
        .with_reservations(&[Reservation::fixed(role)])
        .with_disk(Some(disk.into()))
        .with_copies(1)
}
