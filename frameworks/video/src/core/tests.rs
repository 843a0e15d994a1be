//! Tests of the scheduler in a session: wire events and questions in, calls and answers out.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;
use sdk::v1::scheduler::event::{self, Type};
use sdk::v1::scheduler::{Call, call};
use sdk::v1::{AgentId, FrameworkId, FrameworkInfo, Offer, OfferId, TaskId, TaskState, TaskStatus, scheduler};
use sdk::{Input, Output, Session, Settings};

use super::*;
use crate::pipeline::{Config, QueryKind, Score};
use crate::profile::Point;
use crate::schedule::Goals;
use crate::spec::QuerySpec;

pub(super) fn submission(name: &str, max_lag: f64) -> Submission {
    let spec = QuerySpec {
        name: name.to_owned(),
        kind: QueryKind::Cars,
        video: std::path::Path::new("a.mp4").into(),
        reconnect: 0.0,
        scope: crate::pipeline::Scope::default(),
        detector: crate::vision::Detector::Colour,
        alert: false,
        model: None,
        looped: true,
        seconds: None,
        truth: None,
        profile: None,
        goals: Goals { max_lag, ..Default::default() },
    };
    let cheap = Config { every: 8, ..Config::GOLDEN };
    let points = vec![
        Point { config: cheap, quality: 0.6, cores: 0.1 },
        Point { config: Config::GOLDEN, quality: 1.0, cores: 0.8 },
    ];
    Submission { spec, points, golden: Config::GOLDEN }
}

/// A session that contains a scheduler, with what it has saved and the tasks that it launched.
pub(super) struct Rig {
    session: Session<VideoScheduler>,
    asks: Asks,
    now: Time,
    saved: BTreeMap<String, Vec<u8>>,
    calls: Vec<Call>,
    offers: u32,
}

/// Requester of the scheduler; tests send the questions themselves.
struct Asks(sdk::Requester<Question, Answer>);

impl Rig {
    pub(super) fn new(saved: BTreeMap<String, Vec<u8>>, now: Time) -> Rig {
        let (requester, requests) = sdk::requests();
        let worker = WorkerCommand {
            program: "/bin/worker".into(),
            arguments: vec!["worker".into()],
            uri: None,
            driver: "127.0.0.1:1".into(),
            token: "secret".into(),
        };
        let scheduler = VideoScheduler::new(Options::new(worker), requests);
        let framework = FrameworkInfo { user: "u".into(), name: "n".into(), ..Default::default() };
        let mut outputs = Vec::new();
        let mut session = Session::new(scheduler, Settings::new(framework), now);
        session.restore(saved.clone(), now, &mut outputs).expect("what was kept can be read");
        let mut rig = Rig { session, asks: Asks(requester), now, saved, calls: Vec::new(), offers: 0 };
        rig.take(outputs);
        rig.put(Input::Wake);
        let part = event::Subscribed { framework_id: FrameworkId { value: "F".into() }, ..Default::default() };
        rig.wire(scheduler::Event {
            r#type: Some(Type::Subscribed as i32),
            subscribed: Some(Box::new(part)),
            ..Default::default()
        });
        rig
    }

    fn take(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Save(changes) => {
                    for change in changes {
                        match change.value {
                            Some(value) => drop(self.saved.insert(change.key, value)),
                            None => drop(self.saved.remove(&change.key)),
                        }
                    }
                }
                Output::Send(call) => self.calls.push(*call),
                Output::Answer(answer) => answer.deliver(),
                _ => {}
            }
        }
    }

    fn put(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.session.handle(input, self.now, &mut outputs);
        self.take(outputs);
    }

    fn wire(&mut self, event: scheduler::Event) {
        self.put(Input::Event(Box::new(event)));
    }

    pub(super) fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now = self.now + Duration::from_secs(1);
            self.put(Input::WakeSignal);
        }
    }

    pub(super) fn ask(&mut self, question: Question) -> Answer {
        let requester = self.asks.0.clone();
        let mut answer = Box::pin(requester.ask(question));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(answer.as_mut().poll(&mut context).is_pending());
        self.put(Input::WakeSignal);
        match answer.as_mut().poll(&mut context) {
            std::task::Poll::Ready(Ok(answer)) => answer,
            other => panic!("no answer: {other:?}"),
        }
    }

    fn offer(&mut self, agent: &str, cores: f64) {
        self.offers_of(&[(agent, cores)]);
    }

    fn made(&mut self, agent: &str, cores: f64) -> Offer {
        self.offers += 1;
        let scalar = |name: &str, value: f64| sdk::v1::Resource {
            name: name.into(),
            r#type: sdk::v1::value::Type::Scalar as i32,
            scalar: Some(sdk::v1::value::Scalar { value }),
            ..Default::default()
        };
        Offer {
            id: OfferId { value: format!("O{}", self.offers).into() },
            agent_id: AgentId { value: agent.into() },
            hostname: format!("host-{agent}"),
            resources: vec![scalar("cpus", cores), scalar("mem", 4096.0)],
            ..Default::default()
        }
    }

    pub(super) fn offers_of(&mut self, agents: &[(&str, f64)]) {
        let offers = agents.iter().map(|(agent, cores)| self.made(agent, *cores)).collect();
        let part = event::Offers { offers };
        self.wire(scheduler::Event { r#type: Some(Type::Offers as i32), offers: Some(part), ..Default::default() });
    }

    fn revives(&mut self) -> usize {
        std::mem::take(&mut self.calls).iter().filter(|call| call.r#type() == call::Type::Revive).count()
    }

    pub(super) fn update(&mut self, task: &str, state: TaskState) {
        let status = TaskStatus {
            task_id: TaskId { value: task.into() },
            state: state as i32,
            agent_id: Some(AgentId { value: "A".into() }),
            uuid: Some(vec![self.calls.len() as u8; 16]),
            ..Default::default()
        };
        let part = event::Update { status };
        self.wire(scheduler::Event { r#type: Some(Type::Update as i32), update: Some(part), ..Default::default() });
    }

    /// Returns the tasks that were launched and killed since the last call: name and cores, or name and 0.
    fn sent(&mut self) -> Vec<(String, f64)> {
        self.sent_where().into_iter().map(|(task, cores, _)| (task, cores)).collect()
    }

    /// Returns the tasks as `sent`, with the agents of launched ones.
    pub(super) fn sent_where(&mut self) -> Vec<(String, f64, String)> {
        let mut out = Vec::new();
        for call in std::mem::take(&mut self.calls) {
            if call.r#type() == call::Type::Kill {
                out.extend(call.kill.map(|k| (k.task_id.value.into(), 0.0, String::new())));
                continue;
            }
            let launches = call.accept.into_iter().flat_map(|a| a.operations).filter_map(|o| o.launch);
            for task in launches.flat_map(|launch| launch.task_infos) {
                let scalar = task.resources.iter().find(|r| r.name == "cpus").and_then(|r| r.scalar.as_ref());
                let cores = scalar.map_or(0.0, |s| s.value);
                out.push((task.task_id.value.into(), cores, task.agent_id.value.into()));
            }
        }
        out
    }

    pub(super) fn status(&mut self) -> Status {
        match self.ask(Question::Status) {
            Answer::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    fn hello(&mut self, task: &str) -> Start {
        match self.ask(Question::Hello { task: task.into(), position: None }) {
            Answer::Start(start) => *start,
            other => panic!("{other:?}"),
        }
    }
}

fn started(rig: &mut Rig, names: &[&str]) {
    let all = names.iter().map(|n| submission(n, 2.0)).collect();
    assert!(matches!(rig.ask(Question::Submit(all)), Answer::Done));
    rig.offer("A", 4.0);
    for (run, name) in (1..).zip(names) {
        rig.hello(&format!("video-{name}-{run}.1"));
    }
}

#[test]
fn a_query_becomes_a_task_works_and_ends() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    started(&mut rig, &["gate"]);
    let sent = rig.sent();
    assert_eq!(
        sent,
        [("video-gate-1.1".to_owned(), 1.0)],
        "one thread's core: the best configuration needs 0.8, and half as much again is more"
    );
    rig.update("video-gate-1.1", TaskState::TaskRunning);
    let report = Report { position: 2.0, lag: 0.1, found: 3, config: Some(Config::GOLDEN), ..Default::default() };
    let Answer::Orders(orders) = rig.ask(Question::Report { task: "video-gate-1.1".into(), report }) else { panic!() };
    assert_eq!(orders.config, Config::GOLDEN);
    assert!(orders.cores > 0.0 && orders.cores <= 1.0);
    let report = Report { position: 9.0, done: true, ..Default::default() };
    rig.ask(Question::Report { task: "video-gate-1.1".into(), report });
    rig.update("video-gate-1.1", TaskState::TaskFinished);
    rig.pass(3);
    let status = rig.status();
    assert_eq!((status.queries[0].state, status.queries[0].found), (State::Done, 3));
    assert_eq!(rig.sent(), []);
}

/// Sends a report of a worker with this last sample.
fn sampled(rig: &mut Rig, number: u32, config: Config, right: u64, missed: u64) {
    let score = Score { right, wrong: 0, missed };
    let sample = Some(Box::new(QualitySample { number, at: 1.0, config, score }));
    let report = Report { position: f64::from(number), config: Some(config), sample, ..Default::default() };
    rig.ask(Question::Report { task: "video-gate-1.1".into(), report });
}

#[test]
fn samples_are_counted_once_and_a_new_profile_starts_over() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    started(&mut rig, &["gate"]);
    let cheap = submission("gate", 2.0).points[0];
    // The report is repeated every second until the next sample.
    for number in [1, 1, 1, 2, 2] {
        sampled(&mut rig, number, cheap.config, 6, 6);
    }
    let status = rig.status().queries[0].sampled.expect("there are samples");
    assert_eq!((status.samples, status.events, status.promised), (2, 24, cheap.quality));
    assert!((status.quality.unwrap() - 2.0 / 3.0).abs() < 1e-9);
    let points = vec![Point { quality: 0.66, ..cheap }];
    let unknown = rig.ask(Question::Profile { query: "other".into(), points: points.clone() });
    assert!(matches!(unknown, Answer::NoQuery(name) if name == "other"));
    let empty = rig.ask(Question::Profile { query: "gate".into(), points: Vec::new() });
    assert!(matches!(empty, Answer::Refused(why) if why == "query \"gate\": its profile has no points"));
    assert!(matches!(rig.ask(Question::Profile { query: "gate".into(), points }), Answer::Done));
    let query = &rig.status().queries[0];
    assert_eq!((query.sampled, query.quality, query.profiled_again), (None, 0.66, 1));
    // A configuration that is not in the profile has no expected quality.
    sampled(&mut rig, 3, Config { every: 7, ..Config::GOLDEN }, 6, 6);
    assert_eq!(rig.status().queries[0].sampled, None);
}

#[test]
fn a_worker_that_dies_is_started_again_where_it_was() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    started(&mut rig, &["gate"]);
    rig.sent();
    let report = Report { position: 7.5, ..Default::default() };
    rig.ask(Question::Report { task: "video-gate-1.1".into(), report: report.clone() });
    rig.update("video-gate-1.1", TaskState::TaskFailed);
    rig.pass(2);
    rig.offer("B", 2.0);
    assert_eq!(rig.sent(), [("video-gate-1.2".to_owned(), 1.0)]);
    assert!(matches!(rig.ask(Question::Report { task: "video-gate-1.1".into(), report }), Answer::Unknown));
    assert_eq!(rig.hello("video-gate-1.2").position, 7.5);
}

#[test]
fn a_video_that_cannot_be_read_is_not_tried_again() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    started(&mut rig, &["gate"]);
    rig.sent();
    let report = Report { position: 3.0, found: 2, failure: Some("cut short".into()), ..Default::default() };
    rig.ask(Question::Report { task: "video-gate-1.1".into(), report });
    rig.update("video-gate-1.1", TaskState::TaskFailed);
    rig.pass(5);
    rig.offer("A", 4.0);
    assert_eq!(rig.sent(), []);
    let query = rig.status().queries.remove(0);
    assert_eq!((query.state, query.message.as_str(), query.found), (State::Failed, "cut short", 2));
}

#[test]
fn a_scheduler_that_comes_back_takes_its_tasks_over() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    started(&mut rig, &["gate", "yard"]);
    rig.update("video-gate-1.1", TaskState::TaskRunning);
    rig.update("video-yard-2.1", TaskState::TaskRunning);
    rig.pass(4);
    let report = Report { position: 4.0, ..Default::default() };
    rig.ask(Question::Report { task: "video-gate-1.1".into(), report });
    rig.pass(3);
    let mut after = Rig::new(rig.saved, rig.now + Duration::from_secs(5));
    assert_eq!(after.sent(), [], "nothing is launched twice, nothing is killed");
    let status = after.status();
    assert!(status.queries.iter().all(|q| q.state == State::Running && q.starts == 1), "{status:?}");
    assert_eq!(status.queries[0].position, 4.0);
    // The worker's own position is later than the persisted one.
    let again = after.ask(Question::Hello { task: "video-gate-1.1".into(), position: Some(9.0) });
    assert!(matches!(again, Answer::Start(start) if start.position == 9.0 && start.age == 12.0));
    // A query whose task has ended meanwhile starts again.
    after.update("video-yard-2.1", TaskState::TaskLost);
    after.pass(2);
    after.offer("A", 4.0);
    assert_eq!(after.sent(), [("video-yard-2.2".to_owned(), 1.0)]);
}

#[test]
fn a_task_shrinks_for_a_waiting_query() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    started(&mut rig, &["a", "b"]);
    rig.sent();
    assert!(matches!(rig.ask(Question::Submit(vec![submission("c", 2.0)])), Answer::Done));
    rig.pass(8);
    let sent = rig.sent();
    let [(task, _)] = sent.as_slice() else { panic!("one task makes room: {sent:?}") };
    rig.update(task, TaskState::TaskKilled);
    rig.offer("A", 1.2);
    let sent = rig.sent();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(sent.iter().map(|(_, cores)| cores).sum::<f64>() <= 1.2 + 1e-9, "{sent:?}");
}

#[test]
fn released_cores_go_to_queries_that_can_use_more() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    let all = ["a", "b"].map(|n| submission(n, 2.0)).to_vec();
    assert!(matches!(rig.ask(Question::Submit(all)), Answer::Done));
    rig.offer("A", 0.8);
    let sent = rig.sent();
    assert_eq!(sent, [("video-a-1.1".to_owned(), 0.4), ("video-b-2.1".to_owned(), 0.4)]);
    rig.hello("video-a-1.1");
    rig.hello("video-b-2.1");
    rig.ask(Question::Report { task: "video-a-1.1".into(), report: Report { done: true, ..Default::default() } });
    rig.update("video-a-1.1", TaskState::TaskFinished);
    rig.pass(5);
    assert_eq!(rig.sent(), [("video-b-2.1".to_owned(), 0.0)], "ended, to be launched again");
    rig.update("video-b-2.1", TaskState::TaskKilled);
    rig.offer("A", 0.8);
    assert_eq!(rig.sent(), [("video-b-2.2".to_owned(), 0.8)]);
}

/// Makes two queries on an agent with far too few cores for both; the first lags until it moves.
fn crowded() -> Rig {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    let all = ["a", "b"].map(|n| submission(n, 2.0)).to_vec();
    assert!(matches!(rig.ask(Question::Submit(all)), Answer::Done));
    rig.offer("A", 0.2);
    rig.hello("video-a-1.1");
    rig.hello("video-b-2.1");
    for second in 0..14 {
        let report = |lag| Report { position: f64::from(second) / 2.0, lag, found: 1, ..Default::default() };
        rig.ask(Question::Report { task: "video-a-1.1".into(), report: report(f64::from(second) / 2.0) });
        rig.ask(Question::Report { task: "video-b-2.1".into(), report: report(0.1) });
        rig.pass(1);
    }
    rig.sent();
    rig
}

#[test]
fn a_second_worker_that_comes_up_when_all_is_done_has_not_failed() {
    let mut rig = crowded();
    rig.offer("B", 2.0);
    assert_eq!(rig.sent(), [("video-a-1.2".to_owned(), 1.0)]);
    let report = Report { position: 14.0, done: true, ..Default::default() };
    rig.ask(Question::Report { task: "video-a-1.1".into(), report: report.clone() });
    assert_eq!(rig.sent(), [("video-a-1.2".to_owned(), 0.0)]);
    // The second task may start before its kill arrives, and the answer to the first one may have been lost.
    for task in ["video-a-1.2", "video-a-1.1"] {
        let answer = rig.ask(Question::Hello { task: task.into(), position: None });
        assert!(matches!(answer, Answer::QueryEnded), "{task}: {answer:?}");
    }
    assert!(matches!(rig.ask(Question::Hello { task: "video-a-7.1".into(), position: None }), Answer::Unknown));
    rig.update("video-a-1.2", TaskState::TaskFinished);
    rig.update("video-a-1.1", TaskState::TaskFinished);
    assert_eq!(rig.status().queries.remove(0).state, State::Done);
}

#[test]
fn a_query_that_lags_moves_to_where_there_is_more_without_a_gap() {
    let mut rig = crowded();
    rig.offer("A", 0.05);
    assert_eq!(rig.sent(), [], "where it is there is no more");
    rig.offer("B", 2.0);
    assert_eq!(rig.sent(), [("video-a-1.2".to_owned(), 1.0)], "a second task, and the first goes on");
    let report = Report { position: 7.0, lag: 7.0, found: 2, ..Default::default() };
    let answer = rig.ask(Question::Report { task: "video-a-1.1".into(), report: report.clone() });
    assert!(matches!(answer, Answer::Orders(_)), "{answer:?}");
    let before = rig.status();
    assert!((before.cores - 1.2).abs() < 1e-9, "both are counted: {}", before.cores);
    // The new worker starts where the last report ended; later reports of the old one are ignored.
    assert_eq!(rig.hello("video-a-1.2").position, 7.0);
    assert_eq!(rig.sent(), [("video-a-1.1".to_owned(), 0.0)]);
    assert!(matches!(
        rig.ask(Question::Report { task: "video-a-1.1".into(), report: report.clone() }),
        Answer::QueryEnded
    ));
    rig.update("video-a-1.1", TaskState::TaskKilled);
    rig.pass(1);
    assert!(matches!(rig.ask(Question::Report { task: "video-a-1.1".into(), report }), Answer::Unknown));
    let query = rig.status().queries.remove(0);
    assert_eq!((query.state, query.host.as_str(), query.starts), (State::Running, "host-B", 2));
    assert_eq!((query.found, query.position, query.reserved), (14 + 2, 7.0, 1.0));
    assert!(query.cores > 0.2, "more than both had where it was: {query:?}");
}

#[test]
fn a_move_that_fails_changes_nothing_and_one_whose_first_task_dies_is_finished() {
    let mut rig = crowded();
    rig.offer("B", 2.0);
    rig.sent();
    rig.update("video-a-1.2", TaskState::TaskFailed);
    assert_eq!(rig.status().queries[0].task.as_deref(), Some("video-a-1.1"));
    assert_eq!(rig.status().cores, 0.2);
    rig.offer("B", 2.0);
    assert_eq!(rig.sent(), [("video-a-1.3".to_owned(), 1.0)]);
    rig.update("video-a-1.1", TaskState::TaskFailed);
    rig.offer("C", 4.0);
    let sent = rig.sent();
    assert!(sent.iter().all(|(task, _)| !task.starts_with("video-a")), "the second task is its task now: {sent:?}");
    assert_eq!(rig.status().queries[0].state, State::Starting);
    assert_eq!(rig.hello("video-a-1.3").position, 6.5);
    // A second task is not persisted, so it is killed after a restart of the scheduler.
    let mut again = crowded();
    again.offer("B", 2.0);
    again.update("video-a-1.2", TaskState::TaskRunning);
    again.sent();
    let mut after = Rig::new(again.saved, again.now + Duration::from_secs(5));
    let sent = after.sent();
    assert!(!sent.is_empty() && sent.iter().all(|s| *s == ("video-a-1.2".to_owned(), 0.0)), "{sent:?}");
    assert_eq!(after.status().queries[0].state, State::Running);
}

#[test]
fn invalid_submissions_are_refused_as_a_whole() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    let mut bad = submission("b", 2.0);
    bad.spec.goals.min_quality = 3.0;
    let answer = rig.ask(Question::Submit(vec![submission("a", 2.0), bad]));
    assert!(matches!(&answer, Answer::Refused(why) if why.contains("min_quality")), "{answer:?}");
    let answer = rig.ask(Question::Submit(vec![submission("a", 2.0), submission("a", 2.0)]));
    assert!(matches!(&answer, Answer::Refused(why) if why.contains("already")), "{answer:?}");
    assert_eq!(rig.status().queries, []);
    assert!(matches!(rig.ask(Question::Remove("a".into())), Answer::NoQuery(_)));
}

#[test]
fn tasks_are_no_larger_than_what_one_agent_has() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    assert!(matches!(rig.ask(Question::Submit(vec![submission("a", 2.0)])), Answer::Done));
    rig.offers_of(&[("A", 0.3), ("B", 0.4), ("C", 0.3)]);
    assert_eq!(rig.sent(), [("video-a-1.1".to_owned(), 0.4)]);
}

#[test]
fn cores_that_become_free_later_are_used_without_a_gap() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    assert!(matches!(rig.ask(Question::Submit(vec![submission("a", 2.0)])), Answer::Done));
    rig.offer("A", 0.2);
    rig.hello("video-a-1.1");
    for second in 1..12 {
        rig.ask(Question::Report {
            task: "video-a-1.1".into(),
            report: Report { position: f64::from(second), ..Default::default() },
        });
        rig.pass(1);
    }
    rig.sent();
    rig.offer("A", 0.25);
    assert_eq!(rig.sent(), [], "not enough more to be worth a second task");
    rig.offer("A", 2.0);
    assert_eq!(rig.sent(), [("video-a-1.2".to_owned(), 1.0)], "on the same agent, and the first goes on");
    rig.hello("video-a-1.2");
    assert_eq!(rig.sent(), [("video-a-1.1".to_owned(), 0.0)]);
    rig.update("video-a-1.1", TaskState::TaskKilled);
    rig.pass(12);
    rig.offer("B", 4.0);
    assert_eq!(rig.sent(), [], "it has what it can use");
}

#[test]
fn one_that_fits_nowhere_is_not_in_the_way_of_the_next() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    // To catch up, the first query needs more cores than there are; it already holds more than the offer below has.
    assert!(matches!(rig.ask(Question::Submit(vec![submission("a", 1.0)])), Answer::Done));
    rig.offer("A", 0.6);
    rig.hello("video-a-1.1");
    assert!(matches!(rig.ask(Question::Submit(vec![submission("b", 1.0)])), Answer::Done));
    rig.offer("B", 0.1);
    rig.hello("video-b-2.1");
    for second in 0..14 {
        let report = Report { position: f64::from(second) / 2.0, lag: f64::from(second) / 2.0, ..Default::default() };
        rig.ask(Question::Report { task: "video-a-1.1".into(), report: report.clone() });
        rig.ask(Question::Report { task: "video-b-2.1".into(), report });
        rig.pass(1);
    }
    rig.sent();
    rig.offer("C", 0.5);
    assert_eq!(rig.sent(), [("video-b-2.2".to_owned(), 0.5)]);
}

#[test]
fn a_name_that_comes_back_is_another_task() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    started(&mut rig, &["gate"]);
    assert!(matches!(rig.ask(Question::Remove("gate".into())), Answer::Done));
    assert_eq!(rig.sent(), [("video-gate-1.1".to_owned(), 1.0), ("video-gate-1.1".to_owned(), 0.0)]);
    // The first task has not ended yet.
    assert!(matches!(rig.ask(Question::Submit(vec![submission("gate", 2.0)])), Answer::Done));
    rig.offer("A", 4.0);
    assert_eq!(rig.sent(), [("video-gate-2.1".to_owned(), 1.0)]);
    let mut after = Rig::new(rig.saved, rig.now + Duration::from_secs(5));
    assert!(matches!(after.ask(Question::Submit(vec![submission("yard", 2.0)])), Answer::Done));
    after.sent();
    after.offer("B", 4.0);
    assert_eq!(after.sent(), [("video-yard-3.1".to_owned(), 1.0)], "numbers go on after a restart");
}

#[test]
fn a_lost_agent_is_asked_to_kill_once_and_the_query_starts_elsewhere() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    started(&mut rig, &["gate"]);
    rig.sent();
    rig.update("video-gate-1.1", TaskState::TaskUnreachable);
    // The master answers the kill with this state.
    for _ in 0..3 {
        rig.update("video-gate-1.1", TaskState::TaskUnreachable);
    }
    assert_eq!(rig.sent(), [("video-gate-1.1".to_owned(), 0.0)]);
    rig.pass(2);
    rig.offer("B", 4.0);
    assert_eq!(rig.sent(), [("video-gate-1.2".to_owned(), 1.0)]);
}

#[test]
fn a_query_that_begins_to_wait_does_not_sit_out_old_refusals() {
    let mut rig = crowded();
    rig.revives();
    rig.offer("A", 0.05);
    assert!(matches!(rig.ask(Question::Submit(vec![submission("c", 2.0)])), Answer::Done));
    assert_eq!(rig.revives(), 1, "offers were asked for already, for the query that wants to move");
}

#[test]
fn saved_state_that_cannot_be_read_is_reported() {
    let mut rig = Rig::new(BTreeMap::new(), Time::from_secs(1000));
    started(&mut rig, &["gate", "yard"]);
    let torn = rig.saved.iter_mut().find(|(key, _)| key.ends_with("query/gate")).expect("it is kept");
    torn.1.truncate(9);
    let status = Rig::new(rig.saved, rig.now).status();
    assert_eq!(status.unreadable.keys().collect::<Vec<_>>(), ["gate"]);
    assert_eq!(status.queries.len(), 1);
}
