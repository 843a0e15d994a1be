//! Handles SIGINT (Ctrl-C) and SIGTERM for schedulers: the first signal asks the scheduler to end its work, the second
//! ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// Waits for SIGINT or SIGTERM.
///
/// # Errors
/// The system does not allow handling the signals.
pub(crate) async fn wait_for_end() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        interrupt = tokio::signal::ctrl_c() => interrupt,
    }
}

/// A flag that is set when the user interrupts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    wanted: Arc<AtomicBool>,
    nudge: Arc<Notify>,
}

impl Interrupt {
    /// Starts to handle the signals. Needs a runtime.
    ///
    /// # Errors
    /// The system does not allow handling the signals.
    pub(crate) fn watch() -> std::io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            tokio::spawn(interrupt.clone().wait(signal(kind)?));
        }
        Ok(interrupt)
    }

    async fn wait(self, mut signal: Signal) {
        while signal.recv().await.is_some() {
            if self.wanted.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            self.nudge.notify_one();
        }
    }

    /// Sets the flag as a signal would.
    #[cfg(test)]
    pub(crate) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Returns whether there was a signal.
    pub(crate) fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Returns the notification that wakes a scheduler at a signal.
    pub(crate) fn nudge(&self) -> Arc<Notify> {
        self.nudge.clone()
    }
}
