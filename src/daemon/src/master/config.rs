//! Converts the master's flags to the core's settings, and checks their ranges.
//!
//! It reads no environment and starts nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use allocator::SorterKind;
use master::{Config, RateLimit, RateLimits};
use protos::mesos;

use super::policies;
use crate::flags::master::AllocationFlags;
use crate::flags::{FlagError, Json, MasterFlags, json};

/// Returns the settings of the core.
///
/// # Errors
/// The first flag whose value is out of its range.
pub(super) fn config(flags: &MasterFlags) -> Result<Config, FlagError> {
    let MasterFlags { access, state, agents, allocation, frameworks, .. } = flags;
    if !matches!(allocation.allocator.as_str(), "" | "hierarchical") {
        return Err(refused("allocator", "must be 'hierarchical'"));
    }
    let list = allocation.fair_sharing_excluded_resource_names.as_deref().unwrap_or_default();
    Ok(Config {
        agent_ping_timeout: ranged(
            "agent_ping_timeout",
            agents.agent_ping_timeout,
            Duration::from_secs(1),
            Duration::from_secs(15 * 60),
        )?,
        max_agent_ping_timeouts: match agents.max_agent_ping_timeouts {
            0 => return Err(refused("max_agent_ping_timeouts", "must be at least 1")),
            count => u32::try_from(count).unwrap_or(u32::MAX),
        },
        agent_reregister_timeout: ranged(
            "agent_reregister_timeout",
            agents.agent_reregister_timeout,
            Duration::from_secs(600),
            Duration::MAX,
        )?,
        agent_removal_rate_limit: agents.agent_removal_rate_limit.as_deref().map(removal_rate).transpose()?,
        rate_limits: access.rate_limits.as_ref().map(rate_limits).transpose()?,
        recovery_agent_removal_limit: removal_limit(&agents.recovery_agent_removal_limit)?,
        policies: policies::read(allocation)?,
        max_completed_frameworks: size(frameworks.max_completed_frameworks),
        max_completed_tasks_per_framework: size(frameworks.max_completed_tasks_per_framework),
        max_unreachable_tasks_per_framework: size(frameworks.max_unreachable_tasks_per_framework),
        max_operator_event_stream_subscribers: size(frameworks.max_operator_event_stream_subscribers),
        roles: roles(allocation)?,
        root_submissions: frameworks.root_submissions,
        authenticate_agents: access.authenticate_agents,
        authenticate_frameworks: access.authenticate_frameworks,
        authorizer: crate::acls::read(access.acls.as_ref(), ("authorizers", &access.authorizers))?,
        require_agent_domain: agents.require_agent_domain,
        registry_gc_interval: state.registry_gc_interval,
        registry_max_agent_age: state.registry_max_agent_age,
        registry_max_agent_count: size(state.registry_max_agent_count),
        allocation_interval: allocation.allocation_interval,
        min_allocatable_resources: resources::parse_alternatives(&allocation.min_allocatable_resources)
            .map_err(|error| refused("min_allocatable_resources", error.to_string()))?,
        filter_gpu_resources: allocation.filter_gpu_resources,
        allocator_agent_recovery_factor: recovery_factor(allocation.allocator_agent_recovery_factor)?,
        allocator_recovery_timeout: allocation.allocator_recovery_timeout,
        fair_sharing_excluded_resource_names: listed(list).map(str::to_owned).collect(),
        offer_constraints_limits: allocator::RegexLimits {
            max_memory: size(allocation.offer_constraints_re2_max_mem.0),
            max_program_size: size(allocation.offer_constraints_re2_max_program_size),
        },
        role_sorter: sorter("role_sorter", &allocation.role_sorter)?,
        framework_sorter: sorter("framework_sorter", &allocation.framework_sorter)?,
        weights: allocation.weights.as_deref().map_or(Ok(Vec::new()), weights)?,
    })
}

/// Converts a count to the size of a collection.
fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Parses `--domain`, the fault domain of the master. Agents of other regions are offered only to region-aware
/// frameworks.
///
/// # Errors
/// The value is invalid, or has no fault domain.
pub(super) fn domain(given: Option<&Json>) -> Result<Option<mesos::DomainInfo>, FlagError> {
    const NAME: &str = "domain";
    let Some(text) = given else { return Ok(None) };
    let domain: mesos::DomainInfo = json::message(NAME, text)?;
    if domain.fault_domain.is_none() {
        return Err(refused(NAME, "`domain` must define `fault_domain`"));
    }
    Ok(Some(domain))
}

/// Parses `--rate_limits`.
fn rate_limits(text: &Json) -> Result<RateLimits, FlagError> {
    const NAME: &str = "rate_limits";
    let given: mesos::RateLimits = json::message(NAME, text)?;
    let limit = |what: &str, qps: Option<f64>, capacity| match qps {
        None => Ok(None),
        Some(qps) => match Duration::try_from_secs_f64(1.0 / qps) {
            Ok(interval) if qps > 0.0 => Ok(Some(RateLimit { interval, capacity })),
            _ => Err(refused(NAME, format!("{what} is {qps}, and must be more than 0"))),
        },
    };
    let mut limits = RateLimits {
        others: limit("aggregate_default_qps", given.aggregate_default_qps, given.aggregate_default_capacity)?,
        ..RateLimits::default()
    };
    for one in given.limits {
        let what = format!("the qps of '{}'", one.principal);
        if limits.named.insert(one.principal.clone(), limit(&what, one.qps, one.capacity)?).is_some() {
            return Err(refused(NAME, format!("there are two limits for '{}'", one.principal)));
        }
    }
    Ok(limits)
}

fn refused(name: &'static str, why: impl Into<String>) -> FlagError {
    FlagError::Refused { name, why: why.into() }
}

fn ranged(name: &'static str, value: Duration, least: Duration, most: Duration) -> Result<Duration, FlagError> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    let least = base::format_duration(least);
    let most =
        if most == Duration::MAX { String::new() } else { format!(" and at most {}", base::format_duration(most)) };
    Err(refused(name, format!("must be at least {least}{most}")))
}

/// Parses `--agent_removal_rate_limit`, of the form `n/duration`.
fn removal_rate(text: &str) -> Result<(u32, Duration), FlagError> {
    const NAME: &str = "agent_removal_rate_limit";
    let wrong =
        || refused(NAME, format!("'{text}' is not of the form <number of agents>/<duration>, such as 1/20mins"));
    let (count, per) = text.split_once('/').ok_or_else(wrong)?;
    let count: u32 = count.trim().parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
    let per = base::parse_duration(per.trim()).ok().filter(|d| !d.is_zero()).ok_or_else(wrong)?;
    Ok((count, per))
}

fn recovery_factor(factor: f64) -> Result<f64, FlagError> {
    match (0.0..=1.0).contains(&factor) {
        true => Ok(factor),
        false => Err(refused("allocator_agent_recovery_factor", "must be between 0 and 1")),
    }
}

/// Parses `--roles`, the only roles that are allowed, and adds the default role; `None` if all are allowed.
///
/// # Errors
/// An invalid role.
pub(super) fn roles(flags: &AllocationFlags) -> Result<Option<BTreeSet<String>>, FlagError> {
    let Some(text) = &flags.roles else { return Ok(None) };
    let mut names: BTreeSet<String> = listed(text).map(str::to_owned).collect();
    names.iter().try_for_each(|name| role("roles", name))?;
    names.insert("*".to_owned());
    Ok(Some(names))
}

/// Returns the parts of a list that is separated by commas.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Checks that a flag's text is a role.
fn role(flag: &'static str, name: &str) -> Result<(), FlagError> {
    name.parse::<resources::Role>().map(|_| ()).map_err(|error| refused(flag, error.to_string()))
}

/// Parses `--recovery_agent_removal_limit`, a percentage, and returns it as a share.
fn removal_limit(text: &str) -> Result<f64, FlagError> {
    const NAME: &str = "recovery_agent_removal_limit";
    let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    match percent {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(refused(NAME, format!("'{text}' is not a percentage from 0% to 100%"))),
    }
}

fn sorter(name: &'static str, text: &str) -> Result<SorterKind, FlagError> {
    SorterKind::parse(text).ok_or_else(|| {
        let known = SorterKind::ALL.map(|(name, _)| name).join(", ");
        refused(name, format!("there is no sorter '{text}': use one of {known}"))
    })
}

/// Parses `--weights`, of the form `role=weight,...`.
fn weights(text: &str) -> Result<Vec<(String, f64)>, FlagError> {
    text.split(',')
        .map(|pair| {
            let wrong = || refused("weights", format!("'{pair}' is not of the form <role>=<positive number>"));
            let (role, weight) = pair.split_once('=').ok_or_else(wrong)?;
            let weight: f64 = weight.trim().parse().map_err(|_| wrong())?;
            if !weight.is_finite() || weight <= 0.0 {
                return Err(wrong());
            }
            let name = role.trim();
            self::role("weights", name)?;
            Ok((name.to_owned(), weight))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Config, FlagError> {
        config(&MasterFlags::with(&[(name, value)]))
    }

    #[test]
    fn values() {
        let plain = config(&MasterFlags::with(&[])).unwrap();
        assert_eq!(plain.agent_reregister_timeout, Duration::from_secs(600));
        assert_eq!(plain.roles, None);
        let limited = with("agent_removal_rate_limit", "1/20mins").unwrap();
        assert_eq!(limited.agent_removal_rate_limit, Some((1, Duration::from_secs(1200))));
        assert_eq!(with("recovery_agent_removal_limit", "50%").unwrap().recovery_agent_removal_limit, 0.5);
        assert_eq!(with("weights", "a=2, b=0.5").unwrap().weights, [("a".to_owned(), 2.0), ("b".to_owned(), 0.5)]);
        let limits =
            r#"{"limits":[{"principal":"a","qps":0.5,"capacity":3},{"principal":"b"}],"aggregate_default_qps":10}"#;
        let limits = with("rate_limits", limits).unwrap().rate_limits.unwrap();
        let slow = RateLimit { interval: Duration::from_secs(2), capacity: Some(3) };
        assert_eq!(limits.named, [("a".to_owned(), Some(slow)), ("b".to_owned(), None)].into());
        assert_eq!(limits.others, Some(RateLimit { interval: Duration::from_millis(100), capacity: None }));
        assert!(with("roles", "a,b").unwrap().roles.unwrap().contains("*"));
    }

    #[test]
    fn out_of_range() {
        for (name, value) in [
            ("agent_ping_timeout", "500ms"),
            ("agent_ping_timeout", "16mins"),
            ("max_agent_ping_timeouts", "0"),
            ("agent_reregister_timeout", "9mins"),
            ("agent_removal_rate_limit", "x/1mins"),
            ("agent_removal_rate_limit", "1/0secs"),
            ("recovery_agent_removal_limit", "101%"),
            ("allocator_agent_recovery_factor", "1.5"),
            ("offer_timeout", "0secs"),
            ("role_sorter", "fair"),
            ("roles", "a,b c"),
            ("roles", "a,/b"),
            ("weights", "a=0"),
            ("weights", "a"),
            ("weights", "a b=1"),
            ("rate_limits", r#"{"limits":[{"principal":"a","qps":0}]}"#),
            ("rate_limits", r#"{"limits":[{"principal":"a"},{"principal":"a"}]}"#),
            ("rate_limits", r#"{"aggregate_default_qps":-1}"#),
            ("rate_limits", r#"{"limits":[{"qps":1}]}"#),
        ] {
            let error = with(name, value).unwrap_err().to_string();
            assert!(error.starts_with(&format!("flag '--{name}'")), "{error}");
        }
    }
}
