//! ACCEPT's operations on resources.

use protos::mesos::offer::Operation;

use super::accept::Deal;
use crate::io::Outbox;
use crate::master::Master;

impl Master {
    pub(crate) fn convert(&mut self, deal: &mut Deal, operation: Operation, out: &mut Outbox) {
        self.fail_operation(deal.framework, &operation, Some(deal.agent), "Operation is not supported", out);
    }
}
