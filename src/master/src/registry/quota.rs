//! Quotas in the registry (MNT-31, HA-27).
//!
//! It does not check them; `operator/quota.rs` does.

use protos::mesos::internal::Registry;
use protos::mesos::quota::QuotaConfig;

/// Capability that the registry requires of later masters while there are quotas.
const QUOTA: &str = "QUOTA_V2";

/// Replaces the quotas of the roles in `configs`. One without guarantees and limits is removed.
pub(super) fn update(registry: &mut Registry, configs: &[QuotaConfig]) {
    for config in configs {
        registry.quota_configs.retain(|known| known.role != config.role);
        // Masters before 1.9 stored quotas in this form.
        #[allow(deprecated)]
        registry.quotas.retain(|known| known.info.role() != config.role);
        if !is_default(config) {
            registry.quota_configs.push(config.clone());
        }
    }
    match registry.quota_configs.is_empty() {
        true => super::release(registry, QUOTA),
        false => super::require(registry, QUOTA),
    }
}

/// Returns whether a config sets no quota. A guarantee of 0 counts as none; a limit of 0 is a limit.
fn is_default(config: &QuotaConfig) -> bool {
    config.limits.is_empty() && config.guarantees.values().all(|amount| amount.value == 0.0)
}

#[cfg(test)]
mod tests {
    use protos::mesos::value::Scalar;

    use super::*;

    fn config(role: &str, guarantee: f64, limit: Option<f64>) -> QuotaConfig {
        let map = |value| [("cpus".to_owned(), Scalar { value })].into();
        QuotaConfig { role: role.to_owned(), guarantees: map(guarantee), limits: limit.map(map).unwrap_or_default() }
    }

    #[test]
    fn the_last_quota_takes_the_capability_with_it() {
        let mut registry = Registry::default();
        update(&mut registry, &[config("a", 1.0, None), config("b", 0.0, Some(0.0)), config("c", 0.0, None)]);
        let roles: Vec<&str> = registry.quota_configs.iter().map(|config| config.role.as_str()).collect();
        assert_eq!(roles, ["a", "b"]);
        assert_eq!(registry.minimum_capabilities[0].capability, QUOTA);
        update(&mut registry, &[config("a", 0.0, None), QuotaConfig { role: "b".to_owned(), ..Default::default() }]);
        assert_eq!(registry, Registry::default());
    }
}
