//! Latent Dirichlet allocation by variational inference over all documents (Blei, Ng and Jordan, 2003), with topics
//! that have a prior too, as in Hoffman, Blei and Bach (2010).

use libm::lgamma;
use serde::{Deserialize, Serialize};

use super::algorithm::{Shape, within};
use super::data::{Data, Rows};
use super::error::LearnError;
use super::learner::{Reader, Round, total};
use super::sample;

const WEIGHTS_MAX: usize = 4_000_000;
/// Change below which a document's topics have converged, and maximum number of passes.
const SETTLED: f64 = 1e-4;
const PASSES_MAX: usize = 60;

/// Hyperparameters of a topic model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TopicsOptions {
    /// Number of topics. 10 by default.
    pub topics: usize,
    /// Dirichlet parameter of topics in a document: the larger, the more evenly a document is spread over topics. 0.1
    /// by default.
    pub alpha: f64,
    /// Dirichlet parameter of words in a topic: the larger, the more evenly a topic is spread over words. 0.05 by
    /// default.
    pub eta: f64,
    /// Seed of the first topics.
    pub seed: u64,
}

impl Default for TopicsOptions {
    fn default() -> TopicsOptions {
        TopicsOptions { topics: 10, alpha: 0.1, eta: 0.05, seed: 0 }
    }
}

impl TopicsOptions {
    pub(crate) fn check(&self) -> Result<(), LearnError> {
        if !(1..=1000).contains(&self.topics) {
            return Err(LearnError::invalid("topics", "must be between 1 and 1000"));
        }
        within("alpha", self.alpha, 1e-6, 1e3)?;
        within("eta", self.eta, 1e-6, 1e3)
    }

    pub(crate) fn check_shape(&self, shape: &Shape) -> Result<(), LearnError> {
        match self.topics.saturating_mul(shape.columns) {
            0..=WEIGHTS_MAX => Ok(()),
            n => Err(LearnError::invalid("topics", format!("times words is {n}, and {WEIGHTS_MAX} is the limit"))),
        }
    }
}

/// Computes a round of one shard: the expected count of each word in each topic, by word; then the bound of the
/// documents' log-likelihood, and the number of their words. The parameters are the topics' weights, by word.
pub(crate) fn partial(options: &TopicsOptions, parameters: &[f64], data: &Data) -> Result<Vec<f64>, LearnError> {
    let (words, topics) = (data.width(), options.topics);
    let weights = Reader::new(parameters).take(words * topics)?;
    let mut sums = vec![0.0; words * topics + 2];
    let mut document = Document::new(options);
    for row in 0..data.len() {
        let counts: Vec<(usize, f64)> = match &data.rows {
            Rows::Dense(rows) => rows.row(row).iter().copied().enumerate().filter(|(_, n)| *n != 0.0).collect(),
            Rows::Sparse(rows) => rows.row(row).filter(|(_, n)| *n != 0.0).collect(),
        };
        if counts.iter().any(|(_, n)| !(n.is_finite() && *n > 0.0)) {
            return Err(LearnError::invalid("data", "counts of words must not be negative"));
        }
        document.settle(&counts, weights);
        for (word, count) in &counts {
            let of_word = &weights[word * topics..(word + 1) * topics];
            let likelihood = document.likelihood(of_word);
            sums[words * topics] += count * likelihood.ln();
            sums[words * topics + 1] += count;
            let expected = sums[word * topics..(word + 1) * topics].iter_mut();
            for ((sum, weight), share) in expected.zip(of_word).zip(&document.shares) {
                *sum += count * weight * share / likelihood;
            }
        }
        sums[words * topics] += document.bound();
    }
    Ok(sums)
}

/// Returns the cost of a shard's documents, and the number of their words. The cost of the topics themselves is not
/// included.
pub(crate) fn score(options: &TopicsOptions, parameters: &[f64], data: &Data) -> Result<Option<[f64; 3]>, LearnError> {
    let sums = partial(options, parameters, data)?;
    Ok(sums.last_chunk::<2>().map(|[bound, words]| [-bound, 0.0, *words]))
}

/// Returns the model that a round's parameters describe.
pub(crate) fn model_of(options: &TopicsOptions, parameters: &[f64]) -> Option<TopicModel> {
    let topic = |t: usize| {
        let weights = parameters.chunks_exact(options.topics).map(|of_word| of_word[t]);
        let sum: f64 = weights.clone().sum();
        weights.map(|w| w / sum.max(f64::MIN_POSITIVE)).collect::<Vec<f64>>()
    };
    let topics: Vec<Vec<f64>> = (0..options.topics).map(topic).collect();
    (!parameters.is_empty()).then_some(TopicModel { alpha: options.alpha, topics })
}

/// The topics of one document, as far as they have been inferred.
struct Document {
    alpha: f64,
    /// Parameters of the Dirichlet distribution over topics.
    gammas: Vec<f64>,
    /// Exponential of each topic's expected logarithm.
    shares: Vec<f64>,
}

impl Document {
    fn new(options: &TopicsOptions) -> Document {
        Document { alpha: options.alpha, gammas: vec![1.0; options.topics], shares: vec![1.0; options.topics] }
    }

    /// Returns the probability of a word, given its weights in the topics.
    fn likelihood(&self, of_word: &[f64]) -> f64 {
        of_word.iter().zip(&self.shares).map(|(w, s)| w * s).sum::<f64>().max(1e-100)
    }

    /// Infers the topics of a document from a fixed start, so that earlier passes do not matter.
    fn settle(&mut self, counts: &[(usize, f64)], weights: &[f64]) {
        let topics = self.gammas.len();
        let length: f64 = counts.iter().map(|(_, n)| n).sum();
        self.gammas.fill(self.alpha + length / topics as f64);
        self.expect();
        for _ in 0..PASSES_MAX {
            let mut fresh = vec![0.0; topics];
            for (word, count) in counts {
                let of_word = &weights[word * topics..(word + 1) * topics];
                let factor = count / self.likelihood(of_word);
                fresh.iter_mut().zip(of_word).for_each(|(f, w)| *f += factor * w);
            }
            let mut change = 0.0;
            for ((gamma, fresh), share) in self.gammas.iter_mut().zip(fresh).zip(&self.shares) {
                let next = self.alpha + share * fresh;
                change += (next - *gamma).abs();
                *gamma = next;
            }
            self.expect();
            if change / (topics as f64) < SETTLED {
                break;
            }
        }
    }

    fn expect(&mut self) {
        let all = digamma(self.gammas.iter().sum());
        self.shares.iter_mut().zip(&self.gammas).for_each(|(share, g)| *share = (digamma(*g) - all).exp());
    }

    /// Returns the part of the bound that comes from the document's topics.
    fn bound(&self) -> f64 {
        let topics = self.gammas.len() as f64;
        let all: f64 = self.gammas.iter().sum();
        let expected = digamma(all);
        let each = |g: &f64| (self.alpha - g) * (digamma(*g) - expected) + lgamma(*g) - lgamma(self.alpha);
        self.gammas.iter().map(each).sum::<f64>() + lgamma(topics * self.alpha) - lgamma(all)
    }
}

/// Returns the derivative of ln gamma(x), for x > 0: shifted up, then by its asymptotic series.
fn digamma(mut x: f64) -> f64 {
    let mut result = 0.0;
    while x < 6.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = square * (1.0 / 12.0 - square * (1.0 / 120.0 - square * (1.0 / 252.0 - square / 240.0)));
    result + x.ln() - 0.5 / x - series
}

/// The state of the training of a topic model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Topics {
    options: TopicsOptions,
    words: usize,
    /// Parameters of each topic's distribution over words, by word.
    lambdas: Vec<f64>,
    iteration: u64,
}

impl Topics {
    pub(crate) fn new(options: TopicsOptions, shape: Shape) -> Topics {
        let mut chance = sample::generator(options.seed, 0);
        let lambdas = (0..shape.columns * options.topics).map(|_| sample::gamma(&mut chance, 100.0) / 100.0).collect();
        Topics { options, words: shape.columns, lambdas, iteration: 0 }
    }

    /// Returns each topic's sum over all words.
    fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.options.topics];
        for of_word in self.lambdas.chunks_exact(self.options.topics) {
            sums.iter_mut().zip(of_word).for_each(|(sum, l)| *sum += l);
        }
        sums
    }

    pub(crate) fn parameters(&self) -> Vec<f64> {
        let expected: Vec<f64> = self.sums().into_iter().map(digamma).collect();
        let of_word =
            |row: &[f64]| -> Vec<f64> { row.iter().zip(&expected).map(|(l, all)| (digamma(*l) - all).exp()).collect() };
        self.lambdas.chunks_exact(self.options.topics).flat_map(of_word).collect()
    }

    pub(crate) fn fold(&mut self, partials: &[Vec<f64>]) -> Result<Round, LearnError> {
        let width = self.words * self.options.topics;
        let totals = total(partials, width + 2)?;
        let loss = -(totals[width] + self.bound()) / totals[width + 1].max(1.0);
        if !loss.is_finite() {
            return Err(LearnError::NotANumber { iteration: self.iteration, halvings: 0 });
        }
        self.lambdas.iter_mut().zip(&totals).for_each(|(l, count)| *l = self.options.eta + count);
        self.iteration += 1;
        Ok(Round::Iteration { iteration: self.iteration - 1, loss, accuracy: None, retried: false })
    }

    /// Returns the part of the bound that comes from the topics themselves.
    fn bound(&self) -> f64 {
        let (eta, words) = (self.options.eta, self.words as f64);
        let sums = self.sums();
        let expected: Vec<f64> = sums.iter().map(|s| digamma(*s)).collect();
        let own = lgamma(eta);
        let of_topics: f64 = sums.iter().map(|s| lgamma(words * eta) - lgamma(*s)).sum();
        let each = |(l, all): (&f64, &f64)| (eta - l) * (digamma(*l) - all) + lgamma(*l) - own;
        let of_words = |row: &[f64]| row.iter().zip(&expected).map(each).sum::<f64>();
        of_topics + self.lambdas.chunks_exact(self.options.topics).map(of_words).sum::<f64>()
    }

    pub(crate) fn model(&self) -> Option<TopicModel> {
        let sums = self.sums();
        let topic = |t: usize| {
            self.lambdas.chunks_exact(self.options.topics).map(|of_word| of_word[t] / sums[t]).collect::<Vec<f64>>()
        };
        let topics = (0..self.options.topics).map(topic).collect();
        (self.iteration > 0).then_some(TopicModel { alpha: self.options.alpha, topics })
    }
}

/// A trained topic model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicModel {
    /// Dirichlet parameter of topics in a document: the larger, the more evenly a document is spread over topics.
    pub alpha: f64,
    /// Probability of each word, for each topic.
    pub topics: Vec<Vec<f64>>,
}

impl TopicModel {
    /// Returns the largest topic of a document, which is given by the counts of its words.
    pub fn predict(&self, row: &[f64]) -> f64 {
        let words = self.topics.first().map_or(0, Vec::len);
        let weights: Vec<f64> =
            (0..words).flat_map(|w| self.topics.iter().map(move |t| t.get(w).copied().unwrap_or(0.0))).collect();
        let counts: Vec<(usize, f64)> = row.iter().copied().take(words).enumerate().filter(|(_, n)| *n > 0.0).collect();
        let options = TopicsOptions { topics: self.topics.len(), alpha: self.alpha, ..TopicsOptions::default() };
        let mut document = Document::new(&options);
        document.settle(&counts, &weights);
        let best = document.gammas.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        best.map_or(0.0, |(topic, _)| topic as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digamma_is_the_slope_of_ln_gamma() {
        for x in [0.01, 0.5, 1.0, 3.7, 6.0, 250.0] {
            let slope = (lgamma(x + 1e-6 * x) - lgamma(x - 1e-6 * x)) / (2e-6 * x);
            assert!((digamma(x) - slope).abs() < 1e-6 * slope.abs().max(1.0), "{x}: {} and {slope}", digamma(x));
        }
    }
}
