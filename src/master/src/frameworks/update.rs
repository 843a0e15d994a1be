//! Changes of a framework's info, suppressed roles or offer constraints.
//!
//! It does not check whether they are allowed.

use std::collections::BTreeSet;

use super::Subscription;
use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::state::FrameworkKey;
use crate::validate::roles_of;

impl Master {
    /// Replaces a framework's info. Offers of roles that it leaves are rescinded.
    pub(crate) fn replace_info(&mut self, key: FrameworkKey, subscription: Subscription, out: &mut Outbox) {
        let Some(framework) = self.framework(key) else { return };
        let roles = roles_of(&subscription.info);
        let left = framework.roles.iter().filter(|role| !roles.contains(&role.as_str()));
        let left: BTreeSet<String> = left.cloned().collect();
        if !left.is_empty() {
            self.rescind_roles(key, &left, out);
        }
        self.frameworks.replace_info(key, subscription);
        if let Some(framework) = self.frameworks.get(key) {
            self.allocation.update_framework(framework);
        }
    }

    /// Sends all agents a framework's info and process.
    pub(crate) fn broadcast_framework(&mut self, key: FrameworkKey, out: &mut Outbox) {
        let Some(message) = self.frameworks.update_message(key) else { return };
        for agent in self.agents.values() {
            out.push(Output::send(&agent.pid, message.clone()));
        }
    }
}
