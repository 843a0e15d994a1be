//! Validation data of a job, on which its model is measured and from which it does not learn.

use serde::{Deserialize, Serialize};

/// Validation data: a share of the job's rows, or a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub enum Validation {
    /// Random share of the rows. In a job file a number, or `{ share = 0.2, seed = 1 }`.
    Share {
        /// Share of the rows, between 0 and 1.
        share: f64,
        /// Seed that determines the rows.
        seed: u64,
    },
    /// Path of a file with the same columns, which the scheduler and all workers can read under this name. In a job
    /// file a text.
    File(String),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "must be a share such as 0.2, a file's name, or { share = 0.2, seed = 1 }")]
enum Written {
    Number(f64),
    Drawn(Drawn),
    File(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Drawn {
    share: f64,
    #[serde(default)]
    seed: u64,
}

impl From<Written> for Validation {
    fn from(written: Written) -> Validation {
        match written {
            Written::Number(share) => Validation::Share { share, seed: 0 },
            Written::Drawn(Drawn { share, seed }) => Validation::Share { share, seed },
            Written::File(path) => Validation::File(path),
        }
    }
}

impl From<Validation> for Written {
    fn from(validation: Validation) -> Written {
        match validation {
            Validation::Share { share, seed } => Written::Drawn(Drawn { share, seed }),
            Validation::File(path) => Written::File(path),
        }
    }
}

impl Validation {
    /// Returns the rule that the definition breaks, if it breaks one.
    pub(super) fn breach(&self) -> Option<String> {
        match self {
            Validation::Share { share, .. } if !(share.is_finite() && (0.001..=0.9).contains(share)) => {
                Some(format!("must be a share between 0.001 and 0.9, not {share}"))
            }
            Validation::File(path) if path.is_empty() => Some("names no file".to_owned()),
            _ => None,
        }
    }

    /// Returns the number of parts into which the rows are divided, so that each is about as large as one of the
    /// `shards` to learn from.
    pub(super) fn shards(&self, shards: usize) -> usize {
        match self {
            Validation::Share { share, .. } => (shards as f64 * share / (1.0 - share)).round().max(1.0) as usize,
            Validation::File(_) => shards.div_ceil(4),
        }
    }

    /// Divides this many rows into those to learn from and those held out; both lists are in ascending order.
    pub(super) fn split(share: f64, seed: u64, rows: usize) -> (Vec<usize>, Vec<usize>) {
        let held = ((rows as f64 * share).round() as usize).min(rows.saturating_sub(1));
        let mut drawn: Vec<(u64, usize)> =
            (0..rows).map(|row| (base::scramble(seed ^ base::scramble(row as u64)), row)).collect();
        drawn.sort_unstable();
        let mut held: Vec<usize> = drawn.drain(..held).map(|(_, row)| row).collect();
        let mut learnt: Vec<usize> = drawn.into_iter().map(|(_, row)| row).collect();
        held.sort_unstable();
        learnt.sort_unstable();
        (learnt, held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_split_has_every_row_once_and_depends_on_the_seed_only(
            rows in 1_usize..500, share in 0.001..0.9, seed: u64
        ) {
            let (learnt, held) = Validation::split(share, seed, rows);
            prop_assert_eq!(Validation::split(share, seed, rows), (learnt.clone(), held.clone()));
            prop_assert!(!learnt.is_empty());
            prop_assert!(held.len().abs_diff((rows as f64 * share).round() as usize) <= 1);
            let mut all = [learnt, held].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..rows).collect::<Vec<_>>());
        }
    }

    #[test]
    fn another_seed_holds_out_other_rows() {
        assert_ne!(Validation::split(0.5, 1, 100), Validation::split(0.5, 2, 100));
    }
}
