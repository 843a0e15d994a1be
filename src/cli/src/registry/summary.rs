//! Counts the entries of a registry, by kind.

use protos::mesos::internal::Registry;
use protos::mesos::{DrainInfo, DrainState};

use crate::read::table::table;

/// Formats the counts as a table.
pub(super) fn summary(registry: &Registry) -> String {
    let mut table = table(&["ENTRY", ">COUNT", "DETAILS"]);
    for (what, count, details) in rows(registry) {
        table.add_row([what.to_owned(), count.to_string(), details]);
    }
    table.trim_fmt()
}

fn rows(registry: &Registry) -> Vec<(&'static str, usize, String)> {
    let admitted = registry.slaves.as_ref().map_or(&[][..], |list| &list.slaves);
    let unreachable = registry.unreachable.as_ref().map_or(&[][..], |list| &list.slaves);
    let gone = registry.gone.as_ref().map_or(0, |list| list.slaves.len());
    let machines = registry.machines.as_ref().map_or(&[][..], |list| &list.machines);
    let down = machines.iter().filter(|machine| machine.info.mode() == protos::mesos::machine_info::Mode::Down).count();
    let windows = registry.schedules.iter().map(|schedule| schedule.windows.len()).sum();
    let states = |deactivated: usize, drains: Vec<&Option<DrainInfo>>| {
        let draining = drains.iter().filter(|drain| state_of(drain) == Some("draining")).count();
        let drained = drains.iter().filter(|drain| state_of(drain) == Some("drained")).count();
        of_which(&[(deactivated, "deactivated"), (draining, "draining"), (drained, "drained")])
    };
    let capabilities: Vec<&str> =
        registry.minimum_capabilities.iter().map(|required| required.capability.as_str()).collect();
    let providers = registry.resource_provider_registry.as_ref();
    #[allow(deprecated)]
    let old_quotas = registry.quotas.len();
    vec![
        (
            "agents",
            admitted.len(),
            states(
                admitted.iter().filter(|agent| agent.deactivated()).count(),
                admitted.iter().map(|agent| &agent.drain_info).collect(),
            ),
        ),
        (
            "unreachable agents",
            unreachable.len(),
            states(
                unreachable.iter().filter(|agent| agent.deactivated()).count(),
                unreachable.iter().map(|agent| &agent.drain_info).collect(),
            ),
        ),
        ("gone agents", gone, String::new()),
        ("quotas", registry.quota_configs.len(), String::new()),
        ("quotas of the old form", old_quotas, String::new()),
        ("weights", registry.weights.len(), String::new()),
        ("machines", machines.len(), of_which(&[(down, "down")])),
        ("maintenance windows", windows, String::new()),
        ("required capabilities", capabilities.len(), capabilities.join(", ")),
        ("resource providers", providers.map_or(0, |list| list.resource_providers.len()), String::new()),
    ]
}

/// Returns the state of an agent that is being drained, or has been.
pub(super) fn state_of(drain: &Option<DrainInfo>) -> Option<&'static str> {
    match drain.as_ref()?.state() {
        DrainState::Unknown => None,
        DrainState::Draining => Some("draining"),
        DrainState::Drained => Some("drained"),
    }
}

fn of_which(counts: &[(usize, &str)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
}
