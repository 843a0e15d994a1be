//! Quota: guarantee and limit of a role with all roles below it (docs/mesos/roles.md).
//!
//! A role consumes its reservations and those below it, allocated or not, and the other resources that its frameworks
//! hold. This file has the quotas and sums about them. `headroom.rs` enforces limits and withholds guaranteed resources
//! in an allocation run, `guarantees.rs` serves guarantees first; the master checks whether a quota may be set.

use std::collections::BTreeMap;

use base::{AgentId, FrameworkId};
use resources::{Limits, Quantities, Role};

use crate::allocator::Allocator;
use crate::headroom::counted;

/// Guarantee and limit of a role with all roles below it. The default has neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Quantities that are withheld for the role until it has them. Names that are missing are not guaranteed.
    pub guarantees: Quantities,
    /// Largest quantities that the role is offered, including what it consumes already. Names that are missing are
    /// unlimited; a limit of 0 leaves the role its reservations.
    pub limits: Limits,
}

impl Quota {
    /// Returns the quota of the calls SET_QUOTA and `POST /quota`: the guarantee is the limit, too (MNT-32).
    #[must_use]
    pub fn legacy(guarantees: Quantities) -> Quota {
        Quota { limits: guarantees.iter().collect(), guarantees }
    }

    /// Returns whether the quota has neither guarantees nor limits, as that of a role for which none was set.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.guarantees.is_empty() && self.limits.is_empty()
    }
}

/// Unreserved resources of the cluster that can still be offered, and the share of them that is withheld.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadroomView {
    /// Free quantities on all agents that are neither reserved nor revocable.
    pub available: Quantities,
    /// Guaranteed quantities that roles do not consume yet. Roles without such a guarantee are offered no more than the
    /// excess of `available` over this.
    pub required: Quantities,
}

impl Allocator {
    /// Sets a role's quota; the default one removes it. The next run makes the offers that it allows. Outstanding
    /// offers stay (see [`Allocator::offers_to_rescind_for_quota`]).
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

    /// Returns a role's quota; the default one if none was set.
    #[must_use]
    pub fn quota(&self, role: &Role) -> Quota {
        self.roles.find(role).map_or_else(Quota::default, |ix| self.roles.get(ix).quota().clone())
    }

    /// Returns all quotas that were set, by role.
    #[must_use]
    pub fn quotas(&self) -> BTreeMap<Role, Quota> {
        let set = self.roles.iter().filter(|(_, state)| !state.quota().is_default());
        set.map(|(_, state)| (state.role.clone(), state.quota().clone())).collect()
    }

    /// Returns the non-revocable quantities of all agents, including inactive ones. Guarantees should not exceed them
    /// in total (MNT-30). Shared resources count once per agent.
    #[must_use]
    pub fn capacity(&self) -> Quantities {
        let lasting = |total: &resources::Resources| total.non_revocable().quantities();
        self.agents.iter().fold(Quantities::new(), |sum, (_, agent)| sum + &lasting(&agent.total))
    }

    /// Returns the quantities that can still be offered, and those of them that are withheld for guarantees.
    #[must_use]
    pub fn headroom(&self) -> HeadroomView {
        let available = match self.roles.accounts.guaranteed {
            0 => self.agents.iter().fold(Quantities::new(), |sum, (_, agent)| sum + &counted(&agent.free)),
            _ => self.available.clone(),
        };
        HeadroomView { available, required: self.roles.accounts.required.clone() }
    }

    /// Returns the offers that prevent quotas from being met, in the order in which they should be rescinded (ALL-90):
    /// first those that make a role exceed its limit, then those of roles that have more than their guarantees, agent
    /// by agent, until the free resources cover the unsatisfied guarantees.
    ///
    /// An entry stands for all that a framework is offered in a role on an agent. The call changes nothing; the caller
    /// returns the resources by [`Allocator::recover`], without a filter.
    #[must_use]
    pub fn offers_to_rescind_for_quota(&self) -> Vec<(FrameworkId, Role, AgentId)> {
        crate::rescinds::for_quota(self)
    }
}
