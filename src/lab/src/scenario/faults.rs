//! The table `[[faults]]` of a scenario, and its rules.
//!
//! `run/faults.rs` injects the faults.

use std::time::Duration;

use serde::Deserialize;

use super::error::InvalidField;
use super::schema::{Scenario, one_small};
use crate::span::Span;
use crate::world::Fidelity;

/// The largest mean number of times that a fault may happen in a run; each affected agent counts.
const MOST_FAULTS: u128 = 100_000;

/// The kinds of faults in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultType {
    /// A process crashes, and restarts with its durable state. Executors keep running.
    Crash,
    /// The master ends, and another one leads on another host, with the same registry.
    Failover,
    /// An agent's host stops with all its processes, and starts again.
    Reboot,
    /// No messages pass between a process and the master. If messages were lost, the connection breaks at the end.
    Partition,
    /// Messages between a process and the master are delayed, and all arrive at the end.
    Stall,
    /// The connection between a process and the master breaks, and messages on their way are lost.
    Cut,
    /// Disk writes of a process take longer.
    SlowDisk,
}

/// A fault of a scenario, which happens once or repeatedly.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultPart {
    /// Kind of the fault.
    pub what: FaultType,
    /// Target of the fault: `master`, an agent by its host name, a group of agents by its name, or a framework by its
    /// name.
    pub who: Option<String>,
    /// Number of agents of a group, drawn each time.
    #[serde(default = "one_small")]
    pub count: u32,
    /// Time of a fault that happens once.
    pub at: Option<Span>,
    /// Interval of a fault that happens at regular times.
    pub every: Option<Span>,
    /// Mean interval of a fault that happens at random times.
    pub poisson: Option<Span>,
    /// Earliest time of the first fault.
    #[serde(default)]
    pub from: Span,
    /// Latest time of the last fault.
    pub until: Option<Span>,
    /// Duration of the fault, or time until a process is started again.
    #[serde(default, rename = "for")]
    pub lasts: Span,
    /// Additional time of each write.
    pub by: Option<Span>,
}

/// The target of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Master,
    /// Agents by their numbers, from which the affected ones are drawn each time.
    Agents(Vec<usize>),
    /// A framework by its number.
    Framework(usize),
}

impl FaultPart {
    /// Returns the target; `None` if the name is unknown.
    pub(crate) fn target(&self, scenario: &Scenario) -> Option<Target> {
        let Some(who) = self.who.as_deref() else {
            return (self.what == FaultType::Failover).then_some(Target::Master);
        };
        if who == "master" {
            return Some(Target::Master);
        }
        let (mut first, mut of_group, mut of_name) = (0, Vec::new(), None);
        for group in &scenario.agents {
            let count = group.count as usize;
            if group.name == who {
                of_group.extend(first..first + count);
            }
            let number = who.strip_prefix(&group.name).and_then(|number| number.parse::<usize>().ok());
            of_name = of_name.or(number.filter(|number| *number < count).map(|number| first + number));
            first += count;
        }
        if !of_group.is_empty() {
            return Some(Target::Agents(of_group));
        }
        of_name.map(|agent| Target::Agents(vec![agent])).or_else(|| framework(scenario, who).map(Target::Framework))
    }
}

fn framework(scenario: &Scenario, who: &str) -> Option<usize> {
    let mut first = 0;
    for part in &scenario.frameworks {
        let count = part.count as usize;
        if count == 1 && part.name == who {
            return Some(first);
        }
        let number = who.strip_prefix(&part.name).and_then(|rest| rest.strip_prefix('-')?.parse::<usize>().ok());
        if let Some(number) = number.filter(|number| count > 1 && *number < count) {
            return Some(first + number);
        }
        first += count;
    }
    None
}

pub(super) fn check(scenario: &Scenario) -> Result<(), InvalidField> {
    for (n, fault) in scenario.faults.iter().enumerate() {
        one_of(fault, scenario).map_err(|broken| broken.below(&format!("faults.{n}")))?;
    }
    match scenario.faults.is_empty() || scenario.model.fidelity == Fidelity::Full {
        true => Ok(()),
        false => Err(InvalidField::new("faults", "light agents have no faults: set `fidelity = \"full\"` in [model]")),
    }
}

fn one_of(fault: &FaultPart, scenario: &Scenario) -> Result<(), InvalidField> {
    use FaultType as T;
    let ways = [fault.at, fault.every, fault.poisson];
    if ways.iter().flatten().count() != 1 {
        return Err(InvalidField::new("", "must have exactly one of at, every and poisson"));
    }
    if [fault.every, fault.poisson].into_iter().flatten().any(|span| span.0.is_zero()) {
        return Err(InvalidField::new(if fault.every.is_some() { "every" } else { "poisson" }, "must be more than 0"));
    }
    few(fault, scenario.duration.0)?;
    let Some(target) = fault.target(scenario) else {
        let groups = scenario.agents.iter().map(|group| group.name.as_str());
        let names: Vec<&str> = groups.chain(scenario.frameworks.iter().map(|part| part.name.as_str())).collect();
        let rule = format!("must be master, an agent's host such as {0}0, or one of {1}", names[0], names.join(", "));
        return Err(InvalidField::new("who", rule));
    };
    let allowed: &[T] = match &target {
        Target::Master => &[T::Crash, T::Failover, T::SlowDisk],
        Target::Agents(_) => &[T::Crash, T::Reboot, T::Partition, T::Stall, T::Cut, T::SlowDisk],
        // A crash is not allowed: the state of a modelled framework would be lost with its process.
        Target::Framework(_) => &[T::Partition, T::Stall, T::Cut],
    };
    if !allowed.contains(&fault.what) {
        let rule = match target {
            Target::Master => "with a master go wrong: crash, failover, slow-disk",
            Target::Agents(_) => "with an agent go wrong: crash, reboot, partition, stall, cut, slow-disk",
            Target::Framework(_) => "with a framework go wrong: partition, stall, cut",
        };
        return Err(InvalidField::new("what", rule));
    }
    if let Target::Agents(all) = &target
        && (fault.count == 0 || fault.count as usize > all.len())
    {
        return Err(InvalidField::new("count", format!("must be 1 to {}, the number of agents", all.len())));
    }
    if fault.lasts.0.is_zero() && fault.what != T::Cut {
        return Err(InvalidField::new("for", "must be the length of the fault, as in `for = \"30s\"`"));
    }
    match (fault.what, fault.by) {
        (T::SlowDisk, None) => Err(InvalidField::new("by", "must be the delay of a write, as in `by = \"1s\"`")),
        (T::SlowDisk, Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => Err(InvalidField::new("by", "is valid only for slow-disk")),
    }
}

/// Checks that a repeated fault does not happen too often.
fn few(fault: &FaultPart, duration: Duration) -> Result<(), InvalidField> {
    let (field, Some(apart)) = (if fault.every.is_some() { "every" } else { "poisson" }, fault.every.or(fault.poisson))
    else {
        return Ok(());
    };
    let end = fault.until.map_or(duration, |until| until.0.min(duration));
    let times = end.saturating_sub(fault.from.0).as_nanos() / apart.0.as_nanos() * u128::from(fault.count);
    match times > MOST_FAULTS {
        false => Ok(()),
        true => Err(InvalidField::new(
            field,
            format!("would occur about {times} times in the run: must be {MOST_FAULTS} at most"),
        )),
    }
}
