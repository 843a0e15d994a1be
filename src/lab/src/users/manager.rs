//! A queue manager in front of frameworks that share a cluster, after Tromino (Saha et al., UCC 2018): it knows waiting
//! and running tasks, and releases tasks to their frameworks one by one, as many as fit.
//!
//! Shares are dominant shares: of the released tasks (`running`, DS in the paper) and of the waiting tasks (`waiting`,
//! DDS). The policies have the paper's names; how the third one combines both shares is tepui's choice
//! (docs/papers/tromino.md). The caller decides when to release.

use std::collections::VecDeque;

use resources::Quantities;

use super::Job;

/// The policy that selects the framework whose task is released next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Release {
    /// Releases all tasks at once, as without a manager.
    All,
    /// Releases a task of the framework with the smallest running share.
    Drf,
    /// Releases a task of the framework with the largest waiting share.
    Demand,
    /// Releases a task of the framework whose part of all waiting shares exceeds its part of all running shares most.
    DemandDrf,
}

/// The queues of a manager, one for each framework.
#[derive(Debug)]
pub struct Manager {
    release: Release,
    /// Total resources of the cluster.
    total: Quantities,
    queues: Vec<VecDeque<Job>>,
    /// Needs of all tasks in each queue.
    waiting: Vec<Quantities>,
}

impl Manager {
    /// Creates empty queues for this many frameworks, on a cluster with these total resources.
    pub fn new(release: Release, frameworks: usize, total: Quantities) -> Manager {
        Manager {
            release,
            total,
            queues: vec![VecDeque::new(); frameworks],
            waiting: vec![Quantities::new(); frameworks],
        }
    }

    /// Adds a job to the queue of its framework.
    pub fn submit(&mut self, framework: usize, job: Job) {
        self.waiting[framework] += &job.needs.scale(job.spans.len() as f64);
        self.queues[framework].push_back(job);
    }

    /// Returns the needs of a framework's tasks that are not released yet.
    pub fn waiting(&self, framework: usize) -> &Quantities {
        &self.waiting[framework]
    }

    /// Releases the tasks that fit beside those that have been released and have not ended. `running` has the needs of
    /// these, by framework. A gang is released whole.
    pub fn release(&mut self, running: &[Quantities]) -> Vec<(usize, Job)> {
        if self.release == Release::All {
            self.waiting.iter_mut().for_each(|waiting| *waiting = Quantities::new());
            let all = self.queues.iter_mut().enumerate();
            return all.flat_map(|(framework, queue)| queue.drain(..).map(move |job| (framework, job))).collect();
        }
        let mut running = running.to_vec();
        let mut released = Vec::new();
        while let Some(framework) = self.next(&running) {
            let Some(job) = self.take(framework) else { break };
            let all = job.needs.scale(job.spans.len() as f64);
            running[framework] += &all;
            self.waiting[framework] = self.waiting[framework].saturating_sub(&all);
            released.push((framework, job));
        }
        released
    }

    /// Returns the framework whose task is released next, among those whose next task fits.
    fn next(&self, running: &[Quantities]) -> Option<usize> {
        let mut free = self.total.clone();
        running.iter().for_each(|used| free = free.saturating_sub(used));
        let fits = |framework: &usize| self.queues[*framework].front().is_some_and(|job| free.contains(&head(job)));
        let run = |framework: usize| running[framework].ratio(&self.total);
        let wait = |framework: usize| self.waiting[framework].ratio(&self.total);
        let all = |of: &dyn Fn(usize) -> f64| (0..self.queues.len()).map(of).sum::<f64>().max(f64::MIN_POSITIVE);
        let (all_run, all_wait) = (all(&run), all(&wait));
        let urge = |framework: usize| match self.release {
            Release::All | Release::Drf => -run(framework),
            Release::Demand => wait(framework),
            Release::DemandDrf => wait(framework) / all_wait - run(framework) / all_run,
        };
        let better = |a: &usize, b: &usize| {
            let by_share = run(*b).total_cmp(&run(*a));
            urge(*a).total_cmp(&urge(*b)).then(by_share).then(b.cmp(a))
        };
        (0..self.queues.len()).filter(fits).max_by(better)
    }

    /// Removes and returns the first task of a queue, or the whole gang.
    fn take(&mut self, framework: usize) -> Option<Job> {
        let queue = &mut self.queues[framework];
        let first = queue.front_mut()?;
        if first.gang || first.spans.len() <= 1 {
            return queue.pop_front();
        }
        let span = first.spans.remove(0);
        let one = Job {
            first: first.first,
            needs: first.needs.clone(),
            spans: vec![span],
            gang: false,
            retries: first.retries,
            kind: first.kind,
        };
        first.first += 1;
        Some(one)
    }
}

/// Returns what must fit before a part of a job is released.
fn head(job: &Job) -> Quantities {
    let tasks = if job.gang { job.spans.len() } else { 1 };
    job.needs.scale(tasks as f64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use proptest::prelude::*;
    use resources::parse_quantities;

    use super::*;

    fn job(first: u64, tasks: usize, needs: &str, gang: bool) -> Job {
        let needs = Arc::new(parse_quantities(needs).unwrap());
        Job { first, needs, spans: vec![Duration::from_secs(1); tasks], gang, retries: 0, kind: 0 }
    }

    fn manager(release: Release, tasks: [usize; 2]) -> Manager {
        let mut manager = Manager::new(release, 2, parse_quantities("cpus:10;mem:1000").unwrap());
        manager.submit(0, job(0, tasks[0], "cpus:1;mem:10", false));
        manager.submit(1, job(0, tasks[1], "cpus:1;mem:10", false));
        manager
    }

    fn released(manager: &mut Manager, running: [&str; 2]) -> [usize; 2] {
        let running = running.map(|text| parse_quantities(text).unwrap());
        let all = manager.release(&running);
        [0, 1].map(|framework| all.iter().filter(|(of, _)| *of == framework).map(|(_, job)| job.spans.len()).sum())
    }

    #[test]
    fn each_policy_looks_at_its_own_part() {
        // Four slots are free; the first framework has most waiting, and most running tasks.
        let running = ["cpus:4;mem:40", "cpus:2;mem:20"];
        assert_eq!(released(&mut manager(Release::Drf, [90, 10]), running), [1, 3]);
        assert_eq!(released(&mut manager(Release::Demand, [90, 10]), running), [4, 0]);
        // The first framework has nine tenths of what waits, and two thirds of what runs.
        assert_eq!(released(&mut manager(Release::DemandDrf, [90, 10]), running), [4, 0]);
        assert_eq!(released(&mut manager(Release::DemandDrf, [30, 30]), running), [1, 3]);
        assert_eq!(released(&mut manager(Release::All, [90, 10]), running), [90, 10]);
    }

    #[test]
    fn a_gang_goes_whole_or_waits() {
        let mut manager = Manager::new(Release::Demand, 1, parse_quantities("cpus:10").unwrap());
        manager.submit(0, job(0, 8, "cpus:1", true));
        assert!(manager.release(&[parse_quantities("cpus:3").unwrap()]).is_empty());
        let all = manager.release(&[parse_quantities("cpus:2").unwrap()]);
        assert_eq!(all.iter().map(|(_, job)| job.spans.len()).collect::<Vec<_>>(), [8]);
        assert!(manager.waiting(0).is_empty());
    }

    proptest! {
        // Released tasks fit, come in the order of submission, each once; and no task that fits is held back.
        #[test]
        fn what_is_released_fits_and_nothing_is_lost(
            tasks in prop::collection::vec((0usize..3, 1usize..6, 1u32..4), 1..12),
            cpus in 1u32..20,
            release in prop::sample::select(vec![Release::Drf, Release::Demand, Release::DemandDrf]),
        ) {
            let total = parse_quantities(&format!("cpus:{cpus}")).unwrap();
            let mut manager = Manager::new(release, 3, total.clone());
            let mut next = [0; 3];
            for (framework, count, size) in &tasks {
                manager.submit(*framework, job(next[*framework], *count, &format!("cpus:{size}"), false));
                next[*framework] += *count as u64;
            }
            let mut seen = [0; 3];
            for _ in 0..100 {
                let mut used = Quantities::new();
                for (framework, job) in manager.release(&vec![Quantities::new(); 3]) {
                    prop_assert_eq!((job.first, job.spans.len()), (seen[framework], 1));
                    seen[framework] += 1;
                    used += &job.needs;
                }
                prop_assert!(total.contains(&used));
            }
            for framework in 0..3 {
                let blocked = tasks.iter().any(|(of, _, size)| *of == framework && *size > cpus);
                prop_assert!(blocked || seen[framework] == next[framework], "{} of {} of {}", seen[framework], next[framework], framework);
            }
        }
    }
}
