//! Measures the whole scheduler: a round with 200 jobs of 10 stages, the memory of a job of 100,000 tasks that have all
//! run, and the time to restore such a job after a restart.
//!
//! `cargo bench -p dag --bench scheduler` prints the figures. The promises are 1 ms for a decision, 100 MB, and 2 s.
#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use dag::core::{Core, Request, Settings};
use dag::job::{Syntax, read};
use sdk::base::Time;
use sdk::resources::{Role, parse_text};
use sdk::task::to_v1;
use sdk::v1::scheduler::{self, call, event};
use sdk::v1::{AgentId, FrameworkId, Offer, OfferId, TaskState, TaskStatus};
use sdk::{Calls, Event, Input, Output, Scheduler, Session};

const JOBS: usize = 200;
const STAGES: usize = 10;
const TASKS: u32 = 100_000;
const AGENTS: usize = 50;
const ROUNDS: usize = 200;

fn main() {
    decisions();
    large_job();
}

/// Returns a job in TOML: a chain of stages with this many tasks each.
fn job(name: &str, stages: usize, tasks: u32) -> String {
    let mut text = format!("[[job]]\nname = '{name}'\n");
    for stage in 0..stages {
        let after = if stage > 0 { format!("after = 's{}'\n", stage - 1) } else { String::new() };
        text.push_str(&format!(
            "[[job.stage]]\nname = 's{stage}'\ncpus = 1\ntasks = {tasks}\ncommand = 'true'\n{after}"
        ));
    }
    text
}

fn offers(count: usize, number: &mut u64, resources: &str) -> Vec<Offer> {
    let resources = to_v1(&parse_text(resources, &Role::star()).unwrap_or_default());
    let offer = |agent: usize| {
        *number += 1;
        Offer {
            id: OfferId { value: format!("O{number}").into() },
            agent_id: AgentId { value: format!("5e6dc8ad-dc35-4f4c-a2d8-4d3b7e5a1e33-S{agent}").into() },
            hostname: format!("host-{agent}.example.org"),
            resources: resources.clone(),
            ..Default::default()
        }
    };
    (0..count).map(offer).collect()
}

/// Measures the time from the offers of 50 agents with a core each to the calls that launch tasks.
fn decisions() {
    let mut core = Core::new(Settings::default());
    let (now, mut calls, mut number) = (Time::from_secs(1), Calls::default(), 0);
    core.on_event(
        Event::Subscribed { framework_id: FrameworkId { value: "F".into() }, master: None, again: false },
        now,
        &mut calls,
    );
    let text: String = (0..JOBS).map(|n| job(&format!("job{n}"), STAGES, 500)).collect();
    let jobs = read("bench", &text, Syntax::Toml).unwrap_or_default();
    assert!(core.request(Request::Submit(jobs), now, &mut calls).is_ok());
    let mut micros: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let offers = offers(AGENTS, &mut number, "cpus:1;mem:1024");
            let began = Instant::now();
            core.on_event(Event::Offers(offers), now, &mut calls);
            let took = began.elapsed().as_secs_f64() * 1e6;
            calls = Calls::default();
            took
        })
        .collect();
    micros.sort_by(f64::total_cmp);
    println!("one round: {JOBS} jobs of {STAGES} stages, {AGENTS} agents with room for a task each");
    println!("  median {:.0} us, longest {:.0} us", micros[ROUNDS / 2], micros[ROUNDS - 1]);
}

/// A scheduler that a session and the benchmark share.
struct Shared(Rc<RefCell<Core>>);

impl Scheduler for Shared {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        let mut core = self.0.borrow_mut();
        let restored = matches!(event, Event::Restored(_));
        core.on_event(event, now, calls);
        if restored {
            let text = format!("{}{}", job("large", 1, TASKS), "");
            let jobs = read("bench", &text, Syntax::Toml).unwrap_or_default();
            // After a restart the job exists already.
            assert!(core.request(Request::Resume(jobs), now, calls).is_ok());
        }
        core.take_events();
    }
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() << 10
}

struct Run {
    session: Session<Shared>,
    /// File that receives saved state in place of memory, each change as a line.
    kept: Option<File>,
    launched: Vec<(String, AgentId)>,
    now: Time,
}

impl Run {
    fn start(store: BTreeMap<String, Vec<u8>>, kept: Option<File>) -> Run {
        let core = Shared(Rc::new(RefCell::new(Core::new(Settings::default()))));
        let now = Time::from_secs(1_000);
        let session = Session::new(core, sdk::Settings::new(Default::default()), now);
        let mut run = Run { session, kept, launched: Vec::new(), now };
        let mut outputs = Vec::new();
        assert!(run.session.restore(store, now, &mut outputs).is_ok());
        run.carry_out(outputs);
        run.put(Input::Wake);
        let subscribed = event::Subscribed { framework_id: FrameworkId { value: "F".into() }, ..Default::default() };
        run.tell(scheduler::Event { subscribed: Some(Box::new(subscribed)), ..of(event::Type::Subscribed) });
        run
    }

    fn tell(&mut self, event: scheduler::Event) {
        self.put(Input::Event(Box::new(event)));
    }

    fn put(&mut self, input: Input) {
        let mut outputs = Vec::new();
        self.session.handle(input, self.now, &mut outputs);
        self.carry_out(outputs);
    }

    fn carry_out(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Save(changes) => {
                    let Some(kept) = &mut self.kept else { continue };
                    for change in changes {
                        let line = serde_json::to_vec(&(change.key, change.value)).unwrap_or_default();
                        assert!(kept.write_all(&line).and_then(|()| kept.write_all(b"\n")).is_ok());
                    }
                }
                Output::Send(call) if call.r#type() == call::Type::Accept => {
                    let operations = call.accept.into_iter().flat_map(|accept| accept.operations);
                    let tasks =
                        operations.filter_map(|operation| operation.launch).flat_map(|launch| launch.task_infos);
                    self.launched.extend(tasks.map(|task| (task.task_id.value.to_string(), task.agent_id)));
                }
                _ => {}
            }
        }
    }
}

fn of(kind: event::Type) -> scheduler::Event {
    scheduler::Event { r#type: Some(kind as i32), ..Default::default() }
}

/// Runs all tasks of a job, then restores the job as after a restart.
fn large_job() {
    let path = std::env::temp_dir().join(format!("tepui-dag-bench-{}", std::process::id()));
    let Ok(file) = File::create(&path) else { return };
    let before = resident();
    let mut run = Run::start(BTreeMap::new(), Some(file));
    let (mut number, mut done) = (0, 0_u32);
    while done < TASKS {
        run.now = run.now + Duration::from_secs(2);
        let offers = offers(AGENTS, &mut number, "cpus:200;mem:1048576");
        run.tell(scheduler::Event { offers: Some(event::Offers { offers }), ..of(event::Type::Offers) });
        for (id, agent) in std::mem::take(&mut run.launched) {
            done += 1;
            let status = TaskStatus {
                task_id: sdk::v1::TaskId { value: id.into() },
                agent_id: Some(agent),
                state: TaskState::TaskFinished as i32,
                uuid: Some(u64::from(done).to_be_bytes().to_vec()),
                ..Default::default()
            };
            run.tell(scheduler::Event { update: Some(event::Update { status }), ..of(event::Type::Update) });
        }
    }
    println!("a job of {TASKS} tasks, all of them finished");
    println!("  in memory: {:.0} MB more than before", mega(resident().saturating_sub(before)));
    drop(run);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    let mut store = BTreeMap::new();
    for line in text.lines() {
        let change: Result<(String, Option<Vec<u8>>), _> = serde_json::from_str(line);
        match change {
            Ok((key, Some(value))) => store.insert(key, value),
            Ok((key, None)) => store.remove(&key),
            Err(_) => None,
        };
    }
    let kept: usize = store.iter().map(|(key, value)| key.len() + value.len()).sum();
    let began = Instant::now();
    let run = Run::start(store, None);
    println!("  taken up after a restart in {:.2} s from {:.0} MB", began.elapsed().as_secs_f64(), mega(kept as u64));
    assert!(run.launched.is_empty());
}

fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
