//! UPDATE_MAINTENANCE_SCHEDULE, START_MAINTENANCE and STOP_MAINTENANCE, and the legacy endpoints
//! (docs/mesos/maintenance.md).
//!
//! Only these calls change the mode of a machine. The start or end of a window changes nothing.

use cores::CallError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use protos::mesos::internal::ShutdownMessage;
use protos::mesos::maintenance::Schedule;
use protos::mesos::{MachineId, machine_info::Mode};

use crate::io::{Outbox, Output};
use crate::master::Master;
use crate::registry::{RegistryOp, without};
use crate::state::{Agent, AgentKey, Machine, MachineKey, Maintenance};
use crate::validate::{self, machine_text};

/// Reason that is reported for agents on a machine that goes down.
const DOWN: &str = "Operator initiated 'Machine DOWN'";

impl Master {
    /// Replaces the schedule. New machines drain; those that are no longer listed are up.
    pub(crate) fn update_schedule(&mut self, schedule: Schedule, out: &mut Outbox) -> Result<(), CallError> {
        validate::schedule(&schedule, &self.maintenance.machines).map_err(CallError::invalid)?;
        out.persist.push(RegistryOp::UpdateMaintenanceSchedule(schedule.clone()));
        let mut machines = BTreeMap::new();
        for window in &schedule.windows {
            for id in &window.machine_ids {
                let key = MachineKey::from(id);
                let mode = self.maintenance.machine(&key).map_or(Mode::Draining, |machine| machine.mode);
                let unavailability = Some(window.unavailability);
                machines.insert(key, Machine { id: id.clone(), mode, unavailability });
            }
        }
        let before = std::mem::replace(&mut self.maintenance.machines, Arc::new(machines));
        self.maintenance.schedule = Some(Arc::new(schedule));
        for key in
            self.agents_that(|_, machine| before.contains_key(machine) || self.maintenance.machine(machine).is_some())
        {
            let unavailability = self.agent(key).and_then(|agent| {
                self.maintenance.machine_of(&agent.info.hostname, &agent.pid).and_then(|machine| machine.unavailability)
            });
            self.set_unavailability(key, unavailability, out);
        }
        Ok(())
    }

    /// Takes draining machines down. Their agents are shut down, and removed with their tasks.
    pub(crate) fn start_maintenance(&mut self, ids: &[MachineId], out: &mut Outbox) -> Result<(), CallError> {
        let keys =
            machines_in(&self.maintenance, ids, Mode::Draining, "is not in DRAINING mode and cannot be brought down")?;
        out.persist.push(RegistryOp::StartMaintenance(ids.to_vec()));
        let machines = Arc::make_mut(&mut self.maintenance.machines);
        for (_, machine) in machines.iter_mut().filter(|(key, _)| keys.contains(key)) {
            machine.mode = Mode::Down;
        }
        for key in self.agents_that(|_, machine| keys.contains(machine)) {
            if let Some(agent) = self.agent(key) {
                out.push(Output::send(&agent.pid, ShutdownMessage { message: Some(DOWN.to_owned()) }));
            }
            self.remove_agent(key, DOWN, None, out);
        }
        Ok(())
    }

    /// Brings machines up that are down, and removes them from the schedule.
    pub(crate) fn stop_maintenance(&mut self, ids: &[MachineId], out: &mut Outbox) -> Result<(), CallError> {
        let keys = machines_in(&self.maintenance, ids, Mode::Down, "is not in DOWN mode and cannot be brought up")?;
        out.persist.push(RegistryOp::StopMaintenance(ids.to_vec()));
        Arc::make_mut(&mut self.maintenance.machines).retain(|key, _| !keys.contains(key));
        if let Some(schedule) = &mut self.maintenance.schedule {
            let schedule = Arc::make_mut(schedule);
            without(schedule, &keys);
        }
        self.maintenance.schedule.take_if(|schedule| schedule.windows.is_empty());
        Ok(())
    }

    fn agents_that(&self, wanted: impl Fn(&Agent, &MachineKey) -> bool) -> Vec<AgentKey> {
        let found = self.agents.iter().filter(|(_, agent)| wanted(agent, &MachineKey::of_agent(agent)));
        found.map(|(key, _)| key).collect()
    }

    /// Returns the text by which answers name the scheduled machine of an agent, or `None` if its machine is not in the
    /// schedule.
    pub(crate) fn scheduled_machine(&self, agent: &Agent) -> Option<String> {
        let machine = self.maintenance.machine_of(&agent.info.hostname, &agent.pid)?;
        Some(format!("{} ({})", machine.id.hostname(), machine.id.ip()))
    }
}

/// Returns the machines that a call names, if all of them are in `mode`.
fn machines_in(
    maintenance: &Maintenance,
    ids: &[MachineId],
    mode: Mode,
    words: &str,
) -> Result<BTreeSet<MachineKey>, CallError> {
    validate::machines(ids).map_err(CallError::invalid)?;
    for id in ids {
        let machine = maintenance.machine(&MachineKey::from(id));
        let why = match machine {
            None => "is not part of a maintenance schedule",
            Some(machine) if machine.mode != mode => words,
            Some(_) => continue,
        };
        return Err(CallError::invalid(format!("Machine '{}' {why}", machine_text(id))));
    }
    Ok(ids.iter().map(MachineKey::from).collect())
}
