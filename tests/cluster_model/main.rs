//! The whole cluster as a model: the master's core, agents' cores and schedulers under random histories, with
//! restarts, lost messages, broken connections and late answers. There is no I/O, and the clock is virtual.
//!
//! What must hold after every event:
//!
//! 1. On the master, each agent's used, offered and free resources are its total, and all books agree.
//! 2. An offer goes to one framework, once; what is offered and used of an agent is no more than it has.
//! 3. No task is started twice.
//! 4. A scheduler sees the updates of a task in the order in which its executor made them, and none is left out.
//!    (Of frameworks without checkpointing an agent's crash may lose some.)
//! 5. No call that is well-formed gets an answer but 200, 202, or one that says that its stream is gone.
//!
//! And at the end, when everything has been started and healed and has come to rest:
//!
//! 6. All agents are registered, all schedulers are subscribed.
//! 7. Every task that a scheduler has launched has ended for it, or runs; and what runs is booked by the master.
//! 8. Every update that an agent has written down is acknowledged.
//! 9. Every update that an agent has confirmed to an executor has come to its scheduler.
//! 10. Nothing runs of a framework that the master knows to have ended.
//!
//! The same history gives the same log twice.

mod agents;
mod calls;
mod containers;
mod executors;
mod invariants;
mod masters;
mod network;
mod scheduler;
mod steps;
mod world;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseError, TestRunner};
use steps::{Setup, Step, play, setup, step};

/// How many histories are played if `PROPTEST_CASES` says nothing.
const CASES: u32 = 100;

/// How much of a log is shown.
const SHOWN: usize = 120;

fn config() -> ProptestConfig {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig { cases: given.unwrap_or(CASES), failure_persistence: None, ..ProptestConfig::default() }
}

fn judge(setup: &Setup, steps: &[Step]) -> Result<(), TestCaseError> {
    let world = play(setup, steps);
    if let Some(why) = &world.broken {
        let from = world.log.len().saturating_sub(SHOWN);
        return Err(TestCaseError::fail(format!("{why}\n{}", world.log[from..].join("\n"))));
    }
    if setup.seed.is_multiple_of(4) {
        prop_assert!(world.log == play(setup, steps).log, "the same history has another log");
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_histories(setup in setup(), steps in prop::collection::vec(step(), 1..60)) {
        judge(&setup, &steps)?;
    }
}

/// Lines that some of a few histories must have in their logs; else the model has come to nothing.
const REACHED: [&str; 13] = [
    " runs ",
    "TASK_FINISHED",
    "TASK_FAILED",
    "TASK_KILLED",
    "TASK_ERROR",
    "TASK_LOST",
    "TASK_GONE",
    "REASON_RECONCILIATION",
    "REASON_CONTAINER_LAUNCH_FAILED",
    "is unreachable",
    "has reregistered",
    "has subscribed again",
    "master 1 starts",
];

#[test]
fn histories_reach_far() {
    let mut runner = TestRunner::deterministic();
    let strategy = (setup(), prop::collection::vec(step(), 40..60));
    let mut missing = REACHED.to_vec();
    let (mut events, mut tasks) = (0, 0);
    for _ in 0..32 {
        let (setup, steps) = strategy.new_tree(&mut runner).unwrap().current();
        let world = play(&setup, &steps);
        missing.retain(|text| !world.log.iter().any(|line| line.contains(text)));
        events += world.events;
        tasks += world.executors.iter().filter(|executor| executor.task.is_some()).count();
    }
    println!("{events} events and {tasks} tasks");
    assert!(missing.is_empty(), "no history has {missing:?}");
    assert!(tasks > 100, "only {tasks} tasks");
}
