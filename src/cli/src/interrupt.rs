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
    is_set: Arc<AtomicBool>,
    wake_signal: Arc<Notify>,
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
            if self.is_set.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
            self.wake_signal.notify_one();
        }
    }

    /// Sets the flag as a signal would.
    #[cfg(test)]
    pub(crate) fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Returns whether there was a signal.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// Returns the notification that wakes a scheduler at a signal.
    pub(crate) fn wake_signal(&self) -> Arc<Notify> {
        self.wake_signal.clone()
    }
}
