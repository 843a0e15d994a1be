//! `tepui log-level`: prints or sets how much a master or an agent logs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap_complete::ArgValueCompleter;
use serde_json::{Value, json};

use super::find;
use crate::complete;
use crate::connect::MasterArgs;
use crate::read::model::Agents;
use crate::say::say;

/// Flags of `tepui log-level`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Level above that of --logging_level: 0 is that, 1 adds debug messages, 2 traces; without one, prints the level
    #[arg(value_parser = clap::value_parser!(u32).range(0..=3))]
    level: Option<u32>,
    /// Time after which the level is as at the start again
    #[arg(long = "for", value_name = "DURATION", value_parser = base::parse_duration, default_value = "10mins")]
    duration: Duration,
    /// An agent instead of the master: its id, the end of its id such as S3, or its host name
    #[arg(long, short, add = ArgValueCompleter::new(complete::agents))]
    agent: Option<String>,
    #[command(flatten)]
    master: MasterArgs,
}

/// Prints or sets the level.
///
/// # Errors
/// There is no such agent, or the call is rejected.
pub fn run(args: &Args) -> Result<ExitCode> {
    crate::block_on(async {
        let (name, daemon) = match &args.agent {
            None => ("the master".to_owned(), args.master.clone()),
            Some(text) => {
                let agents: Agents = args.master.read("/slaves").await?;
                let agent = find::agent(&agents.slaves, text)?;
                let master = agent.address().to_owned();
                (format!("agent {}", agent.id), MasterArgs { master, ..args.master.clone() })
            }
        };
        let Some(level) = args.level else {
            let answer = daemon.call("GET_LOGGING_LEVEL", &Value::Null).await?;
            say!("{name} logs at level {}", answer["level"].as_u64().unwrap_or_default());
            return Ok(ExitCode::SUCCESS);
        };
        let duration = json!({ "nanoseconds": args.duration.as_nanos() as u64 });
        daemon.send_call("SET_LOGGING_LEVEL", &json!({ "level": level, "duration": duration })).await?;
        match level {
            0 => say!("{name} logs at level 0"),
            _ => say!("{name} logs at level {level} for {:?}", args.duration),
        }
        Ok(ExitCode::SUCCESS)
    })
}
