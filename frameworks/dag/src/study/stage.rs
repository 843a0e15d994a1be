//! A stage on machines in virtual time, one task after the other, which [`run`](super::libra::run) and learners drive.
//! It chooses no sizes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::libra::Curve;
use super::random::Random;

/// An executor that is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeSlot {
    /// Number of the executor.
    pub slot: u32,
    /// Size and duration of the task that the executor has finished; `None` at the start.
    pub finished: Option<(u64, Duration)>,
}

/// A stage in progress. The seed decides the noise, which is the same for the same executors whatever the sizes are.
#[derive(Clone, Debug)]
pub struct Stage {
    curve: Curve,
    random: Vec<Random>,
    names: Vec<String>,
    /// Sizes of the tasks that run on each machine.
    running: Vec<Vec<u64>>,
    /// End of each running task: its time, executor, size and start; times are microseconds.
    events: BinaryHeap<Reverse<(u64, u32, u64, u64)>>,
    left: u64,
    now: u64,
    last: u64,
}

impl Stage {
    /// Creates a stage with all executors free, machine by machine in turns.
    pub fn new(curve: &Curve, seed: u64) -> Stage {
        Stage {
            random: (0..curve.all_slots()).map(|slot| Random::new(seed, &format!("slot {slot}"))).collect(),
            names: (0..curve.machines).map(|machine| format!("m{machine}")).collect(),
            running: vec![Vec::new(); curve.machines as usize],
            events: (0..curve.all_slots()).map(|slot| Reverse((0, slot, 0, 0))).collect(),
            left: curve.input,
            now: 0,
            last: 0,
            curve: curve.clone(),
        }
    }

    /// Advances the time until an executor is free; `None` when no task runs any more.
    pub fn next_free(&mut self) -> Option<FreeSlot> {
        let Reverse((now, slot, size, began)) = self.events.pop()?;
        self.now = now;
        if size == 0 {
            return Some(FreeSlot { slot, finished: None });
        }
        self.last = now;
        let running = &mut self.running[(slot % self.curve.machines) as usize];
        running.iter().position(|other| *other == size).map(|at| running.swap_remove(at));
        Some(FreeSlot { slot, finished: Some((size, Duration::from_micros(now - began))) })
    }

    /// Starts a task of this size, or of what is left, on a free executor.
    pub fn start(&mut self, free: FreeSlot, size: u64) {
        if self.left == 0 {
            return;
        }
        let size = size.clamp(1, self.left);
        self.left -= size;
        let (curve, machine) = (&self.curve, (free.slot % self.curve.machines) as usize);
        let chance = &mut self.random[free.slot as usize];
        let noise = (curve.noise * chance.normal()).exp() * if chance.part() < curve.stragglers { 3.0 } else { 1.0 };
        let slowed = curve.neighbour && (self.now / 60_000_000) as usize % curve.machines as usize == machine;
        let seconds = curve.seconds(size, &self.running[machine]) * noise * if slowed { 2.0 } else { 1.0 };
        self.running[machine].push(size);
        let end = self.now + ((seconds * 1e6) as u64).max(1);
        self.events.push(Reverse((end, free.slot, size, self.now)));
    }

    /// Returns the name of an executor's machine.
    pub fn machine(&self, free: FreeSlot) -> &str {
        &self.names[(free.slot % self.curve.machines) as usize]
    }

    /// Returns the number of bytes that were not assigned to any task.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Returns the seconds since the start.
    pub fn now(&self) -> f64 {
        self.now as f64 / 1e6
    }

    /// Returns the seconds until the end of the last finished task.
    pub fn seconds(&self) -> f64 {
        self.last as f64 / 1e6
    }
}
