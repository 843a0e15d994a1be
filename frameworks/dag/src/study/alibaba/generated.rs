//! Generates jobs with the distributions of Alibaba's trace of 2018, for users without the trace.
//!
//! The numbers are quantiles of its histograms (9.7 million tasks of 2.9 million jobs), as published with the trace
//! generator `spar` (github.com/All-less/trace-generator, MIT). Each is drawn independently, since only those are
//! published: a task with many instances takes no longer here than one with few. The longest of a job's chains has the
//! published length for as many tasks. At which of its levels the other tasks are, and what they wait for, is our
//! choice.

use std::sync::Arc;

use super::super::job::{JobModel, StageModel};
use super::super::random::Random;
use super::stage;
use crate::order::Amounts;

/// Values with the fraction of all values that are no larger. Between two values the logarithm is uniform. Values
/// beyond the last one, a thousandth at most, are cut.
type Quantiles = [(f64, f64)];

/// Number of tasks of jobs with two or more, up to 50.
const TASKS: &Quantiles = &[
    (2.0, 0.331),
    (3.0, 0.538),
    (4.0, 0.651),
    (5.0, 0.738),
    (6.0, 0.792),
    (8.0, 0.877),
    (10.0, 0.917),
    (15.0, 0.966),
    (20.0, 0.985),
    (30.0, 0.9964),
    (50.0, 0.9993),
];
/// Number of instances of a task.
const INSTANCES: &Quantiles = &[
    (1.0, 0.662),
    (2.0, 0.680),
    (3.0, 0.741),
    (5.0, 0.776),
    (8.0, 0.805),
    (12.0, 0.831),
    (20.0, 0.862),
    (50.0, 0.906),
    (100.0, 0.933),
    (200.0, 0.955),
    (500.0, 0.982),
    (1000.0, 0.9918),
    (2000.0, 0.9978),
    (3500.0, 0.9990),
];
/// Duration of a task in seconds, from the start of its first instance to the end of its last.
const SECONDS: &Quantiles = &[
    (1.0, 0.178),
    (2.0, 0.255),
    (3.0, 0.346),
    (4.0, 0.422),
    (6.0, 0.508),
    (8.0, 0.566),
    (12.0, 0.639),
    (20.0, 0.722),
    (40.0, 0.810),
    (80.0, 0.878),
    (160.0, 0.927),
    (320.0, 0.964),
    (640.0, 0.9904),
    (1280.0, 0.9975),
    (2500.0, 0.9993),
];
/// CPUs of an instance, in thousandths.
const CPUS: &[(u64, f64)] = &[(500, 0.419), (1000, 1.0)];
/// Memory of an instance, in thousandths of a hundredth of a machine's.
const MEM: &[(u64, f64)] = &[(150, 0.01), (200, 0.35), (300, 0.585), (390, 0.81), (490, 0.935), (590, 1.0)];
/// Length of the longest chain of tasks, by the least number of tasks of the job.
const DEPTHS: &[(usize, &[(u64, f64)])] = &[
    (2, &[(1, 0.023), (2, 1.0)]),
    (3, &[(1, 0.013), (2, 0.239), (3, 1.0)]),
    (4, &[(1, 0.006), (2, 0.121), (3, 0.508), (4, 1.0)]),
    (5, &[(2, 0.09), (3, 0.383), (4, 0.826), (5, 1.0)]),
    (6, &[(2, 0.067), (3, 0.203), (4, 0.491), (5, 0.755), (6, 1.0)]),
    (8, &[(2, 0.046), (3, 0.125), (4, 0.408), (5, 0.65), (6, 0.877), (7, 0.942), (8, 1.0)]),
    (10, &[(2, 0.021), (3, 0.096), (4, 0.248), (5, 0.503), (6, 0.714), (7, 0.873), (8, 0.953), (9, 1.0)]),
    (15, &[(3, 0.052), (4, 0.11), (5, 0.225), (6, 0.394), (7, 0.599), (8, 0.738), (9, 0.862), (10, 0.936), (12, 1.0)]),
    (25, &[(2, 0.068), (4, 0.125), (5, 0.176), (6, 0.267), (7, 0.448), (8, 0.696), (9, 0.796), (11, 0.927), (13, 1.0)]),
];

/// Generates `count` jobs of two or more tasks, the same for the same seed.
pub fn jobs(seed: u64, count: usize) -> Vec<Arc<JobModel>> {
    let mut random = Random::new(seed, "jobs as in Alibaba's trace");
    (0..count).map(|n| Arc::new(job(n, &mut random))).collect()
}

fn job(n: usize, random: &mut Random) -> JobModel {
    let name = format!("alibaba-{n}");
    let tasks = draw(TASKS, random) as usize;
    let depths = DEPTHS.iter().rev().find(|(from, _)| *from <= tasks).map_or(DEPTHS[0].1, |(_, depths)| *depths);
    let depth = pick(depths, random);
    // A chain with one task at each level; the other tasks are at any level.
    let levels = (0..tasks as u64).map(|at| if at < depth { at } else { random.below(depth as usize) as u64 });
    let mut levels: Vec<u64> = levels.collect();
    levels.sort_unstable();
    let stages: Vec<StageModel> = levels
        .iter()
        .enumerate()
        .map(|(at, level)| {
            let parents = parents(&levels, *level, random);
            let instances = draw(INSTANCES, random) as u32;
            let seconds = draw(SECONDS, random);
            let demand = Amounts { cpus: pick(CPUS, random), mem: pick(MEM, random), gpus: 0 };
            stage(format!("{name}-{at}"), instances, parents, seconds, demand)
        })
        .collect();
    JobModel { name, stages }
}

/// Draws one task of the level before as a parent, and with even chances another one.
fn parents(levels: &[u64], level: u64, random: &mut Random) -> Vec<u32> {
    let Some(before) = level.checked_sub(1) else { return Vec::new() };
    let (first, end) = (levels.partition_point(|l| *l < before), levels.partition_point(|l| *l < level));
    let mut parents = vec![(first + random.below(end - first)) as u32];
    if random.part() < 0.5 {
        parents.push(random.below(end) as u32);
    }
    parents.sort_unstable();
    parents.dedup();
    parents
}

/// Draws an integer by inverting the distribution.
fn draw(quantiles: &Quantiles, random: &mut Random) -> u64 {
    let (first, last) = (quantiles[0], quantiles[quantiles.len() - 1]);
    let part = random.part() * last.1;
    if part <= first.1 {
        return first.0 as u64;
    }
    let at = quantiles.partition_point(|(_, up_to)| *up_to < part).clamp(1, quantiles.len() - 1);
    let ((low, from), (high, to)) = (quantiles[at - 1], quantiles[at]);
    let within = (part - from) / (to - from);
    // Integers above the lower value, up to the upper one.
    (low * (high / low).powf(within)).ceil().clamp(low + 1.0, high) as u64
}

/// Draws a value from a list with cumulative probabilities.
fn pick(values: &[(u64, f64)], random: &mut Random) -> u64 {
    let part = random.part();
    values.iter().find(|(_, up_to)| part < *up_to).unwrap_or(&values[values.len() - 1]).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_have_the_published_quantiles() {
        let jobs = jobs(1, 20_000);
        assert_eq!(jobs[..50], super::jobs(1, 50)[..], "the same for the same seed");
        let stages = || jobs.iter().flat_map(|job| &job.stages);
        let all = stages().count() as f64;
        let part = |is: &dyn Fn(&StageModel) -> bool| stages().filter(|stage| is(stage)).count() as f64 / all;
        for (found, published) in [
            (part(&|stage| stage.tasks == 1), 0.662),
            (part(&|stage| stage.tasks <= 100), 0.933),
            (part(&|stage| stage.rough <= 6_000), 0.508),
            (part(&|stage| stage.rough <= 160_000), 0.927),
            (part(&|stage| stage.demand.cpus == 500), 0.419),
            (part(&|stage| stage.demand.mem <= 300), 0.585),
            (jobs.iter().filter(|job| job.stages.len() <= 4).count() as f64 / jobs.len() as f64, 0.651),
        ] {
            assert!((found - published).abs() < 0.015, "{found} for {published}");
        }
    }

    #[test]
    fn stages_come_after_their_parents_in_chains_of_the_published_lengths() {
        let jobs = jobs(2, 5_000);
        let mut depths = [0; 2];
        for job in &jobs {
            let mut depth: Vec<usize> = Vec::new();
            for (at, stage) in job.stages.iter().enumerate() {
                assert!(stage.parents.iter().all(|parent| (*parent as usize) < at));
                depth.push(1 + stage.parents.iter().map(|parent| depth[*parent as usize]).max().unwrap_or(0));
            }
            if job.stages.len() == 4 {
                depths[usize::from(depth.iter().max() == Some(&4))] += 1;
            }
        }
        let chains = f64::from(depths[1]) / f64::from(depths[0] + depths[1]);
        assert!((chains - 0.492).abs() < 0.06, "{chains} of jobs with four tasks are chains");
    }
}
