//! Resources in the form of before reservation refinement, which old masters read (wire/libprocess.md 8.1).

use protos::mesos::{self as pb, resource::reservation_info::Type};

/// Rewrites resources into the old form, if each of them has one; else all stay as they are.
pub(crate) fn in_old_form(resources: &mut [pb::Resource]) {
    if resources.iter().any(|resource| resource.reservations.len() > 1) {
        return;
    }
    for resource in resources {
        downgrade(resource);
    }
}

#[allow(deprecated)]
fn downgrade(resource: &mut pb::Resource) {
    let Some(reservation) = resource.reservations.pop() else {
        if resource.role.is_none() {
            resource.role = Some("*".to_owned());
        }
        return;
    };
    if reservation.r#type == Some(Type::Dynamic as i32) {
        resource.reservation = Some(pb::resource::ReservationInfo {
            principal: reservation.principal,
            labels: reservation.labels,
            ..pb::resource::ReservationInfo::default()
        });
    }
    resource.role = reservation.role;
}
