//! What a page can show of a scenario, whatever has run it: a row for each point of its sweep.

use std::collections::BTreeMap;

use lab::campaign::Results;
use lab::measure::mean_and_interval;
use lab::report::{Course, Spread, course, spreads};
use plot::Lines;
use serde::Deserialize;

/// A point of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The fields that were varied, with their values.
    pub values: Vec<(String, String)>,
    /// Numbers by name.
    pub numbers: Vec<Spread>,
    /// The same, but added up over the seconds of all seeds.
    pub totals: BTreeMap<String, f64>,
    /// Pictures by name.
    pub pictures: Vec<(&'static str, Lines)>,
}

/// What runs in the laboratory's world.
pub fn of_world(results: &Results) -> Vec<Row> {
    let row = |(values, outcomes): &(Vec<(String, String)>, Vec<lab::measure::Outcome>)| {
        let courses = [("share", Course::Share), ("waiting", Course::Waiting), ("held", Course::Held)];
        let pictures =
            outcomes.first().map(|first| courses.map(|(name, what)| (name, drawn(course(first, what), what))));
        let mut totals = BTreeMap::new();
        for outcome in outcomes {
            for spread in spreads(std::slice::from_ref(outcome)) {
                *totals.entry(spread.name).or_default() += spread.mean * outcome.seconds;
            }
        }
        let pictures = pictures.into_iter().flatten().collect();
        Row { values: values.clone(), numbers: spreads(outcomes), totals, pictures }
    };
    results.iter().map(row).collect()
}

/// What `tepui lab run --json` prints.
pub fn of_json(text: &[u8]) -> Result<Vec<Row>, crate::Failed> {
    #[derive(Deserialize)]
    struct Printed {
        values: Vec<(String, String)>,
        numbers: Vec<Number>,
    }
    #[derive(Deserialize)]
    struct Number {
        name: String,
        // A number that is none is null.
        mean: Option<f64>,
        half: Option<f64>,
    }
    let printed: Vec<Printed> = serde_json::from_slice(text)?;
    let number =
        |Number { name, mean, half }| Spread { name, mean: mean.unwrap_or(f64::NAN), half: half.unwrap_or(f64::NAN) };
    let row = |Printed { values, numbers }| {
        let numbers = numbers.into_iter().map(number).collect();
        Row { values, numbers, ..Row::default() }
    };
    Ok(printed.into_iter().map(row).collect())
}

/// The title of a picture on a page does not say what the lines are.
fn drawn(lines: Lines, what: Course) -> Lines {
    match what {
        Course::Waiting => Lines { y: "tasks that wait".to_owned(), ..lines },
        _ => lines,
    }
}

/// Numbers of one kind of replay, a list for each seed, with the names in the same order each time.
pub fn over_seeds(runs: &[Vec<(String, f64)>]) -> Vec<Spread> {
    let Some(first) = runs.first() else { return Vec::new() };
    let spread = |(at, (name, _)): (usize, &(String, f64))| {
        let values: Vec<f64> = runs.iter().map(|run| run[at].1).collect();
        let (mean, half) = mean_and_interval(&values);
        Spread { name: name.clone(), mean, half }
    };
    first.iter().enumerate().map(spread).collect()
}
