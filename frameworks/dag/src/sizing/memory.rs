//! Remembers the sizes that earlier runs found, by the key of a stage. It writes no file: it is serde data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Default number of keys that are kept; the least recently used are removed first.
const LIMIT: usize = 10_000;

/// The result of earlier runs of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierRuns {
    /// Best size that was found, in units.
    pub size: u64,
    /// Rate of a task of this size, in units per second.
    pub rate: f64,
    /// Number of waves of the search, in all runs.
    pub waves: u32,
    /// Number of runs.
    pub runs: u32,
}

/// Sizes by stage. The key decides which stages are alike, such as `job name/stage name`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    stages: BTreeMap<String, (u64, EarlierRuns)>,
    uses: u64,
}

impl Memory {
    /// Returns the result of earlier runs of a stage.
    pub fn recall(&self, key: &str) -> Option<EarlierRuns> {
        self.stages.get(key).map(|(_, remembered)| *remembered)
    }

    /// Keeps the result of a run; a key longer than 1,024 bytes is ignored.
    pub fn keep(&mut self, key: &str, found: EarlierRuns) {
        if key.len() > 1024 {
            return;
        }
        self.uses += 1;
        self.stages.insert(key.to_owned(), (self.uses, found));
        if self.stages.len() > LIMIT {
            let oldest = self.stages.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            oldest.map(|key| self.stages.remove(&key));
        }
    }

    /// Returns the number of known stages.
    pub fn len(&self) -> usize {
        self.stages.len()
    }

    /// Returns whether no stage is known.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first() {
        let mut memory = Memory::default();
        let found = EarlierRuns { size: 5, rate: 1.0, waves: 2, runs: 1 };
        for n in 0..=LIMIT {
            memory.keep(&n.to_string(), found);
        }
        assert_eq!((memory.len(), memory.recall("0"), memory.recall("1")), (LIMIT, None, Some(found)));
        memory.keep(&"long".repeat(1000), found);
        assert_eq!(memory.len(), LIMIT);
    }
}
