//! Converts to `mesos.Resource` messages, in the reservation format that the reader supports.

use protos::mesos;
use protos::mesos::value;
use protos::mesos::value::Type;

use crate::{Resource, Resources, Value};

/// Format of reservations in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `role` and `reservation`: for frameworks without RESERVATION_REFINEMENT, registration messages, checkpoints. A
    /// resource with more than one reservation cannot be expressed, and is written as in [`Format::PostRefinement`].
    PreRefinement,
    /// `reservations`: for everything else.
    PostRefinement,
    /// Both formats, for the endpoints' lists (`reserved_resources_full` and the like).
    Endpoint,
}

impl Resources {
    /// Converts to messages. The number of copies of a shared resource is bookkeeping and is not written.
    #[must_use]
    pub fn to_proto(&self, format: Format) -> Vec<mesos::Resource> {
        self.iter().map(|resource| resource_to_proto(resource, format)).collect()
    }

    /// Returns whether [`Resources::to_proto`] in [`Format::PostRefinement`] would return just this list. Returns
    /// `false` for lists with anything but plain scalars, even if it would.
    #[must_use]
    pub fn is_written_as(&self, list: &[mesos::Resource]) -> bool {
        self.len() == list.len() && self.iter().zip(list).all(|(resource, message)| is_plainly(resource, message))
    }
}

/// Returns whether the message is what [`resource_to_proto`] returns for the resource, and a plain scalar.
fn is_plainly(resource: &Resource, message: &mesos::Resource) -> bool {
    let (Value::Scalar(amount), Some(scalar)) = (resource.value(), message.scalar) else { return false };
    let bare = resource.disk().is_none()
        && resource.reservations().is_empty()
        && resource.provider().is_none()
        && !resource.is_revocable()
        && !resource.is_shared();
    let bare_message = message.ranges.is_none()
        && message.set.is_none()
        && message.role.is_none()
        && message.reservation.is_none()
        && message.reservations.is_empty()
        && message.provider_id.is_none()
        && message.disk.is_none()
        && message.revocable.is_none()
        && message.shared.is_none();
    let allocation = message.allocation_info.as_ref().map(|info| info.role.as_deref());
    bare && bare_message
        && message.r#type == Type::Scalar as i32
        && message.name == resource.name().as_str()
        && scalar.value.to_bits() == amount.to_f64().to_bits()
        && allocation == resource.allocation().map(|role| Some(role.as_str()))
}

/// Converts one resource to a message, without the number of copies.
#[must_use]
pub fn resource_to_proto(resource: &Resource, format: Format) -> mesos::Resource {
    let mut message = mesos::Resource {
        name: resource.name().text(),
        provider_id: resource.provider().map(|id| mesos::ResourceProviderId { value: id.as_str().to_owned() }),
        allocation_info: resource.allocation().map(|role| mesos::resource::AllocationInfo { role: Some(role.into()) }),
        disk: resource.disk().map(|disk| Box::new(disk.as_proto().clone())),
        revocable: resource.is_revocable().then(mesos::resource::RevocableInfo::default),
        shared: resource.is_shared().then(mesos::resource::SharedInfo::default),
        ..Default::default()
    };
    match resource.value() {
        Value::Scalar(amount) => {
            message.set_type(Type::Scalar);
            message.scalar = Some(value::Scalar { value: amount.to_f64() });
        }
        Value::Ranges(ranges) => {
            message.set_type(Type::Ranges);
            message.ranges = Some(ranges.to_proto());
        }
        Value::Set(items) => {
            message.set_type(Type::Set);
            message.set = Some(items.to_proto());
        }
    }
    write_reservations(resource, format, &mut message);
    message
}

#[allow(deprecated)]
fn write_reservations(resource: &Resource, format: Format, message: &mut mesos::Resource) {
    let stack = resource.reservations();
    if format != Format::PreRefinement || stack.len() > 1 {
        message.reservations = stack.iter().map(crate::Reservation::to_proto).collect();
    }
    if format == Format::PostRefinement {
        return;
    }
    match stack {
        [] => message.role = Some("*".into()),
        [only] => {
            message.role = Some((&only.role).into());
            message.reservation = only.is_dynamic().then(|| Box::new(only.to_old_proto()));
        }
        _ => {}
    }
}
