//! Compares two sets of runs: the differences, and whether they are significant.

use std::collections::BTreeMap;

use base::mean_and_interval;
use serde::Serialize;

use super::metrics::{Metric, Spread, Unit, decimals_of, metrics, spreads};
use crate::measure::Outcome;

/// A number in both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Its name.
    pub name: String,
    /// The same in plain words.
    pub label: String,
    /// Its unit.
    pub unit: Unit,
    /// Rank in reports: 0 is shown first, 9 last.
    #[serde(skip)]
    pub rank: u8,
    /// In the first set.
    pub first: Spread,
    /// In the second.
    pub second: Spread,
    /// The second's mean over the first's, minus 1; `None` if the first is 0 or missing.
    pub change: Option<f64>,
    /// The mean of the differences, and half of its 95 % confidence interval: of the runs seed by seed if both have
    /// seeds in common (what chance does to one it does to the other, too), else of the two means.
    pub difference: (f64, f64),
    /// That interval does not have 0 in it.
    pub clear: bool,
    /// There is more than one run in each, so that there is an interval.
    pub repeated: bool,
    /// Seeds in common whose runs were compared with each other; 0 if the means were.
    pub paired: usize,
}

impl Pair {
    /// Whether the number is another one.
    pub fn differs(&self) -> bool {
        let (first, second) = (self.first.mean, self.second.mean);
        first != second && !(first.is_nan() && second.is_nan())
    }

    /// Its name for readers, with the unit of pages.
    pub fn title(&self) -> String {
        match self.unit {
            Unit::Seconds => format!("{} (s)", self.label),
            Unit::Part => format!("{} (%)", self.label),
            Unit::Count | Unit::Index => self.label.clone(),
        }
    }

    /// The difference in the unit of pages, and in per cent of the first.
    pub fn changed(&self) -> String {
        let (difference, half) = self.in_unit();
        let change = self.change.map(|change| format!(" ({:+.1} %)", change * 100.0)).unwrap_or_default();
        format!("{}{change}", signed(difference, half))
    }

    /// The 95 % interval of the difference; nothing without one.
    pub fn interval(&self) -> String {
        let (difference, half) = self.in_unit();
        match self.repeated && !difference.is_nan() {
            true => format!("{} to {}", signed(difference - half, half), signed(difference + half, half)),
            false => String::new(),
        }
    }

    /// Whether chance explains it.
    pub fn chance(&self) -> &'static str {
        match (self.clear, self.repeated) {
            (_, false) => "",
            (true, true) => "clear",
            (false, true) => "may be chance",
        }
    }

    /// The second against the first: "shorter", "more", "higher".
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

    /// The difference and half of its interval, parts in hundredths.
    pub(super) fn in_unit(&self) -> (f64, f64) {
        let times = if self.unit == Unit::Part { 100.0 } else { 1.0 };
        (self.difference.0 * times, self.difference.1 * times)
    }
}

/// A number with its sign, and with the decimals that its interval has.
fn signed(value: f64, half: f64) -> String {
    if value.is_nan() {
        return "–".to_owned();
    }
    let (decimals, zero) = (decimals_of(value, half), value == 0.0);
    if zero { "0".to_owned() } else { format!("{value:+.decimals$}") }
}

/// All numbers that both have.
pub fn pairs(first: &[Outcome], second: &[Outcome]) -> Vec<Pair> {
    let (own, others) = (spreads(first), spreads(second));
    let others: BTreeMap<&str, &Spread> = others.iter().map(|one| (one.name.as_str(), one)).collect();
    let common = common(first, second);
    let repeated = first.len() > 1 && second.len() > 1;
    // One seed in common says less than the means of many others.
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

/// The runs of both with the same seeds.
fn common<'a>(first: &'a [Outcome], second: &'a [Outcome]) -> Vec<(&'a Outcome, &'a Outcome)> {
    let seeds: BTreeMap<u64, &Outcome> = second.iter().map(|outcome| (outcome.seed, outcome)).collect();
    first.iter().filter_map(|one| Some((one, *seeds.get(&one.seed)?))).collect()
}

/// Of each number the second less the first, seed by seed, where both have it.
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
        // The second and third seed are in both.
        let other = [outcome(2, 21.0), outcome(3, 31.0), outcome(9, 900.0)];
        let some = wait(pairs(&first, &other));
        assert!(some.clear && some.paired == 2 && some.difference == (1.0, 0.0), "{some:?}");
        assert_eq!((some.changed().as_str(), some.direction()), ("+1.00 (+1486.7 %)", "longer"));
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
