//! Runs jobs of stages (Libra, Decima's heuristics, DiAS): the studies of their framework, in virtual time. No task
//! computes anything.

use dag::study::report::{Inputs, STUDIES, run};
use lab::report::Spread;
use serde::Deserialize;

use crate::Failed;
use crate::row::Row;

/// A scenario that runs a study of jobs of stages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "`name`, `about` and `replay` are for readers and for the choice of this kind")]
pub struct Stages {
    name: String,
    about: String,
    replay: String,
    /// Name of the study, as in `tepui lab stages`.
    study: String,
    /// Number of seeds.
    repetitions: u64,
}

impl Stages {
    /// Runs the scenario, and returns its rows. Columns have the names of `tepui lab stages`.
    pub fn rows(text: &str) -> Result<Vec<Row>, Failed> {
        let scenario: Stages = toml::from_str(text)?;
        let study = STUDIES.into_iter().find(|study| study.name() == scenario.study);
        let study = study.ok_or_else(|| format!("there is no study '{}'", scenario.study))?;
        let inputs = Inputs { seeds: (1..=scenario.repetitions).collect(), ..Inputs::default() };
        let row = |row: dag::study::report::Row| {
            let spread = |(name, of): (&str, dag::study::stats::Spread)| Spread {
                mean: of.mean,
                half: of.half,
                ..Spread::plain(name, &[])
            };
            Row {
                values: row.labels.into_iter().map(|(title, value)| (title.to_owned(), value)).collect(),
                numbers: row.numbers.into_iter().map(spread).collect(),
                ..Row::default()
            }
        };
        Ok(run(study, &inputs)?.into_iter().map(row).collect())
    }
}
