//! Roles: their tree, their weights, and their reserved and used resources.
//!
//! A role exists while a framework is subscribed to it, it has a weight other than 1 or a quota, resources are reserved
//! for it, or a role below it exists. Shares are computed in the tree.

use std::collections::BTreeMap;

use resources::{Limits, Quantities, Resources, Role};
use slab::Slab;

use crate::account::{Account, Accounts};
use crate::tree::{NodeIx, ROOT, Tree};
use crate::{Quota, Weight};

/// Index of a role in the slab.
pub(crate) type RoleIx = u32;

#[derive(Debug)]
pub(crate) struct RoleState {
    pub(crate) role: Role,
    pub(crate) parent: Option<RoleIx>,
    pub(crate) node: NodeIx,
    pub(crate) weight: Weight,
    /// Number of roles directly below.
    children: u32,
    /// Number of clients in this role, without those below.
    clients: u32,
    pub(crate) role_sums: RoleSums,
    /// Account of the role's quota. Boxed, since most roles have none.
    account: Option<Box<Account>>,
}

impl RoleState {
    /// Returns the role's quota; the default one if none was set.
    pub(crate) fn quota(&self) -> &Quota {
        static NONE: Quota = Quota { guarantees: Quantities::new(), limits: Limits::new() };
        self.account.as_deref().map_or(&NONE, |account| &account.quota)
    }

    /// Returns the account of the role's quota, if it has one.
    pub(crate) fn account(&self) -> Option<&Account> {
        self.account.as_deref()
    }
}

/// Sums over a role and all roles below it. Shared resources count once per agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoleSums {
    /// Reserved quantities on all agents, used or not.
    pub(crate) reserved: Quantities,
    /// Reserved quantities that are offered or used.
    pub(crate) held_reserved: Quantities,
    /// Offered or used quantities that are neither reserved nor revocable.
    pub(crate) held_unreserved: Quantities,
    /// Used quantities that are neither reserved nor revocable.
    pub(crate) used_unreserved: Quantities,
}

impl RoleSums {
    /// Returns the quantities that count against quota when offers are made: reservations, held or not, and other
    /// resources that are offered or used.
    pub(crate) fn charged(&self) -> Quantities {
        self.reserved.clone() + &self.held_unreserved
    }

    /// Returns the consumption as shown to operators: [`RoleSums::charged`] without offered resources.
    pub(crate) fn consumed(&self) -> Quantities {
        self.reserved.clone() + &self.used_unreserved
    }
}

/// All roles that exist, with their accounts.
#[derive(Debug, Default)]
pub(crate) struct Roles {
    slab: Slab<RoleState>,
    by_name: BTreeMap<Role, RoleIx>,
    pub(crate) accounts: Accounts,
}

impl Roles {
    /// Returns an empty table. `minimum` is the minimum offer of frameworks that set none of their own.
    pub(crate) fn new(minimum: Vec<Quantities>) -> Roles {
        Roles { accounts: Accounts { minimum, ..Accounts::default() }, ..Roles::default() }
    }

    /// Returns a role by an index that may be stale.
    pub(crate) fn try_get(&self, ix: RoleIx) -> Option<&RoleState> {
        self.slab.get(ix as usize)
    }

    pub(crate) fn get(&self, ix: RoleIx) -> &RoleState {
        &self.slab[ix as usize]
    }

    pub(crate) fn find(&self, role: &Role) -> Option<RoleIx> {
        self.by_name.get(role).copied()
    }

    /// Returns all roles that exist, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (RoleIx, &RoleState)> {
        self.by_name.values().map(|&ix| (ix, self.get(ix)))
    }

    /// Returns a role, which is created with its ancestors if it does not exist.
    pub(crate) fn ensure(&mut self, role: &Role, tree: &mut Tree) -> RoleIx {
        if let Some(ix) = self.find(role) {
            return ix;
        }
        let mut missing = vec![role.clone()];
        missing.extend(role.ancestors().take_while(|a| !self.by_name.contains_key(a)));
        let mut parent = missing.last().and_then(Role::parent).and_then(|p| self.find(&p));
        let mut made = 0;
        for role in missing.into_iter().rev() {
            made = self.add(role, parent, tree);
            parent = Some(made);
        }
        made
    }

    fn add(&mut self, role: Role, parent: Option<RoleIx>, tree: &mut Tree) -> RoleIx {
        let node = tree.add_role(parent.map_or(ROOT, |p| self.get(p).node), role.as_str());
        if let Some(parent) = parent {
            self.slab[parent as usize].children += 1;
        }
        let state = RoleState {
            role: role.clone(),
            parent,
            node,
            weight: Weight::ONE,
            children: 0,
            clients: 0,
            role_sums: RoleSums::default(),
            account: None,
        };
        let ix = self.slab.insert(state) as RoleIx;
        self.by_name.insert(role, ix);
        ix
    }

    /// Removes a role, and then its ancestors, as far as they have no reason to exist.
    pub(crate) fn drop_unused(&mut self, ix: RoleIx, tree: &mut Tree) {
        let mut next = Some(ix);
        while let Some(ix) = next {
            let state = &self.slab[ix as usize];
            if state.clients > 0
                || state.children > 0
                || state.weight != Weight::ONE
                || state.account.is_some()
                || !state.role_sums.reserved.is_empty()
            {
                return;
            }
            let state = self.slab.remove(ix as usize);
            tree.remove_role(state.node);
            self.by_name.remove(&state.role);
            if let Some(parent) = state.parent {
                self.slab[parent as usize].children -= 1;
            }
            next = state.parent;
        }
    }

    pub(crate) fn count_clients(&mut self, ix: RoleIx, more: u32, less: u32) {
        let state = &mut self.slab[ix as usize];
        state.clients = state.clients + more - less;
    }

    pub(crate) fn set_weight(&mut self, ix: RoleIx, weight: Weight, tree: &mut Tree) {
        self.slab[ix as usize].weight = weight;
        tree.set_weight(self.get(ix).node, weight.value());
    }

    /// Sets a role's quota; the default one removes it.
    pub(crate) fn set_quota(&mut self, ix: RoleIx, quota: Quota) {
        let state = &mut self.slab[ix as usize];
        let mut new = (!quota.is_default()).then(|| Box::new(Account::new(quota)));
        if state.parent.is_none() {
            self.accounts.replace(ix, state.account.as_deref(), new.as_deref_mut(), state.role_sums.charged());
        }
        state.account = new;
    }

    /// Records that limits have restricted an offer to a framework of this role.
    pub(crate) fn mark_limited(&mut self, ix: RoleIx) {
        if let Some(account) = &mut self.slab[ix as usize].account {
            account.mark_limited();
        }
    }

    /// Returns the top-level role above a role, or the role itself: the one whose quota counts.
    pub(crate) fn top(&self, ix: RoleIx) -> RoleIx {
        let mut top = ix;
        while let Some(parent) = self.get(top).parent {
            top = parent;
        }
        top
    }

    /// Changes the sums of a role and of all roles above it.
    pub(crate) fn change_sums(&mut self, ix: RoleIx, mut change: impl FnMut(RoleIx, &mut RoleSums)) {
        let mut next = Some(ix);
        while let Some(ix) = next {
            let state = &mut self.slab[ix as usize];
            change(ix, &mut state.role_sums);
            next = state.parent;
            if next.is_none()
                && let Some(account) = &mut state.account
            {
                self.accounts.charge(ix, account, state.role_sums.charged());
            }
        }
    }

    /// Adds the reservations of an agent to the sums or, with `gone`, subtracts them.
    pub(crate) fn count_reservations(&mut self, total: &Resources, gone: bool, tree: &mut Tree) {
        for (role, reserved) in total.reservations() {
            let amounts = reserved.quantities();
            let ix = self.ensure(&role, tree);
            self.change_sums(
                ix,
                |_, role_sums| if gone { role_sums.reserved -= &amounts } else { role_sums.reserved += &amounts },
            );
            self.drop_unused(ix, tree);
        }
    }
}
