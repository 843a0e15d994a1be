//! Health checks of tasks. The executor of the task performs them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::seconds;
use jobs::file::Fields;

/// Method of a health check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Probe {
    /// A command for `/bin/sh -c` that exits with status 0.
    Command(String),
    /// A GET request for `path` on a port of the task that is answered with a status from 200 to 399.
    Http {
        /// Path of the request, which starts with `/`.
        path: String,
        /// Index of the port among the task's ports, from 0.
        port: u32,
    },
    /// A TCP connection to a port of the task.
    Tcp {
        /// Index of the port among the task's ports, from 0.
        port: u32,
    },
}

/// A health check of a job's tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// Method of the check.
    pub probe: Probe,
    /// Time after the start of a task during which failures do not count.
    #[serde(with = "seconds")]
    pub grace: Duration,
    /// Time from one check to the next.
    #[serde(with = "seconds")]
    pub interval: Duration,
    /// Maximum time for the answer to a check.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// Number of failures in a row after which the task is killed.
    pub failures: u32,
}

const FIELD: &str = "health";

/// Parses the field `health` of a job whose tasks have this many ports.
pub(super) fn read(job: &mut Fields<'_, '_>, ports: i64) -> Option<Health> {
    let node = job.take(FIELD)?;
    let before = job.faults.len();
    let mut fields = Fields::of(FIELD, node, job.faults)?;
    let command = fields.text("command");
    let http = fields.text("http");
    let tcp = fields.flag("tcp").filter(|tcp| *tcp);
    let port = fields.whole("port", 0, 999);
    if let Some((path, at)) = http
        && !path.starts_with('/')
    {
        fields.faults.add(at, "health: http is the path to ask for and starts with '/'");
    }
    let at = fields.at();
    let given = usize::from(command.is_some()) + usize::from(http.is_some()) + usize::from(tcp.is_some());
    if given != 1 && fields.faults.len() == before {
        fields.faults.add(at, "health needs exactly one of command, http = \"/path\" and tcp = true");
    }
    if (http.is_some() || tcp.is_some()) && port.unwrap_or(0) >= ports {
        let port = port.unwrap_or(0);
        fields.faults.add(at, format!("health asks at port {port} of the task, counted from 0, and ports is {ports}"));
    }
    let interval = positive(&mut fields, "interval", 10);
    let timeout = positive(&mut fields, "timeout", 20);
    let grace = fields.time("grace").unwrap_or(Duration::from_secs(10));
    let failures = fields.whole("failures", 1, 1_000).unwrap_or(3);
    fields.finish(|_| None);
    let port = u32::try_from(port.unwrap_or(0)).unwrap_or(0);
    let probe = match (command, http) {
        (Some((command, _)), _) => Probe::Command(command.to_owned()),
        (None, Some((path, _))) => Probe::Http { path: path.to_owned(), port },
        (None, None) => Probe::Tcp { port },
    };
    Some(Health { probe, grace, interval, timeout, failures: u32::try_from(failures).unwrap_or(3) })
}

fn positive(fields: &mut Fields<'_, '_>, name: &'static str, default: u64) -> Duration {
    let at = fields.at();
    let time = fields.time(name).unwrap_or(Duration::from_secs(default));
    if time.is_zero() {
        fields.faults.add(at, format!("health: {name} must be above 0"));
    }
    time
}
