//! Random histories under random policies, sorters and quotas.
//!
//! `histories.rs` compares the rules of offers with the naive allocator, without policies. Here, after every run:
//! * nothing is lost or created: free, offered and used resources of an agent add up to its total;
//! * no framework holds more offers than its cap allows, unless it is a single one;
//! * no slice is larger than the granularity, unless the rest was too little for an offer of its own;
//! * a further run at the same instant has nothing to offer;
//! * shares, counts and waits of fairness are valid numbers, and count every offer once;
//! * the same history from the same seed leads to the same offers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allocator::fairness::{EndedOffer, OfferEnd};
use allocator::policies::{Adaptive, Backoff, Policies};
use allocator::{AgentOptions, Allocator, Config, FrameworkOptions, Held, Holder, Offering, Quota, SorterKind};
use base::{AgentId, FrameworkId, Time};
use proptest::prelude::*;
use resources::{Quantities, Resources, Role, parse_quantities, parse_text};

const ROLES: [&str; 4] = ["a", "a/b", "c", "*"];
const TOTALS: [&str; 4] =
    ["cpus:16;mem:16384;ports:[31000-31099]", "cpus:4;mem:65536", "cpus:2;mem:512;cpus(a):2", "cpus:8;mem:8192;gpus:2"];

#[derive(Clone, Debug)]
enum Op {
    Agent(usize),
    Framework(usize),
    Leave(usize),
    Answer { which: usize, uses: u8, refuse: Option<u8> },
    TimeOut(usize),
    Finish(usize),
    Policies(Box<Policies>),
    Quota { role: usize, guarantee: u8, limit: Option<u8> },
    Run,
    Tick(u16),
}

fn policies() -> impl Strategy<Value = Policies> {
    let granularity =
        proptest::option::of((1..8_u32).prop_map(|cpus| parse_quantities(&format!("cpus:{cpus}")).unwrap()));
    let parts = (granularity, proptest::option::of(1..10_u8), any::<bool>(), any::<bool>(), any::<bool>());
    parts.prop_map(|(offer_granularity, cap, backoff, adaptive, min)| {
        let mut policies = Policies { offer_granularity, ..Policies::default() };
        policies.max_offered_share = cap.map(|tenths| f64::from(tenths) / 10.0);
        policies.refusal.backoff = backoff.then_some(Backoff { factor: 2.0, max: Duration::from_secs(60) });
        policies.refusal.min = min.then_some(Duration::from_secs(2));
        policies.adaptive_timeout =
            adaptive.then_some(Adaptive { min: Duration::from_secs(1), max: Duration::from_secs(60) });
        policies
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => any::<usize>().prop_map(Op::Agent),
        2 => any::<usize>().prop_map(Op::Framework),
        1 => any::<usize>().prop_map(Op::Leave),
        8 => (any::<usize>(), any::<u8>(), proptest::option::of(any::<u8>()))
            .prop_map(|(which, uses, refuse)| Op::Answer { which, uses, refuse }),
        2 => any::<usize>().prop_map(Op::TimeOut),
        3 => any::<usize>().prop_map(Op::Finish),
        1 => policies().prop_map(|policies| Op::Policies(Box::new(policies))),
        1 => (any::<usize>(), 0..8_u8, proptest::option::of(0..16_u8))
            .prop_map(|(role, guarantee, more)| Op::Quota { role, guarantee, limit: more.map(|more| guarantee + more) }),
        5 => Just(Op::Run),
        3 => any::<u16>().prop_map(Op::Tick),
    ]
}

struct World {
    allocator: Allocator,
    now: Time,
    agents: BTreeSet<AgentId>,
    offers: Vec<Offering>,
    running: Vec<Offering>,
    made: BTreeMap<(FrameworkId, Role), u64>,
}

fn set(text: &str) -> Resources {
    parse_text(text, &Role::star()).unwrap()
}

fn framework(at: usize) -> FrameworkId {
    FrameworkId::new(&format!("f{}", at % 5)).unwrap()
}

fn holder(offer: &Offering) -> Holder<'_> {
    Holder { framework: &offer.framework, role: &offer.role, agent: &offer.agent }
}

impl World {
    fn new(kinds: (usize, usize), seed: u64, policies: Policies) -> World {
        let [role_sorter, framework_sorter] = [kinds.0, kinds.1].map(|at| SorterKind::ALL[at % 4].1);
        let config = Config { role_sorter, framework_sorter, seed, policies, ..Config::default() };
        let mut world = World {
            allocator: Allocator::new(config),
            now: Time::from_secs(1000),
            agents: BTreeSet::new(),
            offers: Vec::new(),
            running: Vec::new(),
            made: BTreeMap::new(),
        };
        world.step(&Op::Agent(0));
        world.step(&Op::Framework(0));
        world
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Agent(at) => {
                let id = AgentId::new(&format!("s{}", at % 6)).unwrap();
                if self.agents.insert(id.clone()) {
                    let total = set(TOTALS[at / 6 % TOTALS.len()]);
                    self.allocator.add_agent(&id, AgentOptions::default(), &total, &[]);
                }
            }
            Op::Framework(at) => {
                let roles = [at / 5, at / 20].map(|at| Role::parse(ROLES[at % ROLES.len()]).unwrap()).into();
                let options = FrameworkOptions { roles, ..FrameworkOptions::default() };
                self.allocator.add_framework(&framework(*at), &options, true, &[]);
            }
            Op::Leave(at) => {
                let gone = framework(*at);
                self.allocator.remove_framework(&gone);
                self.offers.retain(|offer| offer.framework != gone);
                self.running.retain(|task| task.framework != gone);
                self.made.retain(|(framework, _), _| *framework != gone);
            }
            Op::Answer { which, uses, refuse } if !self.offers.is_empty() => {
                let offer = self.offers.swap_remove(which % self.offers.len());
                self.answer(offer, *uses, *refuse);
            }
            Op::TimeOut(which) if !self.offers.is_empty() => {
                let offer = self.offers.swap_remove(which % self.offers.len());
                self.end(&offer, OfferEnd::TimedOut, &Resources::new());
                self.allocator.recover(holder(&offer), &offer.resources, Held::Offered, None, self.now);
            }
            Op::Finish(which) if !self.running.is_empty() => {
                let task = self.running.swap_remove(which % self.running.len());
                self.allocator.recover(holder(&task), &task.resources, Held::Used, None, self.now);
            }
            Op::Policies(policies) => {
                policies.check().unwrap();
                self.allocator.set_policies((**policies).clone());
            }
            Op::Quota { role, guarantee, limit } => {
                let role = Role::parse(["a", "c"][role % 2]).unwrap();
                let cpus = |units: u8| parse_quantities(&format!("cpus:{units}")).unwrap();
                let limits = limit.map(cpus).iter().flat_map(Quantities::iter).collect();
                self.allocator.set_quota(&role, Quota { guarantees: cpus(*guarantee), limits });
            }
            Op::Run => self.run(),
            Op::Tick(millis) => self.now = self.now + Duration::from_millis(u64::from(*millis) % 20_000),
            _ => {}
        }
    }

    fn end(&mut self, offer: &Offering, end: OfferEnd, used: &Resources) {
        let (framework, role, offered) = (&offer.framework, &offer.role, &*offer.resources);
        let held = Duration::from_secs(3);
        self.allocator.offer_ended(&EndedOffer { framework, role, offered, used, held, end });
    }

    fn answer(&mut self, offer: Offering, uses: u8, refuse: Option<u8>) {
        let used: Resources = offer
            .resources
            .iter()
            .enumerate()
            .filter(|(at, _)| uses & (1 << (at % 8)) != 0)
            .map(|(_, r)| r.clone())
            .collect();
        let end = if used.is_empty() { OfferEnd::Declined } else { OfferEnd::Accepted };
        self.end(&offer, end, &used);
        self.allocator.mark_offered_used(holder(&offer), &used);
        let rest = &*offer.resources - &used;
        let filter =
            refuse.map(|seconds| self.allocator.policies().filter(&offer.role, Some(f64::from(seconds) / 8.0)));
        self.allocator.recover(holder(&offer), &rest, Held::Offered, filter, self.now);
        if !used.is_empty() {
            self.running.push(Offering { resources: used.into(), ..offer });
        }
    }

    fn run(&mut self) {
        let before = self.offered_by_framework();
        let offers = self.allocator.allocate_all(self.now);
        self.check_caps(&before, &offers);
        for offer in offers {
            self.check_slice(&offer);
            *self.made.entry((offer.framework.clone(), offer.role.clone())).or_default() += 1;
            self.offers.push(offer);
        }
        let more = self.allocator.allocate_all(self.now);
        assert!(more.is_empty(), "left over by the run before: {more:?}");
        self.check_books();
        self.check_fairness();
    }

    fn offered_by_framework(&self) -> BTreeMap<FrameworkId, Quantities> {
        let mut sums: BTreeMap<FrameworkId, Quantities> = BTreeMap::new();
        for offer in &self.offers {
            *sums.entry(offer.framework.clone()).or_default() += &offer.resources.quantities();
        }
        sums
    }

    /// Checks the caps, in the order in which offers were made.
    fn check_caps(&self, before: &BTreeMap<FrameworkId, Quantities>, offers: &[Offering]) {
        let Some(cap) = self.allocator.policies().max_offered_share else { return };
        let mut sums = before.clone();
        for offer in offers {
            let sum = sums.entry(offer.framework.clone()).or_default();
            let single = sum.is_empty();
            *sum += &offer.resources.quantities();
            assert!(single || sum.ratio(self.allocator.total()) <= cap, "{} holds {sum}", offer.framework);
        }
    }

    fn check_slice(&self, offer: &Offering) {
        let Some(most) = &self.allocator.policies().offer_granularity else { return };
        let plain = offer.resources.filter(|r| r.is_unreserved());
        let left = self.allocator.agent_view(&offer.agent).unwrap().free;
        // The last slice includes a rest that is too small for an offer.
        assert!(plain.cpus() <= most.get(&resources::Name::Cpus) || left.unreserved().cpus().is_zero(), "{offer:?}");
    }

    fn check_books(&self) {
        for id in &self.agents {
            let view = self.allocator.agent_view(id).unwrap();
            let held: Resources = view.offered.iter().chain(&view.used).map(|(_, _, held)| held.clone()).sum();
            assert_eq!(held + &view.free, view.total, "nothing is lost or made on {id}");
        }
    }

    fn check_fairness(&self) {
        let report = self.allocator.fairness();
        let measures = report.measures;
        for (name, value) in [("jain", measures.jain), ("gap", measures.relative_gap), ("lost", measures.lost_share)] {
            assert!((-1e-9..=1.0 + 1e-9).contains(&value), "{name} is {value}");
        }
        assert!(measures.deviation >= 0.0 && measures.deviation.is_finite());
        for client in &report.clients {
            let offers = client.offers;
            let made = self.made.get(&(client.framework.clone(), client.role.clone()));
            let ended = offers.accepted + offers.declined + offers.rescinded + offers.timed_out;
            assert!(offers.sent >= ended && offers.sent <= made.copied().unwrap_or_default());
            assert!((0.0..=1.0 + 1e-9).contains(&client.target), "{} should have {}", client.framework, client.target);
            assert_eq!(client.holding.buckets.iter().sum::<u64>(), ended);
        }
    }
}

/// Plays a whole history, and returns its offers as text.
fn play(kinds: (usize, usize), seed: u64, policies: &Policies, ops: &[Op]) -> String {
    let mut world = World::new(kinds, seed, policies.clone());
    let mut text = String::new();
    for op in ops {
        let before = world.offers.len();
        world.step(op);
        text.push_str(&format!("{:?}", &world.offers[before.min(world.offers.len())..]));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn policies_and_sorters_keep_the_books(
        kinds in (0..4_usize, 0..4_usize),
        seed: u64,
        policies in policies(),
        ops in proptest::collection::vec(op(), 1..80),
    ) {
        let once = play(kinds, seed, &policies, &ops);
        prop_assert_eq!(once, play(kinds, seed, &policies, &ops));
    }
}
