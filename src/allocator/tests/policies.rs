//! Effects of policies in the allocator: slices, the cap on offers, back-off, timeouts; and the measures of fairness.

use std::collections::BTreeSet;
use std::time::Duration;

use allocator::fairness::{EndedOffer, OfferEnd};
use allocator::policies::{Adaptive, AgentOrder, Backoff, Policies};
use allocator::{AgentOptions, Allocator, Config, Filter, FrameworkOptions, Held, Holder, Offering};
use base::{AgentId, FrameworkId, Time};
use resources::{Resources, Role, parse_quantities, parse_text};

struct World {
    allocator: Allocator,
    now: Time,
}

fn set(text: &str) -> Resources {
    parse_text(text, &Role::star()).unwrap()
}

fn id(name: &str) -> FrameworkId {
    FrameworkId::new(name).unwrap()
}

fn agent(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl World {
    fn new(policies: Policies) -> World {
        policies.check().unwrap();
        let config = Config { policies, ..Config::default() };
        World { allocator: Allocator::new(config), now: Time::from_secs(1000) }
    }

    fn framework(&mut self, name: &str) {
        let roles = BTreeSet::from([Role::star()]);
        let options = FrameworkOptions { name: name.to_owned(), roles, ..FrameworkOptions::default() };
        self.allocator.add_framework(&id(name), &options, true, &[]);
    }

    fn agent(&mut self, name: &str, total: &str) {
        self.allocator.add_agent(&agent(name), AgentOptions::default(), &set(total), &[]);
    }

    fn tick(&mut self, by: Duration) {
        self.now = self.now + by;
    }

    /// Runs the allocator. Returns the offers, also as `framework agent resources`.
    fn run(&mut self) -> (Vec<Offering>, Vec<String>) {
        let offers = match self.allocator.next_wake() {
            Some(at) if at <= self.now => self.allocator.allocate_all(self.now),
            _ => self.allocator.allocate(self.now),
        };
        let texts = offers.iter().map(|o| format!("{} {} {}", o.framework, o.agent, o.resources)).collect();
        (offers, texts)
    }

    fn decline(&mut self, offer: &Offering, refuse: Option<Duration>) {
        let holder = Holder { framework: &offer.framework, role: &offer.role, agent: &offer.agent };
        let filter = refuse.map(|refuse| Filter { refuse });
        self.allocator.recover(holder, &offer.resources, Held::Offered, filter, self.now);
    }

    fn end(&mut self, offer: &Offering, end: OfferEnd, held: Duration, used: &Resources) {
        let (framework, role) = (&offer.framework, &offer.role);
        self.allocator.offer_ended(&EndedOffer { framework, role, offered: &offer.resources, used, held, end });
    }
}

#[test]
fn large_agents_are_offered_in_slices_each_to_the_poorest() {
    let granularity = parse_quantities("cpus:4;mem:4096").unwrap();
    let mut world = World::new(Policies { offer_granularity: Some(granularity), ..Policies::default() });
    world.framework("a");
    world.framework("b");
    world.agent("big", "cpus:12;mem:3000;ports:[1-6]");
    world.agent("small", "cpus:2;mem:100");
    let (offers, mut texts) = world.run();
    texts.sort();
    assert_eq!(offers.len(), 4);
    let slices: Vec<&String> = texts.iter().filter(|text| text.contains("cpus:4; mem:1000")).collect();
    assert_eq!(slices.len(), 3, "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("cpus:2; mem:100")), "{texts:?}");
    let of_a = offers.iter().filter(|offer| offer.framework == id("a")).count();
    assert_eq!(of_a, 2, "alternately, because each slice makes its owner richer");
    assert!(world.allocator.agent_view(&agent("big")).unwrap().free.is_empty(), "nothing is kept back");
    for offer in &offers {
        world.decline(offer, None);
    }
    world.allocator.set_policies(Policies::default());
    let (offers, _) = world.run();
    assert_eq!(offers.len(), 2, "whole agents again");
}

#[test]
fn no_framework_holds_more_offers_than_the_cap_allows() {
    let mut world = World::new(Policies { max_offered_share: Some(0.5), ..Policies::default() });
    world.framework("a");
    for name in ["s1", "s2", "s3", "s4"] {
        world.agent(name, "cpus:1;mem:64");
    }
    let (first, _) = world.run();
    assert_eq!(first.len(), 2, "half of the cluster");
    world.tick(secs(5));
    assert!(world.run().0.is_empty());
    let holder = Holder { framework: &first[0].framework, role: &first[0].role, agent: &first[0].agent };
    world.allocator.mark_offered_used(holder, &first[0].resources);
    assert_eq!(world.run().0.len(), 1, "what is used does not count");
    world.framework("b");
    assert_eq!(world.run().0.len(), 1, "the last agent is for another framework");
}

#[test]
fn a_framework_without_offers_may_have_one_above_the_cap() {
    let mut world = World::new(Policies { max_offered_share: Some(0.1), ..Policies::default() });
    world.framework("a");
    world.agent("s1", "cpus:1;mem:64");
    assert_eq!(world.run().0.len(), 1);
}

#[test]
fn agents_are_offered_in_the_order_that_is_wished_for() {
    // A framework that may hold only one offer is offered the first agent of the order.
    let first = |agent_order| {
        let mut world = World::new(Policies { agent_order, max_offered_share: Some(0.01), ..Policies::default() });
        let names = ["s1", "s2", "s3", "s4"];
        for (name, used) in names.iter().zip([1, 3, 2, 0]) {
            let used = [(id("b"), Role::star(), set(&format!("cpus:{used};mem:{used}")))];
            let used = if used[0].2.is_empty() { &[][..] } else { &used[..] };
            world.allocator.add_agent(&agent(name), AgentOptions::default(), &set("cpus:4;mem:4"), used);
        }
        world.framework("a");
        let (offers, texts) = world.run();
        assert_eq!(offers.len(), 1, "{texts:?}");
        offers[0].agent.to_string()
    };
    assert_eq!((first(AgentOrder::Fullest), first(AgentOrder::Emptiest)), ("s2".to_owned(), "s4".to_owned()));
}

#[test]
fn repeated_refusals_of_an_agent_last_longer() {
    let mut policies = Policies::default();
    policies.refusal.backoff = Some(Backoff { factor: 2.0, max: secs(30) });
    let mut world = World::new(policies);
    world.framework("a");
    world.agent("s1", "cpus:1;mem:64");
    for lasts in [5, 10, 20, 30, 30] {
        let (offers, _) = world.run();
        assert_eq!(offers.len(), 1, "before a refusal of {lasts}");
        world.decline(&offers[0], Some(secs(5)));
        let refusals = world.allocator.refusals(&agent("s1"));
        assert_eq!(refusals[0].until, Some(world.now + secs(lasts)));
        world.tick(secs(lasts + 1));
    }
    let (offers, _) = world.run();
    let holder = Holder { framework: &offers[0].framework, role: &offers[0].role, agent: &offers[0].agent };
    world.allocator.mark_offered_used(holder, &set("cpus:0.5"));
    world.allocator.recover(
        holder,
        &set("cpus:0.5;mem:64"),
        Held::Offered,
        Some(Filter { refuse: secs(5) }),
        world.now,
    );
    assert_eq!(world.allocator.refusals(&agent("s1"))[0].until, Some(world.now + secs(5)), "used: a first one again");
}

#[test]
fn the_shortest_of_set_and_learned_timeouts_holds() {
    let adaptive = Some(Adaptive { min: secs(1), max: secs(60) });
    let mut world =
        World::new(Policies { offer_timeout: Some(secs(40)), adaptive_timeout: adaptive, ..Policies::default() });
    world.framework("a");
    world.agent("s1", "cpus:1;mem:64");
    let (offers, _) = world.run();
    let timeout = |world: &World| world.allocator.offer_timeout(&id("a"), &Role::star());
    assert_eq!(timeout(&world), Some(secs(40)));
    world.end(&offers[0], OfferEnd::TimedOut, secs(40), &Resources::new());
    assert_eq!(timeout(&world), Some(secs(30)));
    world.end(&offers[0], OfferEnd::Rescinded, secs(40), &Resources::new());
    assert_eq!(timeout(&world), Some(secs(30)), "what the master takes back for its own reasons teaches nothing");
    for _ in 0..60 {
        world.end(&offers[0], OfferEnd::Accepted, secs(2), &set("cpus:1"));
    }
    assert_eq!(timeout(&world).map(|limit| limit.as_secs()), Some(2));
}

#[test]
fn fairness_names_clients_below_their_share() {
    let mut world = World::new(Policies::default());
    for name in ["a", "b"] {
        world.framework(name);
    }
    world.agent("s1", "cpus:3;mem:300");
    world.agent("s2", "cpus:1;mem:100");
    let (offers, _) = world.run();
    assert_eq!(offers.len(), 2);
    for _ in 0..4 {
        world.tick(secs(5));
        let _ = world.run();
    }
    let report = world.allocator.fairness();
    let shares: Vec<(f64, f64)> = report.clients.iter().map(|client| (client.share, client.target)).collect();
    let mut sorted: Vec<f64> = shares.iter().map(|(share, _)| *share).collect();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(sorted, [0.25, 0.75]);
    assert!(shares.iter().all(|(_, target)| (target - 0.5).abs() < 1e-9), "{shares:?}");
    let measures = report.measures;
    assert_eq!(measures.competitors, 2);
    assert!((measures.relative_gap - 2.0 / 3.0).abs() < 1e-9, "{measures:?}");
    assert!((measures.deviation - 0.5).abs() < 1e-9 && (measures.lost_share - 0.5).abs() < 1e-9, "{measures:?}");
    assert!((measures.jain - 0.8).abs() < 1e-9, "{measures:?}");
    assert_eq!(report.roles[0].target, 1.0);
    assert!(report.clients.iter().all(|client| client.offers.sent == 1 && client.waiting.ended == 1));
}

#[test]
fn the_cap_does_not_delay_frameworks_that_answer_at_once() {
    let mut world = World::new(Policies { max_offered_share: Some(0.1), ..Policies::default() });
    world.framework("quick");
    world.framework("slow");
    for at in 0..16 {
        world.agent(&format!("s{at}"), "cpus:8;mem:16384");
    }
    let mut slow = 0;
    for second in 0..20 {
        let (offers, _) = world.run();
        for offer in &offers {
            if offer.framework == id("quick") {
                let holder = Holder { framework: &offer.framework, role: &offer.role, agent: &offer.agent };
                world.allocator.mark_offered_used(holder, &offer.resources);
            } else {
                slow += 1;
            }
        }
        assert!(slow <= 1, "after {second} seconds");
        world.tick(secs(1));
    }
    let view = world.allocator.framework_roles(&id("quick"));
    assert_eq!(view[&Role::star()].used.to_string(), "cpus:120; mem:245760");
}
