//! Invariants of the master's state, checked after every batch.
//!
//! A check sees one instant. Of earlier ones it knows only the number of the last offer.

use std::collections::BTreeMap;

use master::{Master, Snapshot, invariants};
use resources::{Name, Resource, Resources, Role};

use super::checker::{Broken, Checker};
use super::operate::LIMITED;
use super::plan::Plan;
use crate::world::World;

/// The checker of a run.
#[derive(Debug)]
pub(super) struct Invariants {
    /// Batches that have been examined.
    seen: u64,
    /// The offers of this master below that number have been examined.
    offers: (String, u64),
    /// The limit at the last check, and the reservations of the role then, in thousandths of a CPU.
    limit: Option<i64>,
    kept: i64,
    /// What is reserved by flags on each agent's host.
    reserved: BTreeMap<String, Resources>,
}

fn broken(rule: &'static str, text: String) -> Result<(), Broken> {
    Err(Broken { rule, text })
}

impl Invariants {
    pub fn new(plan: &Plan) -> Invariants {
        let reserved = plan.specs().into_iter().map(|agent| (agent.hostname, reserved(&agent.resources)));
        Invariants { seen: 0, offers: (String::new(), 0), limit: None, kept: 0, reserved: reserved.collect() }
    }

    /// Checks the master's state if it has changed.
    pub fn check(&mut self, world: &mut World<Checker>) -> Result<(), Broken> {
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
                return broken("reservations are kept", format!("a stranger has {other:?} of agent {}", agent.id));
            }
        }
        self.check_limit(&snapshot)
    }

    /// A limited role is offered no more than its limit, with what it has.
    fn check_limit(&mut self, snapshot: &Snapshot) -> Result<(), Broken> {
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
        // An offer of this batch may have been made before an operator's call of this batch.
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
                "quota limits are kept",
                format!("role a has {has} thousandths of a CPU, and may have {limit}"),
            );
        }
        Ok(())
    }
}

/// The tables of a master agree with each other, and allocations do not exceed the total.
fn agree(master: &Master, snapshot: &Snapshot, left: &[String]) -> Result<(), Broken> {
    if let Err(text) = invariants::check_invariants(master) {
        return broken("all tables agree", text);
    }
    for agent in snapshot.agents.values() {
        // An agent that reregisters without a volume or a reservation, because the operation was lost, does not have
        // the tasks either that were to use it; its master is about to learn that. Shared resources may be allocated
        // many times.
        let made = |resource: &Resource| resource.is_persistent_volume() || resource.is_dynamically_reserved();
        let is_there = |resource: &Resource| !made(resource) || agent.total.contains_resource(resource);
        let offered = agent.offered.unallocated();
        let mut taken = agent.used.unallocated().single_copies().filter(is_there);
        taken += &offered;
        let taken = taken.single_copies();
        // If it comes back with a reservation that was to be free, such tasks take what is reserved, for as long; what
        // is offered is there.
        let fits = agent.total.contains(&taken)
            || (agent.total.contains(&offered.single_copies()) && plain(&agent.total).contains(&plain(&taken)));
        // What a framework that has left had is free at once, though its tasks may take a while to end: a master that
        // begins to lead meanwhile finds both there.
        let mut of_left = snapshot.frameworks.values().filter(|framework| left.contains(&framework.id.to_string()));
        if !fits && !of_left.any(|framework| !framework.tasks.is_empty()) {
            let text = format!("agent {} has {}, and {taken} is taken", agent.id, agent.total);
            return broken("no resources are allocated twice", text);
        }
    }
    Ok(())
}

/// The same without what was reserved while the cluster ran.
fn plain(resources: &Resources) -> Resources {
    let one = |resource: &Resource| match resource.is_dynamically_reserved() && !resource.is_persistent_volume() {
        true => resource.to_unreserved(),
        false => resource.clone(),
    };
    resources.iter().map(one).collect()
}

/// Whether it is a CPU that is reserved to the limited role.
fn is_kept_cpu(resource: &Resource) -> bool {
    *resource.name() == Name::Cpus && resource.reservation_role().is_some_and(|role| role.as_str() == LIMITED)
}

fn is_plain_cpu(resource: &Resource) -> bool {
    *resource.name() == Name::Cpus && resource.is_unreserved()
}

/// Whether an allocated resource belongs to the role that it is reserved for, if any.
fn is_kept(resource: &Resource) -> bool {
    let role: Option<&Role> = resource.allocation();
    resource.reservation_role().is_none_or(|kept| role.is_some_and(|role| role.is_same_or_subrole_of(kept)))
}

fn reserved(resources: &Resources) -> Resources {
    let is_static = |resource: &&Resource| resource.is_reserved() && !resource.is_dynamically_reserved();
    resources.iter().filter(is_static).cloned().collect()
}
