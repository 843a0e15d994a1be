//! UPDATE_QUOTA, SET_QUOTA and REMOVE_QUOTA, and the legacy endpoint (docs/mesos/roles.md): checks against the cluster,
//! and the change.
//!
//! The allocator applies a quota to offers.

use cores::{CallError, ErrorKind};
use std::collections::BTreeMap;
use std::sync::Arc;

use allocator::{Allocator, Quota};
use authorizer::Action;
use protos::mesos::internal::Registry;
use protos::mesos::master::call::UpdateQuota;
use protos::mesos::quota::{QuotaConfig, QuotaRequest};
use resources::{Quantities, Role};

use crate::io::Outbox;
use crate::master::Master;
use crate::registry::RegistryOp;
use crate::state::OfferKey;
use crate::validate::{self, amounts_text};

/// Number of roles with an emptied quota that are remembered.
const EMPTIED_MAX: usize = 1000;

/// Quotas by role.
type Quotas = BTreeMap<Role, Quota>;

impl Master {
    /// Replaces the quotas of the given roles, or none of them if one is invalid.
    pub(crate) fn update_quota(
        &mut self,
        call: UpdateQuota,
        who: Option<&str>,
        out: &mut Outbox,
    ) -> Result<(), CallError> {
        let mut updates = Quotas::new();
        for config in &call.quota_configs {
            let (role, quota) = validate::quota_config(config, &self.config).map_err(CallError::invalid)?;
            updates.insert(role, quota);
        }
        let invalid = |why: String| CallError::invalid(format!("Invalid QuotaConfig: {why}"));
        if !call.force() {
            check_consumed(self.allocation.allocator(), &updates).map_err(invalid)?;
        }
        let mut all = Quotas::clone(&self.quotas);
        all.extend(updates.clone());
        check_hierarchy(&all).map_err(invalid)?;
        if !call.force() {
            check_capacity(self.allocation.allocator(), &all).map_err(|(guaranteed, capacity)| {
                invalid(format!(
                    "total quota guarantees '{guaranteed}' exceed cluster capacity '{capacity}' (use 'force' flag to \
                     bypass this check)"
                ))
            })?;
        }
        for role in updates.keys() {
            self.authorize(who, Action::UpdateQuota, Some(role.as_str()), out)?;
        }
        let emptied = updates.iter().filter(|(role, quota)| quota.is_default() && self.quotas.contains_key(*role));
        let emptied: Vec<Role> = emptied.map(|(role, _)| role.clone()).collect();
        self.change_quotas(updates, out);
        let known = Arc::make_mut(&mut self.emptied_quotas);
        known.extend(emptied);
        while known.len() > EMPTIED_MAX {
            known.pop_first();
        }
        Ok(())
    }

    /// Handles the older call: a role without quota gets one whose limits are its guarantees.
    pub(crate) fn set_quota(
        &mut self,
        request: &QuotaRequest,
        who: Option<&str>,
        out: &mut Outbox,
    ) -> Result<(), CallError> {
        let (role, quota) = validate::quota_request(request, &self.config).map_err(CallError::invalid)?;
        let refused = |why: String| CallError::invalid(format!("Failed to validate set quota request: {why}"));
        if self.quotas.contains_key(&role) {
            return Err(refused(format!("Cannot set quota for role '{role}' which already has quota")));
        }
        let mut all = Quotas::clone(&self.quotas);
        all.insert(role.clone(), quota.clone());
        check_hierarchy(&all).map_err(refused)?;
        if role.parent().is_some() {
            return Err(CallError::invalid(format!("Setting quota on nested role '{role}' is not supported yet")));
        }
        if !request.force() {
            check_capacity(self.allocation.allocator(), &all).map_err(|(guaranteed, capacity)| {
                let why = format!(
                    "Quota guarantees overcommit the cluster (use 'force' to bypass this check): Total quota guarantees \
                     '{guaranteed}' exceed cluster capacity '{capacity}'"
                );
                CallError::new(ErrorKind::Conflict, why)
            })?;
        }
        self.authorize(who, Action::UpdateQuota, Some(role.as_str()), out)?;
        self.change_quotas([(role, quota)].into(), out);
        Ok(())
    }

    /// Removes the quota of a role. It is an error if the role has none; Mesos's master crashes on that call.
    pub(crate) fn remove_quota(&mut self, role: &str, who: Option<&str>, out: &mut Outbox) -> Result<(), CallError> {
        let refused = |why: String| CallError { attempt: Some("Failed to remove quota"), ..CallError::invalid(why) };
        if self.config.roles.as_ref().is_some_and(|allowed| !allowed.contains(role)) {
            return Err(refused(format!("Unknown role '{role}'")));
        }
        let Some((role, _)) = self.quotas.get_key_value(role) else {
            return Err(refused(format!("Role '{role}' has no quota set")));
        };
        let role = role.clone();
        let mut all = Quotas::clone(&self.quotas);
        all.remove(&role);
        check_hierarchy(&all).map_err(refused)?;
        self.authorize(who, Action::UpdateQuota, Some(role.as_str()), out)?;
        self.change_quotas([(role, Quota::default())].into(), out);
        Ok(())
    }

    fn change_quotas(&mut self, updates: Quotas, out: &mut Outbox) {
        let configs = updates.iter().map(|(role, quota)| config_of(role, quota)).collect();
        out.persist.push(RegistryOp::UpdateQuota(configs));
        let (quotas, emptied) = (Arc::make_mut(&mut self.quotas), Arc::make_mut(&mut self.emptied_quotas));
        for (role, quota) in &updates {
            emptied.remove(role);
            self.allocation.set_quota(role, quota.clone());
            match quota.is_default() {
                true => quotas.remove(role),
                false => quotas.insert(role.clone(), quota.clone()),
            };
        }
        // Offers are rescinded only for a new guarantee. An older unsatisfied one keeps waiting.
        let guaranteed = updates.values().any(|quota| !quota.guarantees.is_empty());
        for (framework, role, agent) in self.allocation.allocator().offers_to_rescind_for_quota() {
            let limited = updates.get(&role.top_level()).is_some_and(|quota| !quota.limits.is_empty());
            if !guaranteed && !limited {
                continue;
            }
            let (Some(framework), Some(agent)) =
                (self.framework_by_id(framework.as_str()), self.agent_by_id(agent.as_str()))
            else {
                continue;
            };
            let meant = |key: &OfferKey| {
                self.offers.get(*key).is_some_and(|offer| offer.framework == framework && offer.role == role)
            };
            let meant: Vec<OfferKey> = self.offers.on_agent(agent).into_iter().filter(meant).collect();
            meant.into_iter().for_each(|offer| self.rescind_offer(offer, out));
        }
    }

    /// Takes over the quotas that former masters have set. Masters before 1.9 wrote one amount, which is both guarantee
    /// and limit.
    pub(crate) fn recover_quotas(&mut self, registry: &Registry) {
        #[allow(deprecated)]
        let old = registry.quotas.iter().map(|quota| {
            let amounts = |r: &protos::mesos::Resource| (r.name.to_string(), r.scalar.unwrap_or_default());
            let map: BTreeMap<_, _> = quota.info.guarantee.iter().map(amounts).collect();
            QuotaConfig { role: quota.info.role().to_owned(), guarantees: map.clone(), limits: map }
        });
        let quotas = Arc::make_mut(&mut self.quotas);
        for config in old.chain(registry.quota_configs.iter().cloned()) {
            if let (Ok(role), Ok(quota)) = (Role::parse(&config.role), validate::quota_of(&config)) {
                self.allocation.set_quota(&role, quota.clone());
                quotas.insert(role, quota);
            }
        }
    }
}

/// Checks that no role consumes more than its new limits.
fn check_consumed(allocator: &Allocator, updates: &Quotas) -> Result<(), String> {
    for (role, quota) in updates {
        let consumed = allocator.role_view(role).map(|view| view.consumed).unwrap_or_default();
        if !quota.limits.allows(&consumed) {
            return Err(format!(
                "Role '{role}' is already consuming '{}'; this is more than the requested limits '{}' (use 'force' \
                 flag to bypass this check)",
                amounts_text(consumed.iter()),
                amounts_text(quota.limits.iter())
            ));
        }
    }
    Ok(())
}

/// Checks that the registered agents, including disconnected ones, have enough resources for all guarantees. The error
/// holds the guarantees and the capacity.
fn check_capacity(allocator: &Allocator, quotas: &Quotas) -> Result<(), (String, String)> {
    let mut guaranteed = Quantities::new();
    let top = quotas.iter().filter(|(role, _)| role.parent().is_none());
    top.for_each(|(_, quota)| guaranteed += &quota.guarantees);
    let there = allocator.capacity();
    match there.contains(&guaranteed) {
        true => Ok(()),
        false => Err((amounts_text(guaranteed.iter()), amounts_text(there.iter()))),
    }
}

/// Returns a role's quota as a message.
fn config_of(role: &Role, quota: &Quota) -> QuotaConfig {
    let (guarantees, limits) = (quota.guarantees.to_map(), quota.limits.to_map());
    QuotaConfig { role: role.as_str().to_owned(), guarantees, limits }
}

/// Checks that the guarantee of each role contains the sum of the guarantees of its child roles.
fn check_hierarchy(quotas: &Quotas) -> Result<(), String> {
    let mut below: BTreeMap<Role, Quantities> = BTreeMap::new();
    for (role, quota) in quotas {
        if let Some(parent) = role.parent() {
            *below.entry(parent).or_default() += &quota.guarantees;
        }
    }
    for (parent, sum) in below {
        let own = quotas.get(&parent).map(|quota| quota.guarantees.clone()).unwrap_or_default();
        if !own.contains(&sum) {
            return Err(format!(
                "Invalid quota configuration. Parent role '{}' with guarantees ({}) does not contain the sum of its \
                 children's guarantees ({})",
                parent.components().last().unwrap_or_default(),
                amounts_text(own.iter()),
                amounts_text(sum.iter())
            ));
        }
    }
    Ok(())
}
