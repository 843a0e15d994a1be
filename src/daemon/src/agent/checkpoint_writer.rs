//! Writes the agent's checkpoints to their disk, and reports errors of that disk to the core.
//!
//! A write that fails with a transient error is repeated until it succeeds, and the core is notified. A background task
//! writes the records of the journals in place when the disk accepts them again. An error that needs a repair, such as
//! a missing permission, ends the agent.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use agent::{Input, Persist};
use base::lock;
use containerizer::Report;
use store::{Checkpoints, DiskFailure, DiskHealth, StoreError, Waits};
use tokio::sync::{Notify, watch};

use crate::fault;

/// Time that requests wait for a write that neither the disk nor a journal accepts.
const PATIENCE: Duration = Duration::from_secs(5);

/// The agent's checkpoints, and the state of their disk.
pub(super) struct CheckpointWriter {
    checkpoints: Mutex<Checkpoints>,
    /// State of the disk that was last reported to the core.
    health: Mutex<DiskHealth>,
    report: Report,
    /// Wakes the background task.
    wanted: Notify,
    /// Error of the write that is being repeated.
    refused: watch::Sender<Option<String>>,
    /// Whether the process ends; `ends` signals a change.
    ending: Mutex<bool>,
    ends: Condvar,
}

/// Opens the checkpoints below a meta directory, and reads them.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn open(meta: &Path, runtime: &Path) -> Result<(Checkpoints, agent::Tree), StoreError> {
    let mut checkpoints = Checkpoints::open(meta, runtime)?;
    checkpoints.on_step(fault::point);
    let tree = checkpoints.read()?;
    Ok((checkpoints, tree))
}

impl CheckpointWriter {
    /// Creates a keeper that writes these checkpoints, and reports errors to the core.
    pub(super) fn new(checkpoints: Checkpoints, report: Report) -> Arc<CheckpointWriter> {
        Arc::new(CheckpointWriter {
            checkpoints: Mutex::new(checkpoints),
            health: Mutex::default(),
            report,
            wanted: Notify::new(),
            refused: watch::Sender::new(None),
            ending: Mutex::default(),
            ends: Condvar::new(),
        })
    }

    /// Makes entries durable. Blocks until that is done or the process ends.
    ///
    /// # Errors
    /// An error that is not transient.
    pub(super) fn write(&self, entries: &[Persist]) -> anyhow::Result<()> {
        let mut waits = Waits::default();
        loop {
            let (outcome, disk_failure) = {
                let mut checkpoints = lock(&self.checkpoints);
                let outcome = checkpoints.write(entries);
                (outcome, checkpoints.disk_failure().cloned())
            };
            if let Some(disk_failure) = disk_failure {
                self.report_failure(disk_failure);
            }
            match outcome {
                Ok(_) => {
                    self.refused.send_if_modified(|refused| refused.take().is_some());
                    return Ok(());
                }
                Err(error) if error.is_transient() => {
                    let disk_failure = error.disk_failure();
                    self.refused.send_replace(Some(disk_failure.why.clone()));
                    self.report_failure(disk_failure);
                }
                Err(error) => return Err(error.into()),
            }
            if self.ends_within(waits.next_wait()) {
                anyhow::bail!("the agent ends before its checkpoints are written");
            }
        }
    }

    /// Waits until a write has been refused for 5 seconds by the disk and by both journals. Returns the error.
    pub(super) async fn refuses(&self) -> String {
        let mut refused = self.refused.subscribe();
        loop {
            // The sender lives as long as `self`.
            let _ = refused.wait_for(Option::is_some).await;
            let written = tokio::time::timeout(PATIENCE, refused.wait_for(Option::is_none)).await.is_ok();
            if let Some(why) = refused.borrow().clone().filter(|_| !written) {
                return why;
            }
        }
    }

    /// Ends all waits for the disk, because the process ends.
    pub(super) fn end(&self) {
        *lock(&self.ending) = true;
        self.ends.notify_all();
    }

    fn ends_within(&self, wait: Duration) -> bool {
        let waited = self.ends.wait_timeout_while(lock(&self.ending), wait, |ending| !*ending);
        waited.is_ok_and(|(ending, _)| *ending)
    }

    fn report_failure(&self, disk_failure: DiskFailure) {
        let mut health = lock(&self.health);
        self.wanted.notify_one();
        if health.record_failure(&disk_failure) {
            (self.report)(Input::CheckpointsFailing { why: disk_failure.why, lacks_space: disk_failure.lacks_space });
        }
    }

    fn report_success(&self) {
        if lock(&self.health).record_success() {
            (self.report)(Input::CheckpointsWork);
        }
    }

    /// Starts the background task. It runs after each refused write until the checkpoints are in place.
    pub(super) fn watch(self: &Arc<CheckpointWriter>) -> tokio::task::JoinHandle<()> {
        let checkpoint_writer = Arc::clone(self);
        tokio::spawn(async move {
            let mut waits = Waits::default();
            loop {
                let tends = Arc::clone(&checkpoint_writer);
                let tended = tokio::task::spawn_blocking(move || lock(&tends.checkpoints).complete_pending()).await;
                match tended {
                    Ok(Err(error)) => {
                        checkpoint_writer.report_failure(error.disk_failure());
                        tokio::time::sleep(waits.next_wait()).await;
                    }
                    _ => {
                        checkpoint_writer.report_success();
                        waits.reset();
                        checkpoint_writer.wanted.notified().await;
                    }
                }
            }
        })
    }
}
