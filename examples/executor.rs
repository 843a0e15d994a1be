//! A framework with a custom executor, which is the same program: one process on each agent counts primes for all tasks
//! there. Run it: cargo run --example executor -- 127.0.0.1:5050
#![allow(clippy::print_stdout, reason = "an example prints what it does")]
#![forbid(unsafe_code)]

use std::sync::{Arc, mpsc};

use tepui_sdk::base::Time;
use tepui_sdk::driver::{Options, executor, run};
use tepui_sdk::executor::{Calls as ExecutorCalls, Event as ExecutorEvent, Executor};
use tepui_sdk::resources::{Role, parse_text};
use tepui_sdk::v1::{self, TaskId, TaskState};
use tepui_sdk::{Calls, DEFAULT_REFUSAL, Event, Packer, Scheduler, task};

type Found = (TaskId, usize);

struct Counter((mpsc::Sender<Found>, mpsc::Receiver<Found>), Arc<tokio::sync::Notify>);

impl Executor for Counter {
    fn on_event(&mut self, event: ExecutorEvent, _now: Time, calls: &mut ExecutorCalls) {
        match event {
            ExecutorEvent::Launch(tasks) => {
                for task in tasks {
                    calls.update(&task.task_id, TaskState::TaskRunning);
                    let (results, wake_signal) = (self.0.0.clone(), self.1.clone());
                    let below = task.data().iter().fold(0, |n, byte| n << 8 | u32::from(*byte));
                    std::thread::spawn(move || {
                        let is_prime = |n: &u32| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
                        let _ = results.send((task.task_id, (2..below).filter(is_prime).count()));
                        wake_signal.notify_one();
                    });
                }
            }
            ExecutorEvent::Wake => self.0.1.try_iter().for_each(|(id, primes)| {
                calls.explain(&id, TaskState::TaskFinished, format!("{primes} primes"));
            }),
            ExecutorEvent::Shutdown { .. } => calls.stop(),
            _ => {}
        }
    }
}

struct Primes(u32);

impl Scheduler for Primes {
    fn on_event(&mut self, event: Event, _now: Time, calls: &mut Calls) {
        if let Event::Offers(offers) = event {
            let mut packer = Packer::new(offers);
            let needs = parse_text("cpus:0.1;mem:32", &Role::star()).unwrap_or_default();
            while self.0 > 0 {
                let program = std::env::current_exe().ok().map(|path| path.display().to_string());
                let command = v1::CommandInfo { value: program, shell: Some(false), ..Default::default() };
                let counter = task::executor("counter", command, &needs);
                let mut task = task::custom(&format!("below-{}000", self.0), counter, &needs);
                task.data = Some((self.0 * 1000).to_be_bytes().to_vec());
                if packer.place(task).is_err() {
                    break;
                }
                self.0 -= 1;
            }
            packer.finish(calls, DEFAULT_REFUSAL);
        } else if let Event::Update(status) = event {
            println!("{}: {} {}", status.task_id.value, status.state().as_str_name(), status.message());
            if self.0 == 0 && calls.tasks().is_empty() {
                calls.teardown();
            }
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(master) = std::env::args().nth(1) else {
        let wake_signal = Arc::default();
        executor::run(Counter(mpsc::channel(), Arc::clone(&wake_signal)), wake_signal).await?;
        return Ok(()); // without a master it was started by an agent
    };
    let framework = v1::FrameworkInfo { user: "root".into(), name: "primes".into(), ..Default::default() };
    run(Primes(5), Options::new(&master, framework)?).await;
    Ok(())
}
