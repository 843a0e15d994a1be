//! Lookup of outstanding offers by framework, agent and role, which mean the same in another master.

use base::{AgentId, FrameworkId};
use resources::Role;

use crate::master::Master;
use crate::state::OfferKey;

impl Master {
    /// Returns framework, agent and role of an outstanding offer.
    pub fn offer_owner(&self, id: &str) -> Option<(&FrameworkId, &AgentId, &Role)> {
        let (_, offer) = self.offers.find(id)?;
        Some((&self.framework(offer.framework)?.id, &self.agent(offer.agent)?.id, &offer.role))
    }

    /// Returns the id of an outstanding offer to a framework for a role on an agent; the oldest if there are several.
    pub fn find_equal_offer(&self, framework: &FrameworkId, agent: &AgentId, role: &Role) -> Option<String> {
        let (framework, agent) = (self.framework_by_id(framework.as_str())?, self.agent_by_id(agent.as_str())?);
        let is_like = |key: &OfferKey| {
            let offer = self.offers.get(*key);
            offer.is_some_and(|offer| offer.framework == framework && offer.role == *role)
        };
        let key = self.offers.on_agent(agent).into_iter().find(is_like)?;
        Some(self.offers.id(key).value.into())
    }
}
