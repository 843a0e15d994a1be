//! `tepui maintenance`: schedules machines for maintenance, takes them down and brings them up.

use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::connect::MasterArgs;
use crate::read::model::{Agent, Agents};
use crate::read::table::{age, table};
use crate::read::{ListArgs, ListOutput, now};
use crate::say::say;

/// What to do about maintenance.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Show the machines that are scheduled or down
    Status(ListArgs),
    /// Schedule machines for maintenance, beside those that are scheduled: frameworks are asked to leave them
    Schedule {
        /// Machines: a host name, an address or an agent's id; HOST,IP for one without agents
        #[arg(required = true, value_name = "MACHINE")]
        machines: Vec<String>,
        /// Time until the maintenance begins, such as 30mins
        #[arg(long = "in", value_name = "DURATION", value_parser = base::parse_duration, default_value = "0secs")]
        wait: Duration,
        /// Duration of the maintenance; open-ended if not given
        #[arg(long = "for", value_name = "DURATION", value_parser = base::parse_duration)]
        length: Option<Duration>,
        #[command(flatten)]
        master: MasterArgs,
    },
    /// Cancel the schedule of all machines that are not down
    Cancel {
        #[command(flatten)]
        master: MasterArgs,
    },
    /// Take scheduled machines down: their agents are removed with their tasks
    Start(Machines),
    /// Bring machines up again, and take them out of the schedule
    Stop(Machines),
}

/// Machines.
#[derive(Debug, clap::Args)]
pub struct Machines {
    /// Machines: a host name, an address or an agent's id; HOST,IP for one without agents
    #[arg(required = true, value_name = "MACHINE")]
    machines: Vec<String>,
    #[command(flatten)]
    master: MasterArgs,
}

/// Returns a machine as JSON of the wire.
fn machine(host: &str, ip: &str) -> Value {
    json!({ "hostname": host.to_lowercase(), "ip": ip })
}

/// Finds the machine that `text` names among those of agents and of the schedule. `HOST,IP` need not be among them.
fn find(text: &str, agents: &[Agent], scheduled: &[Value]) -> Result<Value> {
    if let Some((host, ip)) = text.split_once(',') {
        return match ip.parse::<IpAddr>() {
            Ok(_) => Ok(machine(host, ip)),
            Err(_) => bail!("'{ip}' is not an IP address"),
        };
    }
    let of_agent = |agent: &Agent| (machine(&agent.hostname, agent.ip()), agent.has_id(text));
    let known = agents.iter().map(of_agent).chain(scheduled.iter().map(|machine| (machine.clone(), false)));
    let mut found: Vec<Value> = Vec::new();
    for (machine, is_named) in known {
        let is_it = |field: &str| machine[field].as_str().is_some_and(|part| part.eq_ignore_ascii_case(text));
        if (is_named || is_it("hostname") || is_it("ip")) && !found.contains(&machine) {
            found.push(machine);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!("no agent and no scheduled machine is '{text}': give HOST,IP, or a name of `tepui agents`"),
        _ => {
            let names: Vec<String> = found.iter().map(name_of).collect();
            bail!("several machines are '{text}', give one as HOST,IP: {}", names.join("; "))
        }
    }
}

/// Finds the machines of a command line.
fn machines(master: &MasterArgs, texts: &[String], windows: &[Value]) -> Result<Vec<Value>> {
    let agents: Agents = crate::block_on(master.read("/slaves"))?;
    let lists = windows.iter().filter_map(|window| window["machine_ids"].as_array());
    let scheduled: Vec<Value> = lists.flatten().cloned().collect();
    texts.iter().map(|text| find(text, &agents.slaves, &scheduled)).collect()
}

impl Action {
    /// Runs the action.
    ///
    /// # Errors
    /// The master rejects the call.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Action::Status(args) => status(&args),
            Action::Schedule { machines, wait, length, master } => {
                let mut unavailability = json!({ "start": { "nanoseconds": (now() + wait).as_nanos() as u64 } });
                if let Some(length) = length {
                    unavailability["duration"] = json!({ "nanoseconds": length.as_nanos() as u64 });
                }
                let mut windows = crate::block_on(windows(&master))?;
                let machines = self::machines(&master, &machines, &windows)?;
                // A machine is in one window only, which is now the new one.
                for window in &mut windows {
                    if let Some(list) = window["machine_ids"].as_array_mut() {
                        list.retain(|machine| !machines.contains(machine));
                    }
                }
                windows.retain(|window| window["machine_ids"].as_array().is_some_and(|list| !list.is_empty()));
                let window = json!({ "machine_ids": machines, "unavailability": unavailability });
                windows.push(window);
                set(&master, &windows)?;
                say!("scheduled; `tepui maintenance start` takes the machines down");
                Ok(ExitCode::SUCCESS)
            }
            Action::Cancel { master } => {
                set(&master, &[])?;
                say!("nothing is scheduled");
                Ok(ExitCode::SUCCESS)
            }
            Action::Start(args) => change(&args, "START_MAINTENANCE", "down"),
            Action::Stop(args) => change(&args, "STOP_MAINTENANCE", "up"),
        }
    }
}

async fn windows(master: &MasterArgs) -> Result<Vec<Value>> {
    let answer = master.call("GET_MAINTENANCE_SCHEDULE", &Value::Null).await?;
    Ok(answer["schedule"]["windows"].as_array().cloned().unwrap_or_default())
}

fn set(master: &MasterArgs, windows: &[Value]) -> Result<()> {
    let body = json!({ "schedule": { "windows": windows } });
    crate::block_on(master.send_call("UPDATE_MAINTENANCE_SCHEDULE", &body))
}

fn change(args: &Machines, name: &str, state: &str) -> Result<ExitCode> {
    let machines = machines(&args.master, &args.machines, &crate::block_on(windows(&args.master))?)?;
    crate::block_on(args.master.send_call(name, &json!({ "machines": machines })))?;
    machines.iter().for_each(|machine| say!("{} is {state}", name_of(machine)));
    Ok(ExitCode::SUCCESS)
}

fn name_of(machine: &Value) -> String {
    let parts = ["hostname", "ip"].iter().filter_map(|field| machine[field].as_str()).filter(|text| !text.is_empty());
    parts.collect::<Vec<_>>().join(",")
}

fn status(args: &ListArgs) -> Result<ExitCode> {
    args.show(async || {
        let windows = windows(&args.master).await?;
        let mut answer = args.master.call("GET_MAINTENANCE_STATUS", &Value::Null).await?;
        let status = answer["status"].take();
        if args.wants_document() {
            return Ok(ListOutput::Document(json!({ "windows": windows, "status": status })));
        }
        let down = status["down_machines"].as_array().cloned().unwrap_or_default();
        Ok(ListOutput::Text(show(&windows, &down, now()).context("the master's schedule")?))
    })
}

fn show(windows: &[Value], down: &[Value], now: Duration) -> Result<String> {
    if windows.is_empty() && down.is_empty() {
        return Ok(
            "no machine is scheduled or down; schedule one with: tepui maintenance schedule HOST --in=1hrs".to_owned()
        );
    }
    let mut table = table(&["MACHINE", "STATE", "BEGINS", "FOR"]);
    for window in windows {
        let seconds = |field: &str| window["unavailability"][field]["nanoseconds"].as_f64().map(|n| n / 1e9);
        let begins = match seconds("start").unwrap_or_default() - now.as_secs_f64() {
            wait if wait > 0.0 => format!("in {}", age(wait)),
            wait => format!("{} ago", age(-wait)),
        };
        for machine in window["machine_ids"].as_array().into_iter().flatten() {
            let state = if down.contains(machine) { "down" } else { "draining" };
            let length = seconds("duration").map_or("-".to_owned(), age);
            table.add_row([name_of(machine), state.to_owned(), begins.clone(), length]);
        }
    }
    Ok(table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_found_by_host_address_and_agent() {
        let agents: Vec<Agent> = serde_json::from_str(
            r#"[{"id":"m-S0","hostname":"A1","pid":"slave(1)@10.0.0.7:5051"},{"id":"m-S1","hostname":"b","pid":"slave(1)@10.0.0.8:5051"},
            {"id":"m-S2","hostname":"b","pid":"slave(1)@10.0.0.9:5051"},{"id":"m-S3","hostname":"b","pid":"slave(1)@10.0.0.9:5052"}]"#,
        )
        .unwrap();
        let scheduled = [machine("gone", "10.0.0.1")];
        let found = |text: &str| find(text, &agents, &scheduled);
        for text in ["a1", "10.0.0.7", "m-S0", "S0", "A1,10.0.0.7"] {
            assert_eq!(found(text).unwrap(), json!({ "hostname": "a1", "ip": "10.0.0.7" }), "{text}");
        }
        assert_eq!(found("gone").unwrap()["ip"], "10.0.0.1");
        assert_eq!(found("10.0.0.9").unwrap()["hostname"], "b");
        assert_eq!(found("new,10.0.0.2").unwrap()["hostname"], "new");
        assert!(found("b").unwrap_err().to_string().ends_with("as HOST,IP: b,10.0.0.8; b,10.0.0.9"));
        assert!(found("c").unwrap_err().to_string().contains("no scheduled machine is 'c'"));
        assert!(found("a1,b").unwrap_err().to_string().contains("not an IP address"));
    }

    #[test]
    fn a_line_a_machine() {
        let window = |name: &str, start: u64| {
            let unavailability =
                json!({ "start": { "nanoseconds": start }, "duration": { "nanoseconds": 60_000_000_000u64 } });
            json!({ "machine_ids": [{ "hostname": name }], "unavailability": unavailability })
        };
        let windows = [window("a", 100_000_000_000), window("b", 10_000_000_000)];
        let text = show(&windows, &[json!({ "hostname": "b" })], Duration::from_secs(70)).unwrap();
        let lines: Vec<String> =
            text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, ["a draining in 30.0 s 1 min", "b down 1 min ago 1 min"]);
    }
}
