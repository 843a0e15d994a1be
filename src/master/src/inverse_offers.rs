//! Inverse offers: frameworks are asked to leave agents whose machines are scheduled for maintenance (mesos-features.md 5.11).
//!
//! They take nothing and give nothing; what a framework answers is kept for the operator to see.

use std::collections::BTreeMap;
use std::sync::Arc;

use allocator::{Filter, InverseAnswer, InverseOffering};
use base::ip_text;
use protos::mesos::allocator::{InverseOfferStatus, inverse_offer_status::Status};
use protos::mesos::{self, Filters, TimeInfo, Unavailability};

use crate::io::Outbox;
use crate::master::Master;
use crate::offers::{id_to_proto, url_of};
use crate::state::{Agent, AgentKey, Framework, FrameworkKey, InverseOffer, MachineKey, OfferKey};
use crate::timers::Timer;

impl Master {
    /// The machine that an agent is on.
    pub(crate) fn machine_of(&self, agent: &Agent) -> MachineKey {
        MachineKey::new(&agent.info.hostname, &ip_text(*agent.pid.address().ip()))
    }

    /// An agent has come, or has moved: it is under the maintenance of the machine that it is on now.
    pub(crate) fn learn_unavailability(&mut self, key: AgentKey, out: &mut Outbox) {
        let Some(agent) = self.agent(key) else { return };
        let machine = self.maintenance.machine(&self.machine_of(agent));
        let unavailability = machine.and_then(|machine| machine.unavailability);
        if agent.unavailability != unavailability {
            self.set_unavailability(key, unavailability, out);
        }
    }

    /// All that an agent's frameworks were told is void: they are offered and asked anew.
    pub(crate) fn set_unavailability(
        &mut self,
        key: AgentKey,
        unavailability: Option<Unavailability>,
        out: &mut Outbox,
    ) {
        self.rescind_offers_on(key, out);
        let Some(agent) = self.agent_mut(key) else { return };
        agent.unavailability = unavailability;
        agent.inverse_answers.clear();
        let id = agent.id.clone();
        self.allocation.set_unavailability(&id, unavailability);
    }

    /// Asks whom the allocator names: one event for each framework.
    pub(crate) fn make_inverse_offers(&mut self, out: &mut Outbox) {
        let mut batches: BTreeMap<FrameworkKey, (Vec<mesos::InverseOffer>, Vec<String>)> = BTreeMap::new();
        for offering in self.allocation.inverse_offers() {
            match self.book_inverse_offer(&offering) {
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
            self.tell_inverse_offers(framework, offers, pids, out);
        }
    }

    fn book_inverse_offer(&mut self, offering: &InverseOffering) -> Option<(FrameworkKey, mesos::InverseOffer)> {
        let framework = self.framework_by_id(offering.framework.as_str())?;
        let agent = self.agent_by_id(offering.agent.as_str())?;
        let unavailability = self.agent(agent)?.unavailability?;
        let key = OfferKey(self.offers.take_key());
        let timeout = self.policies().offer_timeout;
        let timeout = timeout.map(|span| self.timers.set(self.now + span, Timer::InverseOfferTimeout { offer: key.0 }));
        let offer = InverseOffer { framework, agent, unavailability, timeout };
        let proto = inverse_offer_to_proto(&self.info.id, key, &offer, self.agent(agent)?, self.framework(framework)?);
        Arc::make_mut(&mut self.inverse_offers).insert(key, offer);
        self.snapshot = None;
        Some((framework, proto))
    }

    /// ACCEPT_INVERSE_OFFERS and DECLINE_INVERSE_OFFERS: the answers are kept, and under the filter nothing is asked again.
    /// Unknown offers and those of others are ignored.
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
            let own = self.inverse_offer_by_id(&id.value);
            let own = own.filter(|offer| self.inverse_offers.get(offer).is_some_and(|offer| offer.framework == key));
            let Some(offer) = own.and_then(|offer| self.strike_inverse_offer(offer)) else {
                let text = format!("Ignoring the answer to inverse offer {}: it is not outstanding", id.value);
                out.log(crate::Level::Debug, text);
                continue;
            };
            let (Some(agent), Some(framework)) = (self.agents.get(offer.agent.0), self.frameworks.get(key.0)) else {
                continue;
            };
            self.allocation.answer_inverse(&framework.id, &agent.id, Some(answer), Some(filter));
            let (framework_id, timestamp) = (framework.proto_id(), TimeInfo { nanoseconds: self.now.as_nanos() });
            if let Some(agent) = self.agent_mut(offer.agent) {
                let answer = InverseOfferStatus { status: status as i32, framework_id, timestamp };
                agent.inverse_answers.insert(key, answer);
            }
        }
    }

    /// Takes the inverse offers back that concern a framework or an agent, with a word to the frameworks if `tell`.
    pub(crate) fn drop_inverse_offers(
        &mut self,
        concerned: impl Fn(&InverseOffer) -> bool,
        tell: bool,
        out: &mut Outbox,
    ) {
        if self.inverse_offers.is_empty() {
            return;
        }
        let doomed = self.inverse_offers.iter().filter(|(_, offer)| concerned(offer));
        let doomed: Vec<OfferKey> = doomed.map(|(key, _)| *key).collect();
        for key in doomed {
            let Some(offer) = self.take_inverse_offer(key) else { continue };
            if tell {
                let id = mesos::OfferId { value: self.made_id("O", key.0).into() };
                self.tell_rescind_inverse(offer.framework, id, out);
            }
        }
    }

    /// An inverse offer has not been answered in time: it is taken back, and made again.
    pub(crate) fn inverse_offer_timeout(&mut self, key: OfferKey, out: &mut Outbox) {
        let Some(offer) = self.take_inverse_offer(key) else { return };
        let id = mesos::OfferId { value: self.made_id("O", key.0).into() };
        self.tell_rescind_inverse(offer.framework, id, out);
    }

    /// Takes an inverse offer out of the books without an answer.
    fn take_inverse_offer(&mut self, key: OfferKey) -> Option<InverseOffer> {
        let offer = self.strike_inverse_offer(key)?;
        if let (Some(agent), Some(framework)) = (self.agents.get(offer.agent.0), self.frameworks.get(offer.framework.0))
        {
            self.allocation.answer_inverse(&framework.id, &agent.id, None, None);
        }
        Some(offer)
    }

    fn strike_inverse_offer(&mut self, key: OfferKey) -> Option<InverseOffer> {
        self.snapshot = None;
        let offer = Arc::make_mut(&mut self.inverse_offers).remove(&key)?;
        if let Some(token) = offer.timeout {
            self.timers.cancel(token);
        }
        Some(offer)
    }

    fn inverse_offer_by_id(&self, id: &str) -> Option<OfferKey> {
        let number = id.strip_prefix(self.info.id.as_str())?.strip_prefix("-O")?;
        let key = number.parse().ok().filter(|key: &u64| key.to_string() == number).map(OfferKey)?;
        self.inverse_offers.contains_key(&key).then_some(key)
    }
}

/// An inverse offer as its framework sees it.
pub(crate) fn inverse_offer_to_proto(
    master_id: &str,
    key: OfferKey,
    offer: &InverseOffer,
    agent: &Agent,
    framework: &Framework,
) -> mesos::InverseOffer {
    mesos::InverseOffer {
        id: id_to_proto(master_id, key),
        url: Some(url_of(agent)),
        framework_id: framework.proto_id(),
        slave_id: Some(agent.proto_id()),
        unavailability: offer.unavailability,
        resources: Vec::new(),
    }
}
