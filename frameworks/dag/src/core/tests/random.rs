//! Property tests of any graph with any order of ends, failures, losses and restarts.
//!
//! Invariants:
//! 1. a task is launched only when all tasks of the stages that its stage waits for have finished;
//! 2. no task id is launched twice, no offer overfilled (checked by the world);
//! 3. without failures for good the job finishes, with every task of every stage finished once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use sdk::v1::TaskState;

use super::world::World;
use crate::core::{Settings, State};

#[derive(Clone, Debug)]
enum Step {
    Finish(usize),
    Fail(usize),
    Lose(usize),
    LoseAgent(usize),
    Restart,
    Pass,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..8usize).prop_map(Step::Finish),
        1 => (0..8usize).prop_map(Step::Fail),
        1 => (0..8usize).prop_map(Step::Lose),
        1 => (0..2usize).prop_map(Step::LoseAgent),
        1 => Just(Step::Restart),
        3 => Just(Step::Pass),
    ]
}

fn text(stages: &[(u32, Vec<usize>)]) -> String {
    let mut text = "name = 'job'\n".to_owned();
    for (place, (tasks, after)) in stages.iter().enumerate() {
        let after: BTreeSet<usize> = after.iter().map(|before| before % place.max(1)).filter(|_| place > 0).collect();
        let names: Vec<String> = after.iter().map(|before| format!("'s{before}'")).collect();
        text.push_str(&format!(
            "[[stage]]\nname = 's{place}'\nretries = 1000\ncpus = 1\ncommand = 'x'\noutputs = ['o']\n"
        ));
        text.push_str("restart = { first = '1ms', longest = '1ms' }\n");
        match (place % 2, names.is_empty()) {
            (1, false) => text.push_str(&format!("input = {{ stage = [{}] }}\n", names.join(", "))),
            _ => text.push_str(&format!("tasks = {tasks}\nafter = [{}]\n", names.join(", "))),
        }
    }
    text
}

fn part(id: &str, place: usize) -> String {
    id.split('.').nth(place).unwrap().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_job_ends(
        stages in prop::collection::vec((1..4u32, prop::collection::vec(0..6usize, 0..3)), 1..6),
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let mut world = World::new(Settings::default(), 2, 2.0);
        let text = text(&stages);
        world.submit(&text);
        world.soon();
        for step in steps {
            let running: Vec<String> = world.tasks.keys().cloned().collect();
            let chosen = |n: usize| running.get(n % running.len().max(1)).cloned();
            match step {
                Step::Finish(n) => if let Some(id) = chosen(n) { world.finish(&id) },
                Step::Fail(n) => if let Some(id) = chosen(n) { world.update(&id, TaskState::TaskFailed, "status 1") },
                Step::Lose(n) => if let Some(id) = chosen(n) { world.update(&id, TaskState::TaskLost, "") },
                Step::LoseAgent(n) => {
                    world.lose(n);
                    world.find(n);
                }
                Step::Restart => world.restart(),
                Step::Pass => world.pass(Duration::from_secs(2)),
            }
            let before: BTreeSet<String> = world.launched.iter().cloned().collect();
            world.soon();
            // Invariant 1.
            let view = world.show("job");
            let done: BTreeMap<&str, bool> =
                view.stages.iter().map(|stage| (stage.name.as_str(), stage.state == State::Finished)).collect();
            for id in world.launched.iter().filter(|id| !before.contains(*id)) {
                let stage = view.stages.iter().find(|stage| stage.name == part(id, 2)).unwrap();
                prop_assert!(stage.after.iter().all(|before| done[before.as_str()]), "{id}");
            }
        }
        world.run_dry();
        world.pass(Duration::from_secs(10));
        world.run_dry();
        // Invariant 3.
        let view = world.show("job");
        prop_assert_eq!(view.summary.state, State::Finished);
        for stage in &view.stages {
            prop_assert_eq!(Some(stage.tasks.finished), stage.total);
        }
    }
}
