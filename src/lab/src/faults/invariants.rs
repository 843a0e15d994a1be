//! Invariants of the master's state, checked after every batch.
//!
//! A check sees one instant. From earlier checks it has only the number of the last offer, and the limit and the
//! reservations of the limited role.

use std::collections::BTreeMap;

use master::{Master, Snapshot, invariants};
use resources::{Name, Resource, Resources, Role};

use super::checker::{Checker, Violation};
use super::operate::LIMITED;
use super::plan::Plan;
use crate::world::World;

/// Checks the invariants in the course of a run.
#[derive(Debug)]
pub(super) struct Invariants {
    /// Number of batches that have been checked.
    seen: u64,
    /// Id of the master, and the number below which its offers have been checked.
    offers: (String, u64),
    /// Limit of the limited role at the last check, in thousandths of a CPU; `kept` has its reservations then.
    limit: Option<i64>,
    kept: i64,
    /// Static reservations on each agent's host.
    reserved: BTreeMap<String, Resources>,
}

fn broken(rule: &'static str, text: String) -> Result<(), Violation> {
    Err(Violation { rule, text })
}

impl Invariants {
    pub fn new(plan: &Plan) -> Invariants {
        let reserved = plan.specs().into_iter().map(|agent| (agent.hostname, reserved(&agent.resources)));
        Invariants { seen: 0, offers: (String::new(), 0), limit: None, kept: 0, reserved: reserved.collect() }
    }

    /// Checks the master's state if there was a batch since the last check.
    pub fn check(&mut self, world: &mut World<Checker>) -> Result<(), Violation> {
        if self.seen == world.batches() {
            return Ok(());
        }
        self.seen = world.batches();
        let left = world.observer().left();
        if let Some(master) = world.deposed() {
            let snapshot = master.snapshot();
            agree(master, &snapshot, &left)?;
        }
        let Some(master) = world.master() else { return Ok(()) };
        let snapshot = master.snapshot();
        agree(master, &snapshot, &left)?;
        if let Err(text) = world.observer().operator_checks.check(&snapshot) {
            return broken("confirmed operator calls persist", text);
        }
        for agent in snapshot.agents.values() {
            if self.reserved.get(&agent.info.hostname).is_some_and(|kept| *kept != reserved(&agent.total)) {
                return broken("reservations are kept", format!("agent {} has {}", agent.id, agent.total));
            }
            let mut held = agent.used.iter().chain(agent.offered.iter());
            if let Some(other) = held.find(|resource| !is_kept(resource)) {
                return broken("reservations are kept", format!("an unknown role has {other:?} of agent {}", agent.id));
            }
        }
        self.check_limit(&snapshot)
    }

    /// Checks that new offers do not take a limited role beyond its limit.
    fn check_limit(&mut self, snapshot: &Snapshot) -> Result<(), Violation> {
        if self.offers.0 != snapshot.info.id {
            self.offers = (snapshot.info.id.clone(), 0);
        }
        let first = std::mem::replace(&mut self.offers.1, snapshot.offers.next_key());
        let quota = snapshot.quotas.iter().find(|(role, _)| role.as_str() == LIMITED).map(|(_, quota)| quota);
        let limit = quota.and_then(|quota| quota.limits.get(&Name::Cpus)).map(|cpus| cpus.thousandths());
        let kept =
            snapshot.agents.values().flat_map(|agent| agent.total.iter()).filter(|resource| is_kept_cpu(resource));
        let kept: i64 = kept.filter_map(Resource::amount).map(|amount| amount.thousandths()).sum();
        let before = (std::mem::replace(&mut self.limit, limit), std::mem::replace(&mut self.kept, kept));
        // An offer may have been made before an operator call of the same batch.
        let (Some(limit), Some(last)) = (limit, before.0) else { return Ok(()) };
        if last > limit || kept > before.1 {
            return Ok(());
        }
        let fresh = snapshot.offers.iter().filter(|(key, offer)| *key >= first && offer.role.as_str() == LIMITED);
        if !fresh.flat_map(|(_, offer)| offer.resources.iter()).any(is_plain_cpu) {
            return Ok(());
        }
        let mut has = kept;
        for agent in snapshot.agents.values() {
            let held = agent.used.iter().chain(agent.offered.iter()).filter(|resource| is_plain_cpu(resource));
            let held = held.filter(|resource| resource.allocation().is_some_and(|role| role.as_str() == LIMITED));
            has += held.filter_map(Resource::amount).map(|amount| amount.thousandths()).sum::<i64>();
        }
        if has > limit {
            return broken(
                "quota limits are obeyed",
                format!("role a has {has} thousandths of a CPU, and may have {limit}"),
            );
        }
        Ok(())
    }
}

/// Checks that the tables of a master agree with each other, and that allocations do not exceed the total.
fn agree(master: &Master, snapshot: &Snapshot, left: &[String]) -> Result<(), Violation> {
    if let Err(text) = invariants::check_invariants(master) {
        return broken("all tables agree", text);
    }
    for agent in snapshot.agents.values() {
        // If an operation was lost, an agent reregisters without the volume or the reservation, and without the tasks
        // that were to use it; its master is about to learn that. Shared resources may be allocated many times.
        let made = |resource: &Resource| resource.is_persistent_volume() || resource.is_dynamically_reserved();
        let is_there = |resource: &Resource| !made(resource) || agent.total.contains_resource(resource);
        let offered = agent.offered.unallocated();
        let mut taken = agent.used.unallocated().single_copies().filter(is_there);
        taken += &offered;
        let taken = taken.single_copies();
        // An agent that reregisters with a reservation that was to be released has such tasks on reserved resources for
        // as long; offered resources exist all the same.
        let fits = agent.total.contains(&taken)
            || (agent.total.contains(&offered.single_copies()) && plain(&agent.total).contains(&plain(&taken)));
        // Resources of a framework that has left are released at once, though its tasks may take a while to end: a
        // master that begins to lead meanwhile finds both allocated.
        let mut of_left = snapshot.frameworks.values().filter(|framework| left.contains(&framework.id.to_string()));
        if !fits && !of_left.any(|framework| !framework.tasks.is_empty()) {
            let text = format!("agent {} has {}, and {taken} is taken", agent.id, agent.total);
            return broken("no resources are allocated twice", text);
        }
    }
    Ok(())
}

/// Returns the resources with dynamic reservations removed, except those of volumes.
fn plain(resources: &Resources) -> Resources {
    let one = |resource: &Resource| match resource.is_dynamically_reserved() && !resource.is_persistent_volume() {
        true => resource.to_unreserved(),
        false => resource.clone(),
    };
    resources.iter().map(one).collect()
}

/// Returns whether the resource is CPUs that are reserved to the limited role.
fn is_kept_cpu(resource: &Resource) -> bool {
    *resource.name() == Name::Cpus && resource.reservation_role().is_some_and(|role| role.as_str() == LIMITED)
}

fn is_plain_cpu(resource: &Resource) -> bool {
    *resource.name() == Name::Cpus && resource.is_unreserved()
}

/// Returns whether an allocated resource is unreserved or allocated to the role that it is reserved for.
fn is_kept(resource: &Resource) -> bool {
    let role: Option<&Role> = resource.allocation();
    resource.reservation_role().is_none_or(|kept| role.is_some_and(|role| role.is_same_or_subrole_of(kept)))
}

fn reserved(resources: &Resources) -> Resources {
    let is_static = |resource: &&Resource| resource.is_reserved() && !resource.is_dynamically_reserved();
    resources.iter().filter(is_static).cloned().collect()
}
