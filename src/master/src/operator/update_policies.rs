//! UPDATE_POLICIES, a call that Mesos does not have: it changes the policies of offers and refusals at run time.

use allocator::policies::Policies;
use cores::CallError;
use cores::RequestId;

use crate::io::{Done, Outbox, Output};
use crate::master::Master;

impl Master {
    /// Replaces all policies, or none if they are invalid. They apply to offers and refusals from now on, until the
    /// master exits. Only the policies of the file survive that.
    pub(crate) fn update_policies(&mut self, request: RequestId, policies: Policies, out: &mut Outbox) {
        let answer = match policies.check() {
            Ok(()) => {
                self.allocation.set_policies(policies);
                out.info("The policies of holding and refusal were replaced by an operator");
                Ok(Done::Complete)
            }
            Err(why) => Err(CallError::invalid(format!("Invalid policies: {why}"))),
        };
        out.push(Output::respond(request, answer));
    }
}
