//! Builds operator calls from the words of a script.

use std::collections::BTreeMap;

use base::{FrameworkId, TaskId};
use protos::mesos::maintenance::{Schedule, Window};
use protos::mesos::master::{Call, call};
use protos::mesos::quota::{QuotaConfig, QuotaRequest};
use protos::mesos::{self, MachineId};

use super::build::{agent_id, framework_id, reserved, resources, volumes};
use super::script::Script;
use super::words::Words;
use crate::KillTask;

/// Builds a call from `operator teardown f`, `operator gone|deactivate|reactivate|drain a`, `operator weights role:2`;
/// quotas, reservations, volumes and maintenance as in the functions below.
pub(super) fn operator(script: &Script, words: &Words<'_>) -> Result<Call, String> {
    let (slave_id, mut call) = (agent_id(script, words.at(2)), Call::default());
    match words.at(1) {
        "teardown" => {
            call.set_type(call::Type::Teardown);
            call.teardown = Some(call::Teardown { framework_id: framework_id(script, words.at(2)) });
        }
        "gone" => {
            call.set_type(call::Type::MarkAgentGone);
            call.mark_agent_gone = Some(call::MarkAgentGone { slave_id });
        }
        "deactivate" => {
            call.set_type(call::Type::DeactivateAgent);
            call.deactivate_agent = Some(call::DeactivateAgent { slave_id });
        }
        "reactivate" => {
            call.set_type(call::Type::ReactivateAgent);
            call.reactivate_agent = Some(call::ReactivateAgent { slave_id });
        }
        "drain" => {
            call.set_type(call::Type::DrainAgent);
            let mark_gone = words.has("mark_gone").then_some(true);
            call.drain_agent = Some(call::DrainAgent { slave_id, max_grace_period: None, mark_gone });
        }
        "weights" => {
            call.set_type(call::Type::UpdateWeights);
            let read = |text: &str| {
                let (role, weight) = text.split_once(':').unwrap_or((text, "1"));
                mesos::WeightInfo { role: Some(role.to_owned()), weight: weight.parse().unwrap_or(f64::NAN) }
            };
            let weight_infos = words.from(2).into_iter().map(read).collect();
            call.update_weights = Some(call::UpdateWeights { weight_infos });
        }
        "quota" | "set-quota" | "remove-quota" => quota(words, &mut call),
        "schedule" | "down" | "up" => maintenance(words, &mut call),
        _ => on_resources(slave_id, words, &mut call)?,
    }
    Ok(call)
}

/// Builds a call from `operator kill f t`.
pub(super) fn kill(script: &Script, words: &Words<'_>) -> Result<KillTask, String> {
    let framework = FrameworkId::new(&framework_id(script, words.at(2)).value).map_err(|why| why.to_string())?;
    let task = TaskId::new(words.at(3)).map_err(|why| why.to_string())?;
    Ok(KillTask { framework, task, kill_policy: None })
}

/// Builds a call from `operator quota a/cpus:1/cpus:2;mem:3 b//cpus:1 force`: role, guarantees, limits; `~` stands for
/// a slash in a role. Also from `operator set-quota a cpus:1 force`, `operator remove-quota a`.
fn quota(words: &Words<'_>, call: &mut Call) {
    let force = words.has("force").then_some(true);
    let named = words.from(2).into_iter().filter(|word| *word != "force");
    match words.at(1) {
        "quota" => {
            let config = |text: &str| {
                let mut parts = text.split('/');
                let role = parts.next().unwrap_or_default().replace('~', "/");
                let guarantees = scalars(parts.next().unwrap_or_default());
                QuotaConfig { role, guarantees, limits: scalars(parts.next().unwrap_or_default()) }
            };
            call.set_type(call::Type::UpdateQuota);
            call.update_quota = Some(call::UpdateQuota { force, quota_configs: named.map(config).collect() });
        }
        "set-quota" => {
            let mut guarantee = match words.get("role") {
                Some(_) => reserved(words, words.at(3)),
                None => resources(words.at(3)),
            };
            if words.has("twice") {
                guarantee.extend(guarantee.clone());
            }
            let role = (words.at(2) != "-").then(|| words.at(2).to_owned());
            call.set_type(call::Type::SetQuota);
            call.set_quota = Some(call::SetQuota { quota_request: QuotaRequest { force, role, guarantee } });
        }
        _ => {
            call.set_type(call::Type::RemoveQuota);
            call.remove_quota = Some(call::RemoveQuota { role: words.at(2).to_owned() });
        }
    }
}

fn scalars(text: &str) -> BTreeMap<String, mesos::value::Scalar> {
    let entries = text.split(';').filter_map(|entry| entry.split_once(':'));
    entries
        .map(|(name, value)| (name.to_owned(), mesos::value::Scalar { value: value.parse().unwrap_or(f64::NAN) }))
        .collect()
}

/// Builds a call from `operator schedule h@10.0.0.1,g@:60:30 i@:5`: windows of machines, start in seconds and duration.
/// Also from `operator down h@10.0.0.1`, `operator up h@`.
fn maintenance(words: &Words<'_>, call: &mut Call) {
    let machine = |text: &str| {
        let (hostname, ip) = text.split_once('@').unwrap_or((text, ""));
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        MachineId { hostname: some(hostname), ip: some(ip) }
    };
    let machines = || words.from(2).into_iter().map(machine).collect();
    match words.at(1) {
        "schedule" => {
            let seconds = |text: &str| text.parse::<i64>().unwrap_or_default() * 1_000_000_000;
            let window = |text: &str| {
                let mut parts = text.split(':');
                let ids = parts.next().unwrap_or_default().split(',').filter(|id| *id != "-").map(machine).collect();
                let start = mesos::TimeInfo { nanoseconds: seconds(parts.next().unwrap_or_default()) };
                let duration = parts.next().map(|text| mesos::DurationInfo { nanoseconds: seconds(text) });
                Window { machine_ids: ids, unavailability: mesos::Unavailability { start, duration } }
            };
            let schedule = Schedule { windows: words.from(2).into_iter().map(window).collect() };
            call.set_type(call::Type::UpdateMaintenanceSchedule);
            call.update_maintenance_schedule = Some(call::UpdateMaintenanceSchedule { schedule });
        }
        "down" => {
            call.set_type(call::Type::StartMaintenance);
            call.start_maintenance = Some(call::StartMaintenance { machines: machines() });
        }
        _ => {
            call.set_type(call::Type::StopMaintenance);
            call.stop_maintenance = Some(call::StopMaintenance { machines: machines() });
        }
    }
}

/// Builds a call from `operator reserve a cpus:1 role=r source=s`, `operator unreserve a cpus:1 role=r`, `operator
/// create|destroy a 64 role=r`, `operator grow|shrink a 64 by=32 role=r`.
fn on_resources(slave_id: mesos::SlaveId, words: &Words<'_>, call: &mut Call) -> Result<(), String> {
    let amount = words.at(3);
    match words.at(1) {
        "reserve" => {
            let source = match words.get("source") {
                Some(role) => reserved(&Words::new(&format!("role={role}")), amount),
                None => Vec::new(),
            };
            let resources = reserved(words, amount);
            call.set_type(call::Type::ReserveResources);
            call.reserve_resources = Some(call::ReserveResources { slave_id, source, resources });
        }
        "unreserve" => {
            let resources = match words.get("volume") {
                Some(_) => volumes(words, amount),
                None => reserved(words, amount),
            };
            call.set_type(call::Type::UnreserveResources);
            call.unreserve_resources = Some(call::UnreserveResources { slave_id, resources });
        }
        "create" => {
            call.set_type(call::Type::CreateVolumes);
            call.create_volumes = Some(call::CreateVolumes { slave_id, volumes: volumes(words, amount) });
        }
        "destroy" => {
            call.set_type(call::Type::DestroyVolumes);
            call.destroy_volumes = Some(call::DestroyVolumes { slave_id, volumes: volumes(words, amount) });
        }
        "grow" => {
            let volume = volumes(words, amount).pop().unwrap_or_default();
            let by = format!("disk:{}", words.get("by").unwrap_or("1"));
            let addition = reserved(words, &by).pop().unwrap_or_default();
            call.set_type(call::Type::GrowVolume);
            call.grow_volume = Some(call::GrowVolume { slave_id: Some(slave_id), volume, addition });
        }
        "shrink" => {
            let volume = volumes(words, amount).pop().unwrap_or_default();
            let subtract = mesos::value::Scalar { value: words.number("by").unwrap_or(1.0) };
            call.set_type(call::Type::ShrinkVolume);
            call.shrink_volume = Some(call::ShrinkVolume { slave_id: Some(slave_id), volume, subtract });
        }
        other => return Err(format!("what is '{other}'?")),
    }
    Ok(())
}
