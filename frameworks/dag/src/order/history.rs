//! Remembers how long tasks of a stage took in earlier runs. Stages with the same key are taken to be alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Number of stages that are remembered; beyond it the least recently observed one is forgotten.
const LIMIT: usize = 10_000;

/// Weight of a new run in the mean.
const NEW: f64 = 0.3;

/// Mean durations of tasks by stage, for [`Stage::duration`](super::Stage::duration).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    stages: BTreeMap<String, StageRuns>,
    uses: u64,
    /// Mean over all stages, for stages that have never run, in milliseconds.
    all: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct StageRuns {
    /// Mean duration of a task, in milliseconds.
    duration: f64,
    runs: u32,
    used: u64,
}

impl History {
    /// Adds the mean duration of a stage's tasks in a run, in milliseconds. The last runs count most. Keys longer than
    /// 1,024 bytes, and durations that are negative or not finite, are ignored.
    pub fn observe(&mut self, key: &str, duration: f64) {
        if key.len() > 1024 || !duration.is_finite() || duration < 0.0 {
            return;
        }
        self.uses += 1;
        self.all = if self.uses == 1 { duration } else { self.all + (duration - self.all) * 0.05 };
        let used = self.uses;
        let seen = self.stages.entry(key.to_owned()).or_insert(StageRuns { duration, runs: 0, used });
        // The first few runs count equally.
        let part = NEW.max(1.0 / f64::from(seen.runs + 1));
        *seen = StageRuns { duration: seen.duration + (duration - seen.duration) * part, runs: seen.runs + 1, used };
        if self.stages.len() > LIMIT {
            let oldest = self.stages.iter().min_by_key(|(_, seen)| seen.used).map(|(key, _)| key.clone());
            oldest.map(|key| self.stages.remove(&key));
        }
    }

    /// Returns the expected duration of a task of this stage, in milliseconds: that of its earlier runs, or else the
    /// mean over all stages; `None` before the first run.
    pub fn expect(&self, key: &str) -> Option<f64> {
        let mean = (self.uses > 0).then_some(self.all);
        self.stages.get(key).map(|seen| seen.duration).or(mean)
    }

    /// Returns whether this stage has run before.
    pub fn knows(&self, key: &str) -> bool {
        self.stages.contains_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_runs_count_less() {
        let mut history = History::default();
        assert_eq!(history.expect("a"), None);
        history.observe("a", 100.0);
        history.observe("a", 200.0);
        assert_eq!(history.expect("a"), Some(150.0));
        for _ in 0..20 {
            history.observe("a", 1000.0);
        }
        assert!((history.expect("a").unwrap() - 1000.0).abs() < 5.0);
        assert!(!history.knows("b") && history.expect("b").is_some());
        history.observe("c", f64::NAN);
        assert!(!history.knows("c"));
    }
}
