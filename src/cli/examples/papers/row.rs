//! The results of a scenario that a page can show, independently of what has run it: a row for each point of its sweep.

use std::collections::BTreeMap;

use lab::campaign::Results;
use lab::report::{Course, Spread, course, spreads};
use plot::Lines;

/// The results of a point of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Fields that were varied, with their values.
    pub values: Vec<(String, String)>,
    /// Numbers with their names, as means over the seeds.
    pub numbers: Vec<Spread>,
    /// Numbers by name, each multiplied by the run's seconds and added up over all seeds.
    pub totals: BTreeMap<String, f64>,
    /// Pictures by name.
    pub pictures: Vec<(&'static str, Lines)>,
}

/// Returns the rows of a scenario that ran in the laboratory's world.
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

/// Replaces the label of the y axis, as the title of a picture on a page does not describe the lines.
fn drawn(lines: Lines, what: Course) -> Lines {
    let y = match what {
        Course::Share => "dominant share",
        Course::Waiting => "tasks that wait",
        Course::Held => "dominant share in offers",
        Course::Declined => "offers declined",
    };
    Lines { y: y.to_owned(), ..lines }
}

/// Combines the numbers of one kind of replay. Each seed has a list with the names in the same order.
pub fn over_seeds(runs: &[Vec<(String, f64)>]) -> Vec<Spread> {
    let Some(first) = runs.first() else { return Vec::new() };
    let spread = |(at, (name, _)): (usize, &(String, f64))| {
        let values: Vec<f64> = runs.iter().map(|run| run[at].1).collect();
        Spread::plain(name, &values)
    };
    first.iter().enumerate().map(spread).collect()
}
