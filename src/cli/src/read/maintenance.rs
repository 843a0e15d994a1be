//! The planned maintenance of machines, beside the agents on them.

use serde::Deserialize;

use super::model::Agent;
use super::table::age;

/// The contents of the two maintenance documents.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    pub(crate) planned: Schedule,
    pub(crate) status: Status,
}

/// The document `/maintenance/schedule`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Schedule {
    pub(crate) windows: Vec<Window>,
}

/// Machines that will be unavailable, and the time.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Window {
    machine_ids: Vec<Machine>,
    unavailability: Unavailability,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Unavailability {
    start: Nanoseconds,
    duration: Option<Nanoseconds>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Nanoseconds {
    nanoseconds: f64,
}

/// The document `/maintenance/status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) down_machines: Vec<Machine>,
}

/// A machine, by the host name and the address of its agents.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Machine {
    hostname: String,
    ip: String,
}

impl Machine {
    /// Formats the machine as `host (address)`.
    pub(crate) fn name(&self) -> String {
        format!("{} ({})", self.hostname, self.ip)
    }
}

impl Maintenance {
    /// Describes when an agent's machine will be unavailable; `now` is in seconds since the Unix epoch. Empty if
    /// nothing is planned.
    pub(crate) fn of(&self, agent: &Agent, now: f64) -> String {
        let ip = agent.ip();
        let is_its = |machine: &Machine| machine.hostname.eq_ignore_ascii_case(&agent.hostname) && machine.ip == ip;
        let window = self.planned.windows.iter().find(|window| window.machine_ids.iter().any(is_its));
        let Some(Window { unavailability: Unavailability { start, duration }, .. }) = window else {
            return String::new();
        };
        let seconds = |span: &Nanoseconds| span.nanoseconds / 1e9;
        let (wait, duration) = (seconds(start) - now, duration.as_ref().map(seconds));
        match (wait > 0.0, duration) {
            (true, Some(duration)) => format!("in {} for {}", age(wait), age(duration)),
            (true, None) => format!("in {}", age(wait)),
            (false, Some(duration)) if wait + duration > 0.0 => format!("now, for another {}", age(wait + duration)),
            (false, Some(_)) => "overdue".to_owned(),
            (false, None) => "now".to_owned(),
        }
    }
}
