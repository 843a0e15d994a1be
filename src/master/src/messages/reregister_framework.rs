//! ReregisterFrameworkMessage: the older form of SUBSCRIBE with an id.

use base::Pid;
use protos::mesos::internal::{FrameworkErrorMessage, ReregisterFrameworkMessage};

use crate::frameworks::Subscription;
use crate::io::{Outbox, Output};
use crate::master::Master;

impl Master {
    pub(crate) fn reregister_framework(&mut self, from: Pid, message: ReregisterFrameworkMessage, out: &mut Outbox) {
        let info = message.framework;
        let subscription = Subscription {
            info,
            suppressed: Vec::new(),
            constraints: None,
            compiled: Default::default(),
            force: message.failover,
        };
        if subscription.id().is_none() {
            out.push(Output::send(
                &from,
                FrameworkErrorMessage { message: "Re-registering without an 'id'".to_owned() },
            ));
            return;
        }
        self.subscribe_driver(from, subscription, out);
    }
}
