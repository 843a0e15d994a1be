//! Fair shares of all roles and frameworks: water-filling level by level down the tree, over the current demand.
//!
//! A framework that has not suppressed offers demands all resources; a suppressed one, what it holds. Its future tasks
//! are assumed to have the mix of what it holds now; without holdings, it takes all resources alike.

use resources::{Name, Quantities};
use rustc_hash::FxHashMap;

use super::{Competitor, fill};
use crate::allocator::Allocator;
use crate::tree::{NodeIx, ROOT, Tree};

/// Fair dominant shares by node of the tree.
#[derive(Debug, Default)]
pub(crate) struct Targets(Vec<f64>);

impl Targets {
    pub(crate) fn of(&self, node: NodeIx) -> f64 {
        self.0.get(node as usize).copied().unwrap_or_default()
    }
}

impl Allocator {
    /// Computes the current fair shares.
    pub(crate) fn targets(&self) -> Targets {
        let tree = &self.tree;
        let mut work = Work { tree, names: tree.counted_names(), children: tree.children_by_parent(), targets: vec![] };
        work.targets.resize(tree.len(), 0.0);
        let demands = work.demands();
        work.share_out(&demands);
        Targets(work.targets)
    }
}

struct Work<'a> {
    tree: &'a Tree,
    names: Vec<Name>,
    children: FxHashMap<NodeIx, Vec<NodeIx>>,
    targets: Vec<f64>,
}

impl Work<'_> {
    /// Returns the nodes, each after its parent.
    fn downwards(&self) -> Vec<NodeIx> {
        let mut order = vec![ROOT];
        let mut at = 0;
        while let Some(node) = order.get(at) {
            if let Some(children) = self.children.get(node) {
                order.extend(children);
            }
            at += 1;
        }
        order
    }

    fn demands(&self) -> Vec<f64> {
        let mut demands = vec![0.0; self.targets.len()];
        for node in self.downwards().into_iter().rev() {
            let below = self.children.get(&node).map(|children| children.iter().map(|c| demands[*c as usize]).sum());
            demands[node as usize] = match below {
                Some(below) => f64::min(below, 1.0),
                None if self.tree.is_active(node) => 1.0,
                None => self.tree.dominant_share(node).min(1.0),
            };
        }
        demands
    }

    fn share_out(&mut self, demands: &[f64]) {
        self.targets[ROOT as usize] = 1.0;
        for node in self.downwards() {
            let Some(children) = self.children.get(&node) else { continue };
            let competitor = |child: &NodeIx| Competitor {
                weight: self.tree.weight(*child),
                demand: demands[*child as usize],
                mix: self.mix(self.tree.allocation(*child)),
            };
            let competitors: Vec<Competitor> = children.iter().map(competitor).collect();
            let shares = fill(self.targets[node as usize], &competitors);
            for (child, share) in children.iter().zip(shares) {
                self.targets[*child as usize] = share;
            }
        }
    }

    fn mix(&self, held: &Quantities) -> Vec<f64> {
        let parts: Vec<f64> =
            self.names.iter().map(|name| held.get(name).ratio_of(self.tree.total().get(name)).max(0.0)).collect();
        let dominant = parts.iter().copied().fold(0.0, f64::max);
        if dominant > 0.0 { parts.iter().map(|part| part / dominant).collect() } else { vec![1.0; parts.len()] }
    }
}
