//! Decides when a worker takes samples of its stream, in which its configuration is compared with the golden one.
//!
//! A sample needs every picture. Its processor time is not part of the query's share, which it would exceed many times
//! over for half a minute. So samples are far apart, and one that delays the query is abandoned.

use crate::core::{QualitySample, Start};
use crate::frame::Frame;
use crate::pipeline::{Config, Sample, SampleProgress};
use crate::profile::core_seconds;
use crate::vision::Network;

/// Start of the first sample, as a fraction of the interval.
const FIRST: f64 = 0.1;
/// Lag in seconds that a sample may add before it is abandoned.
const LATER_MAX: f64 = 2.0;

/// A sampler that takes samples of a stream, one at a time.
#[derive(Debug)]
pub(super) struct Sampler<'a> {
    start: &'a Start,
    network: Option<Network>,
    /// Time at which the next sample starts; `None` if samples are disabled.
    next: Option<f64>,
    current: Option<Sample>,
    /// Lag at the start of the current sample, in seconds.
    lag: f64,
    taken: u32,
    spent: f64,
}

impl<'a> Sampler<'a> {
    /// Creates the sampler of a worker that starts at this time, in seconds of its clock.
    pub(super) fn new(start: &'a Start, network: Option<Network>, now: f64) -> Sampler<'a> {
        let next = (start.sample_every > 0.0).then_some(now + start.sample_every * FIRST);
        Sampler { start, network, next, current: None, lag: 0.0, taken: 0, spent: 0.0 }
    }

    /// Starts a sample of this configuration if it is due, and abandons the current one if the query has become late.
    /// Returns whether every picture is needed.
    pub(super) fn needs_all(&mut self, now: f64, lag: f64, config: Config) -> bool {
        if self.current.is_some() && lag > self.lag + LATER_MAX {
            self.current = None;
        }
        // The golden configuration's quality is 1 by definition.
        if self.current.is_none() && config != self.start.golden && self.next.is_some_and(|next| now >= next) {
            let spec = &self.start.spec;
            let sample = Sample::new(spec.kind, &spec.scope, self.start.golden, config);
            self.current = Some(sample.with_network(self.network.clone()));
            self.lag = lag;
            self.next = Some(now + self.start.sample_every);
        }
        self.current.is_some()
    }

    /// Adds the next picture of the stream. Returns the result if the sample is complete.
    pub(super) fn push(&mut self, number: u64, seconds: f64, frame: &Frame) -> Option<Box<QualitySample>> {
        let sample = self.current.as_mut()?;
        let before = core_seconds();
        let sampled = sample.push(number, seconds, frame);
        self.spent += core_seconds() - before;
        let config = sample.config();
        match sampled {
            SampleProgress::More => None,
            SampleProgress::Void => {
                self.current = None;
                None
            }
            SampleProgress::Done(score) => {
                self.current = None;
                self.taken += 1;
                Some(Box::new(QualitySample { number: self.taken, at: seconds, config, score }))
            }
        }
    }

    /// Adds processor time that only a sample needed.
    pub(super) fn spend(&mut self, core_seconds: f64) {
        self.spent += core_seconds;
    }

    /// Returns the core-seconds of all samples so far.
    pub(super) fn spent(&self) -> f64 {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Orders;
    use crate::pipeline::QueryKind;
    use crate::scene::{SceneOptions, generate};
    use crate::schedule::Goals;
    use crate::spec::QuerySpec;
    use crate::worker::{LocalWorker, wait_for};

    #[test]
    fn a_worker_compares_its_configuration_with_the_golden_one() {
        let path = std::env::temp_dir().join(format!("tepui-sampler-{}.mp4", std::process::id()));
        let truth = path.with_extension("json");
        generate(&SceneOptions { seed: 6, seconds: 30.0, ..Default::default() }, &path).unwrap();
        let spec = QuerySpec {
            name: "q".to_owned(),
            kind: QueryKind::Cars,
            video: path.clone().into(),
            reconnect: 0.0,
            scope: crate::pipeline::Scope::default(),
            detector: crate::vision::Detector::Colour,
            model: None,
            alert: false,
            looped: true,
            seconds: Some(90.0),
            truth: None,
            profile: None,
            goals: Goals::default(),
        };
        let cheap = Config { every: 25, shrink: 8, ..Config::GOLDEN };
        let start = |config, golden| Start {
            spec: spec.clone(),
            // The whole stream exists already.
            age: 1000.0,
            position: 0.0,
            orders: Orders { config, cores: 1.0 },
            golden,
            sample_every: 0.1,
            patience: 1.0,
        };
        let worker = LocalWorker::start(start(cheap, Config::GOLDEN));
        wait_for(&worker, &|report| report.sample.as_ref().is_some_and(|sample| sample.number == 2));
        let sample = worker.report().sample.unwrap();
        assert_eq!(sample.config, cheap);
        assert!(sample.score.missed > 0, "{sample:?}");
        // The cost of samples is not counted as the query's.
        wait_for(&worker, &|report| report.done);
        let report = worker.report();
        assert_eq!(report.position, 90.0);
        assert!(report.frames <= 90 + 1, "pictures for samples alone are not looked at: {report:?}");
        // The golden configuration is not compared with itself.
        let worker = LocalWorker::start(start(cheap, cheap));
        wait_for(&worker, &|report| report.done);
        assert_eq!(worker.report().sample, None);
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(truth).unwrap();
    }
}
