//! Offers: made from the allocator's decisions, sent, answered, rescinded.
//!
//! The allocator decides which framework is offered which resources. `table.rs` has the offers and their indices,
//! `inverse.rs` the inverse offers.

mod inverse;
mod table;

pub(crate) use inverse::inverse_offer_to_proto;
pub(crate) use table::{Offers, id_of};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use allocator::fairness::OfferEnd;
use base::ip_text;
use protos::mesos::{self, Filters};
use resources::{Format, Resources, Role};

use crate::io::Outbox;
use crate::master::Master;
use crate::state::{Agent, AgentKey, Framework, FrameworkKey, Offer, OfferKey};
use crate::timers::Timer;

/// Resource that offers do not show: an agent's ephemeral ports are not for frameworks (SCH-91).
const HIDDEN: &str = "ephemeral_ports";

impl Master {
    /// Runs the allocator, and sends its offers: one event per framework.
    pub(crate) fn make_offers(&mut self, out: &mut Outbox) {
        if self.allocation.is_paused(self.agents.len()) {
            return;
        }
        let mut batches: BTreeMap<FrameworkKey, (Vec<mesos::Offer>, Vec<String>)> = BTreeMap::new();
        for offering in self.allocation.allocate(self.now) {
            let framework = self.framework_by_id(offering.framework.as_str());
            let agent = self.agent_by_id(offering.agent.as_str());
            let (Some(framework), Some(agent)) = (framework, agent) else {
                let (framework, agent) = (&offering.framework, &offering.agent);
                self.allocation.recover_offered(framework, agent, &offering.role, &offering.resources, None);
                continue;
            };
            let mut resources = Arc::unwrap_or_clone(offering.resources);
            resources.allocate(&offering.role);
            let offer = Offer { framework, agent, role: offering.role, resources, sent: self.now, timeout: None };
            let Some((offer, pid)) = self.add_offer(offer) else { continue };
            let batch = batches.entry(framework).or_default();
            batch.0.push(offer);
            batch.1.extend(pid);
        }
        for (framework, (offers, pids)) in batches {
            let count = offers.len() as u64;
            self.frameworks.send_offers(framework, offers, pids, out);
            if let Some(counts) = self.frameworks.counts(framework) {
                counts.offers_sent += count;
            }
        }
        self.make_inverse_offers(out);
    }

    /// Adds an offer. Returns its form on the wire, and the agent's pid if the framework is a driver.
    fn add_offer(&mut self, mut offer: Offer) -> Option<(mesos::Offer, Option<String>)> {
        let key = self.offers.next_key();
        let timeout = self.framework(offer.framework).map(|to| self.allocation.offer_timeout(&to.id, &offer.role));
        if let Some(timeout) = timeout.flatten() {
            offer.timeout = Some(self.timers.set(self.now + timeout, Timer::OfferTimeout { offer: key }));
        }
        self.agents.add_offered(offer.agent, &offer.resources);
        let (agent, framework) = (self.agent(offer.agent)?, self.framework(offer.framework)?);
        let proto = offer_to_proto(self.offers.id(key), &offer, agent, framework);
        let pid = framework.pid().map(|_| agent.pid.to_string());
        self.offers.insert(offer);
        Some((proto, pid))
    }

    /// Removes an offer. The allocator still counts its resources as offered.
    pub(crate) fn take_offer(&mut self, key: OfferKey) -> Option<Arc<Offer>> {
        let offer = self.offers.remove(key, &mut self.timers)?;
        self.agents.remove_offered(offer.agent, &offer.resources);
        Some(offer)
    }

    /// Removes an offer and returns its resources to the allocator, without notifying the framework.
    pub(crate) fn discard_offer(&mut self, key: OfferKey, filters: Option<&Filters>, end: OfferEnd) {
        let Some(offer) = self.take_offer(key) else { return };
        self.offer_ended(&offer, &Resources::new(), end);
        if end == OfferEnd::TimedOut {
            return self.recover_timed_out(&offer);
        }
        self.recover_offered(offer.framework, offer.agent, &offer.role, &offer.resources, filters);
    }

    /// Returns the resources of an unanswered offer to the allocator. It may count as a refusal.
    fn recover_timed_out(&mut self, offer: &Offer) {
        if let (Some(framework), Some(agent)) = (self.frameworks.get(offer.framework), self.agents.get(offer.agent)) {
            self.allocation.recover_timed_out(&framework.id, &agent.id, &offer.role, &offer.resources);
        }
    }

    /// Records in the fairness report how an offer ended.
    pub(crate) fn offer_ended(&mut self, offer: &Offer, used: &Resources, end: OfferEnd) {
        if let Some(framework) = self.frameworks.get(offer.framework) {
            self.allocation.offer_ended(&framework.id, offer, used, end);
        }
    }

    /// Returns offered resources to the allocator.
    pub(crate) fn recover_offered(
        &mut self,
        framework: FrameworkKey,
        agent: AgentKey,
        role: &Role,
        resources: &Resources,
        filters: Option<&Filters>,
    ) {
        let (Some(framework), Some(agent)) = (self.frameworks.get(framework), self.agents.get(agent)) else {
            return;
        };
        self.allocation.recover_offered(&framework.id, &agent.id, role, resources, filters);
    }

    /// Rescinds an offer.
    pub(crate) fn rescind_offer(&mut self, key: OfferKey, out: &mut Outbox) {
        self.rescind(key, OfferEnd::Rescinded, out);
    }

    fn rescind(&mut self, key: OfferKey, end: OfferEnd, out: &mut Outbox) {
        let Some(framework) = self.offers.get(key).map(|offer| offer.framework) else { return };
        self.discard_offer(key, None, end);
        self.frameworks.send_rescind(framework, self.offers.id(key), out);
        if let Some(counts) = self.frameworks.counts(framework) {
            counts.offers_rescinded += 1;
        }
    }

    /// Rescinds all offers and inverse offers of a framework.
    pub(crate) fn rescind_offers_of(&mut self, framework: FrameworkKey, out: &mut Outbox) {
        for key in self.offers.of_framework(framework) {
            self.rescind_offer(key, out);
        }
        self.drop_inverse_offers(|offer| offer.framework == framework, true, out);
    }

    /// Rescinds a framework's offers in some roles.
    pub(crate) fn rescind_roles(&mut self, framework: FrameworkKey, roles: &BTreeSet<String>, out: &mut Outbox) {
        for key in self.offers.of_framework(framework) {
            if self.offers.get(key).is_some_and(|offer| roles.contains(offer.role.as_str())) {
                self.rescind_offer(key, out);
            }
        }
    }

    /// Removes all offers and inverse offers of a framework without notifying it.
    pub(crate) fn discard_offers_of(&mut self, framework: FrameworkKey, out: &mut Outbox) {
        for key in self.offers.of_framework(framework) {
            self.discard_offer(key, None, OfferEnd::Rescinded);
        }
        self.drop_inverse_offers(|offer| offer.framework == framework, false, out);
    }

    /// Rescinds all offers and inverse offers of an agent.
    pub(crate) fn rescind_offers_on(&mut self, agent: AgentKey, out: &mut Outbox) {
        for key in self.offers.on_agent(agent) {
            self.rescind_offer(key, out);
        }
        self.drop_inverse_offers(|offer| offer.agent == agent, true, out);
    }

    /// Rescinds an offer that was not answered in time.
    pub(crate) fn offer_timeout(&mut self, key: OfferKey, out: &mut Outbox) {
        self.rescind(key, OfferEnd::TimedOut, out);
    }
}

/// Returns an offer as it is sent to its framework (docs/mesos/scheduler-api.md).
pub(crate) fn offer_to_proto(id: mesos::OfferId, offer: &Offer, agent: &Agent, framework: &Framework) -> mesos::Offer {
    let format = match framework.capabilities.reservation_refinement {
        true => Format::PostRefinement,
        false => Format::PreRefinement,
    };
    let multi_role = framework.capabilities.multi_role;
    let mut resources = offer.resources.to_proto(format);
    resources.retain(|resource| resource.name != HIDDEN);
    if !multi_role {
        resources.iter_mut().for_each(|resource| resource.allocation_info = None);
    }
    let role = mesos::resource::AllocationInfo { role: Some((&offer.role).into()) };
    let executors = agent.executors.get(&offer.framework).into_iter().flat_map(|mine| mine.values());
    mesos::Offer {
        id,
        framework_id: framework.proto_id(),
        slave_id: agent.proto_id(),
        hostname: agent.info.hostname.clone(),
        url: Some(url_of(agent)),
        domain: agent.info.domain.clone(),
        resources,
        attributes: agent.info.attributes.clone(),
        executor_ids: executors.map(|executor| executor.info.executor_id.clone()).collect(),
        unavailability: agent.unavailability,
        allocation_info: multi_role.then_some(role),
    }
}

/// Returns the URL of an agent's HTTP API.
pub(crate) fn url_of(agent: &Agent) -> mesos::Url {
    mesos::Url {
        scheme: "http".to_owned(),
        address: mesos::Address {
            hostname: Some(agent.info.hostname.clone()),
            ip: Some(ip_text(*agent.pid.address().ip())),
            port: i32::from(agent.pid.address().port()),
        },
        path: Some(["/", agent.pid.id()].concat()),
        query: Vec::new(),
        fragment: None,
    }
}
