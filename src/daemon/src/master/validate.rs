//! Checks that an operator call has the parts that its type needs (docs/mesos/operator-api.md).
//!
//! The core checks their content.

use protos::mesos::master::Call;
use protos::mesos::master::call::Type;

/// Checks an operator call, without the state of the master.
///
/// # Errors
/// The reason, as it follows `Failed to validate master::Call: `.
pub(super) fn operator_call(call: &Call) -> Result<(), String> {
    // An unknown number counts as a missing type.
    let kind = call.r#type.and_then(|number| Type::try_from(number).ok());
    let kind = kind.ok_or("Expecting 'type' to be present")?;
    let there = match kind {
        Type::GetMetrics => call.get_metrics.is_some(),
        Type::SetLoggingLevel => call.set_logging_level.is_some(),
        Type::ListFiles => call.list_files.is_some(),
        Type::ReadFile => call.read_file.is_some(),
        Type::UpdateWeights => call.update_weights.is_some(),
        Type::ReserveResources => call.reserve_resources.is_some(),
        Type::UnreserveResources => call.unreserve_resources.is_some(),
        Type::CreateVolumes => call.create_volumes.is_some(),
        Type::DestroyVolumes => call.destroy_volumes.is_some(),
        Type::GrowVolume => call.grow_volume.is_some(),
        Type::ShrinkVolume => call.shrink_volume.is_some(),
        Type::UpdateMaintenanceSchedule => call.update_maintenance_schedule.is_some(),
        Type::StartMaintenance => call.start_maintenance.is_some(),
        Type::StopMaintenance => call.stop_maintenance.is_some(),
        Type::DrainAgent => call.drain_agent.is_some(),
        Type::DeactivateAgent => call.deactivate_agent.is_some(),
        Type::ReactivateAgent => call.reactivate_agent.is_some(),
        Type::UpdateQuota => call.update_quota.is_some(),
        Type::SetQuota => call.set_quota.is_some(),
        Type::RemoveQuota => call.remove_quota.is_some(),
        Type::Teardown => call.teardown.is_some(),
        Type::MarkAgentGone => call.mark_agent_gone.is_some(),
        _ => true,
    };
    if !there {
        return Err(format!("Expecting '{}' to be present", kind.as_str_name().to_lowercase()));
    }
    let agent = match kind {
        Type::GrowVolume => call.grow_volume.as_ref().is_some_and(|body| body.slave_id.is_some()),
        Type::ShrinkVolume => call.shrink_volume.as_ref().is_some_and(|body| body.slave_id.is_some()),
        _ => true,
    };
    if !agent {
        let why = "Expecting 'agent_id' to be present; only agent default resources are supported right now";
        return Err(why.to_owned());
    }
    Ok(())
}
