//! The measurements of one job's tasks, as much of them as percentiles need.
//!
//! It grows to a limit: of a task that is measured often, neighbouring rates become one, the larger of them; of a job
//! with many tasks, those that were measured last are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::quantile::effective;
use crate::{Risk, Use};

/// Rates that are kept of a task.
const RATES_MAX: usize = 256;
/// Tasks of a job that are kept.
const TASKS_MAX: usize = 200;
const MEBIBYTE: f64 = 1_048_576.0;

/// What a container has used until a moment, as an agent's `/monitor/statistics` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// When it was measured: seconds since 1970, by the agent's clock.
    pub at: f64,
    /// Time of processors that it has used so far, of users and system, in seconds.
    pub cpu_seconds: f64,
    /// Time for which it was kept from processors by its limit, in seconds; 0 where that is not counted.
    #[serde(default)]
    pub throttled_seconds: f64,
    /// Memory that it uses now, in bytes.
    pub rss_bytes: f64,
}

impl Reading {
    fn is_sane(&self) -> bool {
        [self.at, self.cpu_seconds, self.throttled_seconds, self.rss_bytes].iter().all(|x| x.is_finite() && *x >= 0.0)
    }
}

/// The measurements of one task.
#[derive(Clone, Debug)]
struct Series {
    last: Reading,
    /// Cores used between readings, oldest first; each is the largest of `group` of them.
    rates: Vec<f64>,
    group: u32,
    /// How many rates are in the last of `rates`.
    filled: u32,
    /// Number of rates that were measured.
    measured: u64,
    /// Their sum times the time between readings, and that time.
    used: f64,
    time: f64,
    throttled: f64,
    peak: f64,
    rss_sum: f64,
    readings: u64,
}

impl Series {
    fn new(first: Reading) -> Series {
        Series {
            last: first,
            rates: Vec::new(),
            group: 1,
            filled: 1,
            measured: 0,
            used: 0.0,
            time: 0.0,
            throttled: 0.0,
            peak: first.rss_bytes,
            rss_sum: first.rss_bytes,
            readings: 1,
        }
    }

    fn add(&mut self, now: Reading) {
        let time = now.at - self.last.at;
        // The agent answers with what it has measured before.
        if time <= 0.0 {
            return;
        }
        self.peak = self.peak.max(now.rss_bytes);
        self.rss_sum += now.rss_bytes;
        self.readings += 1;
        let used = now.cpu_seconds - self.last.cpu_seconds;
        let throttled = (now.throttled_seconds - self.last.throttled_seconds).max(0.0);
        self.last = now;
        // Counters that run back are of another container.
        if used >= 0.0 {
            self.used += used;
            self.time += time;
            self.throttled += throttled;
            self.measured += 1;
            self.push(used / time);
        }
    }

    fn push(&mut self, rate: f64) {
        if let Some(last) = self.rates.last_mut().filter(|_| self.filled < self.group) {
            *last = last.max(rate);
            self.filled += 1;
            return;
        }
        if self.rates.len() == RATES_MAX {
            self.rates = self.rates.chunks(2).map(|pair| pair.iter().copied().fold(0.0, f64::max)).collect();
            self.group *= 2;
        }
        self.rates.push(rate);
        self.filled = 1;
    }
}

/// The measurements of a job.
#[derive(Clone, Debug, Default)]
pub struct History {
    tasks: BTreeMap<String, Series>,
}

impl History {
    /// Takes a reading of a task's container. Readings that are no numbers, or older than the last, are left out.
    pub fn add(&mut self, task: &str, reading: Reading) {
        if !reading.is_sane() {
            return;
        }
        if let Some(series) = self.tasks.get_mut(task) {
            return series.add(reading);
        }
        if self.tasks.len() >= TASKS_MAX {
            let oldest = self.tasks.iter().min_by(|a, b| a.1.last.at.total_cmp(&b.1.last.at));
            if let Some(oldest) = oldest.map(|(task, _)| task.clone()) {
                self.tasks.remove(&oldest);
            }
        }
        self.tasks.insert(task.to_owned(), Series::new(reading));
    }

    /// Number of tasks that were measured.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Number of measurements of use between two readings.
    pub fn measured(&self) -> u64 {
        self.tasks.values().map(|series| series.measured).sum()
    }

    /// Cores used: percentiles of all rates. None without measurements.
    pub fn cpus(&self, risk: Risk) -> Option<Use> {
        let series: Vec<&[f64]> = self.tasks.values().map(|s| s.rates.as_slice()).filter(|r| !r.is_empty()).collect();
        let mut used = Use::of(series.concat(), effective(&series), risk.level())?;
        let (seconds, time) = self.tasks.values().fold((0.0, 0.0), |sum, s| (sum.0 + s.used, sum.1 + s.time));
        used.mean = if time > 0.0 { seconds / time } else { used.mean };
        Some(used)
    }

    /// Megabytes used: percentiles of the tasks' peaks; the mean is that of all readings.
    pub fn mem(&self, risk: Risk) -> Option<Use> {
        let peaks: Vec<f64> = self.tasks.values().map(|s| s.peak / MEBIBYTE).collect();
        let count = peaks.len() as f64;
        let mut used = Use::of(peaks, count, risk.level())?;
        let (sum, readings) = self.tasks.values().fold((0.0, 0), |sum, s| (sum.0 + s.rss_sum, sum.1 + s.readings));
        used.mean = sum / MEBIBYTE / readings.max(1) as f64;
        Some(used)
    }

    /// The share of the time in which tasks were kept from processors by their limit.
    pub fn throttled(&self) -> f64 {
        let (throttled, time) = self.tasks.values().fold((0.0, 0.0), |sum, s| (sum.0 + s.throttled, sum.1 + s.time));
        if time > 0.0 { throttled / time } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: f64, cpu_seconds: f64, megabytes: f64) -> Reading {
        Reading { at, cpu_seconds, throttled_seconds: 0.0, rss_bytes: megabytes * MEBIBYTE }
    }

    #[test]
    fn rates_and_peaks() {
        let mut history = History::default();
        for one in [reading(0.0, 0.0, 10.0), reading(2.0, 1.0, 30.0), reading(2.0, 9.0, 99.0), reading(4.0, 1.5, 20.0)]
        {
            history.add("a", one);
        }
        let (cpus, mem) = (history.cpus(Risk::default()).unwrap(), history.mem(Risk::default()).unwrap());
        assert_eq!((cpus.count, cpus.p50, cpus.max, cpus.mean), (2, 0.25, 0.5, 0.375));
        assert_eq!((mem.count, mem.max, mem.mean), (1, 30.0, 20.0));
        assert_eq!(history.measured(), 2);
    }

    #[test]
    fn what_is_no_measurement_is_left_out() {
        let mut history = History::default();
        for wrong in [f64::NAN, f64::INFINITY, -1.0] {
            history.add("a", reading(1.0, wrong, 1.0));
        }
        assert_eq!(history.tasks(), 0);
        // A container that was replaced counts from nothing again.
        for one in [reading(1.0, 50.0, 1.0), reading(2.0, 0.5, 1.0), reading(3.0, 1.0, 1.0)] {
            history.add("a", one);
        }
        assert_eq!(history.cpus(Risk::default()).unwrap().max, 0.5);
    }

    #[test]
    fn it_is_bounded_and_keeps_the_largest() {
        let mut history = History::default();
        let mut used = 0.0;
        for n in 0..5_000_u32 {
            used += if n == 2_500 { 3.0 } else { 0.1 };
            history.add("a", reading(f64::from(n), used, 1.0));
        }
        let cpus = history.cpus(Risk::default()).unwrap();
        assert!(cpus.count <= RATES_MAX && cpus.count > RATES_MAX / 4, "{cpus:?}");
        assert!((cpus.max - 3.0).abs() < 1e-6 && (cpus.p50 - 0.1).abs() < 1e-6, "{cpus:?}");
        for n in 0..2 * TASKS_MAX {
            history.add(&n.to_string(), reading(10_000.0 + n as f64, 1.0, 1.0));
        }
        assert_eq!(history.tasks(), TASKS_MAX);
        assert!(history.tasks.contains_key("399") && !history.tasks.contains_key("a"));
    }
}
