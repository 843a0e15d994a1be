//! A framework enters the master's books, or gets a connection.
//!
//! It does not check whether it may; see `subscribe.rs`.

use std::sync::Arc;

use base::FrameworkId;
use protos::mesos::FrameworkInfo;

use super::Subscription;
use crate::HEARTBEAT_INTERVAL;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{Connection, Framework, FrameworkBook, FrameworkCapabilities, FrameworkCounts, FrameworkKey};
use crate::table::Table;
use crate::timers::Timer;
use crate::validate::roles_of;

impl Master {
    /// Books a new framework; `subscription.info.id` is `id`.
    pub(crate) fn add_framework(
        &mut self,
        id: FrameworkId,
        subscription: Subscription,
        connection: Connection,
        out: &mut Outbox,
    ) -> FrameworkKey {
        let info = subscription.info;
        let active = !matches!(connection, Connection::Recovered);
        let framework = Framework {
            id: id.clone(),
            capabilities: FrameworkCapabilities::new(&info.capabilities),
            roles: roles_of(&info).into_iter().map(str::to_owned).collect(),
            suppressed: subscription.suppressed.into_iter().collect(),
            offer_constraints: subscription.constraints.map(Arc::new),
            constraints: subscription.compiled,
            info: Arc::new(info),
            connection: Connection::Recovered,
            active,
            registered: self.now,
            reregistered: None,
            unregistered: None,
            tasks: Table::default(),
            unreachable_tasks: Table::default(),
            completed_tasks: Table::default(),
            counts: FrameworkCounts::default(),
        };
        self.allocation.add_framework(&framework);
        self.snapshot = None;
        let key = FrameworkKey(self.frameworks.insert(Arc::new(framework)));
        self.framework_ids.insert(id, key);
        self.framework_books.insert(key, FrameworkBook::default());
        if active {
            self.attach(key, connection, out);
        }
        key
    }

    /// A framework that agents know and no scheduler has claimed yet.
    pub(crate) fn recover_framework(&mut self, id: FrameworkId, info: FrameworkInfo, out: &mut Outbox) -> FrameworkKey {
        out.info(format!("Framework {id} is known from an agent"));
        let subscription = Subscription {
            info,
            suppressed: Vec::new(),
            constraints: None,
            compiled: Default::default(),
            force: false,
        };
        let key = self.add_framework(id, subscription, Connection::Recovered, out);
        self.announce_framework_added(key, out);
        key
    }

    /// A known framework has a connection again.
    pub(crate) fn connect_framework(&mut self, key: FrameworkKey, connection: Connection, out: &mut Outbox) {
        let now = self.now;
        let Some(framework) = self.framework_mut(key) else { return };
        framework.reregistered = Some(now);
        self.attach(key, connection, out);
    }

    fn attach(&mut self, key: FrameworkKey, connection: Connection, out: &mut Outbox) {
        if let Some(book) = self.framework_books.get_mut(&key) {
            book.epoch += 1;
            book.last_pid = None;
            if let Some(token) = book.failover.take() {
                self.timers.cancel(token);
            }
        }
        match &connection {
            Connection::Http { stream, .. } => {
                self.framework_streams.insert(*stream, key);
            }
            Connection::Driver(pid) => {
                self.framework_pids.insert(pid.clone(), key);
                out.push(Output::Link { pid: pid.clone() });
            }
            Connection::Recovered | Connection::Disconnected => {}
        }
        if let Some(framework) = self.framework_mut(key) {
            framework.connection = connection;
        }
    }

    /// Offers may go out again.
    pub(crate) fn activate_framework(&mut self, key: FrameworkKey) {
        let Some(framework) = self.framework_mut(key) else { return };
        framework.active = true;
        let id = framework.id.clone();
        self.allocation.activate_framework(&id);
    }

    /// The first heartbeat of a stream at once, then one each interval.
    pub(crate) fn start_heartbeats(&mut self, key: FrameworkKey, out: &mut Outbox) {
        if !self.framework(key).is_some_and(|f| matches!(f.connection, Connection::Http { .. })) {
            return;
        }
        self.beat(key, out);
    }

    /// A heartbeat is due.
    pub(crate) fn scheduler_heartbeat(&mut self, key: FrameworkKey, epoch: u64, out: &mut Outbox) {
        if self.framework_books.get(&key).is_some_and(|book| book.epoch == epoch) {
            self.beat(key, out);
        }
    }

    fn beat(&mut self, key: FrameworkKey, out: &mut Outbox) {
        self.tell_heartbeat(key, out);
        let Some(book) = self.framework_books.get_mut(&key) else { return };
        let timer = Timer::SchedulerHeartbeat { framework: key, epoch: book.epoch };
        book.heartbeat = Some(self.timers.set(self.now + HEARTBEAT_INTERVAL, timer));
    }

    /// Takes a new info over; what may not change stays as it was, silently (mesos-features.md SCH-28).
    pub(crate) fn keep_what_stays(old: &FrameworkInfo, new: &mut FrameworkInfo) {
        new.user.clone_from(&old.user);
        new.checkpoint = old.checkpoint;
        new.id.clone_from(&old.id);
    }
}
