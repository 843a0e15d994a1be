//! Rules of a `FrameworkInfo` (docs/mesos/scheduler-api.md, SCH-36 to SCH-39).
//!
//! Other frameworks are not considered.

use std::collections::BTreeSet;

use base::FrameworkId;
use protos::mesos::{FrameworkInfo, OfferFilters};
use resources::Role;

use super::sizes;
use crate::config::Config;
use crate::state::FrameworkCapabilities;

/// Returns the roles that a framework subscribes to: `roles` with MULTI_ROLE, else `role`, which is `*` if unset.
pub(crate) fn roles_of(info: &FrameworkInfo) -> Vec<&str> {
    match FrameworkCapabilities::new(&info.capabilities).multi_role {
        true => info.roles.iter().map(String::as_str).collect(),
        false => vec![info.role()],
    }
}

/// Returns a set as Mesos prints it: `{ a, b }`.
fn set_text<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<&str> = items.into_iter().collect();
    match items.is_empty() {
        true => "{}".to_owned(),
        false => format!("{{ {} }}", items.join(", ")),
    }
}

/// Checks the parts of the info that need nothing else: roles, id, offer filters.
pub(crate) fn framework_info(info: &FrameworkInfo) -> Result<(), String> {
    sizes::framework(info)?;
    let capabilities = FrameworkCapabilities::new(&info.capabilities);
    if capabilities.multi_role && info.role.is_some() {
        return Err("'FrameworkInfo.role' must not be set when the framework is MULTI_ROLE capable".to_owned());
    }
    if !capabilities.multi_role && !info.roles.is_empty() {
        return Err("'FrameworkInfo.roles' must not be set when the framework is not MULTI_ROLE capable".to_owned());
    }
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<&str> = info.roles.iter().map(String::as_str).filter(|role| !seen.insert(*role)).collect();
    if !twice.is_empty() {
        return Err(format!("'FrameworkInfo.roles' contains duplicate items: {}", set_text(twice)));
    }
    for role in &info.roles {
        Role::parse(role).map_err(|why| format!("'FrameworkInfo.roles' contains invalid role: {why}"))?;
    }
    if !capabilities.multi_role {
        Role::parse(info.role()).map_err(|why| format!("'FrameworkInfo.role' is not a valid role: {why}"))?;
    }
    if let Some(id) = info.id.as_ref().filter(|id| !id.value.is_empty()) {
        FrameworkId::new(&id.value).map_err(|why| format!("'FrameworkInfo.id' is invalid: {why}"))?;
    }
    for (role, filters) in &info.offer_filters {
        Role::parse(role).map_err(|why| format!("'FrameworkInfo.offer_filters' contains invalid role: {why}"))?;
        offer_filters(filters).map_err(|why| format!("Invalid offer filters for role '{role}': {why}"))?;
    }
    Ok(())
}

fn offer_filters(filters: &OfferFilters) -> Result<(), String> {
    for quantities in filters.min_allocatable_resources.iter().flat_map(|min| &min.quantities) {
        if quantities.quantities.is_empty() {
            return Err("Resource quantities must contain at least one quantity".to_owned());
        }
        for (name, scalar) in &quantities.quantities {
            let number = scalar.value == 0.0 || scalar.value.is_normal() && scalar.value > 0.0;
            if !number || resources::rounds_to_nothing(scalar.value) {
                return Err(format!("Invalid resource quantity for '{name}': {}", scalar.value));
            }
        }
    }
    Ok(())
}

/// Checks the parts that need the master's settings: `--roles`, suppressed roles, `--root_submissions`.
pub(crate) fn subscription_update(info: &FrameworkInfo, suppressed: &[String], config: &Config) -> Result<(), String> {
    let roles = roles_of(info);
    if let Some(allowed) = &config.roles {
        let missing: Vec<&str> = roles.iter().copied().filter(|role| !allowed.contains(*role)).collect();
        if !missing.is_empty() {
            return Err(format!("Roles {} are not present in the master's --roles", set_text(missing)));
        }
    }
    sizes::suppressed(suppressed)?;
    let roles: BTreeSet<&str> = roles.into_iter().collect();
    for role in suppressed {
        if !roles.contains(role.as_str()) {
            return Err(format!("Suppressed role '{role}' is not contained in the list of roles"));
        }
    }
    if info.user == "root" && !config.root_submissions {
        return Err("User 'root' is not allowed to run frameworks without --root_submissions set".to_owned());
    }
    Ok(())
}

/// Checks that the failover timeout is a duration that fits into 64 bits of nanoseconds.
pub(crate) fn failover_timeout(info: &FrameworkInfo) -> Result<(), String> {
    let seconds = info.failover_timeout();
    if seconds.is_nan() || (seconds * 1e9).abs() > i64::MAX as f64 {
        return Err(format!("The framework failover_timeout ({seconds}) is invalid"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::framework_info::{Capability, capability::Type};

    fn multi(roles: &[&str]) -> FrameworkInfo {
        FrameworkInfo {
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            capabilities: vec![Capability { r#type: Some(Type::MultiRole as i32) }],
            ..Default::default()
        }
    }

    #[test]
    fn words() {
        assert_eq!(framework_info(&multi(&[])), Ok(()));
        let mixed = FrameworkInfo { role: Some("a".to_owned()), ..multi(&["b"]) };
        let single = FrameworkInfo { roles: vec!["a".to_owned()], ..Default::default() };
        let nameless = FrameworkInfo { role: Some(String::new()), ..Default::default() };
        for (info, words) in [
            (mixed, "'FrameworkInfo.role' must not be set when the framework is MULTI_ROLE capable"),
            (single, "'FrameworkInfo.roles' must not be set when the framework is not MULTI_ROLE capable"),
            (multi(&["a", "b", "a"]), "'FrameworkInfo.roles' contains duplicate items: { a }"),
            (multi(&["/a"]), "'FrameworkInfo.roles' contains invalid role: Role '/a' cannot start with a slash"),
            (nameless, "'FrameworkInfo.role' is not a valid role: Role names cannot be the empty string"),
        ] {
            assert_eq!(framework_info(&info), Err(words.to_owned()));
        }
        let config = Config { root_submissions: false, ..Config::default() };
        let root = FrameworkInfo { user: "root".to_owned(), ..multi(&["a"]) };
        assert!(subscription_update(&root, &[], &config).unwrap_err().contains("--root_submissions"));
        let elsewhere = subscription_update(&multi(&["a"]), &["b".to_owned()], &Config::default());
        assert_eq!(elsewhere, Err("Suppressed role 'b' is not contained in the list of roles".to_owned()));
    }

    #[test]
    fn timeouts_fit_in_64_bits() {
        let timeout = |seconds| failover_timeout(&FrameworkInfo { failover_timeout: Some(seconds), ..multi(&[]) });
        assert_eq!(timeout(3600.0), Ok(()));
        assert_eq!(timeout(1e20), Err("The framework failover_timeout (100000000000000000000) is invalid".to_owned()));
        assert!(timeout(f64::NAN).is_err() && timeout(f64::INFINITY).is_err());
    }
}
