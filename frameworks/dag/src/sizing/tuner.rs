//! Searches for the size at which a stage's tasks are fastest while the stage runs. It neither launches nor measures
//! tasks.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::adam::Adam;
use super::contention::{Machine, Running};
use super::fit::{Line, Point, line};
use super::{EarlierRuns, Explanation, Sample, SizingConfig, Wave};

/// Maximum number of machines with a record of their own; tasks on further ones get the size without exploring, and
/// count as one machine.
const MACHINES: usize = 10_000;

/// Number of running tasks of a machine that are remembered.
const RUNNING: usize = 4096;

/// Largest number of tasks of a wave.
const WAVE: usize = 512;

/// Smallest number of tasks of a wave, if there is enough input.
const LEAST_WAVE: usize = 6;

/// Number of waves that are kept for plots: the last ones.
const WAVES: usize = 1024;

/// Weight of a wave's points relative to those of the next one.
const OLDER: f64 = 0.3;

/// Number of waves in which a point counts.
const AGES: u32 = 3;

/// Distance from the size, as a logarithm, beyond which points have less weight for the slope.
const NEAR: f64 = 0.4;

/// Smallest fraction of the size that balancing the last wave gives to a task.
const SMALLEST_PART: f64 = 0.25;

/// A finished task: the logarithms of its size and rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct FinishedTask {
    machine: u32,
    wave: u32,
    size: f64,
    rate: f64,
    explores: bool,
    /// Whether the task is excluded because its machine was contended.
    left_out: bool,
}

/// Chooses the sizes of one stage's tasks. Its state is serde data, and the same calls lead to the same sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tuner {
    config: SizingConfig,
    /// Logarithm of the size.
    size: f64,
    adam: Adam,
    names: BTreeMap<String, u32>,
    machines: Vec<Machine>,
    seen: Vec<FinishedTask>,
    /// Number of finished tasks that were handed out in this wave.
    finished: usize,
    wave: u32,
    waves: VecDeque<Wave>,
    left: Option<(u64, u32)>,
    before: Option<EarlierRuns>,
}

impl Tuner {
    /// Creates a tuner for an unknown stage. Invalid values of the configuration are corrected (see
    /// [`SizingConfig::validate`]).
    pub fn new(config: SizingConfig) -> Tuner {
        let config = config.sane();
        let adam = Adam::new(config.step, config.beta1, config.beta2);
        Tuner {
            config,
            size: (config.start as f64).ln(),
            adam,
            names: BTreeMap::new(),
            machines: Vec::new(),
            seen: Vec::new(),
            finished: 0,
            wave: 1,
            waves: VecDeque::new(),
            left: None,
            before: None,
        }
    }

    /// Creates a tuner for a stage that ran before: it starts where the last run ended, with steps a quarter as long.
    pub fn resume(config: SizingConfig, before: EarlierRuns) -> Tuner {
        let config = config.sane();
        let start = before.size.clamp(config.least, config.most);
        let step = (config.step / 4.0).max(0.05);
        Tuner { before: Some(before), ..Tuner::new(SizingConfig { start, step, ..config }) }
    }

    /// Returns the size of the next task on this machine, within the limits of the configuration.
    ///
    /// The task counts as running until [`Tuner::finished`] or [`Tuner::lost`] names its machine and size. Only one
    /// running task of a machine explores. Balancing the last wave can go below the least size only if there is less
    /// left than that.
    pub fn next_size(&mut self, machine: &str) -> u64 {
        let index = self.index(machine);
        let settled = self.is_balancing();
        let (wave, explore) = (self.wave, self.config.explore);
        let base = self.size.min(self.first_part());
        let known = &mut self.machines[index];
        let mut size = base + known.part().ln();
        let explores = !settled && index + 1 < MACHINES && !known.is_exploring();
        if explores {
            // Machines of successive index start in opposite directions, and each alternates: a wave has as many of
            // both.
            let up = (known.explored as usize + index).is_multiple_of(2);
            size += if up { explore } else { -explore };
            known.explored = known.explored.wrapping_add(1);
        }
        let units = size.exp().round().clamp(self.config.least as f64, self.config.most as f64) as u64;
        let units = self.balanced(units);
        let known = &mut self.machines[index];
        if known.running.len() < RUNNING {
            known.running.push(Running { size: units, wave, explores });
        }
        units
    }

    /// Sets how much input is not handed out yet, and how many tasks can run at once. Without it the last wave is not
    /// balanced, and a wave is as long as twice the number of machines.
    pub fn set_left(&mut self, units: u64, slots: u32) {
        self.left = Some((units, slots.max(1)));
    }

    /// Records a task that has finished. A duration or a size of 0 says nothing of a rate and is ignored.
    pub fn finished(&mut self, sample: Sample<'_>) {
        let index = self.index(sample.machine);
        let task = self.take(index, sample.size);
        if sample.size == 0 || sample.duration.is_zero() {
            return;
        }
        let size = (sample.size as f64).ln();
        let seen = FinishedTask {
            machine: index as u32,
            wave: self.wave,
            size,
            rate: size - sample.duration.as_secs_f64().ln(),
            explores: task.is_some_and(|task| task.explores),
            left_out: false,
        };
        self.seen.push(seen);
        // Tasks that were handed out before the last step do not end a wave: the step must have time to show its
        // effect.
        if task.is_none_or(|task| task.wave == self.wave) {
            self.finished += 1;
        }
        let of_wave = self.seen.iter().filter(|seen| seen.wave == self.wave).count();
        if self.finished >= self.wave_length() || of_wave >= WAVE {
            self.end_wave();
        }
    }

    /// Records that a task failed, or was never launched.
    pub fn lost(&mut self, machine: &str, size: u64) {
        let index = self.index(machine);
        self.take(index, size);
    }

    /// Returns the present size, without exploring and without balancing.
    pub fn size(&self) -> u64 {
        self.size.exp().round().clamp(self.config.least as f64, self.config.most as f64) as u64
    }

    /// Returns the last waves, first to last.
    pub fn waves(&self) -> impl ExactSizeIterator<Item = &Wave> {
        self.waves.iter()
    }

    /// Returns the state of a machine.
    pub fn machine(&self, name: &str) -> Option<&Machine> {
        self.names.get(name).and_then(|index| self.machines.get(*index as usize))
    }

    /// Returns the result for the next run of the same stage; `None` before the first wave has ended.
    pub fn found(&self) -> Option<EarlierRuns> {
        let last = self.waves.back()?;
        let (waves, runs) = self.before.map_or((0, 0), |before| (before.waves, before.runs));
        let waves = waves.saturating_add(last.number);
        Some(EarlierRuns { size: self.size(), rate: last.rate, waves, runs: runs.saturating_add(1) })
    }

    /// Returns the explanation of the present size.
    pub fn explain(&self) -> Explanation {
        Explanation {
            size: self.size(),
            last: self.waves.back().copied(),
            runs: self.before.map_or(0, |before| before.runs),
            balancing: self.is_balancing(),
        }
    }

    fn index(&mut self, machine: &str) -> usize {
        if let Some(index) = self.names.get(machine) {
            return *index as usize;
        }
        let index = self.names.len().min(MACHINES - 1);
        if self.machines.len() <= index {
            self.machines.push(Machine::default());
        }
        if self.names.len() < MACHINES {
            self.names.insert(machine.to_owned(), index as u32);
        }
        index
    }

    fn take(&mut self, machine: usize, size: u64) -> Option<Running> {
        let running = &mut self.machines[machine].running;
        let at = running.iter().position(|task| task.size == size)?;
        Some(running.remove(at))
    }

    fn wave_length(&self) -> usize {
        let half = self.left.map_or(self.machines.len(), |(_, slots)| slots as usize / 2);
        half.clamp(LEAST_WAVE, WAVE)
    }

    /// Returns whether the input that is left is not enough for another task of this size on every slot.
    fn is_balancing(&self) -> bool {
        self.left.is_some_and(|(units, slots)| (units as f64) < self.size.exp() * f64::from(slots))
    }

    /// Returns the logarithm of the largest size before the first wave has ended: the size may be far too large, and
    /// all slots would get it.
    fn first_part(&self) -> f64 {
        match self.left {
            Some((left, slots)) if self.waves.is_empty() && self.before.is_none() => {
                (left as f64 / f64::from(slots) / f64::from(self.config.first_parts)).max(1.0).ln()
            }
            _ => f64::INFINITY,
        }
    }

    /// Limits a size to the slot's part of what is left, but not below a fraction of the size.
    fn balanced(&self, units: u64) -> u64 {
        let Some((left, slots)) = self.left else { return units };
        let least = ((units as f64 * SMALLEST_PART) as u64).max(self.config.least);
        units.min(left.div_ceil(u64::from(slots)).max(least)).min(left.max(1))
    }

    /// Ends a wave and takes one step up the slope.
    fn end_wave(&mut self) {
        self.size = self.size.min(self.first_part());
        let Some(first) = self.line(false) else { return };
        let contended = self.judge(first);
        let line = self.line(true).unwrap_or(first);
        let slope = line.shrunk();
        let now = self.seen.iter().filter(|seen| seen.wave == self.wave);
        let (tasks, explorers) = (now.clone().count() as u32, now.filter(|seen| seen.explores).count() as u32);
        let size = self.size();
        let (least, most) = ((self.config.least as f64).ln(), (self.config.most as f64).ln());
        // Adam's step does not shrink with the slope; where little is to be gained, little is risked.
        let reach = self.config.step * slope * slope;
        let step = self.adam.step(slope).clamp(-reach, reach);
        self.size = (self.size + step).clamp(least, most);
        self.waves.push_back(Wave {
            number: self.wave,
            size,
            rate: line.height.exp(),
            tasks,
            explorers,
            outliers: line.outliers as u32,
            slope: line.slope,
            error: line.error.is_finite().then_some(line.error),
            contended,
            next: self.size(),
        });
        if self.waves.len() > WAVES {
            self.waves.pop_front();
        }
        self.wave = self.wave.saturating_add(1);
        self.finished = 0;
        let wave = self.wave;
        self.seen.retain(|seen| wave - seen.wave < AGES);
    }

    /// Fits the line through the rates of the last waves near the size, corrected for the machines' speeds.
    fn line(&self, without_contended: bool) -> Option<Line> {
        let usable = self.seen.iter().filter(|seen| !(without_contended && seen.left_out));
        let points: Vec<Point> = usable
            .map(|seen| {
                let x = seen.size - self.size;
                let age = OLDER.powi((self.wave - seen.wave).min(AGES) as i32);
                let far = (x.abs() / NEAR).max(1.0).powi(2);
                Point { x, y: seen.rate - self.machines[seen.machine as usize].speed(), weight: age / far }
            })
            .collect();
        line(&points)
    }

    /// Judges each machine by its tasks of this wave. Returns how many machines are contended.
    fn judge(&mut self, line: Line) -> u32 {
        let mut above: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for seen in self.seen.iter().filter(|seen| seen.wave == self.wave) {
            let speed = self.machines[seen.machine as usize].speed();
            above.entry(seen.machine).or_default().push(seen.rate - speed - line.at(seen.size - self.size));
        }
        // A single machine cannot be compared with others: what slows all of its tasks shows in the slope.
        if above.len() < 2 {
            return 0;
        }
        let mut contended = 0;
        for (machine, mut above) in above {
            if self.machines[machine as usize].judge(&mut above, line.noise) {
                contended += 1;
                let wave = self.wave;
                let mine = |seen: &&mut FinishedTask| seen.machine == machine && seen.wave == wave;
                self.seen.iter_mut().filter(mine).for_each(|seen| seen.left_out = true);
            }
        }
        contended
    }
}
