//! Every sorter allocates all that clients may have, the same for the same seed, and each in its own order.

use std::collections::{BTreeMap, BTreeSet};

use allocator::{AgentOptions, Allocator, Config, FrameworkOptions, Held, Holder, Offering, SorterKind, Weight};
use base::{AgentId, FrameworkId, Time};
use resources::{Resources, Role, parse_text};

fn set(text: &str) -> Resources {
    parse_text(text, &Role::star()).unwrap()
}

fn role(name: &str) -> Role {
    Role::parse(name).unwrap()
}

fn allocator(roles: SorterKind, frameworks: SorterKind, seed: u64) -> Allocator {
    Allocator::new(Config { role_sorter: roles, framework_sorter: frameworks, seed, ..Config::default() })
}

fn framework(allocator: &mut Allocator, name: &str, in_role: &str) {
    let options = FrameworkOptions { roles: BTreeSet::from([role(in_role)]), ..FrameworkOptions::default() };
    allocator.add_framework(&FrameworkId::new(name).unwrap(), &options, true, &[]);
}

fn agent(allocator: &mut Allocator, name: &str, total: &str) {
    allocator.add_agent(&AgentId::new(name).unwrap(), AgentOptions::default(), &set(total), &[]);
}

fn run(allocator: &mut Allocator, at: u64) -> Vec<Offering> {
    allocator.allocate_all(Time::from_secs(1000 + at))
}

fn cluster(kind: SorterKind, seed: u64) -> Allocator {
    let mut allocator = allocator(kind, kind, seed);
    for (name, in_role) in [("f1", "a"), ("f2", "a"), ("f3", "a/b"), ("f4", "c")] {
        framework(&mut allocator, name, in_role);
    }
    for at in 0..40 {
        agent(&mut allocator, &format!("s{at}"), if at % 2 == 0 { "cpus:16;mem:4096" } else { "cpus:2;mem:65536" });
    }
    allocator
}

#[test]
fn all_is_given_away_and_runs_can_be_repeated() {
    for (_, kind) in SorterKind::ALL {
        let (mut one, mut two) = (cluster(kind, 7), cluster(kind, 7));
        let offers = run(&mut one, 0);
        assert_eq!(offers, run(&mut two, 0), "{kind:?}");
        assert_eq!(offers.len(), 40, "{kind:?}");
        let served: BTreeSet<_> = offers.iter().map(|offer| offer.framework.clone()).collect();
        assert_eq!(served.len(), 4, "{kind:?}: each gets something");
    }
}

#[test]
fn lots_by_the_weight_of_roles() {
    let mut allocator = allocator(SorterKind::Random, SorterKind::Drf, 3);
    framework(&mut allocator, "f1", "a");
    framework(&mut allocator, "f2", "b");
    allocator.set_weight(&role("b"), Weight::new(3.0).unwrap());
    for at in 0..2000 {
        agent(&mut allocator, &format!("s{at}"), "cpus:1;mem:64");
    }
    let won = run(&mut allocator, 0).iter().filter(|offer| offer.role == role("b")).count();
    assert!((1400..1600).contains(&won), "{won} of 2000, about 1500 were to be expected");
}

/// Places two servers of different kinds with two frameworks that use one task each. Returns which framework is offered
/// which server.
fn placed(kind: SorterKind) -> BTreeMap<String, String> {
    let mut allocator = allocator(SorterKind::Drf, kind, 1);
    framework(&mut allocator, "cruncher", "r");
    framework(&mut allocator, "hoarder", "r");
    for (name, task) in [("cruncher", "cpus:4;mem:1000"), ("hoarder", "cpus:1;mem:4000")] {
        let used = [(FrameworkId::new(name).unwrap(), role("r"), set(task))];
        let total = set(task);
        allocator.add_agent(&AgentId::new(&format!("of-{name}")).unwrap(), AgentOptions::default(), &total, &used);
    }
    agent(&mut allocator, "many-cpus", "cpus:16;mem:4000");
    agent(&mut allocator, "much-mem", "cpus:4;mem:16000");
    let offers = run(&mut allocator, 0);
    offers.iter().map(|offer| (offer.agent.to_string(), offer.framework.to_string())).collect()
}

#[test]
fn agents_go_to_the_clients_that_they_suit() {
    for kind in [SorterKind::PsDsf, SorterKind::BestFitDrf] {
        let placed = placed(kind);
        assert_eq!(placed["many-cpus"], "cruncher", "{kind:?}");
        assert_eq!(placed["much-mem"], "hoarder", "{kind:?}");
    }
}

#[test]
fn holdings_of_all_sorters_add_up() {
    for (_, kind) in SorterKind::ALL {
        let mut allocator = cluster(kind, 5);
        for step in 0..5 {
            for offer in run(&mut allocator, step * 10) {
                let holder = Holder { framework: &offer.framework, role: &offer.role, agent: &offer.agent };
                allocator.recover(holder, &offer.resources, Held::Offered, None, Time::from_secs(1000 + step * 10));
            }
        }
        assert!(allocator.held().is_empty(), "{kind:?}");
    }
}
