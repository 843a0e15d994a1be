//! SUBSCRIBE, by HTTP (docs/mesos/scheduler-api.md) and by message (docs/mesos/libprocess.md).
//!
//! It does not check the call's form; the shell has done so.

use std::sync::Arc;

use base::{FrameworkId, Pid};
use cores::{RequestId, StreamId};
use protos::mesos::internal::FrameworkErrorMessage;
use protos::mesos::{FrameworkInfo, scheduler};

use crate::counters::Counter;
use crate::events;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::{Connection, FrameworkKey};
use crate::validate;

/// Contents of a SUBSCRIBE or UPDATE_FRAMEWORK.
pub(crate) struct Subscription {
    pub info: FrameworkInfo,
    pub suppressed: Vec<String>,
    pub constraints: Option<scheduler::OfferConstraints>,
    /// Compiled form of `constraints`, set once they are checked.
    pub compiled: allocator::OfferConstraints,
    pub force: bool,
}

impl Subscription {
    /// Returns the id of the framework. An empty one counts as none.
    pub(crate) fn id(&self) -> Option<&str> {
        self.info.id.as_ref().map(|id| id.value.as_str()).filter(|id| !id.is_empty())
    }
}

impl From<scheduler::call::Subscribe> for Subscription {
    fn from(call: scheduler::call::Subscribe) -> Subscription {
        Subscription {
            force: call.force(),
            info: call.framework_info,
            suppressed: call.suppressed_roles,
            constraints: call.offer_constraints,
            compiled: allocator::OfferConstraints::default(),
        }
    }
}

impl Master {
    /// Handles SUBSCRIBE by HTTP. The stream opens in any case, and reports errors.
    pub(crate) fn subscribe_http(
        &mut self,
        request: RequestId,
        stream: StreamId,
        stream_text: Arc<str>,
        call: scheduler::Call,
        principal: Option<Arc<str>>,
        out: &mut Outbox,
    ) {
        out.push(Output::OpenStream { request, stream });
        let mut subscription = Subscription::from(*call.subscribe.unwrap_or_default());
        self.count_subscription(&subscription);
        if subscription.info.principal.is_none() {
            subscription.info.principal = principal.map(|name| name.to_string());
        }
        if let Err(message) = self.check_subscription(&mut subscription) {
            out.warn(format!("Refusing a subscription: {message}"));
            self.refuse_subscription(None, &subscription.info, &message, out);
            out.push(Output::SchedulerEvent { stream, event: Arc::new(events::error(message)) });
            out.push(Output::CloseStream { stream });
            return;
        }
        let connection = Connection::Http { stream, stream_text };
        match subscription.id().and_then(|id| self.framework_by_id(id)) {
            Some(key) => self.fail_over(key, subscription, connection, false, out),
            None => self.add_subscribed(subscription, connection, out),
        }
    }

    /// Handles SUBSCRIBE by message, or one of the two older messages.
    pub(crate) fn subscribe_driver(&mut self, from: Pid, mut subscription: Subscription, out: &mut Outbox) {
        self.count_subscription(&subscription);
        if subscription.info.principal.is_none() {
            // A framework cannot avoid the rules for its principal by leaving it out.
            subscription.info.principal = self.authenticated_principal(&from, out);
        }
        let checked = self.check_subscription(&mut subscription);
        if let Err(message) = checked.and_then(|()| self.check_driver(&from, &subscription.info)) {
            out.warn(format!("Refusing a subscription of {from}: {message}"));
            self.refuse_subscription(Some(&from), &subscription.info, &message, out);
            out.push(Output::send(&from, FrameworkErrorMessage { message }));
            return;
        }
        let known = subscription.id().and_then(|id| self.framework_by_id(id));
        let owner = self.frameworks.key_of_pid(&from);
        match (owner, known) {
            // The same process without an id: it has not received the answer.
            (Some(owner), None) if subscription.id().is_none() => {
                self.frameworks.send_subscribed(owner, false, &self.info, out)
            }
            (Some(owner), _) if known != Some(owner) => {
                out.warn(format!("Dropping a subscription of {from}: it is another framework's process"));
                self.refuse_subscription(Some(&from), &subscription.info, "it is another framework's process", out);
            }
            (_, None) => self.add_subscribed(subscription, Connection::Driver(from), out),
            (_, Some(key)) => self.subscribe_driver_again(key, from, subscription, out),
        }
    }

    /// Counts a subscription by HTTP or by message, whether it is accepted or refused.
    fn count_subscription(&mut self, subscription: &Subscription) {
        self.count(match subscription.id() {
            Some(_) => Counter::MessagesReregisterFramework,
            None => Counter::MessagesRegisterFramework,
        });
    }

    fn subscribe_driver_again(&mut self, key: FrameworkKey, from: Pid, subscription: Subscription, out: &mut Outbox) {
        let Some(framework) = self.framework(key) else { return };
        let same = framework.pid() == Some(&from);
        let recovered = framework.recovered();
        if same && !subscription.force {
            self.reregister_driver(key, subscription, out);
        } else if subscription.force || recovered {
            self.fail_over(key, subscription, Connection::Driver(from), false, out);
        } else if self.frameworks.was_driver(key, &from) {
            self.fail_over(key, subscription, Connection::Driver(from), true, out);
        } else {
            out.push(Output::send(&from, FrameworkErrorMessage { message: "Framework failed over".to_owned() }));
        }
    }

    /// Checks a subscription by the table of docs/mesos/scheduler-api.md, in its order. Compiles the constraints.
    fn check_subscription(&self, subscription: &mut Subscription) -> Result<(), String> {
        let known = subscription.id().and_then(|id| self.framework_by_id(id));
        let info = &subscription.info;
        validate::framework_info(info)?;
        validate::subscription_update(info, &subscription.suppressed, &self.config)?;
        let id = subscription.id();
        if id.is_some_and(|id| self.frameworks.is_completed(id)) {
            return Err("Framework has been removed".to_owned());
        }
        validate::failover_timeout(info)?;
        let compiled = self.compile_constraints(known, subscription.constraints.as_ref())?;
        self.authorize_roles(info)?;
        let known = known.and_then(|key| self.framework(key));
        if known.is_some_and(|framework| framework.info.principal != info.principal) {
            return Err("Changing framework's principal is not allowed.".to_owned());
        }
        subscription.compiled = compiled;
        Ok(())
    }

    /// Returns a framework's compiled constraints. Unchanged ones are not compiled again.
    pub(crate) fn compile_constraints(
        &self,
        known: Option<FrameworkKey>,
        sent: Option<&scheduler::OfferConstraints>,
    ) -> Result<allocator::OfferConstraints, String> {
        let known = known.and_then(|key| self.framework(key));
        match known.filter(|framework| framework.offer_constraints.as_deref() == sent) {
            Some(framework) => Ok(framework.constraints.clone()),
            None => validate::offer_constraints(sent, self.config.offer_constraints_limits),
        }
    }

    /// Adds a framework that this master does not know, with or without an id.
    fn add_subscribed(&mut self, mut subscription: Subscription, connection: Connection, out: &mut Outbox) {
        let made = match subscription.id() {
            Some(id) => FrameworkId::new(id).ok(),
            None => self.frameworks.next_id(),
        };
        // A given id was checked with the rest of the info.
        let Some(id) = made else { return };
        let returning = subscription.id().is_some();
        subscription.info.id = Some(protos::mesos::FrameworkId { value: (&id).into() });
        out.info(format!("Framework {id} ({}) has subscribed", subscription.info.name));
        let key = self.add_framework(id, subscription, connection, out);
        self.frameworks.send_subscribed(key, false, &self.info, out);
        self.start_heartbeats(key, out);
        if returning {
            self.broadcast_framework(key, out);
        }
        self.announce_framework_added(key, out);
    }

    /// Replaces the connection of a known framework. With `again`, the driver is sent the message for a reregistration.
    fn fail_over(
        &mut self,
        key: FrameworkKey,
        subscription: Subscription,
        connection: Connection,
        again: bool,
        out: &mut Outbox,
    ) {
        let Some(framework) = self.framework(key) else { return };
        out.info(format!("Framework {} has subscribed again", framework.id));
        let same_pid = matches!(&connection, Connection::Driver(pid) if framework.pid() == Some(pid));
        if framework.connected() && !same_pid {
            self.frameworks.send_error(key, "Framework failed over", out);
        }
        // The old instance is not sent RESCIND: it no longer has a connection.
        self.discard_offers_of(key, out);
        self.cut_connection(key, same_pid, out);
        self.connect_framework(key, connection, out);
        self.replace_info(key, subscription, out);
        self.activate_framework(key);
        self.frameworks.send_subscribed(key, again, &self.info, out);
        self.start_heartbeats(key, out);
        self.broadcast_framework(key, out);
        self.announce_framework_updated(key, out);
    }

    /// Handles another subscription of the connected process, which may not have received the answer.
    fn reregister_driver(&mut self, key: FrameworkKey, subscription: Subscription, out: &mut Outbox) {
        self.rescind_offers_of(key, out);
        self.replace_info(key, subscription, out);
        self.frameworks.set_reregistered(key, self.now);
        self.activate_framework(key);
        self.frameworks.send_subscribed(key, true, &self.info, out);
        self.broadcast_framework(key, out);
        self.announce_framework_updated(key, out);
    }
}
