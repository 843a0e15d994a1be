//! Effects of policies and sorters on small clusters under virtual time: the plots of docs/allocation.md.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use std::collections::BTreeSet;
use std::time::Duration;

use allocator::fairness::{EndedOffer, OfferEnd};
use allocator::policies::{Adaptive, Policies, Refusing};
use allocator::{Allocator, Config, Filter, FrameworkOptions, Held, Holder, Offering, SorterKind};
use base::{FrameworkId, Time};
use plot::Lines;
use resources::{Resources, Role, parse_quantities};

use super::{agent, dotted, text};

/// A framework with an endless supply of tasks.
struct Worker {
    id: FrameworkId,
    task: Resources,
    lasts: u64,
    /// Seconds for which it holds an offer before it answers, and the number of tasks that it then launches from one
    /// offer.
    holds: u64,
    at_once: usize,
}

struct Story {
    allocator: Allocator,
    workers: Vec<Worker>,
    now: u64,
    /// Held offers with the time at which they were made, and running tasks with the time at which they end.
    held: Vec<(u64, Offering)>,
    running: Vec<(u64, Offering)>,
    started: usize,
    /// Agents that have not registered yet: one registers each second.
    coming: Vec<(usize, &'static str)>,
}

fn at(second: u64) -> Time {
    Time::from_secs(1_000_000 + second)
}

impl Story {
    fn new(config: Config, agents: &[&'static str], workers: Vec<Worker>) -> Story {
        let mut allocator = Allocator::new(config);
        for worker in &workers {
            let roles = BTreeSet::from([Role::star()]);
            let options = FrameworkOptions { roles, ..FrameworkOptions::default() };
            allocator.add_framework(&worker.id, &options, true, &[]);
        }
        for (number, total) in agents.iter().enumerate() {
            allocator.add_agent(&agent(number), Default::default(), &text(total), &[]);
        }
        Story { allocator, workers, now: 0, held: Vec::new(), running: Vec::new(), started: 0, coming: Vec::new() }
    }

    fn run(&mut self, seconds: u64) {
        for second in 0..seconds {
            self.now = second;
            self.allocator.set_time(at(second));
            if let Some((number, total)) = self.coming.pop() {
                self.allocator.add_agent(&agent(number), Default::default(), &text(total), &[]);
            }
            self.end_tasks();
            self.answer_held();
            for _ in 0..20 {
                let offers = self.allocator.allocate_all(at(second));
                if offers.is_empty() {
                    break;
                }
                offers.into_iter().for_each(|offer| self.offered(offer));
            }
        }
    }

    fn worker(&self, offer: &Offering) -> &Worker {
        self.workers.iter().find(|worker| worker.id == offer.framework).expect("only workers are offered anything")
    }

    fn end_tasks(&mut self) {
        let now = self.now;
        let (ended, running) = std::mem::take(&mut self.running).into_iter().partition(|(end, _)| *end <= now);
        self.running = running;
        for (_, task) in ended {
            let holder = Holder { framework: &task.framework, role: &task.role, agent: &task.agent };
            self.allocator.recover(holder, &task.resources, Held::Used, None, at(now));
        }
    }

    fn offered(&mut self, offer: Offering) {
        if self.worker(&offer).holds == 0 { self.answer(offer, 0) } else { self.held.push((self.now, offer)) }
    }

    fn answer_held(&mut self) {
        for (since, offer) in std::mem::take(&mut self.held) {
            let age = self.now - since;
            let limit = self.allocator.offer_timeout(&offer.framework, &offer.role).map(|limit| limit.as_secs());
            if age >= self.worker(&offer).holds {
                self.answer(offer, age);
            } else if limit.is_some_and(|limit| age >= limit) {
                self.end(&offer, OfferEnd::TimedOut, age, &Resources::new());
                let holder = Holder { framework: &offer.framework, role: &offer.role, agent: &offer.agent };
                let filter = self.allocator.policies().timed_out(&offer.role);
                self.allocator.recover(holder, &offer.resources, Held::Offered, filter, at(self.now));
            } else {
                self.held.push((since, offer));
            }
        }
    }

    fn end(&mut self, offer: &Offering, end: OfferEnd, age: u64, used: &Resources) {
        let (framework, role, offered) = (&offer.framework, &offer.role, &*offer.resources);
        self.allocator.offer_ended(&EndedOffer { framework, role, offered, used, held: Duration::from_secs(age), end });
    }

    /// Launches as many tasks as fit and as the framework launches at once, and refuses the remaining resources for 5
    /// seconds.
    fn answer(&mut self, offer: Offering, age: u64) {
        let (task, end, most) = {
            let worker = self.worker(&offer);
            (worker.task.clone(), self.now + worker.lasts, worker.at_once)
        };
        let mut rest = (*offer.resources).clone();
        let mut tasks = Resources::new();
        let mut count = 0;
        while count < most && rest.contains(&task) {
            rest -= &task;
            tasks += &task;
            count += 1;
        }
        let how = if count > 0 { OfferEnd::Accepted } else { OfferEnd::Declined };
        self.end(&offer, how, age, &tasks);
        let holder = Holder { framework: &offer.framework, role: &offer.role, agent: &offer.agent };
        self.allocator.mark_offered_used(holder, &tasks);
        self.allocator.recover(holder, &rest, Held::Offered, Some(Filter::default()), at(self.now));
        self.started += count;
        if count > 0 {
            self.running.push((end, Offering { resources: std::sync::Arc::new(tasks), ..offer }));
        }
    }
}

fn worker(name: &str, task: &str, lasts: u64, holds: u64, at_once: usize) -> Worker {
    Worker { id: FrameworkId::new(name).expect("the id is right"), task: text(task), lasts, holds, at_once }
}

/// Compares two frameworks with the same work: one answers at once, the other holds its offers and launches one task
/// from each.
pub fn holding() -> Lines {
    let secs = Duration::from_secs;
    let adaptive = Adaptive { min: secs(1), max: secs(60) };
    let kinds = [
        ("no policy (as Mesos)", Policies::default()),
        ("offer_timeout = 10secs", Policies { offer_timeout: Some(secs(10)), ..Policies::default() }),
        (
            "the same, refusal.timed_out = 1mins",
            Policies {
                offer_timeout: Some(secs(10)),
                refusal: Refusing { timed_out: Some(secs(60)), ..Refusing::default() },
                ..Policies::default()
            },
        ),
        ("adaptive_timeout, 1secs to 1mins", Policies { adaptive_timeout: Some(adaptive), ..Policies::default() }),
        ("max_offered_share = 0.1", Policies { max_offered_share: Some(0.1), ..Policies::default() }),
    ];
    let idle = |policies: &Policies, holds: u64| {
        let config = Config { policies: policies.clone(), seed: 1, ..Config::default() };
        let workers =
            vec![worker("quick", "cpus:1;mem:2048", 40, 0, 64), worker("slow", "cpus:1;mem:2048", 40, holds, 1)];
        let mut story = Story::new(config, &["cpus:8;mem:16384"; 16], workers);
        story.run(1_200);
        // Tasks of 40 s on 128 cpus for 1,200 s.
        (holds as f64, 100.0 * (1.0 - story.started as f64 * 40.0 / (128.0 * 1_200.0)).max(0.0))
    };
    let line = |(name, policies): (&'static str, Policies)| {
        dotted(name, [0, 5, 15, 30, 60, 120, 300].map(|holds| idle(&policies, holds)).to_vec())
    };
    Lines {
        title: "A framework that sits on its offers, beside one that answers at once".into(),
        x: "seconds for which it holds an offer".into(),
        y: "cluster idle, %".into(),
        log: false,
        lines: kinds.into_iter().map(line).collect(),
        size: None,
        ..Lines::default()
    }
}

/// Compares granularities for twelve frameworks with long tasks on four large agents.
pub fn granularity() -> Lines {
    let jain = |cpus: u64| {
        let mut policies = Policies::default();
        if cpus < 64 {
            policies.offer_granularity = parse_quantities(&format!("cpus:{cpus}")).ok();
        }
        let workers = (0..12).map(|n| worker(&format!("f{n}"), "cpus:2;mem:4096", 3_600, 0, 64)).collect();
        let config = Config { policies, seed: 1, ..Config::default() };
        let mut story = Story::new(config, &["cpus:64;mem:262144"; 4], workers);
        story.run(60);
        (cpus as f64, story.allocator.fairness().measures.jain)
    };
    Lines {
        title: "Twelve frameworks with long tasks on four agents of 64 cpus".into(),
        x: "offer_granularity, cpus (64: whole agents)".into(),
        y: "Jain's index of shares".into(),
        log: false,
        lines: vec![dotted("tepui", [4, 8, 16, 32, 64].map(jain).to_vec())],
        size: None,
        ..Lines::default()
    }
}

/// Compares sorters on servers of two kinds, with two frameworks that each suit one kind: tasks that run after a
/// minute, mean of ten seeds.
pub fn sorters() -> Lines {
    let run = |kind: SorterKind, seed: u64| {
        let workers = vec![
            worker("cruncher", "cpus:2;mem:512", 3_600, 0, 64),
            worker("hoarder", "cpus:0.5;mem:8192", 3_600, 0, 64),
        ];
        let kind_of = |n| if n % 2 == 0 { "cpus:16;mem:16384" } else { "cpus:4;mem:65536" };
        let config = Config { framework_sorter: kind, seed, ..Config::default() };
        let mut story = Story::new(config, &[], workers);
        story.coming = (0..40).map(|n| (n, kind_of(n / 2 + n % 3))).collect();
        story.run(60);
        story.started as f64
    };
    let mean = |kind| (0..10).map(|seed| run(kind, seed)).sum::<f64>() / 10.0;
    let series = SorterKind::ALL.into_iter().enumerate().map(|(at, (name, kind))| {
        let tasks = mean(kind);
        println!("  sorter {name}: {tasks:.1} tasks");
        dotted(name, vec![(at as f64, 0.0), (at as f64, tasks)])
    });
    Lines {
        title: "Two kinds of servers, two frameworks: tasks that run after a minute".into(),
        x: "sorter".into(),
        y: "tasks".into(),
        log: false,
        lines: series.collect(),
        size: None,
        ..Lines::default()
    }
}
