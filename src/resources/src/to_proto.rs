//! To `mesos.Resource` messages, in the reservation format that the reader understands.

use protos::mesos;
use protos::mesos::value;
use protos::mesos::value::Type;

use crate::{Resource, Resources, Value};

/// How reservations are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `role` and `reservation`: frameworks without RESERVATION_REFINEMENT, registration messages, checkpoints.
    /// What has more than one reservation cannot be said so, and is written as in [`Format::PostRefinement`].
    PreRefinement,
    /// `reservations`: everywhere else.
    PostRefinement,
    /// Both: the endpoints' lists (`reserved_resources_full` and the like).
    Endpoint,
}

impl Resources {
    /// As messages. The number of copies of a shared resource is bookkeeping and is not written.
    #[must_use]
    pub fn to_proto(&self, format: Format) -> Vec<mesos::Resource> {
        self.iter().map(|resource| resource_to_proto(resource, format)).collect()
    }
}

/// One resource as a message, without the number of copies.
#[must_use]
pub fn resource_to_proto(resource: &Resource, format: Format) -> mesos::Resource {
    let mut message = mesos::Resource {
        name: resource.name().as_str().to_owned(),
        provider_id: resource.provider().map(|id| mesos::ResourceProviderId { value: id.as_str().to_owned() }),
        allocation_info: resource
            .allocation()
            .map(|role| mesos::resource::AllocationInfo { role: Some(role.as_str().to_owned()) }),
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
        [] => message.role = Some("*".to_owned()),
        [only] => {
            message.role = Some(only.role.as_str().to_owned());
            message.reservation = only.is_dynamic().then(|| only.to_old_proto());
        }
        _ => {}
    }
}
