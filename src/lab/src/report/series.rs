//! CSV for other programs: a line for each run, and what changed over time.

use std::fmt::Write as _;

use super::metrics::metrics;
use crate::measure::Outcome;

/// A line for each run with all its numbers. `points` are the swept values of each run.
pub fn summary_csv(runs: &[(Vec<(String, String)>, &Outcome)]) -> String {
    let mut text = String::new();
    let Some((values, first)) = runs.first() else { return text };
    let fields = values.iter().map(|(name, _)| quoted(name));
    let names = metrics(first).into_iter().map(|metric| quoted(&metric.name));
    let head: Vec<String> = fields.chain(["seed".to_owned(), "digest".to_owned()]).chain(names).collect();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "{}", head.join(","));
    for (values, outcome) in runs {
        let fields = values.iter().map(|(_, value)| quoted(value));
        let own = [outcome.seed.to_string(), outcome.digest.clone()];
        let cell = |value: f64| if value.is_nan() { String::new() } else { value.to_string() };
        let numbers = metrics(outcome).into_iter().map(|metric| cell(metric.value));
        let cells: Vec<String> = fields.chain(own).chain(numbers).collect();
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}

/// What changed over time in a run: a line for each moment.
pub fn series_csv(outcome: &Outcome) -> String {
    let series = &outcome.series;
    let names: Vec<&str> = outcome.frameworks.iter().map(|framework| framework.name.as_str()).collect();
    let mut text = "seconds,utilisation,offered,gap,jain".to_owned();
    for (name, _) in names.iter().zip(&series.tracks) {
        let _ = write!(text, ",{0}.share,{0}.fair,{0}.waiting,{0}.held,{0}.declined", quoted(name));
    }
    text.push('\n');
    for (n, at) in series.at.iter().enumerate() {
        let _ = write!(text, "{at}");
        // Older results lack the last ones.
        let whole = [&series.utilisation, &series.offered, &series.gap, &series.jain];
        let own = series
            .tracks
            .iter()
            .flat_map(|track| [&track.share, &track.target, &track.waiting, &track.held, &track.declined]);
        for values in whole.into_iter().chain(own) {
            text.push(',');
            let _ = values.get(n).map_or(Ok(()), |value| write!(text, "{value}"));
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
