//! Grows one regression tree level by level from histograms of gradients.
//!
//! A tree is an array of numbers, two for each node: the feature that is compared (-1 for a leaf), and the threshold or
//! the leaf's value. The children of node i are 2i + 1, for values up to the threshold, and 2i + 2.

/// Mark of a leaf in the place of a feature.
const LEAF: f64 = -1.0;

/// Returns the number of numbers in a tree of this depth.
pub(crate) fn tree_width(depth: usize) -> usize {
    2 * ((1 << (depth + 1)) - 1)
}

/// Returns a tree of one leaf with value 0.
pub(crate) fn stump(depth: usize) -> Vec<f64> {
    [LEAF, 0.0].repeat(tree_width(depth) / 2)
}

/// Returns the node at which a row ends, and the tree's value there; 0 for a node that the tree does not have yet.
pub(crate) fn descend(tree: &[f64], row: impl Fn(usize) -> f64) -> (usize, f64) {
    let mut node = 0;
    loop {
        let Some(&[feature, number]) = tree.get(2 * node..2 * node + 2) else { return (node, 0.0) };
        if feature < 0.0 {
            return (node, number);
        }
        node = 2 * node + if row(feature as usize) <= number { 1 } else { 2 };
    }
}

/// The parameters of splits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) columns: usize,
    pub(crate) bins: usize,
    /// Boundaries between the bins of each feature.
    pub(crate) edges: &'a [f64],
    /// Number that is added to the sum of second derivatives: keeps leaves of few rows small.
    pub(crate) l2: f64,
    /// Minimum sum of second derivatives in a child.
    pub(crate) least: f64,
    /// Learning rate: the share of a leaf's best value that is used.
    pub(crate) rate: f64,
}

/// The best split of a node.
#[derive(Clone, Copy, Debug)]
struct Split {
    gain: f64,
    feature: usize,
    edge: usize,
    left: [f64; 2],
    right: [f64; 2],
}

impl Rules<'_> {
    /// Returns the number of numbers in the histograms of one node: first and second derivatives, by feature and bin.
    pub(crate) fn node_width(&self) -> usize {
        self.columns * self.bins * 2
    }

    /// Splits the nodes of `level` of a tree by their histograms, where that gains something. Returns `false` if none
    /// was split.
    pub(crate) fn split_level(&self, tree: &mut [f64], level: usize, histograms: &[f64]) -> bool {
        let first = (1 << level) - 1;
        let mut any = false;
        for (place, histogram) in histograms.chunks_exact(self.node_width()).enumerate() {
            let node = first + place;
            let of_first_feature = histogram[..2 * self.bins].chunks_exact(2);
            let all = of_first_feature.fold([0.0, 0.0], |sum, bin| [sum[0] + bin[0], sum[1] + bin[1]]);
            if level == 0 {
                tree[1] = self.leaf(all);
            }
            if let Some(split) = self.best(histogram, all) {
                any = true;
                tree[2 * node] = split.feature as f64;
                tree[2 * node + 1] = self.edges[split.feature * (self.bins - 1) + split.edge];
                for (child, sums) in [(2 * node + 1, split.left), (2 * node + 2, split.right)] {
                    tree[2 * child] = LEAF;
                    tree[2 * child + 1] = self.leaf(sums);
                }
            }
        }
        any
    }

    fn best(&self, histogram: &[f64], all: [f64; 2]) -> Option<Split> {
        let mut best: Option<Split> = None;
        for (feature, bins) in histogram.chunks_exact(2 * self.bins).enumerate() {
            let mut left = [0.0, 0.0];
            for (edge, bin) in bins.chunks_exact(2).take(self.bins - 1).enumerate() {
                left = [left[0] + bin[0], left[1] + bin[1]];
                let right = [all[0] - left[0], all[1] - left[1]];
                if left[1] < self.least || right[1] < self.least {
                    continue;
                }
                let gain = self.score(left) + self.score(right) - self.score(all);
                if gain > best.map_or(1e-9, |b| b.gain) {
                    best = Some(Split { gain, feature, edge, left, right });
                }
            }
        }
        best
    }

    fn score(&self, [first, second]: [f64; 2]) -> f64 {
        first * first / (second + self.l2)
    }

    fn leaf(&self, [first, second]: [f64; 2]) -> f64 {
        if second + self.l2 > 0.0 { -self.rate * first / (second + self.l2) } else { 0.0 }
    }
}
