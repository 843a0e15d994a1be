//! Calls of the core to the allocator, in the core's terms.
//!
//! It changes no tables of the core; `offers/mod.rs` does.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allocator::fairness::{EndedOffer, OfferEnd};
use allocator::policies::Policies;
use allocator::{
    AgentOptions, Allocator, Attribute, Filter, FrameworkOptions, Held, Holder, InverseAnswer, InverseOffering,
    Offering, Quota, UpdateAvailableError, Weight,
};
use base::{AgentId, FrameworkId, Time};
use protos::mesos::domain_info::FaultDomain;
use protos::mesos::value::Type;
use protos::mesos::{Filters, MasterInfo, OfferFilters, SlaveInfo};
use resources::{Amount, Conversion, Name, Quantities, Resources, Role};

use crate::config::Config;
use crate::state::{Agent, Framework, Offer};

/// The allocator, with the time that its inputs are stamped with.
pub(crate) struct Allocation {
    allocator: Allocator,
    now: Time,
    /// Condition under which offers start; set after a failover until enough agents have reregistered.
    pause: Option<OfferPause>,
}

/// Holds back offers until this many agents are registered, or until that instant (ALL-80).
struct OfferPause {
    agents: usize,
    until: Time,
}

impl Allocation {
    pub(crate) fn new(config: &Config, info: &MasterInfo, seed: u64, now: Time) -> Allocation {
        let domain = info.domain.as_ref().and_then(|domain| domain.fault_domain.as_ref());
        let settings = allocator::Config {
            min_allocatable: config.min_allocatable_resources.clone(),
            filter_gpu_resources: config.filter_gpu_resources,
            fair_sharing_excluded: config.fair_sharing_excluded_resource_names.iter().map(|n| name(n)).collect(),
            allocation_interval: config.allocation_interval,
            region: domain.map(|domain| domain.region.name.clone()),
            policies: config.policies.clone(),
            role_sorter: config.role_sorter,
            framework_sorter: config.framework_sorter,
            seed,
        };
        Allocation { allocator: Allocator::new(settings), now, pause: None }
    }

    /// Sets the time of the inputs that follow.
    pub(crate) fn set_time(&mut self, now: Time) {
        self.now = now;
        self.allocator.set_time(now);
    }

    pub(crate) fn add_framework(&mut self, framework: &Framework) {
        let options = framework_options(framework);
        self.allocator.add_framework(&framework.id, &options, framework.active, &[]);
    }

    pub(crate) fn update_framework(&mut self, framework: &Framework) {
        self.allocator.update_framework(&framework.id, &framework_options(framework));
    }

    pub(crate) fn activate_framework(&mut self, id: &FrameworkId) {
        self.allocator.activate_framework(id);
    }

    pub(crate) fn deactivate_framework(&mut self, id: &FrameworkId) {
        self.allocator.deactivate_framework(id);
    }

    pub(crate) fn remove_framework(&mut self, id: &FrameworkId) {
        self.allocator.remove_framework(id);
    }

    pub(crate) fn suppress(&mut self, id: &FrameworkId, roles: &BTreeSet<String>) {
        self.allocator.suppress(id, &parsed(roles));
    }

    pub(crate) fn revive(&mut self, id: &FrameworkId, roles: &BTreeSet<String>) {
        self.allocator.revive(id, &parsed(roles));
    }

    pub(crate) fn set_weight(&mut self, role: &str, weight: f64) {
        if let (Ok(role), Ok(weight)) = (Role::parse(role), Weight::new(weight)) {
            self.allocator.set_weight(&role, weight);
        }
    }

    /// Sets the guarantee and the limit of a role.
    pub(crate) fn set_quota(&mut self, role: &Role, quota: Quota) {
        self.allocator.set_quota(role, quota);
    }

    /// Applies an operator's operation to unallocated resources.
    ///
    /// # Errors
    /// The resources are missing, or allocated.
    pub(crate) fn update_available(&mut self, id: &AgentId, conversions: &[Conversion]) -> Result<(), String> {
        self.allocator.update_available(id, conversions).map_err(|why| match why {
            UpdateAvailableError::NotAvailable { source, .. } => source.to_string(),
            unknown => unknown.to_string(),
        })
    }

    /// Adds an agent, with the resources that each framework uses on it.
    pub(crate) fn add_agent(&mut self, agent: &Agent, used: &BTreeMap<FrameworkId, Resources>) {
        let mut list = Vec::new();
        for (framework, resources) in used {
            let by_role = resources.allocations().into_iter();
            list.extend(by_role.map(|(role, part)| (framework.clone(), role, part)));
        }
        self.allocator.add_agent(&agent.id, agent_options(agent), &agent.total, &list);
        self.set_unavailability(&agent.id, agent.unavailability);
        self.set_agent_active(&agent.id, agent.active());
    }

    /// Sets the hostnames whose agents may be offered. `None` allows all.
    pub(crate) fn set_whitelist(&mut self, hostnames: Option<BTreeSet<String>>) {
        self.allocator.set_whitelist(hostnames);
    }

    /// Sets the time at which an agent will be unavailable. The caller has rescinded the agent's offers.
    pub(crate) fn set_unavailability(&mut self, id: &AgentId, window: Option<protos::mesos::Unavailability>) {
        let window = window.map(|window| allocator::Unavailability {
            start: Time::from_epoch(Duration::from_nanos(u64::try_from(window.start.nanoseconds).unwrap_or_default())),
            duration: window.duration.map(|span| Duration::from_nanos(span.nanoseconds.unsigned_abs())),
        });
        self.allocator.set_unavailability(id, window);
    }

    /// Returns the inverse offers to send now.
    pub(crate) fn inverse_offers(&mut self) -> Vec<InverseOffering> {
        self.allocator.inverse_offers(self.now)
    }

    /// Records that an inverse offer was answered, or that it is no longer outstanding.
    pub(crate) fn answer_inverse(
        &mut self,
        framework: &FrameworkId,
        agent: &AgentId,
        answer: Option<InverseAnswer>,
        filter: Option<Filter>,
    ) {
        self.allocator.answer_inverse_offer(framework, agent, answer, filter, self.now);
    }

    pub(crate) fn update_agent(&mut self, agent: &Agent) {
        self.allocator.update_agent(&agent.id, agent_options(agent), &agent.total);
    }

    pub(crate) fn set_agent_active(&mut self, id: &AgentId, active: bool) {
        match active {
            true => self.allocator.activate_agent(id),
            false => self.allocator.deactivate_agent(id),
        }
    }

    pub(crate) fn remove_agent(&mut self, id: &AgentId) {
        self.allocator.remove_agent(id);
    }

    /// Returns offered resources to the allocator. With `filters`, the framework is not offered them for a while.
    pub(crate) fn recover_offered(
        &mut self,
        framework: &FrameworkId,
        agent: &AgentId,
        role: &Role,
        resources: &Resources,
        filters: Option<&Filters>,
    ) {
        let filter = filters.map(|filters| self.allocator.policies().filter(role, filters.refuse_seconds));
        let holder = Holder { framework, role, agent };
        self.allocator.recover(holder, resources, Held::Offered, filter, self.now);
    }

    /// Returns offered resources to the allocator that the framework did not answer in time.
    pub(crate) fn recover_timed_out(
        &mut self,
        framework: &FrameworkId,
        agent: &AgentId,
        role: &Role,
        resources: &Resources,
    ) {
        let filter = self.allocator.policies().timed_out(role);
        self.allocator.recover(Holder { framework, role, agent }, resources, Held::Offered, filter, self.now);
    }

    /// Returns the resources of a task or executor to the allocator.
    pub(crate) fn recover_used(&mut self, framework: &FrameworkId, agent: &AgentId, resources: &Resources) {
        // Most tasks and executors have resources of one role.
        let first = resources.iter().next().and_then(resources::Resource::allocation);
        if let Some(role) = first.filter(|role| resources.iter().all(|r| r.allocation() == Some(role))) {
            let holder = Holder { framework, role, agent };
            return self.allocator.recover(holder, resources, Held::Used, None, self.now);
        }
        for (role, part) in resources.allocations() {
            let holder = Holder { framework, role: &role, agent };
            self.allocator.recover(holder, &part, Held::Used, None, self.now);
        }
    }

    /// Records that offered resources are used from now on.
    pub(crate) fn mark_used(&mut self, framework: &FrameworkId, agent: &AgentId, role: &Role, resources: &Resources) {
        self.allocator.mark_offered_used(Holder { framework, role, agent }, resources);
    }

    /// Records that a further task of the framework uses shared resources that one of its tasks uses already.
    pub(crate) fn add_shared_copies(
        &mut self,
        framework: &FrameworkId,
        agent: &AgentId,
        role: &Role,
        shared: &Resources,
    ) {
        self.allocator.add_shared_copies(Holder { framework, role, agent }, shared);
    }

    /// Applies conversions to offered resources.
    ///
    /// # Errors
    /// The offered resources do not contain what a conversion consumes.
    pub(crate) fn transform(
        &mut self,
        framework: &FrameworkId,
        agent: &AgentId,
        role: &Role,
        conversions: &[Conversion],
    ) -> Result<(), String> {
        let holder = Holder { framework, role, agent };
        self.allocator.transform(holder, conversions, Held::Offered).map_err(|why| why.to_string())
    }

    /// Holds back all offers until `agents` agents are registered, or until `until`.
    pub(crate) fn pause_offers(&mut self, agents: usize, until: Time) {
        self.pause = Some(OfferPause { agents, until });
    }

    /// Returns whether offers are held back while that many agents are registered.
    pub(crate) fn is_paused(&mut self, agents: usize) -> bool {
        self.pause.take_if(|pause| agents >= pause.agents || self.now >= pause.until);
        self.pause.is_some()
    }

    /// Returns the time that a framework has to answer an offer, or `None` for no limit.
    pub(crate) fn offer_timeout(&self, framework: &FrameworkId, role: &Role) -> Option<Duration> {
        self.allocator.offer_timeout(framework, role)
    }

    /// Records the end of an offer: it was answered, rescinded or timed out.
    pub(crate) fn offer_ended(&mut self, framework: &FrameworkId, offer: &Offer, used: &Resources, end: OfferEnd) {
        let held = self.now.since(offer.sent);
        let (role, offered) = (&offer.role, &offer.resources);
        self.allocator.offer_ended(&EndedOffer { framework, role, offered, used, held, end });
    }

    /// Replaces the policies, which the caller has checked.
    pub(crate) fn set_policies(&mut self, policies: Policies) {
        self.allocator.set_policies(policies);
    }

    /// Returns the resources to offer now.
    pub(crate) fn allocate(&mut self, now: Time) -> Vec<Offering> {
        match self.allocator.next_wake() {
            Some(at) if at <= now => self.allocator.allocate_all(now),
            _ => self.allocator.allocate(now),
        }
    }

    pub(crate) fn next_wake(&self) -> Option<Time> {
        self.pause.as_ref().map_or_else(|| self.allocator.next_wake(), |pause| Some(pause.until))
    }

    /// Returns the allocator, for its views.
    pub(crate) fn allocator(&self) -> &Allocator {
        &self.allocator
    }
}

fn name(text: &str) -> Name {
    Name::from(text)
}

fn parsed(roles: &BTreeSet<String>) -> BTreeSet<Role> {
    roles.iter().filter_map(|role| Role::parse(role).ok()).collect()
}

fn framework_options(framework: &Framework) -> FrameworkOptions {
    let known = framework.capabilities;
    let filters = framework.info.offer_filters.iter();
    FrameworkOptions {
        name: framework.info.name.clone(),
        roles: parsed(&framework.roles),
        suppressed_roles: parsed(&framework.suppressed),
        capabilities: allocator::FrameworkCapabilities {
            multi_role: known.multi_role,
            gpu_resources: known.gpu_resources,
            shared_resources: known.shared_resources,
            revocable_resources: known.revocable_resources,
            reservation_refinement: known.reservation_refinement,
            region_aware: known.region_aware,
        },
        min_allocatable: filters
            .filter_map(|(role, filters)| Some((Role::parse(role).ok()?, minima(filters)?)))
            .collect(),
        constraints: framework.constraints.clone(),
    }
}

/// Returns a framework's own minima for its offers, or `None` if it states none.
fn minima(filters: &OfferFilters) -> Option<Vec<Quantities>> {
    let list = filters.min_allocatable_resources.as_ref()?.quantities.iter();
    let read = |(text, scalar): (&String, &protos::mesos::value::Scalar)| (name(text), Amount::from_f64(scalar.value));
    Some(list.map(|quantities| quantities.quantities.iter().map(read).collect()).collect())
}

fn agent_options(agent: &Agent) -> AgentOptions {
    AgentOptions {
        capabilities: allocator::AgentCapabilities {
            multi_role: agent.capabilities.multi_role,
            hierarchical_role: agent.capabilities.hierarchical_role,
        },
        hostname: agent.info.hostname.clone(),
        region: fault_domain(&agent.info).map(|domain| domain.region.name.clone()),
        zone: fault_domain(&agent.info).map(|domain| domain.zone.name.clone()),
        attributes: agent.info.attributes.iter().map(attribute).collect(),
        unhealthy: agent.unhealthy().map(str::to_owned),
    }
}

fn fault_domain(info: &SlaveInfo) -> Option<&FaultDomain> {
    info.domain.as_ref()?.fault_domain.as_ref()
}

fn attribute(attribute: &protos::mesos::Attribute) -> Attribute {
    let text = attribute.text.as_ref().filter(|_| attribute.r#type() == Type::Text);
    Attribute { name: attribute.name.clone(), text: text.map(|text| text.value.clone()) }
}
