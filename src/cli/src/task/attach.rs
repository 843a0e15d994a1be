//! `tepui task attach`: shows the terminal of a running task, and sends it what is typed.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;
use wire::client::{Client, Reply, Subscription};

use super::exec::show;
use super::find::{FoundTask, SearchScope, TaskArgs, find};
use super::input::{self, InputEnd, InputTarget};
use super::keys::Keys;
use super::{JSON, PATH, place, state_now, terminal};
use crate::connect::MasterArgs;

/// Interval and number of requests for the state of a task whose terminal is closed.
const PAUSE: Duration = Duration::from_millis(200);
const TRIES: u32 = 50;

/// Flags of `tepui task attach`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// It has a terminal if its container has 'tty_info'
    #[command(flatten)]
    task: TaskArgs,
    /// Only show the output; send no input
    #[arg(long)]
    no_stdin: bool,
    /// Keys that detach and leave the task running; none if empty
    #[arg(long, value_name = "KEYS", default_value = "ctrl-p,ctrl-q")]
    detach_keys: Keys,
}

/// Returns whether an agent, of Mesos or of tepui, refuses because the container has no streams to attach to.
fn has_no_streams(reply: &Reply) -> bool {
    reply.status == 500 && reply.text().contains("I/O switchboard server was disabled")
}

/// Shows the terminal until the task ends, or the detach keys are typed.
///
/// # Errors
/// There is no such task, it has no terminal, or the agent rejects the call.
pub fn run(args: &Args) -> Result<ExitCode> {
    crate::block_on(async {
        let task = find(&args.task, SearchScope::Running).await?;
        let (address, container) = place(&task)?;
        let body = json!({"type": "ATTACH_CONTAINER_OUTPUT", "attach_container_output": {"container_id": container}});
        let opened = Client::at(address.clone()).subscribe(PATH, JSON, JSON, &[], body.to_string().into()).await;
        let mut records = match opened.with_context(|| format!("the agent at {address} does not answer"))? {
            Subscription::Stream(records) => records,
            Subscription::Refused(reply) if has_no_streams(&reply) => bail!(
                "task '{}' has no terminal (its container has no 'tty_info'): its output is in its sandbox. For a shell in its \
                 container: tepui task exec -it {} sh",
                task.id,
                task.id
            ),
            Subscription::Refused(reply) => {
                bail!("the agent at {address} refused the call: {} {}", reply.status, reply.text().trim())
            }
        };
        let types = !args.no_stdin;
        let terminal = (types && std::io::stdin().is_terminal()).then(terminal::Raw::enter).transpose()?;
        let keys = args.detach_keys.clone();
        let typing = InputTarget { address, container, tty: terminal.is_some(), size_first: true, keys };
        let mut typing = types.then(|| tokio::spawn(input::send(typing)));
        loop {
            tokio::select! {
                record = records.next() => match record? {
                    Some(record) => show(&record)?,
                    None => break,
                },
                typed = async { typing.as_mut().expect("there is one").await }, if typing.is_some() => {
                    typing = None;
                    match typed? {
                        Ok(InputEnd::Detached) => {
                            drop(terminal);
                            stdio::err!("\ndetached; task '{}' is still running", task.id);
                            return Ok(ExitCode::SUCCESS);
                        }
                        // The end of the input is not the end of the task.
                        Ok(InputEnd::All) => {}
                        Err(error) => stdio::err!("input is no longer sent to the task: {error:#}\r"),
                    }
                }
            }
        }
        drop(terminal);
        end(&args.task.master, &task).await
    })
}

/// Waits for the end of the task, and returns it as an exit code.
async fn end(master: &MasterArgs, found: &FoundTask) -> Result<ExitCode> {
    for _ in 0..TRIES {
        let Some(now) = state_now(master, found).await? else { break };
        match now.state().as_str() {
            "finished" => return Ok(ExitCode::SUCCESS),
            _ if now.is_live() => tokio::time::sleep(PAUSE).await,
            state => {
                stdio::err!("task '{}' is {state}", found.id);
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    stdio::err!("the terminal is closed; the master no longer has the final state of task '{}'", found.id);
    Ok(ExitCode::FAILURE)
}
