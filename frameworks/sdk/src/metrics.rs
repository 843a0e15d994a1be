//! Counters and gauges of a framework in Prometheus's text format. It does not serve them.

use std::sync::{Arc, Mutex, PoisonError};

use base::prometheus::{Kind, Text};

/// Maximum number of series; further ones are dropped, so that a label made from an id cannot exhaust the memory.
const SERIES_MAX: usize = 10_000;

/// Labels of a series, as names and values.
type Labels = Vec<(&'static str, String)>;

/// Counters and gauges of a framework. Clones share them: one is passed to the session in its settings, another to the
/// server of metrics.
#[derive(Clone, Debug)]
pub struct Metrics(Option<Arc<Mutex<Series>>>);

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics(Some(Arc::default()))
    }
}

#[derive(Debug, Default)]
struct Series {
    /// Series by name, sorted.
    values: Vec<(&'static str, Values)>,
    count: usize,
}

/// The series of one name.
#[derive(Debug, Default)]
struct Values {
    counter: bool,
    /// Values by labels, sorted.
    by_labels: Vec<(Labels, f64)>,
}

impl Metrics {
    /// Returns metrics that count nothing, for a session without metrics.
    pub fn off() -> Metrics {
        Metrics(None)
    }

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
        let Some(series) = &self.0 else { return };
        let mut series = series.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(at) = series.values.binary_search_by_key(&name, |(known, _)| *known) {
            series.count -= series.values.remove(at).1.by_labels.len();
        }
    }

    fn change(&self, name: &'static str, counter: bool, labels: &[(&'static str, &str)], change: impl Fn(&mut f64)) {
        let Some(series) = &self.0 else { return };
        let mut series = series.lock().unwrap_or_else(PoisonError::into_inner);
        let Series { values, count } = &mut *series;
        // The name is mostly the very same text as before.
        let same = values.iter().position(|(known, _)| std::ptr::eq(*known, name));
        let at = same.unwrap_or_else(|| {
            values.binary_search_by_key(&name, |(known, _)| *known).unwrap_or_else(|at| {
                values.insert(at, (name, Values { counter, by_labels: Vec::new() }));
                at
            })
        });
        let values = &mut values[at].1;
        let order = |known: &Labels| known.iter().map(|(n, v)| (*n, v.as_str())).cmp(labels.iter().copied());
        match values.by_labels.binary_search_by(|(known, _)| order(known)) {
            Ok(at) => change(&mut values.by_labels[at].1),
            Err(at) if *count < SERIES_MAX => {
                *count += 1;
                let labels = labels.iter().map(|(n, v)| (*n, (*v).to_owned())).collect();
                values.by_labels.insert(at, (labels, 0.0));
                change(&mut values.by_labels[at].1);
            }
            Err(_) => {}
        }
    }

    /// Returns all series as text for a scraper (content type [`base::prometheus::MEDIA_TYPE`]).
    pub fn text(&self) -> String {
        let Some(series) = &self.0 else { return String::new() };
        let series = series.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Text::default();
        for (name, values) in &series.values {
            let kind = if values.counter { Kind::Counter } else { Kind::Gauge };
            for (labels, value) in &values.by_labels {
                let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
                text.add(name, kind, &name.replace('_', " "), &labels, *value);
            }
        }
        text.write()
    }
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
        let text = metrics.text();
        assert!(text.contains("# TYPE up gauge\nup 0.5\n"), "{text}");
        assert!(text.contains("# TYPE x_total counter\nx_total{kind=\"a\\\"b\"} 3.0\n"), "{text}");
        metrics.clear("up");
        assert!(!metrics.text().contains("up"));
    }

    #[test]
    fn series_are_limited() {
        let metrics = Metrics::default();
        for n in 0..SERIES_MAX + 10 {
            metrics.count("x_total", &[("id", &n.to_string())], 1);
        }
        assert_eq!(metrics.text().lines().filter(|line| !line.starts_with('#')).count(), SERIES_MAX);
    }
}
