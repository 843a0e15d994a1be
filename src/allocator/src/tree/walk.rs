//! Walks over the active clients in the order in which they are considered.

use super::order::Key;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::{Kind, NodeIx, ROOT, Tree};
use crate::bits::Bits;

impl Tree {
    /// Visits the active clients (by the caller's numbers), least served first, until the visitor breaks. Call
    /// [`Tree::settle`] before.
    pub(crate) fn walk(&self, visit: impl FnMut(u32) -> ControlFlow<()>) {
        self.walk_below(ROOT, visit);
    }

    /// Visits the active clients at and below a role, in the same order.
    pub(crate) fn walk_below(&self, role: NodeIx, mut visit: impl FnMut(u32) -> ControlFlow<()>) {
        if !self.is_order_kept() {
            return self.walk_sorted(role, visit);
        }
        // The stack is on the heap: the sender of a role chooses its depth, and must not be able to overflow the
        // thread's stack.
        let mut stack = vec![self.children(role)];
        while let Some(children) = stack.last_mut() {
            let Some(key) = children.next() else {
                stack.pop();
                continue;
            };
            match self.nodes[key.node as usize].kind {
                Kind::Client(client) if visit(client).is_break() => return,
                Kind::Client(_) => {}
                _ => stack.push(self.children(key.node)),
            }
        }
    }

    /// Visits the active clients at and below some sibling roles, in the order in which [`Tree::walk`] would. If the
    /// visitor breaks early, the other roles are not sorted.
    pub(crate) fn walk_siblings(
        &self,
        roles: impl Iterator<Item = NodeIx>,
        mut visit: impl FnMut(u32) -> ControlFlow<()>,
    ) {
        if !self.is_order_kept() {
            let mut roles = self.sorted(roles.filter(|role| self.nodes[*role as usize].key.is_some()));
            let mut done = ControlFlow::Continue(());
            while done.is_continue()
                && let Some(role) = roles.pop()
            {
                self.walk_sorted(role, |client| {
                    done = visit(client);
                    done
                });
            }
            return;
        }
        let mut keys: BinaryHeap<Reverse<&Key>> =
            roles.filter_map(|role| self.nodes[role as usize].key.as_ref()).map(Reverse).collect();
        let mut done = ControlFlow::Continue(());
        while done.is_continue()
            && let Some(Reverse(key)) = keys.pop()
        {
            self.walk_below(key.node, |client| {
                done = visit(client);
                done
            });
        }
    }

    /// Visits some active clients, given by their leaves, in the order in which [`Tree::walk`] would.
    pub(crate) fn walk_some(&self, leaves: &mut [NodeIx], mut visit: impl FnMut(u32) -> ControlFlow<()>) {
        if !self.is_order_kept() {
            let mut wanted = Bits::default();
            for leaf in leaves {
                if let Kind::Client(client) = self.nodes[*leaf as usize].kind {
                    wanted.set(client);
                }
            }
            return self.walk_sorted(ROOT, |client| match wanted.contains(client) {
                true => visit(client),
                false => ControlFlow::Continue(()),
            });
        }
        self.sort(leaves);
        for leaf in leaves {
            if let Kind::Client(client) = self.nodes[*leaf as usize].kind
                && visit(client).is_break()
            {
                return;
            }
        }
    }

    pub(super) fn children(&self, node: NodeIx) -> std::collections::btree_set::Iter<'_, Key> {
        self.nodes[node as usize].order.iter()
    }

    fn sort(&self, leaves: &mut [NodeIx]) {
        if leaves.len() < 2 {
            return;
        }
        leaves.sort_by_cached_key(|&leaf| {
            let mut path = Vec::with_capacity(4);
            let mut at = leaf;
            while at != ROOT {
                path.push(self.nodes[at as usize].key.clone());
                at = self.nodes[at as usize].parent;
            }
            path.reverse();
            path
        });
    }
}
