//! Creates and removes persistent volumes, in the order of the core's requests.
//!
//! A change that fails with a transient error is repeated until it succeeds, and later ones wait: the agent and its
//! tasks keep running. An error that needs a repair ends the agent, whose state would otherwise differ from the disk.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use agent::{Input, RemovedVolume};
use store::Waits;
use tokio::sync::watch;

use base::lock;
use containerizer::{Report, volumes};

use super::outputs::Exit;

/// Volumes to remove and volumes to create.
#[derive(Debug)]
pub(super) struct VolumeChange {
    /// Number of the change, for the report to the core.
    pub(super) change: u64,
    pub(super) gone: Vec<RemovedVolume>,
    pub(super) new: Vec<String>,
}

/// Removes and creates volumes. Returns the directories that are still to be deleted.
type Make = fn(&[RemovedVolume], &[String]) -> anyhow::Result<Vec<PathBuf>>;

/// The queue of changes that have not been made.
pub(super) struct VolumeChanges {
    waiting: Mutex<VecDeque<VolumeChange>>,
    make: Make,
    report: Report,
    exit: watch::Sender<Option<Exit>>,
}

impl VolumeChanges {
    pub(super) fn new(report: Report, exit: watch::Sender<Option<Exit>>) -> Arc<VolumeChanges> {
        Arc::new(VolumeChanges { waiting: Mutex::default(), make: volumes::change, report, exit })
    }

    /// Makes a change, after those in the queue.
    pub(super) fn add(self: &Arc<VolumeChanges>, change: VolumeChange) {
        let mut waiting = lock(&self.waiting);
        waiting.push_back(change);
        if waiting.len() > 1 {
            return;
        }
        let Err(error) = self.make_waiting(&mut waiting) else { return };
        tracing::warn!("{error:#}: retrying until it succeeds");
        drop(waiting);
        let changes = Arc::clone(self);
        tokio::spawn(async move {
            let mut waits = Waits::default();
            loop {
                tokio::time::sleep(waits.next_wait()).await;
                if changes.make_waiting(&mut lock(&changes.waiting)).is_ok() {
                    return;
                }
            }
        });
    }

    /// Makes the changes in the queue.
    ///
    /// # Errors
    /// A transient error of the disk.
    fn make_waiting(&self, waiting: &mut VecDeque<VolumeChange>) -> anyhow::Result<()> {
        while let Some(VolumeChange { change, gone, new }) = waiting.front() {
            match (self.make)(gone, new) {
                Ok(aside) => {
                    volumes::delete_later(aside);
                    (self.report)(Input::VolumesChanged { change: *change });
                    waiting.pop_front();
                }
                Err(error) if error.chain().any(may_pass) => return Err(error),
                Err(error) => {
                    self.exit.send_replace(Some(Exit { code: 1, message: format!("{error:#}") }));
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn may_pass(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.downcast_ref::<std::io::Error>().is_some_and(store::is_transient)
}

#[cfg(test)]
mod tests {
    use std::io::Error;
    use std::sync::atomic::{AtomicU32, Ordering};

    use anyhow::Context;
    use tokio::sync::Notify;

    use super::*;

    /// Makes this many changes, and waits for `wanted` reports. Returns which were made, and whether the agent is to
    /// end.
    async fn made(make: Make, changes: u64, wanted: usize) -> (Vec<u64>, bool) {
        let (made, seen) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        let (reported, notified) = (made.clone(), seen.clone());
        let report: Report = Arc::new(move |input| {
            if let Input::VolumesChanged { change } = input {
                lock(&reported).push(change);
            }
            notified.notify_one();
        });
        let (exit, exits) = watch::channel(None);
        let all = Arc::new(VolumeChanges { waiting: Mutex::default(), make, report, exit });
        for change in 1..=changes {
            all.add(VolumeChange { change, gone: Vec::new(), new: Vec::new() });
        }
        while lock(&made).len() < wanted {
            seen.notified().await;
        }
        let (made, ends) = (lock(&made).clone(), exits.borrow().is_some());
        (made, ends)
    }

    #[tokio::test]
    async fn what_a_full_disk_refuses_is_made_later_in_order() {
        static TRIES: AtomicU32 = AtomicU32::new(0);
        let make: Make = |_, _| match TRIES.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(Error::from_raw_os_error(28)).context("the volume cannot be created"),
            _ => Ok(Vec::new()),
        };
        assert_eq!(made(make, 3, 3).await, (vec![1, 2, 3], false));
    }

    #[tokio::test]
    async fn what_does_not_pass_ends_the_agent() {
        let make: Make = |_, _| Err(Error::from_raw_os_error(20)).context("the volume cannot be created");
        assert_eq!(made(make, 1, 0).await, (Vec::new(), true));
    }
}
