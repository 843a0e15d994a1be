//! What quota leaves each role, kept up to date while the books change, and which roles may be offered more than before.
//!
//! An account belongs to a role that was given a quota; only those of top-level roles count, for all roles below them. It knows
//! nothing of agents: what is free, and what of that is set aside, is `headroom.rs`.

use std::collections::BTreeSet;

use resources::{Amount, Name, Quantities};

use crate::Quota;
use crate::roles::RoleIx;

/// What a role's quota comes to at present.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) quota: Quota,
    /// Reserved for the role, or held by it beside that.
    pub(crate) charged: Quantities,
    /// What is missing to its guarantees.
    pub(crate) unmet: Quantities,
    /// Its limits leave less than the least offer, whatever an agent has: see [`Accounts::minimum`].
    pub(crate) capped: bool,
    /// Since its frameworks were last asked about everything, limits have kept something from one of them.
    short: bool,
}

impl Account {
    pub(crate) fn new(quota: Quota) -> Account {
        Account { quota, charged: Quantities::new(), unmet: Quantities::new(), capped: false, short: false }
    }

    /// Limits have kept something from a framework of this role.
    pub(crate) fn note_short(&mut self) {
        self.short = true;
    }

    /// What the limit of a name leaves; none: it has no limit.
    pub(crate) fn room(&self, name: &Name) -> Option<Amount> {
        Some(self.quota.limits.get(name)?.minus_floored(self.charged.get(name)))
    }
}

/// What the accounts of all top-level roles come to.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// How many roles have one.
    pub(crate) count: usize,
    /// How many of these guarantee something.
    pub(crate) guaranteed: usize,
    /// Missing to all guarantees.
    pub(crate) required: Quantities,
    /// The roles to which something is missing.
    pub(crate) unmet: BTreeSet<RoleIx>,
    /// How many roles are capped.
    pub(crate) capped: usize,
    /// Roles whose limits leave more than when they were asked last; roles to which more is missing than then.
    pub(crate) roomier: BTreeSet<RoleIx>,
    pub(crate) needier: BTreeSet<RoleIx>,
    /// The least offer of those who set none of their own.
    pub(crate) minimum: Vec<Quantities>,
}

impl Accounts {
    /// A role's account is opened or closed.
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
        // Whatever the change is, those who were kept from something may be able to have it now.
        self.roomier.insert(ix);
        self.needier.insert(ix);
        if let Some(new) = new {
            self.count += 1;
            self.guaranteed += usize::from(!new.quota.guarantees.is_empty());
            new.charged = charged;
            self.refresh(ix, new);
        }
    }

    /// What a role consumes has changed.
    pub(crate) fn charge(&mut self, ix: RoleIx, account: &mut Account, charged: Quantities) {
        if account.charged == charged {
            return;
        }
        let fell = |name: &Name| charged.get(name) < account.charged.get(name);
        if account.short && account.quota.limits.iter().any(|(name, _)| fell(&name)) {
            account.short = false;
            self.roomier.insert(ix);
        }
        account.charged = charged;
        self.refresh(ix, account);
    }

    fn refresh(&mut self, ix: RoleIx, account: &mut Account) {
        let unmet = account.quota.guarantees.saturating_sub(&account.charged);
        if unmet != account.unmet {
            if !account.unmet.contains(&unmet) {
                self.needier.insert(ix);
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
        // One that is capped is not asked at all, which keeps everything from it.
        account.short |= capped;
        self.capped = self.capped + usize::from(capped) - usize::from(account.capped);
        account.capped = capped;
    }

    fn is_capped(&self, account: &Account) -> bool {
        let lacks = |(name, least): (Name, Amount)| account.room(&name).is_some_and(|room| room < least);
        !self.minimum.is_empty() && self.minimum.iter().all(|least| least.iter().any(lacks))
    }
}
