//! View of the tree for fair shares: every role and framework, suppressed or not.

use resources::{Name, Quantities};
use rustc_hash::FxHashMap;

use super::{Kind, NodeIx, ROOT, Tree};

impl Tree {
    /// Returns the size of the slab; all indices of nodes are below it.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the nodes with clients at or below them, by their parents.
    pub(crate) fn children_by_parent(&self) -> FxHashMap<NodeIx, Vec<NodeIx>> {
        let mut children: FxHashMap<NodeIx, Vec<NodeIx>> = FxHashMap::default();
        for (ix, node) in self.nodes.iter().enumerate().skip(ROOT as usize + 1) {
            if node.kind != Kind::Free && node.clients > 0 {
                children.entry(node.parent).or_default().push(ix as NodeIx);
            }
        }
        children
    }

    /// Returns a node's weight among its siblings.
    pub(crate) fn weight(&self, node: NodeIx) -> f64 {
        self.nodes[node as usize].weight
    }

    /// Returns the names that count for shares.
    pub(crate) fn counted_names(&self) -> Vec<Name> {
        self.counted.iter().map(|(name, _)| name).collect()
    }

    /// Returns the total quantities of the cluster.
    pub(crate) fn total(&self) -> &Quantities {
        &self.total
    }
}
