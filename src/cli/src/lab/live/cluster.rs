//! The cluster of a live run: one that is started from the scenario, or an existing one.

use std::time::Duration;

use ::lab::live::{Pace, scaled};
use ::lab::scenario::{AgentGroup, Scenario, quotas};
use anyhow::{Context, Result, bail};
use protos::mesos::quota::QuotaConfig;
use resources::{Amount, Name, Quantities, Role, parse_text};
use serde_json::{Value, json};

use crate::connect::MasterArgs;
use crate::daemons::READY;
use crate::embedded::{Cluster, ClusterOptions, start_cluster};
use crate::read::model::{Agents, Frameworks};

/// The cluster on which a scenario is run.
pub(super) struct LiveCluster {
    pub reader: MasterArgs,
    pub agents: usize,
    /// Total resources of the cluster's agents.
    pub total: Quantities,
    /// Whether the cluster existed before the run.
    pub foreign: bool,
}

/// Starts the cluster that a scenario describes, at this pace.
pub(super) fn start(scenario: &Scenario, pace: Pace) -> Result<Box<dyn Cluster>> {
    let agent_flags: Vec<_> = scenario.agents.iter().flat_map(flags_of_group).collect();
    let policies = &scenario.master.policies;
    let policies = (*policies != Default::default()).then(|| serde_json::to_string(&scaled(policies, pace)));
    let options = ClusterOptions {
        agents: agent_flags.len(),
        resources: String::new(),
        master_flags: master_flags(scenario, pace),
        agent_flags,
        policies: policies.transpose().context("the policies cannot be written")?,
    };
    start_cluster(&options)
}

fn flag(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

fn master_flags(scenario: &Scenario, pace: Pace) -> Vec<(String, String)> {
    let part = &scenario.master;
    let time = |span: Duration| base::format_duration(pace.real(span));
    let weights: Vec<String> =
        scenario.roles.iter().filter_map(|(role, part)| part.weight.map(|weight| format!("{role}={weight}"))).collect();
    let interval = part.allocation_interval.map_or(Duration::from_secs(1), |span| span.0);
    let excluded = &part.fair_sharing_excluded_resource_names;
    let flags = [
        Some(flag("allocation_interval", time(interval))),
        part.agent_ping_timeout.map(|span| flag("agent_ping_timeout", time(span.0))),
        part.max_agent_ping_timeouts.map(|number| flag("max_agent_ping_timeouts", number.to_string())),
        part.role_sorter.clone().map(|name| flag("role_sorter", name)),
        part.framework_sorter.clone().map(|name| flag("framework_sorter", name)),
        part.min_allocatable_resources.clone().map(|text| flag("min_allocatable_resources", text)),
        (!excluded.is_empty()).then(|| flag("fair_sharing_excluded_resource_names", excluded.join(","))),
        (!weights.is_empty()).then(|| flag("weights", weights.join(","))),
        scenario.agents.iter().find_map(domain).map(|text| flag("domain", text)),
    ];
    flags.into_iter().flatten().collect()
}

fn flags_of_group(group: &AgentGroup) -> impl Iterator<Item = Vec<(String, String)>> + '_ {
    // A daemon takes resources that the text does not name from the machine.
    let named = parse_text(&group.resources, &Role::star()).unwrap_or_default();
    let names = |name: &str| named.iter().any(|resource| resource.name().as_str() == name);
    let nothing = [("cpus", "cpus:0"), ("mem", "mem:0"), ("disk", "disk:0"), ("ports", "ports:[]")];
    let rest = nothing.iter().filter(|(name, _)| !names(name)).map(|(_, text)| *text);
    let resources: Vec<&str> = [group.resources.trim_end_matches([';', ' '])].into_iter().chain(rest).collect();
    let resources = resources.join(";");
    (0..group.count).map(move |n| {
        let flags = [
            Some(flag("resources", resources.clone())),
            Some(flag("hostname", format!("{}{n}", group.name))),
            (!group.attributes.is_empty()).then(|| flag("attributes", group.attributes.clone())),
            domain(group).map(|text| flag("domain", text)),
        ];
        flags.into_iter().flatten().collect()
    })
}

/// Formats a group's region and zone as a value of `--domain`.
fn domain(group: &AgentGroup) -> Option<String> {
    let region = group.region.as_ref()?;
    let zone = group.zone.as_deref().unwrap_or("zone");
    Some(json!({ "fault_domain": { "region": { "name": region }, "zone": { "name": zone } } }).to_string())
}

/// Waits until a started cluster has the scenario's agents.
pub(super) async fn ready(scenario: &Scenario, reader: MasterArgs) -> Result<LiveCluster> {
    let agents = scenario.agents.iter().map(|group| group.count as usize).sum();
    reader.wait_for_agents(agents, READY).await?;
    let configs: Vec<Value> = quotas(scenario).iter().map(quota).collect();
    if !configs.is_empty() {
        let update = json!({ "force": true, "quota_configs": configs });
        reader.send_call("UPDATE_QUOTA", &update).await.context("the quota cannot be set")?;
    }
    let mut total = Quantities::new();
    for group in &scenario.agents {
        let one = parse_text(&group.resources, &Role::star()).unwrap_or_default().quantities();
        (0..group.count).for_each(|_| total += &one);
    }
    Ok(LiveCluster { reader, agents, total, foreign: false })
}

fn quota(config: &QuotaConfig) -> Value {
    let amounts = |amounts: &std::collections::BTreeMap<String, protos::mesos::value::Scalar>| -> Value {
        amounts.iter().map(|(name, scalar)| (name.clone(), json!({ "value": scalar.value }))).collect()
    };
    json!({ "role": config.role, "guarantees": amounts(&config.guarantees), "limits": amounts(&config.limits) })
}

/// Examines an existing cluster.
pub(super) async fn join(reader: MasterArgs) -> Result<LiveCluster> {
    let agents = reader.read::<Agents>("/slaves").await?.slaves;
    let active: Vec<_> = agents.iter().filter(|agent| agent.active).collect();
    if active.is_empty() {
        bail!("the cluster of {} has no agents", reader.master);
    }
    let mut total = Quantities::new();
    for (name, amount) in active.iter().flat_map(|agent| agent.resources.scalars()) {
        total.add(&Name::from(name), Amount::from_f64(amount));
    }
    let others = reader.read::<Frameworks>("/frameworks").await?.frameworks;
    let others = others.iter().filter(|framework| framework.active).count();
    if others > 0 {
        stdio::err!("tepui: {others} other frameworks use this cluster, which changes shares and waits");
    }
    Ok(LiveCluster { agents: active.len(), reader, total, foreign: true })
}
