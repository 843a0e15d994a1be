//! A framework's connection breaks, or it wants no more offers.
//!
//! It does not end the framework; the failover timer does (`remove.rs`).

use std::time::Duration;

use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{Connection, FrameworkKey};
use crate::timers::Timer;

impl Master {
    /// The link to a driver is broken.
    pub(crate) fn driver_exited(&mut self, key: FrameworkKey, out: &mut Outbox) {
        // Reaches the driver only if the link broke one way.
        self.tell_error(key, "Framework disconnected", out);
        self.disconnect_framework(key, out);
    }

    /// A framework has lost its connection: no more offers, and its time to come back begins.
    pub(crate) fn disconnect_framework(&mut self, key: FrameworkKey, out: &mut Outbox) {
        let Some(framework) = self.framework(key) else { return };
        if !framework.connected() {
            return;
        }
        out.info(format!("Framework {} is disconnected", framework.id));
        let timeout = duration_of(framework.info.failover_timeout());
        self.cut_connection(key, false, out);
        self.deactivate_framework(key, out);
        let now = self.now;
        let Some(book) = self.framework_books.get_mut(&key) else { return };
        let timer = Timer::FrameworkFailover { framework: key, epoch: book.epoch };
        book.failover = Some(self.timers.set(now + timeout, timer));
    }

    /// No more offers; those that are out are void.
    pub(crate) fn deactivate_framework(&mut self, key: FrameworkKey, out: &mut Outbox) {
        let Some(framework) = self.framework_mut(key) else { return };
        framework.active = false;
        let id = framework.id.clone();
        self.allocation.deactivate_framework(&id);
        self.rescind_offers_of(key, out);
    }

    /// Forgets how a framework is reached. Its stream is closed, if the stream is still there.
    pub(crate) fn cut_connection(&mut self, key: FrameworkKey, keep_link: bool, out: &mut Outbox) {
        let Some(framework) = self.framework_mut(key) else { return };
        let old = std::mem::replace(&mut framework.connection, Connection::Disconnected);
        let Some(book) = self.framework_books.get_mut(&key) else { return };
        book.epoch += 1;
        if let Some(token) = book.heartbeat.take() {
            self.timers.cancel(token);
        }
        match old {
            Connection::Http { stream, .. } => {
                if self.framework_streams.remove(&stream).is_some() {
                    out.push(Output::CloseStream { stream });
                }
            }
            Connection::Driver(pid) => {
                self.framework_pids.remove(&pid);
                if !keep_link {
                    self.peers.forget(&pid);
                    out.push(Output::Unlink { pid: pid.clone() });
                }
                book.last_pid = Some(pid);
            }
            Connection::Recovered | Connection::Disconnected => {}
        }
    }

    /// The failover timer has run out; void if the framework has come back since.
    pub(crate) fn failover_timeout(&mut self, key: FrameworkKey, epoch: u64, out: &mut Outbox) {
        if self.framework_books.get(&key).is_some_and(|book| book.epoch == epoch) {
            if let Some(framework) = self.framework(key) {
                out.info(format!("Framework {} has not come back in time", framework.id));
            }
            self.remove_framework(key, out);
        }
    }
}

/// A checked `failover_timeout`; a negative one counts as none.
fn duration_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
