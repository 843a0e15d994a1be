//! Which calls of the master's APIs ask for a change, and for which objects.
//!
//! Each match is exhaustive: a new call needs a decision. Calls that read, acknowledge, or only ask for more or fewer
//! offers change nothing that outlives them.

use std::borrow::Cow;

use protos::mesos::{self, master, scheduler};

use super::entry::Target;

/// A change that a call or a message asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestedChange {
    pub(crate) call: Cow<'static, str>,
    pub(crate) target: Target,
}

impl RequestedChange {
    pub(crate) fn new(call: &'static str, target: Target) -> RequestedChange {
        RequestedChange { call: Cow::Borrowed(call), target }
    }
}

/// Returns the change that an operator's call asks a master for; `None` if it reads.
#[allow(deprecated, reason = "SET_QUOTA and REMOVE_QUOTA are calls still")]
pub(crate) fn master_call(call: &master::Call) -> Option<RequestedChange> {
    use master::call::Type;
    let kind = call.r#type();
    let none = Target::default;
    let target = match kind {
        Type::Unknown
        | Type::GetHealth
        | Type::GetFlags
        | Type::GetVersion
        | Type::GetMetrics
        | Type::GetLoggingLevel
        | Type::ListFiles
        | Type::ReadFile
        | Type::GetState
        | Type::GetAgents
        | Type::GetFrameworks
        | Type::GetExecutors
        | Type::GetOperations
        | Type::GetTasks
        | Type::GetRoles
        | Type::GetWeights
        | Type::GetMaster
        | Type::Subscribe
        | Type::GetMaintenanceStatus
        | Type::GetMaintenanceSchedule
        | Type::GetQuota => return None,
        Type::SetLoggingLevel => {
            call.set_logging_level.as_ref().map_or_else(none, |set| none().with("level", &set.level.to_string()))
        }
        Type::UpdateWeights => {
            let infos = call.update_weights.iter().flat_map(|update| &update.weight_infos);
            none().with_all("role", infos.filter_map(|info| info.role.as_deref()))
        }
        Type::ReserveResources => {
            call.reserve_resources.as_ref().map_or_else(none, |body| on_agent(&body.slave_id, &body.resources))
        }
        Type::UnreserveResources => {
            call.unreserve_resources.as_ref().map_or_else(none, |body| on_agent(&body.slave_id, &body.resources))
        }
        Type::CreateVolumes => {
            call.create_volumes.as_ref().map_or_else(none, |body| on_agent(&body.slave_id, &body.volumes))
        }
        Type::DestroyVolumes => {
            call.destroy_volumes.as_ref().map_or_else(none, |body| on_agent(&body.slave_id, &body.volumes))
        }
        Type::GrowVolume => call.grow_volume.as_ref().map_or_else(none, |body| {
            on_agent(&body.slave_id.clone().unwrap_or_default(), std::slice::from_ref(&body.volume))
        }),
        Type::ShrinkVolume => call.shrink_volume.as_ref().map_or_else(none, |body| {
            on_agent(&body.slave_id.clone().unwrap_or_default(), std::slice::from_ref(&body.volume))
        }),
        Type::UpdateMaintenanceSchedule => {
            let windows = call.update_maintenance_schedule.iter().flat_map(|update| &update.schedule.windows);
            machines(windows.flat_map(|window| &window.machine_ids))
        }
        Type::StartMaintenance => machines(call.start_maintenance.iter().flat_map(|body| &body.machines)),
        Type::StopMaintenance => machines(call.stop_maintenance.iter().flat_map(|body| &body.machines)),
        Type::DrainAgent => call.drain_agent.as_ref().map_or_else(none, |body| agent(&body.slave_id)),
        Type::DeactivateAgent => call.deactivate_agent.as_ref().map_or_else(none, |body| agent(&body.slave_id)),
        Type::ReactivateAgent => call.reactivate_agent.as_ref().map_or_else(none, |body| agent(&body.slave_id)),
        Type::MarkAgentGone => call.mark_agent_gone.as_ref().map_or_else(none, |body| agent(&body.slave_id)),
        Type::UpdateQuota => {
            let configs = call.update_quota.iter().flat_map(|update| &update.quota_configs);
            none().with_all("role", configs.map(|config| &*config.role))
        }
        Type::SetQuota => {
            let role = call.set_quota.as_ref().and_then(|set| set.quota_request.role.as_deref());
            none().with_all("role", role)
        }
        Type::RemoveQuota => none().with_all("role", call.remove_quota.iter().map(|remove| &*remove.role)),
        Type::Teardown => {
            none().with_all("framework", call.teardown.iter().map(|teardown| &*teardown.framework_id.value))
        }
    };
    Some(RequestedChange::new(kind.as_str_name(), target))
}

/// Returns the change that a framework's call asks for; `None` if it changes nothing.
pub(crate) fn scheduler_call(call: &scheduler::Call) -> Option<RequestedChange> {
    use scheduler::call::Type;
    let kind = call.r#type();
    let own = Target::default().with_all("framework", call.framework_id.iter().map(|id| &*id.value));
    let target = match kind {
        Type::Unknown
        | Type::Decline
        | Type::AcceptInverseOffers
        | Type::DeclineInverseOffers
        | Type::Revive
        | Type::Acknowledge
        | Type::AcknowledgeOperationStatus
        | Type::Reconcile
        | Type::ReconcileOperations
        | Type::Message
        | Type::Request
        | Type::Suppress => return None,
        Type::Subscribe => {
            call.subscribe.as_ref().map_or_else(Target::default, |subscribe| framework(&subscribe.framework_info))
        }
        Type::UpdateFramework => {
            call.update_framework.as_ref().map_or_else(Target::default, |update| framework(&update.framework_info))
        }
        Type::Teardown => own,
        // An ACCEPT without operations declines.
        Type::Accept => {
            operations(own, &call.accept.as_ref().filter(|accept| !accept.operations.is_empty())?.operations)
        }
        Type::Kill => own.with_all("task", call.kill.iter().map(|kill| &*kill.task_id.value)),
        Type::Shutdown => {
            let agents = call.shutdown.iter().map(|body| &*body.slave_id.value);
            own.with_all("executor", call.shutdown.iter().map(|body| &*body.executor_id.value))
                .with_all("agent", agents)
        }
    };
    Some(RequestedChange::new(kind.as_str_name(), target))
}

/// Returns the ids of a framework that subscribes.
pub(super) fn framework(info: &mesos::FrameworkInfo) -> Target {
    let roles = info.roles.iter().chain(&info.role).map(|role| &**role);
    Target::default()
        .with_all("framework", info.id.iter().map(|id| &*id.value))
        .with("name", &info.name)
        .with("user", &info.user)
        .with_all("role", roles)
        .with_all("framework_principal", info.principal.as_deref())
}

fn operations(mut target: Target, operations: &[mesos::offer::Operation]) -> Target {
    for operation in operations {
        target.add("operation", operation.r#type().as_str_name());
        let launched = operation.launch.iter().flat_map(|launch| &launch.task_infos);
        let groups = operation.launch_group.iter().flat_map(|launch| &launch.task_group.tasks);
        for task in launched.chain(groups) {
            target = self::task(target, task);
        }
    }
    target
}

/// Adds the ids of a task that is launched.
pub(super) fn task(target: Target, task: &mesos::TaskInfo) -> Target {
    target.with("task", &task.task_id.value).with("agent", &task.slave_id.value)
}

fn agent(id: &mesos::SlaveId) -> Target {
    Target::default().with("agent", &id.value)
}

fn on_agent(id: &mesos::SlaveId, resources: &[mesos::Resource]) -> Target {
    let mut target = agent(id);
    for resource in resources {
        target = target.with_all("role", authorizer::resource_roles(resource));
        let persistence = resource.disk.as_ref().and_then(|disk| disk.persistence.as_ref());
        target = target.with_all("volume", persistence.map(|persistence| &*persistence.id));
    }
    target
}

fn machines<'a>(ids: impl IntoIterator<Item = &'a mesos::MachineId>) -> Target {
    let mut target = Target::default();
    for id in ids {
        let name = id.hostname.as_deref().filter(|name| !name.is_empty()).or(id.ip.as_deref());
        target.add("machine", name.unwrap_or_default());
    }
    target
}

#[cfg(test)]
mod tests {
    use protos::json::{Dialect, FromJson};
    use protos::mesos::master::Call;
    use protos::mesos::master::call::Type;

    use super::*;

    #[test]
    fn operators_calls_that_read_are_left_out() {
        let kinds = (0..256).filter_map(|number| Type::try_from(number).ok());
        for kind in kinds {
            let call = Call { r#type: Some(kind as i32), ..Default::default() };
            let name = kind.as_str_name();
            let reads = name.starts_with("GET_") || ["UNKNOWN", "LIST_FILES", "READ_FILE", "SUBSCRIBE"].contains(&name);
            assert_eq!(master_call(&call).is_none(), reads, "{name}");
        }
    }

    #[test]
    fn objects_of_calls() {
        let call = |json: &str| Call::from_json(json.as_bytes(), Dialect::V1).unwrap();
        let requested = master_call(&call(r#"{"type": "DRAIN_AGENT", "drain_agent": {"agent_id": {"value": "S1"}}}"#));
        assert_eq!(requested, Some(RequestedChange::new("DRAIN_AGENT", Target::default().with("agent", "S1"))));
        let quota = r#"{"type": "UPDATE_QUOTA", "update_quota": {"quota_configs": [{"role": "a"}, {"role": "b"}]}}"#;
        let requested = master_call(&call(quota)).unwrap();
        assert_eq!(requested.target, Target::default().with_all("role", ["a", "b"]));
        let accept = |operations: &str| {
            let json = format!(
                r#"{{"type": "ACCEPT", "framework_id": {{"value": "F"}}, "accept": {{"operations": [{operations}]}}}}"#
            );
            scheduler_call(&protos::mesos::scheduler::Call::from_json(json.as_bytes(), Dialect::V1).unwrap())
        };
        let launch = r#"{"type": "LAUNCH", "launch": {"task_infos": [{"name": "n", "task_id": {"value": "t"},
            "agent_id": {"value": "S1"}, "command": {"value": "s3cret"}}]}}"#;
        let expected = Target::default().with("framework", "F").with("operation", "LAUNCH");
        let expected = expected.with("task", "t").with("agent", "S1");
        assert_eq!(accept(launch), Some(RequestedChange::new("ACCEPT", expected)));
        assert_eq!(accept(""), None);
    }
}
