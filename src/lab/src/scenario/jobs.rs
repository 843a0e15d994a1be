//! Jobs that arrive at a framework: arrival time, number of tasks, durations.
//!
//! Each kind has its own branches of the seed for arrivals, sizes and durations.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rand_distr::{Distribution, Exp1, StandardUniform};
use resources::{Quantities, parse_quantities};

use super::error::{InvalidField, ScenarioError};
use super::schema::{JobKind, Scenario};
use super::trace::{self, Row};
use crate::dist::Dist;
use crate::seeds::{Rng, Seed};
use crate::users::Needs;

/// The most tasks of one job.
const MOST_TASKS: u32 = 1_000_000;
/// The most jobs of one kind.
const MOST_JOBS: u64 = 100_000_000;
const DAY: Duration = Duration::from_secs(86_400);

/// A job that arrives at a framework.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Time of the arrival, after the start.
    pub at: Duration,
    /// Resources that each task needs.
    pub needs: Needs,
    /// Duration of each task.
    pub spans: Vec<Duration>,
    /// Whether all tasks must start together.
    pub gang: bool,
    /// Number of retries of a task after its first attempt.
    pub retries: u32,
}

/// Checks the fields that say when jobs arrive, and how many.
pub(super) fn arrivals(kind: &JobKind) -> Result<(), InvalidField> {
    let ways = [
        kind.at.is_some(),
        kind.every.is_some(),
        kind.poisson.is_some(),
        kind.burst.is_some(),
        kind.diurnal.is_some(),
        kind.chain.is_some(),
        kind.trace.is_some(),
    ];
    if ways.iter().filter(|given| **given).count() != 1 {
        return Err(InvalidField::new(
            "",
            "must have exactly one of at, every, poisson, burst, diurnal, chain and trace for the arrivals of jobs",
        ));
    }
    for (field, span) in [
        ("every", kind.every),
        ("poisson", kind.poisson),
        ("gap", kind.gap),
        ("diurnal", kind.diurnal),
        ("period", kind.period),
    ] {
        if span.is_some_and(|span| span.0.is_zero()) {
            return Err(InvalidField::new(field, "must be more than 0"));
        }
    }
    let of_trace = [("shape", kind.shape.is_some()), ("machine", kind.machine.is_some())];
    if let Some((field, _)) = of_trace.into_iter().find(|(_, given)| *given && kind.trace.is_none()) {
        return Err(InvalidField::new(field, "is valid only with `trace`"));
    }
    if kind.shape.as_deref().is_some_and(|shape| !trace::NAMES.contains(&shape)) {
        return Err(InvalidField::new("shape", format!("must be one of {}", trace::NAMES.join(", "))));
    }
    if let Some(Err(why)) = kind.machine.as_deref().map(parse_quantities) {
        return Err(InvalidField::new("machine", why.to_string()));
    }
    if kind.chain.is_some() && (kind.count.is_none() || kind.until.is_some()) {
        return Err(InvalidField::new("chain", "needs a `count`, and is invalid with `until`"));
    }
    if kind.burst.is_some() && kind.gap.is_none() {
        return Err(InvalidField::new("burst", "needs a `gap`: the interval between bursts"));
    }
    if kind.amplitude.is_some_and(|amplitude| !(0.0..=1.0).contains(&amplitude)) {
        return Err(InvalidField::new("amplitude", "must be 0 to 1"));
    }
    if kind.count.is_some_and(|count| count > MOST_JOBS) {
        return Err(InvalidField::new("count", format!("must be {MOST_JOBS} at most")));
    }
    if kind.tasks == 0 || kind.tasks > MOST_TASKS {
        return Err(InvalidField::new("tasks", format!("must be 1 to {MOST_TASKS}")));
    }
    if kind.tasks_mean.is_some_and(|mean| !(0.0..=f64::from(MOST_TASKS) / 100.0).contains(&mean)) {
        return Err(InvalidField::new("tasks_mean", format!("must be 0 to {}", MOST_TASKS / 100)));
    }
    Ok(())
}

/// Checks the fields that say what a task needs and how long it takes.
///
/// # Errors
/// Returns the first field that breaks a rule.
pub fn work(kind: &JobKind) -> Result<(), InvalidField> {
    match &kind.needs {
        Some(text) => {
            let needs = parse_quantities(text).map_err(|why| InvalidField::new("needs", why.to_string()))?;
            if needs.is_empty() {
                return Err(InvalidField::new("needs", "must name a resource, as in cpus:1;mem:512"));
            }
        }
        None if kind.trace.is_none() => {
            return Err(InvalidField::new("needs", "must be the resources of a task, as in cpus:1;mem:512"));
        }
        None => {}
    }
    match kind.time.is_none() && kind.trace.is_none() {
        true => Err(InvalidField::new("time", "must be the duration of a task, as in `time = \"exponential 60s\"`")),
        false => Ok(()),
    }
}

/// The arrivals of one kind of jobs, in the order of time.
#[derive(Debug)]
pub struct Arrivals {
    kind: JobKind,
    needs: Needs,
    time: Dist,
    left: u64,
    next: Duration,
    /// Number of jobs left in the present burst.
    of_burst: u32,
    when: Rng,
    sizes: Rng,
    times: Rng,
    rows: std::vec::IntoIter<Row>,
}

/// The traces of some scenarios, which were read and are valid, with the largest tasks that they contain.
#[derive(Debug, Default)]
pub struct Traces {
    files: BTreeSet<PathBuf>,
    largest: BTreeMap<TraceKey, Vec<Quantities>>,
}

/// The fields that determine the content of a trace: its file, `shape` and `machine`, and whether the scenario has
/// needs and times of its own.
type TraceKey = (String, Option<String>, Option<String>, bool, bool);

fn trace_key(kind: &JobKind) -> Option<TraceKey> {
    let file = kind.trace.clone()?;
    Some((file, kind.shape.clone(), kind.machine.clone(), kind.needs.is_some(), kind.time.is_some()))
}

impl Traces {
    /// Reads every trace that the scenarios name, relative to `directory`, before anything runs.
    ///
    /// # Errors
    /// Returns an error if a trace cannot be read, or has an invalid row.
    pub fn read<'a>(scenarios: impl Iterator<Item = &'a Scenario>, directory: &Path) -> Result<Traces, ScenarioError> {
        let mut traces = Traces::default();
        let kinds = scenarios.flat_map(|scenario| &scenario.frameworks).flat_map(|framework| &framework.jobs);
        for kind in kinds {
            let Some(key) = trace_key(kind) else { continue };
            // The points of a sweep mostly have the same traces.
            if let Entry::Vacant(place) = traces.largest.entry(key) {
                let file = directory.join(&place.key().0);
                place.insert(trace::largest(&trace::read(&file, kind)?));
                traces.files.insert(file);
            }
        }
        Ok(traces)
    }

    /// Returns the files of the traces.
    pub fn files(&self) -> &BTreeSet<PathBuf> {
        &self.files
    }

    /// Returns the needs of the largest tasks in the trace of this kind.
    pub(super) fn largest(&self, kind: &JobKind) -> &[Quantities] {
        trace_key(kind).and_then(|key| self.largest.get(&key)).map_or(&[], Vec::as_slice)
    }
}

impl Arrivals {
    /// Creates the arrivals of a kind of jobs. Traces are read relative to `directory`.
    ///
    /// # Errors
    /// Returns an error if a trace cannot be read, or has an invalid row.
    pub fn new(kind: &JobKind, seed: Seed, directory: &Path) -> Result<Arrivals, ScenarioError> {
        let rows = match &kind.trace {
            Some(file) => trace::read(&directory.join(file), kind)?,
            None => Vec::new(),
        };
        let once = if kind.at.is_some() { kind.count.unwrap_or(1) } else { kind.count.unwrap_or(MOST_JOBS) };
        let mut arrivals = Arrivals {
            needs: Arc::new(kind.needs.as_deref().and_then(|text| parse_quantities(text).ok()).unwrap_or_default()),
            time: kind.time.clone().unwrap_or(Dist::ZERO),
            left: once,
            next: kind.at.unwrap_or_default().0.max(kind.from.0),
            of_burst: kind.burst.unwrap_or(0),
            when: seed.child("arrivals").rng(),
            sizes: seed.child("sizes").rng(),
            times: seed.child("times").rng(),
            rows: rows.into_iter(),
            kind: kind.clone(),
        };
        if kind.poisson.is_some() || kind.diurnal.is_some() {
            arrivals.advance();
        }
        Ok(arrivals)
    }

    /// Advances `next` to the following arrival.
    fn advance(&mut self) {
        let kind = &self.kind;
        if let Some(every) = kind.every {
            self.next += every.0;
        } else if let Some(mean) = kind.poisson {
            let gap: f64 = Exp1.sample(&mut self.when);
            self.next += mean.0.mul_f64(gap);
        } else if let (Some(burst), Some(gap)) = (kind.burst, kind.gap) {
            self.of_burst = self.of_burst.saturating_sub(1);
            if self.of_burst == 0 {
                (self.of_burst, self.next) = (burst, self.next + gap.0);
            }
        } else if let Some(mean) = kind.diurnal {
            let (period, amplitude) = (kind.period.map_or(DAY, |period| period.0), kind.amplitude.unwrap_or(0.5));
            // Thinning: draws candidates at the highest rate, and keeps each with the ratio of the present rate to
            // that.
            loop {
                let gap: f64 = Exp1.sample(&mut self.when);
                self.next += mean.0.mul_f64(gap / (1.0 + amplitude));
                let phase = self.next.as_secs_f64() / period.as_secs_f64() * std::f64::consts::TAU;
                let keep: f64 = StandardUniform.sample(&mut self.when);
                if keep * (1.0 + amplitude) <= 1.0 + amplitude * phase.sin() {
                    break;
                }
            }
        }
    }

    fn size(&mut self) -> u32 {
        match self.kind.tasks_mean {
            None => self.kind.tasks,
            Some(mean) => {
                let draw: f64 = Exp1.sample(&mut self.sizes);
                // The conversion saturates, and a job has at least one task.
                ((draw * mean).round() as u32).clamp(1, MOST_TASKS)
            }
        }
    }

    fn of_trace(&mut self) -> Option<Arrival> {
        let row = self.rows.next()?;
        let needs = match self.needs.is_empty() {
            false => self.needs.clone(),
            true => Arc::new(row.needs()),
        };
        let span = |_| match row.duration.filter(|_| self.kind.time.is_none()) {
            Some(duration) => duration,
            None => self.time.draw(&mut self.times),
        };
        let spans = (0..row.tasks).map(span).collect();
        Some(Arrival {
            at: row.submit + self.kind.from.0,
            needs,
            spans,
            gang: self.kind.gang || row.gang,
            retries: self.kind.retries,
        })
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let until = self.kind.until.map_or(Duration::MAX, |until| until.0);
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        if self.kind.trace.is_some() {
            return self.of_trace().filter(|arrival| arrival.at <= until);
        }
        let at = self.next;
        if at > until {
            self.left = 0;
            return None;
        }
        let spans = (0..self.size()).map(|_| self.time.draw(&mut self.times)).collect();
        self.advance();
        Some(Arrival { at, needs: self.needs.clone(), spans, gang: self.kind.gang, retries: self.kind.retries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(text: &str) -> Vec<Arrival> {
        let kind: JobKind = toml::from_str(&format!("{text}\nneeds = 'cpus:1'\ntime = '5s'")).unwrap();
        super::arrivals(&kind).and_then(|()| work(&kind)).unwrap();
        Arrivals::new(&kind, Seed::root(1), Path::new(".")).unwrap().collect()
    }

    fn seconds(text: &str) -> Vec<u64> {
        arrivals(text).iter().map(|arrival| arrival.at.as_secs()).collect()
    }

    #[test]
    fn kinds_of_arrivals() {
        assert_eq!(seconds("at = '5s'\ncount = 2"), [5, 5]);
        assert_eq!(seconds("every = '10s'\nfrom = '3s'\nuntil = '30s'"), [3, 13, 23]);
        assert_eq!(seconds("burst = 2\ngap = '1m'\ncount = 5"), [0, 0, 60, 60, 120]);
        let poisson = arrivals("poisson = '10s'\ncount = 10000");
        let mean = poisson.last().unwrap().at.as_secs_f64() / 1e4;
        assert!((9.7..10.3).contains(&mean), "{mean}");
    }

    #[test]
    fn a_wave_goes_up_and_down() {
        let all = arrivals("diurnal = '1s'\nperiod = '1000s'\namplitude = 1.0\nuntil = '100000s'");
        let phase = |arrival: &Arrival| arrival.at.as_secs() % 1000 / 250;
        let quarters: Vec<usize> = (0..4).map(|q| all.iter().filter(|arrival| phase(arrival) == q).count()).collect();
        assert!((97_000..103_000).contains(&all.len()), "{}", all.len());
        assert!(quarters[0] > 4 * quarters[2] && quarters[1] > 4 * quarters[3], "{quarters:?}");
    }
}
