//! Ctrl-C and SIGTERM for schedulers: the first asks the scheduler to end its work, the second ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

/// Waits for Ctrl-C or SIGTERM.
///
/// # Errors
/// The system does not let this process have its signals.
pub(crate) async fn wait_for_end() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        interrupt = tokio::signal::ctrl_c() => interrupt,
    }
}

/// Whether the user has interrupted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    wanted: Arc<AtomicBool>,
    nudge: Arc<Notify>,
}

impl Interrupt {
    /// Watches from now on. Needs a runtime.
    ///
    /// # Errors
    /// The system does not let this process have its signals.
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

    /// As if there had been such a signal.
    #[cfg(test)]
    pub(crate) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether there was such a signal.
    pub(crate) fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// What wakes a scheduler when there is one.
    pub(crate) fn nudge(&self) -> Arc<Notify> {
        self.nudge.clone()
    }
}
