//! Validation of maintenance schedules and lists of machines (MNT-02).

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use protos::mesos::MachineId;
use protos::mesos::machine_info::Mode;
use protos::mesos::maintenance::Schedule;

use crate::state::{Machine, MachineKey};

/// Checks a schedule against the machines that are scheduled or down now.
///
/// # Errors
/// The complete text of the answer.
pub(crate) fn schedule(schedule: &Schedule, machines: &BTreeMap<MachineKey, Machine>) -> Result<(), String> {
    let mut listed = BTreeSet::new();
    for window in &schedule.windows {
        if window.machine_ids.is_empty() {
            return Err("List of machines in the maintenance window is empty".to_owned());
        }
        if window.unavailability.duration.is_some_and(|duration| duration.nanoseconds < 0) {
            return Err("Unavailability 'duration' is negative".to_owned());
        }
        each_once(&window.machine_ids, &mut listed)?;
    }
    let down = machines.iter().filter(|(_, machine)| machine.mode == Mode::Down);
    for (key, machine) in down {
        if !listed.contains(key) {
            let id = machine_text(&machine.id);
            return Err(format!("Machine '{id}' is deactivated and cannot be removed from the schedule"));
        }
    }
    Ok(())
}

/// Checks the form of a list of machines.
///
/// # Errors
/// The complete text of the answer.
pub(crate) fn machines(ids: &[MachineId]) -> Result<(), String> {
    if ids.is_empty() {
        return Err("List of machines is empty".to_owned());
    }
    each_once(ids, &mut BTreeSet::new())
}

fn each_once(ids: &[MachineId], listed: &mut BTreeSet<MachineKey>) -> Result<(), String> {
    for id in ids {
        if id.hostname().is_empty() && id.ip().is_empty() {
            return Err("Both 'hostname' and 'ip' for a machine are empty".to_owned());
        }
        if !id.ip().is_empty() && id.ip().parse::<Ipv4Addr>().is_err() {
            return Err(format!("Failed to parse IP '{}'", id.ip()));
        }
        if !listed.insert(MachineKey::from(id)) {
            return Err(format!("Machine '{}' appears more than once in the schedule", machine_text(id)));
        }
    }
    Ok(())
}

/// Returns a machine as Mesos names it in messages, as JSON: `{"hostname":"h","ip":"10.0.0.1"}`.
pub(crate) fn machine_text(id: &MachineId) -> String {
    String::from_utf8_lossy(&protos::json::ToJson::json(id, protos::json::Dialect::V0)).into_owned()
}
