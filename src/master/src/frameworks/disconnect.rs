//! Disconnects and deactivates frameworks.
//!
//! The failover timer removes a framework (`remove.rs`).

use std::time::Duration;

use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{Connection, FrameworkKey};

impl Master {
    /// Disconnects a framework because the link to its driver is broken.
    pub(crate) fn driver_exited(&mut self, key: FrameworkKey, out: &mut Outbox) {
        // This reaches the driver only if the link is broken in one direction.
        self.frameworks.send_error(key, "Framework disconnected", out);
        self.disconnect_framework(key, out);
    }

    /// Deactivates a framework whose connection is broken, and starts its failover timeout.
    pub(crate) fn disconnect_framework(&mut self, key: FrameworkKey, out: &mut Outbox) {
        let Some(framework) = self.framework(key) else { return };
        if !framework.connected() {
            return;
        }
        out.info(format!("Framework {} is disconnected", framework.id));
        let timeout = duration_of(framework.info.failover_timeout());
        self.cut_connection(key, false, out);
        self.deactivate_framework(key, out);
        self.frameworks.await_failover(key, self.now + timeout, &mut self.timers);
    }

    /// Stops the offers to a framework, and rescinds the outstanding ones.
    pub(crate) fn deactivate_framework(&mut self, key: FrameworkKey, out: &mut Outbox) {
        let Some(id) = self.frameworks.set_active(key, false) else { return };
        self.allocation.deactivate_framework(&id);
        self.rescind_offers_of(key, out);
    }

    /// Removes the connection of a framework, and closes its stream if it is open.
    pub(crate) fn cut_connection(&mut self, key: FrameworkKey, keep_link: bool, out: &mut Outbox) {
        match self.frameworks.detach(key, &mut self.timers) {
            Some(Connection::Http { stream, .. }) => out.push(Output::CloseStream { stream }),
            Some(Connection::Driver(pid)) if !keep_link => {
                self.peers.forget(&pid);
                out.push(Output::Unlink { pid });
            }
            _ => {}
        }
    }

    /// Removes a framework whose failover timeout has passed, unless its connection has changed since `epoch`.
    pub(crate) fn failover_timeout(&mut self, key: FrameworkKey, epoch: u64, out: &mut Outbox) {
        if self.frameworks.is_current(key, epoch) {
            if let Some(framework) = self.framework(key) {
                out.info(format!("Framework {} has not reregistered in time", framework.id));
            }
            self.remove_framework(key, out);
        }
    }
}

/// Converts a checked `failover_timeout`; a negative one counts as zero.
fn duration_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
