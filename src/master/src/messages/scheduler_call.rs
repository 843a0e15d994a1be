//! mesos.scheduler.Call: a v0 driver makes a call (docs/mesos/libprocess.md).

use base::Pid;
use protos::mesos::{self, scheduler};

use crate::calls::validate_call;
use crate::counters::Counter;
use crate::frameworks::Subscription;
use crate::io::Outbox;
use crate::master::Master;
use crate::refusals::Fault;
use crate::state::FrameworkKey;

impl Master {
    /// Handles a driver's call. It is dropped if it is malformed, or if the framework is not the sender's.
    pub(crate) fn driver_call(&mut self, from: Pid, call: scheduler::Call, out: &mut Outbox) {
        if let Err(why) = validate_call(&call) {
            self.count(Counter::DroppedMessages);
            out.warn(format!("Dropping a call of {from}: {why}"));
            let id = call.framework_id.as_ref().map_or("", |id| &id.value);
            self.refuse_message(
                &from,
                call.r#type().as_str_name(),
                ("framework", id),
                Fault::Invalid(why.to_string()),
                out,
            );
            return;
        }
        if call.r#type() == scheduler::call::Type::Subscribe {
            if let Some(subscribe) = call.subscribe {
                self.subscribe_driver(from, Subscription::from(*subscribe), out);
            }
            return;
        }
        let id = call.framework_id.clone().unwrap_or_default();
        if let Some(key) = self.driver(&from, &id, call.r#type().as_str_name(), out) {
            self.driver_calls(key, call, out);
        }
    }

    /// Returns the framework of an id if the sender is its process.
    pub(crate) fn driver(
        &mut self,
        from: &Pid,
        id: &mesos::FrameworkId,
        call: &'static str,
        out: &mut Outbox,
    ) -> Option<FrameworkKey> {
        let key = self.framework_by_id(&id.value);
        if key.is_some() && self.frameworks.key_of_pid(from) == key {
            return key;
        }
        self.count(Counter::DroppedMessages);
        out.warn(format!("Dropping a message of {from}: framework {} is not its own", id.value));
        let fault = Fault::Denied("the framework is not the sender's".to_owned());
        self.refuse_message(from, call, ("framework", &id.value), fault, out);
        None
    }
}
