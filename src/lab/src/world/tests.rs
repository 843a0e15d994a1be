//! Tests of worlds with three agents and two frameworks: their tasks run, equally in every run of a seed, and through
//! faults.

use std::collections::BTreeMap;

use resources::{Role, parse_text};
use sdk::{Calls, Event, Packer, is_terminal};

use super::*;

/// A scheduler that launches this many tasks of ten seconds, and ends.
struct TestScheduler {
    left: u32,
    ended: u32,
    total: u32,
}

impl Scheduler for TestScheduler {
    fn on_event(&mut self, event: sdk::Event, _now: Time, calls: &mut Calls) {
        match event {
            Event::Offers(offers) => {
                let needs = parse_text("cpus:1;mem:64", &Role::star()).unwrap();
                let mut packer = Packer::new(offers);
                while self.left > 0 {
                    if packer.place(sdk::task::shell(&format!("t{}", self.left), "sleep 10", &needs)).is_err() {
                        break;
                    }
                    self.left -= 1;
                }
                packer.finish(calls, Duration::from_secs(5));
            }
            Event::Update(status) if is_terminal(status.state()) => {
                self.ended += 1;
                if self.ended == self.total {
                    calls.teardown();
                }
            }
            _ => {}
        }
    }
}

#[derive(Default)]
struct TestObserver {
    running: BTreeMap<String, u32>,
    started: usize,
    ended: usize,
    offers: usize,
}

impl Observer for TestObserver {
    fn received(&mut self, _: usize, event: &sdk::v1::scheduler::Event, _: Time) {
        self.offers += event.offers.as_ref().map_or(0, |offers| offers.offers.len());
        if let Some(update) = &event.update {
            *self.running.entry(update.status.state().as_str_name().to_owned()).or_default() += 1;
        }
    }
    fn called(&mut self, _: usize, _: &sdk::v1::scheduler::Call, _: Time) {}
    fn started(&mut self, _: &str, _: &str, _: Time) {
        self.started += 1;
    }
    fn ended(&mut self, _: &str, _: &str, _: Time) {
        self.ended += 1;
    }
}

fn test_world(fidelity: Fidelity, seed: u64) -> World<TestObserver> {
    test_world_with([30, 20], fidelity, seed)
}

/// Returns a world of two frameworks with this many tasks.
fn test_world_with(tasks: [u32; 2], fidelity: Fidelity, seed: u64) -> World<TestObserver> {
    let total = parse_text("cpus:4;mem:4096;disk:1000", &Role::star()).unwrap();
    let framework = |name: &str, tasks: u32| FrameworkSpec {
        info: FrameworkInfo { user: "u".to_owned(), name: name.to_owned(), ..FrameworkInfo::default() },
        scheduler: Box::new(move || Box::new(TestScheduler { left: tasks, ended: 0, total: tasks })),
        persists_state: false,
        start: Duration::ZERO,
    };
    let setup = Setup {
        master: ::master::Config::default(),
        agents: (0..3).map(|n| AgentSpec::new(&format!("agent{n}"), total.clone())).collect(),
        frameworks: vec![framework("one", tasks[0]), framework("two", tasks[1])],
        model: Model {
            fidelity,
            latency: Dist::Exponential(Duration::from_millis(1)),
            failures: 0.2,
            ..Model::default()
        },
    };
    World::new(setup, Seed::root(seed), TestObserver::default())
}

#[test]
fn schedulers_run_their_tasks_on_real_and_on_light_agents() {
    for fidelity in [Fidelity::Full, Fidelity::Light] {
        let mut world = test_world(fidelity, 1);
        for _ in 0..200 {
            world.run_until(world.now() + Duration::from_secs(1));
        }
        assert!(world.all_ended(), "{fidelity:?}: {:?}", world.observer().running);
        let seen = world.into_observer();
        assert_eq!((seen.started, seen.ended), (50, 50), "{fidelity:?}");
        let failed = seen.running.get("TASK_FAILED").copied().unwrap_or_default();
        assert!((2..25).contains(&failed), "{:?}", seen.running);
        assert_eq!(seen.running.get("TASK_FINISHED").copied().unwrap_or_default() + failed, 50);
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    let digest = |seed: u64| {
        let mut world = test_world(Fidelity::Full, seed);
        world.run_until(BEGIN + Duration::from_secs(100));
        (world.digest(), world.events())
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1).0, digest(2).0);
}

#[test]
fn ended_tasks_leave_no_wake_ups() {
    // Each task makes its agent, its scheduler and the master plan a wake-up before the one they had planned.
    let in_the_second_hour = |tasks: [u32; 2]| {
        let mut world = test_world_with(tasks, Fidelity::Full, 5);
        world.run_until(BEGIN + Duration::from_secs(3_600));
        assert!(world.all_ended());
        let before = world.events();
        world.run_until(BEGIN + Duration::from_secs(7_200));
        world.events() - before
    };
    let (few, many) = (in_the_second_hour([1, 1]), in_the_second_hour([300, 300]));
    assert!(many < few + few / 20, "{many} events in an hour without tasks, {few} where few ran before it");
}

#[test]
fn crashes_and_partitions_lose_no_task() {
    let mut world = test_world(Fidelity::Full, 3);
    let second = Duration::from_secs(1);
    for n in 0..60 {
        world.run_until(world.now() + second);
        match n % 10 {
            3 => world.crash_agent(n % 3, second * 2),
            5 => world.crash_master(second),
            6 => world.cut_framework(n % 2),
            7 => world.partition_agent(n % 3, world.now() + second * 3),
            8 => world.stall_agent(n % 3, world.now() + second),
            9 => world.cut_agent(n % 3),
            _ => {}
        }
    }
    world.heal();
    world.run_until(world.now() + second * 1000);
    assert!(world.all_ended(), "{:?}", world.observer().running);
    let seen = world.into_observer();
    assert_eq!(seen.started, seen.ended);
}

#[test]
fn a_replay_is_equal_and_other_policies_differ() {
    let mut world = test_world(Fidelity::Full, 4);
    world.record();
    world.run_until(world.now() + Duration::from_secs(200));
    let bytes = world.take_recording().unwrap();
    let config = |_: &[(String, String)]| Ok(::master::Config::default());
    let none = |_: &str| Err("no policies were set".into());
    let play = |bytes: &[u8], other| crate::replay::replay(&mut &*bytes, &config, &none, other);
    let same = play(&bytes, None).unwrap();
    assert_eq!((same.different, same.cut), (0, false));
    assert!(same.batches > 100 && same.frameworks.len() == 2, "{same:?}");
    let made = |replay: &crate::replay::Replay| replay.frameworks.values().map(|(was, _)| was.offers).sum::<u64>();
    assert!(made(&same) > 10);
    // With the same policies the second master does the same; with a cap it makes other offers.
    let twin = play(&bytes, Some(allocator::policies::Policies::default())).unwrap();
    assert!(twin.frameworks.values().all(|(was, would)| Some(was) == would.as_ref()), "{twin:?}");
    let told = twin.differences.unwrap();
    assert!(
        told.first_difference.is_none() && told.batches == 0 && told.decisions.is_empty() && told.policies.is_empty()
    );
    let capped = allocator::policies::Policies { max_offered_share: Some(0.3), ..Default::default() };
    let other = play(&bytes, Some(capped)).unwrap();
    assert!(other.different == 0 && other.frameworks.values().any(|(was, would)| Some(was) != would.as_ref()));
    // The differences name the first batch, and why the capped master made fewer offers there.
    let told = other.differences.unwrap();
    let setting = ["max_offered_share", "not set", "0.3"].map(str::to_owned);
    assert_eq!(told.policies, [setting.into()]);
    let (batch, _) = told.first_difference.unwrap();
    let first = &told.decisions[0];
    assert!(told.decisions.iter().all(|one| one.batch >= batch) && first.batch == batch, "{first:?}");
    assert_eq!((first.by, first.what), (crate::replay::By::Recorded, crate::replay::DecisionKind::Offers), "{first:?}");
    // At first the resources were offered to the other framework; later the cap itself is the reason.
    assert!(first.why.starts_with("too little is free: offered to two/*"), "{first:?}");
    let cap = "the framework holds as much in offers as the policies allow";
    assert!(told.decisions.iter().any(|one| one.why == cap), "{:?}", told.decisions);
    assert!(told.frameworks.values().any(|only| only.offers.0 > 0), "{told:?}");
    let missing: u64 = told.frameworks.values().map(|only| only.missing).sum();
    let launched =
        told.frameworks.values().fold((0, 0), |sum, only| (sum.0 + only.launched.0, sum.1 + only.launched.1));
    assert!(missing > 0 && launched.0 >= launched.1 + missing, "{told:?}");
    assert!(told.tasks.iter().all(|task| !task.why.is_empty()), "{:?}", told.tasks);
    // Damages a byte of a recorded outcome, and cuts the end of a recording off.
    let mut damaged = bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(play(&damaged, None).unwrap().different, 1);
    assert!(play(&bytes[..bytes.len() - 1], None).unwrap().cut);
    assert!(play(b"something else", None).is_err());
}
