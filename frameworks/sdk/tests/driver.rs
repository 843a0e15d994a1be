//! Tests the driver against a fake master: its calls, and its reaction to a master that misbehaves.
//!
//! The fake master implements the scheduler API in protobuf, follows the test's instructions, and has no agents.
#![forbid(unsafe_code)]

mod fake;

use std::time::Duration;

use base::Time;
use fake::{Fake, event};
use tepui_sdk::driver::{Encoding, Options, run};
use tepui_sdk::state::{Change, Memory, State, StateError};
use tepui_sdk::v1::scheduler::{self, call, event::Type};
use tepui_sdk::v1::{AgentId, FrameworkInfo, TaskId, TaskState, TaskStatus};
use tepui_sdk::{Calls, Ending, Event, Scheduler};

/// A scheduler that calls a closure for each event.
struct With<F>(F);

impl<F: FnMut(Event, &mut Calls)> Scheduler for With<F> {
    fn on_event(&mut self, event: Event, _now: Time, calls: &mut Calls) {
        (self.0)(event, calls);
    }
}

fn options(masters: &str) -> Options {
    let framework = FrameworkInfo { user: "u".into(), name: "n".into(), ..Default::default() };
    let mut options = Options::new(masters, framework).unwrap();
    options.settings.first_wait = Duration::from_millis(5);
    options
}

fn update(state: TaskState) -> scheduler::Event {
    update_of("t", state)
}

fn update_of(task: &str, state: TaskState) -> scheduler::Event {
    let status = TaskStatus {
        task_id: TaskId { value: task.into() },
        state: state as i32,
        agent_id: Some(AgentId { value: "S0".into() }),
        uuid: Some(vec![7; 16]),
        ..Default::default()
    };
    scheduler::Event { update: Some(scheduler::event::Update { status }), ..event(Type::Update) }
}

/// Waits for a future with a time limit, so that a test does not hang.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(180), future).await.expect("the test hangs")
}

#[tokio::test]
async fn subscribes_acknowledges_and_tears_down() {
    let fake = Fake::start().await;
    let scheduler = With(|event, calls: &mut Calls| {
        if let Event::Update(_) = event {
            calls.teardown();
        }
    });
    let (finished, ()) = soon(async {
        tokio::join!(run(scheduler, options(&fake.address())), async {
            let subscribe = fake.call().await;
            assert_eq!(subscribe.r#type(), call::Type::Subscribe);
            assert_eq!(subscribe.framework_id, None);
            fake.send(&update(TaskState::TaskRunning));
            let acknowledge = fake.call().await;
            assert_eq!(acknowledge.r#type(), call::Type::Acknowledge);
            assert_eq!(acknowledge.framework_id.unwrap().value, "F");
            assert_eq!(fake.call().await.r#type(), call::Type::Teardown);
        })
    })
    .await;
    assert_eq!(finished.ending, Ending::Stopped);
}

#[tokio::test]
async fn speaks_json_as_well() {
    let fake = Fake::start().await;
    let mut options = options(&fake.address());
    options.encoding = Encoding::Json;
    let scheduler = With(|event, calls: &mut Calls| {
        if let Event::Update(status) = event {
            assert_eq!(status.state(), TaskState::TaskFinished);
            calls.stop();
        }
    });
    let (finished, ()) = soon(async {
        tokio::join!(run(scheduler, options), async {
            assert_eq!(fake.call().await.r#type(), call::Type::Subscribe);
            fake.send(&update(TaskState::TaskFinished));
            assert_eq!(fake.call().await.acknowledge.unwrap().uuid, [7; 16]);
        })
    })
    .await;
    assert_eq!(finished.ending, Ending::Stopped);
}

#[tokio::test]
async fn comes_back_with_its_id_after_a_lost_connection() {
    let fake = Fake::start().await;
    let mut received = Vec::new();
    let scheduler = With(|event: Event, calls: &mut Calls| {
        if matches!(event, Event::Subscribed { again: true, .. }) {
            calls.stop();
        }
        received.push(event);
    });
    soon(async {
        tokio::join!(run(scheduler, options(&fake.address())), async {
            fake.call().await;
            fake.cut();
            let again = fake.call().await;
            assert_eq!(again.framework_id.as_ref().unwrap().value, "F");
            assert_eq!(again.subscribe.unwrap().framework_info.id.unwrap().value, "F");
        })
    })
    .await;
    assert!(matches!(
        &received[..],
        [Event::Subscribed { again: false, .. }, Event::Disconnected { .. }, Event::Subscribed { again: true, .. }]
    ));
}

#[tokio::test]
async fn follows_a_redirect_and_passes_over_dead_masters() {
    let leader = Fake::start().await;
    let follower = Fake::start().await;
    follower.answer_with(fake::Answer::Redirect(leader.address()));
    let dead = Fake::start().await.stop().await;
    let scheduler = With(|event, calls: &mut Calls| {
        if let Event::Subscribed { .. } = event {
            calls.stop();
        }
    });
    let masters = format!("{dead},{}", follower.address());
    let finished = soon(run(scheduler, options(&masters))).await;
    assert_eq!(finished.ending, Ending::Stopped);
    assert_eq!(leader.call().await.r#type(), call::Type::Subscribe);
}

#[tokio::test]
async fn passes_over_masters_that_do_not_answer() {
    let leader = Fake::start().await;
    // One master accepts connections and never reads; another accepts none, since its queue is full.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let full = tokio::net::TcpSocket::new_v4().unwrap();
    full.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let full = full.listen(1).unwrap();
    let address = full.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) =
        tokio::time::timeout(Duration::from_millis(200), tokio::net::TcpStream::connect(address)).await
    {
        waiting.push(stream.unwrap());
    }
    let mut options = options(&format!("{address},{},{}", mute.local_addr().unwrap(), leader.address()));
    options.answer_within = Duration::from_millis(100);
    let scheduler = With(|event, calls: &mut Calls| {
        if let Event::Subscribed { .. } = event {
            calls.stop();
        }
    });
    assert_eq!(soon(run(scheduler, options)).await.ending, Ending::Stopped);
}

#[tokio::test]
async fn a_leader_that_has_gone_silent_is_left() {
    let silent = Fake::start().await;
    let other = Fake::start().await;
    other.answer_with(fake::Answer::Redirect(silent.address()));
    let mut options = options(&format!("{},{}", silent.address(), other.address()));
    options.answer_within = Duration::from_millis(100);
    options.settings.missed_heartbeats = 0;
    let scheduler = With(|event, calls: &mut Calls| {
        if let Event::Subscribed { again: true, .. } = event {
            calls.stop();
        }
    });
    // Without a heartbeat each subscription is over at once; the second one is with the other master.
    let (finished, ()) = soon(async {
        tokio::join!(run(scheduler, options), async {
            silent.call().await;
            silent.answer_with(fake::Answer::Nothing);
            other.answer_with(fake::Answer::Stream);
            assert_eq!(other.call().await.r#type(), call::Type::Subscribe);
        })
    })
    .await;
    assert_eq!(finished.ending, Ending::Stopped);
}

#[tokio::test]
async fn answers_that_pass_do_not_end_the_run() {
    for status in [429, 502, 504] {
        let fake = Fake::start().await;
        fake.answer_with(fake::Answer::Status(status));
        let scheduler = With(|event, calls: &mut Calls| {
            if let Event::Subscribed { .. } = event {
                calls.stop();
            }
        });
        let (finished, ()) = soon(async {
            tokio::join!(run(scheduler, options(&fake.address())), async {
                fake.call().await;
                fake.call().await;
                fake.answer_with(fake::Answer::Stream);
            })
        })
        .await;
        assert_eq!(finished.ending, Ending::Stopped, "{status}");
    }
}

#[tokio::test]
async fn tries_again_while_there_is_no_leader() {
    let fake = Fake::start().await;
    fake.answer_with(fake::Answer::Unavailable);
    let scheduler = With(|event, calls: &mut Calls| {
        if let Event::Subscribed { .. } = event {
            calls.stop();
        }
    });
    let (finished, ()) = soon(async {
        tokio::join!(run(scheduler, options(&fake.address())), async {
            fake.call().await;
            fake.call().await;
            fake.answer_with(fake::Answer::Stream);
        })
    })
    .await;
    assert_eq!(finished.ending, Ending::Stopped);
}

#[tokio::test]
async fn gives_up_after_the_configured_time() {
    let dead = Fake::start().await.stop().await;
    let mut options = options(&dead);
    options.give_up_after = Some(Duration::from_millis(50));
    let finished = soon(run(With(|_, _: &mut Calls| {}), options)).await;
    let Ending::Unreachable(why) = finished.ending else { panic!("{:?}", finished.ending) };
    assert!(why.contains(&dead), "{why}");
}

#[tokio::test]
async fn a_refused_subscription_ends_the_run_in_the_masters_words() {
    let fake = Fake::start().await;
    fake.answer_with(fake::Answer::BadRequest("no such thing"));
    let finished = soon(run(With(|_, _: &mut Calls| {}), options(&fake.address()))).await;
    assert!(matches!(finished.ending, Ending::Error(why) if why.contains("no such thing")));
}

#[tokio::test]
async fn a_refused_call_is_reported_and_the_next_one_is_sent() {
    let fake = Fake::start().await;
    let mut refused = String::new();
    let scheduler = With(|event, calls: &mut Calls| match event {
        Event::Subscribed { .. } => {
            calls.revive();
            calls.suppress();
        }
        Event::Refused { why, .. } => {
            refused = why;
            calls.stop();
        }
        _ => {}
    });
    soon(async {
        tokio::join!(run(scheduler, options(&fake.address())), async {
            fake.refuse_next_call();
            assert_eq!(fake.call().await.r#type(), call::Type::Subscribe);
            assert_eq!(fake.call().await.r#type(), call::Type::Revive);
            assert_eq!(fake.call().await.r#type(), call::Type::Suppress);
        })
    })
    .await;
    assert!(refused.contains("refused by the test"), "{refused}");
}

#[tokio::test]
async fn many_calls_at_once_arrive_in_their_order() {
    const MANY: usize = 3_000;
    let fake = Fake::start().await;
    let scheduler = With(|event, calls: &mut Calls| match event {
        Event::Subscribed { .. } => {
            for n in 0..MANY {
                calls.kill(&n.to_string(), None);
            }
        }
        Event::Update(_) => calls.stop(),
        _ => {}
    });
    soon(async {
        tokio::join!(run(scheduler, options(&fake.address())), async {
            fake.call().await;
            fake.send(&update(TaskState::TaskFinished));
            for n in 0..MANY {
                assert_eq!(fake.call().await.kill.unwrap().task_id.value, n.to_string());
            }
        })
    })
    .await;
}

#[tokio::test]
async fn all_received_updates_are_acknowledged_before_the_framework_ends() {
    const MANY: usize = 300;
    let fake = Fake::start().await;
    let mut received = 0;
    let scheduler = With(|event, calls: &mut Calls| {
        if let Event::Update(_) = event {
            received += 1;
            if received == MANY {
                calls.teardown();
            }
        }
    });
    soon(async {
        tokio::join!(run(scheduler, options(&fake.address())), async {
            fake.call().await;
            for n in 0..MANY {
                fake.send(&update_of(&format!("t{n}"), TaskState::TaskRunning));
            }
            let mut acknowledged = std::collections::BTreeSet::new();
            for _ in 0..MANY {
                let call = fake.call().await;
                acknowledged.insert(call.acknowledge.unwrap().task_id.value);
            }
            assert_eq!(acknowledged.len(), MANY);
            assert_eq!(fake.call().await.r#type(), call::Type::Teardown);
        })
    })
    .await;
}

#[tokio::test]
async fn a_wake_signal_wakes_the_scheduler() {
    let fake = Fake::start().await;
    let mut options = options(&fake.address());
    let wake_signal = std::sync::Arc::new(tokio::sync::Notify::new());
    options.wake_signal = Some(wake_signal.clone());
    let scheduler = With(|event, calls: &mut Calls| match event {
        Event::Subscribed { .. } => wake_signal.notify_one(),
        Event::Wake => calls.stop(),
        _ => {}
    });
    assert_eq!(soon(run(scheduler, options)).await.ending, Ending::Stopped);
}

#[tokio::test]
async fn a_restarted_scheduler_has_its_id_its_tasks_and_what_it_saved() {
    let fake = Fake::start().await;
    let store = Memory::default();
    let mut first = options(&fake.address());
    first.state = Some(Box::new(store.clone()));
    let scheduler = With(|event, calls: &mut Calls| {
        if let Event::Update(status) = event {
            calls.save("seen", status.task_id.value.as_bytes().to_vec());
            calls.stop();
        }
    });
    soon(async {
        tokio::join!(run(scheduler, first), async {
            fake.call().await;
            fake.send(&update(TaskState::TaskRunning));
            assert_eq!(fake.call().await.r#type(), call::Type::Acknowledge);
        })
    })
    .await;
    let mut second = options(&fake.address());
    second.state = Some(Box::new(store));
    let scheduler = With(|event, calls: &mut Calls| match event {
        Event::Restored(saved) => {
            assert_eq!(saved, [("seen".to_owned(), b"t".to_vec())].into());
            assert_eq!(calls.tasks().get("t").unwrap().state, TaskState::TaskRunning);
        }
        Event::Subscribed { .. } => calls.stop(),
        _ => {}
    });
    soon(async {
        tokio::join!(run(scheduler, second), async {
            assert_eq!(fake.call().await.framework_id.unwrap().value, "F");
        })
    })
    .await;
}

/// A store whose disk is full.
#[derive(Debug)]
struct Full;

impl State for Full {
    fn load(&mut self) -> Result<std::collections::BTreeMap<String, Vec<u8>>, StateError> {
        Ok(Default::default())
    }

    fn commit(&mut self, _: &[Change]) -> Result<(), StateError> {
        Err(StateError { action: "write", place: "/dev/full".into(), source: "no space left".into() })
    }
}

#[tokio::test]
async fn what_cannot_be_saved_is_not_done() {
    let fake = Fake::start().await;
    let mut options = options(&fake.address());
    options.state = Some(Box::new(Full));
    let scheduler = With(|event, calls: &mut Calls| {
        if let Event::Subscribed { .. } = event {
            calls.revive();
        }
    });
    let finished = soon(run(scheduler, options)).await;
    let Ending::State(why) = finished.ending else { panic!("{:?}", finished.ending) };
    assert!(why.contains("/dev/full") && why.contains("no space left"), "{why}");
    assert_eq!(fake.call().await.r#type(), call::Type::Subscribe);
    fake.stop_and_expect_no_call().await;
}

#[tokio::test]
async fn a_request_reaches_the_scheduler_and_comes_back() {
    let fake = Fake::start().await;
    let mut options = options(&fake.address());
    let (requester, mut requests) = tepui_sdk::requests::<u32, u32>();
    options.wake_signal = Some(requester.wake_signal());
    let scheduler = With(|event, calls: &mut Calls| {
        if let Event::Wake = event {
            for request in requests.by_ref() {
                let answer = request.question + calls.tasks().len() as u32;
                request.answer(answer);
                calls.stop();
            }
        }
    });
    let (_, answer) = soon(async { tokio::join!(run(scheduler, options), requester.ask(41)) }).await;
    assert_eq!(answer, Ok(41));
}

#[tokio::test]
async fn an_answer_that_cannot_be_made_durable_is_not_given() {
    let fake = Fake::start().await;
    let mut options = options(&fake.address());
    options.state = Some(Box::new(Full));
    let (requester, mut requests) = tepui_sdk::requests::<(), ()>();
    options.wake_signal = Some(requester.wake_signal());
    let scheduler = With(move |event, calls: &mut Calls| {
        if let Event::Wake = event {
            for request in requests.by_ref() {
                calls.save("taken", Vec::new());
                calls.answer(request, ());
            }
        }
    });
    let (finished, answer) = soon(async { tokio::join!(run(scheduler, options), requester.ask(())) }).await;
    assert!(matches!(finished.ending, Ending::State(_)));
    assert_eq!(answer, Err(tepui_sdk::AskError::Gone));
}

#[tokio::test]
async fn a_scheduler_that_stops_or_fails_before_its_first_subscription_ends_at_once() {
    for fails in [false, true] {
        let fake = Fake::start().await;
        let mut options = options(&fake.address());
        options.state = Some(Box::new(Memory::default()));
        let scheduler = With(|event, calls: &mut Calls| {
            assert!(matches!(event, Event::Restored(_)));
            if fails { calls.fail("damaged".into()) } else { calls.stop() }
        });
        let ending = soon(run(scheduler, options)).await.ending;
        assert_eq!(ending, if fails { Ending::State("damaged".into()) } else { Ending::Stopped });
        fake.stop_and_expect_no_call().await;
    }
}
