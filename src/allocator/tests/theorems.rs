//! Theorems of dominant resource fairness, shown on the allocator itself (Ghodsi et al., NSDI 2011), and the closed
//! forms of Mesos's paper (Hindman et al., NSDI 2011, table 2).
//!
//! Users run as many tasks of one size as they can: a user that is offered free resources launches one task, and
//! returns the rest at once. Tasks cannot be divided, so each property holds except for a few tasks; how many follows
//! from the sizes and is stated with each property.
//!
//! * Sharing incentive: no user has less than with 1/n of the cluster.
//! * Envy-freeness: no user could run more tasks with the allocation of another.
//! * Strategy-proofness: no user runs more useful tasks by asking for other amounts than needed.
//! * Pareto efficiency: at the end no user's task fits into what is left.

use std::collections::BTreeSet;

use allocator::{AgentOptions, Allocator, Config, Filter, FrameworkOptions, Held, Holder};
use base::{AgentId, FrameworkId, Time};
use proptest::prelude::*;
use resources::{Amount, Resource, Resources, Role};

/// Demand of one task: cpus and mem.
type Demand = [i64; 2];

fn set(demand: Demand) -> Resources {
    let [cpus, mem] = demand.map(Amount::from_units);
    [Resource::scalar("cpus", cpus), Resource::scalar("mem", mem)].into_iter().collect()
}

fn framework(at: usize) -> FrameworkId {
    FrameworkId::new(&format!("user{at}")).unwrap()
}

fn add_user(allocator: &mut Allocator, at: usize) {
    let options = FrameworkOptions { roles: BTreeSet::from([Role::star()]), ..FrameworkOptions::default() };
    allocator.add_framework(&framework(at), &options, true, &[]);
}

fn agent(at: usize) -> AgentId {
    AgentId::new(&format!("s{at}")).unwrap()
}

/// Fills a cluster. Returns how many tasks each user runs in the end, and the order in which users were served.
fn fill(capacity: Demand, demands: &[Demand]) -> (Vec<i64>, Vec<usize>) {
    let mut allocator = Allocator::new(Config { min_allocatable: Vec::new(), ..Config::default() });
    allocator.add_agent(&agent(0), AgentOptions::default(), &set(capacity), &[]);
    (0..demands.len()).for_each(|at| add_user(&mut allocator, at));
    let mut tasks = vec![0; demands.len()];
    let mut picks = Vec::new();
    let now = Time::from_secs(1);
    loop {
        let offers = allocator.allocate(now);
        let [offer] = &offers[..] else { return (tasks, picks) };
        let user = (0..demands.len()).find(|at| framework(*at) == offer.framework).unwrap();
        let holder = Holder { framework: &offer.framework, role: &offer.role, agent: &offer.agent };
        let task = set(demands[user]);
        if offer.resources.contains(&task) {
            allocator.mark_offered_used(holder, &task);
            allocator.recover(holder, &(&*offer.resources - &task), Held::Offered, None, now);
            tasks[user] += 1;
            picks.push(user);
        } else {
            let never = Some(Filter { refuse: Filter::MAX_REFUSE });
            allocator.recover(holder, &offer.resources, Held::Offered, never, now);
        }
    }
}

fn share(capacity: Demand, tasks: f64, demand: Demand) -> f64 {
    (0..2).map(|r| tasks * demand[r] as f64 / capacity[r] as f64).fold(0.0, f64::max)
}

/// Returns the number of tasks that fit into some amounts.
fn fitting(amounts: [f64; 2], demand: Demand) -> f64 {
    (0..2).map(|r| amounts[r] / demand[r] as f64).fold(f64::INFINITY, f64::min)
}

/// Generates a cluster, and two to four users whose largest demand is four times the smallest.
fn clusters() -> impl Strategy<Value = (Demand, Vec<Demand>)> {
    let amount = || 300..900_i64;
    let demand = || (1..=4_i64, 1..=4_i64).prop_map(|(cpus, mem)| [cpus, mem]);
    ((amount(), amount()).prop_map(|(cpus, mem)| [cpus, mem]), proptest::collection::vec(demand(), 2..5))
}

/// Returns the largest dominant share of a single task.
fn step(capacity: Demand, demands: &[Demand]) -> f64 {
    demands.iter().map(|demand| share(capacity, 1.0, *demand)).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sharing_incentive((capacity, demands) in clusters()) {
        let (tasks, _) = fill(capacity, &demands);
        // When the first user is stopped, shares differ by at most one task and add up to all but one task.
        let slack = 2.0 * step(capacity, &demands);
        for (tasks, demand) in tasks.iter().zip(&demands) {
            let fair = 1.0 / demands.len() as f64;
            prop_assert!(share(capacity, *tasks as f64, *demand) >= fair - slack, "{tasks} of {demand:?}");
        }
    }

    #[test]
    fn envy_freeness((capacity, demands) in clusters()) {
        let (tasks, _) = fill(capacity, &demands);
        // One task while both still run; after one is stopped for lack of a resource, the other can take four of its
        // own.
        let slack = 6.0 * step(capacity, &demands);
        for (i, own) in demands.iter().enumerate() {
            for (j, other) in demands.iter().enumerate() {
                let bundle = [0, 1].map(|r| (tasks[j] * other[r]) as f64);
                let envied = share(capacity, fitting(bundle, *own), *own);
                let has = share(capacity, tasks[i] as f64, *own);
                prop_assert!(envied <= has + slack, "{i} has {has}, and {envied} with what {j} has");
            }
        }
    }

    #[test]
    fn strategy_proofness((capacity, demands) in clusters(), lie in (1..=4_i64, 1..=4_i64)) {
        let (honest, _) = fill(capacity, &demands);
        let mut told = demands.clone();
        told[0] = [lie.0, lie.1];
        let (lying, _) = fill(capacity, &told);
        let got = [0, 1].map(|r| (lying[0] * told[0][r]) as f64);
        let useful = share(capacity, fitting(got, demands[0]), demands[0]);
        let before = share(capacity, honest[0] as f64, demands[0]);
        let slack = 6.0 * step(capacity, &demands).max(step(capacity, &told));
        prop_assert!(useful <= before + slack, "{useful} by lying, {before} else");
    }

    #[test]
    fn pareto_efficiency((capacity, demands) in clusters()) {
        let (tasks, _) = fill(capacity, &demands);
        let left = [0, 1].map(|r| {
            capacity[r] - tasks.iter().zip(&demands).map(|(tasks, demand)| tasks * demand[r]).sum::<i64>()
        });
        prop_assert!(left.iter().all(|left| *left >= 0));
        for demand in &demands {
            prop_assert!((0..2).any(|r| demand[r] > left[r]), "a task of {demand:?} would fit into {left:?}");
        }
    }

    #[test]
    fn one_resource_is_shared_evenly(capacity in 300..900_i64, users in 2..6_usize) {
        let (tasks, _) = fill([capacity, 1_000_000], &vec![[1, 1]; users]);
        let (least, most) = (tasks.iter().min().unwrap(), tasks.iter().max().unwrap());
        prop_assert!(most - least <= 1 && tasks.iter().sum::<i64>() == capacity);
    }
}

#[test]
fn the_example_of_nine_cpus_and_eighteen_gigabytes() {
    let (tasks, picks) = fill([9, 18], &[[1, 4], [3, 1]]);
    assert_eq!(tasks, [3, 2]);
    for (tasks, demand) in tasks.iter().zip([[1, 4], [3, 1]]) {
        assert!((share([9, 18], *tasks as f64, demand) - 2.0 / 3.0).abs() < 1e-9);
    }
    // After the first pick, which a tie decides, the user with the least share is next (table 1 of the paper).
    let (mut shares, mut seen) = ([0.0; 2], Vec::new());
    for pick in picks {
        assert!(shares[pick] <= shares[1 - pick], "{pick} after {seen:?}");
        shares[pick] += [4.0 / 18.0, 3.0 / 9.0][pick];
        seen.push(pick);
    }
}

// Closed forms of Mesos's paper.

/// A fixed sequence of numbers above 0 and up to 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        1.0 - base::fraction(base::split_mix(&mut self.0))
    }
}

/// Times of a newcomer's job, in mean task durations T: until it has its k slots, and until it has done `work`
/// slot-durations, if it uses slots as they are offered (elastic) or waits for all of them (rigid).
struct Job {
    ramp_up: f64,
    elastic: f64,
    rigid: f64,
    /// Fraction of the time for which a rigid job holds slots in which it works.
    utilisation: f64,
}

/// Runs the job of a newcomer that is entitled to k slots, all taken by another framework's tasks, which end after
/// `rest`.
fn job(k: usize, beta: f64, mut rest: impl FnMut() -> f64) -> Job {
    let mut allocator = Allocator::new(Config::default());
    let (old, new) = (framework(0), framework(1));
    for at in 0..k {
        let used = [(old.clone(), Role::star(), set([1, 64]))];
        allocator.add_agent(&agent(at), AgentOptions::default(), &set([1, 64]), &used);
    }
    add_user(&mut allocator, 0);
    add_user(&mut allocator, 1);
    let mut ends: Vec<(f64, usize)> = (0..k).map(|at| (rest(), at)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut got = Vec::new();
    for (end, at) in ends {
        let now = Time::from_epoch(std::time::Duration::from_secs_f64(1000.0 + end));
        let (agent, role) = (agent(at), Role::star());
        let holder = Holder { framework: &old, role: &role, agent: &agent };
        allocator.recover(holder, &set([1, 64]), Held::Used, None, now);
        // The newcomer accepts; the old framework, whose job is over, refuses.
        for offer in allocator.allocate(now) {
            let holder = Holder { framework: &offer.framework, role: &offer.role, agent: &offer.agent };
            if offer.framework == new {
                allocator.mark_offered_used(holder, &offer.resources);
                got.push(end);
            } else {
                let never = Some(Filter { refuse: Filter::MAX_REFUSE });
                allocator.recover(holder, &offer.resources, Held::Offered, never, now);
                for offer in allocator.allocate(now) {
                    assert_eq!(offer.framework, new);
                    let holder = Holder { framework: &new, role: &offer.role, agent: &offer.agent };
                    allocator.mark_offered_used(holder, &offer.resources);
                    got.push(end);
                }
            }
        }
    }
    assert_eq!(got.len(), k, "every slot that is freed is offered at once");
    let ramp_up = got[k - 1];
    let work = beta * k as f64;
    // Slots work until the same instant: k * end - sum(got) = work, if that is after the last slot was offered.
    let elastic = (1..=k).map(|n| (work + got[..n].iter().sum::<f64>()) / n as f64).fold(f64::INFINITY, f64::min);
    let rigid = ramp_up + beta;
    Job { ramp_up, elastic, rigid, utilisation: work / (k as f64 * rigid - got.iter().sum::<f64>()) }
}

/// Returns the mean of many jobs.
fn mean(k: usize, beta: f64, mut rest: impl FnMut() -> f64) -> Job {
    const RUNS: usize = 300;
    let mut sum = Job { ramp_up: 0.0, elastic: 0.0, rigid: 0.0, utilisation: 0.0 };
    for _ in 0..RUNS {
        let job = job(k, beta, &mut rest);
        sum.ramp_up += job.ramp_up / RUNS as f64;
        sum.elastic += job.elastic / RUNS as f64;
        sum.rigid += job.rigid / RUNS as f64;
        sum.utilisation += job.utilisation / RUNS as f64;
    }
    sum
}

fn near(value: f64, wanted: f64, part: f64) {
    assert!((value - wanted).abs() <= part * wanted, "{value}, but {wanted} was to be expected");
}

#[test]
fn closed_forms_for_constant_task_durations() {
    let mut numbers = Numbers(1);
    for k in [10, 40] {
        let job = mean(k, 1.0, || numbers.next());
        // Tasks of one length end evenly within T: the last of k after T k/(k+1), which the paper bounds by T.
        near(job.ramp_up, k as f64 / (k + 1) as f64, 0.02);
        near(job.elastic, 0.5 + 1.0, 0.02);
        near(job.rigid, k as f64 / (k + 1) as f64 + 1.0, 0.02);
        // The paper has beta / (1/2 + beta).
        near(job.utilisation, 1.0 / (k as f64 / (k + 1) as f64 - 0.5 + 1.0), 0.02);
    }
}

#[test]
fn closed_forms_for_exponential_task_durations() {
    let mut numbers = Numbers(2);
    for k in [10, 40] {
        let beta = 5.0;
        let job = mean(k, beta, || -numbers.next().ln());
        let harmonic: f64 = (1..=k).map(|n| 1.0 / n as f64).sum();
        // The paper writes ln k for the harmonic number.
        near(job.ramp_up, harmonic, 0.04);
        near(job.elastic, 1.0 + beta, 0.02);
        near(job.rigid, harmonic + beta, 0.02);
        near(job.utilisation, beta / (harmonic - 1.0 + beta), 0.04);
    }
}
