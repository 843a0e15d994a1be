//! SUPPRESS: a framework suppresses offers for some of its roles.

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::FrameworkKey;

impl Master {
    /// Without roles all of the framework's are meant. Outstanding offers stay valid.
    pub(crate) fn suppress(&mut self, key: FrameworkKey, roles: Vec<String>, out: &mut Outbox) {
        self.count(Counter::MessagesSuppressOffers);
        let Some(roles) = self.own_roles(key, roles, "SUPPRESS", out) else { return };
        let Some(id) = self.frameworks.set_suppressed(key, &roles, true) else { return };
        self.allocation.suppress(&id, &roles);
    }
}
