//! Finds the offers that prevent quotas from being met. It rescinds none; the caller does.

use std::collections::BTreeMap;

use base::{AgentId, FrameworkId};
use resources::{Quantities, Role};

use crate::Quota;
use crate::allocator::Allocator;
use crate::headroom::counted;
use crate::roles::RoleIx;

/// An offer that could be rescinded.
struct Offered {
    top: RoleIx,
    /// Quantities of the offer that count for quota and are not reserved.
    amounts: Quantities,
    holder: (FrameworkId, Role, AgentId),
}

/// Quantities that a role would consume after the rescinds so far, and its quota.
struct Account {
    charged: Quantities,
    quota: Quota,
}

impl Account {
    fn unmet(&self) -> Quantities {
        self.quota.guarantees.saturating_sub(&self.charged)
    }
}

/// Returns the offers to rescind; see [`Allocator::offers_to_rescind_for_quota`].
pub(crate) fn for_quota(allocator: &Allocator) -> Vec<(FrameworkId, Role, AgentId)> {
    let mut accounts = accounts(allocator);
    if accounts.is_empty() {
        return Vec::new();
    }
    let mut available = allocator.headroom().available;
    let (mut rescinded, mut kept) = (Vec::new(), Vec::new());
    for offer in offers(allocator) {
        let above = |account: &Account| {
            let limits = &account.quota.limits;
            limits
                .iter()
                .any(|(name, limit)| account.charged.get(&name) > limit && offer.amounts.get(&name).is_positive())
        };
        match accounts.get_mut(&offer.top) {
            Some(account) if above(account) => {
                account.charged -= &offer.amounts;
                available += &offer.amounts;
                rescinded.push(offer.holder);
            }
            _ => kept.push(offer),
        }
    }
    for offer in kept {
        if helps(&offer, &mut accounts, &mut available) {
            rescinded.push(offer.holder);
        }
    }
    rescinded
}

/// Returns whether rescinding an offer reduces what guarantees lack of free resources. If so, the sums are updated.
fn helps(offer: &Offered, accounts: &mut BTreeMap<RoleIx, Account>, available: &mut Quantities) -> bool {
    let required = |accounts: &BTreeMap<RoleIx, Account>| {
        accounts.values().fold(Quantities::new(), |sum, account| sum + &account.unmet())
    };
    let before = required(accounts).saturating_sub(available);
    if before.is_empty() || accounts.get(&offer.top).is_some_and(|account| !account.unmet().is_empty()) {
        return false;
    }
    if let Some(account) = accounts.get_mut(&offer.top) {
        account.charged -= &offer.amounts;
    }
    let free = available.clone() + &offer.amounts;
    let after = required(accounts).saturating_sub(&free);
    if before.contains(&after) && before != after {
        *available = free;
        return true;
    }
    if let Some(account) = accounts.get_mut(&offer.top) {
        account.charged += &offer.amounts;
    }
    false
}

fn accounts(allocator: &Allocator) -> BTreeMap<RoleIx, Account> {
    let with_quota = allocator.roles.iter().filter(|(_, state)| state.parent.is_none() && !state.quota().is_default());
    with_quota
        .map(|(ix, state)| (ix, Account { charged: state.role_sums.charged(), quota: state.quota().clone() }))
        .collect()
}

/// Returns all outstanding offers, agent by agent.
fn offers(allocator: &Allocator) -> impl Iterator<Item = Offered> {
    allocator.agents.iter().flat_map(move |(_, agent)| {
        let offered = agent.holdings().filter(|(_, holding)| !holding.offered().is_empty());
        offered.map(move |(client, holding)| {
            let state = allocator.clients.get(client);
            let (framework, role) = allocator.names(client);
            Offered {
                top: allocator.roles.top(state.role),
                amounts: counted(holding.offered()),
                holder: (framework, role, agent.id.clone()),
            }
        })
    })
}
