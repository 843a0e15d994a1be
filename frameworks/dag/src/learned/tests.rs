//! Property tests of the learned order, over random observations and random networks. Invariants:
//!
//! 1. Actions can be carried out, as those of every order (`order::tests::check`).
//! 2. The same observation leads to the same actions, whether jobs were seen before or not.
//! 3. A job that has waited for too long gets executors before all others, under the model and under the heuristic.
//!
//! Scenarios test gradients against finite differences, files of weights, and the guard when the model cannot be
//! trusted.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::order::tests::{check, observation};
use crate::order::{Amounts, Free, Heuristic, History, Job, Observation, Policy, Stage, grants};
use crate::study::cluster::{Outcome, Setup, run};
use crate::study::generated;
use crate::study::job::{Arrival, Durations, JobModel, StageModel};
use crate::study::orders::{WORKLOADS, Workload};

fn model(network: Network, seen: FeatureRanges) -> Arc<Model> {
    Arc::new(Model { network, seen, about: String::new() })
}

/// Returns ranges that contain every feature.
pub(crate) fn everything() -> FeatureRanges {
    let wide = (-1e9, 1e9);
    FeatureRanges { stages: [wide; NODE], jobs: [wide; JOB], most_jobs: 1_000_000, situations: 1 }
}

/// Returns the limits of a guard that never replays.
fn without_replay() -> Guard {
    Guard { least_jobs: usize::MAX, ..Guard::default() }
}

proptest! {
    #[test]
    fn actions_can_be_carried_out(observation in observation(), seed in 0..1000_u64, guarded in any::<bool>()) {
        let network = Network::new(seed);
        let policy = || -> Box<dyn Policy + Send> {
            match guarded {
                true => Box::new(GuardedOrder::new(model(network.clone(), everything()), Guard::default())),
                false => Box::new(Decima::new(Arc::new(network.clone()), Mode::Greedy)),
            }
        };
        let mut first = policy();
        let actions = first.decide(&observation);
        check(&observation, &actions, &grants(&observation, &actions))?;
        prop_assert_eq!(&policy().decide(&observation), &actions);
        prop_assert_eq!(first.decide(&observation), actions);
    }

    #[test]
    fn overdue_jobs_come_first(seed in 0..1000_u64, fallen in any::<bool>(), free in 1..20_u32) {
        let job = |id, arrival, tasks| {
            let stages = vec![Stage { tasks, duration: 1000, ..Stage::default() }];
            Job { id, arrival, class: 0, weight: 1000, deadline: None, held: 0, stages }
        };
        let seen = if fallen { FeatureRanges { situations: 1, ..FeatureRanges::default() } } else { everything() };
        let mut policy = GuardedOrder::new(model(Network::new(seed), seen), without_replay());
        let at = |now: u64, free: u32| Observation {
            now,
            executors: 20,
            free: vec![Free { count: free, amounts: Amounts::default() }],
            jobs: vec![job(1, 0, 30), job(2, now, 300), job(3, now, 3)],
            ..Observation::default()
        };
        // The old job gets no executor for a long time.
        for now in (0..200).step_by(10) {
            policy.decide(&at(now * 1000, 0));
        }
        let observation = at(200_000, free);
        let granted = grants(&observation, &policy.decide(&observation));
        prop_assert_eq!((granted[0].job, granted[0].tasks), (1, free));
        let explained = policy.explain().unwrap();
        prop_assert_eq!((explained.overdue, explained.by == "model"), (vec![1], !fallen));
    }
}

#[test]
fn the_gradient_of_the_network_is_that_of_finite_differences() {
    let mut network = Network::new(3);
    let stage = |tasks, parents: &[u32]| Stage { tasks, duration: 700, parents: parents.into(), ..Stage::default() };
    let stages = vec![stage(4, &[]), stage(2, &[]), stage(9, &[0, 1]), stage(1, &[2])];
    let job = |id, stages| Job { id, arrival: 0, class: 0, weight: 1000, deadline: None, held: id as u32, stages };
    let observation = Observation {
        executors: 12,
        free: vec![Free { count: 5, amounts: Amounts::default() }],
        source: Some(2),
        ahead: true,
        jobs: vec![job(1, stages.clone()), job(2, stages[..2].to_vec())],
        ..Observation::default()
    };
    let mut policy = Decima::recording(Arc::new(network.clone()), Mode::Greedy);
    policy.decide(&observation);
    let situation = policy.take_choices().remove(0).situation;
    let (candidate, place) = (1, 0);
    // Logarithm of the probability of a choice.
    let log = |network: &Network| {
        let jobs: Vec<EmbeddedJob> = situation.jobs.iter().map(|job| network.embed(job)).collect();
        let jobs: Vec<&EmbeddedJob> = jobs.iter().collect();
        let (whole, features, stages) = evaluate(network, &situation, &jobs);
        let own = situation.candidates[candidate].job as usize;
        let limits = evaluate_limits(network, &situation, jobs[own], candidate, (&whole, &features[own]));
        f64::from(stages.logs[candidate] + limits.logs[place])
    };
    let jobs: Vec<EmbeddedJob> = situation.jobs.iter().map(|job| network.embed(job)).collect();
    let seen: Vec<(&EmbeddedJob, usize)> = jobs.iter().zip(0..).collect();
    let views: Vec<&EmbeddedJob> = jobs.iter().collect();
    let mut of_jobs: Vec<JobGradient> = jobs.iter().map(JobGradient::new).collect();
    let (mut gradient, mut of_whole) = (Gradient::new(&network), [0.0; WIDTH]);
    let (whole, features, stages) = evaluate(&network, &situation, &views);
    for (at, (known, trace)) in situation.candidates.iter().zip(&stages.traces).enumerate() {
        let slope = f32::from(u8::from(at == candidate)) - stages.logs[at].exp();
        let pair = (views[known.job as usize], &mut of_jobs[known.job as usize]);
        let place = (&features[known.job as usize], known.node as usize);
        gradient.of_stage(pair, place, (&whole, &mut of_whole), (slope, trace));
    }
    let own = situation.candidates[candidate].job as usize;
    let limits = evaluate_limits(&network, &situation, views[own], candidate, (&whole, &features[own]));
    for (at, trace) in limits.traces.iter().enumerate() {
        let slope = f32::from(u8::from(at == place)) - limits.logs[at].exp();
        let limit = situation.limits(candidate).at(at);
        let pair = (views[own], &mut of_jobs[own]);
        gradient.of_limit(pair, (&features[own], limit), (&whole, &mut of_whole), (slope, trace));
    }
    gradient.of_whole(&whole, &of_whole, &seen, &mut of_jobs);
    for (job, of) in jobs.iter().zip(of_jobs) {
        gradient.of_job(job, of);
    }
    let step = 2e-3;
    let mut bent = 0;
    for at in (0..WEIGHTS).step_by(11) {
        let kept = network.weights[at];
        let mut moved = |by: f32| {
            network.weights[at] = kept + by;
            log(&network)
        };
        let slope = (moved(step) - moved(-step)) / f64::from(2.0 * step);
        moved(0.0);
        // An activation may have a kink between the two points, so that the difference belongs to neither side.
        bent += usize::from((slope - f64::from(gradient.weights[at])).abs() > 0.02 * (0.2 + slope.abs()));
    }
    assert!(bent <= 6, "{bent} of {} slopes differ", WEIGHTS / 11);
}

#[test]
fn weights_are_read_as_they_were_written_and_others_refused() {
    let model = Model { network: Network::new(5), seen: everything(), about: "a test".to_owned() };
    let bytes = model.write().unwrap();
    assert!(bytes.len() < 100_000, "{}", bytes.len());
    assert_eq!(Model::read(&bytes).unwrap(), model);
    assert_eq!(model.write().unwrap(), bytes);
    let text = |bytes: &[u8]| Model::read(bytes).unwrap_err().to_string();
    assert!(text(&bytes[..100]).starts_with("not in the format safetensors"));
    assert_eq!(text(&vec![0; BYTES_MAX + 1]), "1048577 bytes: a model must have 1048576 at most");
    let mut broken = model.clone();
    broken.network.weights[0] = f32::NAN;
    assert_eq!(text(&broken.write().unwrap()), "the tensor 'prep.0.bias' has a number that is not finite");
    // Renames a tensor in the header to another name of the same length.
    let mut renamed = bytes.clone();
    let at = renamed.windows(13).position(|part| part == b"limit.3.bias\"").unwrap();
    renamed[at] = b'x';
    assert_eq!(text(&renamed), "the tensor 'limit.3.bias' is missing");
    let mut shaped = bytes;
    let at = shaped
        .windows(9)
        .position(|part| part == b"[29,32]},")
        .or_else(|| shaped.windows(7).position(|part| part == b"[6,16],"));
    let at = at.unwrap();
    shaped[at + 1..at + 5].copy_from_slice(b"3,32");
    assert_eq!(text(&shaped), "the tensor 'prep.0.weight' has F32 [3, 32]: must be F32 [6, 16]");
}

fn arrival(at: u64, tasks: u32, duration: u64) -> Arrival {
    let durations = Durations { executors: 5, first: vec![duration], rest: vec![duration], fresh: vec![] };
    let stage = StageModel { tasks, rough: duration, durations: vec![durations], ..StageModel::default() };
    Arrival { at, job: Arc::new(JobModel { name: String::new(), stages: vec![stage] }) }
}

/// Returns the arrival of a job with a chain of stages: the policy decides about executors between them.
fn chain(stages: u32, tasks: u32, duration: u64) -> Arrival {
    let mut job = (*arrival(0, tasks, duration).job).clone();
    let stage = job.stages[0].clone();
    job.stages = (0..stages)
        .map(|at| StageModel { parents: at.checked_sub(1).into_iter().collect(), ..stage.clone() })
        .collect();
    Arrival { at: 0, job: Arc::new(job) }
}

/// Returns a network whose score of a stage decreases with the remaining work of its job, and depends on nothing else.
fn shortest_only() -> Network {
    let mut network = Network::new(1);
    for (at, layer) in super::network::STAGE.layers().enumerate() {
        network.weights[layer.first..layer.first + (layer.inputs + 1) * layer.outputs].fill(0.0);
        let input = if at == 0 { NODE + JOB - 1 } else { 0 };
        network.weights[layer.first + layer.outputs + input * layer.outputs] = if at == 0 { -100.0 } else { 3.0 };
    }
    network
}

#[test]
fn no_job_starves() {
    // Small jobs arrive so fast that a policy which always takes them first leaves no executor for a large one.
    let mut jobs: Vec<Arrival> = vec![chain(8, 20, 3000)];
    jobs.extend((0..600).map(|n| arrival(1000 + n * 1000, 6, 2100)));
    let setup = Setup { executors: 20, moving_delay: 0, ..Setup::default() };
    let outcome = |policy: &mut dyn Policy| run(setup, &jobs, policy, &mut History::default(), 1).unwrap();
    let fair = outcome(&mut Heuristic::Fair).completions[0];
    let network = shortest_only();
    let alone = outcome(&mut Decima::new(Arc::new(network.clone()), Mode::Greedy)).completions[0];
    let guard = Guard { times: 1.0, ..without_replay() };
    let guarded = outcome(&mut GuardedOrder::new(model(network, everything()), guard)).completions[0];
    // It comes first after the time that equal shares would have taken among the jobs that were present.
    assert!(guarded < 0.8 * alone && alone > 3.0 * fair, "guarded {guarded}, alone {alone}, fair {fair}");
}

/// Returns the outcome of a generated workload under a guarded model, and the model's notes with their times in
/// seconds.
fn play(network: Network, seen: FeatureRanges, guard: Guard, workload: Workload) -> (Outcome, Vec<(u64, String)>) {
    struct Listened(GuardedOrder, Vec<(u64, String)>);
    impl Policy for Listened {
        fn decide(&mut self, observation: &Observation) -> Vec<crate::order::Action> {
            let actions = self.0.decide(observation);
            self.1.extend(self.0.take_notes().into_iter().map(|note| (observation.now / 1000, note)));
            actions
        }
        fn name(&self) -> String {
            self.0.name()
        }
    }
    let mut policy = Listened(GuardedOrder::new(model(network, seen), guard), Vec::new());
    let outcome = workload.run_with(&generated::queries(1), &mut policy, 1).unwrap();
    (outcome, policy.1)
}

const STREAM: Workload = Workload { jobs: 60, ..WORKLOADS[1] };

#[test]
fn a_model_that_does_worse_than_fair_is_set_aside() {
    let built_in = Order::built_in().unwrap();
    // The same network with inverted scores of stages: it prefers the worst choices.
    let mut fooled = built_in.network.clone();
    let last = super::network::STAGE.layers().last().unwrap();
    fooled.weights[last.first..=last.first + last.inputs].iter_mut().for_each(|weight| *weight = -*weight);
    let trusted = play(fooled.clone(), everything(), without_replay(), STREAM);
    let guarded = play(fooled, everything(), Guard::default(), STREAM);
    assert!(trusted.1.is_empty());
    let (at, note) = &guarded.1[0];
    assert!(
        *at < 1200 && note.starts_with("using remaining instead of the model for at least 300 s: replayed, the"),
        "{:?}",
        guarded.1
    );
    assert!(guarded.0.mean() < trusted.0.mean(), "{} {}", guarded.0.mean(), trusted.0.mean());
}

/// Checks that a replay models the cluster that is observed: here executors are not moved ahead, as in this framework.
#[test]
fn replays_are_of_the_cluster_that_is_seen() {
    let mut fooled = Order::built_in().unwrap().network.clone();
    let last = super::network::STAGE.layers().last().unwrap();
    fooled.weights[last.first..=last.first + last.inputs].iter_mut().for_each(|weight| *weight = -*weight);
    let setup = Setup { executors: STREAM.executors, ahead: false, ..Setup::default() };
    let mut policy = GuardedOrder::new(model(fooled, everything()), Guard::default());
    let arrivals = STREAM.arrivals(&generated::queries(1), 1);
    run(setup, &arrivals, &mut policy, &mut History::default(), 1).unwrap();
    let notes = policy.take_notes();
    assert!(notes[0].contains("instead of the model for at least 300 s: replayed, the"), "{notes:?}");
}

#[test]
fn what_training_has_not_seen_is_decided_by_the_heuristic_until_it_is_quiet() {
    let seen = FeatureRanges { most_jobs: 4, ..everything() };
    let network = Network::new(1);
    let mut policy = GuardedOrder::new(model(network, seen), without_replay());
    let at = |now: u64, jobs: u64| {
        let stages = vec![Stage { tasks: 5, duration: 1000, ..Stage::default() }];
        let job =
            |id| Job { id, arrival: now, class: 0, weight: 1000, deadline: None, held: 0, stages: stages.clone() };
        let free = vec![Free { count: 3, amounts: Amounts::default() }];
        Observation {
            now: now * 1000,
            executors: 20,
            free,
            jobs: (0..jobs).map(job).collect(),
            ..Observation::default()
        }
    };
    let mut said = Vec::new();
    for (now, jobs) in [(0, 3), (10, 9), (20, 3), (200, 8), (310, 3), (500, 3), (511, 3), (520, 3)] {
        policy.decide(&at(now, jobs));
        said.push((now, policy.explain().unwrap().by));
        for note in policy.take_notes() {
            said.push((now, note));
        }
    }
    let why = "the feature 'jobs' is 9.00, above the largest value in training, 4.00";
    let expected = [
        (0, "model".to_owned()),
        (10, "remaining".to_owned()),
        (10, format!("using remaining instead of the model for at least 300 s: {why}")),
        (20, "remaining".to_owned()),
        (200, "remaining".to_owned()),
        (310, "remaining".to_owned()),
        (500, "model".to_owned()),
        (500, "the model decides again".to_owned()),
        (511, "model".to_owned()),
        (520, "model".to_owned()),
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_decision_that_takes_too_long_is_the_heuristics() {
    let mut policy =
        GuardedOrder::new(model(Network::new(1), everything()), Guard { work: 50_000, ..without_replay() });
    let stages = |count: usize| vec![Stage { tasks: 5, duration: 1000, ..Stage::default() }; count];
    let at = |count| Observation {
        executors: 20,
        free: vec![Free { count: 1, amounts: Amounts::default() }],
        jobs: vec![Job { id: 1, arrival: 0, class: 0, weight: 1000, deadline: None, held: 0, stages: stages(count) }],
        ..Observation::default()
    };
    policy.decide(&at(1));
    assert_eq!(policy.fallback_reason(), None);
    policy.decide(&at(40));
    assert!(
        policy.fallback_reason().unwrap().ends_with("multiplications, more than 50000"),
        "{:?}",
        policy.fallback_reason()
    );
    assert_eq!(policy.name(), "decima (remaining)");
}
