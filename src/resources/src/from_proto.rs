//! Converts `mesos.Resource` messages, in the older and the newer reservation format, and in that of endpoints.

use protos::mesos;
use protos::mesos::resource::ReservationInfo;
use protos::mesos::resource::reservation_info::Type as ReservationType;
use protos::mesos::value::Type;

use crate::reservation::identity;
use crate::validate::{check_size, name_it, validate_resource};
use crate::{
    Amount, Fault, InvalidResource, ItemSet, ProviderId, Ranges, Reservation, ReservationKind, Resource, Resources,
    Role, RoleError, Value,
};

/// Validates and converts a list. Empty resources are dropped, equal ones are merged.
///
/// # Errors
/// Names the first resource that breaks a rule, and the rule.
pub fn from_proto(resources: &[mesos::Resource]) -> Result<Resources, InvalidResource> {
    check_size(resources)?;
    let mut all = Resources::new();
    let mut roles = Roles::default();
    for message in resources {
        all.add(take(message, &mut roles).map_err(|fault| name_it(message, fault))?);
    }
    Ok(all)
}

/// Validates and converts one resource. It may be empty.
///
/// # Errors
/// Returns the rule that it breaks.
pub fn resource_from_proto(message: &mesos::Resource) -> Result<Resource, Fault> {
    take(message, &mut Roles::default())
}

/// The role that was parsed last: most lists have only one, and all entries share its text.
#[derive(Default)]
struct Roles(Option<Role>);

impl Roles {
    fn get(&mut self, text: &str) -> Result<Role, RoleError> {
        if let Some(last) = self.0.as_ref().filter(|last| last.as_str() == text) {
            return Ok(last.clone());
        }
        let role = Role::parse(text)?;
        self.0 = Some(role.clone());
        Ok(role)
    }
}

fn take(message: &mesos::Resource, roles: &mut Roles) -> Result<Resource, Fault> {
    validate_resource(message)?;
    let resource = Resource::new(message.name.as_str(), value(message)?);
    let allocation = match &message.allocation_info {
        Some(info) => Some(roles.get(info.role())?),
        None => None,
    };
    Ok(resource
        .with_allocation(allocation)
        .with_reservations(&reservations(message, roles)?)
        .with_disk(message.disk.as_deref().cloned().map(Into::into))
        .with_provider(message.provider_id.as_ref().map(|id| ProviderId::new(&id.value)))
        .with_revocable(message.revocable.is_some())
        .with_copies(u32::from(message.shared.is_some())))
}

fn value(message: &mesos::Resource) -> Result<Value, Fault> {
    match message.r#type() {
        Type::Scalar => message.scalar.as_ref().map(|s| Value::Scalar(Amount::from_f64(s.value))).ok_or(Fault::Scalar),
        Type::Ranges => message.ranges.as_ref().map(|r| Value::Ranges(Ranges::from_proto(r))).ok_or(Fault::Ranges),
        Type::Set => message.set.as_ref().map(|s| Value::Set(ItemSet::new(&s.item))).ok_or(Fault::Set),
        Type::Text => Err(Fault::UnsupportedType),
    }
}

#[allow(deprecated)]
fn reservations(message: &mesos::Resource, roles: &mut Roles) -> Result<Vec<Reservation>, RoleError> {
    if !message.reservations.is_empty() {
        return message.reservations.iter().map(|info| newer(info, roles)).collect();
    }
    if message.role() == "*" {
        return Ok(Vec::new());
    }
    let role = roles.get(message.role())?;
    Ok(vec![match &message.reservation {
        None => Reservation::fixed(role),
        Some(info) => {
            let (principal, labels) = identity(info);
            Reservation::dynamic(role, principal, labels)
        }
    }])
}

fn newer(info: &ReservationInfo, roles: &mut Roles) -> Result<Reservation, RoleError> {
    let kind = match info.r#type() {
        ReservationType::Dynamic => ReservationKind::Dynamic,
        ReservationType::Static | ReservationType::Unknown => ReservationKind::Static,
    };
    let (principal, labels) = identity(info);
    Ok(Reservation { kind, role: roles.get(info.role())?, principal, labels })
}

/// Formats a resource that may be invalid: its name and value as far as they are known.
pub(crate) fn lenient(message: &mesos::Resource) -> String {
    if let Ok(resource) = resource_from_proto(message) {
        return resource.to_string();
    }
    let value = match value(message) {
        Ok(value) => value.to_string(),
        Err(_) => String::new(),
    };
    format!("{}:{value}", message.name)
}
