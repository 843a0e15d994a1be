//! Which ports containers on the host's network listen on (the isolator `network/ports`, mesos-features.md AGT-111).
//!
//! Nothing keeps a process from listening where it likes; it is looked for now and then, on a thread that may block. Who
//! listens on a port that it does not hold is told in the log, and ended with `--enforce_container_ports`. Only TCP is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use agent::{Agent, ContainerName, ContainerSpec, Executor, ExecutorState, Input};
use containers::Listeners;
use protos::mesos;
use resources::{Format, Name, Ranges, Resource, Resources, Role};

use super::containers::Containers;
use crate::driver::Driver;
use crate::flags::{FlagError, Flags};

/// The isolator.
const NAME: &str = "network/ports";
/// The shortest time between two looks.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// How ports are watched.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    interval: Duration,
    enforce: bool,
    /// Others do not matter; all do if there is none.
    within: Option<Ranges>,
}

impl Ports {
    /// Reads the flags; none without the isolator. `own` is what the agent has.
    ///
    /// # Errors
    /// Flags that contradict each other, or that need the isolator, or a range that cannot be read.
    pub(super) fn read(flags: &Flags, own: &[mesos::Resource]) -> Result<Option<Ports>, FlagError> {
        let refused = |name: &'static str, why: String| FlagError::Refused { name, why };
        const RANGE: &str = "container_ports_isolated_range";
        let range = flags.get(RANGE).filter(|text| !text.is_empty());
        let own_only = flags.on("check_agent_port_range_only");
        if !super::has_isolator(flags, &[NAME]) {
            let set = [(RANGE, range.is_some()), ("check_agent_port_range_only", own_only)];
            let set = set.into_iter().chain([("enforce_container_ports", flags.on("enforce_container_ports"))]);
            return match set.into_iter().find(|(_, set)| *set) {
                Some((name, _)) => Err(refused(name, format!("needs the isolator {NAME}"))),
                None => Ok(None),
            };
        }
        let within = match (range, own_only) {
            (Some(_), true) => return Err(refused(RANGE, "excludes --check_agent_port_range_only".to_owned())),
            (Some(text), false) => {
                let parsed = resources::parse_text(&format!("ports:{text}"), &Role::star());
                let ranges = parsed.map_err(|error| refused(RANGE, error.to_string()))?.ports();
                let fits = ranges.iter().all(|range| range.end <= u64::from(u16::MAX));
                if ranges.is_empty() || !fits {
                    return Err(refused(RANGE, format!("'{text}' is no range of ports like '[1024-65535]'")));
                }
                Some(ranges)
            }
            (None, true) => Some(resources::from_proto(own).unwrap_or_default().ports()),
            (None, false) => None,
        };
        let interval = flags.duration("container_ports_watch_interval").unwrap_or_default().max(INTERVAL_MIN);
        Ok(Some(Ports { interval, enforce: flags.on("enforce_container_ports"), within }))
    }

    /// Watches from now on.
    pub(super) fn watch(self, driver: Driver<Agent>, live: Containers) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move {
            let mut told = BTreeMap::new();
            loop {
                tokio::time::sleep(self.interval).await;
                let mut held = held(&driver.read(Agent::snapshot).await.frameworks);
                held.extend(live.ports().into_iter().map(|(container, ports)| (container, Ranges::new(ports))));
                let (looking, rules) = (live.clone(), self.clone());
                let looked = tokio::task::spawn_blocking(move || rules.look(&looking, &held)).await;
                let found = match looked {
                    Ok(Ok(found)) => found,
                    Ok(Err(error)) => {
                        tracing::warn!("cannot look at the ports of containers: {error}");
                        continue;
                    }
                    // A failure of one look is no reason not to look again.
                    Err(_) => continue,
                };
                for (container, ports) in &found {
                    let message = said(container, ports);
                    if told.get(container) != Some(ports) {
                        tracing::warn!("{message}");
                    }
                    if self.enforce {
                        driver.submit(exceeded(container, ports, message));
                        live.destroy(container.clone());
                    }
                }
                told = found;
            }
        })
    }

    /// The containers that listen where they may not, and where.
    fn look(
        &self,
        live: &Containers,
        held: &BTreeMap<ContainerName, Ranges>,
    ) -> std::io::Result<BTreeMap<ContainerName, Ranges>> {
        let listeners = Listeners::scan()?;
        if listeners.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut found = BTreeMap::new();
        for (container, processes) in live.processes() {
            // What runs inside another container shares what that one holds.
            let Some(held) = held.get(&container.root()) else { continue };
            let ports: BTreeSet<u16> = processes.into_iter().flat_map(|pid| listeners.of(pid)).collect();
            let wrong = self.wrong(&ports, held);
            if !wrong.is_empty() {
                found.insert(container, wrong);
            }
        }
        Ok(found)
    }

    /// Those of `ports` that matter and are not held.
    fn wrong(&self, ports: &BTreeSet<u16>, held: &Ranges) -> Ranges {
        let matter = |port: &u64| {
            let single = Ranges::single(*port, *port);
            self.within.as_ref().is_none_or(|within| within.contains(&single)) && !held.contains(&single)
        };
        let ports = ports.iter().map(|port| u64::from(*port)).filter(matter);
        Ranges::new(ports.map(|port| (port, port)))
    }
}

/// The ports that a container holds, as ranges.
pub(super) type Held = Vec<(u64, u64)>;

/// What a container by itself holds; none if it is one of an executor, or within another one.
pub(super) fn own(container: &ContainerName, spec: &ContainerSpec) -> Option<Held> {
    if spec.latest.is_some() || container.parent().is_some() {
        return None;
    }
    let ports = resources::from_proto(&spec.resources).unwrap_or_default().ports();
    Some(ports.iter().map(|range| (range.begin, range.end)).collect())
}

/// The ports that each executor's container holds.
fn held(frameworks: &BTreeMap<base::FrameworkId, std::sync::Arc<agent::Framework>>) -> BTreeMap<ContainerName, Ranges> {
    let executors = frameworks.values().flat_map(|framework| framework.executors.values());
    let running = executors.filter(|executor| executor.state != ExecutorState::Terminated);
    let ports = |executor: &Executor| resources::from_proto(&executor.resources()).unwrap_or_default().ports();
    running.map(|executor| (executor.container.clone(), ports(executor))).collect()
}

fn resource(ports: &Ranges) -> Resources {
    Resources::from(Resource::ranges(Name::Ports, ports.clone()))
}

/// In Mesos's words.
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
    use crate::flags::Part;

    fn read(words: &[&str]) -> Result<Option<Ports>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let flags = Flags::load(Part::Agent, &words, std::iter::empty()).map_err(|error| error.to_string())?;
        let own = resource(&Ranges::single(31000, 31009)).to_proto(Format::PostRefinement);
        Ports::read(&flags, &own).map_err(|error| error.to_string())
    }

    const ON: &str = "--isolation=network/ports";

    #[test]
    fn flags() {
        assert!(read(&[]).unwrap().is_none());
        assert_eq!(read(&[ON]).unwrap().unwrap().interval, Duration::from_secs(30));
        for (words, said) in [
            (&["--enforce_container_ports"][..], "'--enforce_container_ports': needs the isolator network/ports"),
            (&["--check_agent_port_range_only"], "needs the isolator"),
            (&["--container_ports_isolated_range=[1-2]"], "needs the isolator"),
            (&[ON, "--check_agent_port_range_only", "--container_ports_isolated_range=[1-2]"], "excludes"),
            (&[ON, "--container_ports_isolated_range=1-2"], "'--container_ports_isolated_range'"),
            (&[ON, "--container_ports_isolated_range=[1-70000]"], "no range of ports"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }

    #[test]
    fn what_is_wrong() {
        let (held, ports) = (Ranges::new([(31000, 31001)]), [80, 31001, 31002, 31003].into());
        let wrong = |words: &[&str]| {
            let all: Vec<&str> = [&[ON], words].concat();
            read(&all).unwrap().unwrap().wrong(&ports, &held)
        };
        assert_eq!(wrong(&[]), Ranges::new([(80, 80), (31002, 31003)]));
        assert_eq!(wrong(&["--check_agent_port_range_only"]), Ranges::new([(31002, 31003)]));
        assert_eq!(wrong(&["--container_ports_isolated_range=[1-1024]"]), Ranges::single(80, 80));
        let container = ContainerName::top(&base::ContainerId::new("c").unwrap());
        assert_eq!(
            said(&container, &wrong(&[])),
            "Container c is listening on unallocated port(s): [80-80, 31002-31003]"
        );
    }
}
