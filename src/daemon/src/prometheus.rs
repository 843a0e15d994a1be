//! Converts Mesos's metrics to families of Prometheus. Parts of a flat name that vary (a framework, a role, a state)
//! become labels, units are base units, and agents are called agents.
//!
//! It measures nothing.

use crate::metrics::Metrics;

pub use base::prometheus::{Kind, MEDIA_TYPE, Text};

/// Adds all metrics of a daemon, except sums of others.
pub fn add_all(text: &mut Text, metrics: &Metrics) {
    for (flat, value, kind) in metrics.kinds() {
        let Some(Series { mut name, labels, factor }) = series(flat, kind) else { continue };
        if kind == Kind::Counter {
            name.push_str("_total");
        }
        let labels: Vec<(&str, &str)> = labels.iter().map(|(key, value)| (*key, value.as_str())).collect();
        text.add(&format!("tepui_{name}"), kind, &help(&name, flat), &labels, value * factor);
    }
}

/// A time series of Prometheus.
#[derive(Debug, PartialEq)]
struct Series {
    /// Name, without `tepui_`, and without `_total` of counters.
    name: String,
    labels: Vec<(&'static str, String)>,
    /// Number of base units in one unit of the flat metric.
    factor: f64,
}

impl Series {
    fn new(name: impl AsRef<str>, labels: Vec<(&'static str, String)>) -> Series {
        Series { name: valid(name.as_ref()), labels, factor: 1.0 }
    }
}

/// Returns the series of a flat metric; `None` for a sum of others.
fn series(flat: &str, kind: Kind) -> Option<Series> {
    if let Some(rest) = flat.strip_prefix("master/frameworks/") {
        let mut parts = rest.splitn(3, '/');
        if let (Some(name), Some(id), Some(what)) = (parts.next(), parts.next(), parts.next()) {
            return of_framework(vec![("framework", decoded(name)), ("framework_id", id.to_owned())], what);
        }
    }
    if let Some(rest) = flat.strip_prefix("master/operations/") {
        let (operation, state) = rest.split_once('/')?;
        let operation = ("operation", operation.to_owned());
        return Some(match (state, kind) {
            ("total", _) => Series::new("master_operations_started", vec![operation]),
            (state, Kind::Counter) => {
                Series::new("master_operations_ended", vec![operation, ("state", state.to_owned())])
            }
            (state, _) => Series::new("master_operations", vec![operation, ("state", state.to_owned())]),
        });
    }
    for (prefix, name) in [
        ("allocator/mesos/roles/", "allocator_role"),
        ("allocator/mesos/offer_filters/roles/", "allocator_offer_filters_role"),
        ("allocator/mesos/quota/roles/", "allocator_quota_role"),
    ] {
        if let Some((what, labels)) = of_role(flat, prefix) {
            return Some(Series::new(format!("{name}_{what}"), labels));
        }
    }
    if let Some((resource, what)) =
        flat.strip_prefix("allocator/mesos/resources/").and_then(|rest| rest.split_once('/'))
    {
        let what = if what == "total" { "capacity" } else { what };
        return Some(Series::new(format!("allocator_resource_{what}"), vec![("resource", resource.to_owned())]));
    }
    if let Some((principal, what)) = flat.strip_prefix("frameworks/").and_then(|rest| rest.rsplit_once('/')) {
        return Some(Series::new(format!("framework_{what}"), vec![("principal", principal.to_owned())]));
    }
    of_resources(flat).or_else(|| of_timer(flat)).unwrap_or_else(|| Some(Series::new(plain(flat), Vec::new())))
}

fn of_framework(mut labels: Vec<(&'static str, String)>, what: &str) -> Option<Series> {
    if let Some((role, what)) = what.strip_prefix("roles/").and_then(|rest| rest.rsplit_once('/')) {
        labels.push(("role", role.to_owned()));
        return Some(Series::new(format!("master_framework_{what}"), labels));
    }
    for (prefix, name, label) in [
        ("calls/", "calls", "call"),
        ("events/", "events", "event"),
        ("operations/", "operations", "operation"),
        ("offers/", "offers", "state"),
        ("tasks/terminal/task_", "tasks_ended", "state"),
        ("tasks/active/task_", "tasks", "state"),
    ] {
        if let Some(value) = what.strip_prefix(prefix) {
            labels.push((label, value.to_owned()));
            return Some(Series::new(format!("master_framework_{name}"), labels));
        }
    }
    match what {
        "calls" | "events" | "operations" => None,
        what => Some(Series::new(format!("master_framework_{what}"), labels)),
    }
}

/// Splits a metric of a role into the rest of its name and the labels. The role may contain slashes: the rest is the
/// last part, or starts at `shares/` or `resources/`.
fn of_role(flat: &str, prefix: &str) -> Option<(String, Vec<(&'static str, String)>)> {
    let rest = flat.strip_prefix(prefix)?;
    let cut = ["/shares/", "/resources/"].iter().find_map(|word| rest.rfind(word)).or_else(|| rest.rfind('/'))?;
    let role = ("role", rest[..cut].to_owned());
    let what = &rest[cut + 1..];
    if let Some((resource, what)) = what.strip_prefix("resources/").and_then(|what| what.rsplit_once('/')) {
        return Some((what.to_owned(), vec![role, ("resource", resource.to_owned())]));
    }
    Some((what.to_owned(), vec![role]))
}

/// Returns the series of `master/cpus_total`, `slave/mem_revocable_used` and similar metrics.
fn of_resources(flat: &str) -> Option<Option<Series>> {
    let (daemon, rest) = flat.split_once('/')?;
    let (name, what) = rest.rsplit_once('_')?;
    let (resource, is_revocable) = match name.strip_suffix("_revocable") {
        Some(resource) => (resource, true),
        None => (name, false),
    };
    let what = match what {
        "total" => "capacity",
        "used" => "used",
        "percent" => "used_ratio",
        _ => return None,
    };
    if !matches!(daemon, "master" | "slave") || !matches!(resource, "cpus" | "gpus" | "mem" | "disk") {
        return None;
    }
    let labels = vec![("resource", resource.to_owned()), ("revocable", is_revocable.to_string())];
    Some(Some(Series::new(plain(&format!("{daemon}/resource_{what}")), labels)))
}

/// Returns the series of a time in milliseconds: the last one, or a percentile of those of a window.
fn of_timer(flat: &str) -> Option<Option<Series>> {
    let (name, place) = match flat.rsplit_once("_ms/") {
        Some((name, place)) => (name, Some(place)),
        None => (flat.strip_suffix("_ms")?, None),
    };
    let percentile = match place {
        None => None,
        Some("min") => Some("0"),
        Some("p50") => Some("50"),
        Some("p90") => Some("90"),
        Some("p95") => Some("95"),
        Some("p99") => Some("99"),
        Some("p999") => Some("99.9"),
        Some("p9999") => Some("99.99"),
        Some("max") => Some("100"),
        // The number of times in the window is left out.
        Some(_) => return Some(None),
    };
    let name = plain(name);
    let mut series = match percentile {
        None => Series::new(format!("{name}_last_seconds"), Vec::new()),
        // Not a summary, which needs a sum and a count of all times; those are not known.
        Some(percentile) => Series::new(format!("{name}_seconds"), vec![("percentile", percentile.to_owned())]),
    };
    series.factor = 1e-3;
    Some(Some(series))
}

/// Converts a flat name without labels to the words and units of Prometheus.
fn plain(flat: &str) -> String {
    let name = match flat {
        "system/cpus_total" => "system_cpus".to_owned(),
        "system/mem_total_bytes" => "system_memory_bytes".to_owned(),
        "system/mem_free_bytes" => "system_memory_free_bytes".to_owned(),
        "containerizer/fetcher/cache_size_total_bytes" => "fetcher_cache_bytes".to_owned(),
        "containerizer/fetcher/cache_size_used_bytes" => "fetcher_cache_used_bytes".to_owned(),
        _ => flat.replace("slave", "agent").replace("allocator/mesos/", "allocator/"),
    };
    match name.strip_suffix("_secs") {
        Some(name) => valid(&format!("{name}_seconds")),
        None => valid(&name),
    }
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Replaces all characters of a name but letters and digits by `_`.
fn valid(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// Returns the HELP text of a family. A family without a text here has the name that Mesos's documentation describes.
fn help(name: &str, flat: &str) -> String {
    match HELP.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => (*text).to_owned(),
        None => format!("Metric {flat} of Mesos"),
    }
}

const HELP: &[(&str, &str)] = &[
    ("agent_registered", "1 if the agent is registered with a master"),
    ("agent_resource_capacity", "Resources of the agent, in the units of --resources"),
    ("agent_resource_used", "Resources that executors and tasks use"),
    ("agent_resource_used_ratio", "Part of the capacity that is used"),
    ("agent_uptime_seconds", "Time since the agent started"),
    ("allocator_allocation_run_last_seconds", "Time that the last run of the allocator took"),
    ("allocator_allocation_run_seconds", "Time that runs of the allocator took in the last hour"),
    ("allocator_offer_filters_role_active", "Active offer filters"),
    ("allocator_quota_role_consumed", "Resources that count for the quota of a role"),
    ("allocator_quota_role_guarantee", "Resources that a role is guaranteed"),
    ("allocator_quota_role_limit", "Limit of the resources of a role"),
    ("allocator_quota_role_offered_or_allocated", "Resources that a role with a quota holds or is offered"),
    ("allocator_resource_capacity", "Resources of all agents"),
    ("allocator_resource_offered_or_allocated", "Resources that are used or offered"),
    ("allocator_role_shares_dominant", "Dominant share of a role"),
    ("connections_limit", "Maximum number of connections"),
    ("framework_messages_processed_total", "Messages of frameworks with a principal that were handled"),
    ("framework_messages_received_total", "Messages of frameworks with a principal that arrived"),
    ("master_elected", "1 if this master leads"),
    ("master_framework_calls_total", "Calls of a framework"),
    ("master_framework_events_total", "Events that were sent to a framework"),
    ("master_framework_offers_total", "Offers to a framework: sent, and how they ended"),
    ("master_framework_operations_total", "Operations on offers that a framework accepted"),
    ("master_framework_subscribed", "1 if the framework is connected"),
    ("master_framework_suppressed", "1 if the framework has suppressed offers in a role"),
    ("master_framework_tasks", "Tasks of a framework that have not ended"),
    ("master_framework_tasks_ended_total", "Tasks of a framework that have ended"),
    ("master_operations", "Operations on resources that have not ended"),
    ("master_operations_ended_total", "Operations on resources that have ended"),
    ("master_operations_started_total", "Operations on resources"),
    ("master_outstanding_offers", "Offers that frameworks hold"),
    ("master_resource_capacity", "Resources of all agents, in the units of --resources"),
    ("master_resource_used", "Resources that executors and tasks use"),
    ("master_resource_used_ratio", "Part of the capacity that is used"),
    ("master_agents_active", "Agents whose resources are offered"),
    ("master_agents_connected", "Registered agents that are connected"),
    ("master_agents_disconnected", "Registered agents that are not connected"),
    ("master_agents_unreachable", "Agents that the registry lists as unreachable"),
    ("master_tasks_running", "Tasks in the state TASK_RUNNING"),
    ("master_tasks_staging", "Tasks in the state TASK_STAGING"),
    ("master_uptime_seconds", "Time since the master started"),
    ("registrar_registry_size_bytes", "Size of the registry"),
    ("system_cpus", "Processors of the machine"),
    ("system_memory_bytes", "Memory of the machine"),
    ("system_memory_free_bytes", "Free memory of the machine"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_labels_and_units_base_units() {
        for (flat, kind, wanted) in [
            ("master/tasks_running", Kind::Gauge, "tepui_master_tasks_running 2.0"),
            ("master/slave_registrations", Kind::Counter, "tepui_master_agent_registrations_total 2.0"),
            (
                "master/frameworks/my%20app/id-1/offers/sent",
                Kind::Counter,
                "tepui_master_framework_offers_total{framework=\"my app\",framework_id=\"id-1\",state=\"sent\"} 2.0",
            ),
            (
                "master/frameworks/x/id-1/roles/a/b/suppressed",
                Kind::Gauge,
                "tepui_master_framework_suppressed{framework=\"x\",framework_id=\"id-1\",role=\"a/b\"} 2.0",
            ),
            (
                "master/frameworks/x/id-1/tasks/active/task_running",
                Kind::Gauge,
                "tepui_master_framework_tasks{framework=\"x\",framework_id=\"id-1\",state=\"running\"} 2.0",
            ),
            (
                "allocator/mesos/roles/a/b/shares/dominant",
                Kind::Gauge,
                "tepui_allocator_role_shares_dominant{role=\"a/b\"} 2.0",
            ),
            (
                "allocator/mesos/quota/roles/a/resources/cpus/limit",
                Kind::Gauge,
                "tepui_allocator_quota_role_limit{role=\"a\",resource=\"cpus\"} 2.0",
            ),
            (
                "frameworks/me/messages_received",
                Kind::Counter,
                "tepui_framework_messages_received_total{principal=\"me\"} 2.0",
            ),
            (
                "slave/mem_revocable_total",
                Kind::Gauge,
                "tepui_agent_resource_capacity{resource=\"mem\",revocable=\"true\"} 2.0",
            ),
            (
                "master/operations/reserve/finished",
                Kind::Counter,
                "tepui_master_operations_ended_total{operation=\"reserve\",state=\"finished\"} 2.0",
            ),
            (
                "allocator/mesos/allocation_run_ms/p99",
                Kind::Gauge,
                "tepui_allocator_allocation_run_seconds{percentile=\"99\"} 0.002",
            ),
            ("allocator/mesos/allocation_run_ms", Kind::Gauge, "tepui_allocator_allocation_run_last_seconds 0.002"),
            ("master/uptime_secs", Kind::Gauge, "tepui_master_uptime_seconds 2.0"),
        ] {
            let (mut text, mut metrics) = (Text::default(), Metrics::default());
            match kind {
                Kind::Counter => metrics.counter(flat, 2.0),
                _ => metrics.set(flat, 2.0),
            }
            add_all(&mut text, &metrics);
            let written = text.write();
            assert_eq!(written.lines().last(), Some(wanted), "{flat}");
            assert!(written.starts_with("# HELP tepui_"), "{written}");
        }
        let sums =
            ["master/frameworks/x/i/calls", "master/operations/total", "allocator/mesos/allocation_run_ms/count"];
        assert!(sums.iter().all(|flat| series(flat, Kind::Gauge).is_none()));
    }
}
