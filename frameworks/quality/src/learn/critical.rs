//! Training on critical rows, after SlimML (Han, Liu, Wang, Chen, IEEE TKDE 2021): most iterations compute with the
//! rows of the groups whose gradient is largest, and with the mean row of each other group.
//!
//! An iteration over all rows, an *anchor*, comes every few iterations:
//!
//! - It measures the exact loss.
//! - It chooses the groups anew by their gradients at their means.
//! - It measures the difference between the sums over all rows and those over the chosen rows. The iterations up to the
//!   next anchor are corrected by it, as in stochastic variance reduced gradient (Johnson and Zhang, NIPS 2013).
//! - It measures the error of the iterations since the last anchor. If it is larger than the accuracy that they may
//!   cost, the next ones use more rows, for fewer iterations.
//!
//! If the loss has risen since the last anchor, the training returns to that anchor.
//!
//! This module makes no step: the algorithm does, from sums that look like those of all rows.

use serde::{Deserialize, Serialize};

use super::algorithm::{Algorithm, Shape, within};
use super::error::LearnError;
use super::learner::{Round, total};

/// The accuracy that a job may lose by skipping rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CriticalRows {
    /// Maximum loss of accuracy, as a share of all rows, and maximum loss of quality, as a share of the first loss.
    /// Anchors measure both between two of them.
    pub accuracy_loss: f64,
    /// Minimum share of the rows that an iteration reads, besides the means of the others. 0.05 by default.
    #[serde(default = "least")]
    pub least: f64,
}

fn least() -> f64 {
    0.05
}

impl CriticalRows {
    /// Checks the options for this algorithm.
    ///
    /// # Errors
    /// Returns the first field that breaks a rule, and the rule.
    pub fn check(&self, algorithm: &Algorithm) -> Result<(), LearnError> {
        within("accuracy_loss", self.accuracy_loss, 0.0001, 0.5)?;
        within("least", self.least, 0.01, 1.0)?;
        match algorithm {
            Algorithm::LinearRegression(_) | Algorithm::LogisticRegression(_) | Algorithm::LinearSvm(_) => Ok(()),
            Algorithm::Perceptron(options) if options.steps > 1 => {
                Err(LearnError::invalid("steps", "must be 1: a step is over all rows of its iteration"))
            }
            Algorithm::Perceptron(_) => Ok(()),
            other => {
                let kinds = "linear-regression, logistic-regression, linear-svm and perceptron";
                Err(LearnError::invalid("kind", format!("{} learns from all rows: this is for {kinds}", other.name())))
            }
        }
    }
}

/// Minimum and maximum number of iterations between two anchors.
const SHORTEST: u32 = 2;
const LONGEST: u32 = 32;
/// Maximum share of the rows that iterations choose. Choosing more saves nothing, so then iterations are over all rows
/// for some time.
const FRACTION_MAX: f64 = 0.5;

/// The kind of a round, which is the first number of its parameters.
pub(crate) const WHOLE: f64 = 0.0;
pub(crate) const ANCHOR: f64 = 1.0;
pub(crate) const SKIPPING: f64 = 2.0;

/// Shares of the rows with which iterations compute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowShares {
    /// Share of the last iteration; more than 1 for an anchor, which computes with the chosen rows, too.
    pub now: f64,
    /// Mean share over an anchor and the iterations up to the next one.
    pub mean: f64,
}

/// The state of a training on critical rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Critical {
    options: CriticalRows,
    classifies: bool,
    rows: f64,
    /// Smallest share of the rows that may be used now: 1 while there are enough cores.
    allowed: f64,
    fraction: f64,
    /// Number of iterations between two anchors, and of those done since the last one.
    length: u32,
    done: u32,
    mode: Mode,
    /// Number of iterations in which nothing is skipped, after skipping was too inaccurate.
    iterations_without_skipping: u32,
    anchor: Option<Anchor>,
    /// Shares with which an anchor, other iterations, and the last iteration computed.
    shares: (f64, f64, f64),
    /// Sum of the shares of all iterations, and number of iterations.
    all: (f64, u64),
    /// Sum of the losses at the first anchor.
    first_loss: Option<f64>,
}

/// The kind of the next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Mode {
    Whole,
    Anchor,
    Skipping,
}

/// The last iteration over all rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Anchor {
    /// The algorithm's parameters at the anchor.
    parameters: Vec<f64>,
    /// Share of the rows that were chosen at the anchor.
    fraction: f64,
    /// Difference of the sums over all rows from those over the chosen rows: gradient, loss, right answers, rows.
    missed: Vec<f64>,
    /// Loss of the iteration, with penalties, and its accuracy.
    loss: f64,
    accuracy: Option<f64>,
}

/// The operations of an algorithm that training on critical rows needs.
pub(crate) trait Steps {
    /// Returns the parameters of the next round. The last numbers are those by which gradients are taken.
    fn parameters(&self) -> Vec<f64>;
    /// Makes a step from sums: gradients, loss, right answers, rows.
    fn fold(&mut self, partials: &[Vec<f64>]) -> Result<Round, LearnError>;
    /// Sets the next round to the best point so far, whose loss is measured anew.
    fn settle(&mut self);
    /// Marks the point of the last round, so that [`back`](Steps::back) can return to it.
    fn mark(&mut self);
    /// Sets the next round to the marked point, with a shorter step from there. Returns `false` if the algorithm cannot
    /// go back.
    fn back(&mut self) -> bool;
}

impl Critical {
    pub(crate) fn new(options: CriticalRows, algorithm: &Algorithm, shape: &Shape) -> Critical {
        Critical {
            options,
            classifies: algorithm.classifies(),
            rows: shape.rows.max(1) as f64,
            allowed: options.least,
            fraction: options.least,
            length: 2 * SHORTEST,
            done: 0,
            mode: Mode::Anchor,
            iterations_without_skipping: 0,
            anchor: None,
            shares: (1.0, 1.0, 1.0),
            all: (0.0, 0),
            first_loss: None,
        }
    }

    /// Sets the smallest share of the rows from the next anchor on; it is never less than the job allows.
    pub(crate) fn allow(&mut self, fraction: f64) {
        self.allowed = fraction.clamp(self.options.least, 1.0);
    }

    /// Returns the shares of the last iteration.
    pub(crate) fn shares(&self) -> RowShares {
        let (anchor, other, now) = self.shares;
        let length = f64::from(self.length);
        let mean = if self.mode == Mode::Whole { 1.0 } else { (anchor + length * other) / (length + 1.0) };
        RowShares { now, mean }
    }

    /// Returns whether the last iteration has skipped rows, so that its loss is not exact.
    pub(crate) fn has_skipped(&self) -> bool {
        self.shares.2 < 1.0
    }

    /// Makes the next iteration one over all rows, at the best point so far: its result may be the last.
    pub(crate) fn use_all_rows_next(&mut self, steps: &mut impl Steps) {
        if self.mode == Mode::Skipping {
            self.mode = Mode::Anchor;
            steps.settle();
        }
    }

    /// Returns the mean share of all iterations so far.
    pub(crate) fn mean_share(&self) -> f64 {
        if self.all.1 == 0 { 1.0 } else { self.all.0 / self.all.1 as f64 }
    }

    /// Returns the parameters of the next round for a shard: the kind; unless the round is over all rows, the share of
    /// the rows to choose, and share and parameters of the last anchor; and the algorithm's parameters.
    pub(crate) fn parameters(&self, steps: &impl Steps) -> Vec<f64> {
        let own = steps.parameters();
        if self.is_whole(&own) {
            return [vec![WHOLE], own].concat();
        }
        let kind = if self.mode == Mode::Anchor { ANCHOR } else { SKIPPING };
        let (before, fraction) = self.anchor.as_ref().map_or((&[][..], 0.0), |a| (&a.parameters[..], a.fraction));
        let head = [kind, self.fraction, fraction, before.len() as f64];
        [&head, before, &own].concat()
    }

    /// Returns whether the round is over all rows. The round that collects moments is one, too; it has one parameter.
    fn is_whole(&self, own: &[f64]) -> bool {
        self.mode == Mode::Whole || own.len() <= 1
    }

    /// Combines the sums of all shards.
    pub(crate) fn fold(&mut self, steps: &mut impl Steps, partials: &[Vec<f64>]) -> Result<Round, LearnError> {
        let own = steps.parameters();
        if self.is_whole(&own) {
            let round = steps.fold(partials)?;
            self.shares.2 = 1.0;
            self.choose_next(steps, &round);
            return Ok(round);
        }
        let mut sums = total(partials, partials.first().map_or(0, Vec::len))?;
        self.shares.2 = sums.pop().unwrap_or_default() / self.rows;
        if self.mode == Mode::Anchor {
            return self.fold_anchor(steps, own, &sums);
        }
        let Some(anchor) = &self.anchor else { return Err(not_of_this_round()) };
        let sums = anchor.corrected(&own, &sums, self.rows)?;
        self.shares.1 = self.shares.2;
        let round = steps.fold(&[sums])?;
        self.choose_next(steps, &round);
        Ok(round)
    }

    fn fold_anchor(&mut self, steps: &mut impl Steps, own: Vec<f64>, sums: &[f64]) -> Result<Round, LearnError> {
        let width = sums.len() / if self.anchor.is_some() { 3 } else { 2 };
        if width <= 3 || !sums.len().is_multiple_of(width) {
            return Err(not_of_this_round());
        }
        let (all, chosen) = (&sums[..width], &sums[width..2 * width]);
        (self.shares.0, self.shares.1) = (self.shares.2, (self.shares.2 - 1.0).min(self.shares.1));
        let (fraction, last) = (self.fraction, self.anchor.take());
        self.first_loss.get_or_insert(all[width - 3]);
        let finite = all.iter().all(|sum| sum.is_finite());
        match &last {
            Some(last) if finite => self.adapt_to_error(all, &last.corrected(&own, &sums[2 * width..], self.rows)?),
            Some(_) if steps.back() => {
                self.skip_less();
                return Ok(Round::Inner);
            }
            _ => {}
        }
        let round = steps.fold(&[all.to_vec()])?;
        let Round::Iteration { iteration, loss, accuracy, .. } = round else { return Ok(round) };
        if let Some(last) = last
            && loss > last.loss
            && steps.back()
        {
            self.skip_less();
            return Ok(Round::Iteration { iteration, loss: last.loss, accuracy: last.accuracy, retried: true });
        }
        steps.mark();
        let missed = all.iter().zip(chosen).map(|(all, chosen)| all - chosen).collect();
        self.anchor = Some(Anchor { parameters: own, fraction, missed, loss, accuracy });
        self.choose_next(steps, &round);
        Ok(round)
    }

    /// Compares the sums over all rows with those that iterations without an anchor would have used instead, and adapts
    /// the share of the rows and the distance of anchors.
    fn adapt_to_error(&mut self, all: &[f64], taken: &[f64]) {
        let end = all.len() - 3;
        let off = |place: usize| (all[place] - taken[place]).abs();
        let of_loss = off(end) / self.first_loss.map_or(1.0, |first| first.abs().max(f64::MIN_POSITIVE));
        // The loss also shows errors that have not changed an answer yet.
        let wrong = if self.classifies { of_loss.max(off(end + 1) / self.rows) } else { of_loss };
        if wrong.is_nan() || wrong > self.options.accuracy_loss {
            self.skip_less();
        } else if wrong < self.options.accuracy_loss / 2.0 {
            // An anchor costs more than the rows of the iterations after it.
            if self.fraction > self.allowed {
                self.fraction = (self.fraction / 2.0).max(self.allowed);
            } else {
                self.length = (2 * self.length).min(LONGEST);
            }
        }
    }

    /// Skips less from now on: anchors come sooner, and if they cannot come sooner, iterations use more rows.
    fn skip_less(&mut self) {
        if self.length > SHORTEST {
            self.length /= 2;
        } else if self.fraction < FRACTION_MAX {
            self.fraction = (2.0 * self.fraction).min(FRACTION_MAX);
        } else {
            self.iterations_without_skipping = LONGEST;
        }
    }

    /// Chooses the kind of the round after an iteration.
    fn choose_next(&mut self, steps: &mut impl Steps, round: &Round) {
        if !matches!(round, Round::Iteration { .. }) {
            return;
        }
        self.all = (self.all.0 + self.shares.2, self.all.1 + 1);
        let before = self.mode;
        let whole = self.allowed >= 1.0 || self.iterations_without_skipping > 0;
        let next = if whole { Mode::Whole } else { Mode::Anchor };
        self.mode = match before {
            Mode::Whole => {
                self.iterations_without_skipping = self.iterations_without_skipping.saturating_sub(1);
                next
            }
            Mode::Anchor => {
                self.done = 0;
                if self.iterations_without_skipping > 0 { next } else { Mode::Skipping }
            }
            Mode::Skipping => {
                self.done += 1;
                if self.done < self.length { Mode::Skipping } else { next }
            }
        };
        if self.mode == Mode::Anchor || before == Mode::Skipping && self.mode == Mode::Whole {
            steps.settle();
            self.fraction = self.fraction.max(self.allowed.min(FRACTION_MAX));
        }
        if self.mode == Mode::Whole {
            self.anchor = None;
        }
    }
}

impl Anchor {
    /// Returns sums over the chosen rows at other parameters, corrected by the difference at the anchor. The loss is
    /// corrected by the slope of that difference, too, so that the gradient stays its derivative.
    fn corrected(&self, own: &[f64], sums: &[f64], rows: f64) -> Result<Vec<f64>, LearnError> {
        let width = self.missed.len();
        let count = width - 3;
        if sums.len() != width || own.len() != self.parameters.len() || own.len() < count {
            return Err(not_of_this_round());
        }
        let (now, then) = (&own[own.len() - count..], &self.parameters[own.len() - count..]);
        let mut sums: Vec<f64> = sums.iter().zip(&self.missed).map(|(sum, missed)| sum + missed).collect();
        sums[count] += self.missed.iter().zip(now.iter().zip(then)).map(|(slope, (n, t))| slope * (n - t)).sum::<f64>();
        sums[count + 1] = sums[count + 1].clamp(0.0, rows);
        Ok(sums)
    }
}

fn not_of_this_round() -> LearnError {
    LearnError::invalid("partial results", "are not of this round")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::{
        Data, Generator, Learner, LinearOptions, LocalTraining, Model, PerceptronOptions, ShardCache, generate,
        partial_of_critical,
    };

    const ROWS: CriticalRows = CriticalRows { accuracy_loss: 0.01, least: 0.1 };

    fn data(generator: Generator, classes: usize) -> (Shape, Vec<Data>) {
        let shape = Shape { rows: 4000, columns: 8, classes };
        (shape, (0..4).map(|shard| generate(generator, shape, 0.5, 7, shard, 4).unwrap()).collect())
    }

    /// Returns the share of rows that a model classifies correctly; for a regression, the share of the variance that it
    /// explains.
    fn right(model: &Model, shards: &[Data]) -> f64 {
        let pairs: Vec<(f64, f64)> = shards
            .iter()
            .flat_map(|data| data.rows().map(|row| model.predict(&row)).zip(data.labels.iter().copied()))
            .collect();
        if matches!(model, Model::Linear(model) if !model.classifies) {
            let mean = pairs.iter().map(|(_, label)| label).sum::<f64>() / pairs.len() as f64;
            let sum = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
            return 1.0 - sum(&|(p, label)| (p - label).powi(2)) / sum(&|(_, label)| (label - mean).powi(2));
        }
        pairs.iter().filter(|(predicted, label)| predicted == label).count() as f64 / pairs.len() as f64
    }

    fn cases() -> Vec<(Algorithm, Generator, usize)> {
        let linear = LinearOptions::default();
        let net = PerceptronOptions { hidden: vec![8], ..PerceptronOptions::default() };
        vec![
            (Algorithm::LinearRegression(linear), Generator::Linear, 0),
            (Algorithm::LogisticRegression(linear), Generator::Halves, 2),
            (Algorithm::LogisticRegression(linear), Generator::Clouds, 5),
            (Algorithm::LinearSvm(linear), Generator::Halves, 2),
            (Algorithm::LinearSvm(linear), Generator::Clouds, 4),
            (Algorithm::Perceptron(net), Generator::Rings, 3),
        ]
    }

    #[test]
    fn a_training_on_critical_rows_comes_to_nearly_the_same_with_less_work() {
        for (algorithm, generator, classes) in cases() {
            let name = algorithm.name();
            let (shape, shards) = data(generator, classes);
            let whole = LocalTraining::new(algorithm.clone(), shape, shards.clone()).unwrap().run(120).unwrap();
            let mut local =
                LocalTraining::new(algorithm, shape, shards.clone()).unwrap().on_critical_rows(ROWS).unwrap();
            let mut losses: Vec<f64> = (0..119).map(|_| local.iterate().unwrap().1).collect();
            local.use_all_rows_next();
            losses.push(local.iterate().unwrap().1);
            let share = local.worked() as f64 / (121.0 * 4000.0);
            assert!(share < 0.6, "{name} of {classes}: {share}");
            let (first, last) = (whole.losses[0], whole.losses[119]);
            let left = (losses[119] - last) / (first - last);
            // A perceptron takes another path, and has not converged yet.
            let (most, of_right) = if name == "perceptron" { (0.1, 0.03) } else { (0.02, 0.01) };
            assert!(left.abs() < most, "{name} of {classes}: {last} and {}", losses[119]);
            let (with, without) = (local.learner().model().unwrap(), whole.model.unwrap());
            let (with, without) = (right(&with, &shards), right(&without, &shards));
            assert!((with - without).abs() < of_right, "{name} of {classes}: {without} and {with}");
        }
    }

    #[test]
    fn results_do_not_depend_on_what_workers_keep_and_continue_from_what_is_stored() {
        for (algorithm, generator, classes) in cases() {
            let (shape, shards) = data(generator, classes);
            let new = || Learner::new(&algorithm, shape).unwrap().on_critical_rows(Some(ROWS), &algorithm, &shape);
            let (mut one, mut other) = (new().unwrap(), new().unwrap());
            let mut kept: Vec<ShardCache> = shards.iter().map(|_| ShardCache::default()).collect();
            for _ in 0..40 {
                let parameters = one.parameters();
                assert_eq!(parameters, other.parameters(), "{}", algorithm.name());
                let compute = |data: &Data, memory: &mut ShardCache| {
                    partial_of_critical(&algorithm, &shape, &parameters, data, memory).unwrap()
                };
                let partials: Vec<_> =
                    shards.iter().zip(&mut kept).map(|(data, memory)| compute(data, memory)).collect();
                one.fold(&partials).unwrap();
                let partials: Vec<_> = shards.iter().map(|data| compute(data, &mut ShardCache::default())).collect();
                other.fold(&partials).unwrap();
                other = postcard::from_bytes(&postcard::to_stdvec(&other).unwrap()).unwrap();
            }
        }
    }

    #[test]
    fn with_cores_enough_no_row_is_skipped_and_what_is_wrong_by_more_than_allowed_is_over_more_rows() {
        let (algorithm, generator, classes) = cases().remove(1);
        let (shape, shards) = data(generator, classes);
        let mut local =
            LocalTraining::new(algorithm.clone(), shape, shards.clone()).unwrap().on_critical_rows(ROWS).unwrap();
        let mut learner = local.learner().clone();
        learner.allow(1.0);
        local.resume(learner);
        for _ in 0..12 {
            local.iterate().unwrap();
        }
        assert_eq!(local.learner().row_shares().map(|shares| (shares.now, shares.mean)), Some((1.0, 1.0)));
        let strict = CriticalRows { accuracy_loss: 0.0001, least: 0.01 };
        let mut local = LocalTraining::new(algorithm, shape, shards).unwrap().on_critical_rows(strict).unwrap();
        for _ in 0..30 {
            local.iterate().unwrap();
        }
        assert!(local.learner().mean_row_share() > Some(0.5), "{:?}", local.learner().mean_row_share());
    }
}
