//! Orders of sorters that the tree does not keep, computed level by level as far as a walk goes.

use std::ops::ControlFlow;

use resources::Quantities;

use super::order::Key;
use super::{Kind, NodeIx, Share, Tree};
use crate::sorters::{Candidate, SorterKind, Visit};

/// Sorters in use, and the current visit.
#[derive(Debug, Default)]
pub(super) struct Sorting {
    roles: SorterKind,
    frameworks: SorterKind,
    visit: Visit,
}

impl Tree {
    /// Sets the sorters of roles and of frameworks.
    pub(crate) fn set_sorters(&mut self, roles: SorterKind, frameworks: SorterKind) {
        self.sorting = Sorting { roles, frameworks, visit: Visit::default() };
    }

    /// Returns whether the tree keeps the current sorter's order.
    pub(crate) fn is_order_kept(&self) -> bool {
        self.sorting.roles.is_kept() && self.sorting.frameworks.is_kept()
    }

    /// Returns whether agents are visited in the order in which they fit.
    pub(crate) fn is_best_fit(&self) -> bool {
        [self.sorting.roles, self.sorting.frameworks].contains(&SorterKind::BestFitDrf)
    }

    /// Sets the visit for the walks that follow. `server` are the total quantities of the agent.
    pub(crate) fn begin_visit(&mut self, server: Quantities, draw: u64) {
        self.sorting.visit = Visit { server, counted: self.counted.clone(), draw };
    }

    /// Returns the total quantities of the cluster, without names that do not count.
    pub(crate) fn counted(&self) -> &Quantities {
        &self.counted
    }

    /// Visits the active clients at and below `top`.
    pub(super) fn walk_sorted(&self, top: NodeIx, mut visit: impl FnMut(u32) -> ControlFlow<()>) {
        let mut stack = vec![self.sorted(self.children(top).map(|key| key.node))];
        while let Some(children) = stack.last_mut() {
            let Some(node) = children.pop() else {
                stack.pop();
                continue;
            };
            match self.nodes[node as usize].kind {
                Kind::Client(client) if visit(client).is_break() => return,
                Kind::Client(_) => {}
                _ => stack.push(self.sorted(self.children(node).map(|key| key.node))),
            }
        }
    }

    /// Returns siblings in reverse order: the first one last.
    pub(super) fn sorted(&self, nodes: impl Iterator<Item = NodeIx>) -> Vec<NodeIx> {
        let mut keys: Vec<Key> = nodes.map(|node| self.key_of(node)).collect();
        keys.sort_by(|a, b| b.cmp(a));
        keys.into_iter().map(|key| key.node).collect()
    }

    fn key_of(&self, ix: NodeIx) -> Key {
        let node = &self.nodes[ix as usize];
        let kind = if matches!(node.kind, Kind::Client(_)) { self.sorting.frameworks } else { self.sorting.roles };
        let candidate =
            Candidate { allocated: &node.allocated, share: self.dominant_share(ix), weight: node.weight, number: ix };
        let share = Share::new(kind.sorter().key(&candidate, &self.sorting.visit));
        Key { share, count: node.count, name: node.name.clone(), node: ix }
    }
}
