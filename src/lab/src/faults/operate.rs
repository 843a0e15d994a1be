//! Operator calls of a fault campaign, and the calls that restore the cluster at its end.
//!
//! They are sent to the leading master. A call that is lost with a master is not repeated.

use std::fmt;

use master::Snapshot;
use protos::mesos::master::{Call, call};
use protos::mesos::quota::QuotaConfig;
use protos::mesos::value::Scalar;
use protos::mesos::{FrameworkId, SlaveId, WeightInfo};
use resources::{Amount, Format, Name, Resource, Resources, Role, parse_text};

use super::plan::Plan;
use super::rng::FaultRng;
use crate::world::{Observer, World};

/// The role whose quota may have a limit.
pub(super) const LIMITED: &str = "a";
/// The role whose quota may have a guarantee.
pub(super) const GUARANTEED: &str = "b";

/// An operator call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "agents are numbers, CPUs whole ones, and the rest is what the calls name so")]
pub enum Action {
    /// Sets the weight of a role, in tenths.
    Weight { role: &'static str, tenths: u32 },
    /// Sets the limit of role `a` in CPUs, or removes it.
    Limit { cpus: Option<u64> },
    /// Sets the guarantee of role `b` in CPUs, or removes it.
    Guarantee { cpus: Option<u64> },
    /// Drains an agent: its tasks end, and its resources are not offered.
    Drain { agent: usize },
    /// Deactivates an agent: its resources are not offered.
    Deactivate { agent: usize },
    /// Reactivates an agent: its resources are offered again.
    Reactivate { agent: usize },
    /// Reserves a CPU and some memory of an agent to a role.
    Reserve { agent: usize, role: &'static str },
    /// Releases all dynamic reservations of an agent, except those of volumes.
    Unreserve { agent: usize },
    /// Destroys the persistent volumes of an agent that no task uses.
    DestroyVolumes { agent: usize },
}

impl Action {
    /// Draws an operator call; calls about an agent are about this one.
    pub(super) fn draw(rng: &mut FaultRng, agent: usize) -> Action {
        let role = rng.pick(&[LIMITED, GUARANTEED]);
        let cpus = if rng.chance(30) { None } else { Some(rng.within(0, 4)) };
        match rng.below(100) {
            0..12 => Action::Weight { role, tenths: rng.within(1, 50) as u32 },
            12..26 => Action::Limit { cpus },
            26..38 => Action::Guarantee { cpus },
            38..58 => Action::Drain { agent },
            58..66 => Action::Deactivate { agent },
            66..78 => Action::Reactivate { agent },
            78..86 => Action::Reserve { agent, role },
            86..92 => Action::DestroyVolumes { agent },
            _ => Action::Unreserve { agent },
        }
    }

    /// Returns the agent that the call is about.
    pub(super) fn agent(self) -> Option<usize> {
        match self {
            Action::Weight { .. } | Action::Limit { .. } | Action::Guarantee { .. } => None,
            Action::Drain { agent }
            | Action::Deactivate { agent }
            | Action::Reactivate { agent }
            | Action::Reserve { agent, .. }
            | Action::Unreserve { agent }
            | Action::DestroyVolumes { agent } => Some(agent),
        }
    }

    /// Makes the call, if a master leads that knows the agent.
    pub(super) fn inject<O: Observer>(self, world: &mut World<O>) {
        let Some(snapshot) = world.master().map(|master| master.snapshot()) else { return };
        if let Some(call) = self.call(&snapshot) {
            world.operate(call);
        }
    }

    fn call(self, snapshot: &Snapshot) -> Option<Call> {
        let on_agent = |agent: usize| {
            let hostname = format!("agent{agent}");
            snapshot.agents.values().find(|known| known.info.hostname == hostname)
        };
        let id = |agent: usize| on_agent(agent).map(|agent| SlaveId { value: agent.id.to_string().into() });
        Some(match self {
            Action::Weight { role, tenths } => weight(role, f64::from(tenths) / 10.0),
            Action::Limit { cpus } => quota(LIMITED, cpus, Bound::Limit),
            Action::Guarantee { cpus } => quota(GUARANTEED, cpus, Bound::Guarantee),
            Action::Drain { agent } => Call {
                drain_agent: Some(call::DrainAgent { slave_id: id(agent)?, max_grace_period: None, mark_gone: None }),
                ..of(call::Type::DrainAgent)
            },
            Action::Deactivate { agent } => Call {
                deactivate_agent: Some(call::DeactivateAgent { slave_id: id(agent)? }),
                ..of(call::Type::DeactivateAgent)
            },
            Action::Reactivate { agent } => reactivate(id(agent)?),
            Action::Reserve { agent, role } => {
                let reserved = parse_text("cpus:1;mem:64", &Role::star()).ok()?;
                let mut resources = reserved.to_proto(Format::PostRefinement);
                for resource in &mut resources {
                    resource.reservations = vec![protos::mesos::resource::ReservationInfo {
                        r#type: Some(protos::mesos::resource::reservation_info::Type::Dynamic as i32),
                        role: Some(role.to_owned()),
                        ..Default::default()
                    }];
                }
                let reserve = call::ReserveResources { slave_id: id(agent)?, source: Vec::new(), resources };
                Call { reserve_resources: Some(reserve), ..of(call::Type::ReserveResources) }
            }
            Action::Unreserve { agent } => unreserve(id(agent)?, &dynamic(&on_agent(agent)?.total))?,
            Action::DestroyVolumes { agent } => destroy(id(agent)?, &idle_volumes(on_agent(agent)?))?,
        })
    }
}

/// Makes the calls that restore the quotas of the plan, reactivate agents and release reservations. Returns their
/// number.
///
/// An agent that is still being drained needs a later call. When all have `finished` their work, volumes are destroyed,
/// too. A drain ends only when everything on the agent is acknowledged: frameworks in `left`, which have ended without
/// a connection and can acknowledge nothing, are torn down.
pub(super) fn settle<O: Observer>(world: &mut World<O>, plan: &Plan, finished: bool, left: &[String]) -> usize {
    let Some(snapshot) = world.master().map(|master| master.snapshot()) else { return 1 };
    let mut calls = Vec::new();
    let wanted = [(LIMITED, plan.limit, Bound::Limit), (GUARANTEED, plan.guarantee, Bound::Guarantee)];
    for (role, cpus, bound) in wanted {
        let set = snapshot.quotas.iter().find(|(known, _)| known.as_str() == role).map(|(_, quota)| quota);
        let now = set.and_then(|quota| match bound {
            Bound::Limit => quota.limits.get(&Name::Cpus),
            Bound::Guarantee => Some(quota.guarantees.get(&Name::Cpus)).filter(|cpus| *cpus != Amount::ZERO),
        });
        if now != cpus.map(|cpus| Amount::from_f64(cpus as f64)) {
            calls.push(quota(role, cpus, bound));
        }
    }
    for agent in snapshot.agents.values() {
        let id = SlaveId { value: agent.id.to_string().into() };
        if agent.deactivated {
            calls.push(reactivate(id.clone()));
        }
        // Reservations that tasks use stay until the tasks end.
        let idle = &dynamic(&agent.total) - &dynamic(&agent.used.unallocated());
        calls.extend(unreserve(id.clone(), &idle));
        if finished {
            calls.extend(destroy(id, &idle_volumes(agent)));
        }
    }
    if snapshot.agents.values().any(|agent| agent.drain.is_some()) {
        let frameworks = snapshot.frameworks.values().map(|framework| framework.id.to_string());
        calls.extend(frameworks.filter(|id| left.contains(id)).map(teardown));
    }
    let count = calls.len();
    calls.into_iter().for_each(|call| world.operate(call));
    count
}

/// Returns the dynamically reserved resources, without volumes.
pub(super) fn dynamic(resources: &Resources) -> Resources {
    resources.filter(|resource| resource.is_dynamically_reserved() && !resource.is_persistent_volume())
}

/// Returns the volumes of an agent that no task uses.
fn idle_volumes(agent: &master::Agent) -> Resources {
    let used = agent.used.persistent_volumes();
    let id = |volume: &Resource| volume.disk().and_then(|disk| disk.persistence_id()).map(str::to_owned);
    let used: Vec<_> = used.iter().map(id).collect();
    agent.total.filter(|resource| resource.is_persistent_volume() && !used.contains(&id(resource)))
}

/// The two parts of a quota.
#[derive(Clone, Copy, PartialEq)]
enum Bound {
    Limit,
    Guarantee,
}

fn of(kind: call::Type) -> Call {
    Call { r#type: Some(kind as i32), ..Call::default() }
}

fn quota(role: &str, cpus: Option<u64>, bound: Bound) -> Call {
    let amounts = cpus.iter().map(|cpus| ("cpus".to_owned(), Scalar { value: *cpus as f64 })).collect();
    let role = role.to_owned();
    let config = match bound {
        Bound::Limit => QuotaConfig { role, limits: amounts, ..QuotaConfig::default() },
        Bound::Guarantee => QuotaConfig { role, guarantees: amounts, ..QuotaConfig::default() },
    };
    let update = call::UpdateQuota { force: Some(true), quota_configs: vec![config] };
    Call { update_quota: Some(update), ..of(call::Type::UpdateQuota) }
}

fn teardown(id: String) -> Call {
    let teardown = call::Teardown { framework_id: FrameworkId { value: id.into() } };
    Call { teardown: Some(teardown), ..of(call::Type::Teardown) }
}

fn weight(role: &str, weight: f64) -> Call {
    let weight_infos = vec![WeightInfo { role: Some(role.to_owned()), weight }];
    Call { update_weights: Some(call::UpdateWeights { weight_infos }), ..of(call::Type::UpdateWeights) }
}

fn reactivate(slave_id: SlaveId) -> Call {
    Call { reactivate_agent: Some(call::ReactivateAgent { slave_id }), ..of(call::Type::ReactivateAgent) }
}

fn destroy(slave_id: SlaveId, volumes: &Resources) -> Option<Call> {
    if volumes.is_empty() {
        return None;
    }
    let volumes = volumes.unallocated().to_proto(Format::PostRefinement);
    let destroy = call::DestroyVolumes { slave_id, volumes };
    Some(Call { destroy_volumes: Some(destroy), ..of(call::Type::DestroyVolumes) })
}

fn unreserve(slave_id: SlaveId, reserved: &Resources) -> Option<Call> {
    if reserved.is_empty() {
        return None;
    }
    let resources = reserved.unallocated().to_proto(Format::PostRefinement);
    let unreserve = call::UnreserveResources { slave_id, resources };
    Some(Call { unreserve_resources: Some(unreserve), ..of(call::Type::UnreserveResources) })
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = |cpus: Option<u64>| cpus.map_or("nothing".to_owned(), |cpus| format!("{cpus} CPUs"));
        match self {
            Action::Weight { role, tenths } => write!(f, "the operator gives {role} the weight {tenths}/10"),
            Action::Limit { cpus } => write!(f, "the operator sets the limit of {LIMITED} to {}", amount(*cpus)),
            Action::Guarantee { cpus } => write!(f, "the operator guarantees {} to {GUARANTEED}", amount(*cpus)),
            Action::Drain { agent } => write!(f, "the operator drains agent {agent}"),
            Action::Deactivate { agent } => write!(f, "the operator deactivates agent {agent}"),
            Action::Reactivate { agent } => write!(f, "the operator reactivates agent {agent}"),
            Action::Reserve { agent, role } => write!(f, "the operator reserves a CPU of agent {agent} to {role}"),
            Action::Unreserve { agent } => write!(f, "the operator unreserves its reservations of agent {agent}"),
            Action::DestroyVolumes { agent } => write!(f, "the operator destroys unused volumes of agent {agent}"),
        }
    }
}
