//! `tepui agents drain|deactivate|reactivate|gone`: changes the state of agents.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap_complete::ArgValueCompleter;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::confirm::confirm;
use super::find;
use crate::complete;
use crate::connect::MasterArgs;
use crate::read::model::Agents;
use crate::say::say;

/// Interval of requests for the state of a draining agent.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// What to do with agents.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Kill the tasks of an agent and make no offers of it, until it is reactivated
    Drain(Drain),
    /// Make no more offers of an agent; its tasks continue
    Deactivate(Named),
    /// Make offers of a drained or deactivated agent again
    Reactivate(Named),
    /// Mark an agent as gone for good: its tasks are reported as TASK_GONE_BY_OPERATOR, and it cannot come back
    Gone {
        #[command(flatten)]
        named: Named,
        /// Do not ask for confirmation at a terminal
        #[arg(long, short)]
        yes: bool,
    },
}

/// An agent.
#[derive(Debug, clap::Args)]
pub struct Named {
    /// The agent: its id, the end of its id such as S3, or its host name
    #[arg(add = ArgValueCompleter::new(complete::agents))]
    agent: String,
    #[command(flatten)]
    master: MasterArgs,
}

/// Flags of `tepui agents drain`.
#[derive(Debug, clap::Args)]
pub struct Drain {
    #[command(flatten)]
    named: Named,
    /// Longest grace period of a task, such as 30secs; a task with a shorter kill policy keeps its own
    #[arg(long, value_name = "DURATION", value_parser = base::parse_duration)]
    max_grace_period: Option<Duration>,
    /// Mark the agent as gone when it is drained
    #[arg(long)]
    mark_gone: bool,
    /// Wait until the agent is drained
    #[arg(long, short)]
    wait: bool,
}

impl Action {
    /// Runs the action.
    ///
    /// # Errors
    /// There is no such agent, or the master rejects the call.
    pub fn run(self) -> Result<ExitCode> {
        crate::block_on(async {
            match self {
                Action::Drain(args) => drain(&args).await,
                Action::Deactivate(named) => {
                    let id = simple(&named, "DEACTIVATE_AGENT").await?;
                    say!("{id} is deactivated: `tepui agents reactivate {id}` reverts this");
                    Ok(())
                }
                Action::Reactivate(named) => {
                    let id = simple(&named, "REACTIVATE_AGENT").await?;
                    say!("{id} is active");
                    Ok(())
                }
                Action::Gone { named, yes } => {
                    confirm(yes, &format!("mark agent {} as gone, with all its tasks", named.agent))?;
                    let id = simple(&named, "MARK_AGENT_GONE").await?;
                    say!("{id} is gone");
                    Ok(())
                }
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Named {
    async fn id(&self) -> Result<String> {
        let agents: Agents = self.master.read("/slaves").await?;
        let mut all = agents.slaves;
        all.extend(agents.recovered_slaves);
        match find::agent(&all, &self.agent) {
            Ok(agent) => Ok(agent.id.clone()),
            // No list contains unreachable agents, but the master knows their ids.
            Err(_) if self.agent.contains("-S") => Ok(self.agent.clone()),
            Err(error) => Err(error),
        }
    }
}

async fn simple(named: &Named, name: &str) -> Result<String> {
    let id = named.id().await?;
    named
        .master
        .send_call(name, &json!({ "agent_id": { "value": id } }))
        .await
        .with_context(|| format!("agent {id}"))?;
    Ok(id)
}

async fn drain(args: &Drain) -> Result<()> {
    let (master, id) = (&args.named.master, args.named.id().await?);
    let mut body = json!({ "agent_id": { "value": id }, "mark_gone": args.mark_gone });
    if let Some(grace) = args.max_grace_period {
        body["max_grace_period"] = json!({ "seconds": grace.as_secs(), "nanos": grace.subsec_nanos() });
    }
    master.send_call("DRAIN_AGENT", &body).await.with_context(|| format!("agent {id}"))?;
    if !args.wait {
        say!("{id} is draining: `tepui agents` shows its state");
        return Ok(());
    }
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    bar.set_style(ProgressStyle::with_template("{spinner} {msg} {elapsed}")?);
    loop {
        let agents: Agents = master.read("/slaves").await?;
        let is_recovered = agents.recovered_slaves.iter().any(|agent| agent.id == id);
        match agents.slaves.iter().find(|agent| agent.id == id).map(|agent| agent.drain_info.state.as_str()) {
            None if is_recovered => bar.set_message(format!("{id} has not reregistered since the master started")),
            Some("DRAINED") => break,
            Some("DRAINING") if bar.is_hidden() => {}
            Some("DRAINING") => {
                bar.set_message(format!("{id} is draining, {} tasks remaining", tasks_of(master, &id).await?))
            }
            None if args.mark_gone => break,
            None => bail!("agent {id} is no longer registered"),
            Some(_) => bail!("agent {id} was reactivated"),
        }
        bar.tick();
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    bar.finish_and_clear();
    say!("{id} is drained");
    Ok(())
}

/// Returns the number of tasks of an agent that have not ended.
async fn tasks_of(master: &MasterArgs, id: &str) -> Result<usize> {
    let document: Value = master.read("/state-summary").await?;
    let agents = document["slaves"].as_array().into_iter().flatten();
    let own = agents.filter(|agent| agent["id"] == id);
    let count = |agent: &Value, state: &str| agent[state].as_u64().unwrap_or(0) as usize;
    let states = ["TASK_STAGING", "TASK_STARTING", "TASK_RUNNING", "TASK_KILLING"];
    Ok(own.map(|agent| states.iter().map(|state| count(agent, state)).sum::<usize>()).sum())
}
