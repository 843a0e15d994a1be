//! Counters and gauges of a framework, in the text form of Prometheus. It serves them nowhere.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// How many series there may be; further ones are not kept, so that a label made from an id does no harm.
const SERIES_MAX: usize = 10_000;

/// Labels of a series: names and values.
type Labels = Vec<(&'static str, String)>;

/// Counters and gauges. Clones share them: one is given to the session in its settings, another to whoever serves them.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<Series>>);

#[derive(Debug, Default)]
struct Series {
    /// By name; whether it is a counter, and its values by labels.
    values: BTreeMap<&'static str, (bool, BTreeMap<Labels, f64>)>,
    count: usize,
}

impl Metrics {
    /// Adds to a counter; its name should end in `_total`.
    pub fn count(&self, name: &'static str, labels: &[(&'static str, &str)], more: u64) {
        self.change(name, true, labels, |value| *value += more as f64);
    }

    /// Sets a gauge.
    pub fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)], value: f64) {
        self.change(name, false, labels, |old| *old = value);
    }

    /// Removes all series of this name, before gauges with other labels are set.
    pub fn clear(&self, name: &str) {
        let mut series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, values)) = series.values.remove(name) {
            series.count -= values.len();
        }
    }

    fn change(&self, name: &'static str, counter: bool, labels: &[(&'static str, &str)], change: impl Fn(&mut f64)) {
        let mut series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Series { values, count } = &mut *series;
        let (_, values) = values.entry(name).or_insert_with(|| (counter, BTreeMap::new()));
        let labels: Labels = labels.iter().map(|(n, v)| (*n, (*v).to_owned())).collect();
        if let Some(value) = values.get_mut(&labels) {
            return change(value);
        }
        if *count < SERIES_MAX {
            *count += 1;
            change(values.entry(labels).or_default());
        }
    }

    /// All series, for a scraper (content type `text/plain; version=0.0.4`).
    pub fn text(&self) -> String {
        let series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for (name, (counter, values)) in &series.values {
            let kind = if *counter { "counter" } else { "gauge" };
            let _ = writeln!(text, "# TYPE {name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "{name}{} {value}", shown(labels));
            }
        }
        text
    }
}

fn shown(labels: &Labels) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", quoted(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_counters_and_gauges() {
        let metrics = Metrics::default();
        metrics.count("x_total", &[("kind", "a\"b")], 2);
        metrics.count("x_total", &[("kind", "a\"b")], 1);
        metrics.clone().gauge("up", &[], 0.5);
        let text = "# TYPE up gauge\nup 0.5\n# TYPE x_total counter\nx_total{kind=\"a\\\"b\"} 3\n";
        assert_eq!(metrics.text(), text);
        metrics.clear("up");
        assert!(!metrics.text().contains("up"));
    }

    #[test]
    fn series_are_limited() {
        let metrics = Metrics::default();
        for n in 0..SERIES_MAX + 10 {
            metrics.count("x_total", &[("id", &n.to_string())], 1);
        }
        assert_eq!(metrics.text().lines().count(), SERIES_MAX + 1);
    }
}
