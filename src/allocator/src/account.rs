//! Quota accounts of roles: what quota leaves each role, updated with every allocation, and which roles may be offered
//! more than before.
//!
//! An account belongs to a role with a quota; only those of top-level roles count, for all roles below them. Agents are
//! not known here: free and withheld amounts are in `headroom.rs`.

use std::collections::BTreeSet;

use resources::{Amount, Name, Quantities};

use crate::Quota;
use crate::roles::RoleIx;

/// State of a role's quota.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) quota: Quota,
    /// Quantities that are reserved for the role, and other quantities that are allocated to it.
    pub(crate) charged: Quantities,
    /// Quantities that the role lacks to its guarantees.
    pub(crate) unmet: Quantities,
    /// Whether the limits leave less than the minimum offer on any agent: see [`Accounts::minimum`].
    pub(crate) capped: bool,
    /// Whether limits have restricted an offer to a framework of the role since all agents were last visited for it.
    is_limited: bool,
}

impl Account {
    pub(crate) fn new(quota: Quota) -> Account {
        Account { quota, charged: Quantities::new(), unmet: Quantities::new(), capped: false, is_limited: false }
    }

    /// Records that limits have restricted an offer to a framework of this role.
    pub(crate) fn mark_limited(&mut self) {
        self.is_limited = true;
    }

    /// Returns the amount of a resource that its limit leaves, or `None` if it has no limit.
    pub(crate) fn room(&self, name: &Name) -> Option<Amount> {
        Some(self.quota.limits.get(name)?.minus_floored(self.charged.get(name)))
    }
}

/// Totals over the accounts of all top-level roles.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// Number of roles with an account.
    pub(crate) count: usize,
    /// Number of roles with a guarantee.
    pub(crate) guaranteed: usize,
    /// Sum of the quantities that roles lack to their guarantees.
    pub(crate) required: Quantities,
    /// Roles with an unmet guarantee.
    pub(crate) unmet: BTreeSet<RoleIx>,
    /// Number of capped roles.
    pub(crate) capped: usize,
    /// Roles whose limits leave more (`raised_limits`), or whose guarantees lack more (`raised_shortfalls`), than at
    /// their last visit.
    pub(crate) raised_limits: BTreeSet<RoleIx>,
    pub(crate) raised_shortfalls: BTreeSet<RoleIx>,
    /// Minimum offer of frameworks that set none of their own.
    pub(crate) minimum: Vec<Quantities>,
}

impl Accounts {
    /// Adds, replaces or removes a role's account.
    pub(crate) fn replace(
        &mut self,
        ix: RoleIx,
        old: Option<&Account>,
        new: Option<&mut Account>,
        charged: Quantities,
    ) {
        if let Some(old) = old {
            self.count -= 1;
            self.guaranteed -= usize::from(!old.quota.guarantees.is_empty());
            self.capped -= usize::from(old.capped);
            self.required -= &old.unmet;
            self.unmet.remove(&ix);
        }
        // With any change, frameworks that quota restricted may receive offers now.
        self.raised_limits.insert(ix);
        self.raised_shortfalls.insert(ix);
        if let Some(new) = new {
            self.count += 1;
            self.guaranteed += usize::from(!new.quota.guarantees.is_empty());
            new.charged = charged;
            self.refresh(ix, new);
        }
    }

    /// Updates the quantities that a role consumes.
    pub(crate) fn charge(&mut self, ix: RoleIx, account: &mut Account, charged: Quantities) {
        if account.charged == charged {
            return;
        }
        let fell = |name: &Name| charged.get(name) < account.charged.get(name);
        if account.is_limited && account.quota.limits.iter().any(|(name, _)| fell(&name)) {
            account.is_limited = false;
            self.raised_limits.insert(ix);
        }
        account.charged = charged;
        self.refresh(ix, account);
    }

    fn refresh(&mut self, ix: RoleIx, account: &mut Account) {
        let unmet = account.quota.guarantees.saturating_sub(&account.charged);
        if unmet != account.unmet {
            if !account.unmet.contains(&unmet) {
                self.raised_shortfalls.insert(ix);
            }
            self.required += &unmet;
            self.required -= &account.unmet;
            match unmet.is_empty() {
                true => self.unmet.remove(&ix),
                false => self.unmet.insert(ix),
            };
            account.unmet = unmet;
        }
        let capped = self.is_capped(account);
        // A capped role is not visited at all, so all resources are withheld from it.
        account.is_limited |= capped;
        self.capped = self.capped + usize::from(capped) - usize::from(account.capped);
        account.capped = capped;
    }

    fn is_capped(&self, account: &Account) -> bool {
        let lacks = |(name, least): (Name, Amount)| account.room(&name).is_some_and(|room| room < least);
        !self.minimum.is_empty() && self.minimum.iter().all(|least| least.iter().any(lacks))
    }
}
