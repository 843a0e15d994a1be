//! Machines under maintenance, and the schedule (docs/mesos/maintenance.md).
//!
//! It does not decide what a mode means for the agents of a machine; `operator/maintenance.rs` does.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Pid, ip_text};
use protos::mesos::internal::Registry;
use protos::mesos::machine_info::Mode;
use protos::mesos::maintenance::Schedule;
use protos::mesos::{MachineId, Unavailability};

use super::Agent;

/// Key of a machine. Hostnames that differ only in case are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineKey {
    hostname: String,
    ip: String,
}

impl MachineKey {
    /// Returns the key of a hostname and an address; either may be empty.
    pub fn new(hostname: &str, ip: &str) -> MachineKey {
        MachineKey { hostname: hostname.to_lowercase(), ip: ip.to_owned() }
    }
}

impl MachineKey {
    /// Returns the key of the machine of a process with this pid on the host with this name.
    pub(crate) fn of_process(hostname: &str, pid: &Pid) -> MachineKey {
        MachineKey::new(hostname, &ip_text(*pid.address().ip()))
    }

    /// Returns the key of the machine that an agent is on.
    pub(crate) fn of_agent(agent: &Agent) -> MachineKey {
        MachineKey::of_process(&agent.info.hostname, &agent.pid)
    }
}

impl From<&MachineId> for MachineKey {
    fn from(id: &MachineId) -> MachineKey {
        MachineKey::new(id.hostname(), id.ip())
    }
}

/// A machine that is scheduled for maintenance or down. Machines that are up have no entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Name of the machine as the operator has written it.
    pub id: MachineId,
    /// Mode of the machine: draining or down.
    pub mode: Mode,
    /// Maintenance window of the machine.
    pub unavailability: Option<Unavailability>,
}

/// Maintenance state of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Maintenance {
    /// Maintenance schedule; `None` if there is none, or all of it is done.
    pub schedule: Option<Arc<Schedule>>,
    /// Machines that are scheduled for maintenance or down.
    pub machines: Arc<BTreeMap<MachineKey, Machine>>,
}

impl Maintenance {
    /// Returns the maintenance state that former masters have left in the registry.
    pub(crate) fn recovered(registry: &Registry) -> Maintenance {
        let list = registry.machines.iter().flat_map(|list| &list.machines);
        let machines = list.filter(|machine| machine.info.mode() != Mode::Up).map(|machine| {
            let info = &machine.info;
            let row = Machine { id: info.id.clone(), mode: info.mode(), unavailability: info.unavailability };
            (MachineKey::from(&info.id), row)
        });
        Maintenance {
            machines: Arc::new(machines.collect()),
            schedule: registry.schedules.first().cloned().map(Arc::new),
        }
    }

    /// Returns whether the machine of the process with this pid on the host with this name is down.
    pub(crate) fn is_down(&self, hostname: &str, pid: &Pid) -> bool {
        self.machine_of(hostname, pid).is_some_and(|machine| machine.mode == Mode::Down)
    }

    /// Returns the machine of the process with this pid on the host with this name, or `None` if it is up.
    pub(crate) fn machine_of(&self, hostname: &str, pid: &Pid) -> Option<&Machine> {
        // Most often all machines are up, and no key is needed.
        if self.machines.is_empty() {
            return None;
        }
        self.machine(&MachineKey::of_process(hostname, pid))
    }

    /// Returns a machine, or `None` if it is up.
    pub fn machine(&self, key: &MachineKey) -> Option<&Machine> {
        self.machines.get(key)
    }
}
