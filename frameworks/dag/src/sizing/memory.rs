//! Sizes that earlier runs found, by the key of a stage. It writes no file: it is serde data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Default number of keys that are kept; the least recently used are removed first.
const LIMIT: usize = 10_000;

/// What runs of a stage have found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    /// The size that was found, in units.
    pub size: u64,
    /// Units that a task of this size processed in a second.
    pub rate: f64,
    /// Waves that looked for it, in all runs.
    pub waves: u32,
    /// Runs.
    pub runs: u32,
}

/// Sizes by stage. The key says which stages are alike, such as `job name/stage name`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    stages: BTreeMap<String, (u64, Remembered)>,
    uses: u64,
}

impl Memory {
    /// What is known of a stage.
    pub fn recall(&self, key: &str) -> Option<Remembered> {
        self.stages.get(key).map(|(_, remembered)| *remembered)
    }

    /// Keeps what a run has found; a key longer than 1,024 bytes is not kept.
    pub fn keep(&mut self, key: &str, found: Remembered) {
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

    /// Number of known stages.
    pub fn len(&self) -> usize {
        self.stages.len()
    }

    /// Whether nothing is known.
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
        let found = Remembered { size: 5, rate: 1.0, waves: 2, runs: 1 };
        for n in 0..=LIMIT {
            memory.keep(&n.to_string(), found);
        }
        assert_eq!((memory.len(), memory.recall("0"), memory.recall("1")), (LIMIT, None, Some(found)));
        memory.keep(&"long".repeat(1000), found);
        assert_eq!(memory.len(), LIMIT);
    }
}
