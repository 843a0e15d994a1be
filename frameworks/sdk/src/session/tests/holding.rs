//! Tests acknowledgements that a scheduler withholds: no repetition of the update is acknowledged, and none is lost
//! over a restart.

use super::*;

fn hold(_: &Event, calls: &mut Calls) {
    calls.hold_acknowledgement();
}

/// Acknowledges the update whose acknowledgement was withheld.
fn acknowledge(_: &Event, calls: &mut Calls) {
    calls.acknowledge(&status(TaskState::TaskRunning, b"1"));
}

/// Applies the saved changes to `store`.
fn write(store: &mut BTreeMap<String, Vec<u8>>, outputs: &[Output]) {
    for output in outputs {
        let Output::Save(changes) = output else { continue };
        for Change { key, value } in changes.clone() {
            match value {
                Some(value) => store.insert(key, value),
                None => store.remove(&key),
            };
        }
    }
}

/// Returns a subscribed session with a store; the answers start with the first event after that.
fn bench_with_store(store: BTreeMap<String, Vec<u8>>, answers: &[fn(&Event, &mut Calls)]) -> Bench {
    let mut bench = Bench::new(&[]);
    bench.session.restore(store, bench.now, &mut Vec::new()).unwrap();
    bench.put(Input::Wake);
    bench.put(subscribed());
    bench.received();
    bench.session.scheduler.answers = answers.iter().copied().collect();
    bench
}

#[test]
fn a_repeated_update_that_is_held_is_neither_reported_nor_acknowledged() {
    let mut bench = Bench::subscribed(&[hold, acknowledge]);
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"1"))), [""; 0]);
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"1"))), [""; 0], "the agent repeats it");
    assert_eq!(bench.received().len(), 1);
    assert_eq!(names(&bench.put(Input::WakeSignal)), ["ACKNOWLEDGE"]);
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"1"))), ["ACKNOWLEDGE"], "it was lost on its way");
}

#[test]
fn what_was_held_is_reported_again_after_a_restart() {
    for (state, task_is_known) in [(TaskState::TaskRunning, true), (TaskState::TaskFinished, true)] {
        let mut store = BTreeMap::new();
        let mut bench = bench_with_store(BTreeMap::new(), &[launch, hold]);
        write(&mut store, &bench.put(offers("O1")));
        write(&mut store, &bench.put(update(state, b"1")));
        let mut bench = bench_with_store(store.clone(), &[]);
        assert_eq!(bench.session.calls.tasks().get("t").is_some(), task_is_known, "it is asked about");
        assert_eq!(names(&bench.put(update(state, b"1"))).last().unwrap(), "ACKNOWLEDGE");
        assert_eq!(bench.received(), [Event::Update(status(state, b"1"))], "it is heard again");
    }
}

#[test]
fn what_was_acknowledged_late_is_not_reported_again() {
    for state in [TaskState::TaskRunning, TaskState::TaskFinished] {
        let mut store = BTreeMap::new();
        let mut bench = bench_with_store(BTreeMap::new(), &[launch, hold, acknowledge]);
        write(&mut store, &bench.put(offers("O1")));
        write(&mut store, &bench.put(update(state, b"1")));
        let outputs = bench.put(Input::WakeSignal);
        assert_eq!(names(&outputs).last().unwrap(), "ACKNOWLEDGE");
        write(&mut store, &outputs);
        let mut bench = bench_with_store(store, &[]);
        assert_eq!(names(&bench.put(update(state, b"1"))), ["ACKNOWLEDGE"]);
        assert_eq!(bench.received(), []);
    }
}

#[test]
fn a_masters_answer_does_not_make_an_old_update_new() {
    let mut bench = Bench::subscribed(&[]);
    bench.put(update(TaskState::TaskRunning, b"1"));
    bench.put(update(TaskState::TaskRunning, b""));
    bench.received();
    assert_eq!(names(&bench.put(update(TaskState::TaskRunning, b"1"))), ["ACKNOWLEDGE"]);
    assert_eq!(bench.received(), []);
}

#[test]
fn a_task_that_is_forgotten_is_neither_killed_nor_reconciled() {
    let mut store = BTreeMap::new();
    let mut bench = bench_with_store(
        BTreeMap::new(),
        &[launch, |_, calls| calls.kill("t", None), |_, calls| calls.forget_task("t")],
    );
    write(&mut store, &bench.put(offers("O1")));
    write(&mut store, &bench.put(update(TaskState::TaskUnreachable, b"")));
    write(&mut store, &bench.put(update(TaskState::TaskUnknown, b"")));
    assert!(bench.session.calls.tasks().is_empty());
    assert!(!store.contains_key("sdk/task/t"), "{store:?}");
    bench.put(Input::Disconnected("cut".into()));
    bench.sleep();
    assert_eq!(names(&bench.put(subscribed())), ["save sdk/framework"]);
}
