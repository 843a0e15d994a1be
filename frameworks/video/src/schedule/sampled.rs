//! Quality measured on samples of a stream, and detection of profiles that no longer fit.
//!
//! VideoStorm (NSDI 2017) profiles once; that a profile is measured again when the stream has changed is tepui's.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::pipeline::Score;

/// Number of samples that count, the last ones.
const SAMPLES_MAX: usize = 12;
/// Number of findings in all samples below which the quality is unknown.
const EVENTS_MIN: u64 = 10;
/// Number of findings below which the samples do not decide about the profile.
const EVENTS_DRIFT: u64 = 20;
/// Least difference between profile and samples that counts as drift.
const DRIFT: f64 = 0.1;

/// Results of the last samples of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampledQuality {
    /// Score of each sample, with the quality of its configuration according to the profile.
    samples: VecDeque<(Score, f64)>,
}

/// Summary of the samples, for a query's status.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledStatus {
    /// F1 score against the golden configuration over the last samples; `None` while they have too few findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<f64>,
    /// Quality of the sampled configurations according to the profile.
    pub promised: f64,
    /// Number of findings of the golden configuration in the samples.
    pub events: u64,
    /// Number of samples.
    pub samples: usize,
    /// Whether the profile no longer fits.
    pub drifted: bool,
}

impl SampledQuality {
    /// Adds a sample of a configuration that has the quality `promised` in the profile.
    pub fn add(&mut self, score: Score, promised: f64) {
        self.samples.push_back((score, promised));
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
    }

    /// Removes all samples, because there is a new profile.
    pub fn clear(&mut self) {
        self.samples.clear();
    }

    /// Returns the summary; `None` before the first sample.
    pub fn status(&self) -> Option<SampledStatus> {
        if self.samples.is_empty() {
            return None;
        }
        let mut all = Score::default();
        let (mut promised, mut weight) = (0.0, 0.0);
        for (score, quality) in &self.samples {
            all.right += score.right;
            all.wrong += score.wrong;
            all.missed += score.missed;
            let events = (score.right + score.missed) as f64;
            promised += quality * events;
            weight += events;
        }
        let events = all.right + all.missed;
        let promised = if weight > 0.0 {
            promised / weight
        } else {
            self.samples.iter().map(|(_, quality)| quality).sum::<f64>() / self.samples.len() as f64
        };
        let quality = all.f1();
        // Two standard errors of a proportion of this many findings, with one more of each outcome so that 1.0 has an
        // error, too.
        let spread = (quality * events as f64 + 1.0) / (events as f64 + 2.0);
        let error = 2.0 * (spread * (1.0 - spread) / (events as f64 + 2.0)).sqrt();
        Some(SampledStatus {
            quality: (events >= EVENTS_MIN).then_some(quality),
            promised,
            events,
            samples: self.samples.len(),
            drifted: events >= EVENTS_DRIFT && (quality - promised).abs() > DRIFT.max(error),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn score(right: u64, missed: u64) -> Score {
        Score { right, wrong: 0, missed }
    }

    #[test]
    fn drift_needs_events_and_a_difference_that_chance_does_not_make() {
        let mut sampled = SampledQuality::default();
        assert_eq!(sampled.status(), None);
        sampled.add(score(3, 3), 0.95);
        let status = sampled.status().unwrap();
        assert_eq!((status.quality, status.events, status.drifted), (None, 6, false), "too few things");
        sampled.add(score(4, 8), 0.95);
        let status = sampled.status().unwrap();
        assert!(status.quality.is_some() && !status.drifted, "18 are still too few: {status:?}");
        sampled.add(score(4, 8), 0.95);
        assert!(sampled.status().unwrap().drifted);
        // A stream with better quality has drifted, too: the profile asks for more cores than are needed.
        let mut better = SampledQuality::default();
        (0..8).for_each(|_| better.add(score(12, 0), 0.6));
        assert!(better.status().unwrap().drifted);
        sampled.clear();
        assert_eq!(sampled.status(), None);
    }

    proptest! {
        /// Samples that agree with the profile do not count as drift, and only the last samples count.
        #[test]
        fn a_profile_that_fits_has_not_drifted(
            samples in prop::collection::vec((1u64..30, 0u64..10), 1..40),
        ) {
            let mut sampled = SampledQuality::default();
            for (right, missed) in &samples {
                let score = score(*right, *missed);
                sampled.add(score, score.f1());
            }
            let status = sampled.status().unwrap();
            prop_assert!(!status.drifted, "{status:?}");
            prop_assert!(status.samples <= SAMPLES_MAX);
            prop_assert!((0.0..=1.0).contains(&status.promised));
        }
    }
}
