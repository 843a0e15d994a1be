//! Rules of each kind of operation (SCH-79, RES-31 to RES-44).
//!
//! It does not check whether the resources exist.

use protos::mesos::Resource;
use protos::mesos::offer::{Operation, operation::Type};
use resources::{AgentAbilities, Requester};

use super::provider_of;
use crate::state::Agent;

/// Checks that an operation's resources are well-formed.
///
/// # Errors
/// The first invalid one.
pub(crate) fn well_formed(operation: &Operation) -> Result<(), String> {
    let mut lists: Vec<&[Resource]> = Vec::new();
    if let Some(body) = &operation.reserve {
        lists.extend([body.resources.as_slice(), body.source.as_slice()]);
    }
    lists.extend(operation.unreserve.iter().map(|body| body.resources.as_slice()));
    lists.extend(operation.create.iter().map(|body| body.volumes.as_slice()));
    lists.extend(operation.destroy.iter().map(|body| body.volumes.as_slice()));
    if let Some(body) = &operation.grow_volume {
        lists.extend([std::slice::from_ref(&body.volume), std::slice::from_ref(&body.addition)]);
    }
    lists.extend(operation.shrink_volume.iter().map(|body| std::slice::from_ref(&body.volume)));
    lists.into_iter().try_for_each(resources::validate).map_err(|why| why.to_string())
}

/// Checks an operation by the rules of its kind.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn check(operation: &Operation, requester: Requester<'_>, agent: &Agent) -> Result<(), String> {
    if let Some(provider) = provider_of(operation)
        && !agent.providers.contains_key(provider)
    {
        return Err(format!("Resource provider '{provider}' is unknown"));
    }
    let abilities = AgentAbilities {
        hierarchical_role: agent.capabilities.hierarchical_role,
        reservation_refinement: agent.capabilities.reservation_refinement,
        resize_volume: agent.capabilities.resize_volume,
    };
    let checkpointed = &agent.checkpointed;
    let result = match operation.r#type() {
        Type::Reserve => {
            let body = operation.reserve.as_ref().ok_or("Expecting 'reserve' to be present")?;
            resources::check_reserve(body, requester, abilities)
        }
        Type::Unreserve => {
            resources::check_unreserve(operation.unreserve.as_ref().ok_or("Expecting 'unreserve' to be present")?)
        }
        Type::Create => {
            let body = operation.create.as_ref().ok_or("Expecting 'create' to be present")?;
            resources::check_create(body, checkpointed, requester, abilities)
        }
        Type::Destroy => {
            let body = operation.destroy.as_ref().ok_or("Expecting 'destroy' to be present")?;
            resources::check_destroy(body, checkpointed, [&agent.used.unallocated()])
        }
        Type::GrowVolume => {
            let body = operation.grow_volume.as_ref().ok_or("Expecting 'grow_volume' to be present")?;
            resources::check_grow(body, abilities)
        }
        Type::ShrinkVolume => {
            let body = operation.shrink_volume.as_ref().ok_or("Expecting 'shrink_volume' to be present")?;
            resources::check_shrink(body, abilities)
        }
        Type::CreateDisk | Type::DestroyDisk => return Err("Operation not supported".to_owned()),
        Type::Launch | Type::LaunchGroup | Type::Unknown => return Err("Unknown operation".to_owned()),
    };
    result.map_err(|why| why.to_string())
}
