//! Maintenance schedule and modes of machines in the registry (docs/mesos/maintenance.md).
//!
//! It does not check them; `operator/maintenance.rs` does.

use std::collections::{BTreeMap, BTreeSet};

use protos::mesos::internal::{Registry, registry};
use protos::mesos::maintenance::Schedule;
use protos::mesos::{MachineId, MachineInfo, machine_info::Mode};

use crate::state::MachineKey;

/// Replaces the schedule. New machines drain. Those that are no longer listed are up, and have no entry.
pub(super) fn update_schedule(registry: &mut Registry, schedule: &Schedule) {
    let mut listed = BTreeMap::new();
    for window in &schedule.windows {
        listed.extend(window.machine_ids.iter().map(|id| (MachineKey::from(id), (id, window.unavailability))));
    }
    let machines = &mut registry.machines.get_or_insert_default().machines;
    machines.retain_mut(|machine| {
        let found = listed.remove(&MachineKey::from(&machine.info.id));
        machine.info.unavailability = found.map(|(_, unavailability)| unavailability);
        found.is_some()
    });
    machines.extend(listed.into_values().map(|(id, unavailability)| {
        let (id, mode) = (id.clone(), Some(Mode::Draining as i32));
        registry::Machine { info: MachineInfo { id, mode, unavailability: Some(unavailability) } }
    }));
    if machines.is_empty() {
        registry.machines = None;
    }
    registry.schedules = vec![schedule.clone()];
}

pub(super) fn start(registry: &mut Registry, ids: &[MachineId]) {
    let ids: BTreeSet<MachineKey> = ids.iter().map(MachineKey::from).collect();
    let machines = registry.machines.iter_mut().flat_map(|list| &mut list.machines);
    for machine in machines.filter(|machine| ids.contains(&MachineKey::from(&machine.info.id))) {
        machine.info.mode = Some(Mode::Down as i32);
    }
}

pub(super) fn stop(registry: &mut Registry, ids: &[MachineId]) {
    let ids: BTreeSet<MachineKey> = ids.iter().map(MachineKey::from).collect();
    if let Some(list) = &mut registry.machines {
        list.machines.retain(|machine| !ids.contains(&MachineKey::from(&machine.info.id)));
    }
    registry.machines.take_if(|list| list.machines.is_empty());
    for schedule in &mut registry.schedules {
        without(schedule, &ids);
    }
    registry.schedules.retain(|schedule| !schedule.windows.is_empty());
}

/// Removes machines from a schedule, and windows that become empty.
pub(crate) fn without(schedule: &mut Schedule, ids: &BTreeSet<MachineKey>) {
    for window in &mut schedule.windows {
        window.machine_ids.retain(|id| !ids.contains(&MachineKey::from(id)));
    }
    schedule.windows.retain(|window| !window.machine_ids.is_empty());
}

#[cfg(test)]
mod tests {
    use protos::mesos::maintenance::Window;
    use protos::mesos::{TimeInfo, Unavailability};

    use super::*;

    fn id(name: &str) -> MachineId {
        MachineId { hostname: Some(name.to_owned()), ip: None }
    }

    fn window(names: &[&str], start: i64) -> Window {
        let unavailability = Unavailability { start: TimeInfo { nanoseconds: start }, duration: None };
        Window { machine_ids: names.iter().map(|name| id(name)).collect(), unavailability }
    }

    fn modes(registry: &Registry) -> Vec<(&str, Mode, i64)> {
        let machines = registry.machines.iter().flat_map(|list| &list.machines);
        let row = |info: &MachineInfo| info.unavailability.unwrap_or_default().start.nanoseconds;
        machines.map(|m| (m.info.id.hostname(), m.info.mode(), row(&m.info))).collect()
    }

    #[test]
    fn machines_follow_the_schedule() {
        let mut registry = Registry::default();
        update_schedule(&mut registry, &Schedule { windows: vec![window(&["a", "b"], 1), window(&["c"], 2)] });
        start(&mut registry, &[id("b")]);
        assert_eq!(modes(&registry), [("a", Mode::Draining, 1), ("b", Mode::Down, 1), ("c", Mode::Draining, 2)]);
        update_schedule(&mut registry, &Schedule { windows: vec![window(&["b", "c"], 3)] });
        assert_eq!(modes(&registry), [("b", Mode::Down, 3), ("c", Mode::Draining, 3)]);
        stop(&mut registry, &[id("b")]);
        assert_eq!(registry.schedules, [Schedule { windows: vec![window(&["c"], 3)] }]);
        stop(&mut registry, &[id("c")]);
        assert!(registry.schedules.is_empty() && modes(&registry).is_empty());
    }
}
