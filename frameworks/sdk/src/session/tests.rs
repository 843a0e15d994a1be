//! Scripted sessions: the tests pass events and compare calls.

use std::collections::VecDeque;
use std::time::Duration;

use base::Time;

use super::*;
use crate::v1::scheduler::event::{self, Type};
use crate::v1::{AgentId, Offer, OfferId, TaskId, TaskInfo, TaskState};

mod ending;
mod holding;

/// A scheduler that records events, and handles each with the next prepared answer.
#[derive(Default)]
struct Script {
    received: Vec<Event>,
    answers: VecDeque<fn(&Event, &mut Calls)>,
}

impl Scheduler for Script {
    fn on_event(&mut self, event: Event, _now: Time, calls: &mut Calls) {
        if let Some(answer) = self.answers.pop_front() {
            answer(&event, calls);
        }
        self.received.push(event);
    }
}

struct Bench {
    session: Session<Script>,
    now: Time,
}

impl Bench {
    fn new(answers: &[fn(&Event, &mut Calls)]) -> Bench {
        let now = Time::from_secs(100);
        let framework = FrameworkInfo { user: "u".into(), name: "n".into(), ..Default::default() };
        let script = Script { received: Vec::new(), answers: answers.iter().copied().collect() };
        Bench { session: Session::new(script, Settings::new(framework), now), now }
    }

    /// Returns a session that is subscribed; `answers` start with the first event after that.
    fn subscribed(answers: &[fn(&Event, &mut Calls)]) -> Bench {
        let mut bench = Bench::new(&[]);
        bench.put(Input::Wake);
        bench.put(subscribed());
        bench.session.scheduler.received.clear();
        bench.session.scheduler.answers = answers.iter().copied().collect();
        bench
    }

    fn put(&mut self, input: Input) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.session.handle(input, self.now, &mut outputs);
        outputs
    }

    /// Advances the time to the session's next wake-up, and wakes it.
    fn sleep(&mut self) -> Vec<Output> {
        self.now = self.session.next_wake().unwrap().max(self.now);
        self.put(Input::Wake)
    }

    fn received(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.session.scheduler.received)
    }
}

fn wire(event: scheduler::Event) -> Input {
    Input::Event(Box::new(event))
}

fn subscribed() -> Input {
    let part = event::Subscribed {
        framework_id: FrameworkId { value: "F".into() },
        heartbeat_interval_seconds: Some(15.0),
        master_info: None,
    };
    wire(scheduler::Event {
        r#type: Some(Type::Subscribed as i32),
        subscribed: Some(Box::new(part)),
        ..Default::default()
    })
}

fn heartbeat() -> Input {
    wire(scheduler::Event { r#type: Some(Type::Heartbeat as i32), ..Default::default() })
}

fn offers(id: &str) -> Input {
    let offer = Offer {
        id: OfferId { value: id.into() },
        agent_id: AgentId { value: "S0".into() },
        hostname: "host".into(),
        ..Default::default()
    };
    let part = event::Offers { offers: vec![offer] };
    wire(scheduler::Event { r#type: Some(Type::Offers as i32), offers: Some(part), ..Default::default() })
}

fn status(state: TaskState, uuid: &[u8]) -> TaskStatus {
    TaskStatus {
        task_id: TaskId { value: "t".into() },
        state: state as i32,
        agent_id: Some(AgentId { value: "S0".into() }),
        uuid: (!uuid.is_empty()).then(|| uuid.to_vec()),
        ..Default::default()
    }
}

fn update(state: TaskState, uuid: &[u8]) -> Input {
    let part = event::Update { status: status(state, uuid) };
    wire(scheduler::Event { r#type: Some(Type::Update as i32), update: Some(part), ..Default::default() })
}

/// Handles offers: launches the task `t` on the first.
fn launch(event: &Event, calls: &mut Calls) {
    let Event::Offers(offers) = event else { panic!("{event:?}") };
    let task = TaskInfo { task_id: TaskId { value: "t".into() }, ..Default::default() };
    calls.launch(&offers[0], vec![task], Duration::from_secs(1));
}

fn nothing(_: &Event, _: &mut Calls) {}

/// Returns the types of the calls that are sent, and the names of the other outputs.
fn names(outputs: &[Output]) -> Vec<String> {
    let name = |call: &Call| call.r#type().as_str_name().to_owned();
    let one = |output: &Output| match output {
        Output::Subscribe(call) => format!("subscribe {}", call.framework_id.as_ref().map_or("", |id| &id.value)),
        Output::Send(call) => name(call),
        Output::Save(changes) => format!("save {}", changes.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Output::Answer(_) => "answer".to_owned(),
        Output::Disconnect => "disconnect".to_owned(),
        Output::End(ending) => format!("end {ending:?}"),
    };
    outputs.iter().map(one).collect()
}

/// Returns a change's key, marked if the entry is removed.
fn shown(change: &Change) -> String {
    format!("{}{}", if change.value.is_some() { "" } else { "-" }, change.key)
}

#[test]
fn what_must_survive_is_saved_before_it_is_sent() {
    let mut bench = Bench::new(&[
        |event, calls| {
            assert_eq!(*event, Event::Restored(BTreeMap::new()));
            calls.save("runs", b"1".to_vec());
        },
        nothing,
        |event, calls| {
            launch(event, calls);
            calls.save("t", Vec::new());
        },
        nothing,
        |_, calls| calls.forget("t"),
        |_, calls| calls.teardown(),
    ]);
    let mut outputs = Vec::new();
    bench.session.restore(BTreeMap::new(), bench.now, &mut outputs).unwrap();
    assert_eq!(names(&outputs), ["save own/runs"]);
    bench.put(Input::Wake);
    assert_eq!(names(&bench.put(subscribed())), ["save sdk/framework"]);
    assert_eq!(names(&bench.put(offers("O1"))), ["save sdk/task/t own/t", "ACCEPT"]);
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"1"))), ["save sdk/task/t", "ACKNOWLEDGE"]);
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"1"))), ["ACKNOWLEDGE"]);
    let end = bench.put(update(TaskState::TaskFinished, b"2"));
    assert_eq!(names(&end), ["save -sdk/task/t sdk/ended/0 -own/t", "ACKNOWLEDGE"]);
    assert_eq!(names(&bench.put(offers("O2"))), ["TEARDOWN", "save -sdk/framework", "end Stopped"]);
}

#[test]
fn damaged_state_is_refused_whole() {
    let mut bench = Bench::new(&[]);
    let entries = [("sdk/framework", b"F".to_vec()), ("sdk/task/t", vec![0xff])];
    let entries = entries.map(|(key, value)| (key.to_owned(), value)).into();
    let error = bench.session.restore(entries, bench.now, &mut Vec::new()).unwrap_err();
    assert_eq!(error.key, "sdk/task/t");
    assert_eq!(bench.received(), []);
    assert_eq!(names(&bench.put(Input::Wake)), ["subscribe "]);
}

#[test]
fn a_framework_that_was_removed_meanwhile_begins_anew() {
    let mut store = BTreeMap::new();
    let mut keep = |outputs: &[Output]| {
        for output in outputs {
            let Output::Save(changes) = output else { continue };
            for Change { key, value } in changes.clone() {
                match value {
                    Some(value) => store.insert(key, value),
                    None => store.remove(&key),
                };
            }
        }
    };
    let mut bench = Bench::new(&[nothing, nothing, launch]);
    bench.session.restore(BTreeMap::new(), bench.now, &mut Vec::new()).unwrap();
    bench.put(Input::Wake);
    keep(&bench.put(subscribed()));
    keep(&bench.put(offers("O1")));
    let mut bench = Bench::new(&[]);
    bench.session.restore(store, bench.now, &mut Vec::new()).unwrap();
    assert_eq!(bench.session.calls.tasks().len(), 1);
    assert_eq!(names(&bench.put(Input::Wake)), ["subscribe F"]);
    bench.received();
    let part = event::Error { message: "Framework has been removed".into() };
    let error = wire(scheduler::Event { r#type: Some(Type::Error as i32), error: Some(part), ..Default::default() });
    assert_eq!(names(&bench.put(error.clone())), ["disconnect", "save -sdk/task/t sdk/ended/0 -sdk/framework"]);
    let received = bench.received();
    assert!(matches!(&received[..], [Event::Update(s)] if s.state() == TaskState::TaskGone), "{received:?}");
    assert_eq!(names(&bench.sleep()), ["subscribe "]);
    assert_eq!(names(&bench.put(error)), ["end Error(\"Framework has been removed\")"], "only once");
}

#[test]
fn a_task_from_offer_to_end() {
    let mut bench = Bench::new(&[nothing, launch]);
    assert_eq!(names(&bench.put(Input::Wake)), ["subscribe "]);
    assert_eq!(names(&bench.put(subscribed())), [""; 0]);
    let outputs = bench.put(offers("O1"));
    assert_eq!(names(&outputs), ["ACCEPT"]);
    let Output::Send(call) = &outputs[0] else { panic!() };
    assert_eq!(call.framework_id.as_ref().unwrap().value, "F");
    let task = &call.accept.as_ref().unwrap().operations[0].launch.as_ref().unwrap().task_infos[0];
    assert_eq!(task.agent_id.value, "S0");
    assert_eq!(bench.session.calls.tasks().get("t").unwrap().state, TaskState::TaskStaging);
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"1"))), ["ACKNOWLEDGE"]);
    assert_eq!(bench.session.calls.tasks().get("t").unwrap().state, TaskState::TaskRunning);
    assert_eq!(names(&bench.put(update(TaskState::TaskFinished, b"2"))), ["ACKNOWLEDGE"]);
    assert!(bench.session.calls.tasks().is_empty());
}

#[test]
fn an_update_is_reported_once_and_acknowledged_each_time() {
    let mut bench = Bench::subscribed(&[]);
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"1"))), ["ACKNOWLEDGE"]);
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"1"))), ["ACKNOWLEDGE"]);
    assert_eq!(bench.received(), [Event::Update(status(TaskState::TaskRunning, b"1"))]);
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b""))), [""; 0], "a master's own update wants none");
}

#[test]
fn acknowledgement_comes_after_the_handlers_calls_or_when_it_says() {
    let mut bench = Bench::subscribed(&[
        |_, calls| calls.revive(),
        |_, calls| calls.hold_acknowledgement(),
        |event, calls| {
            let Event::Update(status) = event else { panic!() };
            calls.hold_acknowledgement();
            calls.acknowledge(status);
        },
    ]);
    assert_eq!(names(&bench.put(update(TaskState::TaskStarting, b"1"))), ["REVIVE", "ACKNOWLEDGE"]);
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"2"))), [""; 0]);
    assert_eq!(names(&bench.put(update(TaskState::TaskFailed, b"3"))), ["ACKNOWLEDGE"]);
}

#[test]
fn silence_is_a_lost_connection_and_tasks_are_reconciled_after_it() {
    let mut bench = Bench::subscribed(&[launch, |_, calls| calls.kill("t", None)]);
    bench.put(offers("O1"));
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"1"))), ["KILL", "ACKNOWLEDGE"]);
    bench.received();
    bench.now = bench.now + Duration::from_secs(74);
    bench.put(heartbeat());
    let received = bench.now;
    assert_eq!(names(&bench.sleep()), ["KILL"], "a kill is repeated until the task has ended");
    assert_eq!(names(&bench.sleep()), ["KILL"]);
    assert_eq!(names(&bench.sleep()), ["KILL"]);
    assert_eq!(names(&bench.sleep()), ["disconnect"]);
    assert_eq!(bench.now.since(received), Duration::from_secs(75));
    assert!(matches!(&bench.received()[..], [Event::Disconnected { .. }]));
    assert_eq!(names(&bench.sleep()), ["subscribe F"]);
    assert_eq!(names(&bench.put(subscribed())), ["RECONCILE", "KILL"]);
    assert!(matches!(&bench.received()[..], [Event::Subscribed { again: true, .. }]));
}

#[test]
fn a_task_without_updates_is_reconciled_again() {
    let mut bench = Bench::subscribed(&[launch]);
    bench.put(offers("O1"));
    bench.put(Input::Disconnected("cut".into()));
    bench.sleep();
    assert_eq!(names(&bench.put(subscribed())), ["RECONCILE"]);
    let before = bench.now;
    assert_eq!(names(&bench.sleep()), ["RECONCILE"]);
    assert!(bench.now.since(before) <= Duration::from_secs(5));
    bench.put(update(TaskState::TaskRunning, b""));
    assert_eq!(names(&bench.sleep()), ["disconnect"], "it was heard of: what comes next is the silence of the master");
    let text = bench.session.settings.metrics.text();
    for line in ["tepui_framework_calls_total{type=\"RECONCILE\"} 2", "tepui_framework_tasks 1"] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn tries_come_ever_later_until_one_succeeds() {
    let mut bench = Bench::new(&[]);
    assert_eq!(names(&bench.put(Input::Wake)), ["subscribe "]);
    let mut waits = Vec::new();
    for _ in 0..12 {
        bench.put(Input::Disconnected("refused".into()));
        let before = bench.now;
        assert_eq!(names(&bench.sleep()), ["subscribe "]);
        waits.push(bench.now.since(before));
    }
    assert!(waits[0] <= Duration::from_millis(250) && waits[11] > Duration::from_secs(7), "{waits:?}");
    assert_eq!(bench.received(), [], "a scheduler that never was subscribed is not told that it lost something");
    bench.put(subscribed());
    bench.put(Input::Disconnected("closed".into()));
    assert!(bench.session.next_wake().unwrap().since(bench.now) <= Duration::from_millis(250));
}

#[test]
fn a_subscribe_without_an_answer_is_given_up() {
    let mut bench = Bench::new(&[]);
    bench.put(Input::Wake);
    assert_eq!(names(&bench.sleep()), ["disconnect"]);
    assert_eq!(names(&bench.sleep()), ["subscribe "]);
}

#[test]
fn a_task_is_never_launched_twice() {
    let mut bench = Bench::subscribed(&[launch, launch]);
    assert_eq!(names(&bench.put(offers("O1"))), ["ACCEPT"]);
    assert_eq!(names(&bench.put(offers("O2"))), ["DECLINE"]);
    let received = bench.received();
    assert!(matches!(received.last(), Some(Event::Refused { why, .. }) if why.contains("'t'")), "{received:?}");
}

#[test]
fn a_task_twice_in_one_call_leaves_no_trace() {
    let mut bench = Bench::subscribed(&[|event, calls| {
        let Event::Offers(offers) = event else { panic!() };
        let task = TaskInfo { task_id: TaskId { value: "t".into() }, ..Default::default() };
        calls.launch(&offers[0], vec![task.clone(), task], Duration::ZERO);
    }]);
    assert_eq!(names(&bench.put(offers("O1"))), ["DECLINE"]);
    assert!(bench.session.calls.tasks().is_empty());
}

#[test]
fn what_is_called_without_a_connection_is_not_sent_later() {
    let mut bench = Bench::subscribed(&[|_, calls| calls.revive(), |_, calls| calls.suppress()]);
    assert_eq!(names(&bench.put(Input::Disconnected("closed".into()))), [""; 0]);
    bench.sleep();
    assert_eq!(names(&bench.put(subscribed())), ["SUPPRESS"]);
}

#[test]
fn an_error_of_the_master_ends_the_session() {
    let mut bench = Bench::subscribed(&[]);
    let part = event::Error { message: "Framework failed over".into() };
    let error = wire(scheduler::Event { r#type: Some(Type::Error as i32), error: Some(part), ..Default::default() });
    assert_eq!(names(&bench.put(error)), ["end Error(\"Framework failed over\")"]);
    assert_eq!(bench.session.next_wake(), None);
    assert_eq!(names(&bench.put(offers("O1"))), [""; 0]);
    assert_eq!(bench.received().len(), 1);
}

#[test]
fn stopping_and_tearing_down() {
    let mut bench = Bench::subscribed(&[|_, calls| calls.stop()]);
    assert_eq!(names(&bench.put(offers("O1"))), ["end Stopped"]);
    let mut bench = Bench::subscribed(&[|_, calls| calls.teardown()]);
    assert_eq!(names(&bench.put(offers("O1"))), ["TEARDOWN", "end Stopped"]);
    let mut bench = Bench::subscribed(&[|_, calls| calls.teardown()]);
    let last = bench.put(update(TaskState::TaskFinished, b"1"));
    assert_eq!(names(&last), ["ACKNOWLEDGE", "TEARDOWN", "end Stopped"]);
}

#[test]
fn the_scheduler_is_woken_at_its_instant() {
    let mut bench = Bench::subscribed(&[|_, calls| {
        calls.wake_at(Time::from_secs(103));
        calls.wake_at(Time::from_secs(102));
    }]);
    bench.put(offers("O1"));
    bench.put(Input::Wake);
    assert_eq!(bench.received().len(), 1, "an early wake-up does no harm");
    bench.sleep();
    assert_eq!(bench.now, Time::from_secs(102));
    assert_eq!(bench.received(), [Event::Wake]);
}
