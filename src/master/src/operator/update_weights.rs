//! UPDATE_WEIGHTS: sets the weights of roles in fair sharing (MNT-20).

use authorizer::Action;
use cores::CallError;
use protos::mesos::WeightInfo;
use resources::Role;

use crate::io::Outbox;
use crate::master::Master;
use crate::registry::RegistryOp;

impl Master {
    /// Sets all given weights, or none if one is invalid. If a changed role is in use, all outstanding offers are
    /// rescinded.
    pub(crate) fn update_weights(
        &mut self,
        weights: Vec<WeightInfo>,
        who: Option<&str>,
        out: &mut Outbox,
    ) -> Result<(), CallError> {
        let mut updates = Vec::with_capacity(weights.len());
        for info in weights {
            let role = info.role().trim().to_owned();
            let prefix = "Failed to validate update weights request JSON";
            if let Err(why) = Role::parse(&role) {
                // A name that is too long is left out of the message.
                let named = if role.len() > Role::MAX_BYTES {
                    "Invalid role".to_owned()
                } else {
                    format!("Invalid role '{role}'")
                };
                return Err(CallError::invalid(format!("{prefix}: {named}: {why}")));
            }
            if self.config.roles.as_ref().is_some_and(|allowed| !allowed.contains(&role)) {
                return Err(CallError::invalid(format!("{prefix}: Unknown role '{role}'")));
            }
            if !(info.weight.is_finite() && info.weight > 0.0) {
                let why = format!("Invalid weight '{}': Weights must be positive", info.weight);
                return Err(CallError::invalid(format!("{prefix} for role '{role}': {why}")));
            }
            updates.push(WeightInfo { role: Some(role), weight: info.weight });
        }
        for info in &updates {
            self.authorize(who, Action::UpdateWeight, info.role.as_deref(), out)?;
        }
        out.persist.push(RegistryOp::UpdateWeights(updates.clone()));
        let in_use = updates.iter().any(|info| {
            let role = info.role();
            self.frameworks.values().any(|framework| framework.roles.contains(role))
        });
        for info in &updates {
            self.allocation.set_weight(info.role(), info.weight);
            self.weights.insert(info.role().to_owned(), info.weight);
        }
        if in_use {
            self.offers.keys().into_iter().for_each(|offer| self.rescind_offer(offer, out));
        }
        Ok(())
    }
}
