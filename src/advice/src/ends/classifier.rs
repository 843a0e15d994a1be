//! Statistics of jobs, users, kinds of work and machines: how their tasks and jobs have ended.
//!
//! Every table has a limit; the least recently used entries are dropped.

use std::collections::BTreeMap;

use super::features::{self, EVENT_FEATURES, JOB_FEATURES, JobStart, Launch, TaskObservation};
use super::{End, Network};

/// Limit of the entries of a table.
const ENTRIES_MAX: usize = 200_000;
/// Number of units of a hidden layer.
const HIDDEN: usize = 24;
/// Half-life of recent ends (of a machine, and of all tasks), in seconds.
const HALF_LIFE: f64 = 3_600.0;

/// Counts of each end. In counts of recent ends, older ones count less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EndCounts {
    counts: [f64; 4],
    at: f64,
}

impl EndCounts {
    fn add(&mut self, end: End) {
        self.counts[end.place()] += 1.0;
    }

    fn add_at(&mut self, end: End, now: f64) {
        *self = self.decayed(now);
        self.add(end);
    }

    /// Returns the counts with the weights that they have at this moment.
    fn decayed(self, now: f64) -> EndCounts {
        let factor = (-(now - self.at).max(0.0) / HALF_LIFE).exp2();
        EndCounts { counts: self.counts.map(|count| count * factor), at: now.max(self.at) }
    }

    /// Returns the share of each end, biased towards equal shares while there are few ends, and the scaled number of
    /// ends.
    pub(super) fn features(&self) -> [f64; 5] {
        let sum: f64 = self.counts.iter().sum();
        let [a, b, c, d] = self.counts.map(|count| (count + 0.25) / (sum + 1.0));
        [a, b, c, d, sum.ln_1p() / 10.0]
    }

    fn likeliest(&self) -> Option<End> {
        (self.counts.iter().sum::<f64>() > 0.0).then(|| End::likeliest(&self.counts))
    }
}

/// A table with a limit of entries.
#[derive(Clone, Debug)]
struct Table<V> {
    entries: BTreeMap<u64, (u64, V)>,
    clock: u64,
    limit: usize,
}

impl<V: Default> Table<V> {
    fn new(limit: usize) -> Table<V> {
        Table { entries: BTreeMap::new(), clock: 0, limit }
    }

    fn get(&self, key: u64) -> Option<&V> {
        self.entries.get(&key).map(|(_, value)| value)
    }

    fn entry(&mut self, key: u64) -> &mut V {
        self.clock += 1;
        if self.entries.len() >= self.limit && !self.entries.contains_key(&key) {
            let mut used: Vec<u64> = self.entries.values().map(|(used, _)| *used).collect();
            let middle = used.len() / 2;
            let (_, median, _) = used.select_nth_unstable(middle);
            let median = *median;
            self.entries.retain(|_, (used, _)| *used > median);
        }
        let (used, value) = self.entries.entry(key).or_default();
        *used = self.clock;
        value
    }
}

/// Statistics of one job.
#[derive(Clone, Copy, Debug, Default)]
struct Job {
    shares: EndCounts,
    tasks: u32,
    /// Sum of the logarithms of the run times of ended tasks, and the number of them.
    log_time: f64,
    ended: u32,
}

/// The classifier of ends. Times are seconds from any fixed moment.
#[derive(Clone, Debug)]
pub struct EndClassifier {
    /// Networks for tasks at their launch, and for tasks that have run for some time.
    launches: Network,
    running: Network,
    jobs_network: Network,
    jobs: Table<Job>,
    users: Table<EndCounts>,
    kinds: Table<EndCounts>,
    machines: Table<EndCounts>,
    recent_ends: EndCounts,
    users_jobs: Table<EndCounts>,
    kinds_jobs: Table<EndCounts>,
    recent_job_ends: EndCounts,
}

impl EndClassifier {
    /// Creates a classifier without any experience.
    pub fn new(seed: u64) -> EndClassifier {
        EndClassifier {
            launches: Network::new(EVENT_FEATURES, HIDDEN, seed),
            running: Network::new(EVENT_FEATURES, HIDDEN, seed ^ 1),
            jobs_network: Network::new(JOB_FEATURES, HIDDEN, seed ^ 2),
            jobs: Table::new(ENTRIES_MAX),
            users: Table::new(ENTRIES_MAX),
            kinds: Table::new(ENTRIES_MAX),
            machines: Table::new(ENTRIES_MAX),
            recent_ends: EndCounts::default(),
            users_jobs: Table::new(ENTRIES_MAX),
            kinds_jobs: Table::new(ENTRIES_MAX),
            recent_job_ends: EndCounts::default(),
        }
    }

    /// Records the first submission of a task of a job.
    pub fn submitted(&mut self, job: u64) {
        let job = self.jobs.entry(job);
        job.tasks = job.tasks.saturating_add(1);
    }

    /// Returns the features of a task that was launched `age` seconds ago.
    pub fn task_features(&self, launch: &Launch, age: f64, now: f64) -> Vec<f64> {
        let of = |table: &Table<EndCounts>, key: u64| table.get(key).copied().unwrap_or_default();
        let kind = features::kind(launch.user, launch.class, launch.priority, &launch.requested);
        let job = self.jobs.get(launch.job).copied().unwrap_or_default();
        let typical = (job.ended > 0).then(|| (job.log_time / f64::from(job.ended)).exp());
        let shares = [
            job.shares,
            of(&self.users, launch.user),
            of(&self.kinds, kind),
            of(&self.machines, launch.machine).decayed(now),
            self.recent_ends.decayed(now),
        ];
        TaskObservation { launch, age, typical, shares, tasks: job.tasks }.features()
    }

    /// Returns the features of a job that starts.
    pub fn job_features(&self, start: &JobStart, now: f64) -> Vec<f64> {
        let kind = features::kind(start.user, start.class, start.priority, &start.requested);
        let of = |table: &Table<EndCounts>, key: u64| table.get(key).copied().unwrap_or_default();
        let shares = [of(&self.users_jobs, start.user), of(&self.kinds_jobs, kind), self.recent_job_ends.decayed(now)];
        features::of_job(start, &shares)
    }

    /// Returns the probability of each end of a task, from the features that
    /// [`task_features`](EndClassifier::task_features) returned.
    pub fn predict(&self, seen: &[f64]) -> [f64; 4] {
        if features::runs(seen) { self.running.predict(seen) } else { self.launches.predict(seen) }
    }

    /// Returns the probability of each end of a job, from the features that
    /// [`job_features`](EndClassifier::job_features) returned.
    pub fn predict_job(&self, seen: &[f64]) -> [f64; 4] {
        self.jobs_network.predict(seen)
    }

    /// Returns the most frequent end of earlier tasks: of the job, or else of the same kind, or else of all recent
    /// ones. It is a baseline that needs no network.
    pub fn most_frequent_end(&self, launch: &Launch) -> End {
        let kind = features::kind(launch.user, launch.class, launch.priority, &launch.requested);
        let job = self.jobs.get(launch.job).and_then(|job| job.shares.likeliest());
        let kind = || self.kinds.get(kind).and_then(EndCounts::likeliest);
        job.or_else(kind).or_else(|| self.recent_ends.likeliest()).unwrap_or(End::Finish)
    }

    /// Returns the most frequent end of earlier jobs: of the same kind, or else of the user, or else of all recent
    /// ones.
    pub fn most_frequent_job_end(&self, start: &JobStart) -> End {
        let kind = features::kind(start.user, start.class, start.priority, &start.requested);
        let kind = self.kinds_jobs.get(kind).and_then(EndCounts::likeliest);
        let user = || self.users_jobs.get(start.user).and_then(EndCounts::likeliest);
        kind.or_else(user).or_else(|| self.recent_job_ends.likeliest()).unwrap_or(End::Finish)
    }

    /// Learns the end of a task from the features that it had.
    pub fn learn(&mut self, seen: &[f64], end: End) {
        if features::runs(seen) { self.running.learn(seen, end) } else { self.launches.learn(seen, end) }
    }

    /// Learns the end of a job from the features that it had.
    pub fn learn_job(&mut self, seen: &[f64], end: End) {
        self.jobs_network.learn(seen, end);
    }

    /// Records the end of a launch that ran for `ran` seconds.
    pub fn ended(&mut self, launch: &Launch, ran: f64, end: End, now: f64) {
        let kind = features::kind(launch.user, launch.class, launch.priority, &launch.requested);
        let job = self.jobs.entry(launch.job);
        job.shares.add(end);
        job.log_time += ran.max(1.0).ln();
        job.ended = job.ended.saturating_add(1);
        self.users.entry(launch.user).add(end);
        self.kinds.entry(kind).add(end);
        self.machines.entry(launch.machine).add_at(end, now);
        self.recent_ends.add_at(end, now);
    }

    /// Records the end of a job.
    pub fn job_ended(&mut self, start: &JobStart, end: End, now: f64) {
        let kind = features::kind(start.user, start.class, start.priority, &start.requested);
        self.users_jobs.entry(start.user).add(end);
        self.kinds_jobs.entry(kind).add(end);
        self.recent_job_ends.add_at(end, now);
    }
}
