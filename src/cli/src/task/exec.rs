//! `tepui task exec`: runs a command in a task's container.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use wire::client::{Client, Subscription};

use super::find::{SearchScope, TaskArgs, find};
use super::input::InputTarget;
use super::keys::Keys;
use super::{JSON, PATH, input, place, terminal};

/// Flags of `tepui task exec`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Pass standard input to the command
    #[arg(long, short)]
    interactive: bool,
    /// Give the command a terminal
    #[arg(long, short)]
    tty: bool,
    #[command(flatten)]
    task: TaskArgs,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// Runs the command, and returns its exit code.
///
/// # Errors
/// There is no such task, or its agent rejects the call.
pub fn run(args: &Args) -> Result<ExitCode> {
    crate::block_on(async {
        let task = find(&args.task, SearchScope::Running).await?;
        let (address, container) = place(&task)?;
        let client = Client::at(address.clone());
        let child = child(&container);
        let terminal = args.tty.then(terminal::Raw::enter).transpose()?;
        let size = terminal.as_ref().map(terminal::Raw::size);
        let body = launch(args, &child, size);
        let opened = client.subscribe(PATH, JSON, JSON, &[], body.to_string().into()).await;
        let mut records = match opened.with_context(|| format!("the agent at {address} does not answer"))? {
            Subscription::Stream(records) => records,
            Subscription::Refused(reply) => {
                drop(terminal);
                bail!("the agent at {address} refused the call: {} {}", reply.status, reply.text().trim());
            }
        };
        let typing = args.interactive.then(|| {
            let (address, container) = (address.clone(), child.clone());
            let keys = Keys::default();
            tokio::spawn(input::send(InputTarget { address, container, tty: args.tty, size_first: false, keys }))
        });
        while let Some(record) = records.next().await? {
            show(&record)?;
        }
        if let Some(typing) = typing {
            typing.abort();
        }
        drop(terminal);
        wait(Client::at(address), &child).await
    })
}

/// Returns the id of a new container inside the task's.
fn child(container: &Value) -> Value {
    json!({"value": format!("exec-{}", daemon::random::uuid_text()), "parent": container})
}

fn launch(args: &Args, child: &Value, size: Option<(u16, u16)>) -> Value {
    let mut command = json!({"shell": false, "value": args.command[0], "arguments": args.command});
    if size.is_some() {
        let term = std::env::var("TERM").unwrap_or_else(|_| "xterm".to_owned());
        command["environment"] = json!({"variables": [{"name": "TERM", "value": term}]});
    }
    let mut body = json!({"container_id": child, "command": command});
    if let Some((rows, columns)) = size {
        let window = json!({"window_size": {"rows": rows, "columns": columns}});
        body["container"] = json!({"type": "MESOS", "tty_info": window});
    }
    json!({"type": "LAUNCH_NESTED_CONTAINER_SESSION", "launch_nested_container_session": body})
}

/// Prints a piece of output to standard output or standard error.
pub(super) fn show(record: &[u8]) -> Result<()> {
    let record: Value = serde_json::from_slice(record).context("the agent's stream cannot be read")?;
    let Some(data) = record["data"]["data"].as_str() else { return Ok(()) };
    let bytes = BASE64_STANDARD.decode(data).context("the agent's stream cannot be read")?;
    if record["data"]["type"] == "STDERR" {
        let mut error = std::io::stderr();
        error.write_all(&bytes)?;
        return Ok(error.flush()?);
    }
    let mut out = std::io::stdout();
    out.write_all(&bytes)?;
    Ok(out.flush()?)
}

/// Returns the exit code of the command; for one that a signal has ended, that of a shell.
async fn wait(mut client: Client, child: &Value) -> Result<ExitCode> {
    let call = json!({"type": "WAIT_NESTED_CONTAINER", "wait_nested_container": {"container_id": child}});
    let reply = client.post(PATH, JSON, JSON, &[], call.to_string().into()).await?;
    let answer: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    Ok(ExitCode::from(exit_code(answer["wait_nested_container"]["exit_status"].as_i64())))
}

fn exit_code(status: Option<i64>) -> u8 {
    match status {
        None => 1,
        Some(status) if status & 0x7f == 0 => u8::try_from(status >> 8 & 0xff).unwrap_or(1),
        Some(status) => 128 + u8::try_from(status & 0x7f).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes() {
        assert_eq!([Some(0), Some(3 << 8), Some(9), None].map(exit_code), [0, 3, 137, 1]);
    }
}
