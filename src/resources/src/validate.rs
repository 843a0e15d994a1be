//! The rules for incoming resource lists, in Mesos's words.
//!
//! It says whether a `mesos.Resource` message is well-formed by itself; whether it fits an offer or a task is the
//! master's business.

use protos::mesos;
use protos::mesos::resource::disk_info::source::Type as SourceType;
use protos::mesos::resource::reservation_info::Type as ReservationType;
use protos::mesos::value::Type;

use crate::{Role, RoleError};

/// The rule that a resource breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No name.
    #[error("Empty resource name")]
    EmptyName,
    /// A type that is not in the enum.
    #[error("Invalid resource type")]
    UnknownType,
    /// TEXT.
    #[error("Unsupported resource type")]
    UnsupportedType,
    /// Type SCALAR without a scalar, or with another value too.
    #[error("Invalid scalar resource")]
    Scalar,
    /// NaN, infinite, or too small to be told from 0 by a processor at full speed.
    #[error("Invalid scalar resource: value is not a normal number")]
    NotNormal,
    /// Below 0.
    #[error("Invalid scalar resource: value < 0")]
    Negative,
    /// Type RANGES without ranges, or with another value too.
    #[error("Invalid ranges resource")]
    Ranges,
    /// An inverted range.
    #[error("Invalid ranges resource: begin > end")]
    InvertedRange,
    /// Two ranges with a number in common.
    #[error("Invalid ranges resource: overlapping ranges")]
    OverlappingRanges,
    /// Type SET without a set, or with another value too.
    #[error("Invalid set resource")]
    Set,
    /// An item twice.
    #[error("Invalid set resource: duplicated elements")]
    DuplicatedItems,
    /// Disk information on something else.
    #[error("DiskInfo should not be set for {0} resource")]
    DiskInfo(String),
    /// A disk's source of type UNKNOWN.
    #[error("Unsupported 'DiskInfo.Source.Type' in '{0}'")]
    SourceType(String),
    /// A BLOCK or RAW source with a directory.
    #[error("Disk with {kind} source cannot have a '{field}'")]
    SourceRoot {
        /// BLOCK or RAW.
        kind: &'static str,
        /// `path` or `mount`.
        field: &'static str,
    },
    /// A role with an invalid name.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// `*` with a reservation.
    #[error("Invalid reservation: role \"*\" cannot be dynamically reserved")]
    StarReserved,
    /// A type in the older format.
    #[error("'Resource.ReservationInfo.type' must not be set for the 'Resource.reservation' field")]
    OldReservationType,
    /// A role in the older format.
    #[error("'Resource.ReservationInfo.role' must not be set for the 'Resource.reservation' field")]
    OldReservationRole,
    /// No type in the newer format.
    #[error("'Resource.ReservationInfo.type' must be set for the 'Resource.reservations' field")]
    ReservationType,
    /// No role in the newer format.
    #[error("'Resource.ReservationInfo.role' must be set for the 'Resource.reservations' field")]
    ReservationRole,
    /// A static reservation above another.
    #[error("A refined reservation cannot be STATIC")]
    StaticRefinement,
    /// A refinement to a role that is not below.
    #[error("Role '{role}' is not a refinement of '{of}'")]
    NotARefinement {
        /// The inner reservation's role.
        role: String,
        /// The outer one's.
        of: String,
    },
    /// Both formats, and they disagree.
    #[error("'Resource.role' and 'Resource.reservation' do not agree with 'Resource.reservations'")]
    MixedFormats,
    /// An allocation without a role.
    #[error("'Resource.AllocationInfo.role' must be set")]
    AllocationRole,
    /// Shared, but not a disk.
    #[error("Resource {0} cannot be shared")]
    Shared(String),
    /// Shared, but not persistent.
    #[error("Only persistent volumes can be shared")]
    SharedNotPersistent,
}

/// A resource that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Resource '{resource}' is invalid: {fault}")]
pub struct InvalidResource {
    /// The resource as text.
    pub resource: String,
    /// The rule.
    pub fault: Fault,
}

/// Checks a list of resources.
///
/// # Errors
/// The first resource that breaks a rule, and the rule.
pub fn validate(resources: &[mesos::Resource]) -> Result<(), InvalidResource> {
    resources.iter().try_for_each(|resource| validate_resource(resource).map_err(|fault| name_it(resource, fault)))
}

pub(crate) fn name_it(resource: &mesos::Resource, fault: Fault) -> InvalidResource {
    InvalidResource { resource: crate::from_proto::lenient(resource), fault }
}

/// Checks one resource.
///
/// # Errors
/// The rule that it breaks.
pub fn validate_resource(resource: &mesos::Resource) -> Result<(), Fault> {
    if resource.name.is_empty() {
        return Err(Fault::EmptyName);
    }
    check_value(resource)?;
    check_disk(resource)?;
    check_reservations(resource)?;
    if let Some(allocation) = &resource.allocation_info {
        Role::parse(allocation.role.as_deref().ok_or(Fault::AllocationRole)?)?;
    }
    check_shared(resource)
}

fn check_value(resource: &mesos::Resource) -> Result<(), Fault> {
    let present = (resource.scalar.is_some(), resource.ranges.is_some(), resource.set.is_some());
    match Type::try_from(resource.r#type).map_err(|_| Fault::UnknownType)? {
        Type::Scalar if present != (true, false, false) => Err(Fault::Scalar),
        Type::Scalar => resource.scalar.as_ref().map_or(Ok(()), |scalar| check_number(scalar.value)),
        Type::Ranges if present != (false, true, false) => Err(Fault::Ranges),
        Type::Ranges => resource.ranges.as_ref().map_or(Ok(()), check_ranges),
        Type::Set if present != (false, false, true) => Err(Fault::Set),
        Type::Set => resource.set.as_ref().map_or(Ok(()), check_set),
        Type::Text => Err(Fault::UnsupportedType),
    }
}

fn check_number(value: f64) -> Result<(), Fault> {
    if !(value.is_normal() || value == 0.0) {
        return Err(Fault::NotNormal);
    }
    if value < 0.0 { Err(Fault::Negative) } else { Ok(()) }
}

fn check_ranges(ranges: &mesos::value::Ranges) -> Result<(), Fault> {
    if ranges.range.iter().any(|r| r.begin > r.end) {
        return Err(Fault::InvertedRange);
    }
    let mut sorted: Vec<_> = ranges.range.iter().map(|r| (r.begin, r.end)).collect();
    sorted.sort_unstable();
    match sorted.windows(2).any(|pair| pair[1].0 <= pair[0].1) {
        true => Err(Fault::OverlappingRanges),
        false => Ok(()),
    }
}

fn check_set(set: &mesos::value::Set) -> Result<(), Fault> {
    let mut sorted: Vec<_> = set.item.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(Fault::DuplicatedItems),
        false => Ok(()),
    }
}

fn check_disk(resource: &mesos::Resource) -> Result<(), Fault> {
    let Some(disk) = &resource.disk else { return Ok(()) };
    if resource.name != "disk" {
        return Err(Fault::DiskInfo(resource.name.clone()));
    }
    let Some(source) = &disk.source else { return Ok(()) };
    let kind = match source.r#type() {
        SourceType::Path | SourceType::Mount => return Ok(()),
        SourceType::Block => "BLOCK",
        SourceType::Raw => "RAW",
        SourceType::Unknown => return Err(Fault::SourceType("UNKNOWN".to_owned())),
    };
    if source.path.is_some() {
        return Err(Fault::SourceRoot { kind, field: "path" });
    }
    if source.mount.is_some() {
        return Err(Fault::SourceRoot { kind, field: "mount" });
    }
    Ok(())
}

#[allow(deprecated)]
fn check_reservations(resource: &mesos::Resource) -> Result<(), Fault> {
    if let Some(role) = &resource.role {
        Role::parse(role)?;
    }
    if let Some(reservation) = &resource.reservation {
        if reservation.r#type.is_some() {
            return Err(Fault::OldReservationType);
        }
        if reservation.role.is_some() {
            return Err(Fault::OldReservationRole);
        }
        if resource.reservations.is_empty() && resource.role() == "*" {
            return Err(Fault::StarReserved);
        }
    }
    check_stack(&resource.reservations)?;
    if resource.reservations.is_empty() { Ok(()) } else { check_agreement(resource) }
}

fn check_stack(stack: &[mesos::resource::ReservationInfo]) -> Result<(), Fault> {
    let mut above: Option<Role> = None;
    for reservation in stack {
        let kind = reservation.r#type.and_then(|t| ReservationType::try_from(t).ok());
        let Some(kind @ (ReservationType::Static | ReservationType::Dynamic)) = kind else {
            return Err(Fault::ReservationType);
        };
        let role = Role::parse(reservation.role.as_deref().ok_or(Fault::ReservationRole)?)?;
        if role.is_star() {
            return Err(Fault::StarReserved);
        }
        if let Some(above) = above {
            if kind == ReservationType::Static {
                return Err(Fault::StaticRefinement);
            }
            if !role.is_strict_subrole_of(&above) {
                return Err(Fault::NotARefinement { role: role.to_string(), of: above.to_string() });
            }
        }
        above = Some(role);
    }
    Ok(())
}

/// If the older fields are there beside the newer (as in endpoints), they must say the same.
#[allow(deprecated)]
fn check_agreement(resource: &mesos::Resource) -> Result<(), Fault> {
    let Some(last) = resource.reservations.last() else { return Ok(()) };
    let refined = resource.reservations.len() > 1;
    let role_agrees = resource.role.as_ref().is_none_or(|role| Some(role) == last.role.as_ref());
    let reservation_agrees = resource.reservation.as_ref().is_none_or(|old| {
        let dynamic = last.r#type() == ReservationType::Dynamic;
        !refined && resource.role.is_some() && dynamic && old.principal == last.principal && old.labels == last.labels
    });
    if role_agrees && reservation_agrees { Ok(()) } else { Err(Fault::MixedFormats) }
}

fn check_shared(resource: &mesos::Resource) -> Result<(), Fault> {
    if resource.shared.is_none() {
        return Ok(());
    }
    if resource.name != "disk" {
        return Err(Fault::Shared(resource.name.clone()));
    }
    let persistent = resource.disk.as_ref().is_some_and(|disk| disk.persistence.is_some());
    if persistent { Ok(()) } else { Err(Fault::SharedNotPersistent) }
}
