//! Gradient-boosted trees: each tree is fitted to the residuals of the earlier ones, by histograms that are summed over
//! shards.
//!
//! The formulas of gains and leaves are those of XGBoost (Chen and Guestrin, 2016).

use serde::{Deserialize, Serialize};

use super::algorithm::{Shape, within};
use super::data::Data;
use super::error::LearnError;
use super::grow::{Rules, descend, stump, tree_width};
use super::learner::{Reader, Round, ShardCache, total};
use super::multiclass::{largest, softmax};

/// Maximum number of trees; the whole forest is sent in every round.
pub(super) const TREES_MAX: usize = 5_000;
/// Number of sampled rows of a shard, from which the bins are made.
const SAMPLED: usize = 64;
const CLASSES_MAX: usize = 1_000;
const HISTOGRAMS_MAX: usize = 4_000_000;

/// The kind of prediction of boosted trees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// A number, with half the squared difference as loss.
    #[default]
    Regression,
    /// A class, with logistic loss; of more than two classes with softmax, by a tree for each class in each iteration.
    Classification,
}

/// Hyperparameters of boosted trees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TreesOptions {
    /// Kind of prediction; a number by default.
    pub task: Task,
    /// Number of levels of splits in a tree. 3 by default.
    pub depth: usize,
    /// Share of a tree's best correction that is applied. 0.1 by default.
    pub learning_rate: f64,
    /// Number of bins for the values of a feature. 32 by default.
    pub bins: usize,
    /// Approximate minimum number of rows on each side of a split. 1 by default.
    pub least: f64,
    /// L2 penalty, which keeps the values of leaves of few rows small. 1 by default.
    pub l2: f64,
}

impl Default for TreesOptions {
    fn default() -> TreesOptions {
        TreesOptions { task: Task::Regression, depth: 3, learning_rate: 0.1, bins: 32, least: 1.0, l2: 1.0 }
    }
}

impl TreesOptions {
    pub(crate) fn check(&self) -> Result<(), LearnError> {
        if !(1..=8).contains(&self.depth) {
            return Err(LearnError::invalid("depth", "must be between 1 and 8"));
        }
        if !(2..=256).contains(&self.bins) {
            return Err(LearnError::invalid("bins", "must be between 2 and 256"));
        }
        within("least", self.least, 0.0, 1e9)?;
        within("l2", self.l2, 0.0, 1e9)?;
        within("learning_rate", self.learning_rate, 1e-6, 1.0)
    }

    pub(crate) fn check_shape(&self, shape: &Shape) -> Result<(), LearnError> {
        if self.task == Task::Classification && !(2..=CLASSES_MAX).contains(&shape.classes) {
            let rule = format!("boosted-trees need between 2 and {CLASSES_MAX}, and the labels name {}", shape.classes);
            return Err(LearnError::invalid("classes", rule));
        }
        let nodes = (1_usize << (self.depth - 1)).saturating_mul(self.outputs(shape.classes));
        let widest = nodes.saturating_mul(shape.columns).saturating_mul(2 * self.bins);
        if widest > HISTOGRAMS_MAX {
            let rule = format!("times columns and nodes gives histograms of {widest}; {HISTOGRAMS_MAX} is the limit");
            return Err(LearnError::invalid("bins", rule));
        }
        Ok(())
    }

    /// Returns the number of trees in an iteration: one, or one for each of more than two classes.
    fn outputs(&self, classes: usize) -> usize {
        if self.task == Task::Classification && classes > 2 { classes } else { 1 }
    }

    fn rules<'a>(&self, columns: usize, edges: &'a [f64]) -> Rules<'a> {
        // In an undecided classification a row has a second derivative of a quarter.
        let least = if self.task == Task::Classification { self.least / 4.0 } else { self.least };
        Rules { columns, bins: self.bins, edges, l2: self.l2, least, rate: self.learning_rate }
    }
}

/// The data about a shard that a worker keeps: the forest's outputs, row by row, so that only new trees must be
/// evaluated, and each value's bin.
#[derive(Debug, Default)]
pub(crate) struct Cached {
    trees: Vec<f64>,
    outputs: Vec<f64>,
    edges: Vec<f64>,
    bins: Vec<u8>,
}

const SAMPLE: f64 = 0.0;

/// Computes a round of one shard: rows, sum of labels (rows of each class, if there are more than two) and a sample at
/// first; then histograms of the nodes of a level, tree by tree, and [loss, right, rows].
pub(crate) fn partial(
    options: &TreesOptions,
    shape: &Shape,
    parameters: &[f64],
    data: &Data,
    memory: &mut ShardCache,
) -> Result<Vec<f64>, LearnError> {
    let Some(rows) = data.matrix() else { return Err(LearnError::invalid("data", "must be dense")) };
    let mut reader = Reader::new(parameters);
    let (columns, outputs) = (rows.ncols(), options.outputs(shape.classes));
    if reader.one()? == SAMPLE {
        let mut sums = vec![rows.nrows() as f64];
        if outputs == 1 {
            sums.push(data.labels.iter().sum());
        } else {
            let of_class = |class| data.labels.iter().filter(|l| **l as usize == class).count() as f64;
            sums.extend((0..outputs).map(of_class));
        }
        let wanted = SAMPLED.min(rows.nrows());
        let picked = (0..wanted).map(|i| i * rows.nrows() / wanted);
        sums.extend(picked.flat_map(|r| rows.row(r).to_vec()));
        return Ok(sums);
    }
    let Forest { base, level, edges, trees, growing } = Forest::read(options, columns, outputs, reader)?;
    let cached = memory.trees.get_or_insert_default();
    cached.catch_up(base, edges, trees, tree_width(options.depth), data);
    let rules = options.rules(columns, edges);
    let of_tree = (1 << level) * rules.node_width();
    let histograms = outputs * of_tree;
    let mut sums = vec![0.0; histograms + 3];
    let mut slopes = vec![[0.0; 2]; outputs];
    for (row, of_row) in cached.outputs.chunks_exact(outputs).enumerate() {
        let (loss, right) = derivatives(options.task, of_row, data.label(row), &mut slopes)?;
        sums[histograms] += loss;
        sums[histograms + 1] += f64::from(u8::from(right));
        let trees = growing.chunks_exact(tree_width(options.depth));
        for (number, (tree, [first, second])) in trees.zip(&slopes).enumerate() {
            let (node, _) = descend(tree, |column| rows[[row, column]]);
            // Rows in a leaf above this level are done.
            let Some(place) = (node + 1).checked_sub(1 << level) else { continue };
            let start = number * of_tree + place * rules.node_width();
            for (column, bin) in cached.bins[row * columns..(row + 1) * columns].iter().enumerate() {
                let at = start + 2 * (column * options.bins + usize::from(*bin));
                sums[at] += first;
                sums[at + 1] += second;
            }
        }
    }
    sums[histograms + 2] = rows.nrows() as f64;
    Ok(sums)
}

/// Returns the loss of a shard's rows, and the number of right answers; `None` in the middle of an iteration.
pub(crate) fn score(
    options: &TreesOptions,
    shape: &Shape,
    parameters: &[f64],
    data: &Data,
    memory: &mut ShardCache,
) -> Result<Option<[f64; 3]>, LearnError> {
    let mut reader = Reader::new(parameters);
    if reader.one()? == SAMPLE {
        return Ok(None);
    }
    let outputs = options.outputs(shape.classes);
    let Forest { base, level, edges, trees, .. } = Forest::read(options, data.width(), outputs, reader)?;
    if level > 0 {
        return Ok(None);
    }
    let cached = memory.trees.get_or_insert_default();
    cached.catch_up(base, edges, trees, tree_width(options.depth), data);
    let mut sums = [0.0, 0.0, data.len() as f64];
    let mut slopes = vec![[0.0; 2]; outputs];
    for (row, of_row) in cached.outputs.chunks_exact(outputs).enumerate() {
        let (loss, right) = derivatives(options.task, of_row, data.label(row), &mut slopes)?;
        sums[0] += loss;
        sums[1] += f64::from(u8::from(right));
    }
    Ok(Some(sums))
}

/// Returns the model that a round's parameters describe.
pub(crate) fn model_of(options: &TreesOptions, shape: &Shape, parameters: &[f64]) -> Option<ForestModel> {
    let mut reader = Reader::new(parameters);
    let is_model = reader.one().ok()? != SAMPLE;
    let outputs = options.outputs(shape.classes);
    let forest = Forest::read(options, shape.columns, outputs, reader).ok().filter(|_| is_model)?;
    Some(ForestModel::of(options, forest.base, forest.trees))
}

/// The parameters of a round after the first number.
struct Forest<'a> {
    /// First output of each tree of an iteration.
    base: &'a [f64],
    /// Level of the trees that is split next.
    level: usize,
    edges: &'a [f64],
    /// Finished trees, concatenated; with several classes, in turn.
    trees: &'a [f64],
    /// Trees that are being grown, concatenated.
    growing: &'a [f64],
}

impl<'a> Forest<'a> {
    fn read(
        options: &TreesOptions,
        columns: usize,
        outputs: usize,
        mut reader: Reader<'a>,
    ) -> Result<Forest<'a>, LearnError> {
        let (base, level, count) = (reader.take(outputs)?, reader.count()?, reader.count()?);
        let edges = reader.take(columns * (options.bins - 1))?;
        let width = tree_width(options.depth);
        if level >= options.depth || count > TREES_MAX.saturating_mul(outputs) {
            return Err(LearnError::invalid("parameters", "are not of this algorithm and data"));
        }
        let trees = reader.take(count * width)?;
        let growing = reader.take(outputs * width)?;
        let all_trees = trees.chunks_exact(2).chain(growing.chunks_exact(2));
        if all_trees.into_iter().any(|node| node[0] >= columns as f64) {
            return Err(LearnError::invalid("parameters", "name a feature that does not exist"));
        }
        Ok(Forest { base, level, edges, trees, growing })
    }
}

/// Returns the loss of a row's outputs, and whether its class is right; writes the first and second derivative by each
/// output to `slopes`.
fn derivatives(task: Task, outputs: &[f64], label: f64, slopes: &mut [[f64; 2]]) -> Result<(f64, bool), LearnError> {
    if let [output] = outputs {
        let (loss, first, second, right) = of_one(task, *output, label);
        slopes[0] = [first, second];
        return Ok((loss, right));
    }
    let (mut shares, class) = (outputs.to_vec(), label as usize);
    let log_sum = softmax(&mut shares);
    if class >= shares.len() {
        return Err(LearnError::invalid("label", format!("must be below {}", shares.len())));
    }
    for (place, (share, slope)) in shares.iter().zip(slopes).enumerate() {
        let wanted = if place == class { 1.0 } else { 0.0 };
        *slope = [share - wanted, (share * (1.0 - share)).max(1e-12)];
    }
    Ok((log_sum - outputs[class], largest(outputs) == class))
}

/// Returns the loss of the only output, its first and second derivative, and whether its class is right.
fn of_one(task: Task, output: f64, label: f64) -> (f64, f64, f64, bool) {
    match task {
        Task::Regression => ((output - label).powi(2) / 2.0, output - label, 1.0, false),
        Task::Classification => {
            let probability = 1.0 / (1.0 + (-output).exp());
            let of_label = if label > 0.5 { probability } else { 1.0 - probability };
            let second = (probability * (1.0 - probability)).max(1e-12);
            let loss = -of_label.max(f64::MIN_POSITIVE).ln();
            (loss, probability - label, second, (probability > 0.5) == (label > 0.5))
        }
    }
}

impl Cached {
    fn catch_up(&mut self, base: &[f64], edges: &[f64], trees: &[f64], width: usize, data: &Data) {
        let Some(rows) = data.matrix() else { return };
        if self.edges != edges || self.outputs.len() != base.len() * rows.nrows() {
            let per_column = edges.len() / rows.ncols();
            let bin = |((_, column), value): ((usize, usize), &f64)| {
                let edges = &edges[column * per_column..(column + 1) * per_column];
                edges.partition_point(|edge| edge < value) as u8
            };
            self.bins = rows.indexed_iter().map(bin).collect();
            self.edges = edges.to_vec();
            self.outputs = Vec::new();
        }
        if self.outputs.is_empty() || !trees.starts_with(&self.trees) {
            self.outputs = base.repeat(rows.nrows());
            self.trees.clear();
        }
        let done = self.trees.len() / width;
        for (number, tree) in (done..).zip(trees[self.trees.len()..].chunks_exact(width)) {
            for (row, of_row) in self.outputs.chunks_exact_mut(base.len()).enumerate() {
                of_row[number % base.len()] += descend(tree, |column| rows[[row, column]]).1;
            }
        }
        self.trees = trees.to_vec();
    }
}

/// The state of the training of a forest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Trees {
    options: TreesOptions,
    columns: usize,
    /// First output of each tree of an iteration.
    base: Vec<f64>,
    /// Boundaries between bins; empty before the sample has arrived.
    edges: Vec<f64>,
    /// Finished trees, concatenated; with several classes, in turn.
    trees: Vec<f64>,
    /// Trees that are being grown, concatenated, and the level that is split next.
    growing: Vec<f64>,
    level: usize,
    /// Loss and accuracy without the trees that are being grown.
    loss: f64,
    accuracy: Option<f64>,
}

impl Trees {
    pub(crate) fn new(options: TreesOptions, shape: Shape) -> Trees {
        Trees {
            columns: shape.columns,
            base: vec![0.0; options.outputs(shape.classes)],
            edges: Vec::new(),
            trees: Vec::new(),
            growing: stump(options.depth).repeat(options.outputs(shape.classes)),
            level: 0,
            loss: 0.0,
            accuracy: None,
            options,
        }
    }

    fn count(&self) -> usize {
        self.trees.len() / tree_width(self.options.depth)
    }

    pub(crate) fn parameters(&self) -> Vec<f64> {
        if self.edges.is_empty() {
            return vec![SAMPLE];
        }
        let mut parameters = vec![1.0];
        parameters.extend(&self.base);
        parameters.extend([self.level as f64, self.count() as f64]);
        parameters.extend(&self.edges);
        parameters.extend(&self.trees);
        parameters.extend(&self.growing);
        parameters
    }

    pub(crate) fn fold(&mut self, partials: &[Vec<f64>]) -> Result<Round, LearnError> {
        if self.edges.is_empty() {
            self.prepare(partials)?;
            return Ok(Round::Inner);
        }
        let rules = self.options.rules(self.columns, &self.edges);
        let of_tree = (1 << self.level) * rules.node_width();
        let histograms = self.base.len() * of_tree;
        let sums = total(partials, histograms + 3)?;
        let iteration = (self.count() / self.base.len()) as u64;
        if self.level == 0 {
            let rows = sums[histograms + 2].max(1.0);
            self.loss = sums[histograms] / rows;
            self.accuracy = (self.options.task == Task::Classification).then(|| sums[histograms + 1] / rows);
            if !self.loss.is_finite() {
                return Err(LearnError::NotANumber { iteration, halvings: 0 });
            }
        }
        let trees = self.growing.chunks_exact_mut(tree_width(self.options.depth));
        let mut split = false;
        for (tree, histogram) in trees.zip(sums[..histograms].chunks_exact(of_tree)) {
            split |= rules.split_level(tree, self.level, histogram);
        }
        self.level += 1;
        if split && self.level < self.options.depth {
            return Ok(Round::Inner);
        }
        if self.count() < TREES_MAX {
            self.trees.append(&mut self.growing);
        }
        self.growing = stump(self.options.depth).repeat(self.base.len());
        self.level = 0;
        Ok(Round::Iteration { iteration, loss: self.loss, accuracy: self.accuracy, retried: false })
    }

    /// Computes, from all samples, the forest's first output and boundaries between bins of about equally many rows.
    fn prepare(&mut self, partials: &[Vec<f64>]) -> Result<(), LearnError> {
        let mut values: Vec<Vec<f64>> = vec![Vec::new(); self.columns];
        let head = 1 + self.base.len();
        let mut sums = vec![0.0; head];
        for (shard, partial) in partials.iter().enumerate() {
            if partial.len() < head || !(partial.len() - head).is_multiple_of(self.columns) {
                return Err(LearnError::Mismatch { shard, got: partial.len(), want: head + SAMPLED * self.columns });
            }
            sums.iter_mut().zip(partial).for_each(|(sum, part)| *sum += part);
            for row in partial[head..].chunks_exact(self.columns) {
                values.iter_mut().zip(row).for_each(|(of_column, value)| of_column.push(*value));
            }
        }
        let rows = sums[0].max(1.0);
        let odds = |mean: f64| (mean.clamp(1e-6, 1.0 - 1e-6) / (1.0 - mean.clamp(1e-6, 1.0 - 1e-6))).ln();
        let first = |sum: &f64| match self.options.task {
            Task::Regression => sum / rows,
            Task::Classification if head == 2 => odds(sum / rows),
            Task::Classification => (sum / rows).max(1e-6).ln(),
        };
        self.base = sums[1..].iter().map(first).collect();
        if self.base.iter().any(|base| !base.is_finite()) {
            return Err(LearnError::NotANumber { iteration: 0, halvings: 0 });
        }
        for of_column in &mut values {
            of_column.sort_by(f64::total_cmp);
            let quantile = |part: usize| of_column.get(part * of_column.len() / self.options.bins).copied();
            self.edges.extend((1..self.options.bins).map(|part| quantile(part).unwrap_or_default()));
        }
        Ok(())
    }

    pub(crate) fn model(&self) -> Option<ForestModel> {
        (!self.trees.is_empty()).then(|| ForestModel::of(&self.options, &self.base, &self.trees))
    }
}

/// A trained forest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForestModel {
    /// Output before the first tree.
    #[serde(default)]
    pub base: f64,
    /// Output before the first tree for each of more than two classes; the trees are then of these classes in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<f64>,
    /// Two numbers for each node: the feature to compare (-1 in a leaf), and the threshold or the leaf's value. The
    /// children of node i are 2i + 1, for values up to the threshold, and 2i + 2.
    pub trees: Vec<Vec<f64>>,
    /// Whether the sum's sign names one of two classes.
    pub classifies: bool,
}

impl ForestModel {
    fn of(options: &TreesOptions, base: &[f64], trees: &[f64]) -> ForestModel {
        let trees = trees.chunks_exact(tree_width(options.depth)).map(<[f64]>::to_vec).collect();
        let (base, bases) = if let [base] = base { (*base, Vec::new()) } else { (0.0, base.to_vec()) };
        ForestModel { base, bases, trees, classifies: options.task == Task::Classification }
    }

    /// Returns the predicted number, or the class. Missing features count as zero.
    pub fn predict(&self, row: &[f64]) -> f64 {
        if !self.bases.is_empty() {
            return largest(&self.outputs(row)) as f64;
        }
        let output = self.output(row);
        if self.classifies { f64::from(u8::from(output > 0.0)) } else { output }
    }

    /// Returns the probability of each class; `None` if the forest does not classify.
    pub(crate) fn probabilities(&self, row: &[f64]) -> Option<Vec<f64>> {
        if !self.bases.is_empty() {
            let mut outputs = self.outputs(row);
            softmax(&mut outputs);
            return Some(outputs);
        }
        let second = 1.0 / (1.0 + (-self.output(row)).exp());
        self.classifies.then(|| vec![1.0 - second, second])
    }

    /// Returns the number of features up to the last one that a tree compares.
    pub(crate) fn width(&self) -> usize {
        let compared = self.trees.iter().flat_map(|t| t.chunks_exact(2)).filter(|node| node[0] >= 0.0);
        compared.map(|node| node[0] as usize + 1).max().unwrap_or(0)
    }

    /// Returns the output of each of more than two classes.
    fn outputs(&self, row: &[f64]) -> Vec<f64> {
        let value = |column: usize| row.get(column).copied().unwrap_or(0.0);
        let mut outputs = self.bases.clone();
        for (number, tree) in self.trees.iter().enumerate() {
            outputs[number % self.bases.len()] += descend(tree, value).1;
        }
        outputs
    }

    fn output(&self, row: &[f64]) -> f64 {
        let value = |column: usize| row.get(column).copied().unwrap_or(0.0);
        self.base + self.trees.iter().map(|t| descend(t, value).1).sum::<f64>()
    }
}
