//! Writes the fairness report as a document, as flat metrics in Mesos's style, and as families of Prometheus.

use std::collections::BTreeMap;

use allocator::fairness::{ClientFairness, HOLDING_BOUNDS, Report, ResourceSeconds};
use base::{FrameworkId, Time};
use serde_json::{Value, json};

use crate::metrics::Metrics;
use crate::prometheus::{Kind, Text};

/// The names of frameworks.
pub(super) type Names = BTreeMap<FrameworkId, String>;

fn name_of(names: &Names, id: &FrameworkId) -> String {
    names.get(id).cloned().unwrap_or_default()
}

/// Returns the answer to GET_FAIRNESS. Times are in seconds.
pub(super) fn document(report: &Report) -> Value {
    let measures = &report.measures;
    let roles: Vec<Value> = report
        .roles
        .iter()
        .map(|role| json!({ "role": role.role.as_str(), "share": role.share, "fair_share": role.target }))
        .collect();
    json!({
        "jain_index": measures.jain,
        "relative_gap": measures.relative_gap,
        "deviation": measures.deviation,
        "lost_share": measures.lost_share,
        "competitors": measures.competitors,
        "roles": roles,
        "frameworks": report.clients.iter().map(client).collect::<Vec<Value>>(),
    })
}

fn client(client: &ClientFairness) -> Value {
    let offers = &client.offers;
    let sampled = &client.sampled;
    let buckets: Vec<Value> = HOLDING_BOUNDS
        .iter()
        .map(|bound| json!(bound))
        .chain([json!("inf")])
        .zip(client.holding.buckets)
        .map(|(bound, count)| json!({ "at_most": bound, "count": count }))
        .collect();
    json!({
        "framework_id": { "value": client.framework.as_str() },
        "role": client.role.as_str(),
        "wants_offers": client.wants,
        "share": client.share,
        "fair_share": client.target,
        "share_seconds": sampled.share,
        "fair_share_seconds": sampled.target,
        "lost_share_seconds": sampled.missing,
        "sampled_seconds": sampled.seconds,
        "offers": {
            "sent": offers.sent, "accepted": offers.accepted, "declined": offers.declined,
            "rescinded": offers.rescinded, "timed_out": offers.timed_out,
        },
        "holding": { "buckets": buckets, "sum": client.holding.sum, "longest": client.holding.longest },
        "waiting": {
            "ended": client.waiting.ended,
            "sum": client.waiting.total.as_secs_f64(),
            "longest": client.waiting.longest.as_secs_f64(),
            "since": client.waiting.since.map(Time::as_secs_f64),
        },
        "refused_resource_seconds": amounts(&client.refused),
        "unused_resource_seconds": amounts(&client.unused),
    })
}

fn amounts(amounts: &ResourceSeconds) -> Value {
    amounts.iter().map(|(name, amount)| (name.as_str().to_owned(), json!(amount))).collect()
}

/// Returns how long a client has been waiting for an offer, in seconds; 0 if it is not.
fn waits(client: &ClientFairness, now: Time) -> f64 {
    client.waiting.since.map_or(0.0, |since| now.since(since).as_secs_f64())
}

/// Sets the metrics with names in Mesos's style.
pub(super) fn flat(metrics: &mut Metrics, report: &Report, names: Option<&Names>, now: Time) {
    let measures = &report.measures;
    metrics.set("allocator/mesos/fairness/jain_index", measures.jain);
    metrics.set("allocator/mesos/fairness/relative_gap", measures.relative_gap);
    metrics.set("allocator/mesos/fairness/deviation", measures.deviation);
    metrics.set("allocator/mesos/fairness/lost_share", measures.lost_share);
    metrics.count("allocator/mesos/fairness/competitors", measures.competitors);
    for role in &report.roles {
        metrics.set(format!("allocator/mesos/roles/{}/shares/fair", role.role), role.target);
    }
    let Some(names) = names else { return };
    for client in &report.clients {
        let name = name_of(names, &client.framework);
        let name = percent_encoding::utf8_percent_encode(&name, percent_encoding::NON_ALPHANUMERIC);
        let prefix = format!("master/frameworks/{name}/{}/roles/{}", client.framework, client.role);
        let mut set = |what: &str, value: f64| metrics.set(format!("{prefix}/{what}"), value);
        set("shares/dominant", client.share);
        set("shares/fair", client.target);
        let offers = &client.offers;
        for (what, count) in [
            ("sent", offers.sent),
            ("accepted", offers.accepted),
            ("declined", offers.declined),
            ("rescinded", offers.rescinded),
            ("timed_out", offers.timed_out),
        ] {
            set(&format!("offers/{what}"), count as f64);
        }
        set("offers/held_secs", client.holding.sum);
        set("offers/held_secs/max", client.holding.longest);
        for (what, amounts) in [("refused", &client.refused), ("unused", &client.unused)] {
            for (name, amount) in amounts {
                set(&format!("offers/{what}/{name}_secs"), *amount);
            }
        }
        set("waits", client.waiting.ended as f64);
        set("waits_secs", client.waiting.total.as_secs_f64());
        set("waits_secs/max", client.waiting.longest.as_secs_f64());
        set("waits_secs/current", waits(client, now));
    }
}

/// Adds the metrics as families with labels.
pub(super) fn families(text: &mut Text, report: &Report, names: &Names, now: Time) {
    for (name, help, value) in [
        ("tepui_fairness_jain_index", "Jain's index of shares by fair shares: 1 is fair.", report.measures.jain),
        ("tepui_fairness_relative_gap", "1 - least share / largest share.", report.measures.relative_gap),
        (
            "tepui_fairness_deviation",
            "Largest relative deviation of a share from the fair share.",
            report.measures.deviation,
        ),
        (
            "tepui_fairness_lost_share",
            "Largest shortfall of a framework below its fair share.",
            report.measures.lost_share,
        ),
    ] {
        text.add(name, Kind::Gauge, help, &[], value);
    }
    for role in &report.roles {
        let labels = [("role", role.role.as_str())];
        text.add("tepui_role_share", Kind::Gauge, "Dominant share.", &labels, role.share);
        text.add("tepui_role_fair_share", Kind::Gauge, "Fair dominant share.", &labels, role.target);
    }
    for client in &report.clients {
        let name = name_of(names, &client.framework);
        let labels =
            [("framework", name.as_str()), ("framework_id", client.framework.as_str()), ("role", client.role.as_str())];
        families_of(text, client, &labels, now);
    }
}

fn families_of(text: &mut Text, client: &ClientFairness, labels: &[(&str, &str)], now: Time) {
    let mut gauge = |name: &str, help, value| text.add(name, Kind::Gauge, help, labels, value);
    gauge("tepui_framework_share", "Dominant share.", client.share);
    gauge("tepui_framework_fair_share", "Fair dominant share.", client.target);
    gauge("tepui_framework_waiting_seconds", "Time since which the framework waits for offers.", waits(client, now));
    let sampled = &client.sampled;
    let mut counter = |name: &str, help, value| text.add(name, Kind::Counter, help, labels, value);
    counter("tepui_framework_share_seconds_total", "Dominant share over time.", sampled.share);
    counter("tepui_framework_fair_share_seconds_total", "Fair share over time.", sampled.target);
    counter("tepui_framework_lost_share_seconds_total", "Shortfall below the fair share over time.", sampled.missing);
    counter("tepui_framework_offers_sent_total", "Offers made.", client.offers.sent as f64);
    counter("tepui_framework_waits_total", "Waits that ended with an offer.", client.waiting.ended as f64);
    counter(
        "tepui_framework_waits_seconds_total",
        "Duration of the waits that ended with an offer.",
        client.waiting.total.as_secs_f64(),
    );
    for (how, count) in [
        ("accepted", client.offers.accepted),
        ("declined", client.offers.declined),
        ("rescinded", client.offers.rescinded),
        ("timed_out", client.offers.timed_out),
    ] {
        let labels: Vec<_> = labels.iter().copied().chain([("how", how)]).collect();
        text.add("tepui_framework_offers_ended_total", Kind::Counter, "Offers by outcome.", &labels, count as f64);
    }
    for (how, amounts) in [("refused", &client.refused), ("unused", &client.unused)] {
        for (name, amount) in amounts {
            let labels: Vec<_> = labels.iter().copied().chain([("how", how), ("resource", name.as_str())]).collect();
            let help = "Amounts of unused offers, times the seconds for which they were held.";
            text.add("tepui_framework_idle_offered_seconds_total", Kind::Counter, help, &labels, *amount);
        }
    }
    let holding = (&HOLDING_BOUNDS[..], &client.holding.buckets[..], client.holding.sum);
    text.histogram("tepui_framework_offer_holding_seconds", "Time for which offers were held.", labels, holding);
}
