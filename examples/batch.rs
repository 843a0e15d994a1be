//! Runs a batch of shell commands, each up to three times with growing waits. If it is killed and started again with
//! the same directory, it continues: it takes over running tasks, and does not repeat finished ones.
//!
//! Run it: cargo run --example batch -- 127.0.0.1:5050 /tmp/batch-state 'echo one' 'sleep 5' 'exit 1'
#![allow(clippy::print_stdout, reason = "an example prints what it does")]
#![forbid(unsafe_code)]

use std::time::Duration;

use tepui_sdk::base::Time;
use tepui_sdk::driver::{Options, run};
use tepui_sdk::resources::{Role, parse_text};
use tepui_sdk::{Calls, Event, Packer, Restarts, Scheduler, is_terminal, state, task, v1};

const TRIES: u8 = 3;

struct Batch {
    commands: Vec<String>,
    jobs: Vec<(u8, bool)>, // how often each command was tried, and whether it succeeded
    restarts: Restarts,
}

impl Batch {
    fn launch(&mut self, offers: Vec<v1::Offer>, now: Time, calls: &mut Calls) {
        let mut packer = Packer::new(offers);
        for (job, (tries, succeeded)) in self.jobs.iter().enumerate() {
            let id = format!("{job}-{tries}");
            let wanted = !succeeded && *tries < TRIES && calls.tasks().get(&id).is_none();
            if wanted && self.restarts.may_start(&job.to_string(), now) {
                let needs = parse_text("cpus:0.5;mem:32", &Role::star()).unwrap_or_default();
                let _ = packer.place(task::shell(&id, &self.commands[job], &needs));
            }
        }
        packer.finish(calls, Duration::from_secs(1));
    }

    fn ended(&mut self, status: &v1::TaskStatus, now: Time, calls: &mut Calls) -> Option<()> {
        let (job, _) = status.task_id.value.split_once('-')?;
        let state = self.jobs.get_mut(job.parse::<usize>().ok()?)?;
        *state = (state.0 + 1, status.state() == v1::TaskState::TaskFinished);
        calls.save(job, vec![state.0, u8::from(state.1)]);
        self.restarts.ended(job, Duration::ZERO, now);
        println!("{}: {}", status.task_id.value, status.state().as_str_name());
        Some(())
    }
}

impl Scheduler for Batch {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        match event {
            Event::Restored(saved) => {
                let kept = |job: usize| saved.get(&job.to_string()).map(|kept| (kept[0], kept[1] == 1));
                (0..).zip(&mut self.jobs).for_each(|(job, state)| *state = kept(job).unwrap_or(*state));
            }
            Event::Offers(offers) => self.launch(offers, now, calls),
            Event::Update(status) if is_terminal(status.state()) => {
                self.ended(&status, now, calls);
            }
            _ => {}
        }
        if self.jobs.iter().all(|(tries, succeeded)| *succeeded || *tries == TRIES) {
            calls.teardown();
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [master, directory, commands @ ..] = &words[..] else { return Err("give MASTER DIR COMMAND...".into()) };
    let framework = v1::FrameworkInfo { name: "batch".into(), user: "root".into(), ..Default::default() };
    let mut options = Options::new(master, framework)?;
    options.settings.framework.failover_timeout = Some(600.0);
    options.state = Some(Box::new(state::File::open(directory.as_ref())?));
    let (commands, jobs) = (commands.to_vec(), vec![(0, false); commands.len()]);
    let finished = run(Batch { commands, jobs, restarts: Restarts::default() }, options).await;
    let failed = finished.scheduler.jobs.iter().filter(|(_, succeeded)| !succeeded).count();
    println!("{} of {} commands failed", failed, finished.scheduler.jobs.len());
    Ok(())
}
