//! Dominant shares, and the update of all orders when all shares change.
//!
//! Shares are quotients of whole thousandths, rounded once: two equal fractions compare as equal, which sums of binary
//! fractions (0.1 of 0.3 against 1 of 3) would not.

use resources::Quantities;

use super::{Kind, NodeIx, Share, Tree};

impl Tree {
    /// Returns a node's dominant share, not divided by its weight: its largest share of any scalar resource.
    pub(crate) fn dominant_share(&self, node: NodeIx) -> f64 {
        self.allocation(node).ratio(&self.counted)
    }

    /// Returns the dominant share of some quantities.
    pub(crate) fn share_of(&self, amounts: &Quantities) -> f64 {
        amounts.ratio(&self.counted)
    }

    /// Returns the key by which a node is sorted: its dominant share divided by its weight.
    pub(crate) fn share(&self, node: NodeIx) -> Share {
        Share::new(self.dominant_share(node) / self.nodes[node as usize].weight)
    }

    /// Computes all orders again if the cluster's total has changed.
    pub(crate) fn settle(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        for ix in 0..self.nodes.len() {
            if self.nodes[ix].kind != Kind::Free && self.nodes[ix].order.len() > 0 {
                self.sort_children(ix);
            }
        }
    }

    fn sort_children(&mut self, parent: usize) {
        let mut keys = self.nodes[parent].order.take();
        for key in &mut keys {
            key.share = self.share(key.node);
            if let Some(own) = &mut self.nodes[key.node as usize].key {
                own.share = key.share;
            }
        }
        self.nodes[parent].order.fill(keys);
    }
}
