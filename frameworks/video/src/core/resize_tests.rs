//! Tests of resources for waiting queries, with a simulated cluster around the scheduler. All free resources are
//! offered, and every worker starts one second after its launch.

use std::collections::{BTreeMap, BTreeSet};

use base::Time;
use proptest::prelude::*;
use sdk::v1::TaskState;

use super::tests::{Rig, submission};
use super::*;
use crate::pipeline::Config;

/// Event of a query's task.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Launched(f64),
    Killed,
}

struct Cluster {
    rig: Rig,
    /// Number of cores of each agent.
    agents: Vec<f64>,
    /// Agent, cores, and whether the worker has started, by task.
    tasks: BTreeMap<String, (usize, f64, bool)>,
    /// Events with their second, by query.
    steps: BTreeMap<String, Vec<(u64, Step)>>,
    second: u64,
}

/// Returns the NAME of a task id `video-NAME-RUN.START`.
fn query_of(task: &str) -> String {
    let name = task.strip_prefix("video-").and_then(|rest| rest.rsplit_once('-')).map(|(name, _)| name);
    name.unwrap_or_default().to_owned()
}

impl Cluster {
    fn new(agents: Vec<f64>) -> Cluster {
        let rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
        Cluster { rig, agents, tasks: BTreeMap::new(), steps: BTreeMap::new(), second: 0 }
    }

    fn submit(&mut self, queries: &[(String, f64)]) {
        let all = queries.iter().map(|(name, max_lag)| submission(name, *max_lag)).collect();
        assert!(matches!(self.rig.ask(Question::Submit(all)), Answer::Done));
    }

    fn free(&self, agent: usize) -> f64 {
        self.agents[agent] - self.tasks.values().filter(|task| task.0 == agent).map(|task| task.1).sum::<f64>()
    }

    /// Carries out launches and kills. The cores of a killed task are free at once.
    fn take(&mut self) {
        for (task, cores, agent) in self.rig.sent_where() {
            let steps = self.steps.entry(query_of(&task)).or_default();
            if cores > 0.0 {
                let agent = agent.trim_start_matches('A').parse().unwrap();
                steps.push((self.second, Step::Launched(cores)));
                self.tasks.insert(task, (agent, cores, false));
            } else if self.tasks.remove(&task).is_some() {
                steps.push((self.second, Step::Killed));
                self.rig.update(&task, TaskState::TaskKilled);
            }
        }
    }

    /// Simulates one second: workers start and report that they keep up, and free resources are offered.
    fn pass(&mut self) {
        self.second += 1;
        self.rig.pass(1);
        self.take();
        for (task, up) in self.tasks.iter().map(|(task, t)| (task.clone(), t.2)).collect::<Vec<_>>() {
            if up {
                let position = self.second as f64;
                let report = Report { position, lag: 0.1, config: Some(Config::GOLDEN), ..Report::default() };
                self.rig.ask(Question::Report { task, report });
            } else {
                self.rig.ask(Question::Hello { task: task.clone(), position: None });
                self.tasks.get_mut(&task).unwrap().2 = true;
            }
        }
        self.take();
        let offers: Vec<(String, f64)> = (0..self.agents.len())
            .map(|agent| (format!("A{agent}"), (self.free(agent) * 1000.0).round() / 1000.0))
            .filter(|(_, free)| *free > 0.0)
            .collect();
        let offers: Vec<(&str, f64)> = offers.iter().map(|(agent, free)| (agent.as_str(), *free)).collect();
        if !offers.is_empty() {
            self.rig.offers_of(&offers);
        }
        self.take();
    }

    fn waiting(&mut self) -> BTreeSet<String> {
        let queries = self.rig.status().queries;
        queries.into_iter().filter(|q| q.state == State::Waiting).map(|q| q.name).collect()
    }

    /// Checks that no agent is overcommitted.
    fn check(&self) {
        for agent in 0..self.agents.len() {
            assert!(self.free(agent) > -1e-6, "agent {agent} holds {} too much", -self.free(agent));
        }
    }

    /// Checks that no query is replaced twice within this many seconds.
    fn replaced_at_most_every(&self, seconds: u64) {
        for (query, steps) in &self.steps {
            let kills: Vec<u64> = steps.iter().filter(|(_, step)| *step == Step::Killed).map(|(at, _)| *at).collect();
            let soon = kills.windows(2).find(|pair| pair[1] - pair[0] < seconds);
            assert!(soon.is_none(), "{query}: {steps:?}");
        }
    }
}

fn names(prefix: &str, count: usize, max_lag: f64) -> Vec<(String, f64)> {
    (0..count).map(|n| (format!("{prefix}{n:02}"), max_lag)).collect()
}

/// Four queries hold an agent each, then twelve more are submitted. The course of events is scripted.
#[test]
fn many_that_wait_start_soon_and_tasks_shrink_once() {
    let mut cluster = Cluster::new(vec![1.0; 4]);
    cluster.submit(&names("old", 4, 60.0));
    (0..20).for_each(|_| cluster.pass());
    assert!(cluster.steps.values().all(|steps| matches!(steps.as_slice(), [(_, Step::Launched(_))])));
    cluster.submit(&names("new", 12, 2.0));
    let mut log = Vec::new();
    for _ in 0..40 {
        let before = cluster.waiting().len();
        cluster.pass();
        cluster.check();
        let after = cluster.waiting().len();
        if before != after {
            log.push(format!("{} s: {before} wait, then {after}", cluster.second - 20));
        }
    }
    assert_eq!(log, ["4 s: 12 wait, then 4", "7 s: 4 wait, then 0"], "{:?}", cluster.steps);
    cluster.replaced_at_most_every(30);
    // The cheap configuration takes 0.1 cores, and the goals permit it.
    let shrunk = cluster.steps.values().filter(|steps| steps.iter().any(|(_, step)| *step == Step::Killed)).count();
    assert!(shrunk <= 2, "as few as it takes: {:?}", cluster.steps);
    let status = cluster.rig.status();
    assert!(status.queries.iter().all(|q| q.state == State::Running && q.lag < 2.0), "{status:?}");
    assert!(status.queries.iter().all(|q| q.quality >= q.goals.min_quality), "goals are kept: {status:?}");
}

/// A query that cannot pause keeps its task as long as another one that can pause has cores to release.
#[test]
fn tasks_of_queries_that_can_pause_shrink_first() {
    let mut cluster = Cluster::new(vec![2.0]);
    cluster.submit(&[("hasty".to_owned(), 1.0), ("patient".to_owned(), 60.0)]);
    (0..20).for_each(|_| cluster.pass());
    cluster.submit(&names("new", 2, 2.0));
    (0..20).for_each(|_| cluster.pass());
    assert!(cluster.waiting().is_empty());
    assert_eq!(cluster.steps["hasty"].len(), 1, "{:?}", cluster.steps);
    assert_eq!(cluster.steps["patient"].len(), 3, "{:?}", cluster.steps);
}

/// If the least sizes of all queries do not fit, all share evenly, down to the smallest task.
#[test]
fn even_shares_when_the_least_of_all_does_not_fit() {
    let mut cluster = Cluster::new(vec![0.5]);
    cluster.submit(&names("old", 2, 60.0));
    (0..20).for_each(|_| cluster.pass());
    cluster.submit(&names("new", 8, 60.0));
    (0..120).for_each(|_| cluster.pass());
    cluster.check();
    assert!(cluster.waiting().is_empty(), "{:?}", cluster.waiting());
    cluster.replaced_at_most_every(30);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// For any arrivals: agents are never overcommitted, tasks are not replaced often, and every waiting query starts
    /// within a minute of the last arrival if the least sizes of all fit.
    #[test]
    fn all_start_in_bounded_time(
        agents in prop::collection::vec(prop::sample::select(vec![0.5, 1.0, 2.0]), 1..5),
        // By second; the lag goals decide which queries can pause.
        arrivals in prop::collection::vec((0..60u64, prop::sample::select(vec![1.0, 15.0, 120.0])), 1..20),
    ) {
        // The cheap configuration takes 0.1 cores. The rest of each agent may be less than that.
        let fits: usize = agents.iter().map(|cores| (cores / 0.1) as usize - 1).sum();
        let arrivals = &arrivals[..arrivals.len().min(fits)];
        let mut cluster = Cluster::new(agents);
        for second in 0..120 {
            let now = arrivals.iter().enumerate().filter(|(_, (at, _))| *at == second);
            let now: Vec<(String, f64)> = now.map(|(n, (_, max_lag))| (format!("q{n:02}"), *max_lag)).collect();
            if !now.is_empty() {
                cluster.submit(&now);
            }
            cluster.pass();
            cluster.check();
        }
        let waiting = cluster.waiting();
        prop_assert!(waiting.is_empty(), "{waiting:?} of {}: {:?}", arrivals.len(), cluster.steps);
        cluster.replaced_at_most_every(10);
    }
}
