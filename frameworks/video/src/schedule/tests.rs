//! Tests properties of allocations and placements:
//!
//! 1. No more cores are given than there are, in total and on each agent, and no share is negative.
//! 2. Max-sum is no worse than fair in the sum, and max-min no worse than fair in the least utility.
//! 3. More cores never make the objective worse.
//! 4. Usable cores are not left over.
//! 5. Max-sum is within one step of the best division of the cores, also among queries that lag: the loss of a query
//!    between two corners of its hull is at most the difference of its qualities.
//! 6. A placed query stays, and a query without an agent gets one. No query moves without a gain over the threshold.

use proptest::prelude::*;

use super::*;
use crate::pipeline::Config;
use crate::profile::Point;

const HORIZON: Horizon = Horizon { seconds: 6.0 };

#[derive(Clone, Debug)]
struct Made {
    goals: Goals,
    points: Vec<Point>,
    lag: f64,
    correction: f64,
}

impl Made {
    fn demand(&self) -> Demand<'_> {
        Demand { goals: self.goals, points: &self.points, lag: self.lag, correction: self.correction }
    }
}

fn made() -> impl Strategy<Value = Made> {
    let point = (0.01_f64..1.0, 0.01_f64..0.3);
    let points = proptest::collection::vec(point, 1..6);
    let goals = (0.0_f64..1.0, 0.0_f64..20.0, 0.5_f64..2.0, 0.2_f64..2.0);
    (points, goals, 0.0_f64..30.0, 0.5_f64..2.0).prop_map(|(steps, goals, lag, correction)| {
        let (mut cores, mut quality) = (0.0, 0.0);
        let points = steps.into_iter().map(|(more_cores, more_quality)| {
            cores += more_cores;
            quality = (quality + more_quality * (1.0 - quality)).min(1.0);
            Point { config: Config::GOLDEN, quality, cores }
        });
        let (min_quality, max_lag, quality_weight, lag_weight) = goals;
        Made {
            goals: Goals { min_quality, max_lag, quality_weight, lag_weight },
            points: points.collect(),
            lag,
            correction,
        }
    })
}

fn sum(demands: &[Demand<'_>], shares: &[Share]) -> f64 {
    demands.iter().zip(shares).map(|(d, s)| d.utility(*s, HORIZON)).sum()
}

fn least(demands: &[Demand<'_>], shares: &[Share]) -> f64 {
    demands.iter().zip(shares).map(|(d, s)| d.utility(*s, HORIZON)).fold(f64::INFINITY, f64::min)
}

/// Returns the best sum of utilities over all divisions of the cores into hundredths.
fn best_division(demands: &[Demand<'_>], cores: f64) -> f64 {
    const PARTS: usize = 100;
    let worth = |demand: &Demand<'_>, parts: usize| {
        let cores = cores * parts as f64 / PARTS as f64;
        (0..demand.points.len()).map(|point| demand.utility(Share { point, cores }, HORIZON)).fold(f64::MIN, f64::max)
    };
    let mut best = [0.0; PARTS + 1];
    for demand in demands {
        let each: Vec<f64> = (0..=PARTS).map(|parts| worth(demand, parts)).collect();
        let with = |total: usize| (0..=total).map(|parts| best[total - parts] + each[parts]).fold(f64::MIN, f64::max);
        best = std::array::from_fn(with);
    }
    best[PARTS]
}

proptest! {
    #[test]
    fn allocations(made in proptest::collection::vec(made(), 1..8), cores in 0.0_f64..6.0) {
        let demands: Vec<Demand<'_>> = made.iter().map(Made::demand).collect();
        let of = |policy, objective, cores| allocate(&demands, cores, policy, objective, HORIZON);
        let best_sum = of(Policy::Videostorm, Objective::MaxSum, cores);
        let best_least = of(Policy::Videostorm, Objective::MaxMin, cores);
        let fair = of(Policy::Fair, Objective::MaxSum, cores);
        for shares in [&best_sum, &best_least, &fair] {
            let given: f64 = shares.iter().map(|s| s.cores).sum();
            prop_assert!(given <= cores + 1e-6, "{} of {}", given, cores);
            prop_assert!(shares.iter().all(|s| s.cores >= 0.0));
            let useful = |(d, s): (&Demand<'_>, &Share)| d.useful(s.point, HORIZON) - s.cores;
            let wanted: f64 = demands.iter().zip(shares.iter()).map(useful).filter(|w| *w > 0.0).sum();
            prop_assert!(given >= cores - 1e-6 || wanted < 1e-6, "{} of {} given, {} wanted", given, cores, wanted);
        }
        prop_assert!(least(&demands, &best_least) >= least(&demands, &fair) - 1e-6);
        let more = of(Policy::Videostorm, Objective::MaxMin, cores * 1.3);
        prop_assert!(least(&demands, &more) >= least(&demands, &best_least) - 1e-6);
        // The hull is exact but for its last step, which is worth no more than one query's best.
        let slack = demands.iter().map(|d| d.utility(Share { point: d.points.len() - 1, cores: d.useful(d.points.len() - 1, HORIZON) }, HORIZON) - d.utility(Share { point: 0, cores: 0.0 }, HORIZON)).fold(0.0, f64::max);
        prop_assert!(sum(&demands, &best_sum) >= sum(&demands, &fair) - slack - 1e-6);
    }

    #[test]
    fn max_sum_is_the_best_division(made in proptest::collection::vec(made(), 1..4), cores in 0.05_f64..3.0) {
        let demands: Vec<Demand<'_>> = made.iter().map(Made::demand).collect();
        let shares = allocate(&demands, cores, Policy::Videostorm, Objective::MaxSum, HORIZON);
        let spread = |d: &Demand<'_>| d.goals.of_quality(d.points[d.points.len() - 1].quality) - d.goals.of_quality(d.points[0].quality);
        let slack = demands.iter().map(spread).fold(0.0, f64::max);
        let best = best_division(&demands, cores);
        prop_assert!(sum(&demands, &shares) >= best - slack - 1e-6, "{} of {best}", sum(&demands, &shares));
    }

    #[test]
    fn decisions(
        made in proptest::collection::vec((made(), proptest::option::of(0_usize..4)), 1..12),
        cores in proptest::collection::vec(0.0_f64..3.0, 1..4),
    ) {
        let agents: Vec<AgentView> = cores.iter().map(|cores| AgentView { cores: *cores }).collect();
        let queries: Vec<QueryView<'_>> = made.iter().map(|(m, agent)| QueryView { demand: m.demand(), agent: *agent }).collect();
        for (policy, objective) in [
            (Policy::Videostorm, Objective::MaxSum),
            (Policy::Videostorm, Objective::MaxMin),
            (Policy::Fair, Objective::MaxSum),
        ] {
            let decided = decide(&agents, &queries, policy, objective, HORIZON);
            let mut given = vec![0.0; agents.len()];
            for (query, decision) in queries.iter().zip(&decided) {
                let agent = decision.agent.expect("there are agents");
                given[agent] += decision.share.cores;
                prop_assert!(query.agent.is_none_or(|a| a >= agents.len() || a == agent));
            }
            for (given, agent) in given.iter().zip(&agents) {
                prop_assert!(*given <= agent.cores + 1e-6);
            }
        }
    }

    #[test]
    fn moves(
        loads in proptest::collection::vec((0.1_f64..4.0, 0.0_f64..1.0, 0.0_f64..1.0), 1..6),
        part in 0.0_f64..1.0,
        patient in any::<bool>(),
    ) {
        let mut loads: Vec<Load> = loads.into_iter().map(|(cores, used, waits)| {
            Load { cores, used: cores * used, patient: cores * used * waits }
        }).collect();
        let cores = loads[0].used * part;
        loads[0].patient = if patient { loads[0].patient.max(cores) } else { loads[0].patient };
        let placing = PlacementRequest { cores, patient };
        if let Some(to) = better_place(&loads, placing, 0, 0.2) {
            prop_assert_ne!(to, 0);
            let mut own = loads[0];
            own.used -= cores;
            own.patient -= if patient { cores } else { 0.0 };
            let now = place_score(&own, placing).unwrap_or(0.0);
            prop_assert!(place_score(&loads[to], placing).expect("has room") > now + 0.2);
        }
        prop_assert_eq!(better_place(&loads[..1], placing, 0, 0.0), None);
    }
}

fn point(quality: f64, cores: f64) -> Point {
    Point { config: Config::GOLDEN, quality, cores }
}

#[test]
fn queries_that_can_wait_lend_cores_to_others() {
    let points = [point(0.5, 0.2), point(0.9, 1.0)];
    let demand =
        |max_lag| Demand { goals: Goals { max_lag, ..Default::default() }, points: &points, lag: 0.0, correction: 1.0 };
    let shares = allocate(&[demand(1.0), demand(300.0)], 1.0, Policy::Videostorm, Objective::MaxSum, HORIZON);
    assert_eq!((shares[0].point, shares[1].point), (1, 1), "{shares:?}");
    assert!(shares[0].cores > 0.8 && shares[1].cores < 0.2, "{shares:?}");
    let fair = allocate(&[demand(1.0), demand(300.0)], 1.0, Policy::Fair, Objective::MaxSum, HORIZON);
    assert_eq!((fair[0].point, fair[1].point), (0, 0), "{fair:?}");
}

/// A query that needs more cores than there are to catch up gets what is left by those that need less for the same
/// gain.
#[test]
fn a_query_that_lags_far_behind_is_not_starved() {
    let points = [point(0.6, 0.12), point(1.0, 0.5)];
    let goals = Goals::default();
    let at_ease = Demand { goals, points: &points, lag: 0.0, correction: 1.0 };
    let late = Demand { goals, points: &points, lag: 27.0, correction: 1.0 };
    let shares = allocate(&[at_ease, late], 0.6, Policy::Videostorm, Objective::MaxSum, HORIZON);
    assert!(shares[1].cores > 0.4, "{shares:?}");
}

#[test]
fn demand_that_is_more_than_profiled_is_corrected() {
    let points = [point(0.5, 0.2), point(0.9, 1.0)];
    let goals = Goals { max_lag: 0.0, ..Default::default() };
    let demand = |correction| Demand { goals, points: &points, lag: 0.0, correction };
    let pick =
        |correction| allocate(&[demand(correction)], 1.0, Policy::Videostorm, Objective::MaxSum, HORIZON)[0].point;
    assert_eq!((pick(1.0), pick(2.0)), (1, 0));
}

#[test]
fn the_minimum_quality_of_all_comes_first_when_the_least_counts() {
    let points = [point(0.3, 0.1), point(0.7, 0.4), point(1.0, 1.0)];
    let demand = || Demand {
        goals: Goals { min_quality: 0.6, max_lag: 0.5, ..Default::default() },
        points: &points,
        lag: 0.0,
        correction: 1.0,
    };
    let shares = allocate(&[demand(), demand(), demand()], 1.2, Policy::Videostorm, Objective::MaxMin, HORIZON);
    assert!(shares.iter().all(|s| s.point == 1), "{shares:?}");
}

/// Queries that can wait may have a share of 0 at first, although they need cores.
#[test]
fn queries_that_can_wait_do_not_all_land_on_one_agent() {
    let points = [point(0.5, 0.5), point(0.9, 2.0)];
    let goals = Goals { max_lag: 300.0, min_quality: 0.4, ..Default::default() };
    let demand = Demand { goals, points: &points, lag: 0.0, correction: 1.0 };
    let queries = vec![QueryView { demand, agent: None }; 16];
    let agents = [AgentView { cores: 2.0 }; 4];
    let decided = decide(&agents, &queries, Policy::Videostorm, Objective::MaxSum, HORIZON);
    let on = |agent| decided.iter().filter(|d| d.agent == Some(agent)).count();
    assert_eq!([0, 1, 2, 3].map(on), [4; 4]);
}

#[test]
fn the_score_of_a_place_is_the_mean_of_three_parts() {
    let near = |a: Option<f64>, b: f64| (a.expect("has room") - b).abs() < 1e-9;
    let load = |cores, used, patient| Load { cores, used, patient };
    let placing = |cores, patient| PlacementRequest { cores, patient };
    // Half of the free cores; a quarter of the agent left; no query there can wait.
    assert!(near(place_score(&load(4.0, 2.0, 0.0), placing(1.0, false)), (0.5 + 0.25 + 0.0) / 3.0));
    // The same placement beside queries that can wait, whose cores it could borrow.
    assert!(near(place_score(&load(4.0, 2.0, 2.0), placing(1.0, false)), (0.5 + 0.25 + 0.5) / 3.0));
    assert!(near(place_score(&load(4.0, 2.0, 2.0), placing(1.0, true)), (0.5 + 0.25 + 0.5) / 3.0));
    assert_eq!(place_score(&load(4.0, 3.5, 0.0), placing(1.0, false)), None);
}
