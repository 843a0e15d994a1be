//! Compares two sets of runs: the differences, and whether they are significant.

use std::collections::BTreeMap;

use base::mean_and_interval;
use serde::Serialize;

use super::metrics::{Metric, Spread, Unit, decimals_of, metrics, spreads};
use crate::measure::Outcome;

/// A metric that two sets of runs have in common, with its difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Name of the metric.
    pub name: String,
    /// Description of the metric in plain words.
    pub label: String,
    /// Unit of the metric.
    pub unit: Unit,
    /// Rank of the metric in reports: 0 is shown first, 9 last.
    #[serde(skip)]
    pub rank: u8,
    /// Value in the first set.
    pub first: Spread,
    /// Value in the second set.
    pub second: Spread,
    /// The second's mean over the first's, minus 1; `None` if the first is 0 or missing.
    pub change: Option<f64>,
    /// Mean of the differences, and half of its 95 % confidence interval.
    ///
    /// If both sets have seeds in common, the runs are compared seed by seed, so that chance affects both alike;
    /// otherwise the two means are compared.
    pub difference: (f64, f64),
    /// Whether the 95 % confidence interval excludes 0.
    pub clear: bool,
    /// Whether each set has more than one run, so that there is an interval.
    pub repeated: bool,
    /// Number of common seeds whose runs were compared with each other; 0 if the means were.
    pub paired: usize,
}

impl Pair {
    /// Returns whether the means differ.
    pub fn differs(&self) -> bool {
        let (first, second) = (self.first.mean, self.second.mean);
        first != second && !(first.is_nan() && second.is_nan())
    }

    /// Returns the description with the unit of pages.
    pub fn title(&self) -> String {
        match self.unit {
            Unit::Seconds => format!("{} (s)", self.label),
            Unit::Part => format!("{} (%)", self.label),
            Unit::Count | Unit::Index => self.label.clone(),
        }
    }

    /// Returns the difference in the unit of pages, and in percent of the first value.
    pub fn changed(&self) -> String {
        let (difference, half) = self.in_unit();
        let change = self.change.map(|change| format!(" ({:+.1} %)", change * 100.0)).unwrap_or_default();
        format!("{}{change}", signed(difference, half))
    }

    /// Returns the 95 % confidence interval of the difference; empty if there is none.
    pub fn interval(&self) -> String {
        let (difference, half) = self.in_unit();
        match self.repeated && !difference.is_nan() {
            true => format!("{} to {}", signed(difference - half, half), signed(difference + half, half)),
            false => String::new(),
        }
    }

    /// Returns whether the difference is significant, in words.
    pub fn chance(&self) -> &'static str {
        match (self.clear, self.repeated) {
            (_, false) => "",
            (true, true) => "significant",
            (false, true) => "not significant",
        }
    }

    /// Returns how the second value compares with the first, such as "shorter", "more" or "higher".
    pub(super) fn direction(&self) -> &'static str {
        match (self.unit, self.difference.0 < 0.0) {
            (Unit::Seconds, true) => "shorter",
            (Unit::Seconds, false) => "longer",
            (Unit::Count, true) => "fewer",
            (Unit::Count, false) => "more",
            (_, true) => "lower",
            (_, false) => "higher",
        }
    }

    /// Returns the difference and half of its interval; parts of a whole are in percent.
    pub(super) fn in_unit(&self) -> (f64, f64) {
        let times = if self.unit == Unit::Part { 100.0 } else { 1.0 };
        (self.difference.0 * times, self.difference.1 * times)
    }
}

/// Formats a number with its sign, and with as many decimals as its interval has.
fn signed(value: f64, half: f64) -> String {
    if value.is_nan() {
        return "–".to_owned();
    }
    let (decimals, zero) = (decimals_of(value, half), value == 0.0);
    if zero { "0".to_owned() } else { format!("{value:+.decimals$}") }
}

/// Compares all metrics that both sets have.
pub fn pairs(first: &[Outcome], second: &[Outcome]) -> Vec<Pair> {
    let (own, others) = (spreads(first), spreads(second));
    let others: BTreeMap<&str, &Spread> = others.iter().map(|one| (one.name.as_str(), one)).collect();
    let common = common(first, second);
    let repeated = first.len() > 1 && second.len() > 1;
    // A single common seed says less than the means of many others.
    let paired = common.len() > 1 || (common.len() == 1 && !repeated);
    let differences = if paired { differences(&common) } else { BTreeMap::new() };
    let pair = |one: Spread| {
        let other = (*others.get(one.name.as_str())?).clone();
        let difference = match differences.get(&one.name) {
            Some(values) if paired => mean_and_interval(values),
            _ => (other.mean - one.mean, one.half.hypot(other.half)),
        };
        let repeated = if paired { common.len() > 1 } else { repeated };
        Some(Pair {
            name: one.name.clone(),
            label: one.label.clone(),
            unit: one.unit,
            rank: one.rank,
            change: Some(other.mean / one.mean - 1.0).filter(|change| change.is_finite()),
            clear: repeated && difference.0.abs() > difference.1,
            first: one,
            second: other,
            difference,
            repeated,
            paired: if paired { common.len() } else { 0 },
        })
    };
    own.into_iter().filter_map(pair).collect()
}

/// Returns the pairs of runs with equal seeds.
fn common<'a>(first: &'a [Outcome], second: &'a [Outcome]) -> Vec<(&'a Outcome, &'a Outcome)> {
    let seeds: BTreeMap<u64, &Outcome> = second.iter().map(|outcome| (outcome.seed, outcome)).collect();
    first.iter().filter_map(|one| Some((one, *seeds.get(&one.seed)?))).collect()
}

/// Returns the differences of each metric, second minus first, of all pairs of runs that have it.
fn differences(runs: &[(&Outcome, &Outcome)]) -> BTreeMap<String, Vec<f64>> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (one, other) in runs {
        let others: BTreeMap<String, f64> =
            metrics(other).into_iter().map(|Metric { name, value, .. }| (name, value)).collect();
        for Metric { name, value, .. } in metrics(one) {
            let difference = others.get(&name).map(|other| other - value).filter(|difference| !difference.is_nan());
            all.entry(name).or_default().extend(difference);
        }
    }
    all
}

/// Returns the lines that only one of two texts has, in their order; `true` marks those of the second.
pub fn changed_lines<'a>(first: &'a str, second: &'a str) -> Vec<(bool, &'a str)> {
    let (a, b): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    if a.len().saturating_mul(b.len()) > 25_000_000 {
        return Vec::new();
    }
    // Length of the longest common subsequence from each pair of lines on.
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
pub(crate) mod tests {
    use super::*;
    use crate::measure::{Series, Summary};

    pub(crate) fn outcome(seed: u64, wait: f64) -> Outcome {
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
            own_titles: BTreeMap::new(),
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
        let others: Vec<Outcome> = second.iter().map(|run| Outcome { seed: run.seed + 10, ..run.clone() }).collect();
        assert!(!wait(pairs(&first, &others)).clear);
        // Seeds 2 and 3 are in both sets.
        let other = [outcome(2, 21.0), outcome(3, 31.0), outcome(9, 900.0)];
        let some = wait(pairs(&first, &other));
        assert!(some.clear && some.paired == 2 && some.difference == (1.0, 0.0), "{some:?}");
        assert_eq!((some.changed().as_str(), some.direction()), ("+1.00 (+1486.7 %)", "longer"));
        // A metric that is NaN still counts as present.
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
