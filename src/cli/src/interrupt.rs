//! Ctrl-C, told to a scheduler: the first asks it to end its work, the second ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Whether the person at the terminal wants an end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    wanted: Arc<AtomicBool>,
    nudge: Arc<Notify>,
}

impl Interrupt {
    /// Watches for Ctrl-C from now on. Needs a runtime.
    pub(crate) fn watch() -> Interrupt {
        let interrupt = Interrupt::default();
        let watching = interrupt.clone();
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if watching.wanted.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
                watching.nudge.notify_one();
            }
        });
        interrupt
    }

    /// Whether there was a Ctrl-C.
    pub(crate) fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// What wakes a scheduler when there is one.
    pub(crate) fn nudge(&self) -> Arc<Notify> {
        self.nudge.clone()
    }
}
