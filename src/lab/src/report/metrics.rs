//! The numbers of an outcome by name.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::measure::{Outcome, Summary, mean_and_interval};

/// A number of an outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Such as `a.wait.mean`, `whole.unfairness.gap`.
    pub name: String,
    /// Its value; times in seconds, shares as parts of 1. NaN if there was nothing to measure.
    pub value: f64,
}

/// All numbers of an outcome, in a fixed order.
pub fn metrics(outcome: &Outcome) -> Vec<Metric> {
    let mut all = Vec::new();
    let mut put = |name: String, value: f64| all.push(Metric { name, value });
    for window in &outcome.windows {
        let (name, unfair) = (&window.name, &window.unfairness);
        put(format!("{name}.unfairness.gap"), unfair.gap);
        put(format!("{name}.unfairness.deviation"), unfair.deviation);
        put(format!("{name}.unfairness.lost"), unfair.lost);
        put(format!("{name}.jain"), unfair.jain);
        put(format!("{name}.contended"), unfair.contended);
        put(format!("{name}.offered"), window.offered);
        for (resource, part) in &window.utilisation {
            put(format!("{name}.utilisation.{resource}"), *part);
        }
        for (framework, (share, target)) in
            outcome.frameworks.iter().zip(window.shares.iter().zip(&window.targets)).take(MOST)
        {
            put(format!("{name}.share.{}", framework.name), *share);
            put(format!("{name}.fair.{}", framework.name), *target);
        }
    }
    for framework in outcome.frameworks.iter().take(MOST) {
        let name = &framework.name;
        for (what, summary) in [("wait", &framework.wait), ("start", &framework.start), ("job", &framework.job)] {
            put(format!("{name}.{what}.mean"), known(summary, summary.mean));
            put(format!("{name}.{what}.p50"), known(summary, summary.p50));
            put(format!("{name}.{what}.p90"), known(summary, summary.p90));
            put(format!("{name}.{what}.p99"), known(summary, summary.p99));
        }
        put(format!("{name}.job.sum"), framework.job.mean * framework.job.count as f64);
        for (kind, job) in &framework.kinds {
            put(format!("{name}.{kind}.job.mean"), known(job, job.mean));
        }
        for (own, value) in &framework.own {
            put(format!("{name}.{own}"), value.unwrap_or(f64::NAN));
        }
        put(format!("{name}.finished"), framework.finished as f64);
        put(format!("{name}.failed"), framework.failed as f64);
        put(format!("{name}.left"), framework.left as f64);
        put(format!("{name}.offers.received"), framework.offers_received as f64);
        put(format!("{name}.offers.accepted"), framework.offers_accepted as f64);
        put(format!("{name}.offers.declined"), framework.offers_declined as f64);
        put(format!("{name}.offers.rescinded"), framework.offers_rescinded as f64);
        put(format!("{name}.offers.held"), framework.offer_held);
    }
    let waits = || outcome.frameworks.iter().map(|framework| &framework.wait);
    let tasks: usize = waits().map(|wait| wait.count).sum();
    let mean = waits().map(|wait| wait.mean * wait.count as f64).sum::<f64>() / tasks.max(1) as f64;
    let mean = if tasks == 0 { f64::NAN } else { mean };
    put("all.wait.mean".to_owned(), mean);
    // How far the mean wait of the framework is from it that is furthest.
    let apart = waits().filter(|wait| wait.count > 0).map(|wait| (wait.mean - mean).abs()).fold(0.0, f64::max);
    put("all.wait.apart".to_owned(), apart / mean.max(f64::MIN_POSITIVE));
    put("seconds".to_owned(), outcome.seconds);
    put("events".to_owned(), outcome.events as f64);
    all
}

/// A number of a summary; none if nothing was summarised.
fn known(summary: &Summary, value: f64) -> f64 {
    if summary.count == 0 { f64::NAN } else { value }
}

/// Frameworks whose numbers are listed.
const MOST: usize = 40;

/// A number over repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Its name.
    pub name: String,
    /// The mean over the repetitions with a value; NaN if there are none.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean.
    pub half: f64,
}

/// The numbers of several repetitions.
pub fn spreads(outcomes: &[Outcome]) -> Vec<Spread> {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut order = Vec::new();
    for outcome in outcomes {
        for metric in metrics(outcome) {
            let known = values.entry(metric.name).or_insert_with_key(|name| {
                order.push(name.clone());
                Vec::new()
            });
            known.extend(Some(metric.value).filter(|value| !value.is_nan()));
        }
    }
    let spread = |name: String| {
        let (mean, half) = mean_and_interval(&values[&name]);
        Spread { mean: if values[&name].is_empty() { f64::NAN } else { mean }, half, name }
    };
    order.into_iter().map(spread).collect()
}

/// A number for a table; a dash for NaN.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size.is_nan() => "–".to_owned(),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// A mean with its 95 % confidence interval, if there is more than one repetition.
pub fn with_interval(spread: &Spread) -> String {
    match spread.half > 0.0 {
        true => format!("{} ± {}", number(spread.mean), number(spread.half)),
        // Counts, and what is nothing at all.
        false if spread.mean.fract() == 0.0 => format!("{:.0}", spread.mean),
        false => number(spread.mean),
    }
}
