//! Property tests of every heuristic and of [`grants`], over random observations and random actions. Invariants:
//!
//! 1. Actions name runnable stages only: all parents have finished, or with `ahead` have no task left to start.
//! 2. Grants take no more than is free, in no slot, of no resource, and no more tasks than a stage has.
//! 3. A job never gets more executors than an action's limit allows.
//! 4. A decision is carried out in full: its grants end at the limits that its actions name.
//! 5. The same observation leads to the same actions, and JSON does not change it.
//! 6. With one kind of slot, no heuristic leaves a slot free that an immediately runnable task of some job could use,
//!    except for the fair ones, which keep to their caps.

use proptest::prelude::*;

use super::*;

fn all() -> Vec<Heuristic> {
    use Heuristic::*;
    vec![Fifo, Fair, Weighted(-0.5), Weighted(1.0), ShortestJob, ShortestRemaining, Tetris, Graphene, Deadline]
}

fn amounts() -> impl Strategy<Value = Amounts> {
    prop_oneof![
        Just(Amounts::default()),
        (1..8_u64, 1..8_u64, 0..2_u64).prop_map(|(cpus, mem, gpus)| Amounts { cpus, mem, gpus })
    ]
}

fn stage(at: usize) -> impl Strategy<Value = Stage> {
    let parents = prop::collection::btree_set(0..at.max(1) as u32, 0..=at.min(2));
    (0..6_u32, 0..3_u32, 0..3_u32, 0..5000_u64, amounts(), parents).prop_map(
        move |(tasks, running, finished, duration, demand, parents)| {
            let parents = if at == 0 { Vec::new() } else { parents.into_iter().collect() };
            Stage { tasks, running, finished, duration, demand, parents }
        },
    )
}

fn job(id: u64) -> impl Strategy<Value = Job> {
    let due = prop::option::of(0..20_000_u64);
    (0..1000_u64, 0..3_u8, 1..3000_u32, 0..5_u32, due, (stage(0), stage(1), stage(2), stage(3), 1..=4_usize)).prop_map(
        move |(arrival, class, weight, held, deadline, (a, b, c, d, many))| Job {
            id,
            arrival,
            class,
            weight,
            held,
            deadline,
            stages: vec![a, b, c, d].into_iter().take(many).collect(),
        },
    )
}

pub(crate) fn observation() -> impl Strategy<Value = Observation> {
    let free = prop::collection::vec((0..5_u32, amounts()).prop_map(|(count, amounts)| Free { count, amounts }), 0..4);
    let jobs = (job(10), job(11), job(12), 0..=3_usize)
        .prop_map(|(a, b, c, many)| vec![a, b, c].into_iter().take(many).collect::<Vec<_>>());
    (free, jobs, any::<bool>(), prop::option::of(10..13_u64)).prop_map(|(free, jobs, ahead, source)| Observation {
        now: 5,
        executors: 40,
        free,
        source,
        moving_delay: 2000,
        ahead,
        jobs,
    })
}

/// Checks invariants 1 to 3 for actions and their grants.
pub(crate) fn check(observation: &Observation, actions: &[Action], granted: &[Grant]) -> Result<(), TestCaseError> {
    let mut tasks: std::collections::BTreeMap<(u64, u32), u32> = std::collections::BTreeMap::new();
    let mut used = vec![[0_u64; 3]; observation.free.len()];
    let mut slots = vec![0_u64; observation.free.len()];
    for grant in granted {
        prop_assert!(grant.tasks > 0);
        *tasks.entry((grant.job, grant.stage)).or_default() += grant.tasks;
        let job = observation.jobs.iter().find(|job| job.id == grant.job).unwrap();
        let stage = &job.stages[grant.stage as usize];
        let at = grant.free as usize;
        if stage.demand.is_zero() {
            slots[at] += u64::from(grant.tasks);
        }
        for (used, demand) in used[at].iter_mut().zip(stage.demand.array()) {
            *used += demand * u64::from(grant.tasks);
        }
        for parent in &stage.parents {
            let parent_at = (grant.job, *parent);
            let parent = &job.stages[*parent as usize];
            let given = granted.iter().filter(|g| (g.job, g.stage) == parent_at).map(|g| g.tasks).sum::<u32>();
            let soon = observation.ahead && parent.tasks == given;
            prop_assert!(parent.is_done() || soon, "{:?}", grant);
        }
    }
    for (free, (used, slots)) in observation.free.iter().zip(used.iter().zip(slots)) {
        prop_assert!(slots <= u64::from(free.count));
        for (used, amount) in used.iter().zip(free.amounts.array()) {
            prop_assert!(*used <= amount * (u64::from(free.count) - slots));
        }
    }
    for ((job, stage), tasks) in &tasks {
        let of = observation.jobs.iter().find(|known| known.id == *job).unwrap();
        prop_assert!(*tasks <= of.stages[*stage as usize].tasks);
    }
    for job in &observation.jobs {
        let given: u32 = granted.iter().filter(|grant| grant.job == job.id).map(|grant| grant.tasks).sum();
        let limit = actions.iter().filter(|action| action.job == job.id).map(|action| action.limit).max();
        prop_assert!(given == 0 || job.held + given <= limit.unwrap_or(0));
    }
    Ok(())
}

proptest! {
    #[test]
    fn decisions_keep_the_rules(observation in observation()) {
        prop_assert_eq!(observation.validate(), Ok(()));
        let text = serde_json::to_string(&observation).unwrap();
        let again: Observation = serde_json::from_str(&text).unwrap();
        for mut policy in all() {
            let actions = policy.decide(&observation);
            prop_assert_eq!(&actions, &policy.decide(&again));
            let granted = grants(&observation, &actions);
            check(&observation, &actions, &granted)?;
            for job in &observation.jobs {
                let last = actions.iter().rfind(|action| action.job == job.id);
                let given: u32 = granted.iter().filter(|grant| grant.job == job.id).map(|grant| grant.tasks).sum();
                prop_assert_eq!(last.map_or(job.held, |action| action.limit), job.held + given, "{}", policy);
            }
        }
    }

    #[test]
    fn any_actions_are_kept_within_the_rules(
        observation in observation(),
        actions in prop::collection::vec(
            (9..14_u64, 0..6_u32, 0..50_u32).prop_map(|(job, stage, limit)| Action { job, stage, limit }), 0..12),
    ) {
        check(&observation, &actions, &grants(&observation, &actions))?;
    }

    #[test]
    fn nothing_stays_free_that_a_job_can_use(mut observation in observation()) {
        for stage in observation.jobs.iter_mut().flat_map(|job| &mut job.stages) {
            stage.demand = Amounts::default();
        }
        let free = observation.free_count();
        let runnable: u32 = observation
            .jobs
            .iter()
            .flat_map(|job| job.stages.iter().map(move |stage| (job, stage)))
            .filter(|(job, stage)| stage.parents.iter().all(|parent| job.stages[*parent as usize].is_done()))
            .map(|(_, stage)| stage.tasks)
            .sum();
        use Heuristic::*;
        for mut policy in [Fifo, ShortestJob, ShortestRemaining, Tetris, Graphene, Deadline] {
            let actions = policy.decide(&observation);
            let given: u32 = grants(&observation, &actions).iter().map(|grant| grant.tasks).sum();
            prop_assert!(given >= free.min(runnable), "{} gives {} of {} to {}", policy, given, free, runnable);
        }
    }
}

fn simple(id: u64, arrival: u64, tasks: u32, duration: u64) -> Job {
    let stages = vec![Stage { tasks, duration, ..Stage::default() }];
    Job { id, arrival, class: 0, weight: 1000, held: 0, deadline: None, stages }
}

fn slots(count: u32, jobs: Vec<Job>) -> Observation {
    let free = vec![Free { count, amounts: Amounts::default() }];
    Observation { executors: count, free, jobs, ..Observation::default() }
}

fn given(mut policy: Heuristic, observation: &Observation) -> Vec<(u64, u32)> {
    let actions = policy.decide(observation);
    grants(observation, &actions).iter().map(|grant| (grant.job, grant.tasks)).collect()
}

#[test]
fn each_heuristic_has_its_favourite() {
    let jobs = vec![simple(1, 0, 100, 10), simple(2, 5, 100, 2), simple(3, 9, 6, 4)];
    let observation = slots(12, jobs);
    assert_eq!(given(Heuristic::Fifo, &observation), [(1, 12)]);
    assert_eq!(given(Heuristic::Fair, &observation), [(1, 4), (2, 4), (3, 4)]);
    assert_eq!(given(Heuristic::ShortestJob, &observation), [(3, 6), (2, 6)]);
    let weighted = given(Heuristic::Weighted(1.0), &observation);
    assert_eq!(weighted, [(1, 10), (2, 2)]);
}

#[test]
fn the_earliest_deadline_that_can_be_met_is_first() {
    let due = |id: u64, tasks: u32, deadline: u64| Job { deadline: Some(deadline), ..simple(id, id, tasks, 10) };
    let order = |jobs: Vec<Job>| {
        let all = Heuristic::Deadline.decide(&slots(1000, jobs.clone()));
        // There are so many executors that each job gets some.
        let wide: Vec<u64> = all.iter().map(|action| action.job).collect();
        let first = given(Heuristic::Deadline, &slots(2, jobs)).first().map(|(job, _)| *job);
        (wide, first)
    };
    let jobs = vec![simple(1, 0, 2, 10), due(2, 4, 500), due(3, 4, 100)];
    assert_eq!(order(jobs.clone()), (vec![3, 2, 1], Some(3)));
    // Two executors take 5 ms for each task: a hundred tasks miss the deadline, and would make the next job late.
    let hopeless = due(4, 100, 60);
    let with = [jobs.clone(), vec![hopeless.clone()]].concat();
    assert_eq!(order(with).1, Some(3));
    assert_eq!(order(vec![jobs[0].clone(), hopeless]).1, Some(4), "late is still before those without a deadline");
    let mut urgent = simple(5, 9, 2, 10);
    urgent.class = 2;
    assert_eq!(order(vec![simple(1, 0, 2, 10), urgent]).1, Some(5));
}

#[test]
fn executors_stay_with_their_job_under_fair_shares() {
    let mut observation = slots(2, vec![simple(1, 0, 10, 10), simple(2, 0, 10, 10)]);
    observation.source = Some(2);
    assert_eq!(given(Heuristic::Fair, &observation), [(2, 2)]);
}

#[test]
fn the_longest_path_and_what_leads_to_trouble_go_first() {
    let stage =
        |tasks, duration, parents: &[u32]| Stage { tasks, duration, parents: parents.into(), ..Stage::default() };
    let stages = vec![stage(4, 10, &[]), stage(4, 20, &[]), stage(1, 500, &[0]), stage(1, 15, &[1, 2])];
    let observation = slots(4, vec![Job { stages, ..simple(1, 0, 0, 0) }]);
    for mut policy in [Heuristic::ShortestJob, Heuristic::Graphene] {
        assert_eq!(policy.decide(&observation), [Action { job: 1, stage: 0, limit: 4 }], "{policy}");
    }
    assert_eq!(Heuristic::Fair.decide(&observation), [Action { job: 1, stage: 0, limit: 4 }]);
}

#[test]
fn packing_prefers_what_goes_with_the_free_resources() {
    let demand = |cpus, mem| Amounts { cpus, mem, gpus: 0 };
    let mut jobs = vec![simple(1, 0, 5, 10), simple(2, 0, 5, 10)];
    jobs[0].stages[0].demand = demand(1000, 500);
    jobs[1].stages[0].demand = demand(1000, 4000);
    let mut observation = slots(1, jobs);
    observation.free = vec![Free { count: 1, amounts: demand(2000, 8000) }];
    assert_eq!(given(Heuristic::Tetris, &observation)[0].0, 2);
}

#[test]
fn names_and_schema() {
    for heuristic in all() {
        assert_eq!(heuristic.to_string().parse(), Ok(heuristic));
    }
    assert!("weighted x".parse::<Heuristic>().unwrap_err().to_string().starts_with("'weighted x' is not an order"));
    let text = r#"{"now": 1, "executors": 2, "free": [{"count": 2}], "jobs": [
        {"id": 4, "arrival": 0, "stages": [{"tasks": 1, "duration": 5, "parents": [0]}]}]}"#;
    let observation: Observation = serde_json::from_str(text).unwrap();
    assert_eq!(
        observation.validate().unwrap_err().to_string(),
        "stage 0 of job 4 names the parent 0: a parent must be an earlier stage of the job"
    );
}
