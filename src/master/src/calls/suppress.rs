//! SUPPRESS: a framework suppresses offers for some of its roles.

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::FrameworkKey;

impl Master {
    /// Suppresses the given roles, or all roles of the framework if none is given. Outstanding offers stay valid.
    pub(crate) fn suppress(&mut self, key: FrameworkKey, roles: Vec<String>, out: &mut Outbox) {
        self.count(Counter::MessagesSuppressOffers);
        let Some(roles) = self.own_roles(key, roles, "SUPPRESS", out) else { return };
        let Some(id) = self.frameworks.set_suppressed(key, &roles, true) else { return };
        self.allocation.suppress(&id, &roles);
    }
}
