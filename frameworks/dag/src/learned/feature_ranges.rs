//! Records the range of each feature in training, and finds features of a situation that are outside of it. It decides
//! nothing.

use serde::{Deserialize, Serialize};

use super::round::Situation;
use super::state::{JOB, JOB_NAMES, NODE, NODE_NAMES};

/// Distance from its range that a feature may have, as a fraction of the range.
const MARGIN: f32 = 0.1;

/// The ranges of features and of the number of jobs in training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeatureRanges {
    /// Least and greatest value of each feature of stages.
    pub stages: [(f32, f32); NODE],
    /// Least and greatest value of each feature of jobs.
    pub jobs: [(f32, f32); JOB],
    /// Largest number of jobs at once.
    pub most_jobs: u32,
    /// Number of situations that were recorded.
    pub situations: u64,
}

/// A feature that is outside of the range of the training.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnseenFeature {
    /// Name of the feature.
    pub feature: &'static str,
    /// Scaled value of the feature.
    pub value: f32,
    /// Least or greatest value in training.
    pub bound: f32,
}

fn widen((least, most): &mut (f32, f32), value: f32, first: bool) {
    (*least, *most) = if first { (value, value) } else { (least.min(value), most.max(value)) };
}

fn outside((least, most): (f32, f32), value: f32) -> Option<f32> {
    let margin = (most - least) * MARGIN + 1e-6;
    // NaN is outside of every range.
    if value >= least - margin && value <= most + margin {
        return None;
    }
    Some(if value < least { least } else { most })
}

impl FeatureRanges {
    /// Returns whether the bounds of all ranges are finite.
    pub(super) fn is_finite(&self) -> bool {
        self.stages.iter().chain(&self.jobs).all(|(least, most)| least.is_finite() && most.is_finite())
    }

    /// Extends the ranges by a situation.
    pub fn add(&mut self, situation: &Situation) {
        let mut first = self.situations == 0;
        for (at, job) in (0..).zip(&situation.jobs) {
            for (range, value) in self.jobs.iter_mut().zip(situation.features(at)) {
                widen(range, value, first);
            }
            for node in 0..job.len() {
                for (range, value) in self.stages.iter_mut().zip(job.node(node)) {
                    widen(range, *value, first && node == 0);
                }
            }
            first = false;
        }
        self.most_jobs = self.most_jobs.max(situation.jobs.len() as u32);
        self.situations += 1;
    }

    /// Extends the ranges by those of another record.
    pub fn merge(&mut self, other: &FeatureRanges) {
        if self.situations == 0 {
            *self = other.clone();
        } else if other.situations > 0 {
            let pairs = self.jobs.iter_mut().zip(other.jobs).chain(self.stages.iter_mut().zip(other.stages));
            for (range, (least, most)) in pairs {
                *range = (range.0.min(least), range.1.max(most));
            }
            self.most_jobs = self.most_jobs.max(other.most_jobs);
            self.situations += other.situations;
        }
    }

    /// Returns the first feature of a situation that is outside of its range.
    pub fn unseen(&self, situation: &Situation) -> Option<UnseenFeature> {
        let most = self.most_jobs as f32 * (1.0 + MARGIN);
        if situation.jobs.len() as f32 > most {
            return Some(UnseenFeature {
                feature: "jobs",
                value: situation.jobs.len() as f32,
                bound: self.most_jobs as f32,
            });
        }
        for (at, job) in (0..).zip(&situation.jobs) {
            let own = situation.features(at).into_iter().zip(self.jobs).zip(JOB_NAMES);
            let stages =
                (0..job.len()).flat_map(|node| job.node(node).iter().copied().zip(self.stages).zip(NODE_NAMES));
            let mut all = own.chain(stages);
            let found =
                all.find_map(|((value, range), feature)| outside(range, value).map(|bound| (feature, value, bound)));
            if let Some((feature, value, bound)) = found {
                return Some(UnseenFeature { feature, value, bound });
            }
        }
        None
    }
}
