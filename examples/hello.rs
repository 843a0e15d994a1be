//! A framework on one page: ten tasks that say hello, each on any agent where it fits.
//!
//! Run it against a cluster: cargo run --example hello -- 127.0.0.1:5050
#![allow(clippy::print_stdout, reason = "an example prints what it does")]
#![forbid(unsafe_code)]

use tepui_sdk::base::Time;
use tepui_sdk::driver::{Options, run};
use tepui_sdk::resources::{Resources, Role, parse_text};
use tepui_sdk::v1::FrameworkInfo;
use tepui_sdk::{Calls, DEFAULT_REFUSAL, Event, Packer, Scheduler, is_terminal};

struct Hello {
    left: u32,
    needs: Resources,
}

impl Scheduler for Hello {
    fn on_event(&mut self, event: Event, _now: Time, calls: &mut Calls) {
        match event {
            Event::Offers(offers) => {
                let mut packer = Packer::new(offers);
                while self.left > 0 {
                    let task = tepui_sdk::task::shell(&format!("hello-{}", self.left), "echo hello", &self.needs);
                    if packer.place(task).is_err() {
                        break;
                    }
                    self.left -= 1;
                }
                packer.finish(calls, DEFAULT_REFUSAL);
            }
            Event::Update(status) if is_terminal(status.state()) => {
                println!("{}: {}", status.task_id.value, status.state().as_str_name());
                if self.left == 0 && calls.tasks().is_empty() {
                    calls.teardown();
                }
            }
            _ => {}
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let master = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:5050".to_owned());
    let framework = FrameworkInfo { user: "root".to_owned(), name: "hello".to_owned(), ..Default::default() };
    let needs = parse_text("cpus:0.1;mem:32", &Role::star())?;
    let finished = run(Hello { left: 10, needs }, Options::new(&master, framework)?).await;
    println!("ended: {:?}", finished.ending);
    Ok(())
}
