//! Tests random histories of updates, acknowledgements, pauses, restarts and waits against a plain model.
//!
//! Invariants, checked after every step:
//! * at most one update of a task is outstanding: what is sent is the oldest that is not acknowledged;
//! * updates are delivered in the order they came, each once, none is lost;
//! * an update that has come before changes nothing;
//! * while paused nothing is sent; after a resumption every task's oldest update is sent at once;
//! * an update is sent again after 10 s, 20 s and so on up to 10 min, not earlier;
//! * a stream made from its records goes on exactly like the one that they were written by.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use protos::mesos::internal::status_update_record::Type;
use protos::mesos::{self as pb, TaskState};

use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// An update of this task arrives; with `again` it is a duplicate.
    Receive {
        task: u8,
        last: bool,
        again: bool,
    },
    /// This task's oldest update is acknowledged; with `wrong` something else is.
    Acknowledge {
        task: u8,
        wrong: bool,
    },
    Pause,
    Resume,
    /// This many seconds pass.
    Wait(u64),
    /// All streams are restored from their records.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3u8, prop::bool::weighted(0.2), prop::bool::weighted(0.2))
            .prop_map(|(task, last, again)| Step::Receive { task, last, again }),
        4 => (0..3u8, prop::bool::weighted(0.2)).prop_map(|(task, wrong)| Step::Acknowledge { task, wrong }),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        3 => (0..900u64).prop_map(Step::Wait),
        1 => Just(Step::Restart),
    ]
}

/// Expected state of a task's stream.
#[derive(Default)]
struct Model {
    pending: VecDeque<[u8; 16]>,
    seen: Vec<[u8; 16]>,
    records: Vec<StatusUpdateRecord>,
    /// Time at which the oldest update was sent, and how often it was sent since it became the oldest or was resent at
    /// once.
    sent: Option<(Time, u32)>,
    ended: bool,
}

struct World {
    streams: Streams,
    models: BTreeMap<u8, Model>,
    now: Time,
    counter: u64,
    framework: FrameworkId,
}

fn task_id(task: u8) -> TaskId {
    TaskId::new(&format!("t{task}")).unwrap()
}

fn update(task: u8, uuid: [u8; 16], last: bool) -> StatusUpdate {
    let state = if last { TaskState::TaskFinished } else { TaskState::TaskRunning };
    let status = pb::TaskStatus {
        task_id: pb::TaskId { value: task_id(task).as_str().into() },
        state: state as i32,
        ..pb::TaskStatus::default()
    };
    StatusUpdate { status, uuid: Some(uuid.to_vec()), ..StatusUpdate::default() }
}

impl World {
    fn new() -> World {
        let mut streams = Streams::new();
        streams.resume(Time::EPOCH);
        let framework = FrameworkId::new("f").unwrap();
        World { streams, models: BTreeMap::new(), now: Time::from_secs(1), counter: 0, framework }
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Receive { task, last, again } => self.receive(*task, *last, *again),
            Step::Acknowledge { task, wrong } => self.acknowledge(*task, *wrong),
            Step::Pause => self.streams.pause(),
            Step::Resume => {
                self.streams.resume(self.now);
                self.models.values_mut().for_each(|model| model.sent = None);
            }
            Step::Wait(seconds) => self.wait(Duration::from_secs(*seconds)),
            Step::Restart => self.restart(),
        }
        self.send();
    }

    fn receive(&mut self, task: u8, last: bool, again: bool) {
        let model = self.models.entry(task).or_default();
        if model.ended {
            return;
        }
        let repeated = model.seen.first().copied().filter(|_| again);
        self.counter += 1;
        let mut fresh = [0; 16];
        fresh[..8].copy_from_slice(&self.counter.to_be_bytes());
        let uuid = repeated.unwrap_or(fresh);
        let update = update(task, uuid, last);
        let received =
            self.streams.receive((&self.framework, &task_id(task)), uuid, Arc::new(update.clone()), || None, self.now);
        assert_eq!(received == Received::Duplicate, repeated.is_some());
        if repeated.is_none() {
            model.seen.push(uuid);
            model.pending.push_back(uuid);
            model.ended = last;
            model.records.push(StatusUpdateRecord { r#type: Type::Update as i32, update: Some(update), uuid: None });
        }
    }

    fn acknowledge(&mut self, task: u8, wrong: bool) {
        let model = self.models.entry(task).or_default();
        let uuid = model.pending.front().copied().filter(|_| !wrong).unwrap_or([0xff; 16]);
        let outcome = self.streams.acknowledge(&self.framework, &task_id(task), &uuid, self.now);
        let expected = model.pending.front() == Some(&uuid);
        assert_eq!(matches!(outcome, Acknowledged::Delivered { .. }), expected, "{outcome:?}");
        if !expected {
            return;
        }
        model.pending.pop_front();
        model.sent = None;
        let uuid = Some(uuid.to_vec());
        model.records.push(StatusUpdateRecord { r#type: Type::Ack as i32, update: None, uuid });
        if model.ended && model.pending.is_empty() {
            *model = Model::default();
        }
    }

    fn wait(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(wake) = self.streams.next_wake().filter(|wake| *wake <= end) {
            self.now = wake.max(self.now);
            self.send();
        }
        self.now = end;
    }

    fn restart(&mut self) {
        self.streams = Streams::new();
        for (task, model) in &mut self.models {
            let file = Arc::from("file");
            let done = self.streams.restore((&self.framework, &task_id(*task)), &file, &model.records, self.now);
            assert!(!done);
            model.sent = None;
        }
        self.streams.resume(self.now);
    }

    /// Takes the due updates and compares them with the model's.
    fn send(&mut self) {
        let paused = self.streams.paused();
        let mut due = BTreeMap::new();
        for (task, model) in &mut self.models {
            let Some(oldest) = model.pending.front() else { continue };
            let wait = |times: u32| RETRY_MIN.saturating_mul(1 << (times - 1).min(10)).min(RETRY_MAX);
            let is_due = model.sent.is_none_or(|(at, times)| at + wait(times) <= self.now);
            if is_due && !paused {
                due.insert(task_id(*task).as_str().to_owned(), oldest.to_vec());
                model.sent = Some((self.now, model.sent.map_or(1, |(_, times)| times + 1)));
            }
        }
        let sent: BTreeMap<String, Vec<u8>> = self
            .streams
            .take_due(self.now)
            .into_iter()
            .map(|(update, _)| (update.status.task_id.value.to_string(), update.uuid.clone().unwrap().to_vec()))
            .collect();
        assert_eq!(sent, due);
    }
}

proptest! {
    #[test]
    fn updates_are_delivered_in_order_once_and_none_is_lost(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in &steps {
            world.act(step);
        }
        world.act(&Step::Resume);
        for task in 0..3 {
            while world.models.get(&task).is_some_and(|model| !model.pending.is_empty()) {
                world.act(&Step::Acknowledge { task, wrong: false });
            }
        }
        prop_assert_eq!(world.streams.next_wake(), None);
    }
}

/// Returns a running update of a task, with a UUID of its own.
fn numbered(task: &TaskId, number: u64) -> ([u8; 16], Arc<StatusUpdate>) {
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&number.to_be_bytes());
    let mut update = update(0, uuid, false);
    update.status.task_id.value = task.as_str().into();
    (uuid, Arc::new(update))
}

#[test]
fn what_is_remembered_and_what_waits_has_limits() {
    let (framework, task) = (FrameworkId::new("f").unwrap(), task_id(0));
    let mut streams = Streams::new();
    let receive = |streams: &mut Streams, number: usize| {
        let (uuid, update) = numbered(&task, number as u64);
        streams.receive((&framework, &task), uuid, update, || None, Time::EPOCH)
    };
    for number in 0..=MAX_DELIVERED {
        assert_eq!(receive(&mut streams, number), Received::New { file: None });
        let (uuid, _) = numbered(&task, number as u64);
        streams.acknowledge(&framework, &task, &uuid, Time::EPOCH);
    }
    // One delivered update more than are remembered: the oldest one is forgotten, and no other.
    let stream = &streams.streams[&(framework.clone(), task.clone())];
    assert_eq!((stream.known.len(), stream.delivered.len()), (MAX_DELIVERED, MAX_DELIVERED));
    assert!(!streams.state_of(&framework, &task, &numbered(&task, 0).0).is_duplicate);
    assert_eq!(receive(&mut streams, 1), Received::Duplicate);
    assert_eq!(receive(&mut streams, MAX_DELIVERED), Received::Duplicate);

    for number in 1..=MAX_PENDING {
        assert!(!streams.state_of(&framework, &task, &[0; 16]).is_full, "{number}");
        receive(&mut streams, MAX_DELIVERED + number);
    }
    assert!(streams.state_of(&framework, &task, &[0; 16]).is_full && !streams.has_too_many_tasks());
}

#[test]
fn streams_of_tasks_have_a_limit() {
    let framework = FrameworkId::new("f").unwrap();
    let mut streams = Streams::new();
    for number in 0..MAX_TASKS {
        assert!(!streams.has_too_many_tasks(), "{number}");
        let task = TaskId::new(&format!("t{number}")).unwrap();
        let (uuid, update) = numbered(&task, number as u64);
        streams.receive((&framework, &task), uuid, update, || None, Time::EPOCH);
    }
    assert!(streams.has_too_many_tasks());
}
