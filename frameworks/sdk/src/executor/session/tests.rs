//! Scripted sessions of an executor: the tests pass events and compare calls.

use super::*;
use crate::executor::Recovery;
use crate::v1::executor::event;
use crate::v1::{AgentInfo, ExecutorId, ExecutorInfo, FrameworkId, FrameworkInfo, TaskId, TaskState};

/// An executor that reports every task as finished when it is launched, and stops at a shutdown.
#[derive(Default)]
struct Quick {
    received: Vec<&'static str>,
    stubborn: bool,
}

impl Executor for Quick {
    fn on_event(&mut self, event: Event, _now: Time, calls: &mut Calls) {
        self.received.push(match event {
            Event::Subscribed { again: true, .. } => "subscribed again",
            Event::Subscribed { .. } => "subscribed",
            Event::Launch(tasks) => {
                tasks.iter().for_each(|t| calls.update(&t.task_id, TaskState::TaskFinished));
                "launch"
            }
            Event::Kill { .. } => "kill",
            Event::Message(_) => "message",
            Event::Disconnected { .. } => "disconnected",
            Event::Shutdown { .. } => {
                calls.stop = !self.stubborn;
                "shutdown"
            }
            Event::Wake => "wake",
        });
    }
}

struct Bench {
    session: Session<Quick>,
    now: Time,
}

const RECOVERY: Recovery = Recovery { timeout: Duration::from_secs(900), backoff_max: Duration::from_secs(2) };

impl Bench {
    fn subscribed(recovery: Option<Recovery>) -> Bench {
        let environment = Environment {
            framework_id: FrameworkId { value: "F".into() },
            executor_id: ExecutorId { value: "E".into() },
            endpoint: "h:1".into(),
            recovery,
            shutdown_grace: Duration::from_secs(5),
            token: None,
        };
        let now = Time::from_secs(100);
        let mut bench = Bench { session: Session::new(Quick::default(), environment, 7, now), now };
        assert!(matches!(&bench.put(Input::Wake)[..], [Output::Subscribe(_)]));
        bench.put(subscribed());
        bench
    }

    fn put(&mut self, input: Input) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.session.handle(input, self.now, &mut outputs);
        outputs
    }

    fn sleep(&mut self) -> Vec<Output> {
        self.now = self.session.next_wake().unwrap();
        self.put(Input::Wake)
    }

    fn received(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.session.executor.received)
    }
}

fn wire(kind: Type) -> executor::Event {
    executor::Event { r#type: Some(kind as i32), ..Default::default() }
}

fn subscribed() -> Input {
    let part = event::Subscribed {
        executor_info: ExecutorInfo::default(),
        framework_info: FrameworkInfo::default(),
        agent_info: AgentInfo::default(),
        container_id: None,
    };
    Input::Event(Box::new(executor::Event { subscribed: Some(part), ..wire(Type::Subscribed) }))
}

fn launch(id: &str) -> Input {
    let task = TaskInfo { task_id: TaskId { value: id.into() }, ..Default::default() };
    Input::Event(Box::new(executor::Event { launch: Some(event::Launch { task }), ..wire(Type::Launch) }))
}

fn acknowledged(id: &str, uuid: &[u8]) -> Input {
    let part = event::Acknowledged { task_id: TaskId { value: id.into() }, uuid: uuid.to_vec() };
    Input::Event(Box::new(executor::Event { acknowledged: Some(part), ..wire(Type::Acknowledged) }))
}

fn shutdown() -> Input {
    Input::Event(Box::new(wire(Type::Shutdown)))
}

fn status(outputs: &[Output]) -> TaskStatus {
    let [Output::Send(call)] = outputs else { panic!("{outputs:?}") };
    call.update.clone().unwrap().status
}

#[test]
fn what_is_not_confirmed_is_sent_again_once() {
    let mut bench = Bench::subscribed(Some(RECOVERY));
    let first = status(&bench.put(launch("a")));
    assert_eq!((first.source(), first.uuid().len()), (task_status::Source::Executor, 16));
    let second = status(&bench.put(launch("b")));
    assert_ne!(first.uuid, second.uuid);
    bench.put(acknowledged("a", first.uuid()));
    assert_eq!(bench.put(Input::Disconnected("cut".into())), []);
    let outputs = bench.sleep();
    let [Output::Subscribe(call)] = &outputs[..] else { panic!("{outputs:?}") };
    let part = call.subscribe.as_ref().unwrap();
    assert_eq!(part.unacknowledged_updates, [call::Update { status: second }]);
    assert_eq!(part.unacknowledged_tasks[0].task_id.value, "b");
    bench.put(subscribed());
    assert_eq!(bench.received(), ["subscribed", "launch", "launch", "disconnected", "subscribed again"]);
}

#[test]
fn without_checkpointing_it_ends_with_its_agent() {
    let mut bench = Bench::subscribed(None);
    let outputs = bench.put(Input::Disconnected("cut".into()));
    assert_eq!(outputs, [Output::End(Ending::Stopped)]);
    assert_eq!(bench.received(), ["subscribed", "disconnected", "shutdown"]);
}

#[test]
fn an_agent_that_stays_away_is_given_up() {
    let mut bench = Bench::subscribed(Some(RECOVERY));
    bench.session.executor.stubborn = true;
    bench.put(Input::Disconnected("cut".into()));
    let away = bench.now;
    let mut tries = 0;
    let outputs = loop {
        let outputs = bench.sleep();
        match &outputs[..] {
            [Output::Subscribe(_)] => {
                tries += 1;
                assert_eq!(bench.put(Input::Disconnected("no".into())), []);
            }
            [Output::End(_)] => break outputs,
            other => assert!(other.is_empty(), "{other:?}"),
        }
    };
    assert!(tries > 400, "{tries}");
    assert_eq!(bench.now.since(away), Duration::from_secs(905));
    assert_eq!(outputs, [Output::End(Ending::Overdue)]);
    assert_eq!(bench.received(), ["subscribed", "disconnected", "shutdown"]);
}

#[test]
fn a_shutdown_waits_for_the_last_updates() {
    let mut bench = Bench::subscribed(Some(RECOVERY));
    let last = status(&bench.put(launch("a")));
    assert_eq!(bench.put(shutdown()), []);
    assert_eq!(bench.put(acknowledged("a", last.uuid())), [Output::End(Ending::Stopped)]);
    let mut bench = Bench::subscribed(Some(RECOVERY));
    bench.put(launch("a"));
    bench.put(shutdown());
    assert_eq!(bench.sleep(), [Output::End(Ending::Stopped)], "an agent that does not confirm is not waited for");
    assert_eq!(bench.now, Time::from_secs(105));
    assert_eq!(bench.session.next_wake(), None);
}

#[test]
fn heartbeats_and_refusals() {
    let mut bench = Bench::subscribed(Some(RECOVERY));
    let outputs = bench.sleep();
    assert_eq!(bench.now, Time::from_secs(100 + 30 * 60));
    assert!(matches!(&outputs[..], [Output::Send(call)] if call.r#type() == call::Type::Heartbeat));
    assert_eq!(bench.put(Input::Refused("no".into())), [Output::End(Ending::Error("no".into()))]);
}
