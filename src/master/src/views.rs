//! Single entities in the form of the operator API. Lists and documents are built elsewhere.

use base::Time;
use protos::mesos::master::response::{get_agents, get_frameworks};
use protos::mesos::resource::{ReservationInfo, reservation_info};
use protos::mesos::{Resource, SlaveInfo, TimeInfo};
use resources::{Format, Resources};

use crate::state::{Agent, Framework};

fn time(time: Time) -> TimeInfo {
    TimeInfo { nanoseconds: time.as_nanos() }
}

/// Returns an agent's info. The roles of its resources are in `reservations`, in whichever form the agent has sent
/// them.
#[allow(deprecated, reason = "the fields are how agents say it")]
fn info(agent: &Agent) -> SlaveInfo {
    let mut info = (*agent.info).clone();
    for resource in &mut info.resources {
        let role = resource.role.take().filter(|role| role != "*" && resource.reservations.is_empty());
        resource.reservations.extend(role.map(|role| {
            let mut fixed = ReservationInfo { role: Some(role.into()), ..ReservationInfo::default() };
            fixed.set_type(reservation_info::Type::Static);
            fixed
        }));
    }
    info
}

/// Returns an agent, with its resources in this format.
pub fn agent(agent: &Agent, format: Format) -> get_agents::Agent {
    get_agents::Agent {
        agent_info: info(agent),
        active: agent.active(),
        deactivated: Some(agent.deactivated),
        version: agent.version.clone(),
        pid: Some(agent.pid.to_string()),
        registered_time: Some(time(agent.registered)),
        reregistered_time: agent.reregistered.map(time),
        total_resources: agent.total.to_proto(format),
        allocated_resources: agent.used.to_proto(format),
        offered_resources: agent.offered.to_proto(format),
        capabilities: agent.capabilities.to_proto(),
        resource_providers: agent
            .providers
            .values()
            .map(|provider| get_agents::agent::ResourceProvider {
                resource_provider_info: provider.info.clone(),
                total_resources: provider.total.to_proto(format),
            })
            .collect(),
        drain_info: agent.drain,
        estimated_drain_start_time: agent.drain_start.map(time),
    }
}

/// Returns a framework without its offers. The resources of its tasks are summed up; those of its executors are not
/// known here.
pub fn framework(framework: &Framework, format: Format) -> get_frameworks::Framework {
    let active = framework.tasks.values().filter(|task| !task.released);
    let mut allocated = Resources::new();
    active.for_each(|task| allocated += &*task.resources);
    get_frameworks::Framework {
        framework_info: (*framework.info).clone(),
        active: framework.active,
        connected: framework.connected(),
        recovered: framework.recovered(),
        registered_time: Some(time(framework.registered)),
        reregistered_time: Some(time(framework.reregistered.unwrap_or(framework.registered))),
        unregistered_time: Some(framework.unregistered.map_or(TimeInfo { nanoseconds: 0 }, time)),
        allocated_resources: allocated.to_proto(format),
        offer_constraints: framework.offer_constraints.as_deref().cloned(),
        ..Default::default()
    }
}

/// Removes the resources of roles that the principal may not view from an agent.
pub fn keep_visible(agent: &mut get_agents::Agent, may_view: impl Fn(&str) -> bool) {
    let may_view = |resource: &Resource| authorizer::resource_roles(resource).all(&may_view);
    let provided = agent.resource_providers.iter_mut().map(|provider| &mut provider.total_resources);
    let own = [
        &mut agent.agent_info.resources,
        &mut agent.total_resources,
        &mut agent.allocated_resources,
        &mut agent.offered_resources,
    ];
    own.into_iter().chain(provided).for_each(|list| list.retain(may_view));
}
