//! REVIVE: a framework requests offers again, which removes its filters.

use std::collections::BTreeSet;

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::FrameworkKey;

impl Master {
    /// Revives the given roles, or all roles of the framework if none is given. The call is dropped if the framework
    /// does not have one of the roles.
    pub(crate) fn revive(&mut self, key: FrameworkKey, roles: Vec<String>, out: &mut Outbox) {
        self.count(Counter::MessagesReviveOffers);
        let Some(roles) = self.own_roles(key, roles, "REVIVE", out) else { return };
        let Some(id) = self.frameworks.set_suppressed(key, &roles, false) else { return };
        self.allocation.revive(&id, &roles);
    }

    /// Returns the roles that a call is about: the given ones, or all of the framework's. Returns `None` if the
    /// framework does not have one of them.
    pub(crate) fn own_roles(
        &self,
        key: FrameworkKey,
        roles: Vec<String>,
        call: &str,
        out: &mut Outbox,
    ) -> Option<BTreeSet<String>> {
        let framework = self.framework(key)?;
        if roles.is_empty() {
            return Some(framework.roles.clone());
        }
        if let Some(role) = roles.iter().find(|role| !framework.roles.contains(*role)) {
            out.warn(format!("Dropping {call} of framework {}: it is not subscribed to role '{role}'", framework.id));
            return None;
        }
        Some(roles.into_iter().collect())
    }
}
