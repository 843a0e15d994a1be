//! The measurements of one job's tasks, reduced to what percentiles need.
//!
//! Its size is limited. Rates are counted in a [`Sketch`] for the whole job, of which the older half is forgotten when
//! it has very many. Of a job with many tasks, only the peaks of the tasks that were measured last are kept.

use serde::{Deserialize, Serialize};

use crate::quantile::Autocorrelation;
use crate::sketch::Sketch;
use crate::{Risk, Usage};

/// Number of rates in a generation. When it is full, the generation before it is forgotten, so between one and two
/// generations are known. 200 tasks that are measured each minute fill one in two weeks.
const GENERATION: u64 = if cfg!(test) { 1 << 12 } else { 1 << 22 };
/// Number of tasks of a job that are kept.
const TASKS_MAX: usize = 200;
const MEBIBYTE: f64 = 1_048_576.0;

/// Resources that a container has used until a moment, as in an agent's `/monitor/statistics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Time of the measurement, in seconds since 1970 by the agent's clock.
    pub at: f64,
    /// Processor time used so far in user and system mode, in seconds.
    pub cpu_seconds: f64,
    /// Time for which the limit kept the container from processors, in seconds; 0 where that is not counted.
    #[serde(default)]
    pub throttled_seconds: f64,
    /// Memory in use, in bytes.
    pub rss_bytes: f64,
}

impl Reading {
    fn is_sane(&self) -> bool {
        [self.at, self.cpu_seconds, self.throttled_seconds, self.rss_bytes].iter().all(|x| x.is_finite() && *x >= 0.0)
    }
}

/// Measurements of one task. There may be two million of these.
#[derive(Clone, Debug)]
struct Series {
    /// Time of the last measurement, and its counters.
    at: f64,
    cpu_seconds: f64,
    throttled_seconds: f64,
    /// Cores used between the last two measurements; `None` before the second.
    rate: Option<f32>,
    /// Largest measured memory, in bytes.
    peak: f64,
}

/// Use of a job's tasks during some time.
#[derive(Clone, Debug, Default)]
struct Generation {
    /// Distribution of the cores used between consecutive readings.
    rates: Sketch,
    dependence: Autocorrelation,
    /// Processor time used, the time in which it was used, and the time in which tasks were throttled, in seconds.
    used: f64,
    time: f64,
    throttled: f64,
    rss_sum: f64,
    readings: u64,
}

impl Generation {
    /// Adds the processor time used in a time, and the rate before it.
    fn add(&mut self, used: f64, throttled: f64, time: f64, before: Option<f32>) {
        let rate = used / time;
        self.used += used;
        self.time += time;
        self.throttled += throttled;
        self.rates.add(rate);
        self.dependence.add(before.map(f64::from), rate);
    }

    /// Adds the memory of a reading.
    fn resident(&mut self, bytes: f64) {
        self.rss_sum += bytes;
        self.readings += 1;
    }
}

/// The measurements of one job.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Measurements of tasks, sorted by task: a sorted list needs less memory than a tree.
    tasks: Vec<(Box<str>, Series)>,
    now: Generation,
    before: Option<Box<Generation>>,
}

impl History {
    /// Adds a reading of a task's container. Readings that are not finite, negative, or no newer than the last are
    /// ignored.
    pub fn add(&mut self, task: &str, reading: Reading) {
        if !reading.is_sane() {
            return;
        }
        match self.place(task) {
            Ok(place) => self.again(place, reading),
            Err(_) => self.first(task, reading),
        }
        if self.now.rates.count() >= GENERATION {
            self.before = Some(Box::new(std::mem::take(&mut self.now)));
        }
    }

    fn place(&self, task: &str) -> Result<usize, usize> {
        self.tasks.binary_search_by(|(known, _)| (**known).cmp(task))
    }

    /// Adds the first reading of a task. It replaces the task that has not been measured for the longest time.
    fn first(&mut self, task: &str, reading: Reading) {
        if self.tasks.len() >= TASKS_MAX {
            let ages = self.tasks.iter().enumerate().min_by(|(_, a), (_, b)| a.1.at.total_cmp(&b.1.at));
            if let Some(oldest) = ages.map(|(place, _)| place) {
                self.tasks.remove(oldest);
            }
        }
        let Reading { at, cpu_seconds, throttled_seconds, rss_bytes } = reading;
        let series = Series { at, cpu_seconds, throttled_seconds, rate: None, peak: rss_bytes };
        let place = self.place(task).unwrap_or_else(|place| place);
        self.tasks.insert(place, (task.into(), series));
        self.now.resident(rss_bytes);
    }

    fn again(&mut self, place: usize, now: Reading) {
        let Some((_, task)) = self.tasks.get_mut(place) else { return };
        let time = now.at - task.at;
        // The agent has returned a measurement again.
        if time <= 0.0 {
            return;
        }
        task.peak = task.peak.max(now.rss_bytes);
        self.now.resident(now.rss_bytes);
        let used = now.cpu_seconds - task.cpu_seconds;
        let throttled = (now.throttled_seconds - task.throttled_seconds).max(0.0);
        (task.at, task.cpu_seconds, task.throttled_seconds) = (now.at, now.cpu_seconds, now.throttled_seconds);
        // Counters that decrease belong to another container.
        if used >= 0.0 {
            self.now.add(used, throttled, time, task.rate);
            #[expect(clippy::cast_possible_truncation, reason = "7 digits are enough for a correlation")]
            let rate = (used / time) as f32;
            task.rate = Some(rate).filter(|rate| rate.is_finite());
        }
    }

    fn generations(&self) -> impl Iterator<Item = &Generation> {
        std::iter::once(&self.now).chain(self.before.as_deref())
    }

    fn sum(&self, part: impl Fn(&Generation) -> f64) -> f64 {
        self.generations().map(part).sum()
    }

    /// Returns the number of tasks whose measurements are kept.
    pub fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Returns the number of measurements of use between two readings.
    pub fn measured(&self) -> u64 {
        self.generations().map(|generation| generation.rates.count()).sum()
    }

    /// Returns the cores used: percentiles of all rates, at most 2 % above the exact ones and never below. `None`
    /// without measurements.
    pub fn cpus(&self, risk: Risk) -> Option<Usage> {
        let empty = Generation::default();
        let before = self.before.as_deref().unwrap_or(&empty);
        let rates = self.now.rates.merged(&before.rates);
        let series = self.tasks.iter().filter(|(_, task)| task.rate.is_some()).count();
        let effective = self.now.dependence.merged(&before.dependence).effective(series);
        let mean = self.sum(|one| one.used) / self.sum(|one| one.time);
        Usage::of_sketch(&rates, mean, effective, risk.level())
    }

    /// Returns the megabytes used: percentiles of the tasks' peaks; the mean is that of all readings.
    pub fn mem(&self, risk: Risk) -> Option<Usage> {
        let peaks: Vec<f64> = self.tasks.iter().map(|(_, task)| task.peak / MEBIBYTE).collect();
        let count = peaks.len() as f64;
        let mut used = Usage::of(peaks, count, risk.level())?;
        let readings: u64 = self.generations().map(|one| one.readings).sum();
        used.mean = self.sum(|one| one.rss_sum) / MEBIBYTE / readings.max(1) as f64;
        Some(used)
    }

    /// Returns the fraction of the time in which the limit kept tasks from processors.
    pub fn throttled(&self) -> f64 {
        let time = self.sum(|one| one.time);
        if time > 0.0 { self.sum(|one| one.throttled) / time } else { 0.0 }
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
        assert_eq!((cpus.count, cpus.max, cpus.mean), (2, 0.5, 0.375));
        assert!((0.25..=0.255).contains(&cpus.p50), "{cpus:?}");
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
        // The counters of a replaced container start from zero again.
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
        assert!((cpus.max - 3.0).abs() < 1e-6 && (0.1 - 1e-6..0.102 + 1e-6).contains(&cpus.p50), "{cpus:?}");
        for n in 0..2 * TASKS_MAX {
            history.add(&n.to_string(), reading(10_000.0 + n as f64, 1.0, 1.0));
        }
        assert_eq!(history.tasks(), TASKS_MAX);
        assert!(history.place("399").is_ok() && history.place("a").is_err());
    }

    #[test]
    fn what_is_very_old_is_forgotten() {
        let mut history = History::default();
        let mut now = reading(0.0, 0.0, 1.0);
        for (cores, times) in [(9.0, 1), (1.0, GENERATION), (0.5, GENERATION - 1)] {
            for _ in 0..times {
                history.add("a", now);
                (now.at, now.cpu_seconds) = (now.at + 1.0, now.cpu_seconds + cores);
            }
        }
        assert_eq!(history.cpus(Risk::default()).unwrap().max, 9.0);
        for _ in 0..=GENERATION {
            history.add("a", now);
            (now.at, now.cpu_seconds) = (now.at + 1.0, now.cpu_seconds + 0.5);
        }
        let cpus = history.cpus(Risk::default()).unwrap();
        assert!(cpus.max <= 1.0 && history.measured() < 2 * GENERATION, "{cpus:?}");
    }

    /// Checks the memory of the largest book by the sizes of its parts: 10,000 jobs of 200 tasks whose rates are spread
    /// over the whole range of a sketch.
    #[test]
    fn the_largest_book_fits_into_half_a_gigabyte() {
        let mut history = History::default();
        let name = |task: usize| format!("web-{task:03}.2f1c9a10-3b7e-11ee-9aa1-0242ac110002");
        for task in 0..TASKS_MAX {
            let mut now = reading(1e9, 0.0, 64.0);
            for n in 0..10 {
                history.add(&name(task), now);
                now.at += 60.0;
                now.cpu_seconds += 60.0 * f64::exp(-9.3 + 18.6 * f64::from(n) / 9.0);
            }
        }
        // Blocks of an allocator are multiples of 16 bytes, with 8 bytes of their own.
        let block = |bytes: usize| (bytes + 8).next_multiple_of(16);
        let names: usize = history.tasks.iter().map(|(name, _)| block(name.len())).sum();
        let tasks = block(history.tasks.capacity() * size_of::<(Box<str>, Series)>());
        let sketches = 2 * block(crate::sketch::BYTES_MAX) + size_of::<Generation>();
        let all = size_of::<History>() + names + tasks + sketches;
        assert!(all * crate::JOBS_MAX < 400_000_000, "{all} bytes of a job");
    }
}
