//! Compares two sets of runs: the differences, and whether they are significant.

use std::collections::BTreeMap;

use serde::Serialize;

use super::metrics::{Metric, Spread, metrics, spreads};
use crate::measure::{Outcome, mean_and_interval};

/// A number in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Its name.
    pub name: String,
    /// In the first set.
    pub first: Spread,
    /// In the second.
    pub second: Spread,
    /// The second's mean over the first's, minus 1; `None` if the first is 0 or missing.
    pub change: Option<f64>,
    /// The mean of the differences, and half of its 95 % confidence interval: of the runs seed by seed if both have the
    /// same seeds (what chance does to one it does to the other, too), else of the two means.
    pub difference: (f64, f64),
    /// That interval does not have 0 in it.
    pub clear: bool,
    /// There is more than one run in each, so that there is an interval.
    pub repeated: bool,
}

impl Pair {
    /// Whether the number is another one.
    pub fn differs(&self) -> bool {
        let (first, second) = (self.first.mean, self.second.mean);
        first != second && !(first.is_nan() && second.is_nan())
    }
}

/// All numbers that both have.
pub fn pairs(first: &[Outcome], second: &[Outcome]) -> Vec<Pair> {
    let (own, others) = (spreads(first), spreads(second));
    let seeds = |outcomes: &[Outcome]| outcomes.iter().map(|outcome| outcome.seed).collect::<Vec<_>>();
    let paired = seeds(first) == seeds(second) && !first.is_empty();
    let differences = if paired { differences(first, second) } else { BTreeMap::new() };
    let repeated = first.len() > 1 && second.len() > 1;
    let pair = |one: Spread| {
        let other = others.iter().find(|other| other.name == one.name)?.clone();
        let difference = match differences.get(&one.name) {
            Some(values) if paired => mean_and_interval(values),
            _ => (other.mean - one.mean, one.half.hypot(other.half)),
        };
        Some(Pair {
            name: one.name.clone(),
            change: Some(other.mean / one.mean - 1.0).filter(|change| change.is_finite()),
            clear: repeated && difference.0.abs() > difference.1,
            first: one,
            second: other,
            difference,
            repeated,
        })
    };
    own.into_iter().filter_map(pair).collect()
}

/// Of each number the second less the first, seed by seed, where both have it.
fn differences(first: &[Outcome], second: &[Outcome]) -> BTreeMap<String, Vec<f64>> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (one, other) in first.iter().zip(second) {
        let others: BTreeMap<String, f64> =
            metrics(other).into_iter().map(|Metric { name, value }| (name, value)).collect();
        for Metric { name, value } in metrics(one) {
            let difference = others.get(&name).map(|other| other - value).filter(|difference| !difference.is_nan());
            all.entry(name).or_default().extend(difference);
        }
    }
    all
}

/// Lines that only one of two texts has, in their order: true for the second's.
pub fn changed_lines<'a>(first: &'a str, second: &'a str) -> Vec<(bool, &'a str)> {
    let (a, b): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    if a.len().saturating_mul(b.len()) > 25_000_000 {
        return Vec::new();
    }
    // The longest common part from each place on.
    let mut common = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
    for (i, one) in a.iter().enumerate().rev() {
        for (j, other) in b.iter().enumerate().rev() {
            common[i][j] = if one == other { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut changed) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
            changed.push((false, a[i]));
            i += 1;
        } else {
            changed.push((true, b[j]));
            j += 1;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Series, Summary};

    fn outcome(seed: u64, wait: f64) -> Outcome {
        let wait = Summary { count: 1, mean: wait, ..Summary::default() };
        let framework = crate::measure::FrameworkOutcome {
            name: "f".to_owned(),
            role: "*".to_owned(),
            submitted: 1,
            finished: 1,
            failed: 0,
            left: 0,
            wait,
            start: Summary::default(),
            job: Summary::default(),
            kinds: Vec::new(),
            own: Vec::new(),
            offers_received: 0,
            offers_accepted: 0,
            offers_declined: 0,
            offers_rescinded: 0,
            offer_held: 0.0,
        };
        Outcome {
            scenario: "s".to_owned(),
            seed,
            digest: String::new(),
            events: 0,
            seconds: 1.0,
            done: true,
            live: None,
            frameworks: vec![framework],
            windows: Vec::new(),
            series: Series::default(),
            strips: Vec::new(),
        }
    }

    #[test]
    fn the_same_seeds_are_compared_one_by_one() {
        let first: Vec<Outcome> = [10.0, 20.0, 30.0].iter().zip(1..).map(|(wait, seed)| outcome(seed, *wait)).collect();
        let second: Vec<Outcome> =
            [11.0, 21.1, 31.0].iter().zip(1..).map(|(wait, seed)| outcome(seed, *wait)).collect();
        let wait = |pairs: Vec<Pair>| pairs.into_iter().find(|pair| pair.name == "f.wait.mean").unwrap();
        let paired = wait(pairs(&first, &second));
        assert!(paired.clear && paired.difference.1 < 0.5 && paired.first.half > 20.0, "{paired:?}");
        let others: Vec<Outcome> = second.iter().map(|run| Outcome { seed: run.seed + 1, ..run.clone() }).collect();
        assert!(!wait(pairs(&first, &others)).clear);
        // An undefined mean differs from no mean.
        let started = pairs(&first, &second).into_iter().find(|pair| pair.name == "f.start.mean").unwrap();
        assert!(started.first.mean.is_nan() && !started.differs() && !started.clear, "{started:?}");
    }

    #[test]
    fn lines_of_one_text_only() {
        let lines = changed_lines("a\nb\nc\nd\n", "a\nB\nc\nd\ne\n");
        assert_eq!(lines, [(false, "b"), (true, "B"), (true, "e")]);
        assert!(changed_lines("x\n", "x\n").is_empty());
    }
}
