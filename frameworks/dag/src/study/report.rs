//! Converts the results of all studies to tables: what was varied, and numbers with their intervals. It runs the
//! studies and prints nothing.

use std::sync::Arc;

use serde::Serialize;

use super::alibaba::TracedJob;
use super::libra::Compared;
use super::stats::Spread;
use super::tpch::Queries;
use super::{StudyError, dias, learned, libra, orders, packing, sprinting};
use crate::learned::{Model, Order};

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Titles and values of what was varied.
    pub labels: Vec<(&'static str, String)>,
    /// Titles and numbers. A title that ends with `%` marks a fraction of 1.
    pub numbers: Vec<(&'static str, Spread)>,
    /// Result of the paper or of the public simulator; empty where none is known.
    pub known: String,
}

/// A study that the command line can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Study {
    /// Sizes of tasks ([`libra`]).
    Sizes,
    /// Orders of stages ([`orders`]).
    Orders,
    /// The learned order ([`learned`]).
    Learned,
    /// Orders with several resources ([`packing`]).
    Packing,
    /// Dropped tasks and sprints ([`dias`]).
    Drops,
    /// A model of sprints ([`sprinting`]).
    Sprinting,
}

/// All studies.
pub const STUDIES: [Study; 6] =
    [Study::Sizes, Study::Orders, Study::Learned, Study::Packing, Study::Drops, Study::Sprinting];

impl Study {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Study::Sizes => "sizes",
            Study::Orders => "orders",
            Study::Learned => "decima",
            Study::Packing => "packing",
            Study::Drops => "drops",
            Study::Sprinting => "sprinting",
        }
    }

    /// Returns the claim of the paper that the study examines.
    pub fn claim(self) -> &'static str {
        match self {
            Study::Sizes => "Libra (SoCC 2019): stages 25 to 70 % shorter than with the size that they begin with",
            Study::Orders => {
                "Decima (SIGCOMM 2019): fair shares 2.5 times better than fifo; a tuned weighted share is the best heuristic"
            }
            Study::Learned => {
                "Decima (SIGCOMM 2019): the learned policy 21 % better than tuned weighted shares in batches, 28 to 29 % in streams"
            }
            Study::Packing => {
                "Decima (SIGCOMM 2019): the learned policy 32 % better than Graphene; here are heuristics only"
            }
            Study::Drops => {
                "DiAS (Middleware 2019): up to 90 % shorter for low priority, 60 % for high, 30 % less energy than evictions"
            }
            Study::Sprinting => {
                "Model-driven computational sprinting (EuroSys 2018): median error of predicted responses below 4 %, 11 % at worst"
            }
        }
    }
}

/// Inputs of studies, which replace generated ones, and seeds.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Seeds of the runs; at least one.
    pub seeds: Vec<u64>,
    /// TPC-H queries of the public simulator.
    pub queries: Option<Queries>,
    /// Jobs of Alibaba's trace.
    pub trace: Option<Vec<TracedJob>>,
    /// Model of the learned order; `None` for the one that is part of this program.
    pub model: Option<Arc<Model>>,
}

/// Runs a study.
///
/// # Errors
/// The study cannot use the inputs.
pub fn run(study: Study, inputs: &Inputs) -> Result<Vec<Row>, StudyError> {
    match study {
        Study::Sizes => Ok(all_sizes(&libra::study(&inputs.seeds))),
        Study::Orders => of_orders(inputs),
        Study::Learned => of_learned(inputs),
        Study::Packing => of_packing(inputs),
        Study::Drops => Ok(dias::study(&inputs.seeds).iter().map(of_drops).collect()),
        Study::Sprinting => Ok(of_sprinting(&inputs.seeds)),
    }
}

/// Returns a row for each stage and starting size, one for all sizes of each stage, and one for all stages.
fn all_sizes(compared: &[Compared]) -> Vec<Row> {
    let mut rows = Vec::new();
    for of_stage in compared.chunk_by(|a, b| a.curve == b.curve) {
        let of_stage: Vec<Row> = of_stage.iter().map(of_sizes).collect();
        let stage = of_stage.first().map_or_else(String::new, |row| row.labels[0].1.clone());
        let mean = mean_row(&of_stage, [stage, "all".to_owned()]);
        rows.extend(of_stage);
        rows.extend(mean);
    }
    let single: Vec<Row> = compared.iter().map(of_sizes).collect();
    rows.extend(mean_row(&single, ["all".to_owned(), "all".to_owned()]));
    rows
}

/// Returns the mean of rows, column by column, with the mean of their intervals: they have the same seeds.
fn mean_row(rows: &[Row], labels: [String; 2]) -> Option<Row> {
    let mut mean = rows.first()?.clone();
    for (label, text) in mean.labels.iter_mut().zip(labels) {
        label.1 = text;
    }
    let many = rows.len() as f64;
    for (column, (_, spread)) in mean.numbers.iter_mut().enumerate() {
        let over = |of: fn(&Spread) -> f64| rows.iter().map(|row| of(&row.numbers[column].1)).sum::<f64>() / many;
        *spread = Spread { mean: over(|spread| spread.mean), half: over(|spread| spread.half) };
    }
    Some(mean)
}

fn of_sizes(compared: &Compared) -> Row {
    Row {
        labels: vec![("stage", compared.curve.to_owned()), ("begins with MiB", (compared.start >> 20).to_string())],
        numbers: vec![
            ("that size s", compared.fixed),
            ("found s", compared.tuned),
            ("second run s", compared.again),
            ("128 MiB s", compared.block),
            ("task a slot s", compared.per_slot),
            ("8 chunks a slot s", compared.chunks),
            ("best fixed s", compared.best),
            ("shorter %", compared.shorter),
            ("over best %", compared.over_best),
        ],
        known: "25 to 70 % shorter".to_owned(),
    }
}

fn of_orders(inputs: &Inputs) -> Result<Vec<Row>, StudyError> {
    let queries = inputs.queries.clone().unwrap_or_else(|| super::generated::queries(1));
    let mut rows = Vec::new();
    for workload in &orders::WORKLOADS {
        rows.extend(orders::study(workload, &queries, &inputs.seeds)?.into_iter().map(|ordered| {
            Row {
                labels: vec![("workload", ordered.workload.to_owned()), ("order", ordered.order.to_owned())],
                numbers: vec![("mean s", ordered.mean), ("makespan s", ordered.makespan), ("of fair", ordered.of_fair)],
                // Anchors belong to the public queries: they would say nothing about generated ones.
                known: ordered
                    .anchor
                    .filter(|_| inputs.queries.is_some())
                    .map_or_else(String::new, |anchor| format!("{anchor} s")),
            }
        }));
    }
    Ok(rows)
}

fn of_learned(inputs: &Inputs) -> Result<Vec<Row>, StudyError> {
    let queries = inputs.queries.clone().unwrap_or_else(|| super::generated::queries(1));
    let model = inputs.model.clone().or_else(Order::built_in);
    let model =
        model.ok_or(StudyError::Setting { setting: "model", rule: "this program has none that can be used" })?;
    let mut rows = Vec::new();
    for case in &learned::CASES {
        // Improvement of the paper over the tuned weighted shares.
        let known = match case.workload.name {
            "batch" => "21 %",
            "stream 45 s" => "29 %",
            "stream 25 s" => "28 %",
            _ => "",
        };
        rows.extend(learned::compare(case, &queries, &model, learned::seeds_of(case, &inputs.seeds))?.into_iter().map(
            |compared| Row {
                labels: vec![("workload", compared.case.to_owned()), ("order", compared.order.clone())],
                numbers: vec![
                    ("mean s", compared.mean),
                    ("shorter %", compared.shorter),
                    ("makespan s", compared.makespan),
                    ("worst of fair", compared.worst),
                ],
                known: if compared.order.starts_with("decima") { known.to_owned() } else { String::new() },
            },
        ));
    }
    Ok(rows)
}

fn of_packing(inputs: &Inputs) -> Result<Vec<Row>, StudyError> {
    let packed = packing::study(packing::Setup::default(), inputs.trace.as_deref(), &inputs.seeds)?;
    let row = |packed: packing::Packed| Row {
        labels: vec![("jobs", packed.jobs.to_owned()), ("order", packed.order.to_owned())],
        numbers: vec![
            ("mean s", packed.mean),
            ("makespan s", packed.makespan),
            ("of graphene", packed.of_graphene),
            ("most CPUs %", packed.peak[0]),
            ("most memory %", packed.peak[1]),
        ],
        known: String::new(),
    };
    Ok(packed.into_iter().map(row).collect())
}

fn of_drops(compared: &dias::Compared) -> Row {
    let exact = |mean: f64| Spread { mean, half: 0.0 };
    let model = compared.model.map_or([f64::NAN; 2], |errors| errors);
    Row {
        labels: vec![
            ("low:high", format!("{}:1", compared.case.low_per_high)),
            ("load", compared.case.load.to_string()),
            ("policy", compared.policy.to_string()),
        ],
        numbers: vec![
            ("low s", compared.mean[0]),
            ("high s", compared.mean[1]),
            ("low shorter %", compared.than_evicts[0]),
            ("high shorter %", compared.than_evicts[1]),
            ("high than NP %", compared.than_waits[1]),
            ("wasted %", compared.wasted),
            ("fewer core-s %", compared.fewer),
            ("less energy %", compared.energy),
            ("if linear %", compared.linear),
            ("sums within %", exact(compared.error)),
            ("model low %", exact(model[0])),
            ("model high %", exact(model[1])),
        ],
        known: match compared.policy {
            dias::Policy::Both(..) | dias::Policy::Yields(..) => {
                "low up to 90 %, high up to 60 %, energy 30 %".to_owned()
            }
            _ => String::new(),
        },
    }
}

/// Returns one row for each workload on each mechanism, and one for all of them.
fn of_sprinting(seeds: &[u64]) -> Vec<Row> {
    // Each seed needs a profile of its own, which takes long: use a tenth of them.
    let seeds = &seeds[..seeds.len().div_ceil(10)];
    let runs: Vec<Vec<sprinting::Compared>> =
        seeds.iter().map(|seed| sprinting::study(sprinting::EFFORT, *seed)).collect();
    let spread = |of: &dyn Fn(&[sprinting::Compared]) -> f64| {
        let values: Vec<f64> = runs.iter().map(|run| of(run)).filter(|value| !value.is_nan()).collect();
        if values.is_empty() { Spread { mean: f64::NAN, half: 0.0 } } else { Spread::of(&values) }
    };
    let row = |labels: [String; 2], marginal: Spread, errors: [[Spread; 2]; 3], found: [Spread; 2]| {
        let [grey, white, black] = errors;
        Row {
            labels: vec![("workload", labels[0].clone()), ("mechanism", labels[1].clone())],
            numbers: vec![
                ("marginal rate", marginal),
                ("median %", grey[0]),
                ("worst %", grey[1]),
                ("marginal median %", white[0]),
                ("marginal worst %", white[1]),
                ("forest median %", black[0]),
                ("forest worst %", black[1]),
                ("found over target", found[0]),
                ("found over cheapest", found[1]),
            ],
            known: "median 4 %, worst 11 %".to_owned(),
        }
    };
    let mut rows: Vec<Row> = Vec::new();
    for (n, one) in runs.first().into_iter().flatten().enumerate() {
        let errors = |of: fn(&sprinting::Compared) -> &sprinting::Errors| {
            [spread(&|run| of(&run[n]).median()), spread(&|run| of(&run[n]).worst())]
        };
        rows.push(row(
            [one.workload.to_owned(), one.mechanism.name().to_owned()],
            spread(&|run| run[n].marginal),
            [errors(|one| &one.grey), errors(|one| &one.white), errors(|one| &one.black)],
            [spread(&|run| run[n].of_target), spread(&|run| run[n].of_cheapest.unwrap_or(f64::NAN))],
        ));
    }
    let errors = |kind: usize| {
        let of = |run: &[sprinting::Compared]| sprinting::overall(run)[kind].clone();
        [spread(&|run| of(run).median()), spread(&|run| of(run).worst())]
    };
    let mean = |of: &dyn Fn(&sprinting::Compared) -> f64| {
        spread(&|run| {
            let values: Vec<f64> = run.iter().map(of).filter(|value| !value.is_nan()).collect();
            values.iter().sum::<f64>() / values.len() as f64
        })
    };
    rows.push(row(
        ["all".to_owned(), "all".to_owned()],
        mean(&|one| one.marginal),
        [errors(0), errors(1), errors(2)],
        [mean(&|one| one.of_target), mean(&|one| one.of_cheapest.unwrap_or(f64::NAN))],
    ));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_study_have_the_same_titles() {
        let inputs = Inputs { seeds: vec![1], ..Inputs::default() };
        for study in [Study::Sizes, Study::Packing] {
            let rows = run(study, &inputs).unwrap();
            let titles = |row: &Row| {
                row.labels
                    .iter()
                    .map(|(title, _)| *title)
                    .chain(row.numbers.iter().map(|(title, _)| *title))
                    .collect::<Vec<_>>()
            };
            if study == Study::Sizes {
                let last = rows.last().unwrap();
                assert_eq!((last.labels[0].1.as_str(), rows.len()), ("all", 5 * 7 + 1));
                let shorter = |row: &Row| row.numbers[7].1.mean;
                let single = rows.iter().filter(|row| row.labels[1].1 != "all");
                assert!((shorter(last) - single.map(shorter).sum::<f64>() / 30.0).abs() < 1e-9);
            }
            assert!(rows.len() > 5 && rows.iter().all(|row| titles(row) == titles(&rows[0])), "{}", study.name());
        }
    }
}
