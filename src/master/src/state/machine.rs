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

/// Names a machine: two names are one if they differ only in the case of the host's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MachineKey {
    hostname: String,
    ip: String,
}

impl MachineKey {
    /// The machine of that host name and address; either may be empty.
    pub fn new(hostname: &str, ip: &str) -> MachineKey {
        MachineKey { hostname: hostname.to_lowercase(), ip: ip.to_owned() }
    }
}

impl MachineKey {
    /// The machine of the process with this pid on the host with this name.
    pub(crate) fn of_process(hostname: &str, pid: &Pid) -> MachineKey {
        MachineKey::new(hostname, &ip_text(*pid.address().ip()))
    }

    /// The machine that an agent is on.
    pub(crate) fn of_agent(agent: &Agent) -> MachineKey {
        MachineKey::of_process(&agent.info.hostname, &agent.pid)
    }
}

impl From<&MachineId> for MachineKey {
    fn from(id: &MachineId) -> MachineKey {
        MachineKey::new(id.hostname(), id.ip())
    }
}

/// A machine that is scheduled or down. One that is up has no entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name as the operator has written it.
    pub id: MachineId,
    /// Draining or down.
    pub mode: Mode,
    /// When it is not to be counted on.
    pub unavailability: Option<Unavailability>,
}

/// The maintenance of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Maintenance {
    /// The schedule; `None` if there is none, or all of it is done.
    pub schedule: Option<Arc<Schedule>>,
    /// Machines that are scheduled or down.
    pub machines: Arc<BTreeMap<MachineKey, Machine>>,
}

impl Maintenance {
    /// The maintenance that the masters before have scheduled.
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

    /// Whether the machine of the process with this pid on the host with this name is down.
    pub(crate) fn is_down(&self, hostname: &str, pid: &Pid) -> bool {
        self.machine_of(hostname, pid).is_some_and(|machine| machine.mode == Mode::Down)
    }

    /// The machine of the process with this pid on the host with this name, unless it is up.
    pub(crate) fn machine_of(&self, hostname: &str, pid: &Pid) -> Option<&Machine> {
        // Mostly all are up, and no key is needed.
        if self.machines.is_empty() {
            return None;
        }
        self.machine(&MachineKey::of_process(hostname, pid))
    }

    /// The machine, unless it is up.
    pub fn machine(&self, key: &MachineKey) -> Option<&Machine> {
        self.machines.get(key)
    }
}
