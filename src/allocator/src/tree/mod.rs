//! The sorter: roles and frameworks as one tree, kept in order of dominant share while allocations change.
//!
//! ```text
//!     root ── role "a" ──┬── role "a/b" ── seat "a/b/." ── clients (frameworks in a/b)
//!                        └── seat "a/." ── clients (frameworks in a)
//! ```
//!
//! A role's own frameworks sit below its *seat*, which competes with the role's sub-roles: that is Mesos's virtual
//! leaf. Every node keeps what is allocated at or below it, how often something was, and the order of those children
//! that have an active client; a booking re-sorts one path, in O(depth x log children). When the cluster's total
//! changes, all shares do, and the orders are made anew before the next walk.
//!
//! It does not depend on agents, filters or offers: the allocation run that walks it decides what to offer.

mod fair;
mod levels;
mod order;
mod shares;
mod sorted;
mod walk;

use std::collections::BTreeSet;
use std::sync::Arc;

use resources::{Amount, Name, Quantities};

use crate::bits::Bits;
pub use levels::Level;
pub(crate) use order::Share;
use order::{Key, Order};

/// Index of a node in the tree's slab.
pub(crate) type NodeIx = u32;

/// Root of the tree: the cluster.
pub(crate) const ROOT: NodeIx = 0;

/// Kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A role, with the node that is the parent of its own frameworks; the root's seat is itself.
    Role { seat: NodeIx },
    /// Parent of a role's own frameworks.
    Seat,
    /// A framework in a role, with the number that the caller has given it.
    Client(u32),
    /// A free slot of the slab.
    Free,
}

#[derive(Debug)]
struct Node {
    kind: Kind,
    parent: NodeIx,
    /// Name that breaks ties: the role's path, the seat's (`a/.`), or the framework's id.
    name: Arc<str>,
    weight: f64,
    /// Quantities offered and used at or below this node. Shared resources count once per agent, which the caller
    /// ensures.
    allocated: Quantities,
    /// Number of allocations that were made at or below this node.
    count: u64,
    /// Number of clients at or below the node, and the number of active ones among them.
    clients: u32,
    active: u32,
    /// Key of the node in its parent's order; `None` without an active client.
    key: Option<Key>,
    order: Order,
}

/// Tree of roles and frameworks in order of dominant share; see the module documentation.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    free: Vec<NodeIx>,
    total: Quantities,
    /// Total quantities without names that do not count for shares.
    counted: Quantities,
    excluded: BTreeSet<Name>,
    /// Active clients, by the caller's numbers.
    listed: Bits,
    sorting: sorted::Sorting,
    /// Whether the total or a weight has changed, so that all orders must be computed again.
    stale: bool,
}

impl Tree {
    pub(crate) fn new(excluded: BTreeSet<Name>) -> Tree {
        let mut tree = Tree {
            nodes: Vec::new(),
            free: Vec::new(),
            total: Quantities::default(),
            counted: Quantities::default(),
            excluded,
            listed: Bits::default(),
            sorting: sorted::Sorting::default(),
            stale: false,
        };
        tree.add(Kind::Role { seat: ROOT }, ROOT, "".into());
        tree
    }

    fn add(&mut self, kind: Kind, parent: NodeIx, name: Arc<str>) -> NodeIx {
        let node = Node {
            kind,
            parent,
            name,
            weight: 1.0,
            allocated: Quantities::default(),
            count: 0,
            clients: 0,
            active: 0,
            key: None,
            order: Order::default(),
        };
        match self.free.pop() {
            Some(ix) => {
                self.nodes[ix as usize] = node;
                ix
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as NodeIx
            }
        }
    }

    /// Adds a role below another one (or below [`ROOT`]), with its seat.
    pub(crate) fn add_role(&mut self, parent: NodeIx, path: &str) -> NodeIx {
        let role = self.add(Kind::Role { seat: ROOT }, parent, path.into());
        let seat = self.add(Kind::Seat, role, format!("{path}/.").into());
        self.nodes[role as usize].kind = Kind::Role { seat };
        role
    }

    /// Removes a role and its seat. The caller has removed its clients and sub-roles before.
    pub(crate) fn remove_role(&mut self, role: NodeIx) {
        if let Kind::Role { seat } = self.nodes[role as usize].kind {
            self.release(seat);
            self.release(role);
        }
    }

    /// Adds an inactive client to a role. `client` is the caller's number for it.
    pub(crate) fn add_client(&mut self, role: NodeIx, name: &Arc<str>, client: u32) -> NodeIx {
        let seat = match self.nodes[role as usize].kind {
            Kind::Role { seat } => seat,
            _ => role,
        };
        let node = self.add(Kind::Client(client), seat, name.clone());
        self.nodes[node as usize].clients = 1;
        for at in self.above(node) {
            self.nodes[at as usize].clients += 1;
        }
        node
    }

    /// Removes a client, and subtracts what it still holds from all nodes above it.
    pub(crate) fn remove_client(&mut self, client: NodeIx) {
        self.set_active(client, false);
        let held = std::mem::take(&mut self.nodes[client as usize].allocated);
        for at in self.above(client) {
            self.update(at, |node| {
                node.allocated -= &held;
                node.clients -= 1;
            });
            self.forget_count(at);
        }
        self.release(client);
    }

    /// Corrects the count of a role after its last child role with frameworks was removed: it is a leaf again and has
    /// the count of its own frameworks. A role without any frameworks starts at zero. (Mesos's sorter folds and drops
    /// such nodes.)
    fn forget_count(&mut self, at: NodeIx) {
        let node = &self.nodes[at as usize];
        let count = match node.kind {
            _ if node.clients == 0 => 0,
            Kind::Role { seat } if self.nodes[seat as usize].clients == node.clients => self.nodes[seat as usize].count,
            _ => return,
        };
        self.update(at, |node| node.count = count);
    }

    fn release(&mut self, ix: NodeIx) {
        self.unlist(ix);
        self.nodes[ix as usize].kind = Kind::Free;
        self.free.push(ix);
    }

    /// Returns the nodes above `node`, nearest first, including the root.
    fn above(&self, node: NodeIx) -> Vec<NodeIx> {
        let mut path = Vec::with_capacity(4);
        let mut at = node;
        while at != ROOT {
            at = self.nodes[at as usize].parent;
            path.push(at);
        }
        path
    }

    /// Adds a client to those that [`Tree::walk`] visits, or removes it. Its share stays in any case. Returns whether
    /// that was a change.
    pub(crate) fn set_active(&mut self, client: NodeIx, active: bool) -> bool {
        if (self.nodes[client as usize].active == 1) == active {
            return false;
        }
        if let Kind::Client(number) = self.nodes[client as usize].kind {
            if active {
                self.listed.set(number);
            } else {
                self.listed.clear(number);
            }
        }
        let mut at = client;
        loop {
            let node = &mut self.nodes[at as usize];
            node.active = if active { node.active + 1 } else { node.active - 1 };
            match node.active {
                0 => self.unlist(at),
                1 if active => self.list(at),
                _ => {}
            }
            if at == ROOT {
                return true;
            }
            at = self.nodes[at as usize].parent;
        }
    }

    /// Inserts a node into its parent's order by its current share.
    fn list(&mut self, ix: NodeIx) {
        if ix == ROOT {
            return;
        }
        let node = &self.nodes[ix as usize];
        let parent = node.parent as usize;
        let key = Key { share: self.share(ix), count: node.count, name: node.name.clone(), node: ix };
        self.nodes[parent].order.insert(key.clone());
        self.nodes[ix as usize].key = Some(key);
    }

    fn unlist(&mut self, ix: NodeIx) {
        if let Some(key) = self.nodes[ix as usize].key.take() {
            let parent = self.nodes[ix as usize].parent as usize;
            self.nodes[parent].order.remove(&key);
        }
    }

    /// Changes a node, and moves it among its siblings.
    fn update(&mut self, ix: NodeIx, change: impl FnOnce(&mut Node)) {
        let node = &mut self.nodes[ix as usize];
        change(node);
        let (count, parent) = (node.count, node.parent as usize);
        if self.nodes[ix as usize].key.is_none() {
            return;
        }
        let share = self.share(ix);
        if let Some(key) = &mut self.nodes[ix as usize].key {
            let old = Key { share: key.share, count: key.count, name: key.name.clone(), node: ix };
            (key.share, key.count) = (share, count);
            self.nodes[parent].order.move_key(&old, share, count);
        }
    }

    /// Books an allocation: adds `amounts` to the client and all nodes above it, and one to their counts.
    pub(crate) fn allocated(&mut self, client: NodeIx, amounts: &Quantities) {
        let mut at = client;
        while at != ROOT {
            self.update(at, |node| {
                node.allocated += amounts;
                node.count += 1;
            });
            at = self.nodes[at as usize].parent;
        }
    }

    /// Adds `amounts` to the client and all nodes above it, without counting an allocation.
    pub(crate) fn reallocated(&mut self, client: NodeIx, amounts: &Quantities) {
        let mut at = client;
        while at != ROOT {
            self.update(at, |node| node.allocated += amounts);
            at = self.nodes[at as usize].parent;
        }
    }

    /// Books a return: subtracts `amounts` from the client and all nodes above it.
    pub(crate) fn unallocated(&mut self, client: NodeIx, amounts: &Quantities) {
        let mut at = client;
        while at != ROOT {
            self.update(at, |node| node.allocated -= amounts);
            at = self.nodes[at as usize].parent;
        }
    }

    /// Changes the quantities of one node only: for shared resources, which each node counts once.
    pub(crate) fn adjust(&mut self, node: NodeIx, more: &Quantities, less: &Quantities) {
        self.update(node, |node| {
            node.allocated += more;
            node.allocated -= less;
        });
    }

    /// Returns the parent of a node, or `None` if that is the root.
    pub(crate) fn parent(&self, node: NodeIx) -> Option<NodeIx> {
        let parent = self.nodes[node as usize].parent;
        (parent != ROOT && node != ROOT).then_some(parent)
    }

    /// Sets a role's weight among its siblings.
    pub(crate) fn set_weight(&mut self, role: NodeIx, weight: f64) {
        self.update(role, |node| node.weight = weight);
    }

    /// Sets the total quantities of the cluster, which changes every share.
    pub(crate) fn set_total(&mut self, total: &Quantities) {
        if self.total != *total {
            self.total = total.clone();
            self.counted.clone_from(total);
            for name in &self.excluded {
                self.counted.set(name, Amount::ZERO);
            }
            self.stale = true;
        }
    }

    /// Returns the quantities that are offered and used at or below a node.
    pub(crate) fn allocation(&self, node: NodeIx) -> &Quantities {
        &self.nodes[node as usize].allocated
    }

    /// Returns the number of active clients.
    pub(crate) fn active_clients(&self) -> usize {
        self.nodes[ROOT as usize].active as usize
    }

    /// Returns the active clients: those that may be offered resources.
    pub(crate) fn listed(&self) -> &Bits {
        &self.listed
    }

    /// Returns whether a client may be offered resources.
    pub(crate) fn is_active(&self, client: NodeIx) -> bool {
        self.nodes[client as usize].active > 0
    }
}

#[cfg(test)]
mod tests;
