//! Deliberately broken masters, which checkers must detect.
//!
//! It is for tests of the checkers, here and in the laboratory.

use std::sync::Arc;

use allocator::Quota;
use resources::{Resource, Resources, Role};

use crate::Master;
use crate::state::Offer;

/// Parts of a master's state that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakage {
    /// The resources that an agent's tasks use are not counted.
    Used,
    /// The offered resources of an agent are not counted.
    Offered,
    /// The master and the allocator disagree whether an agent is active.
    Active,
    /// A task is missing in the book of its agent.
    TaskOfAgent,
    /// A task is missing in the book of its framework.
    TaskOfFramework,
    /// An offer is missing in the book of its framework.
    Offer,
    /// A framework cannot be found by its id.
    Id,
    /// The allocator does not know the quotas that are set.
    Quota,
    /// Resources that are reserved for one role are offered to another.
    Reservation,
}

impl Breakage {
    /// All breakages.
    pub const ALL: [Breakage; 9] = [
        Breakage::Used,
        Breakage::Offered,
        Breakage::Active,
        Breakage::TaskOfAgent,
        Breakage::TaskOfFramework,
        Breakage::Offer,
        Breakage::Id,
        Breakage::Quota,
        Breakage::Reservation,
    ];

    /// Breaks a master in this way, if it has something to break.
    pub fn strike(self, master: &mut Master) {
        match self {
            Breakage::Used => {
                let agents = master.agents.breakable().0;
                let key = agents.iter().find(|(_, agent)| !agent.used.is_empty()).map(|(key, _)| key);
                if let Some(agent) = key.and_then(|key| agents.get_mut(key)) {
                    agent.used = Resources::new();
                }
            }
            Breakage::Offered => {
                let agents = master.agents.breakable().0;
                let key = agents.iter().find(|(_, agent)| !agent.offered.is_empty()).map(|(key, _)| key);
                if let Some(agent) = key.and_then(|key| agents.get_mut(key)) {
                    agent.offered = Resources::new();
                }
            }
            Breakage::Active => {
                let agent = master.agents.values().next().map(|agent| (agent.id.clone(), agent.active()));
                if let Some((id, active)) = agent {
                    master.allocation.set_agent_active(&id, !active);
                }
            }
            Breakage::TaskOfAgent => {
                master.agents.breakable().1.map(|tasks| tasks.pop_first());
            }
            Breakage::TaskOfFramework => {
                master.frameworks.breakable().1.into_iter().for_each(|tasks| tasks.clear());
            }
            Breakage::Offer => {
                let (offers, by_framework) = master.offers.breakable();
                offers.values().next().and_then(|offer| by_framework.remove(&offer.framework));
            }
            Breakage::Id => {
                let id = master.frameworks.values().next().map(|framework| framework.id.clone());
                id.and_then(|id| master.frameworks.breakable().0.remove(&id));
            }
            Breakage::Quota => {
                for role in master.quotas.keys() {
                    master.allocation.set_quota(role, Quota::default());
                }
            }
            Breakage::Reservation => {
                let is_reserved = |(_, offer): &(u64, &Arc<Offer>)| offer.resources.iter().any(Resource::is_reserved);
                let found = master.offers.rows().iter().find(is_reserved).map(|(key, offer)| (key, Arc::clone(offer)));
                if let (Some((key, offer)), Ok(stranger)) = (found, Role::parse("stranger")) {
                    let others = offer.resources.unallocated().allocated(&stranger);
                    master.agents.remove_offered(offer.agent, &offer.resources);
                    master.agents.add_offered(offer.agent, &others);
                    if let Some(row) = master.offers.breakable().0.get_mut(key) {
                        row.resources = others;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::check_invariants;
    use crate::testing::Script;

    /// Returns a master with two agents, of which one has a task, and an offer.
    fn master_at_work() -> Script {
        let mut script = Script::new();
        for line in [
            "register a cpus:4;mem:4096",
            "subscribe f",
            "accept f m1-O0 on=a launch=t1:cpus:1;mem:64 refuse=3600",
            "register b cpus:4;mem:4096",
        ] {
            script.line(line);
        }
        script
    }

    #[test]
    fn books_that_do_not_agree_are_noticed() {
        // An unenforced quota or reservation is the same in all tables. The laboratory detects it by checking what is
        // offered.
        let elsewhere = [Breakage::Quota, Breakage::Reservation];
        for breakage in Breakage::ALL.into_iter().filter(|breakage| !elsewhere.contains(breakage)) {
            let mut script = master_at_work();
            let master = script.master();
            assert_eq!(check_invariants(master), Ok(()));
            assert!(!master.offers.rows().is_empty() && master.agents.values().any(|agent| !agent.used.is_empty()));
            breakage.strike(master);
            assert!(check_invariants(master).is_err(), "{breakage:?} is not noticed");
        }
    }
}
