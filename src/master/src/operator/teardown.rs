//! TEARDOWN by an operator, and the legacy endpoint of that name.

use crate::io::{Answer, Outbox};
use crate::master::Master;

impl Master {
    pub(crate) fn operator_teardown(&mut self, id: &str, out: &mut Outbox) -> Result<(), Answer> {
        let key = self.framework_by_id(id);
        let key = key.ok_or_else(|| Answer::bad_request("No framework found with specified ID"))?;
        self.remove_framework(key, out);
        Ok(())
    }
}
