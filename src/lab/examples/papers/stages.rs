//! Jobs of stages (Libra, Decima's heuristics, DiAS): the studies of their framework, which run in virtual time.
//! Nothing is computed here.

use dag::study::report::{Inputs, STUDIES, run};
use lab::report::Spread;
use serde::Deserialize;

use crate::Failed;
use crate::row::Row;

/// A scenario of this kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "`name`, `about` and `replay` are for readers and for the choice of this kind")]
pub struct Stages {
    name: String,
    about: String,
    replay: String,
    /// The study, as `tepui lab stages` names it.
    study: String,
    /// How many seeds.
    repetitions: u64,
}

impl Stages {
    /// Runs it. Columns are named as by `tepui lab stages`.
    pub fn rows(text: &str) -> Result<Vec<Row>, Failed> {
        let scenario: Stages = toml::from_str(text)?;
        let study = STUDIES.into_iter().find(|study| study.name() == scenario.study);
        let study = study.ok_or_else(|| format!("there is no study '{}'", scenario.study))?;
        let inputs = Inputs { seeds: (1..=scenario.repetitions).collect(), ..Inputs::default() };
        let row = |row: dag::study::report::Row| {
            let spread = |(name, of): (&str, dag::study::stats::Spread)| Spread {
                name: name.to_owned(),
                mean: of.mean,
                half: of.half,
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
