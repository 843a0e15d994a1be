//! Tests trainings from submission to end, on agents that start tasks at once.

use std::cell::{RefCell, RefMut};
use std::collections::BTreeSet;
use std::rc::Rc;

use sdk::v1::scheduler::{Event as Said, call, event};
use sdk::v1::{AgentId, FrameworkId, FrameworkInfo, Offer, OfferId, TaskId};
use sdk::{Input, Output, Session};

use super::*;
use crate::allocate::Policy;
use crate::scheduler::Worker;

/// The framework, to which the test has access beside its session.
#[derive(Clone)]
struct Shared(Rc<RefCell<Modelled>>);

impl Scheduler for Shared {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        self.0.borrow_mut().on_event(event, now, calls);
    }
}

/// A cluster of one agent.
struct Cluster {
    session: Session<Shared>,
    shared: Shared,
    now: Time,
    free: u32,
    tasks: BTreeSet<String>,
    offers: u64,
    launched: usize,
    wants: bool,
    answered: bool,
}

impl Cluster {
    fn new(modelled: Modelled, cores: u32) -> Cluster {
        let now = Time::from_secs(1000);
        let info = FrameworkInfo { name: "q".into(), user: "u".into(), ..FrameworkInfo::default() };
        let shared = Shared(Rc::new(RefCell::new(modelled)));
        let session = Session::new(shared.clone(), sdk::Settings::new(info), now);
        let mut cluster = Cluster {
            session,
            shared,
            now,
            free: cores,
            tasks: BTreeSet::new(),
            offers: 0,
            launched: 0,
            wants: true,
            answered: true,
        };
        cluster.input(Input::Wake);
        let subscribed = event::Subscribed { framework_id: FrameworkId { value: "f".into() }, ..Default::default() };
        cluster.event(Said {
            r#type: Some(event::Type::Subscribed as i32),
            subscribed: Some(Box::new(subscribed)),
            ..Said::default()
        });
        cluster
    }

    fn modelled(&self) -> RefMut<'_, Modelled> {
        self.shared.0.borrow_mut()
    }

    fn event(&mut self, said: Said) {
        self.input(Input::Event(Box::new(said)));
    }

    fn input(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.session.handle(input, self.now, &mut outputs);
        for output in outputs {
            match output {
                Output::Answer(answer) => answer.deliver(),
                Output::Send(call) => self.call(*call),
                _ => {}
            }
        }
    }

    fn call(&mut self, call: sdk::v1::scheduler::Call) {
        match call.r#type() {
            call::Type::Accept => {
                self.answered = true;
                let operations = call.accept.into_iter().flat_map(|accept| accept.operations);
                let tasks = operations.filter_map(|one| one.launch).flat_map(|launch| launch.task_infos);
                for task in tasks {
                    self.launched += 1;
                    self.free -= 1;
                    self.tasks.insert(task.task_id.value.to_string());
                    self.tell(&task.task_id.value, TaskState::TaskRunning);
                }
            }
            call::Type::Decline => self.answered = true,
            call::Type::Suppress => self.wants = false,
            call::Type::Revive => self.wants = true,
            call::Type::Kill => {
                let id = call.kill.unwrap().task_id.value.to_string();
                if self.tasks.remove(&id) {
                    self.free += 1;
                    self.tell(&id, TaskState::TaskKilled);
                }
            }
            _ => {}
        }
    }

    fn tell(&mut self, task: &str, state: TaskState) {
        let status =
            TaskStatus { task_id: TaskId { value: task.into() }, state: state as i32, ..TaskStatus::default() };
        let update = event::Update { status };
        self.event(Said { r#type: Some(event::Type::Update as i32), update: Some(update), ..Said::default() });
    }

    fn offer(&mut self) {
        self.offers += 1;
        let text = format!("cpus:{};mem:{}", self.free, 100 * self.free);
        let resources = resources::parse_text(&text, &resources::Role::star()).unwrap();
        let offer = Offer {
            id: OfferId { value: format!("o{}", self.offers).into() },
            agent_id: AgentId { value: "s".into() },
            hostname: "h".into(),
            resources: sdk::task::to_v1(&resources),
            ..Offer::default()
        };
        self.answered = false;
        let offers = event::Offers { offers: vec![offer] };
        self.event(Said { r#type: Some(event::Type::Offers as i32), offers: Some(offers), ..Said::default() });
    }

    /// Advances the time by a second.
    fn second(&mut self) {
        let end = self.now + Duration::from_secs(1);
        if self.wants && self.answered && self.free > 0 {
            self.offer();
        }
        while let Some(at) = self.session.next_wake().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.input(Input::Wake);
        }
        self.now = end;
    }
}

fn curve(iterations: usize) -> RecordedJob {
    let losses = (0..iterations).map(|n| 1.0 / (n as f64 + 1.0)).collect();
    RecordedJob { losses, after: 0.0, priority: 1.0, shards: 8, ceiling: 8, work: 4.0, overhead: 0.1, rounds: 1.0 }
}

fn job(name: &str) -> Job {
    let text = format!(
        "[[job]]\nname = '{name}'\nalgorithm = {{ kind = 'linear-regression' }}\ndata = {{ generator = 'linear', rows = 100, columns = 2 }}"
    );
    crate::job::parse("j", &text).unwrap().remove(0)
}

/// Runs a cluster for this many seconds, and returns it with all events and the second of each.
fn lived(policy: Policy, names: &[&str], cores: u32, seconds: u32) -> (Cluster, Vec<(u32, TrainingEvent)>) {
    let worker = Worker { command: vec!["w".into()], driver: "d".into(), cores: 1, mem: 64, pace: None };
    let settings = Settings { policy, epoch: Duration::from_secs(1), workers_max: 100, worker };
    let modelled = Modelled::new(settings);
    let mut cluster = Cluster::new(modelled, cores);
    let mut events = Vec::new();
    let now = cluster.now;
    names.iter().for_each(|name| cluster.modelled().submit(job(name), curve(20), now));
    cluster.input(Input::WakeSignal);
    for second in 1..=seconds {
        cluster.second();
        events.extend(cluster.modelled().take_events().into_iter().map(|one| (second, one)));
    }
    (cluster, events)
}

fn over(events: &[(u32, TrainingEvent)], name: &str) -> u32 {
    let is = |one: &TrainingEvent| *one == TrainingEvent::Ended(name.to_owned(), true);
    events.iter().find(|(_, one)| is(one)).unwrap_or_else(|| panic!("{name} is not over: {events:?}")).0
}

#[test]
fn a_training_alone_takes_the_time_of_its_curve() {
    let (cluster, events) = lived(Policy::Slaq, &["a"], 8, 30);
    // The training has 20 iterations of 0.6 s with 8 workers, which take a moment to start.
    let end = over(&events, "a");
    assert!((12..=14).contains(&end), "{end}");
    assert_eq!(events[0].1, TrainingEvent::Started("a".to_owned()));
    assert_eq!(events.iter().filter(|(_, one)| matches!(one, TrainingEvent::Iteration(..))).count(), 20);
    assert!(cluster.tasks.is_empty() && cluster.free == 8, "workers are left: {:?}", cluster.tasks);
}

#[test]
fn two_trainings_share_workers_which_move_between_them() {
    let (cluster, events) = lived(Policy::Fair, &["a", "b"], 8, 60);
    let (a, b) = (over(&events, "a"), over(&events, "b"));
    assert!(a.abs_diff(b) <= 3 && (21..=27).contains(&b), "{a} {b}");
    // Each job has four workers; the first job that ends leaves its workers to the other.
    assert!(cluster.launched <= 16, "{}", cluster.launched);
    assert!(cluster.tasks.is_empty());
}

#[test]
fn a_lost_worker_slows_a_training_down_and_is_replaced() {
    let worker = Worker { command: vec!["w".into()], driver: "d".into(), cores: 1, mem: 64, pace: None };
    let settings = Settings { policy: Policy::Slaq, epoch: Duration::from_secs(1), workers_max: 100, worker };
    let mut cluster = Cluster::new(Modelled::new(settings), 8);
    let now = cluster.now;
    cluster.modelled().submit(job("a"), curve(20), now);
    cluster.input(Input::WakeSignal);
    (0..4).for_each(|_| cluster.second());
    assert_eq!(cluster.tasks.len(), 8);
    let lost = cluster.tasks.pop_first().unwrap();
    cluster.free += 1;
    cluster.tell(&lost, TaskState::TaskLost);
    assert_eq!(cluster.modelled().wanted(), 1);
    (0..30).for_each(|_| cluster.second());
    let events = cluster.modelled().take_events();
    assert!(events.contains(&TrainingEvent::Ended("a".to_owned(), true)), "{events:?}");
    assert_eq!((cluster.launched, cluster.free), (9, 8));
}
