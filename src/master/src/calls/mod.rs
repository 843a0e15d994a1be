//! Scheduler calls, one file each, and their dispatch: by HTTP and by message.

mod accept;
mod acknowledge;
mod acknowledge_operation_status;
mod check;
mod decline;
mod kill;
mod launch;
mod launch_group;
mod message;
mod normalize;
mod operations;
mod reconcile;
mod reconcile_operations;
mod revive;
mod shutdown;
mod suppress;
mod update_framework;

pub use check::{InvalidCall, validate_call, validate_principal};
pub(crate) use normalize::allocate;

use cores::{CallError, ErrorKind};
use std::sync::Arc;

use cores::RequestId;
use protos::mesos::allocator::inverse_offer_status::Status;
use protos::mesos::scheduler::{Call, call::Type};

use crate::counters::Counter;
use crate::io::{Done, Outbox, Output};
use crate::master::Master;
use crate::state::{Connection, FrameworkKey};

impl Master {
    /// Handles a call by HTTP other than SUBSCRIBE: checks it against the master's state, then carries it out.
    pub(crate) fn scheduler_call(
        &mut self,
        request: RequestId,
        stream_id: Option<Arc<str>>,
        call: Box<Call>,
        principal: Option<Arc<str>>,
        out: &mut Outbox,
    ) {
        let done = match self.check_call(&call, stream_id.as_deref(), principal.as_deref()) {
            Ok(key) => self.call(key, call, out),
            Err(error) => Err((error, call)),
        };
        match done {
            Ok(done) => out.push(Output::respond(request, Ok(done))),
            Err((error, call)) => out.push(Output::Refuse { request, error, call }),
        }
    }

    /// Checks rows 13 to 18 of docs/mesos/scheduler-api.md.
    fn check_call(
        &self,
        call: &Call,
        stream_id: Option<&str>,
        principal: Option<&str>,
    ) -> Result<FrameworkKey, CallError> {
        let id = call.framework_id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
        let key = self.framework_by_id(id).ok_or_else(|| CallError::invalid("Framework cannot be found"))?;
        let Some(framework) = self.framework(key) else {
            return Err(CallError::invalid("Framework cannot be found"));
        };
        let expected = framework.info.principal.as_deref();
        if let Some(given) = principal.filter(|given| Some(*given) != expected) {
            let expected = expected.unwrap_or_default();
            return Err(CallError::invalid(format!(
                "Authenticated principal '{given}' does not match principal '{expected}' set in `FrameworkInfo`"
            )));
        }
        let expected = match &framework.connection {
            Connection::Http { stream_text, .. } => stream_text,
            Connection::Driver(_) => {
                return Err(CallError::new(ErrorKind::Forbidden, "Framework is not connected via HTTP"));
            }
            Connection::Recovered | Connection::Disconnected => {
                return Err(CallError::new(ErrorKind::Forbidden, "Framework is not subscribed"));
            }
        };
        let Some(given) = stream_id else {
            let words = "All non-subscribe calls should include the 'Mesos-Stream-Id' header";
            return Err(CallError::invalid(words));
        };
        if given != &**expected {
            return Err(CallError::invalid(format!(
                "The stream ID '{given}' included in this request didn't match the stream ID currently associated \
                 with framework ID {}",
                framework.id
            )));
        }
        Ok(key)
    }

    /// Carries out a call that was checked. On an error the call is returned with it.
    fn call(&mut self, key: FrameworkKey, call: Box<Call>, out: &mut Outbox) -> Result<Done, (CallError, Box<Call>)> {
        match call.r#type() {
            Type::UpdateFramework => {
                self.frameworks.count_call(key, Type::UpdateFramework);
                let body = call.update_framework.as_deref().cloned().unwrap_or_default();
                match self.update_framework(key, body, out) {
                    Ok(()) => Ok(Done::Complete),
                    Err(error) => Err((error, call)),
                }
            }
            Type::Unknown | Type::Subscribe => Err((CallError::new(ErrorKind::Unimplemented, ""), call)),
            _ => {
                self.dispatch(key, *call, out);
                Ok(Done::Accepted)
            }
        }
    }

    /// Handles a driver's call: errors are sent by message, and some calls are for HTTP only.
    pub(crate) fn driver_calls(&mut self, key: FrameworkKey, call: Call, out: &mut Outbox) {
        if let Some(counts) = self.frameworks.counts(key) {
            counts.messages += 1;
        }
        match call.r#type() {
            Type::UpdateFramework => {
                self.frameworks.count_call(key, Type::UpdateFramework);
                let result = self.update_framework(key, *call.update_framework.unwrap_or_default(), out);
                if let Err(error) = result {
                    self.frameworks.send_error(key, &error.to_string(), out);
                }
            }
            Type::AcknowledgeOperationStatus | Type::ReconcileOperations | Type::Unknown | Type::Subscribe => {
                self.count(Counter::DroppedMessages);
                out.warn("Dropping a driver's call that is for HTTP only");
            }
            // A driver could not be sent the result of such an operation.
            Type::Accept if call.accept.iter().flat_map(|body| &body.operations).any(|op| op.id.is_some()) => {
                self.frameworks.send_error(
                    key,
                    "An operation has an 'id', but operation status updates need the HTTP API",
                    out,
                );
            }
            _ => self.dispatch(key, call, out),
        }
    }

    fn dispatch(&mut self, key: FrameworkKey, call: Call, out: &mut Outbox) {
        let kind = call.r#type();
        self.frameworks.count_call(key, kind);
        match kind {
            Type::Teardown => {
                self.count(Counter::MessagesUnregisterFramework);
                self.remove_framework(key, out);
            }
            Type::Accept => self.accept(key, call.accept.unwrap_or_default(), out),
            Type::Decline => self.decline(key, &call.decline.unwrap_or_default(), out),
            Type::AcceptInverseOffers => {
                let body = call.accept_inverse_offers.unwrap_or_default();
                self.answer_inverse_offers(key, &body.inverse_offer_ids, Status::Accept, body.filters, out);
            }
            Type::DeclineInverseOffers => {
                let body = call.decline_inverse_offers.unwrap_or_default();
                self.answer_inverse_offers(key, &body.inverse_offer_ids, Status::Decline, body.filters, out);
            }
            Type::Revive => self.revive(key, call.revive.unwrap_or_default().roles, out),
            Type::Suppress => self.suppress(key, call.suppress.unwrap_or_default().roles, out),
            Type::Kill => self.kill(key, *call.kill.unwrap_or_default(), out),
            Type::Shutdown => self.shutdown_executor(key, *call.shutdown.unwrap_or_default(), out),
            Type::Acknowledge => self.acknowledge(key, call.acknowledge.unwrap_or_default(), out),
            Type::AcknowledgeOperationStatus => {
                let body = call.acknowledge_operation_status.unwrap_or_default();
                self.acknowledge_operation_status(key, *body, out);
            }
            Type::Reconcile => self.reconcile(key, call.reconcile.unwrap_or_default(), out),
            Type::ReconcileOperations => {
                self.reconcile_operations(key, call.reconcile_operations.unwrap_or_default(), out);
            }
            Type::Message => self.framework_to_executor(key, *call.message.unwrap_or_default(), out),
            Type::Request => self.count(Counter::MessagesResourceRequest),
            Type::UpdateFramework | Type::Unknown | Type::Subscribe => {}
        }
    }
}
