//! Isolator `network/ports`, which checks the ports that containers on the host's network listen on (AGT-111).
//!
//! Nothing prevents a process from listening on a port that its container does not hold. A blocking thread searches for
//! such ports at intervals. They are logged, and with `--enforce_container_ports` the container is destroyed. Only TCP
//! is checked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use agent::{ContainerName, ContainerSpec, Input};
use containers::Listeners;
use protos::mesos;
use resources::{Format, Name, Ranges, Resource, Resources};
use tokio::task::JoinHandle;

use crate::composing::{ComposingContainerizer, ContainerResources, ListContainerResources};
use crate::config::{self, PortRange};
use crate::mesos::isolators::Isolator;

/// Shortest interval between two checks.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The isolator `network/ports`.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    interval: Duration,
    enforce: bool,
    /// Ports that are checked; `None`: all ports.
    within: Option<Ranges>,
}

impl Isolator for Ports {
    fn watch(self: Arc<Self>, running: ComposingContainerizer, held: ListContainerResources) -> Option<JoinHandle<()>> {
        Some(tokio::spawn(async move {
            let mut logged = BTreeMap::new();
            loop {
                tokio::time::sleep(self.interval).await;
                let ports = |holding: ContainerResources| (holding.container, holding.resources.ports());
                let mut held: BTreeMap<_, _> = held().await.into_iter().map(ports).collect();
                held.extend(running.ports().into_iter().map(|(container, ports)| (container, Ranges::new(ports))));
                let (looking, rules) = (running.clone(), self.clone());
                let looked = tokio::task::spawn_blocking(move || rules.look(&looking, &held)).await;
                let found = match looked {
                    Ok(Ok(found)) => found,
                    Ok(Err(error)) => {
                        tracing::warn!("cannot look at the ports of containers: {error}");
                        continue;
                    }
                    // A panic in one check must not end the task.
                    Err(_) => continue,
                };
                for (container, ports) in &found {
                    let message = said(container, ports);
                    if logged.get(container) != Some(ports) {
                        tracing::warn!("{message}");
                    }
                    if self.enforce {
                        running.report(exceeded(container, ports, message));
                        running.destroy(container.clone());
                    }
                }
                logged = found;
            }
        }))
    }
}

impl Ports {
    /// Creates the isolator; `own` are the agent's resources.
    pub(crate) fn new(config: &config::Ports, own: &[mesos::Resource]) -> Ports {
        let within = match &config.within {
            PortRange::All => None,
            PortRange::Agents => Some(resources::from_proto(own).unwrap_or_default().ports()),
            PortRange::Only(ranges) => Some(ranges.clone()),
        };
        Ports { interval: config.interval.max(INTERVAL_MIN), enforce: config.enforce, within }
    }

    /// Returns the containers that listen on ports that they do not hold, with these ports.
    fn look(
        &self,
        live: &ComposingContainerizer,
        held: &BTreeMap<ContainerName, Ranges>,
    ) -> std::io::Result<BTreeMap<ContainerName, Ranges>> {
        let listeners = Listeners::scan()?;
        if listeners.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut found = BTreeMap::new();
        for (container, processes) in live.processes() {
            // Nested containers use the ports that the top-level container holds.
            let Some(held) = held.get(&container.root()) else { continue };
            let ports: BTreeSet<u16> = processes.into_iter().flat_map(|pid| listeners.of(pid)).collect();
            let wrong = self.wrong(&ports, held);
            if !wrong.is_empty() {
                found.insert(container, wrong);
            }
        }
        Ok(found)
    }

    /// Returns those of `ports` that are checked and are not held.
    fn wrong(&self, ports: &BTreeSet<u16>, held: &Ranges) -> Ranges {
        let matter = |port: &u64| {
            let single = Ranges::single(*port, *port);
            self.within.as_ref().is_none_or(|within| within.contains(&single)) && !held.contains(&single)
        };
        let ports = ports.iter().map(|port| u64::from(*port)).filter(matter);
        Ranges::new(ports.map(|port| (port, port)))
    }
}

/// Ports that a container holds, as ranges.
pub(crate) type HeldPorts = Vec<(u64, u64)>;

/// Returns the ports of a standalone container; `None` for executors and nested containers.
pub(crate) fn own(container: &ContainerName, spec: &ContainerSpec) -> Option<HeldPorts> {
    if spec.latest.is_some() || container.parent().is_some() {
        return None;
    }
    let ports = resources::from_proto(&spec.resources).unwrap_or_default().ports();
    Some(ports.iter().map(|range| (range.begin, range.end)).collect())
}

fn resource(ports: &Ranges) -> Resources {
    Resources::from(Resource::ranges(Name::Ports, ports.clone()))
}

/// Returns the message about a container's ports, in Mesos's words.
fn said(container: &ContainerName, ports: &Ranges) -> String {
    format!("Container {container} is listening on unallocated port(s): {ports}")
}

fn exceeded(container: &ContainerName, ports: &Ranges, message: String) -> Input {
    Input::ContainerLimited {
        container: container.clone(),
        reason: mesos::task_status::Reason::ContainerLimitation,
        message,
        resources: resource(ports).to_proto(Format::PostRefinement),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong() {
        let (held, ports) = (Ranges::new([(31000, 31001)]), [80, 31001, 31002, 31003].into());
        let own = resource(&Ranges::single(31000, 31009)).to_proto(Format::PostRefinement);
        let wrong = |within: PortRange| {
            let config = config::Ports { within, ..config::Ports::default() };
            Ports::new(&config, &own).wrong(&ports, &held)
        };
        assert_eq!(wrong(PortRange::All), Ranges::new([(80, 80), (31002, 31003)]));
        assert_eq!(wrong(PortRange::Agents), Ranges::new([(31002, 31003)]));
        assert_eq!(wrong(PortRange::Only(Ranges::single(1, 1024))), Ranges::single(80, 80));
        let container = ContainerName::top(&base::ContainerId::new("c").unwrap());
        assert_eq!(
            said(&container, &wrong(PortRange::All)),
            "Container c is listening on unallocated port(s): [80-80, 31002-31003]"
        );
    }
}
