//! Tests the grey-box model of sprints on policies that it was not trained on: nine workloads, three mechanisms, and a
//! modelled system in place of a machine. The model itself is in [`crate::priority::sprinting`].

mod system;
mod workload;

use super::random::Random;
use crate::priority::sprinting::{
    Arrivals, GreyBoxModel, ProfiledPolicy, Range, Ranges, SprintPolicy, anneal, direct, simulate,
};

pub use system::{MECHANISMS, Mechanism, run};
pub use workload::{Job, WORKLOADS, Workload};

/// The extent of the profiling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Number of policies that are profiled, each at its own load.
    pub trained: usize,
    /// Number of policies that are held out.
    pub held_out: usize,
    /// Number of jobs of a run.
    pub jobs: usize,
    /// Number of runs of which the mean is taken.
    pub runs: u64,
}

/// The effort of the published table.
pub const EFFORT: Effort = Effort { trained: 160, held_out: 24, jobs: 2500, runs: 4 };

/// Number of servers of the system.
const SERVERS: usize = 4;

/// Target of the search, as a fraction of the response without sprints.
const TARGET: f64 = 0.75;

/// The results of a workload on a mechanism.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Name of the workload.
    pub workload: &'static str,
    /// Mechanism of the sprints.
    pub mechanism: Mechanism,
    /// Mean marginal rate of the held-out policies.
    pub marginal: f64,
    /// Relative errors of the grey-box model on held-out policies.
    pub grey: Errors,
    /// Relative errors of the simulator with the marginal rate.
    pub white: Errors,
    /// Relative errors of the forest that predicts responses.
    pub black: Errors,
    /// Observed response with the policy that annealing chose, divided by the target.
    pub of_target: f64,
    /// Capacity that this policy lends, divided by that of the cheapest held-out policy that meets the target; `None`
    /// if none does.
    pub of_cheapest: Option<f64>,
}

/// Relative errors on held-out policies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors(Vec<f64>);

impl Errors {
    /// Returns the median error.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Returns the largest error.
    pub fn worst(&self) -> f64 {
        self.quantile(1.0)
    }

    fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
    }
}

/// One workload on one mechanism, with recorded arrivals that every run replays.
struct Bench<'a> {
    workload: &'a Workload,
    mechanism: Mechanism,
    effort: Effort,
    /// Arrival times, in units of their mean distance.
    recorded: Vec<f64>,
    /// Service times of jobs without sprints, in seconds, as a profiler measures them: of other jobs than those that
    /// the system runs.
    services: Vec<Vec<f64>>,
    seed: u64,
}

impl<'a> Bench<'a> {
    fn new(workload: &'a Workload, mechanism: Mechanism, effort: Effort, trace: &str, seed: u64) -> Bench<'a> {
        let mut random = Random::new(seed, trace);
        let mut now = 0.0;
        let mut next = || {
            // Burstier than a Poisson process: a tenth of the distances are long.
            now += if random.part() < 0.1 { random.exponential(3.0) } else { random.exponential(7.0 / 9.0) };
            now
        };
        let recorded = (0..effort.jobs).map(|_| next()).collect();
        let services = |run: u64| {
            let mut random = Random::new(seed, &format!("{trace} profile {run}"));
            (0..effort.jobs).map(|_| workload.draw(&mut random).service()).collect()
        };
        let services = (0..effort.runs).map(services).collect();
        let seed = base::scramble(seed) ^ trace.len() as u64;
        Bench { workload, mechanism, effort, recorded, services, seed }
    }

    fn instants(&self, load: f64) -> Vec<f64> {
        let distance = self.workload.mean / (load * SERVERS as f64);
        self.recorded.iter().map(|at| at * distance).collect()
    }

    fn mean(&self, of: impl Fn(u64) -> f64) -> f64 {
        (0..self.effort.runs).map(of).sum::<f64>() / self.effort.runs as f64
    }

    /// Returns the mean response of the system.
    fn observe(&self, policy: &SprintPolicy, load: f64) -> f64 {
        let at = self.instants(load);
        let seed = |n: u64| base::scramble(self.seed.wrapping_add(n));
        self.mean(|n| run(self.workload, self.mechanism, &at, SERVERS, policy, seed(n)).mean)
    }

    /// Returns the mean response of the simple simulator.
    fn simulated(&self, policy: &SprintPolicy, load: f64, effective: f64) -> f64 {
        let at = self.instants(load);
        self.mean(|n| {
            let service = &self.services[n as usize];
            simulate(&Arrivals { at: &at, service, servers: SERVERS }, policy, effective).mean
        })
    }

    /// Returns the marginal rate: how many times as fast jobs are that sprint alone to the end.
    fn marginal(&self, rate: f64) -> f64 {
        let apart: Vec<f64> = (0..200).map(|n| f64::from(n) * self.workload.mean * 100.0).collect();
        let endless = SprintPolicy { timeout: 0.0, budget: 1e12, refill: SERVERS as f64, rate };
        let alone = |timeout: f64| {
            run(self.workload, self.mechanism, &apart, SERVERS, &SprintPolicy { timeout, ..endless }, self.seed).mean
        };
        alone(1e12) / alone(0.0)
    }

    /// Draws policies, each at its own load, and observes their responses.
    fn profile(&self, count: usize, seed: u64) -> Vec<ProfiledPolicy> {
        let mut random = Random::new(seed, "policies");
        let one = |n: usize| {
            let policy = ranges(self.workload).draw(base::scramble(seed).wrapping_add(n as u64));
            let load = 0.4 + 0.45 * random.part();
            let (marginal, response) = (self.marginal(policy.rate), self.observe(&policy, load));
            ProfiledPolicy { policy, load, marginal, response }
        };
        (0..count).map(one).collect()
    }
}

/// Returns the ranges of the policies of the study.
fn ranges(workload: &Workload) -> Ranges {
    Ranges {
        timeout: Range { least: 0.0, most: 3.0 * workload.mean },
        budget: Range { least: workload.mean, most: 20.0 * workload.mean },
        refill: Range { least: 0.1, most: 2.0 },
        rate: Range { least: 1.2, most: 2.5 },
    }
}

/// Compares all workloads on all mechanisms.
pub fn study(effort: Effort, seed: u64) -> Vec<Compared> {
    let all = WORKLOADS.iter().flat_map(|workload| MECHANISMS.map(|mechanism| (workload, mechanism)));
    all.map(|(workload, mechanism)| compare(workload, mechanism, effort, seed)).collect()
}

/// Compares the models for a workload on a mechanism: trains them, and tests them on policies and arrivals that they
/// have not seen.
pub fn compare(workload: &Workload, mechanism: Mechanism, effort: Effort, seed: u64) -> Compared {
    let profiler = Bench::new(workload, mechanism, effort, "profiled", seed);
    let profiled = profiler.profile(effort.trained, seed);
    let respond = |place: usize, rate: f64| profiler.simulated(&profiled[place].policy, profiled[place].load, rate);
    let grey = GreyBoxModel::train(&profiled, respond, workload.mean, seed);
    let black = direct(&profiled, workload.mean, seed);

    let other = Bench::new(workload, mechanism, effort, "held out", seed);
    let held_out = other.profile(effort.held_out, seed.wrapping_add(1 << 32));
    let errors = |predict: &dyn Fn(&ProfiledPolicy) -> f64| {
        Errors(held_out.iter().map(|one| (predict(one) / one.response - 1.0).abs()).collect())
    };
    let marginal = held_out.iter().map(|one| one.marginal).sum::<f64>() / held_out.len().max(1) as f64;
    let (of_target, of_cheapest) = searched(&other, &grey, &held_out, seed);
    Compared {
        workload: workload.name,
        mechanism,
        marginal,
        grey: errors(&|one| other.simulated(&one.policy, one.load, grey.effective(one))),
        white: errors(&|one| other.simulated(&one.policy, one.load, one.marginal)),
        black: errors(&|one| black.as_ref().map_or(f64::NAN, |black| black(one))),
        of_target,
        of_cheapest,
    }
}

/// Returns the capacity that a policy may lend in the long run, in servers.
fn lent(policy: &SprintPolicy) -> f64 {
    policy.refill * (policy.rate - 1.0)
}

/// Searches for the policy that lends least with which responses at a load of 0.75 are three quarters of those without
/// sprints. Returns the observed response divided by the target, and the lent capacity divided by that of the cheapest
/// held-out policy that meets the target.
fn searched(bench: &Bench<'_>, grey: &GreyBoxModel, held_out: &[ProfiledPolicy], seed: u64) -> (f64, Option<f64>) {
    let load = 0.75;
    let never = SprintPolicy { timeout: 1e12, budget: 0.0, refill: 0.0, rate: 1.0 };
    let target = TARGET * bench.observe(&never, load);
    let rates: Vec<(f64, f64)> = (0..=13).map(|n| 1.2 + 0.1 * f64::from(n)).map(|r| (r, bench.marginal(r))).collect();
    let marginal = |rate: f64| {
        let after = rates.iter().position(|(known, _)| *known >= rate).unwrap_or(rates.len() - 1).max(1);
        let ((a, at_a), (b, at_b)) = (rates[after - 1], rates[after]);
        at_a + (at_b - at_a) * ((rate - a) / (b - a)).clamp(0.0, 1.0)
    };
    let cost = |policy: &SprintPolicy| {
        let asked = ProfiledPolicy { policy: *policy, load, marginal: marginal(policy.rate), response: 0.0 };
        let response = bench.simulated(policy, load, grey.effective(&asked));
        if response > target { 10.0 * response / target } else { lent(policy) }
    };
    let (found, _) = anneal(&ranges(bench.workload), 150, seed, cost);
    let meets = held_out.iter().filter(|one| bench.observe(&one.policy, load) <= target);
    let cheapest = meets.map(|one| lent(&one.policy)).reduce(f64::min);
    (bench.observe(&found, load) / target, cheapest.map(|cheapest| lent(&found) / cheapest))
}

/// Returns the errors of the three models over all workloads and mechanisms.
pub fn overall(all: &[Compared]) -> [Errors; 3] {
    let of = |errors: fn(&Compared) -> &Errors| Errors(all.iter().flat_map(|one| errors(one).0.clone()).collect());
    [of(|one| &one.grey), of(|one| &one.white), of(|one| &one.black)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Effort = Effort { trained: 24, held_out: 8, jobs: 400, runs: 2 };

    #[test]
    fn a_sprint_never_makes_a_job_slower_than_without_in_any_mechanism() {
        for mechanism in MECHANISMS {
            let bench = Bench::new(&WORKLOADS[0], mechanism, SMALL, "t", 1);
            let never = SprintPolicy { timeout: 1e12, budget: 0.0, refill: 0.0, rate: 2.0 };
            let always = SprintPolicy { timeout: 0.0, budget: 1e12, refill: 4.0, rate: 2.0 };
            let (without, with) = (bench.observe(&never, 0.7), bench.observe(&always, 0.7));
            assert!(with < 0.9 * without, "{}: {with} of {without}", mechanism.name());
            assert!((1.2..2.0).contains(&bench.marginal(2.0)), "{}", mechanism.name());
            // Without sprints the simple simulator models the whole system.
            let simulated = bench.simulated(&never, 0.6, 1.0);
            assert!((simulated / bench.observe(&never, 0.6) - 1.0).abs() < 0.1, "{}", mechanism.name());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_study() {
        let once = || compare(&WORKLOADS[1], Mechanism::Cores, SMALL, 7);
        assert_eq!(once(), once());
    }

    #[test]
    fn the_model_is_nearer_than_the_marginal_rate() {
        let effort = Effort { trained: 40, held_out: 16, jobs: 1200, runs: 2 };
        let compared = compare(&WORKLOADS[6], Mechanism::Cores, effort, 1);
        assert!(compared.grey.median() < compared.white.median(), "{compared:?}");
        assert!(compared.grey.median() < 0.06 && compared.of_target < 1.15, "{compared:?}");
    }
}
