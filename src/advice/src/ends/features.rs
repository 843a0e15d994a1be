//! What the classifier sees of a task or a job, as numbers around 0 and 1.

use super::End;
use super::known::Shares;

/// Number of priorities and of scheduling classes in Google's traces of 2011.
const PRIORITIES: usize = 12;
const CLASSES: usize = 4;
/// Numbers that stand for a task when it is launched or runs.
pub const EVENT_FEATURES: usize = CLASSES + PRIORITIES + 3 + 3 + 5 * 5 + 5 + 4;
/// Numbers that stand for a job when it begins.
pub const JOB_FEATURES: usize = CLASSES + PRIORITIES + 3 + 1 + 5 * 3;

/// A launch of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// Its job.
    pub job: u64,
    /// Its user, or its framework and role.
    pub user: u64,
    /// The machine that it runs on.
    pub machine: u64,
    /// How much its latency matters, from 0 to 3.
    pub class: u8,
    /// From 0 to 11.
    pub priority: u8,
    /// Processors, memory and disk, as shares of a large machine.
    pub asked: [f64; 3],
    /// How it ended before, if it was launched before.
    pub last: Option<End>,
    /// How often it was launched before.
    pub attempts: u32,
}

/// The beginning of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobStart {
    /// Its user.
    pub user: u64,
    /// As of its first task.
    pub class: u8,
    /// As of its first task.
    pub priority: u8,
    /// As of its first task.
    pub asked: [f64; 3],
    /// How many tasks were submitted so far.
    pub tasks: u32,
}

/// What kind of work it is: that of the same user, with the same class, priority and requests.
pub(super) fn kind(user: u64, class: u8, priority: u8, asked: &[f64; 3]) -> u64 {
    let parts = [user, u64::from(class), u64::from(priority), asked[0].to_bits(), asked[1].to_bits()];
    parts.into_iter().fold(0, |hash, part| base::scramble(hash ^ part))
}

/// What is known at a launch, and for how long the task has run since.
pub(super) struct Seen<'a> {
    pub(super) launch: &'a Launch,
    /// For how long it runs, in seconds.
    pub(super) age: f64,
    /// How long tasks of its job run until they end, in seconds, in the mean of the logarithms.
    pub(super) typical: Option<f64>,
    /// How its job's tasks, its user's, those of its kind, those of its machine lately, and all lately ended.
    pub(super) shares: [Shares; 5],
    /// Tasks of the job that were submitted.
    pub(super) tasks: u32,
}

impl Seen<'_> {
    pub(super) fn features(&self) -> Vec<f64> {
        let launch = self.launch;
        let mut all = Vec::with_capacity(EVENT_FEATURES);
        add_request(&mut all, launch.class, launch.priority, &launch.asked);
        all.extend([small(f64::from(self.tasks)), small(f64::from(launch.attempts)), small(self.age)]);
        self.shares.iter().for_each(|shares| all.extend(shares.features()));
        all.extend((0..5).map(|at| f64::from(u8::from(launch.last.map_or(4, End::place) == at))));
        let against = self.typical.map_or(0.0, |typical| small(self.age) - small(typical));
        all.extend([
            f64::from(u8::from(self.age > 0.0)),
            f64::from(u8::from(self.typical.is_some())),
            against,
            self.typical.map_or(0.0, small),
        ]);
        all
    }
}

/// Whether what was seen is of a task that runs for some time.
pub(super) fn runs(seen: &[f64]) -> bool {
    seen.len() == EVENT_FEATURES && seen[EVENT_FEATURES - 4] > 0.0
}

/// What is known when a job begins: how its user's jobs, those of its kind, and all lately ended.
pub(super) fn of_job(start: &JobStart, shares: &[Shares; 3]) -> Vec<f64> {
    let mut all = Vec::with_capacity(JOB_FEATURES);
    add_request(&mut all, start.class, start.priority, &start.asked);
    all.push(small(f64::from(start.tasks)));
    shares.iter().for_each(|shares| all.extend(shares.features()));
    all
}

/// What the user has requested.
fn add_request(all: &mut Vec<f64>, class: u8, priority: u8, asked: &[f64; 3]) {
    let one_of = |value: u8, count: usize| {
        let value = usize::from(value).min(count - 1);
        (0..count).map(move |at| f64::from(u8::from(at == value)))
    };
    all.extend(one_of(class, CLASSES));
    all.extend(one_of(priority, PRIORITIES));
    // Requests are small shares of a machine, over several orders of magnitude.
    all.extend(asked.map(|share| small(1e4 * share.clamp(0.0, 1.0))));
}

/// Brings what ranges over orders of magnitude to about 0 to 1.
fn small(value: f64) -> f64 {
    value.max(0.0).ln_1p() / 5.0
}
