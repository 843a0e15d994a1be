//! The range of each feature in training, and which features of a situation are out of it. It decides nothing.

use serde::{Deserialize, Serialize};

use super::round::Situation;
use super::state::{JOB, JOB_NAMES, NODE, NODE_NAMES};

/// How far above its range a feature may be, as a part of the range.
const MARGIN: f32 = 0.1;

/// Ranges of features, and of the number of jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The least and the most of each feature of stages.
    pub stages: [(f32, f32); NODE],
    /// The least and the most of each feature of jobs.
    pub jobs: [(f32, f32); JOB],
    /// Jobs at once at most.
    pub most_jobs: u32,
    /// Situations that it has seen.
    pub situations: u64,
}

/// A feature that is out of the range of the training.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unseen {
    /// Its name.
    pub feature: &'static str,
    /// Its value, as it is scaled.
    pub value: f32,
    /// The most or the least in training.
    pub bound: f32,
}

fn widen((least, most): &mut (f32, f32), value: f32, first: bool) {
    (*least, *most) = if first { (value, value) } else { (least.min(value), most.max(value)) };
}

fn outside((least, most): (f32, f32), value: f32) -> Option<f32> {
    let margin = (most - least) * MARGIN + 1e-6;
    // What is not a number is out of every range.
    if value >= least - margin && value <= most + margin {
        return None;
    }
    Some(if value < least { least } else { most })
}

impl Seen {
    /// Whether all ranges have ends.
    pub(super) fn is_finite(&self) -> bool {
        self.stages.iter().chain(&self.jobs).all(|(least, most)| least.is_finite() && most.is_finite())
    }

    /// Adds a situation.
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

    /// Adds what another has seen.
    pub fn merge(&mut self, other: &Seen) {
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

    /// The first feature of a situation that is out of its range.
    pub fn unseen(&self, situation: &Situation) -> Option<Unseen> {
        let most = self.most_jobs as f32 * (1.0 + MARGIN);
        if situation.jobs.len() as f32 > most {
            return Some(Unseen { feature: "jobs", value: situation.jobs.len() as f32, bound: self.most_jobs as f32 });
        }
        for (at, job) in (0..).zip(&situation.jobs) {
            let own = situation.features(at).into_iter().zip(self.jobs).zip(JOB_NAMES);
            let stages =
                (0..job.len()).flat_map(|node| job.node(node).iter().copied().zip(self.stages).zip(NODE_NAMES));
            let mut all = own.chain(stages);
            let found =
                all.find_map(|((value, range), feature)| outside(range, value).map(|bound| (feature, value, bound)));
            if let Some((feature, value, bound)) = found {
                return Some(Unseen { feature, value, bound });
            }
        }
        None
    }
}
