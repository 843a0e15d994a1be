//! Inverse offers: frameworks are asked to vacate agents whose machines are scheduled for maintenance
//! (docs/mesos/maintenance.md).
//!
//! They move no resources. The answers of frameworks are kept for operators.

use std::collections::BTreeMap;

use allocator::{Filter, InverseAnswer, InverseOffering};
use cores::Level;
use protos::mesos::allocator::{InverseOfferStatus, inverse_offer_status::Status};
use protos::mesos::{self, Filters, TimeInfo, Unavailability};

use crate::io::Outbox;
use crate::master::Master;
use crate::offers::url_of;
use crate::state::{Agent, AgentKey, Framework, FrameworkKey, InverseOffer, OfferKey};
use crate::timers::Timer;

impl Master {
    /// Applies the maintenance of an agent's current machine, after the agent was added or has moved.
    pub(crate) fn apply_machine_maintenance(&mut self, key: AgentKey, out: &mut Outbox) {
        let Some(agent) = self.agent(key) else { return };
        let machine = self.maintenance.machine_of(&agent.info.hostname, &agent.pid);
        let unavailability = machine.and_then(|machine| machine.unavailability);
        if agent.unavailability != unavailability {
            self.set_unavailability(key, unavailability, out);
        }
    }

    /// Sets the maintenance window of an agent. Its offers are rescinded, its resources offered again, and inverse
    /// offers made.
    pub(crate) fn set_unavailability(
        &mut self,
        key: AgentKey,
        unavailability: Option<Unavailability>,
        out: &mut Outbox,
    ) {
        self.rescind_offers_on(key, out);
        self.agents.set_unavailability(key, unavailability);
        let Some(agent) = self.agents.get(key) else { return };
        self.allocation.set_unavailability(&agent.id, unavailability);
    }

    /// Sends the inverse offers of the allocator: one event per framework.
    pub(crate) fn make_inverse_offers(&mut self, out: &mut Outbox) {
        let mut batches: BTreeMap<FrameworkKey, (Vec<mesos::InverseOffer>, Vec<String>)> = BTreeMap::new();
        for offering in self.allocation.inverse_offers() {
            match self.add_inverse_offer(&offering) {
                Some((framework, proto)) => {
                    let agent = self.agent_by_id(offering.agent.as_str()).and_then(|key| self.agent(key));
                    let (offers, pids) = batches.entry(framework).or_default();
                    offers.push(proto);
                    pids.push(agent.map(|agent| agent.pid.to_string()).unwrap_or_default());
                }
                None => self.allocation.answer_inverse(&offering.framework, &offering.agent, None, None),
            }
        }
        for (framework, (offers, pids)) in batches {
            self.frameworks.send_inverse_offers(framework, offers, pids, out);
        }
    }

    fn add_inverse_offer(&mut self, offering: &InverseOffering) -> Option<(FrameworkKey, mesos::InverseOffer)> {
        let framework = self.framework_by_id(offering.framework.as_str())?;
        let agent = self.agent_by_id(offering.agent.as_str())?;
        let unavailability = self.agent(agent)?.unavailability?;
        let key = self.offers.take_inverse_key();
        let timeout = self.policies().offer_timeout;
        let timeout = timeout.map(|span| self.timers.set(self.now + span, Timer::InverseOfferTimeout { offer: key }));
        let offer = InverseOffer { framework, agent, unavailability, timeout };
        let proto = inverse_offer_to_proto(self.offers.id(key), &offer, self.agent(agent)?, self.framework(framework)?);
        self.offers.insert_inverse(key, offer);
        Some((framework, proto))
    }

    /// Handles ACCEPT_INVERSE_OFFERS and DECLINE_INVERSE_OFFERS. The answers are kept, and the filter delays the next
    /// inverse offer. Unknown inverse offers and those of other frameworks are ignored.
    pub(crate) fn answer_inverse_offers(
        &mut self,
        key: FrameworkKey,
        ids: &[mesos::OfferId],
        status: Status,
        filters: Option<Filters>,
        out: &mut Outbox,
    ) {
        let filter = Filter::from_refuse_seconds(filters.unwrap_or_default().refuse_seconds);
        let answer = if status == Status::Accept { InverseAnswer::Accept } else { InverseAnswer::Decline };
        for id in ids {
            let own = self.offers.find_own_inverse(&id.value, key);
            let Some(offer) = own.and_then(|offer| self.offers.remove_inverse(offer, &mut self.timers)) else {
                let text = format!("Ignoring the answer to inverse offer {}: it is not outstanding", id.value);
                out.log(Level::Debug, text);
                continue;
            };
            let (Some(agent), Some(framework)) = (self.agents.get(offer.agent), self.frameworks.get(key)) else {
                continue;
            };
            self.allocation.answer_inverse(&framework.id, &agent.id, Some(answer), Some(filter));
            let (framework_id, timestamp) = (framework.proto_id(), TimeInfo { nanoseconds: self.now.as_nanos() });
            let answer = InverseOfferStatus { status: status as i32, framework_id, timestamp };
            self.agents.answer_inverse(offer.agent, key, answer);
        }
    }

    /// Removes the inverse offers that `concerned` selects, and rescinds them if `tell`.
    pub(crate) fn drop_inverse_offers(
        &mut self,
        concerned: impl Fn(&InverseOffer) -> bool,
        tell: bool,
        out: &mut Outbox,
    ) {
        let doomed = self.offers.inverse().iter().filter(|(_, offer)| concerned(offer));
        let doomed: Vec<OfferKey> = doomed.map(|(key, _)| *key).collect();
        for key in doomed {
            let Some(offer) = self.take_inverse_offer(key) else { continue };
            if tell {
                self.frameworks.send_rescind_inverse(offer.framework, self.offers.id(key), out);
            }
        }
    }

    /// Rescinds an inverse offer that was not answered in time. The allocator makes another one.
    pub(crate) fn inverse_offer_timeout(&mut self, key: OfferKey, out: &mut Outbox) {
        let Some(offer) = self.take_inverse_offer(key) else { return };
        self.frameworks.send_rescind_inverse(offer.framework, self.offers.id(key), out);
    }

    /// Removes an inverse offer without an answer.
    fn take_inverse_offer(&mut self, key: OfferKey) -> Option<InverseOffer> {
        let offer = self.offers.remove_inverse(key, &mut self.timers)?;
        if let (Some(agent), Some(framework)) = (self.agents.get(offer.agent), self.frameworks.get(offer.framework)) {
            self.allocation.answer_inverse(&framework.id, &agent.id, None, None);
        }
        Some(offer)
    }
}

/// Returns an inverse offer as it is sent to its framework.
pub(crate) fn inverse_offer_to_proto(
    id: mesos::OfferId,
    offer: &InverseOffer,
    agent: &Agent,
    framework: &Framework,
) -> mesos::InverseOffer {
    mesos::InverseOffer {
        id,
        url: Some(url_of(agent)),
        framework_id: framework.proto_id(),
        slave_id: Some(agent.proto_id()),
        unavailability: offer.unavailability,
        resources: Vec::new(),
    }
}
