//! Chooses the age from which a job of high priority sprints, by the grey-box model of measured jobs.
//!
//! Each window of ended jobs is a profile of the age that was in force. The cluster is modelled as servers with as many
//! slots each as a job can use.

use serde::{Deserialize, Serialize};

use super::{JOBS_NEEDED, MeasuredJob, Settings, Tuning, unknown};
use crate::job::Class;
use crate::priority::sprinting::{
    Arrivals, GreyBoxModel, ProfiledPolicy, Range, Ranges, SprintPolicy, anneal, simulate,
};

/// Number of jobs in a window.
const WINDOW: usize = 16;
/// Number of windows that are remembered.
const WINDOWS_MAX: usize = 24;
/// Number of policies that a search tries.
const POLICIES_TRIED: u32 = 80;
/// Limit of the ratio of measured to simulated responses.
const STRETCH: f64 = 8.0;

/// Measurements of a window of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Window {
    policy: SprintPolicy,
    load: f64,
    marginal: f64,
    response: f64,
    servers: usize,
    /// Arrival of each job in seconds since the first, and its service time in seconds without sprints.
    jobs: Vec<(f64, f64)>,
}

impl Window {
    fn mean(&self, policy: &SprintPolicy, effective: f64) -> (f64, f64) {
        let (at, service): (Vec<f64>, Vec<f64>) = self.jobs.iter().copied().unzip();
        let outcome = simulate(&Arrivals { at: &at, service: &service, servers: self.servers }, policy, effective);
        (outcome.mean, outcome.sprinted / self.jobs.len().max(1) as f64)
    }

    fn profiled(&self) -> ProfiledPolicy {
        ProfiledPolicy { policy: self.policy, load: self.load, marginal: self.marginal, response: self.response }
    }
}

impl Tuning {
    /// Counts a job of high class that has ended, and chooses the age anew after each window of them.
    pub(super) fn choose_sprint(&mut self, slots: u32, settings: &Settings) {
        self.fresh += 1;
        let known = self.jobs[Class::High as usize].len();
        if known < JOBS_NEEDED {
            self.why_sprint = unknown(known);
            return;
        }
        let Some(marginal) = self.marginal() else {
            "jobs sprint from their start: too few tasks have finished with and without a sprint"
                .clone_into(&mut self.why_sprint);
            return;
        };
        if self.fresh < WINDOW && !self.windows.is_empty() {
            return;
        }
        let recent = self.fresh.clamp(JOBS_NEEDED, known);
        let window = self.window(recent, marginal, slots, settings);
        self.fresh = 0;
        if self.windows.len() >= WINDOWS_MAX {
            self.windows.pop_front();
        }
        self.windows.push_back(window);
        if marginal < 1.02 {
            self.after = 0.0;
            self.why_sprint = format!(
                "jobs sprint from their start, which has no effect: tasks that sprint are {marginal:.2} times as fast"
            );
            return;
        }
        self.search(marginal, settings);
    }

    /// Returns the window of the last jobs.
    fn window(&self, recent: usize, marginal: f64, slots: u32, settings: &Settings) -> Window {
        let all = &self.jobs[Class::High as usize];
        let mut jobs: Vec<MeasuredJob> = all.iter().skip(all.len() - recent).copied().collect();
        jobs.sort_by(|a, b| a.submitted.total_cmp(&b.submitted));
        let mean = |of: &dyn Fn(&MeasuredJob) -> f64| jobs.iter().map(of).sum::<f64>() / jobs.len().max(1) as f64;
        let width = mean(&|job| f64::from(job.width)).clamp(1.0, f64::from(slots.max(1)));
        // Jobs of other classes use their part of the slots.
        let others: f64 = [Class::Low, Class::Normal]
            .iter()
            .map(|class| {
                self.rate(*class) * self.jobs[*class as usize].iter().map(MeasuredJob::work).sum::<f64>()
                    / self.jobs[*class as usize].len().max(1) as f64
            })
            .sum();
        let free = (f64::from(slots.max(1)) - others).max(width);
        let servers = ((free / width).round() as usize).max(1);
        let first = jobs.first().map_or(0.0, |job| job.submitted);
        let service =
            |job: &MeasuredJob| (job.work() + job.sprinted * (marginal - 1.0)) / f64::from(job.width.max(1)).min(width);
        let span = (jobs.last().map_or(0.0, |job| job.submitted) - first).max(1e-3);
        let busy: f64 = jobs.iter().map(service).sum();
        let extra = (mean(&|job| job.cores) * settings.sprint.boost * width).max(1e-6);
        Window {
            policy: SprintPolicy {
                timeout: self.after,
                budget: settings.sprint.budget / extra,
                refill: settings.sprint.refill / extra,
                rate: 1.0 + settings.sprint.boost,
            },
            load: busy / span / servers as f64,
            marginal,
            response: mean(&|job| job.response),
            servers,
            jobs: jobs.iter().map(|job| (job.submitted - first, service(job))).collect(),
        }
    }

    /// Searches for the best age with the jobs of the windows.
    fn search(&mut self, marginal: f64, settings: &Settings) {
        let Some(last) = self.windows.back() else { return };
        let windows: Vec<&Window> = self.windows.iter().collect();
        // Launches, consecutive stages, and other jobs make responses longer than the simulated ones.
        let simulated: f64 = windows.iter().map(|window| window.mean(&window.policy, window.marginal).0).sum();
        let stretch = (windows.iter().map(|window| window.response).sum::<f64>() / simulated.max(1e-6))
            .clamp(1.0 / STRETCH, STRETCH);
        let profiled: Vec<ProfiledPolicy> = windows.iter().map(|window| window.profiled()).collect();
        let respond = |place: usize, rate: f64| stretch * windows[place].mean(&windows[place].policy, rate).0;
        let unit = last.jobs.iter().map(|job| job.1).sum::<f64>() / last.jobs.len().max(1) as f64;
        let grey = GreyBoxModel::train(&profiled, respond, unit, 1);
        let target = settings.targets.of(Class::High).map(|target| target.as_secs_f64());
        let predict = |policy: &SprintPolicy| {
            let asked = ProfiledPolicy { policy: *policy, load: last.load, marginal, response: 0.0 };
            let effective = grey.effective(&asked);
            let (mean, sprinted) = last.mean(policy, effective);
            (mean * stretch, sprinted, effective)
        };
        let longest = 3.0 * windows.iter().map(|window| window.response).fold(0.0, f64::max);
        let ranges = Ranges {
            timeout: Range { least: 0.0, most: longest },
            budget: Range::only(last.policy.budget),
            refill: Range::only(last.policy.refill),
            rate: Range::only(last.policy.rate),
        };
        let cost = |policy: &SprintPolicy| {
            let (mean, sprinted, _) = predict(policy);
            match target {
                Some(target) if mean <= target => sprinted / unit.max(1e-9),
                Some(target) => 100.0 * mean / target,
                None => mean,
            }
        };
        let (mut found, mut least) = anneal(&ranges, POLICIES_TRIED, 1, cost);
        // Try both ends in any case.
        for timeout in [0.0, longest] {
            let end = SprintPolicy { timeout, ..found };
            if cost(&end) < least {
                (found, least) = (end, cost(&end));
            }
        }
        let (mean, sprinted, effective) = predict(&found);
        let how = match target {
            Some(target) if mean <= target => format!("the latest start with a mean response of {target} s"),
            Some(target) => format!("a mean response of {target} s cannot be reached"),
            None => "the shortest mean response".to_owned(),
        };
        self.why_sprint = format!(
            "jobs sprint once they are {:.1} s old: {how}; predicted are {mean:.1} s with {sprinted:.1} s of sprints, tasks \
             that sprint are {marginal:.2} times as fast and in effect {effective:.2}; {} windows of jobs were \
             examined",
            found.timeout,
            windows.len()
        );
        self.after = found.timeout;
    }
}
