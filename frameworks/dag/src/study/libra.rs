//! Compares sizes of tasks that are tuned at run time with fixed ones, on machines in virtual time.
//!
//! A task costs a start, its input over the bandwidth of its executor, and more than that once the inputs of all tasks
//! on its machine exceed the memory or together need more than the machine's bandwidth. So the time of a stage over the
//! size is a U-shaped curve. The model is ours: the paper's body was not at hand, its claim is a stage time that is 25
//! to 70 % shorter.

use super::stage::Stage;
use super::stats::Spread;
use crate::sizing::{Fixed, Memory, Rule, Sample, Sizing, SizingConfig, Tuner, Wave};

/// A model of a stage and of the machines on which it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name of the stage.
    pub name: &'static str,
    /// Size of the input, in bytes.
    pub input: u64,
    /// Number of machines.
    pub machines: u32,
    /// Number of executors of each machine.
    pub slots: u32,
    /// Time of a task without input, in seconds.
    pub start: f64,
    /// Bandwidth of an executor alone, in bytes per second.
    pub bandwidth: f64,
    /// Bandwidth of a machine, in bytes per second.
    pub machine_bandwidth: f64,
    /// Bytes of input that the tasks of a machine can hold at once without swapping.
    pub memory: f64,
    /// Factor by which input beyond the memory slows a task down.
    pub swap: f64,
    /// Standard deviation of the logarithm of durations.
    pub noise: f64,
    /// Fraction of tasks that are stragglers, which take three times as long.
    pub stragglers: f64,
    /// Whether a neighbour takes half of the speed of one machine after the other, for a minute each.
    pub neighbour: bool,
}

/// 8 machines of 4 executors, as the paper's 8 machines of EC2.
const CLUSTER: Curve = Curve {
    name: "scan",
    input: 64 << 30,
    machines: 8,
    slots: 4,
    start: 1.0,
    bandwidth: 40e6,
    machine_bandwidth: 150e6,
    memory: 1.2e9,
    swap: 4.0,
    noise: 0.12,
    stragglers: 0.03,
    neighbour: false,
};

/// Returns the stages of the study.
pub fn curves() -> Vec<Curve> {
    vec![
        CLUSTER,
        // Little memory for what a task builds up: a narrow curve with its minimum at small sizes.
        Curve { name: "join", memory: 200e6, swap: 8.0, start: 0.5, input: 24 << 30, ..CLUSTER },
        // A slow start and enough memory: large tasks are best.
        Curve { name: "slow start", start: 6.0, memory: 6e9, ..CLUSTER },
        // Much work for each byte.
        Curve { name: "compute", bandwidth: 4e6, machine_bandwidth: 1e9, start: 2.0, input: 12 << 30, ..CLUSTER },
        Curve { name: "neighbour", neighbour: true, ..CLUSTER },
    ]
}

/// Starting sizes: 1 MB to 2 GB.
pub const STARTS: [u64; 6] = [1 << 20, 8 << 20, 32 << 20, 128 << 20, 512 << 20, 2 << 30];

impl Curve {
    /// Returns the number of executors of all machines.
    pub fn all_slots(&self) -> u32 {
        self.machines * self.slots
    }

    /// Returns the duration of a task, in seconds without noise, that starts while tasks of these sizes run on its
    /// machine.
    pub(super) fn seconds(&self, size: u64, beside: &[u64]) -> f64 {
        let size = size as f64;
        let together = beside.iter().map(|other| *other as f64).sum::<f64>() + size;
        let bandwidth = self.bandwidth.min(self.machine_bandwidth / (beside.len() as f64 + 1.0));
        let over = ((together - self.memory) / self.memory).max(0.0);
        // The more is swapped, the slower all of it.
        self.start + size / bandwidth * (1.0 + self.swap * over / (1.0 + 0.1 * over))
    }

    fn config(&self, start: u64) -> SizingConfig {
        SizingConfig { least: 64 << 10, most: 4 << 30, start, ..SizingConfig::default() }
    }
}

/// The result of a stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Seconds until the last task finished.
    pub seconds: f64,
    /// Number of tasks.
    pub tasks: u32,
    /// Waves of the tuner; empty for fixed sizes.
    pub waves: Vec<Wave>,
}

/// Runs a stage. The seed decides the noise, which is the same for the same executors under every rule.
pub fn run(curve: &Curve, sizing: &mut Sizing, seed: u64) -> Outcome {
    let mut stage = Stage::new(curve, seed);
    let mut outcome = Outcome::default();
    while let Some(free) = stage.next_free() {
        let machine = stage.machine(free);
        if let Some((size, duration)) = free.finished {
            sizing.finished(Sample { machine, size, duration });
        }
        if stage.left() == 0 {
            continue;
        }
        sizing.set_left(stage.left(), curve.all_slots());
        let size = sizing.next_size(machine);
        outcome.tasks += 1;
        stage.start(free, size);
    }
    outcome.seconds = stage.seconds();
    if let Sizing::Tuned(tuner) = sizing {
        outcome.waves = tuner.waves().copied().collect();
    }
    outcome
}

fn fixed(curve: &Curve, rule: Rule) -> Sizing {
    Sizing::Fixed(Fixed::new(rule, curve.input, curve.all_slots()))
}

/// Returns the fixed size with the shortest mean over the seeds, of four sizes per doubling, and that mean.
pub fn best_static(curve: &Curve, seeds: &[u64]) -> (u64, f64) {
    let sizes = (0..56).map(|n| ((1_u64 << 20) as f64 * 2_f64.powf(f64::from(n) / 4.0)) as u64);
    let mean = |size: u64| {
        let all = seeds.iter().map(|seed| run(curve, &mut fixed(curve, Rule::Size(size)), *seed).seconds);
        all.sum::<f64>() / seeds.len().max(1) as f64
    };
    sizes.map(|size| (size, mean(size))).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((curve.input, 0.0))
}

/// The mean times of a stage, in seconds, with intervals over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Name of the stage.
    pub curve: &'static str,
    /// Size at which the stage starts, and which the first baseline keeps.
    pub start: u64,
    /// Time with the size tuned at run time.
    pub tuned: Spread,
    /// Time of the second tuned run, which remembers the first.
    pub again: Spread,
    /// Time with the starting size throughout.
    pub fixed: Spread,
    /// Time with blocks of 128 MiB.
    pub block: Spread,
    /// Time with a task for each slot.
    pub per_slot: Spread,
    /// Time with eight chunks for each slot.
    pub chunks: Spread,
    /// Time with the best fixed size, which only a search finds.
    pub best: Spread,
    /// Best fixed size, in bytes.
    pub best_size: u64,
    /// Fraction by which the tuned stage is shorter than that with its starting size.
    pub shorter: Spread,
    /// Fraction by which the tuned stage is longer than that with the best fixed size.
    pub over_best: Spread,
}

/// Compares all rules on one stage from one starting size.
pub fn compare(curve: &Curve, start: u64, best: u64, seeds: &[u64]) -> Compared {
    let tuned = |seed: &u64| {
        let mut memory = Memory::default();
        let mut first = Sizing::Tuned(Box::new(Tuner::new(curve.config(start))));
        let seconds = run(curve, &mut first, *seed).seconds;
        if let Sizing::Tuned(tuner) = &first
            && let Some(found) = tuner.found()
        {
            memory.keep(curve.name, found);
        }
        let second = memory
            .recall(curve.name)
            .map_or_else(|| Tuner::new(curve.config(start)), |found| Tuner::resume(curve.config(start), found));
        let again = run(curve, &mut Sizing::Tuned(Box::new(second)), seed.wrapping_add(1_000_003)).seconds;
        (seconds, again)
    };
    let runs: Vec<(f64, f64)> = seeds.iter().map(tuned).collect();
    let with = |rule: Rule| -> Vec<f64> {
        seeds.iter().map(|seed| run(curve, &mut fixed(curve, rule), *seed).seconds).collect()
    };
    let of_start = with(Rule::Size(start));
    let shorter = runs.iter().zip(&of_start).map(|((tuned, _), fixed)| 1.0 - tuned / fixed).collect::<Vec<_>>();
    let of_best = with(Rule::Size(best));
    let over_best = runs.iter().zip(&of_best).map(|((tuned, _), best)| tuned / best - 1.0).collect::<Vec<_>>();
    Compared {
        curve: curve.name,
        start,
        tuned: Spread::of(&runs.iter().map(|run| run.0).collect::<Vec<_>>()),
        again: Spread::of(&runs.iter().map(|run| run.1).collect::<Vec<_>>()),
        fixed: Spread::of(&of_start),
        block: Spread::of(&with(Rule::Block)),
        per_slot: Spread::of(&with(Rule::PerSlot)),
        chunks: Spread::of(&with(Rule::Chunks(8))),
        best: Spread::of(&of_best),
        best_size: best,
        shorter: Spread::of(&shorter),
        over_best: Spread::of(&over_best),
    }
}

/// Compares all stages from all starting sizes.
pub fn study(seeds: &[u64]) -> Vec<Compared> {
    let mut all = Vec::new();
    for curve in curves() {
        let (best, _) = best_static(&curve, seeds);
        all.extend(STARTS.iter().map(|start| compare(&curve, *start, best, seeds)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_sizes_form_a_u() {
        let curve = Curve { noise: 0.0, stragglers: 0.0, ..CLUSTER };
        let time = |size: u64| run(&curve, &mut fixed(&curve, Rule::Size(size)), 1).seconds;
        let (best, seconds) = best_static(&curve, &[1]);
        assert!(time(1 << 20) > 2.0 * seconds && time(1 << 30) > 1.2 * seconds, "{best} {seconds}");
    }

    #[test]
    fn the_same_seed_gives_the_same_stage_and_all_input_is_read() {
        let curve = &curves()[1];
        let go = || run(curve, &mut Sizing::Tuned(Box::new(Tuner::new(curve.config(8 << 20)))), 3);
        assert_eq!(go(), go());
        assert!(go().waves.len() > 2);
        let chunks = run(curve, &mut fixed(curve, Rule::Chunks(2)), 3);
        assert_eq!(chunks.tasks, 64);
    }

    #[test]
    fn tuned_stages_are_shorter_from_both_ends() {
        let curve = &curves()[0];
        let (best, _) = best_static(curve, &[1]);
        for start in [1 << 20, 2 << 30] {
            let compared = compare(curve, start, best, &[1, 2]);
            assert!(compared.shorter.mean > 0.25, "{compared:?}");
            assert!(compared.tuned.mean < 1.5 * compared.best.mean, "{compared:?}");
        }
    }
}
