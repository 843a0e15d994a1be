//! A framework's info, suppressed roles or offer constraints change.
//!
//! It does not check whether they may.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::Pid;
use protos::mesos::internal::UpdateFrameworkMessage;
use protos::mesos::{FrameworkInfo, scheduler};

use crate::io::Outbox;
use crate::master::Master;
use crate::state::{FrameworkCapabilities, FrameworkKey};
use crate::validate::roles_of;

impl Master {
    /// Replaces what a framework has said of itself. Offers of roles that it leaves are rescinded.
    pub(crate) fn replace_info(
        &mut self,
        key: FrameworkKey,
        mut info: FrameworkInfo,
        suppressed: Vec<String>,
        constraints: (Option<scheduler::OfferConstraints>, allocator::OfferConstraints),
        out: &mut Outbox,
    ) {
        let Some(framework) = self.framework(key) else { return };
        Master::keep_what_stays(&framework.info, &mut info);
        let roles: BTreeSet<String> = roles_of(&info).into_iter().map(str::to_owned).collect();
        let left: BTreeSet<String> = framework.roles.difference(&roles).cloned().collect();
        if !left.is_empty() {
            self.rescind_roles(key, &left, out);
        }
        let Some(framework) = self.framework_mut(key) else { return };
        framework.capabilities = FrameworkCapabilities::new(&info.capabilities);
        framework.roles = roles;
        framework.suppressed = suppressed.into_iter().collect();
        framework.offer_constraints = constraints.0.map(Arc::new);
        framework.constraints = constraints.1;
        framework.info = Arc::new(info);
        if let Some(framework) = self.frameworks.get(key.0).cloned() {
            self.allocation.update_framework(&framework);
        }
    }

    /// Tells all agents of a framework's info and process.
    pub(crate) fn broadcast_framework(&mut self, key: FrameworkKey, out: &mut Outbox) {
        let Some(message) = self.update_framework_message(key) else { return };
        for agent in self.agents.values() {
            out.send(&agent.pid, message.clone());
        }
    }

    /// What an agent is told of a framework.
    pub(crate) fn update_framework_message(&self, key: FrameworkKey) -> Option<UpdateFrameworkMessage> {
        let framework = self.framework(key)?;
        Some(UpdateFrameworkMessage {
            framework_id: framework.proto_id(),
            pid: Some(framework.pid().cloned().unwrap_or_else(Pid::default).to_string()),
            framework_info: Some((*framework.info).clone()),
        })
    }
}
