//! Computes lengths of paths through the graph of a job's stages. It orders nothing.

use super::observation::Job;

/// The longest paths from each stage of a job to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// For each stage, the time of the longest chain of tasks from it to the end, including its own task, in
    /// milliseconds.
    pub length: Vec<u64>,
    /// For each stage, the task-milliseconds of the largest chain of stages from it to the end, including its own.
    pub work: Vec<u64>,
}

/// Returns the paths of a job. Stages that have finished add nothing. Parents must come before their children; others
/// are ignored.
pub fn paths(job: &Job) -> Paths {
    let mut paths = Paths { length: vec![0; job.stages.len()], work: vec![0; job.stages.len()] };
    for (at, stage) in job.stages.iter().enumerate().rev() {
        if !stage.is_done() {
            paths.length[at] = paths.length[at].saturating_add(stage.duration);
            paths.work[at] = paths.work[at].saturating_add(stage.remaining());
        }
        for parent in stage.parents.iter().map(|parent| *parent as usize).filter(|parent| *parent < at) {
            paths.length[parent] = paths.length[parent].max(paths.length[at]);
            paths.work[parent] = paths.work[parent].max(paths.work[at]);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Stage;

    #[test]
    fn a_diamond() {
        let stage =
            |tasks, duration, parents: &[u32]| Stage { tasks, duration, parents: parents.into(), ..Stage::default() };
        let stages = vec![stage(1, 5, &[]), stage(2, 10, &[0]), stage(30, 1, &[0]), stage(1, 3, &[1, 2])];
        let job = Job { id: 1, arrival: 0, class: 0, weight: 1000, held: 0, deadline: None, stages };
        let paths = paths(&job);
        assert_eq!(paths.length, [18, 13, 4, 3]);
        assert_eq!(paths.work, [38, 23, 33, 3]);
    }
}
