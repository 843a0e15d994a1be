//! Adds and connects frameworks.
//!
//! `subscribe.rs` checks whether a framework may be added or connected.

use std::sync::Arc;

use base::FrameworkId;
use protos::mesos::FrameworkInfo;

use super::Subscription;
use crate::HEARTBEAT_INTERVAL;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{Connection, Framework, FrameworkCapabilities, FrameworkCounts, FrameworkKey};
use crate::table::Table;
use crate::validate::roles_of;

impl Master {
    /// Adds a new framework; `subscription.info.id` is `id`.
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
            id,
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
        let key = self.frameworks.insert(framework);
        if active {
            self.attach(key, connection, out);
        }
        key
    }

    /// Adds a framework that an agent lists and that has not subscribed yet.
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

    /// Connects a known framework again.
    pub(crate) fn connect_framework(&mut self, key: FrameworkKey, connection: Connection, out: &mut Outbox) {
        self.frameworks.set_reregistered(key, self.now);
        self.attach(key, connection, out);
    }

    fn attach(&mut self, key: FrameworkKey, connection: Connection, out: &mut Outbox) {
        if let Connection::Driver(pid) = &connection {
            out.push(Output::Link { pid: pid.clone() });
        }
        self.frameworks.attach(key, connection, &mut self.timers);
    }

    /// Makes the allocator offer resources to a framework again.
    pub(crate) fn activate_framework(&mut self, key: FrameworkKey) {
        let Some(id) = self.frameworks.set_active(key, true) else { return };
        self.allocation.activate_framework(&id);
    }

    /// Sends the first heartbeat of a stream at once, then one per interval.
    pub(crate) fn start_heartbeats(&mut self, key: FrameworkKey, out: &mut Outbox) {
        if self.framework(key).is_some_and(|f| matches!(f.connection, Connection::Http { .. })) {
            self.beat(key, out);
        }
    }

    /// Sends a heartbeat, unless the framework's connection has changed since `epoch`.
    pub(crate) fn scheduler_heartbeat(&mut self, key: FrameworkKey, epoch: u64, out: &mut Outbox) {
        if self.frameworks.is_current(key, epoch) {
            self.beat(key, out);
        }
    }

    fn beat(&mut self, key: FrameworkKey, out: &mut Outbox) {
        self.frameworks.send_heartbeat(key, out);
        self.frameworks.set_heartbeat(key, self.now + HEARTBEAT_INTERVAL, &mut self.timers);
    }
}
