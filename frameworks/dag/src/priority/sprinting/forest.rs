//! A random forest for regression (Breiman, 2001): the mean of trees, each grown on a bootstrap of the samples with a
//! random choice of features at each split. It does not depend on sprints.
//!
//! It is our own since the approved numerical crates have none, and it takes less than a page: squared error, no
//! pruning.

use super::Stream;

/// A sample of the function that a forest learns.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Features that the value depends on; the same number for each sample.
    pub features: Vec<f64>,
    /// Value of the function.
    pub value: f64,
    /// Weight of the sample; above 0.
    pub weight: f64,
}

/// Settings of the growth of trees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForestSettings {
    /// Number of trees.
    pub trees: usize,
    /// Least number of samples of a leaf.
    pub leaf: usize,
    /// Number of features that are examined for a split, at most all of them.
    pub tried: usize,
}

impl Default for ForestSettings {
    fn default() -> ForestSettings {
        ForestSettings { trees: 100, leaf: 2, tried: 6 }
    }
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(f64),
    /// Feature, threshold, and the indices of the nodes for values up to the threshold and above it.
    Split(usize, f64, usize, usize),
}

/// A trained forest. Equal samples and seeds give equal forests.
#[derive(Clone, Debug)]
pub struct Forest {
    trees: Vec<Vec<Node>>,
}

impl Forest {
    /// Grows a forest. Returns `None` without samples, or if they have different numbers of features, numbers that are
    /// not finite, or weights that are not positive.
    pub fn grow(samples: &[Sample], settings: ForestSettings, seed: u64) -> Option<Forest> {
        let width = samples.first()?.features.len();
        let fits = |sample: &Sample| {
            sample.features.len() == width
                && sample.features.iter().chain([&sample.value, &sample.weight]).all(|number| number.is_finite())
                && sample.weight > 0.0
        };
        if !samples.iter().all(fits) {
            return None;
        }
        let tree = |number: usize| {
            let mut stream = Stream::new(seed.wrapping_add((number as u64).wrapping_mul(base::GAMMA)));
            let mut chosen: Vec<usize> = (0..samples.len()).map(|_| stream.below(samples.len())).collect();
            let mut nodes = Vec::new();
            split(samples, &mut chosen, settings, &mut stream, &mut nodes);
            nodes
        };
        Some(Forest { trees: (0..settings.trees.max(1)).map(tree).collect() })
    }

    /// Returns the predicted value for these features.
    pub fn predict(&self, features: &[f64]) -> f64 {
        self.trees.iter().map(|tree| answer(tree, features)).sum::<f64>() / self.trees.len() as f64
    }
}

fn answer(tree: &[Node], features: &[f64]) -> f64 {
    let mut at = 0;
    loop {
        match tree.get(at) {
            Some(Node::Split(feature, threshold, low, high)) => {
                at = if features.get(*feature).is_some_and(|value| value > threshold) { *high } else { *low };
            }
            Some(Node::Leaf(value)) => return *value,
            None => return 0.0,
        }
    }
}

/// Returns the weighted mean of these samples' values.
fn mean(samples: &[Sample], chosen: &[usize]) -> f64 {
    let weight: f64 = chosen.iter().map(|place| samples[*place].weight).sum();
    chosen.iter().map(|place| samples[*place].weight * samples[*place].value).sum::<f64>() / weight
}

/// Grows the node of these samples and its descendants. Returns its index.
fn split(
    samples: &[Sample],
    chosen: &mut [usize],
    settings: ForestSettings,
    stream: &mut Stream,
    nodes: &mut Vec<Node>,
) -> usize {
    let place = nodes.len();
    nodes.push(Node::Leaf(mean(samples, chosen)));
    let width = samples[chosen[0]].features.len();
    let mut features: Vec<usize> = (0..width).collect();
    let mut best: Option<(f64, usize, f64)> = None;
    for n in 0..settings.tried.min(width) {
        features.swap(n, n + stream.below(width - n));
        let found = cut(samples, chosen, features[n], settings.leaf.max(1));
        best = match (best, found) {
            (Some(known), Some(new)) if known.0 >= new.0 => Some(known),
            (known, None) => known,
            (_, new) => new,
        };
    }
    let Some((_, feature, threshold)) = best else { return place };
    chosen.sort_by(|a, b| samples[*a].features[feature].total_cmp(&samples[*b].features[feature]));
    let at = chosen.partition_point(|one| samples[*one].features[feature] <= threshold);
    let (below, above) = chosen.split_at_mut(at);
    let low = split(samples, below, settings, stream, nodes);
    let high = split(samples, above, settings, stream, nodes);
    nodes[place] = Node::Split(feature, threshold, low, high);
    place
}

/// Returns the cut of a feature that reduces the squared error most: the reduction, the feature, and the threshold.
fn cut(samples: &[Sample], chosen: &mut [usize], feature: usize, leaf: usize) -> Option<(f64, usize, f64)> {
    chosen.sort_by(|a, b| samples[*a].features[feature].total_cmp(&samples[*b].features[feature]));
    let sums = |(weight, sum): (f64, f64), place: &usize| {
        let sample = &samples[*place];
        (weight + sample.weight, sum + sample.weight * sample.value)
    };
    let all = chosen.iter().fold((0.0, 0.0), sums);
    let mut low = (0.0, 0.0);
    let mut best: Option<(f64, usize, f64)> = None;
    for n in 1..chosen.len() {
        low = sums(low, &chosen[n - 1]);
        let (before, after) = (samples[chosen[n - 1]].features[feature], samples[chosen[n]].features[feature]);
        if n < leaf || chosen.len() - n < leaf || before == after {
            continue;
        }
        let (weight, sum) = (all.0 - low.0, all.1 - low.1);
        let gain = low.1 * low.1 / low.0 + sum * sum / weight - all.1 * all.1 / all.0;
        if gain > 1e-12 && best.is_none_or(|known| gain > known.0) {
            best = Some((gain, feature, before + (after - before) / 2.0));
        }
    }
    best
}
