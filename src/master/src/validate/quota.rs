//! Rules of a quota (MNT-30, MNT-32) that depend only on the request.
//!
//! `operator/quota.rs` checks it against the cluster and other guarantees.

use std::collections::{BTreeMap, BTreeSet};

use allocator::Quota;
use protos::mesos::quota::{QuotaConfig, QuotaRequest};
use protos::mesos::value::{self, Scalar};
use resources::{Amount, Limits, Name, Quantities, QuantitiesError, Role};

use crate::config::Config;

/// Largest amount of a resource in megabytes (an exabyte), and of any other resource.
const MAX_MEGABYTES: i64 = 1 << 40;
const MAX_OTHERS: i64 = 1_000_000_000_000;

/// Checks one configuration of UPDATE_QUOTA.
///
/// # Errors
/// The complete text of the answer.
pub(crate) fn quota_config(config: &QuotaConfig, settings: &Config) -> Result<(Role, Quota), String> {
    let role = &config.role;
    if role.len() > Role::MAX_BYTES {
        // An invalid name is not repeated in the answer.
        return well_formed(config).map_err(|why| format!("Invalid QuotaConfig: {why}"));
    }
    if settings.roles.as_ref().is_some_and(|allowed| !allowed.contains(role)) {
        return Err(format!("Invalid QuotaConfig: '{role}' is not on the roles whitelist"));
    }
    if role.contains('/') {
        return Err(format!("Updating quota on nested role '{role}' is not supported yet"));
    }
    well_formed(config).map_err(|why| format!("Invalid QuotaConfig: {why}"))
}

fn well_formed(config: &QuotaConfig) -> Result<(Role, Quota), String> {
    let role = Role::parse(&config.role).map_err(|why| format!("Invalid 'QuotaConfig.role': {why}"))?;
    for (field, map) in [("guarantees", &config.guarantees), ("limits", &config.limits)] {
        not_too_large(map).map_err(|why| format!("Invalid 'QuotaConfig.{field}': {why}"))?;
    }
    for (what, map) in [("guarantee", &config.guarantees), ("limit", &config.limits)] {
        for (name, Scalar { value }) in map {
            amount(*value).map_err(|why| format!("Invalid {what} configuration {{'{name}': {value}}}: {why}"))?;
        }
    }
    let quota = quota_of(config).map_err(|why| why.to_string())?;
    if !quota.limits.allows(&quota.guarantees) {
        return Err(format!(
            "'QuotaConfig.guarantees' {} is not contained within the 'QuotaConfig.limits' {}",
            map_text(&config.guarantees),
            map_text(&config.limits)
        ));
    }
    Ok((role, quota))
}

fn not_too_large(map: &BTreeMap<String, Scalar>) -> Result<(), String> {
    for (name, Scalar { value }) in map {
        let (most, words) = match name.as_str() {
            "mem" | "disk" => (MAX_MEGABYTES, "1 exabyte"),
            _ => (MAX_OTHERS, "1 trillion"),
        };
        // A double holds both limits exactly.
        if *value > most as f64 {
            let value = number(*value);
            return Err(format!(
                "{{'{name}': {value}}} is invalid: values greater than {words} ({most}) are not supported"
            ));
        }
    }
    Ok(())
}

/// Formats a number without a long row of zeros.
fn number(value: f64) -> String {
    if value.abs() < 1e17 { value.to_string() } else { format!("{value:e}") }
}

fn amount(value: f64) -> Result<(), &'static str> {
    match value.classify() {
        std::num::FpCategory::Infinite => Err("Infinite values not supported"),
        std::num::FpCategory::Nan => Err("NaN not supported"),
        std::num::FpCategory::Subnormal => Err("Subnormal values not supported"),
        std::num::FpCategory::Normal if value < 0.0 => Err("Negative values not supported"),
        _ if resources::rounds_to_nothing(value) => Err("Values that round to 0 not supported"),
        _ => Ok(()),
    }
}

/// Checks the request of SET_QUOTA and of POST /quota. The guarantees are the limits too.
///
/// # Errors
/// The complete text of the answer.
pub(crate) fn quota_request(request: &QuotaRequest, settings: &Config) -> Result<(Role, Quota), String> {
    let prefix = "Failed to validate set quota request: ";
    resources::validate(&request.guarantee).map_err(|why| format!("{prefix}QuotaInfo with invalid resource: {why}"))?;
    let (role, quota) = legacy(request).map_err(|why| format!("{prefix}{why}"))?;
    if settings.roles.as_ref().is_some_and(|allowed| !allowed.contains(role.as_str())) {
        return Err(format!("{prefix}Unknown role '{role}'"));
    }
    Ok((role, quota))
}

fn legacy(request: &QuotaRequest) -> Result<(Role, Quota), String> {
    let role = request.role.as_deref().ok_or("QuotaInfo must specify a role")?;
    let role = Role::parse(role).map_err(|why| format!("QuotaInfo with invalid role: {why}"))?;
    if request.guarantee.is_empty() {
        return Err("QuotaInfo with empty 'guarantee'".to_owned());
    }
    let mut seen = BTreeSet::new();
    for resource in &request.guarantee {
        if !resource.reservations.is_empty() || resource.role.as_deref().is_some_and(|role| role != "*") {
            return Err("QuotaInfo must not contain any ReservationInfo".to_owned());
        }
        if resource.disk.is_some() {
            return Err("QuotaInfo must not contain DiskInfo".to_owned());
        }
        if resource.revocable.is_some() {
            return Err("QuotaInfo must not contain RevocableInfo".to_owned());
        }
        if resource.r#type() != value::Type::Scalar {
            return Err("QuotaInfo must not include non-scalar resources".to_owned());
        }
        if !seen.insert(&resource.name) {
            return Err(format!("QuotaInfo contains duplicate resource name '{}'", resource.name));
        }
    }
    let scalars: BTreeMap<String, Scalar> =
        request.guarantee.iter().map(|r| (r.name.to_string(), r.scalar.unwrap_or_default())).collect();
    not_too_large(&scalars)?;
    for (name, Scalar { value }) in &scalars {
        amount(*value).map_err(|why| format!("QuotaInfo with invalid amount {{'{name}': {value}}}: {why}"))?;
    }
    let limits = Limits::from_map(&scalars).map_err(|why| why.to_string())?;
    let guarantees = Quantities::from_map(&scalars).map_err(|why| why.to_string())?;
    Ok((role, Quota { guarantees, limits }))
}

/// Converts a checked message.
///
/// # Errors
/// A quantity is invalid.
pub(crate) fn quota_of(config: &QuotaConfig) -> Result<Quota, QuantitiesError> {
    let guarantees = Quantities::from_map(&config.guarantees)?;
    Ok(Quota { guarantees, limits: Limits::from_map(&config.limits)? })
}

/// Formats quantities as Mesos does, sorted by name: `cpus:4; disk:8192; mem:4096`. None at all are `{}`.
pub(crate) fn amounts_text(amounts: impl Iterator<Item = (Name, Amount)>) -> String {
    let sorted: BTreeMap<String, Amount> = amounts.map(|(name, amount)| (name.as_str().to_owned(), amount)).collect();
    let texts: Vec<String> = sorted.iter().map(|(name, amount)| format!("{name}:{amount}")).collect();
    match texts.is_empty() {
        true => "{}".to_owned(),
        false => texts.join("; "),
    }
}

/// Formats a map as Mesos does: `{ cpus: 1, mem: 128 }`.
fn map_text(map: &BTreeMap<String, Scalar>) -> String {
    let texts: Vec<String> = map.iter().map(|(name, scalar)| format!("{name}: {}", scalar.value)).collect();
    match texts.is_empty() {
        true => "{}".to_owned(),
        false => format!("{{ {} }}", texts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalars(list: &[(&str, f64)]) -> BTreeMap<String, Scalar> {
        list.iter().map(|(name, value)| ((*name).to_owned(), Scalar { value: *value })).collect()
    }

    #[test]
    fn words_of_bad_configurations() {
        let roles = Some(["q", "a b", "q/r", ""].map(str::to_owned).into());
        let settings = Config { roles, ..Config::default() };
        for (role, guarantees, limits, words) in [
            ("other", &[][..], &[][..], "Invalid QuotaConfig: 'other' is not on the roles whitelist"),
            ("q/r", &[], &[], "Updating quota on nested role 'q/r' is not supported yet"),
            ("", &[], &[], "Invalid QuotaConfig: Invalid 'QuotaConfig.role': Role names cannot be the empty string"),
            (
                "q",
                &[("mem", 1.1e12)],
                &[],
                "Invalid QuotaConfig: Invalid 'QuotaConfig.guarantees': {'mem': 1100000000000} is invalid: values greater \
                 than 1 exabyte (1099511627776) are not supported",
            ),
            (
                "q",
                &[],
                &[("cpus", f64::INFINITY)],
                "Invalid QuotaConfig: Invalid 'QuotaConfig.limits': {'cpus': inf} is invalid: values greater than 1 \
                 trillion (1000000000000) are not supported",
            ),
            (
                "q",
                &[("cpus", f64::NAN)],
                &[],
                "Invalid QuotaConfig: Invalid guarantee configuration {'cpus': NaN}: NaN not supported",
            ),
            (
                "q",
                &[],
                &[("cpus", -1.0)],
                "Invalid QuotaConfig: Invalid limit configuration {'cpus': -1}: Negative values not supported",
            ),
            (
                "q",
                &[("cpus", 1e-9)],
                &[],
                "Invalid QuotaConfig: Invalid guarantee configuration {'cpus': 0.000000001}: Values that round to 0 not \
                 supported",
            ),
            (
                "q",
                &[],
                &[("mem", 0.0004)],
                "Invalid QuotaConfig: Invalid limit configuration {'mem': 0.0004}: Values that round to 0 not supported",
            ),
            (
                "q",
                &[("cpus", 2.0), ("mem", 1.0)],
                &[("cpus", 1.0)],
                "Invalid QuotaConfig: 'QuotaConfig.guarantees' { cpus: 2, mem: 1 } is not contained within the \
                 'QuotaConfig.limits' { cpus: 1 }",
            ),
        ] {
            let config =
                QuotaConfig { role: role.to_owned(), guarantees: scalars(guarantees), limits: scalars(limits) };
            assert_eq!(quota_config(&config, &settings).unwrap_err(), words);
        }
    }

    #[test]
    fn amounts_of_0_are_a_quota_and_what_rounds_to_them_is_none() {
        let roles = Some(["q".to_owned()].into());
        let settings = Config { roles, ..Config::default() };
        let none = QuotaConfig {
            role: "q".to_owned(),
            guarantees: scalars(&[("cpus", 0.0)]),
            limits: scalars(&[("mem", 0.0)]),
        };
        let (_, quota) = quota_config(&none, &settings).unwrap();
        assert_eq!(quota.limits.get(&Name::Mem), Some(Amount::ZERO));
        let legacy = |value| {
            let mut resource = protos::mesos::Resource { name: "cpus".into(), ..Default::default() };
            resource.scalar = Some(Scalar { value });
            let request =
                QuotaRequest { role: Some("q".to_owned()), guarantee: vec![resource], ..QuotaRequest::default() };
            quota_request(&request, &settings).map(|(_, quota)| quota.limits.get(&Name::Cpus))
        };
        assert_eq!(legacy(0.0), Ok(Some(Amount::ZERO)));
        assert_eq!(
            legacy(1e-9).unwrap_err(),
            "Failed to validate set quota request: QuotaInfo with invalid amount {'cpus': 0.000000001}: Values that round \
             to 0 not supported"
        );
    }

    #[test]
    fn amounts_are_written_by_name() {
        let amounts: Quantities = [(Name::Mem, Amount::from_units(5)), (Name::Disk, Amount::from_units(1))]
            .into_iter()
            .chain([(Name::from("a"), Amount::from_thousandths(1500))])
            .collect();
        assert_eq!(amounts_text(amounts.iter()), "a:1.5; disk:1; mem:5");
        assert_eq!(amounts_text(Quantities::new().iter()), "{}");
    }
}
