//! A set of metrics by name, in the form of `/metrics/snapshot` and GET_METRICS.
//!
//! It measures nothing; each daemon fills it from its core's counters.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::time::Duration;

use protos::json::Writer;
use protos::mesos;
use resources::{Name, Resources};
use wire::ConnectionCounts;
use wire::http::{Request, Response};

use crate::clock::Stopwatch;
use crate::host;
use crate::prometheus::Kind;

/// A set of metrics, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, Metric>);

#[derive(Clone, Copy, Debug, PartialEq)]
struct Metric {
    value: f64,
    is_counter: bool,
}

impl Metrics {
    /// Sets a gauge.
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        self.0.insert(name.into(), Metric { value, is_counter: false });
    }

    /// Sets a counter, whose value only grows while the process runs.
    pub fn counter(&mut self, name: impl Into<String>, value: f64) {
        self.0.insert(name.into(), Metric { value, is_counter: true });
    }

    /// Returns all metrics with their types, by name.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, f64, Kind)> {
        let kind = |metric: &Metric| if metric.is_counter { Kind::Counter } else { Kind::Gauge };
        self.0.iter().map(move |(name, metric)| (name.as_str(), metric.value, kind(metric)))
    }

    /// Returns the value of a metric.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).map(|metric| metric.value)
    }

    /// Sets a gauge to a count.
    pub fn count(&mut self, name: impl Into<String>, value: usize) {
        self.set(name, value as f64);
    }

    /// Sets `<prefix><resource>_total`, `_used`, `_percent`, and the same for revocable resources, for the four common
    /// resources.
    pub fn resources(&mut self, prefix: &str, total: &Resources, used: &Resources) {
        let parts =
            [("", total.non_revocable(), used.non_revocable()), ("_revocable", total.revocable(), used.revocable())];
        for (infix, total, used) in parts {
            for name in [Name::Cpus, Name::Gpus, Name::Mem, Name::Disk] {
                let amount = |of: &Resources| of.get_scalar(&name).map_or(0.0, |amount| amount.to_f64());
                let (total, used) = (amount(&total), amount(&used));
                let label = format!("{prefix}{}{infix}", name.as_str());
                self.set(format!("{label}_total"), total);
                self.set(format!("{label}_used"), used);
                self.set(format!("{label}_percent"), if total > 0.0 { used / total } else { 0.0 });
            }
        }
    }

    /// Sets the metrics of the host's load and memory.
    pub fn system(&mut self) {
        let (load, memory) = (host::load(), containers::host_memory());
        self.set("system/cpus_total", host::processors() as f64);
        for (name, value) in ["system/load_1min", "system/load_5min", "system/load_15min"].iter().zip(load) {
            self.set(*name, value);
        }
        self.set("system/mem_total_bytes", memory.total as f64);
        self.set("system/mem_free_bytes", memory.free as f64);
    }

    /// Sets the metrics of the daemon's connections. Mesos has no such metrics.
    pub fn connections(&mut self, counts: ConnectionCounts) {
        self.count("connections/limit", counts.limit);
        self.count("connections/incoming", counts.incoming);
        self.count("connections/outgoing", counts.outgoing);
        self.counter("connections/displaced", counts.displaced as f64);
        self.counter("connections/timed_out", counts.timed_out as f64);
        self.counter("connections/refused", counts.refused as f64);
        self.counter("connections/delayed_refusals", counts.delayed as f64);
    }

    /// Sets the metrics of refusals: messages that name another process as their sender, log-ins that failed, and those
    /// that had to wait. Mesos has no such metrics.
    pub fn refusals(&mut self, forged: u64, (failed, held_up): (u64, u64)) {
        self.counter("security/forged_messages", forged as f64);
        self.counter("security/failed_logins", failed as f64);
        self.counter("security/delayed_logins", held_up as f64);
    }

    /// Returns the metrics as one flat JSON object, sorted by name.
    pub fn json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 << 10);
        Writer::new(&mut out).object(|w| {
            for (name, metric) in &self.0 {
                w.key(name).double(metric.value);
            }
        });
        out
    }

    /// Returns the metrics as messages.
    pub fn messages(&self) -> Vec<mesos::Metric> {
        self.0.iter().map(|(name, metric)| mesos::Metric { name: name.clone(), value: Some(metric.value) }).collect()
    }
}

/// The durations of the last occurrences of an activity (MET-02).
#[derive(Debug)]
pub struct Timings {
    window: Duration,
    /// Start and duration in milliseconds of each occurrence, oldest first.
    samples: VecDeque<(Stopwatch, f64)>,
}

impl Timings {
    /// Maximum number of durations, as in Mesos.
    const KEPT: usize = 1000;

    /// Creates an empty set of durations. Statistics leave out those that are older than `window`.
    pub fn new(window: Duration) -> Timings {
        Timings { window, samples: VecDeque::new() }
    }

    /// Adds the duration of an occurrence that began at `began`.
    pub fn add(&mut self, began: Stopwatch, took: Duration) {
        if self.samples.len() >= Timings::KEPT {
            self.samples.pop_front();
        }
        self.samples.push_back((began, took.as_secs_f64() * 1e3));
    }

    /// Sets `<name>` to the last duration, and `<name>/count`, `/min`, `/max` and `/p50` to `/p9999`. Sets nothing
    /// without durations.
    pub fn write_metrics(&self, name: &str, metrics: &mut Metrics) {
        let Some((_, last)) = self.samples.back() else { return };
        metrics.set(name, *last);
        let recent = self.samples.iter().filter(|(began, _)| began.elapsed() <= self.window);
        let mut sorted: Vec<f64> = recent.map(|(_, took)| *took).collect();
        sorted.sort_by(f64::total_cmp);
        metrics.count(format!("{name}/count"), sorted.len());
        let places = [
            ("min", 0.0),
            ("p50", 0.5),
            ("p90", 0.9),
            ("p95", 0.95),
            ("p99", 0.99),
            ("p999", 0.999),
            ("p9999", 0.9999),
        ];
        for (place, part) in places.into_iter().chain([("max", 1.0)]) {
            if let Some(value) = percentile(&sorted, part) {
                metrics.set(format!("{name}/{place}"), value);
            }
        }
    }
}

/// Returns the value below which this part of the sorted values is, interpolated between two of them.
fn percentile(sorted: &[f64], part: f64) -> Option<f64> {
    let place = part * sorted.len().checked_sub(1)? as f64;
    let below = sorted.get(place.floor() as usize)?;
    let above = sorted.get(place.ceil() as usize)?;
    Some(below + (above - below) * place.fract())
}

/// Answers `/metrics/snapshot?timeout=` with this document. A valid timeout has no effect.
pub async fn answer(request: &Request, document: impl Future<Output = Vec<u8>>) -> Response {
    if let Some(text) = request.query.get("timeout")
        && let Err(error) = base::parse_duration(text)
    {
        return Response::bad_request(format!("Invalid timeout '{text}': {error}.\n"));
    }
    Response::ok_jsonp(document.await, request.query.get("jsonp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_timings() {
        let mut timings = Timings::new(Duration::from_secs(60));
        let mut metrics = Metrics::default();
        timings.write_metrics("t", &mut metrics);
        assert_eq!(metrics, Metrics::default());
        for millis in [5, 1, 3, 2, 4] {
            timings.add(Stopwatch::start(), Duration::from_millis(millis));
        }
        timings.write_metrics("t", &mut metrics);
        let of = |name: &str| metrics.get(name).unwrap();
        assert_eq!((of("t"), of("t/count"), of("t/min"), of("t/max"), of("t/p50")), (4.0, 5.0, 1.0, 5.0, 3.0));
        assert!((of("t/p90") - 4.6).abs() < 1e-9);
        (0..2000).for_each(|_| timings.add(Stopwatch::start(), Duration::ZERO));
        assert_eq!(timings.samples.len(), Timings::KEPT);
    }
}
