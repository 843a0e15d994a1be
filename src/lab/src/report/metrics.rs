//! The metrics of an outcome, by name.

use std::collections::BTreeMap;

use base::mean_and_interval;
use serde::Serialize;

use crate::measure::{FrameworkOutcome, Outcome, Summary, WindowOutcome};

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A time in seconds.
    Seconds,
    /// A part of a whole, where 1 is all of it. Pages show it in percent.
    Part,
    /// A number of things.
    Count,
    /// A number without a unit.
    Index,
}

/// A metric of an outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Name of the metric, such as `a.wait.mean` or `whole.unfairness.gap`.
    pub name: String,
    /// Description of the metric in plain words, such as "mean wait of a".
    pub label: String,
    /// Unit of the metric.
    pub unit: Unit,
    /// Rank of the metric in reports: 0 is shown first, 9 last.
    pub rank: u8,
    /// Value of the metric: times in seconds, shares as parts of 1. NaN if there was nothing to measure.
    pub value: f64,
}

/// Collects the metrics of an outcome.
#[derive(Default)]
struct Numbers(Vec<Metric>);

impl Numbers {
    fn put(&mut self, name: String, label: String, unit: Unit, rank: u8, value: f64) {
        self.0.push(Metric { name, label, unit, rank, value });
    }
}

/// Returns all metrics of an outcome, in a fixed order.
pub fn metrics(outcome: &Outcome) -> Vec<Metric> {
    let mut all = Numbers::default();
    for window in &outcome.windows {
        of_window(window, outcome, &mut all);
    }
    for framework in outcome.frameworks.iter().take(MOST) {
        of_framework(framework, &mut all);
    }
    let waits = || outcome.frameworks.iter().map(|framework| &framework.wait);
    let tasks: usize = waits().map(|wait| wait.count).sum();
    let mean = waits().map(|wait| wait.mean * wait.count as f64).sum::<f64>() / tasks.max(1) as f64;
    let mean = if tasks == 0 { f64::NAN } else { mean };
    all.put("all.wait.mean".to_owned(), "mean wait of all tasks".to_owned(), Unit::Seconds, 1, mean);
    // Largest distance of a framework's mean wait from the mean wait of all tasks.
    let apart = waits().filter(|wait| wait.count > 0).map(|wait| (wait.mean - mean).abs()).fold(0.0, f64::max);
    let apart = apart / mean.max(f64::MIN_POSITIVE);
    let label = "largest distance of a framework's mean wait from that of all, relative to it";
    all.put("all.wait.apart".to_owned(), label.to_owned(), Unit::Part, 4, apart);
    all.put("seconds".to_owned(), "length of the run".to_owned(), Unit::Seconds, 4, outcome.seconds);
    all.put("events".to_owned(), "events of the simulation".to_owned(), Unit::Count, 9, outcome.events as f64);
    all.0
}

/// Returns "in the whole run", or a phrase such as "in the window steady".
fn during(window: &str) -> String {
    if window == "whole" { "in the whole run".to_owned() } else { format!("in the window {window}") }
}

/// Returns the name of a resource in plain words.
fn word(resource: &str) -> &str {
    match resource {
        "cpus" => "CPUs",
        "mem" => "memory",
        "gpus" => "GPUs",
        other => other,
    }
}

fn of_window(window: &WindowOutcome, outcome: &Outcome, all: &mut Numbers) {
    let (name, unfair, during) = (&window.name, &window.unfairness, during(&window.name));
    let mut put = |what: &str, label: &str, unit, rank, value| {
        all.put(format!("{name}.{what}"), format!("{label} {during}"), unit, rank, value);
    };
    // A window of the scenario is ranked before the whole run, which includes its beginning and its end.
    let rank = u8::from(name == "whole");
    put("unfairness.gap", "unfairness (gap between shares)", Unit::Part, rank, unfair.gap);
    put("unfairness.deviation", "unfairness (deviation from fair shares)", Unit::Part, rank, unfair.deviation);
    put("unfairness.lost", "unfairness (lost share)", Unit::Part, rank, unfair.lost);
    put("jain", "Jain's index", Unit::Index, 3 + rank, unfair.jain);
    put("contended", "contended share of the time", Unit::Part, 5, unfair.contended);
    put("offered", "resources in unanswered offers", Unit::Part, 3 + rank, window.offered);
    for (resource, part) in &window.utilisation {
        put(&format!("utilisation.{resource}"), &format!("{} in use", word(resource)), Unit::Part, 1 + rank, *part);
    }
    let shares = outcome.frameworks.iter().zip(window.shares.iter().zip(&window.targets));
    for (framework, (share, target)) in shares.take(MOST) {
        let of = &framework.name;
        put(&format!("share.{of}"), &format!("dominant share of {of}"), Unit::Part, 2 + rank, *share);
        put(&format!("fair.{of}"), &format!("fair share of {of}"), Unit::Part, 6, *target);
    }
    for (framework, track) in outcome.frameworks.iter().zip(&outcome.series.tracks).filter(|_| name != "whole") {
        for (own, title) in &framework.own_titles {
            let Some(measured) = track.own.iter().find(|track| track.title == *title) else { continue };
            let at = outcome.series.at.iter().zip(&measured.values);
            let within = at.filter(|(at, _)| (window.from..window.to).contains(*at)).filter_map(|(_, value)| *value);
            let (sum, count) = within.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
            let of = &framework.name;
            // Without a sample the quotient is 0/0, which is NaN: there is no value.
            put(&format!("{of}.{own}"), &format!("{own} of {of}"), Unit::Index, rank, sum / count);
        }
    }
}

fn of_framework(framework: &FrameworkOutcome, all: &mut Numbers) {
    let name = &framework.name;
    let mut put = |what: &str, label: &str, unit, rank, value| {
        all.put(format!("{name}.{what}"), format!("{label} of {name}"), unit, rank, value);
    };
    let times = [
        ("wait", "wait", &framework.wait),
        ("start", "start time", &framework.start),
        ("job", "job time", &framework.job),
    ];
    for (rank, (what, word, summary)) in times.into_iter().enumerate() {
        let rank = [1, 7, 2][rank];
        put(&format!("{what}.mean"), &format!("mean {word}"), Unit::Seconds, rank, known(summary, summary.mean));
        put(&format!("{what}.p50"), &format!("median {word}"), Unit::Seconds, 6, known(summary, summary.p50));
        put(
            &format!("{what}.p90"),
            &format!("90th percentile of the {word}"),
            Unit::Seconds,
            6,
            known(summary, summary.p90),
        );
        put(
            &format!("{what}.p99"),
            &format!("99th percentile of the {word}"),
            Unit::Seconds,
            6,
            known(summary, summary.p99),
        );
    }
    let sum = framework.job.mean * framework.job.count as f64;
    put("job.sum", "sum of all job times", Unit::Seconds, 7, sum);
    for (kind, job) in &framework.kinds {
        put(&format!("{kind}.job.mean"), &format!("mean job time of {kind}"), Unit::Seconds, 3, known(job, job.mean));
    }
    for (own, value) in &framework.own {
        put(own, own, Unit::Index, 0, value.unwrap_or(f64::NAN));
    }
    put("finished", "finished tasks", Unit::Count, 2, framework.finished as f64);
    put("failed", "failed tasks", Unit::Count, 3, framework.failed as f64);
    put("left", "unfinished tasks", Unit::Count, 3, framework.left as f64);
    put("offers.received", "offers received", Unit::Count, 5, framework.offers_received as f64);
    put("offers.accepted", "offers accepted", Unit::Count, 6, framework.offers_accepted as f64);
    put("offers.declined", "offers declined", Unit::Count, 6, framework.offers_declined as f64);
    put("offers.rescinded", "offers rescinded", Unit::Count, 6, framework.offers_rescinded as f64);
    put("offers.held", "mean time an offer is held", Unit::Seconds, 4, framework.offer_held);
}

/// Returns a value of a summary; NaN if there were no values to summarize.
fn known(summary: &Summary, value: f64) -> f64 {
    if summary.count == 0 { f64::NAN } else { value }
}

/// The most frameworks whose metrics are listed.
const MOST: usize = 40;

/// A metric over several repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Name of the metric.
    pub name: String,
    /// Description of the metric in plain words.
    pub label: String,
    /// Unit of the metric.
    pub unit: Unit,
    /// Rank of the metric in reports: 0 is shown first, 9 last.
    #[serde(skip)]
    pub rank: u8,
    /// Mean over the repetitions with a value; NaN if there are none.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean.
    pub half: f64,
}

impl Spread {
    /// Creates a metric without a unit whose name is its description.
    pub fn plain(name: &str, values: &[f64]) -> Spread {
        let (mean, half) = mean_and_interval(values);
        Spread { name: name.to_owned(), label: name.to_owned(), unit: Unit::Index, rank: 0, mean, half }
    }
}

/// Returns the metrics of several repetitions.
pub fn spreads(outcomes: &[Outcome]) -> Vec<Spread> {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut order = Vec::new();
    for outcome in outcomes {
        for metric in metrics(outcome) {
            let known = values.entry(metric.name.clone()).or_insert_with(|| {
                order.push(metric.clone());
                Vec::new()
            });
            known.extend(Some(metric.value).filter(|value| !value.is_nan()));
        }
    }
    let spread = |Metric { name, label, unit, rank, .. }: Metric| {
        let (mean, half) = mean_and_interval(&values[&name]);
        Spread { mean: if values[&name].is_empty() { f64::NAN } else { mean }, half, name, label, unit, rank }
    };
    order.into_iter().map(spread).collect()
}

/// Formats a number for a table, with three significant digits; NaN is a dash.
pub fn number(value: f64) -> String {
    with_decimals(value, decimals(value, 3))
}

/// Formats a mean with its 95 % confidence interval, if there is more than one repetition. The number of decimals is
/// that of two significant digits of the interval.
pub fn with_interval(spread: &Spread) -> String {
    shown(spread.mean, spread.half)
}

/// Formats a mean with its interval in the unit of pages and tables: parts in percent.
pub fn in_unit(spread: &Spread) -> String {
    let times = if spread.unit == Unit::Part { 100.0 } else { 1.0 };
    shown(spread.mean * times, spread.half * times)
}

fn shown(mean: f64, half: f64) -> String {
    // An interval that is only a rounding error counts as none.
    let half = if half <= mean.abs() * 1e-6 { 0.0 } else { half };
    match half > 0.0 {
        true => {
            let decimals = decimals(half, 2);
            format!("{} ± {}", with_decimals(mean, decimals), with_decimals(half, decimals))
        }
        // Whole numbers have no decimals.
        false if mean.fract() == 0.0 => format!("{mean:.0}"),
        false => number(mean),
    }
}

/// Returns how many decimals a number with this many significant digits has; at most five.
fn decimals(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let before = value.abs().log10().floor() as i32 + 1;
    (digits - before).clamp(0, 5) as usize
}

/// Returns the number of decimals with which a difference is shown beside half of its interval.
pub(super) fn decimals_of(value: f64, half: f64) -> usize {
    if half > value.abs() * 1e-6 { decimals(half, 2) } else { decimals(value, 3) }
}

fn with_decimals(value: f64, decimals: usize) -> String {
    if value.is_nan() { "–".to_owned() } else { format!("{value:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_count() {
        let spread = |mean, half, unit| Spread { unit, mean, half, ..Spread::plain("x", &[]) };
        let index = |mean, half| with_interval(&spread(mean, half, Unit::Index));
        assert_eq!(index(33.333, 3.031), "33.3 ± 3.0");
        assert_eq!(index(7131.2, 35.9), "7131 ± 36");
        assert_eq!(index(0.01534, 0.0018), "0.0153 ± 0.0018");
        assert_eq!(index(100.0, 1e-9), "100");
        assert_eq!(index(12.0, 0.0), "12");
        assert_eq!(index(0.5, 0.0), "0.500");
        assert_eq!(index(f64::NAN, 0.0), "–");
        assert_eq!(number(1234.5), "1234");
        assert_eq!(number(0.0), "0");
        assert_eq!(in_unit(&spread(0.333, 0.0303, Unit::Part)), "33.3 ± 3.0");
    }
}
