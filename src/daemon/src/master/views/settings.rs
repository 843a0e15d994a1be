//! Documents of operators' settings: quotas, and the maintenance schedule with its state (OPM-35, OPM-36, OPM-41).

use std::collections::BTreeMap;

use master::{MachineKey, Snapshot};
use protos::mesos::machine_info::Mode;
use protos::mesos::maintenance::{ClusterStatus, Schedule, cluster_status::DrainingMachine};
use protos::mesos::quota::{QuotaConfig, QuotaInfo, QuotaStatus};
use resources::{Format, Quantities, Resource, Resources};

use super::visibility::Visibility;

/// Returns the document of `/quota` and GET_QUOTA: each quota as a `QuotaConfig` and in the older form, a `QuotaInfo`.
pub(in crate::master) fn quota(snapshot: &Snapshot, visibility: &Visibility) -> QuotaStatus {
    let mut status = QuotaStatus::default();
    for (role, quota) in snapshot.quotas.iter().filter(|(role, _)| visibility.quota(role.as_str())) {
        let role = role.as_str().to_owned();
        let info = QuotaInfo { role: Some(role.clone()), principal: None, guarantee: plain(&quota.guarantees) };
        #[allow(deprecated)]
        status.infos.push(info);
        let (guarantees, limits) = (quota.guarantees.to_map(), quota.limits.to_map());
        status.configs.push(QuotaConfig { role, guarantees, limits });
    }
    for role in snapshot.emptied_quotas.iter().filter(|role| visibility.quota(role.as_str())) {
        status.configs.push(QuotaConfig { role: role.as_str().to_owned(), ..QuotaConfig::default() });
    }
    status
}

fn plain(amounts: &Quantities) -> Vec<protos::mesos::Resource> {
    let resources: Resources = amounts.iter().map(|(name, amount)| Resource::scalar(name, amount)).collect();
    resources.to_proto(Format::PostRefinement)
}

/// Returns the document of `/maintenance/schedule` and GET_MAINTENANCE_SCHEDULE.
pub(in crate::master) fn schedule(snapshot: &Snapshot, visibility: &Visibility) -> Schedule {
    if !visibility.maintenance().0 {
        return Schedule::default();
    }
    snapshot.maintenance.schedule.as_deref().cloned().unwrap_or_default()
}

/// Returns the document of `/maintenance/status` and GET_MAINTENANCE_STATUS: draining machines, with the frameworks'
/// answers to inverse offers, and machines that are down.
pub(in crate::master) fn maintenance_status(snapshot: &Snapshot, visibility: &Visibility) -> ClusterStatus {
    if !visibility.maintenance().1 {
        return ClusterStatus::default();
    }
    let mut answers: BTreeMap<MachineKey, Vec<_>> = BTreeMap::new();
    for agent in snapshot.agents.values().filter(|agent| !agent.inverse_answers.is_empty()) {
        let machine = MachineKey::new(&agent.info.hostname, &agent.pid.address().ip().to_string());
        answers.entry(machine).or_default().extend(agent.inverse_answers.values().cloned());
    }
    let mut status = ClusterStatus::default();
    for (key, machine) in &*snapshot.maintenance.machines {
        let id = machine.id.clone();
        match machine.mode {
            Mode::Draining => {
                let statuses = answers.remove(key).unwrap_or_default();
                status.draining_machines.push(DrainingMachine { id, statuses });
            }
            Mode::Down => status.down_machines.push(id),
            Mode::Up => {}
        }
    }
    status
}
