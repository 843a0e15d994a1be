//! Tests the end of sessions: teardown with and without a connection, and failure.

use super::*;

/// Returns a session that has lost its connection and is torn down by the scheduler then.
fn torn_down_without_a_master() -> Bench {
    let mut bench = Bench::subscribed(&[|_, calls| calls.teardown()]);
    assert_eq!(names(&bench.put(Input::Disconnected("cut".into()))), [""; 0], "no master is connected yet");
    bench.received();
    bench
}

#[test]
fn a_teardown_without_a_connection_waits_for_one() {
    let mut bench = torn_down_without_a_master();
    let before = bench.now;
    assert_eq!(names(&bench.sleep()), ["subscribe F"]);
    assert_eq!(bench.now, before, "at once");
    assert_eq!(names(&bench.put(Input::WakeSignal)), [""; 0]);
    assert_eq!(names(&bench.put(subscribed())), ["TEARDOWN", "end Stopped"]);
    assert_eq!(bench.received(), [], "the scheduler has said all that it has to say");
}

#[test]
fn a_teardown_that_reaches_no_master_is_reported() {
    let mut bench = torn_down_without_a_master();
    let before = bench.now;
    let ending = loop {
        let outputs = bench.sleep();
        if let Some(Output::End(ending)) = outputs.last() {
            break ending.clone();
        }
        bench.put(Input::Disconnected("the port is closed".into()));
    };
    assert!(matches!(&ending, Ending::Unreachable(why) if why.contains("tasks continue")), "{ending:?}");
    assert_eq!(bench.now.since(before), Duration::from_secs(10));
}

#[test]
fn a_framework_that_is_gone_already_needs_no_teardown() {
    let mut bench = torn_down_without_a_master();
    bench.sleep();
    let part = event::Error { message: "Framework has been removed".into() };
    let error = wire(scheduler::Event { r#type: Some(Type::Error as i32), error: Some(part), ..Default::default() });
    assert_eq!(names(&bench.put(error)), ["end Stopped"]);
    let mut bench = Bench::new(&[|_, calls| calls.teardown()]);
    bench.put(Input::Wake);
    assert_eq!(names(&bench.put(Input::WakeSignal)), ["end Stopped"], "there never was one");
}

#[test]
fn a_restored_framework_that_has_nothing_left_to_do_is_torn_down() {
    let mut bench = Bench::new(&[|_, calls| calls.teardown()]);
    let saved = [("sdk/framework".to_owned(), b"F".to_vec())].into();
    let mut outputs = Vec::new();
    bench.session.restore(saved, bench.now, &mut outputs).unwrap();
    assert_eq!(outputs, []);
    assert_eq!(names(&bench.sleep()), ["subscribe F"]);
    let last = bench.put(subscribed());
    assert_eq!(names(&last), ["save sdk/framework", "TEARDOWN", "save -sdk/framework", "end Stopped"]);
}

#[test]
fn a_failure_sends_writes_and_answers_nothing() {
    let mut bench = Bench::new(&[|event, calls| {
        assert!(matches!(event, Event::Restored(_)));
        let (_, requests) = crate::requests::<(), ()>();
        let mut requests = requests;
        let mut asked = requests.put(()).unwrap();
        calls.save("k", Vec::new());
        calls.reconcile_all();
        calls.answer(requests.next().unwrap(), ());
        assert_eq!(asked.take(), None);
        calls.fail("it is damaged".into());
    }]);
    let mut outputs = Vec::new();
    bench.session.restore(BTreeMap::new(), bench.now, &mut outputs).unwrap();
    assert_eq!(names(&outputs), ["end State(\"it is damaged\")"]);
    assert_eq!(names(&bench.put(Input::Wake)), [""; 0]);
    assert_eq!(bench.session.next_wake(), None);
}

#[test]
fn an_answer_follows_what_was_saved_before_it() {
    let mut bench = Bench::new(&[nothing, |_, calls| {
        let (_, mut requests) = crate::requests::<(), ()>();
        let _asked = requests.put(()).unwrap();
        calls.answer(requests.next().unwrap(), ());
        calls.save("k", Vec::new());
    }]);
    bench.session.restore(BTreeMap::new(), bench.now, &mut Vec::new()).unwrap();
    assert_eq!(names(&bench.put(Input::WakeSignal)), ["save own/k", "answer"]);
}
