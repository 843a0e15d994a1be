//! The agent's checkpoints on their disk, and what the core is told of that disk.
//!
//! A write that the disk refuses for the time being is tried until it succeeds, and the core hears of it; a thread looks
//! after what was put aside meanwhile. What cannot pass by itself, such as a missing right, ends the agent.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use agent::{Input, Persist};
use base::lock;
use containerizer::Report;
use store::{Checkpoints, Health, MetaTree, StoreError, Trouble, Waits};
use tokio::sync::Notify;

use crate::fault;

/// The agent's checkpoints.
pub(super) struct Keeper {
    checkpoints: Mutex<Checkpoints>,
    /// What the core was told last.
    health: Mutex<Health>,
    report: Report,
    /// There is something to look after.
    wanted: Notify,
    /// Whether the process ends, and how those who wait hear of it.
    ending: Mutex<bool>,
    ends: Condvar,
}

/// Opens the checkpoints below a meta directory, and reads them.
///
/// # Errors
/// When what is there cannot be read.
pub(super) fn open(meta: &Path) -> Result<(Checkpoints, MetaTree), StoreError> {
    let mut checkpoints = Checkpoints::open(meta)?;
    checkpoints.on_step(fault::point);
    let tree = checkpoints.read()?;
    Ok((checkpoints, tree))
}

impl Keeper {
    /// Keeps checkpoints, and reports of them.
    pub(super) fn new(checkpoints: Checkpoints, report: Report) -> Arc<Keeper> {
        Arc::new(Keeper {
            checkpoints: Mutex::new(checkpoints),
            health: Mutex::default(),
            report,
            wanted: Notify::new(),
            ending: Mutex::default(),
            ends: Condvar::new(),
        })
    }

    /// Makes entries durable. Blocks until that is done or the process ends.
    ///
    /// # Errors
    /// What does not pass by itself.
    pub(super) fn write(&self, entries: &[Persist]) -> anyhow::Result<()> {
        let mut waits = Waits::default();
        loop {
            let (outcome, trouble) = {
                let mut checkpoints = lock(&self.checkpoints);
                let outcome = checkpoints.write(entries);
                (outcome, checkpoints.trouble().cloned())
            };
            if let Some(trouble) = trouble {
                self.fails(trouble);
            }
            match outcome {
                Ok(_) => return Ok(()),
                Err(error) if error.is_transient() => self.fails(error.trouble()),
                Err(error) => return Err(error.into()),
            }
            if self.ends_within(waits.next_wait()) {
                anyhow::bail!("the agent ends before its checkpoints are written");
            }
        }
    }

    /// Whoever waits for the disk waits no longer.
    pub(super) fn end(&self) {
        *lock(&self.ending) = true;
        self.ends.notify_all();
    }

    fn ends_within(&self, wait: Duration) -> bool {
        let waited = self.ends.wait_timeout_while(lock(&self.ending), wait, |ending| !*ending);
        waited.is_ok_and(|(ending, _)| *ending)
    }

    fn fails(&self, trouble: Trouble) {
        let mut health = lock(&self.health);
        self.wanted.notify_one();
        if health.fails(&trouble) {
            (self.report)(Input::CheckpointsFailing { why: trouble.why, needs_room: trouble.needs_room });
        }
    }

    fn works(&self) {
        if lock(&self.health).works() {
            (self.report)(Input::CheckpointsWork);
        }
    }

    /// Looks after the checkpoints, now and whenever a write was refused, until all is well.
    pub(super) fn watch(self: &Arc<Keeper>) -> tokio::task::JoinHandle<()> {
        let keeper = Arc::clone(self);
        tokio::spawn(async move {
            let mut waits = Waits::default();
            loop {
                let tends = Arc::clone(&keeper);
                let tended = tokio::task::spawn_blocking(move || lock(&tends.checkpoints).tend()).await;
                match tended {
                    Ok(Err(error)) => {
                        keeper.fails(error.trouble());
                        tokio::time::sleep(waits.next_wait()).await;
                    }
                    _ => {
                        keeper.works();
                        waits.reset();
                        keeper.wanted.notified().await;
                    }
                }
            }
        })
    }
}
