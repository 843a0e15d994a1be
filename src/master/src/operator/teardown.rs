//! TEARDOWN by an operator, and the legacy endpoint of that name.

use authorizer::Action;
use cores::CallError;

use crate::io::Outbox;
use crate::master::Master;

impl Master {
    pub(crate) fn operator_teardown(&mut self, id: &str, who: Option<&str>, out: &mut Outbox) -> Result<(), CallError> {
        let key = self.framework_by_id(id);
        let key = key.ok_or_else(|| CallError::invalid("No framework found with specified ID"))?;
        let principal = self.framework(key).and_then(|framework| framework.info.principal.clone());
        self.authorize(who, Action::TeardownFramework, principal.as_deref(), out)?;
        self.remove_framework(key, out);
        Ok(())
    }
}
