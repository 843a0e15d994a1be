//! `tepui registry show` and `tepui registry export`: prints a registry.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use protos::json::{Dialect, ToJson};
use protos::mesos::internal::Registry;
use protos::mesos::{MachineInfo, TimeInfo, value};

use super::source;
use super::summary::{state_of, summary};
use crate::read::print;
use crate::read::table::{number, table};

/// Flags of `tepui registry show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    #[command(flatten)]
    source: source::Args,
    /// Print JSON, indented
    #[arg(long)]
    json: bool,
}

/// Shows a registry as tables.
///
/// # Errors
/// The registry cannot be read.
pub(super) fn run(args: &ShowArgs) -> Result<ExitCode> {
    let found = args.source.read()?;
    if args.json {
        let document: serde_json::Value = serde_json::from_slice(&found.registry.json(Dialect::V0))?;
        return print(&serde_json::to_string_pretty(&document)?);
    }
    let mut parts = vec![found.place, summary(&found.registry)];
    parts.extend(agents(&found.registry));
    parts.extend(away(&found.registry));
    parts.extend(policies(&found.registry));
    parts.extend(machines(&found.registry));
    print(&parts.join("\n\n"))
}

/// Prints a registry as a master's endpoint does.
///
/// # Errors
/// The registry cannot be read.
pub(super) fn export(args: &source::Args) -> Result<ExitCode> {
    let json = args.read()?.registry.json(Dialect::V0);
    print(str::from_utf8(&json).context("the registry is not UTF-8")?)
}

/// Formats the admitted agents.
fn agents(registry: &Registry) -> Option<String> {
    let agents = registry.slaves.as_ref().map(|list| &list.slaves).filter(|list| !list.is_empty())?;
    let mut table = table(&["AGENT", "HOSTNAME", ">PORT", "STATE"]);
    for agent in agents {
        let id = agent.info.id.as_ref().map(|id| id.value.to_string()).unwrap_or_default();
        let states = [agent.deactivated().then_some("deactivated"), state_of(&agent.drain_info)];
        let state: Vec<&str> = states.into_iter().flatten().collect();
        table.add_row([id, agent.info.hostname.clone(), agent.info.port().to_string(), state.join(", ")]);
    }
    Some(table.trim_fmt())
}

/// Formats the agents that are unreachable or gone.
fn away(registry: &Registry) -> Option<String> {
    let mut table = table(&["AGENT", "STATE", "SINCE"]);
    for agent in registry.unreachable.iter().flat_map(|list| &list.slaves) {
        table.add_row([agent.id.value.to_string(), "unreachable".to_owned(), time(agent.timestamp)]);
    }
    for agent in registry.gone.iter().flat_map(|list| &list.slaves) {
        table.add_row([agent.id.value.to_string(), "gone".to_owned(), time(agent.timestamp)]);
    }
    (!table.is_empty()).then(|| table.trim_fmt())
}

/// Formats quotas and weights by role.
fn policies(registry: &Registry) -> Option<String> {
    let mut roles: BTreeMap<&str, [String; 3]> = BTreeMap::new();
    for quota in &registry.quota_configs {
        let row = roles.entry(&quota.role).or_default();
        (row[0], row[1]) = (amounts(&quota.guarantees), amounts(&quota.limits));
    }
    for weight in &registry.weights {
        roles.entry(weight.info.role()).or_default()[2] = number(weight.info.weight);
    }
    let mut table = table(&["ROLE", "GUARANTEE", "LIMIT", ">WEIGHT"]);
    for (role, [guarantee, limit, weight]) in roles {
        table.add_row([role.to_owned(), guarantee, limit, weight]);
    }
    (!table.is_empty()).then(|| table.trim_fmt())
}

fn amounts(amounts: &BTreeMap<String, value::Scalar>) -> String {
    amounts.iter().map(|(name, amount)| format!("{name}:{}", number(amount.value))).collect::<Vec<_>>().join(";")
}

/// Formats the machines with a maintenance schedule.
fn machines(registry: &Registry) -> Option<String> {
    let mut table = table(&["MACHINE", "ADDRESS", "MODE", "UNAVAILABLE FROM", "FOR"]);
    for MachineInfo { id, unavailability, mode } in
        registry.machines.iter().flat_map(|list| &list.machines).map(|machine| &machine.info)
    {
        let mode = mode.and_then(|mode| protos::mesos::machine_info::Mode::try_from(mode).ok());
        let mode = mode.map(|mode| mode.as_str_name().to_lowercase()).unwrap_or_default();
        let start = unavailability.as_ref().map(|away| time(away.start)).unwrap_or_default();
        let length = unavailability.as_ref().and_then(|away| away.duration.as_ref());
        let length = length.and_then(|length| u64::try_from(length.nanoseconds).ok()).map(Duration::from_nanos);
        let length = length.map(|length| humantime::format_duration(length).to_string()).unwrap_or_default();
        table.add_row([id.hostname().to_owned(), id.ip().to_owned(), mode, start, length]);
    }
    (!table.is_empty()).then(|| table.trim_fmt())
}

/// Formats an instant in UTC; as its number if it is before 1970 or after 9999.
fn time(TimeInfo { nanoseconds }: TimeInfo) -> String {
    const MOST: u64 = 253_402_300_799;
    let since = u64::try_from(nanoseconds).map(Duration::from_nanos).ok().filter(|since| since.as_secs() <= MOST);
    match since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)) {
        Some(time) => humantime::format_rfc3339_seconds(time).to_string(),
        None => nanoseconds.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc() {
        let text = |nanoseconds| time(TimeInfo { nanoseconds });
        assert_eq!(text(1_893_456_000_000_000_000), "2030-01-01T00:00:00Z");
        assert_eq!(text(-1), "-1");
        assert_eq!(text(i64::MAX), "2262-04-11T23:47:16Z");
    }
}
