//! CSV files of runs: one with a line for each run, and one of time series.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::metrics::{Metric, metrics};
use crate::measure::Outcome;

/// Returns CSV with a line for each run and its metrics. A metric that only some runs have is empty in the others.
/// `points` are the swept values of each run.
pub fn summary_csv(runs: &[(Vec<(String, String)>, &Outcome)]) -> String {
    let mut text = String::new();
    let Some((values, _)) = runs.first() else { return text };
    let numbers: Vec<Vec<Metric>> = runs.iter().map(|(_, outcome)| metrics(outcome)).collect();
    let mut names: Vec<&str> = Vec::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for metric in numbers.iter().flatten() {
        if known.insert(&metric.name) {
            names.push(&metric.name);
        }
    }
    let fields = values.iter().map(|(name, _)| quoted(name));
    let head = fields.chain(["seed".to_owned(), "digest".to_owned()]).chain(names.iter().map(|name| quoted(name)));
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "{}", head.collect::<Vec<_>>().join(","));
    for ((values, outcome), numbers) in runs.iter().zip(&numbers) {
        let fields = values.iter().map(|(_, value)| quoted(value));
        let own = [outcome.seed.to_string(), outcome.digest.clone()];
        let of: BTreeMap<&str, f64> = numbers.iter().map(|metric| (metric.name.as_str(), metric.value)).collect();
        let cell = |name: &&str| of.get(name).filter(|value| !value.is_nan()).map(f64::to_string).unwrap_or_default();
        let cells: Vec<String> = fields.chain(own).chain(names.iter().map(cell)).collect();
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}

/// Returns CSV of a run's values over time, with a line for each sample.
pub fn series_csv(outcome: &Outcome) -> String {
    let series = &outcome.series;
    let names: Vec<&str> = outcome.frameworks.iter().map(|framework| framework.name.as_str()).collect();
    let mut text = "seconds,utilisation,offered,gap,jain".to_owned();
    for (name, _) in names.iter().zip(&series.tracks) {
        let _ = write!(text, ",{0}.share,{0}.fair,{0}.waiting,{0}.held,{0}.declined", quoted(name));
    }
    for (name, track) in names.iter().zip(&series.tracks) {
        for own in &track.own {
            let _ = write!(text, ",{}", quoted(&format!("{name}.{}", own.title)));
        }
    }
    text.push('\n');
    for (n, at) in series.at.iter().enumerate() {
        let _ = write!(text, "{at}");
        // Results of older versions lack the last ones.
        let whole = [&series.utilisation, &series.offered, &series.gap, &series.jain];
        let own = series
            .tracks
            .iter()
            .flat_map(|track| [&track.share, &track.target, &track.waiting, &track.held, &track.declined]);
        for values in whole.into_iter().chain(own) {
            text.push(',');
            let _ = values.get(n).map_or(Ok(()), |value| write!(text, "{value}"));
        }
        for own in series.tracks.iter().flat_map(|track| &track.own) {
            text.push(',');
            let _ = own.values.get(n).copied().flatten().map_or(Ok(()), |value| write!(text, "{value}"));
        }
        text.push('\n');
    }
    text
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
