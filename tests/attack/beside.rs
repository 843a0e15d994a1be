//! A framework that runs during an attack: it launches short tasks, one after the other, and measures each from its
//! launch to its end.

#![allow(clippy::disallowed_methods, reason = "how long tasks take is measured")]

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tepui_sdk::base::Time;
use tepui_sdk::driver::{Options, run};
use tepui_sdk::resources::{Role, parse_text};
use tepui_sdk::{Calls, Event, Packer, Scheduler, is_terminal, task, v1};

struct Launcher {
    launched: BTreeMap<String, Instant>,
    number: u64,
    tell: Sender<Duration>,
    stop: Arc<AtomicBool>,
}

impl Scheduler for Launcher {
    fn on_event(&mut self, event: Event, _: Time, calls: &mut Calls) {
        match event {
            Event::Offers(offers) => {
                let mut packer = Packer::new(offers);
                let needs = parse_text("cpus:0.1;mem:16", &Role::star()).unwrap_or_default();
                let id = format!("beside-{}", self.number);
                if packer.place(task::shell(&id, "true", &needs)).is_ok() {
                    self.number += 1;
                    self.launched.insert(id, Instant::now());
                }
                packer.finish(calls, Duration::ZERO);
            }
            Event::Update(status) if is_terminal(status.state()) => {
                assert_eq!(status.state(), v1::TaskState::TaskFinished, "{status:?}");
                if let Some(launched) = self.launched.remove(&*status.task_id.value) {
                    let _ = self.tell.send(launched.elapsed());
                }
            }
            _ => {}
        }
        if self.stop.load(Ordering::Relaxed) {
            calls.teardown();
        }
    }
}

/// A running framework; it ends when this is dropped.
pub struct Beside {
    times: Receiver<Duration>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    /// Starts a framework of the tenant.
    pub fn start(master: &str) -> Beside {
        let (tell, times) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let launcher = Launcher { launched: BTreeMap::new(), number: 0, tell, stop: stop.clone() };
        let name = "beside".to_owned();
        let framework =
            v1::FrameworkInfo { name, user: "root".into(), principal: Some("ops".into()), ..Default::default() };
        let mut options = Options::new(master, framework).expect("an address");
        options.credential = Some(("ops".to_owned(), "x".to_owned()));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let _ = runtime.block_on(run(launcher, options));
        });
        Beside { times, stop, thread: Some(thread) }
    }

    /// Returns the times of the tasks that have ended since the last call, once there are at least `least`.
    pub fn times(&self, least: usize, limit: Duration) -> Vec<Duration> {
        let mut times: Vec<Duration> = self.times.try_iter().collect();
        while times.len() < least {
            times.push(self.times.recv_timeout(limit).expect("tasks go on"));
        }
        times.sort_unstable();
        times
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
