//! Quota: guarantee and limit of a role with all roles below it (docs/mesos/roles.md).
//!
//! A role consumes its reservations and those below it, allocated or not, and what its frameworks hold beside them.
//! This file has the quotas and what they amount to; the master checks whether a quota may be set.

use std::collections::BTreeMap;

use base::{AgentId, FrameworkId};
use resources::{Limits, Quantities, Role};

use crate::allocator::Allocator;
use crate::headroom::counted;

/// Guarantee and limit of a role with all roles below it. The default has neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Set aside for the role until it has it. A name that is not there is not guaranteed.
    pub guarantees: Quantities,
    /// The most that the role is offered, with what it consumes already. A name that is not there is unlimited; a limit
    /// of 0 leaves the role its reservations.
    pub limits: Limits,
}

impl Quota {
    /// The quota of the calls SET_QUOTA and `POST /quota`: the guarantee is the limit, too (MNT-32).
    #[must_use]
    pub fn legacy(guarantees: Quantities) -> Quota {
        Quota { limits: guarantees.iter().collect(), guarantees }
    }

    /// Guarantees nothing and limits nothing: the quota of a role that was given none.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.guarantees.is_empty() && self.limits.is_empty()
    }
}

/// What the whole cluster can still give away beside reservations, and what of it is set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadroomView {
    /// Free on all agents, and neither reserved nor revocable.
    pub available: Quantities,
    /// What roles are guaranteed and do not consume yet. Roles without such a guarantee are offered no more than what
    /// `available` exceeds this by.
    pub required: Quantities,
}

impl Allocator {
    /// Sets a role's quota; the default one removes it. The next run makes the offers that it allows; offers that are
    /// out stay (see [`Allocator::in_the_way_of_quota`]).
    ///
    /// Quota of a role counts for all roles below it. Mesos sets it on top-level roles only, and so should the caller:
    /// quota of a nested role is kept and shown, and has no effect.
    pub fn set_quota(&mut self, role: &Role, quota: Quota) {
        let ix = self.roles.ensure(role, &mut self.tree);
        let kept = self.roles.accounts.guaranteed > 0;
        self.roles.set_quota(ix, quota);
        if kept != (self.roles.accounts.guaranteed > 0) {
            self.recount_available();
        }
        self.roles.drop_unused(ix, &mut self.tree);
    }

    /// A role's quota; the default one if it was given none.
    #[must_use]
    pub fn quota(&self, role: &Role) -> Quota {
        self.roles.find(role).map_or_else(Quota::default, |ix| self.roles.get(ix).quota().clone())
    }

    /// All quotas that were set, by role.
    #[must_use]
    pub fn quotas(&self) -> BTreeMap<Role, Quota> {
        let set = self.roles.iter().filter(|(_, state)| !state.quota().is_default());
        set.map(|(_, state)| (state.role.clone(), state.quota().clone())).collect()
    }

    /// What all agents have, also those that may not be offered now, without what is revocable: guarantees should not
    /// exceed it in all (MNT-30). Shared resources count once per agent.
    #[must_use]
    pub fn capacity(&self) -> Quantities {
        let lasting = |total: &resources::Resources| total.non_revocable().quantities();
        self.agents.iter().fold(Quantities::new(), |sum, (_, agent)| sum + &lasting(&agent.total))
    }

    /// What can still be given away, and what of it is set aside for guarantees.
    #[must_use]
    pub fn headroom(&self) -> HeadroomView {
        let available = match self.roles.accounts.guaranteed {
            0 => self.agents.iter().fold(Quantities::new(), |sum, (_, agent)| sum + &counted(&agent.free)),
            _ => self.available.clone(),
        };
        HeadroomView { available, required: self.roles.accounts.required.clone() }
    }

    /// The offers that keep quotas from being met, in the order in which they should be rescinded (ALL-90): first those
    /// that make a role exceed its limit, then those of roles that have more than they are guaranteed, agent by agent,
    /// until what is free covers the guarantees that are not met.
    ///
    /// An entry means: rescind what this framework is offered, in this role, on this agent. Nothing is changed by
    /// asking; the caller gives the resources back by [`Allocator::recover`], without a filter.
    #[must_use]
    pub fn in_the_way_of_quota(&self) -> Vec<(FrameworkId, Role, AgentId)> {
        crate::rescinds::for_quota(self)
    }
}
