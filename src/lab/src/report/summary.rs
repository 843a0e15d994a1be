//! The summary of a comparison in sentences: what differs significantly, in which direction and by how much, and what
//! does not. The tables have all metrics.

use std::collections::BTreeMap;

use serde::Serialize;

use super::compare::{Pair, pairs};
use super::metrics::{Unit, in_unit};
use super::points::Values;
use crate::measure::Outcome;

/// A point of a sweep that both results have, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Swept values of the point; empty if nothing was swept.
    pub values: Values,
    /// Whether all runs have equal digests.
    pub equal: bool,
    /// Sentences about the significant differences at this point.
    pub summary: Vec<String>,
    /// Metrics of the point.
    pub numbers: Vec<Pair>,
}

/// The most sentences about single metrics.
const SENTENCES: usize = 8;
/// The largest rank of metrics that are summarized. Those of a larger rank are only in the tables, if there are others.
const WANTED: u8 = 3;

impl Compared {
    /// Compares the runs of a point in two results with these names.
    pub fn new(values: Values, names: (&str, &str), first: &[Outcome], second: &[Outcome]) -> Compared {
        let equal = first.len() == second.len() && first.iter().zip(second).all(|(a, b)| a.digest == b.digest);
        let mut point = Compared { values, equal, summary: Vec::new(), numbers: pairs(first, second) };
        point.summary = of_point(names, &point);
        point
    }

    /// Returns the swept values as text.
    pub fn title(&self) -> String {
        let values: Vec<String> = self.values.iter().map(|(field, value)| format!("{field} = {value}")).collect();
        values.join(", ")
    }

    /// Removes metrics that are equal.
    pub fn keep_differences(&mut self) {
        self.numbers.retain(Pair::differs);
    }
}

/// Returns the summary of a comparison, in sentences.
pub fn summary((a, b): (&str, &str), points: &[Compared]) -> Vec<String> {
    match points {
        [point] => point.summary.clone(),
        points if points.iter().all(|point| point.equal) => vec!["All runs are identical.".to_owned()],
        points => of_sweep((a, b), points),
    }
}

/// Returns a sentence on how the runs were compared.
fn way((a, b): (&str, &str), pair: &Pair) -> String {
    match (pair.repeated, pair.paired) {
        (false, _) => format!(
            "One of {a} and {b} has a single run, so chance may explain every difference: run more seeds with --seeds."
        ),
        (true, 0) => format!("{a} and {b} have no seeds in common, so their means are compared."),
        (true, seeds) => {
            format!("The {seeds} runs of {b} with the seeds of {a} are compared with these, seed by seed.")
        }
    }
}

fn of_point((a, b): (&str, &str), point: &Compared) -> Vec<String> {
    if point.equal {
        return vec!["All runs are identical.".to_owned()];
    }
    let mut differing: Vec<&Pair> = point.numbers.iter().filter(|pair| pair.differs()).collect();
    let Some(first) = differing.first().copied() else { return vec!["No metric differs.".to_owned()] };
    let mut sentences = vec![way((a, b), first)];
    // Among metrics of the same rank, the clearest difference comes first.
    let weight = |pair: &Pair| pair.difference.0.abs() / pair.difference.1.max(1e-12);
    differing.sort_by(|x, y| x.rank.cmp(&y.rank).then(weight(y).total_cmp(&weight(x))));
    if !first.repeated {
        let change = |pair: &&&Pair| pair.change.is_none_or(|change| change.abs() > 0.01);
        sentences.extend(differing.iter().filter(change).take(SENTENCES).map(|pair| sentence(b, pair, "")));
        return sentences;
    }
    let (clear, other): (Vec<&Pair>, Vec<&Pair>) = differing.into_iter().partition(|pair| pair.clear);
    let compared = point.numbers.iter().filter(|pair| !pair.difference.0.is_nan()).count();
    sentences.push(match clear.len() {
        0 => format!("None of the {compared} metrics differs significantly."),
        count => format!(
            "{count} of {compared} metrics differ significantly. About {} of {compared} would by chance alone.",
            (compared as f64 / 20.0).ceil()
        ),
    });
    let wanted = clear.iter().filter(|pair| pair.rank <= WANTED).count().max(3);
    let shown = wanted.min(SENTENCES);
    sentences.extend(clear.iter().take(shown).map(|pair| sentence(b, pair, "Significantly ")));
    if clear.len() > shown {
        sentences.push(format!("{} more metrics that differ significantly are below.", clear.len() - shown));
    }
    let unclear: Vec<String> = other
        .iter()
        .filter(|pair| pair.rank <= WANTED && !pair.difference.0.is_nan())
        .take(SENTENCES)
        .map(|pair| format!("{} ({}{})", pair.label, pair.interval(), unit(pair)))
        .collect();
    if !unclear.is_empty() {
        sentences.push(format!("Not significant, with the 95 % interval of the difference: {}.", unclear.join("; ")));
    }
    sentences
}

/// Returns the unit of a difference.
fn unit(pair: &Pair) -> &'static str {
    match pair.unit {
        Unit::Seconds => " s",
        Unit::Part => " percentage points",
        Unit::Count | Unit::Index => "",
    }
}

/// Returns a sentence about a metric, such as "Significantly shorter in B: mean wait of a, 3.0 s instead of 5.0 s ..."
fn sentence(b: &str, pair: &Pair, how: &str) -> String {
    let (plain, direction) = (pair.unit, pair.direction());
    let value = |spread| match plain {
        Unit::Seconds => format!("{} s", in_unit(spread)),
        Unit::Part => format!("{} %", in_unit(spread)),
        Unit::Count | Unit::Index => in_unit(spread),
    };
    let begin = if how.is_empty() { capital(direction) } else { format!("{how}{direction}") };
    let interval = match pair.interval() {
        none if none.is_empty() => String::new(),
        interval => format!("; 95 % interval {interval}{}", unit(pair)),
    };
    let unit = unit(pair);
    let changed = pair.changed();
    let difference = changed.split(" (").next().unwrap_or_default();
    let change = pair.change.map(|change| format!(", {:+.1} %", change * 100.0)).unwrap_or_default();
    format!(
        "{begin} in {b}: {}, {} instead of {} ({difference}{unit}{change}{interval}).",
        pair.label,
        value(&pair.second),
        value(&pair.first),
    )
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The comparisons of a metric at all points of a sweep.
#[derive(Default)]
struct Over<'a> {
    less: Vec<&'a Pair>,
    more: Vec<&'a Pair>,
    unclear: usize,
    equal: usize,
}

fn of_sweep((a, b): (&str, &str), points: &[Compared]) -> Vec<String> {
    let mut order: Vec<&Pair> = Vec::new();
    let mut numbers: BTreeMap<&str, Over<'_>> = BTreeMap::new();
    for pair in points.iter().flat_map(|point| &point.numbers) {
        if !numbers.contains_key(pair.name.as_str()) {
            order.push(pair);
        }
        let over = numbers.entry(&pair.name).or_default();
        match (pair.differs(), pair.clear, pair.difference.0 < 0.0) {
            (false, ..) => over.equal += 1,
            (true, false, _) => over.unclear += 1,
            (true, true, true) => over.less.push(pair),
            (true, true, false) => over.more.push(pair),
        }
    }
    let Some(first) = order.first() else { return vec!["No metric differs.".to_owned()] };
    let mut sentences = vec![format!("{} points are in both. {}", points.len(), way((a, b), first))];
    if !first.repeated {
        return sentences;
    }
    let clear = |pair: &&Pair| numbers[pair.name.as_str()].less.len() + numbers[pair.name.as_str()].more.len();
    // Among metrics of the same rank, the one that is significant at most points comes first.
    order.sort_by(|x, y| x.rank.cmp(&y.rank).then(clear(y).cmp(&clear(x))));
    let found: Vec<&Pair> = order.iter().copied().filter(|pair| clear(pair) > 0).collect();
    for pair in found.iter().take(SENTENCES) {
        let over = &numbers[pair.name.as_str()];
        let sides = [&over.less, &over.more]
            .into_iter()
            .filter(|side| !side.is_empty())
            .map(|side| side_of(side, points.len()));
        let rest = [(over.unclear, "not significant at"), (over.equal, "equal at")];
        let rest = rest.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{what} {count}"));
        sentences.push(format!("In {b}, {} is {}.", pair.label, sides.chain(rest).collect::<Vec<_>>().join(", ")));
    }
    if found.is_empty() {
        sentences.push("No metric differs significantly at any point.".to_owned());
    }
    if found.len() > SENTENCES {
        sentences
            .push(format!("{} more metrics differ significantly at some point; see below.", found.len() - SENTENCES));
    }
    let unclear: Vec<&str> = order
        .iter()
        .filter(|pair| pair.rank <= WANTED && clear(pair) == 0 && numbers[pair.name.as_str()].unclear > 0)
        .map(|pair| pair.label.as_str())
        .take(SENTENCES)
        .collect();
    if !unclear.is_empty() {
        sentences.push(format!("Not significant at any point: {}.", unclear.join("; ")));
    }
    sentences
}

/// Returns a phrase such as "significantly shorter at 9 of 12 points (by 3.0 to 45.0 s)".
fn side_of(side: &[&Pair], points: usize) -> String {
    let sizes = side.iter().map(|pair| pair.in_unit().0.abs());
    let (least, most) = sizes.fold((f64::INFINITY, 0.0_f64), |(least, most), size| (least.min(size), most.max(size)));
    let number = super::number;
    let by =
        if number(least) == number(most) { number(most) } else { format!("{} to {}", number(least), number(most)) };
    format!("significantly {} at {} of {points} points (by {by}{})", side[0].direction(), side.len(), unit(side[0]))
}

#[cfg(test)]
mod tests {
    use super::super::compare::tests::outcome;
    use super::*;

    fn runs(waits: [f64; 3], first: u64) -> Vec<Outcome> {
        let digest = |run: Outcome| Outcome { digest: format!("{}", run.frameworks[0].wait.mean), ..run };
        waits.iter().zip(first..).map(|(wait, seed)| digest(outcome(seed, *wait))).collect()
    }

    #[test]
    fn significant_differences_come_first_and_have_a_direction() {
        let (first, second) = (runs([10.0, 20.0, 30.0], 1), runs([5.0, 14.9, 25.1], 1));
        let point = Compared::new(Vec::new(), ("a", "b"), &first, &second);
        assert_eq!(point.summary[0], "The 3 runs of b with the seeds of a are compared with these, seed by seed.");
        let wanted = "Significantly shorter in b: mean wait of f, 15 ± 25 s instead of 20 ± 25 s (-5.00 s, -25.0 %; 95 % \
                      interval -5.25 to -4.75 s).";
        assert!(point.summary.iter().any(|sentences| sentences == wanted), "{:#?}", point.summary);
        // With other seeds, the same difference is hidden by the differences between seeds.
        let point = Compared::new(Vec::new(), ("a", "b"), &first, &runs([5.0, 14.9, 25.1], 7));
        assert!(point.summary[0].contains("no seeds in common"), "{:#?}", point.summary);
        assert!(
            point
                .summary
                .iter()
                .any(|sentences| sentences.starts_with("Not significant") && sentences.contains("mean wait of f ("))
        );
        let point = Compared::new(Vec::new(), ("a", "b"), &first, &first);
        assert_eq!(point.summary, ["All runs are identical."]);
    }

    #[test]
    fn a_sweep_says_at_how_many_points() {
        let point = |n: usize, waits| {
            let values = vec![("x".to_owned(), n.to_string())];
            Compared::new(values, ("a", "b"), &runs([10.0, 20.0, 30.0], 1), &runs(waits, 1))
        };
        let points = [point(1, [5.0, 14.9, 25.1]), point(2, [8.0, 17.9, 28.1]), point(3, [10.0, 35.0, 30.0])];
        let sentences = summary(("a", "b"), &points);
        let wanted =
            "In b, mean wait of f is significantly shorter at 2 of 3 points (by 2.00 to 5.00 s), not significant at 1.";
        assert!(sentences.iter().any(|line| line == wanted), "{sentences:#?}");
    }
}
