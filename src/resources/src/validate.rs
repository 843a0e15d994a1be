//! Rules for incoming lists of resources, with Mesos's messages.
//!
//! It checks whether a `mesos.Resource` message is well-formed; the master checks whether it fits an offer or a task.

use protos::mesos;
use protos::mesos::resource::ReservationInfo;
use protos::mesos::resource::disk_info::source::Type as SourceType;
use protos::mesos::resource::reservation_info::Type as ReservationType;
use protos::mesos::value::Type;

use crate::{Amount, Labels, Role, RoleError};

/// Maximum number of resources in one list: merging compares each with each.
pub const MAX_RESOURCES: usize = 4096;
/// Maximum number of ranges and set items in one list: all ports, every other one taken.
pub const MAX_MEMBERS: usize = 32_768;

/// The rule that a resource breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The resource has no name.
    #[error("Empty resource name")]
    EmptyName,
    /// The type is not in the enum.
    #[error("Invalid resource type")]
    UnknownType,
    /// The type is TEXT.
    #[error("Unsupported resource type")]
    UnsupportedType,
    /// The type is SCALAR, and there is no scalar, or another value too.
    #[error("Invalid scalar resource")]
    Scalar,
    /// The number is NaN, infinite, or subnormal.
    #[error("Invalid scalar resource: value is not a normal number")]
    NotNormal,
    /// The number is below 0.
    #[error("Invalid scalar resource: value < 0")]
    Negative,
    /// The number is above 0, and rounds to 0 thousandths.
    #[error("Invalid scalar resource: value rounds to 0")]
    RoundsToNothing,
    /// The type is RANGES, and there are no ranges, or another value too.
    #[error("Invalid ranges resource")]
    Ranges,
    /// A range is inverted.
    #[error("Invalid ranges resource: begin > end")]
    InvertedRange,
    /// Two ranges have a number in common.
    #[error("Invalid ranges resource: overlapping ranges")]
    OverlappingRanges,
    /// The type is SET, and there is no set, or another value too.
    #[error("Invalid set resource")]
    Set,
    /// An item occurs twice in a set.
    #[error("Invalid set resource: duplicated elements")]
    DuplicatedItems,
    /// A resource other than disk has disk information.
    #[error("DiskInfo should not be set for {0} resource")]
    DiskInfo(String),
    /// The source of a disk has the type UNKNOWN.
    #[error("Unsupported 'DiskInfo.Source.Type' in '{0}'")]
    SourceType(String),
    /// A BLOCK or RAW source has a directory.
    #[error("{field} should not be set for {kind} disk source")]
    SourceRoot {
        /// Type of the source: BLOCK or RAW.
        kind: &'static str,
        /// Field with the directory: `Path` or `Mount`.
        field: &'static str,
    },
    /// The name of a role is invalid.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The role `*` has a reservation in the older format.
    #[error("Invalid reservation: role \"*\" cannot be dynamically reserved")]
    StarDynamicallyReserved,
    /// The role `*` has a reservation in the newer format.
    #[error("Invalid reservation: role \"*\" cannot be reserved")]
    StarReserved,
    /// The reservation has a type in the older format.
    #[error("'Resource.ReservationInfo.type' must not be set for the 'Resource.reservation' field")]
    OldReservationType,
    /// The reservation has a role in the older format.
    #[error("'Resource.ReservationInfo.role' must not be set for the 'Resource.reservation' field")]
    OldReservationRole,
    /// The reservation has no type in the newer format.
    #[error("Invalid reservation: 'Resource.ReservationInfo.type' field must be set.")]
    ReservationType,
    /// The type of the reservation is neither STATIC nor DYNAMIC.
    #[error("Unsupported 'Resource.ReservationInfo.Type'")]
    UnsupportedReservationType,
    /// The reservation has no role in the newer format.
    #[error("Invalid reservation: 'Resource.ReservationInfo.role' field must be set.")]
    ReservationRole,
    /// A static reservation refines another.
    #[error("Invalid refined reservation: A refined reservation cannot be STATIC")]
    StaticRefinement,
    /// A reservation refines one whose role is not an ancestor.
    #[error("Invalid refined reservation: role '{role}' is not a refinement of '{of}'")]
    NotARefinement {
        /// Role of the inner reservation.
        role: String,
        /// Role of the outer reservation.
        of: String,
    },
    /// Both formats are set, with different roles.
    #[error(
        "Invalid resource format: 'Resource.role' field with '{old}' does not match the role '{new}' in \
         'Resource.reservations'"
    )]
    RolesDiffer {
        /// Role in `Resource.role`.
        old: String,
        /// Role in `Resource.reservations`.
        new: String,
    },
    /// Both formats are set, dynamic in the older and static in the newer.
    #[error(
        "Invalid resource format: 'Resource.reservation' must not be set if the single reservation in \
         'Resource.reservations' is STATIC"
    )]
    OldReservationOfStatic,
    /// Only one field of the older format is set besides the newer format.
    #[error(
        "Invalid resource format: 'Resource.role' and 'Resource.reservation' must either be both set or both not set if \
         the single reservation in 'Resource.reservations' is DYNAMIC"
    )]
    HalfOldFormat,
    /// Both formats are set, with different principals.
    #[error(
        "Invalid resource format: 'Resource.reservation.principal' field with '{old}' does not match the principal \
         '{new}' in 'Resource.reservations'"
    )]
    PrincipalsDiffer {
        /// Principal in `Resource.reservation`.
        old: String,
        /// Principal in `Resource.reservations`.
        new: String,
    },
    /// Both formats are set, with different labels.
    #[error(
        "Invalid resource format: 'Resource.reservation.labels' field with '{old}' does not match the labels '{new}' in \
         'Resource.reservations'"
    )]
    LabelsDiffer {
        /// Labels in `Resource.reservation`.
        old: String,
        /// Labels in `Resource.reservations`.
        new: String,
    },
    /// The older format is set besides refined reservations.
    #[error(
        "Invalid resource format: '{field}' must not be set if there is more than one reservation in \
         'Resource.reservations'"
    )]
    OldFormatOfRefined {
        /// Field of the older format: `Resource.role` or `Resource.reservation`.
        field: &'static str,
    },
    /// An allocation has no role.
    #[error("'Resource.AllocationInfo.role' must be set")]
    AllocationRole,
    /// A resource other than disk is shared.
    #[error("Resource {0} cannot be shared")]
    Shared(String),
    /// A shared disk is not a persistent volume.
    #[error("Only persistent volumes can be shared")]
    SharedNotPersistent,
    /// The list has too many resources; this is the first beyond the limit.
    #[error("More than {MAX_RESOURCES} resources in one list")]
    TooMany,
    /// The list has too many members of ranges and sets; this is the first resource beyond the limit.
    #[error("More than {MAX_MEMBERS} ranges and set items in one list")]
    TooManyMembers,
}

/// A resource that breaks a rule, and the rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Resource '{resource}' is invalid: {fault}")]
pub struct InvalidResource {
    /// Text of the resource.
    pub resource: String,
    /// Rule that the resource breaks.
    pub fault: Fault,
}

/// Checks a list of resources.
///
/// # Errors
/// Names the first resource that breaks a rule, and the rule.
pub fn validate(resources: &[mesos::Resource]) -> Result<(), InvalidResource> {
    check_size(resources)?;
    resources.iter().try_for_each(|resource| validate_resource(resource).map_err(|fault| name_it(resource, fault)))
}

/// Checks the size limits of a list.
pub(crate) fn check_size(resources: &[mesos::Resource]) -> Result<(), InvalidResource> {
    let mut members = 0_usize;
    for (at, resource) in resources.iter().enumerate() {
        members += resource.ranges.as_ref().map_or(0, |ranges| ranges.range.len());
        members += resource.set.as_ref().map_or(0, |set| set.item.len());
        let fault = match (at >= MAX_RESOURCES, members > MAX_MEMBERS) {
            (false, false) => continue,
            (true, _) => Fault::TooMany,
            (false, true) => Fault::TooManyMembers,
        };
        // The resource's name only, since its text may be as long as the list.
        return Err(InvalidResource { resource: resource.name.to_string(), fault });
    }
    Ok(())
}

pub(crate) fn name_it(resource: &mesos::Resource, fault: Fault) -> InvalidResource {
    InvalidResource { resource: crate::from_proto::lenient(resource), fault }
}

/// Checks one resource.
///
/// # Errors
/// Returns the rule that it breaks.
pub fn validate_resource(resource: &mesos::Resource) -> Result<(), Fault> {
    if resource.name.is_empty() {
        return Err(Fault::EmptyName);
    }
    check_value(resource)?;
    check_disk(resource)?;
    check_reservations(resource)?;
    if let Some(allocation) = &resource.allocation_info {
        Role::check(allocation.role.as_deref().ok_or(Fault::AllocationRole)?)?;
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

/// Checks that a number is finite, and neither subnormal nor negative.
pub(crate) fn check_number(value: f64) -> Result<(), Fault> {
    if !(value.is_normal() || value == 0.0) {
        return Err(Fault::NotNormal);
    }
    if value < 0.0 { Err(Fault::Negative) } else { Ok(()) }
}

/// Checks a number that a person writes: it must not round to 0 unless it is 0. In messages such amounts are residues
/// of floating-point differences, and count as 0.
pub(crate) fn check_written(value: f64) -> Result<(), Fault> {
    check_number(value)?;
    if rounds_to_nothing(value) { Err(Fault::RoundsToNothing) } else { Ok(()) }
}

/// Returns whether a number is above 0 and rounds to 0 thousandths.
#[must_use]
pub fn rounds_to_nothing(value: f64) -> bool {
    value > 0.0 && Amount::from_f64(value).is_zero()
}

fn check_ranges(ranges: &mesos::value::Ranges) -> Result<(), Fault> {
    if ranges.range.iter().any(|r| r.begin > r.end) {
        return Err(Fault::InvertedRange);
    }
    // The usual case: the ranges are in order, as tepui and Mesos write them.
    if ranges.range.windows(2).all(|pair| pair[0].end < pair[1].begin) {
        return Ok(());
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
        return Err(Fault::DiskInfo(resource.name.to_string()));
    }
    let Some(source) = &disk.source else { return Ok(()) };
    let kind = match source.r#type() {
        SourceType::Path | SourceType::Mount => return Ok(()),
        SourceType::Block => "BLOCK",
        SourceType::Raw => "RAW",
        SourceType::Unknown => return Err(Fault::SourceType("UNKNOWN".to_owned())),
    };
    if source.mount.is_some() {
        return Err(Fault::SourceRoot { kind, field: "Mount" });
    }
    if source.path.is_some() {
        return Err(Fault::SourceRoot { kind, field: "Path" });
    }
    Ok(())
}

fn check_reservations(resource: &mesos::Resource) -> Result<(), Fault> {
    match resource.reservations.as_slice() {
        [] => check_old_format(resource),
        [only] => {
            check_stack(&resource.reservations)?;
            check_agreement(resource, only)
        }
        _ => {
            check_stack(&resource.reservations)?;
            check_no_old_format(resource)
        }
    }
}

#[allow(deprecated)]
fn check_old_format(resource: &mesos::Resource) -> Result<(), Fault> {
    Role::check(resource.role())?;
    match &resource.reservation {
        None => Ok(()),
        Some(info) if info.r#type.is_some() => Err(Fault::OldReservationType),
        Some(info) if info.role.is_some() => Err(Fault::OldReservationRole),
        Some(_) if resource.role() == "*" => Err(Fault::StarDynamicallyReserved),
        Some(_) => Ok(()),
    }
}

fn check_stack(stack: &[ReservationInfo]) -> Result<(), Fault> {
    let mut above: Option<Role> = None;
    for reservation in stack {
        let kind = reservation.r#type.ok_or(Fault::ReservationType)?;
        let role = Role::parse(reservation.role.as_deref().ok_or(Fault::ReservationRole)?)?;
        if role.is_star() {
            return Err(Fault::StarReserved);
        }
        let kind = ReservationType::try_from(kind).unwrap_or(ReservationType::Unknown);
        if kind == ReservationType::Unknown {
            return Err(Fault::UnsupportedReservationType);
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

/// Checks that the older fields agree with a single newer one if both are set (as in endpoints).
#[allow(deprecated)]
fn check_agreement(resource: &mesos::Resource, new: &ReservationInfo) -> Result<(), Fault> {
    if let Some(role) = &resource.role
        && role != new.role()
    {
        return Err(Fault::RolesDiffer { old: role.to_string(), new: new.role().to_owned() });
    }
    if new.r#type() == ReservationType::Static {
        return if resource.reservation.is_some() { Err(Fault::OldReservationOfStatic) } else { Ok(()) };
    }
    if resource.role.is_some() != resource.reservation.is_some() {
        return Err(Fault::HalfOldFormat);
    }
    let Some(old) = &resource.reservation else { return Ok(()) };
    if old.principal() != new.principal() {
        return Err(Fault::PrincipalsDiffer { old: old.principal().to_owned(), new: new.principal().to_owned() });
    }
    let labels = |info: &ReservationInfo| Labels::from(info.labels.clone().unwrap_or_default());
    if labels(old) != labels(new) {
        return Err(Fault::LabelsDiffer { old: labels(old).to_string(), new: labels(new).to_string() });
    }
    Ok(())
}

#[allow(deprecated)]
fn check_no_old_format(resource: &mesos::Resource) -> Result<(), Fault> {
    if resource.role.is_some() {
        return Err(Fault::OldFormatOfRefined { field: "Resource.role" });
    }
    if resource.reservation.is_some() {
        return Err(Fault::OldFormatOfRefined { field: "Resource.reservation" });
    }
    Ok(())
}

fn check_shared(resource: &mesos::Resource) -> Result<(), Fault> {
    if resource.shared.is_none() {
        return Ok(());
    }
    if resource.name != "disk" {
        return Err(Fault::Shared(resource.name.to_string()));
    }
    let persistent = resource.disk.as_ref().is_some_and(|disk| disk.persistence.is_some());
    if persistent { Ok(()) } else { Err(Fault::SharedNotPersistent) }
}
