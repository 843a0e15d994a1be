//! Features of tasks and jobs for the classifier, as numbers around 0 and 1.

use super::End;
use super::classifier::EndCounts;

/// Number of priorities and of scheduling classes in Google's traces of 2011.
const PRIORITIES: usize = 12;
const CLASSES: usize = 4;
/// Number of features of a task that is launched or runs.
pub const EVENT_FEATURES: usize = CLASSES + PRIORITIES + 3 + 3 + 5 * 5 + 5 + 4;
/// Number of features of a job that starts.
pub const JOB_FEATURES: usize = CLASSES + PRIORITIES + 3 + 1 + 5 * 3;

/// The launch of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// Id of the task's job.
    pub job: u64,
    /// Id of the task's user, or of its framework and role.
    pub user: u64,
    /// Id of the machine on which the task runs.
    pub machine: u64,
    /// Scheduling class: how sensitive the task is to latency, from 0 to 3.
    pub class: u8,
    /// Priority of the task, from 0 to 11.
    pub priority: u8,
    /// Requested processors, memory and disk, as fractions of a large machine.
    pub requested: [f64; 3],
    /// End of the previous launch of the task; `None` for the first launch.
    pub last: Option<End>,
    /// Number of earlier launches of the task.
    pub attempts: u32,
}

/// The start of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobStart {
    /// Id of the job's user.
    pub user: u64,
    /// Scheduling class of the job's first task.
    pub class: u8,
    /// Priority of the job's first task.
    pub priority: u8,
    /// Requested resources of the job's first task, as in [`Launch::requested`].
    pub requested: [f64; 3],
    /// Number of tasks that were submitted so far.
    pub tasks: u32,
}

/// Returns the id of a kind of work: that of the same user, with the same class, priority and requests.
pub(super) fn kind(user: u64, class: u8, priority: u8, requested: &[f64; 3]) -> u64 {
    let parts = [user, u64::from(class), u64::from(priority), requested[0].to_bits(), requested[1].to_bits()];
    parts.into_iter().fold(0, |hash, part| base::scramble(hash ^ part))
}

/// Information about a launch, and the time that the task has run since.
pub(super) struct TaskObservation<'a> {
    pub(super) launch: &'a Launch,
    /// Time that the task has run, in seconds.
    pub(super) age: f64,
    /// Geometric mean of the run times of the job's ended tasks, in seconds; `None` before the first end.
    pub(super) typical: Option<f64>,
    /// Shares of each end among the job's tasks, the user's, those of the same kind, recent ones of the machine, and
    /// all recent ones.
    pub(super) shares: [EndCounts; 5],
    /// Number of tasks of the job that were submitted.
    pub(super) tasks: u32,
}

impl TaskObservation<'_> {
    pub(super) fn features(&self) -> Vec<f64> {
        let launch = self.launch;
        let mut all = Vec::with_capacity(EVENT_FEATURES);
        add_request(&mut all, launch.class, launch.priority, &launch.requested);
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

/// Returns whether the features are those of a task that has run for some time.
pub(super) fn runs(seen: &[f64]) -> bool {
    seen.len() == EVENT_FEATURES && seen[EVENT_FEATURES - 4] > 0.0
}

/// Returns the features of a job that starts, with the ends of its user's jobs, of jobs of its kind, and of all recent
/// jobs.
pub(super) fn of_job(start: &JobStart, shares: &[EndCounts; 3]) -> Vec<f64> {
    let mut all = Vec::with_capacity(JOB_FEATURES);
    add_request(&mut all, start.class, start.priority, &start.requested);
    all.push(small(f64::from(start.tasks)));
    shares.iter().for_each(|shares| all.extend(shares.features()));
    all
}

/// Appends the features of a request.
fn add_request(all: &mut Vec<f64>, class: u8, priority: u8, requested: &[f64; 3]) {
    let one_of = |value: u8, count: usize| {
        let value = usize::from(value).min(count - 1);
        (0..count).map(move |at| f64::from(u8::from(at == value)))
    };
    all.extend(one_of(class, CLASSES));
    all.extend(one_of(priority, PRIORITIES));
    // Requests are small fractions of a machine, over several orders of magnitude.
    all.extend(requested.map(|share| small(1e4 * share.clamp(0.0, 1.0))));
}

/// Maps a value that ranges over orders of magnitude to about 0 to 1.
fn small(value: f64) -> f64 {
    value.max(0.0).ln_1p() / 5.0
}
