//! Measures quality on a sample of a stream: a configuration against the golden one on the same pictures, both from an
//! empty scene. It does not decide when a sample is taken, and performs no I/O.

use super::config::Config;
use super::events::Finding;
use super::learn::Learner;
use super::query::QueryKind;
use super::run::Pipeline;
use super::score::{Score, score};
use crate::frame::Frame;
use crate::scope::Scope;
use crate::vision::Network;

/// Length of a sample in seconds, without the time in which its background is learnt.
pub const SAMPLE_SECONDS: f64 = 20.0;

/// A sample in progress.
#[derive(Debug)]
pub struct Sample {
    kind: QueryKind,
    scope: Scope,
    network: Option<Network>,
    golden: Config,
    config: Config,
    learner: Learner,
    runs: Option<Runs>,
    expected: Option<u64>,
}

/// The pipelines of both configurations.
#[derive(Debug)]
struct Runs {
    began: f64,
    first: u64,
    golden: Run,
    config: Run,
}

#[derive(Debug)]
struct Run {
    pipeline: Pipeline,
    found: Vec<Finding>,
}

/// Progress of a sample after a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleProgress {
    /// The sample needs more pictures.
    More,
    /// The sample is complete, with the score of the configuration's findings against the golden ones.
    Done(Score),
    /// The sample is invalid: pictures are missing, or the view changed.
    Void,
}

impl Sample {
    /// Starts a sample of `config`, which is compared with `golden`.
    pub fn new(kind: QueryKind, scope: &Scope, golden: Config, config: Config) -> Sample {
        let (scope, learner) = (scope.clone(), Learner::default());
        Sample { kind, scope, network: None, golden, config, learner, runs: None, expected: None }
    }

    /// Sets the network, before the first picture; see [`Pipeline::with_network`].
    #[must_use]
    pub fn with_network(mut self, network: Option<Network>) -> Sample {
        self.network = network;
        self
    }

    /// Returns the configuration that is compared.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Adds the next picture of the stream, with its number and its time in seconds. Every picture must be added: once
    /// the background is learnt, a missing one makes the sample invalid.
    pub fn push(&mut self, number: u64, seconds: f64, frame: &Frame) -> SampleProgress {
        let missing = self.expected.replace(number + 1).is_some_and(|expected| expected != number);
        let Some(runs) = &mut self.runs else {
            if let Some(still) = self.learner.push(seconds, frame) {
                let run = |config| Run {
                    pipeline: Pipeline::new(self.kind, config, still.clone())
                        .within(&self.scope)
                        .with_network(self.network.clone()),
                    found: Vec::new(),
                };
                let (golden, config) = (run(self.golden), run(self.config));
                self.runs = Some(Runs { began: seconds, first: number + 1, golden, config });
            }
            return SampleProgress::More;
        };
        if missing {
            return SampleProgress::Void;
        }
        let since = number.saturating_sub(runs.first);
        if seconds - runs.began >= SAMPLE_SECONDS {
            runs.golden.finish();
            runs.config.finish();
            return SampleProgress::Done(score(self.kind, &runs.config.found, &runs.golden.found));
        }
        let same = runs.golden.process(since, seconds, frame) && runs.config.process(since, seconds, frame);
        if same { SampleProgress::More } else { SampleProgress::Void }
    }
}

impl Run {
    /// Processes a picture, unless the configuration skips it. Returns `false` if the view has changed.
    fn process(&mut self, since: u64, seconds: f64, frame: &Frame) -> bool {
        if since.is_multiple_of(u64::from(self.pipeline.config().every.max(1))) {
            self.found.extend(self.pipeline.process(seconds, frame));
        }
        self.pipeline.notices().is_empty()
    }

    fn finish(&mut self) {
        self.found.extend(self.pipeline.finish());
    }
}
