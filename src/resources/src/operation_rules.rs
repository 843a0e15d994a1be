//! Checks whether offer operations are allowed, as far as the resources, the agent and the requester decide it.
//!
//! The master checks authorization, and whether the resources are available. The effect is in `operation.rs`.

use protos::mesos;
use protos::mesos::offer::operation::{
    Create, CreateDisk, Destroy, DestroyDisk, GrowVolume, Reserve, ShrinkVolume, Unreserve,
};
use protos::mesos::resource::disk_info::source::Type as SourceType;

use crate::{
    Amount, Disk, OperationFault, Resource, Resources, Role, SourceKind, VolumeFault, resource_from_proto,
    validate_list,
};

/// The capabilities of an agent that operations depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentAbilities {
    /// Whether the agent has the capability HIERARCHICAL_ROLE.
    pub hierarchical_role: bool,
    /// Whether the agent has the capability RESERVATION_REFINEMENT.
    pub reservation_refinement: bool,
    /// Whether the agent has the capability RESIZE_VOLUME.
    pub resize_volume: bool,
}

impl AgentAbilities {
    /// All capabilities, as agents since 1.5 have.
    pub const ALL: Self = Self { hierarchical_role: true, reservation_refinement: true, resize_volume: true };
}

/// The requester of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Requester<'a> {
    /// Principal of the framework or the operator.
    pub principal: Option<&'a str>,
    /// The framework; `None` for an operator.
    pub framework: Option<RequestingFramework<'a>>,
}

/// Properties of a framework that requests an operation.
#[derive(Clone, Copy, Debug)]
pub struct RequestingFramework<'a> {
    /// Id of the framework.
    pub id: &'a str,
    /// Roles of the framework.
    pub roles: &'a [Role],
    /// Whether the framework has the capability SHARED_RESOURCES.
    pub shared_resources: bool,
}

type Checked = Result<(), OperationFault>;

/// Checks RESERVE.
///
/// # Errors
/// Returns the first rule that it breaks.
pub fn check_reserve(reserve: &Reserve, requester: Requester<'_>, agent: AgentAbilities) -> Checked {
    let target = take_list(&reserve.resources)?;
    if !reserve.source.is_empty() {
        if requester.framework.is_some() {
            return Err(OperationFault::SourceByFramework);
        }
        check_source(&validate_list(&reserve.source).map_err(OperationFault::Source)?, &target)?;
    }
    for resource in &target {
        let Some(reservation) = resource.reservation().filter(|reservation| reservation.is_dynamic()) else {
            return Err(OperationFault::NotDynamic(resource.clone()));
        };
        check_agent(resource, agent, "Resource", "reserved")?;
        check_reserving_principal(reservation.principal.as_deref(), requester.principal)?;
        match requester.framework {
            Some(framework) => check_reserving_role(resource, &reservation.role, framework.roles)?,
            None if resource.allocation().is_some() => return Err(OperationFault::ReserveAllocated),
            None => {}
        }
    }
    check_one_allocation(&target, requester, "reservation")
}

/// Checks UNRESERVE.
///
/// # Errors
/// Returns the first rule that it breaks.
pub fn check_unreserve(unreserve: &Unreserve) -> Checked {
    for resource in &take_list(&unreserve.resources)? {
        if !resource.is_dynamically_reserved() {
            return Err(OperationFault::NotDynamic(resource.clone()));
        }
        if resource.is_persistent_volume() {
            return Err(OperationFault::UnreserveVolume(resource.clone()));
        }
    }
    Ok(())
}

/// Checks CREATE. `checkpointed` has the agent's reservations and volumes.
///
/// # Errors
/// Returns the first rule that it breaks.
pub fn check_create(
    create: &Create,
    checkpointed: &Resources,
    requester: Requester<'_>,
    agent: AgentAbilities,
) -> Checked {
    let volumes = take_list(&create.volumes)?;
    let size = |volume: &mesos::Resource| volume.scalar.map_or(Amount::ZERO, |scalar| Amount::from_f64(scalar.value));
    if create.volumes.iter().any(|volume| size(volume).is_zero()) {
        return Err(OperationFault::EmptyVolume);
    }
    volumes.iter().try_for_each(check_volume).map_err(OperationFault::NotAVolume)?;
    (checkpointed.unallocated() + &volumes.unallocated()).check_unique_persistence_ids()?;
    for volume in &volumes {
        if let Some(framework) = requester.framework.filter(|f| volume.is_shared() && !f.shared_resources) {
            let (volume, framework) = (Box::new(volume.clone()), framework.id.to_owned());
            return Err(OperationFault::CannotShare { volume, framework });
        }
        check_agent(volume, agent, "Volume", "created")?;
        check_creating_principal(volume.disk().and_then(Disk::persistence_principal), requester.principal)?;
    }
    check_one_allocation(&volumes, requester, "volume")
}

/// Checks DESTROY. `checkpointed` has the agent's reservations and volumes, `used` the resources of each framework's
/// tasks and executors on the agent, including those that are about to start.
///
/// # Errors
/// Returns the first rule that it breaks.
pub fn check_destroy<'a>(
    destroy: &Destroy,
    checkpointed: &Resources,
    used: impl IntoIterator<Item = &'a Resources>,
) -> Checked {
    let volumes = take_list(&destroy.volumes)?.unallocated();
    volumes.iter().try_for_each(check_volume).map_err(OperationFault::NotAVolume)?;
    let checkpointed = checkpointed.unallocated();
    if volumes.iter().any(|v| v.provider().is_none() && !checkpointed.contains_resource(v)) {
        return Err(OperationFault::NoSuchVolume);
    }
    for resources in used {
        let resources = resources.unallocated();
        if volumes.iter().any(|volume| resources.contains_resource(volume)) {
            return Err(OperationFault::InUse);
        }
    }
    Ok(())
}

/// Checks GROW_VOLUME.
///
/// # Errors
/// Returns the first rule that it breaks.
pub fn check_grow(grow: &GrowVolume, agent: AgentAbilities) -> Checked {
    let volume = take_field(&grow.volume, "GrowVolume.volume")?;
    let addition = take_field(&grow.addition, "GrowVolume.addition")?;
    if !addition.amount().is_some_and(Amount::is_positive) {
        return Err(OperationFault::GrowByNothing);
    }
    // With an empty volume the addition alone would be taken from the offer, and become a volume that no CREATE has
    // made.
    if !volume.amount().is_some_and(Amount::is_positive) {
        return Err(OperationFault::GrowNothing);
    }
    if volume.provider().is_some() {
        return Err(OperationFault::ResizeOfProvider("Growing"));
    }
    check_volume(&volume).map_err(|fault| OperationFault::ResizeVolume { field: "GrowVolume.volume", fault })?;
    if volume.is_shared() {
        return Err(OperationFault::ResizeShared("Growing"));
    }
    if !volume.without_volume().merges_with(&addition) {
        return Err(OperationFault::GrowByOther);
    }
    if agent.resize_volume { Ok(()) } else { Err(OperationFault::NoResize { volume: Box::new(volume), done: "grown" }) }
}

/// Checks SHRINK_VOLUME.
///
/// # Errors
/// Returns the first rule that it breaks.
pub fn check_shrink(shrink: &ShrinkVolume, agent: AgentAbilities) -> Checked {
    let volume = take_field(&shrink.volume, "ShrinkVolume.volume")?;
    if let Err(fault) = crate::validate::check_number(shrink.subtract.value)
        && fault != crate::Fault::Negative
    {
        return Err(OperationFault::Field { field: "ShrinkVolume.subtract", fault });
    }
    let less = Amount::from_f64(shrink.subtract.value);
    if !less.is_positive() {
        return Err(OperationFault::ShrinkByNothing);
    }
    if volume.amount().unwrap_or_default() <= less {
        return Err(OperationFault::ShrinkToNothing);
    }
    if volume.provider().is_some() {
        return Err(OperationFault::ResizeOfProvider("Shrinking"));
    }
    if volume.disk().and_then(Disk::source) == Some(SourceKind::Mount) {
        return Err(OperationFault::ShrinkMount);
    }
    check_volume(&volume).map_err(|fault| OperationFault::ResizeVolume { field: "ShrinkVolume.volume", fault })?;
    if volume.is_shared() {
        return Err(OperationFault::ResizeShared("Shrinking"));
    }
    if agent.resize_volume {
        Ok(())
    } else {
        Err(OperationFault::NoResize { volume: Box::new(volume), done: "shrunk" })
    }
}

/// Checks CREATE_DISK.
///
/// # Errors
/// Returns the first rule that it breaks.
pub fn check_create_disk(create: &CreateDisk) -> Checked {
    let source = take_source(&create.source)?;
    if source.disk().and_then(Disk::source) != Some(SourceKind::Raw) {
        return Err(OperationFault::NotRaw);
    }
    if !matches!(create.target_type(), SourceType::Mount | SourceType::Block) {
        return Err(OperationFault::TargetType);
    }
    match (source.disk().and_then(Disk::profile), &create.target_profile) {
        (Some(_), Some(_)) => Err(OperationFault::TwoProfiles),
        (None, None) => Err(OperationFault::NoProfile),
        _ => Ok(()),
    }
}

/// Checks DESTROY_DISK.
///
/// # Errors
/// Returns the first rule that it breaks.
pub fn check_destroy_disk(destroy: &DestroyDisk) -> Checked {
    let source = take_source(&destroy.source)?;
    if !matches!(source.disk().and_then(Disk::source), Some(SourceKind::Mount | SourceKind::Block | SourceKind::Raw)) {
        return Err(OperationFault::NotADisk);
    }
    if source.disk().and_then(Disk::source_id).is_none() {
        return Err(OperationFault::NoCsiVolume);
    }
    if source.is_persistent_volume() { Err(OperationFault::DestroyDiskOfVolume(source)) } else { Ok(()) }
}

fn take_list(messages: &[mesos::Resource]) -> Result<Resources, OperationFault> {
    let resources = validate_list(messages).map_err(OperationFault::Resources)?;
    if resources.is_empty() {
        return Err(OperationFault::Nothing);
    }
    resources.check_single_provider()?;
    Ok(resources)
}

fn take_field(message: &mesos::Resource, field: &'static str) -> Result<Resource, OperationFault> {
    resource_from_proto(message).map_err(|fault| OperationFault::Field { field, fault })
}

fn take_source(message: &mesos::Resource) -> Result<Resource, OperationFault> {
    let list = validate_list(std::slice::from_ref(message)).map_err(OperationFault::Resource)?;
    let source = list.into_iter().next().ok_or(OperationFault::Nothing)?;
    if source.provider().is_none() { Err(OperationFault::NotOfProvider) } else { Ok(source) }
}

fn check_source(source: &Resources, target: &Resources) -> Checked {
    for (resources, what) in [(source, "source"), (target, "resources")] {
        if resources.iter().any(|r| Some(r.reservations()) != resources.iter().next().map(Resource::reservations)) {
            return Err(OperationFault::MixedReservations(what));
        }
    }
    let (from, to) = (source.to_unreserved(), target.to_unreserved());
    if from == to { Ok(()) } else { Err(OperationFault::Quantities { from, to }) }
}

fn check_agent(resource: &Resource, agent: AgentAbilities, what: &'static str, done: &'static str) -> Checked {
    if let Some(role) = resource.reservation_role().filter(|r| !agent.hierarchical_role && r.depth() > 1) {
        let (resource, role) = (Box::new(resource.clone()), role.clone());
        return Err(OperationFault::NoHierarchy { what, resource, role, done });
    }
    if !agent.reservation_refinement && resource.has_refined_reservations() {
        return Err(OperationFault::NoRefinement { what, resource: Box::new(resource.clone()), done });
    }
    Ok(())
}

fn check_reserving_principal(given: Option<&str>, principal: Option<&str>) -> Checked {
    match (principal, given) {
        (Some(principal), None) => Err(OperationFault::ReserveWithoutPrincipal(principal.to_owned())),
        (Some(principal), Some(given)) if principal != given => {
            Err(OperationFault::ReservePrincipal { principal: principal.to_owned(), given: given.to_owned() })
        }
        _ => Ok(()),
    }
}

fn check_creating_principal(given: Option<&str>, principal: Option<&str>) -> Checked {
    match (principal, given) {
        (Some(principal), None) => Err(OperationFault::CreateWithoutPrincipal(principal.to_owned())),
        (Some(principal), Some(given)) if principal != given => {
            Err(OperationFault::CreatePrincipal { principal: principal.to_owned(), given: given.to_owned() })
        }
        _ => Ok(()),
    }
}

fn check_reserving_role(resource: &Resource, role: &Role, roles: &[Role]) -> Checked {
    let Some(allocated) = resource.allocation() else {
        return Err(OperationFault::ReserveUnallocated(resource.clone()));
    };
    if allocated != role {
        return Err(OperationFault::ReserveForOther { role: role.clone(), allocated: allocated.clone() });
    }
    if roles.contains(allocated) {
        return Ok(());
    }
    let roles = roles.iter().map(Role::as_str).collect::<Vec<_>>().join(", ");
    Err(OperationFault::ReserveForeignRole { role: allocated.clone(), roles: format!("{{ {roles} }}") })
}

fn check_one_allocation(resources: &Resources, requester: Requester<'_>, what: &'static str) -> Checked {
    if requester.framework.is_none() {
        return Ok(());
    }
    match resources.single_allocation_role() {
        Ok(_) => Ok(()),
        Err(why) => Err(OperationFault::Allocation { what, why }),
    }
}

fn check_volume(resource: &Resource) -> Result<(), VolumeFault> {
    let Some(disk) = resource.disk() else {
        return Err(VolumeFault::NoDisk(Box::new(resource.clone())));
    };
    if disk.persistence_id().is_none() {
        return Err(VolumeFault::NoPersistence);
    }
    let volume = disk.volume().ok_or(VolumeFault::NoVolume)?;
    if volume.mode() == mesos::volume::Mode::Ro { Err(VolumeFault::ReadOnly) } else { Ok(()) }
}
