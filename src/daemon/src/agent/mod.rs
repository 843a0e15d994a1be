//! The agent's daemon: a core, its sockets, checkpoints, containerizer and routes.
//!
//! It decides nothing about tasks; the core does.

mod attach;
mod checkpoint_writer;
mod config;
mod detector;
mod executor_api;
mod executor_connections;
mod executor_tokens;
mod handler;
pub mod jwt;
mod metrics;
mod operator_api;
mod outputs;
mod oversubscription;
mod private;
mod program;
mod realms;
mod sender_token;
mod start;
mod validate;
mod views;
mod volume_changes;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use agent::{Agent, Input};
use containerizer::{ComposingContainerizer, Deleter};
use tokio::sync::{oneshot, watch};
use wire::libprocess::Network;

use crate::audit::Audit;
use crate::driver::Driver;
use checkpoint_writer::CheckpointWriter;
use outputs::Exit;
pub use start::start;

/// An agent that serves requests.
pub struct RunningAgent {
    /// Address on which it listens.
    pub address: SocketAddr,
    server: wire::http::Running,
    exit: watch::Receiver<Option<Exit>>,
    core: tokio::task::JoinHandle<anyhow::Result<()>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
    driver: Driver<Agent>,
    containers: ComposingContainerizer,
    checkpoint_writer: Arc<CheckpointWriter>,
    deleter: Deleter,
    /// Ready when the remaining containers of an earlier agent have ended; only an agent with `--recover=cleanup` waits
    /// for it.
    leftovers: Option<oneshot::Receiver<()>>,
    network: Network,
    audit: Audit,
}

/// The result of an agent that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Exit code of the process.
    pub code: i32,
    /// Message for the operator; may be empty.
    pub message: String,
}

/// A request to end an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The agent ends, and the tasks of checkpointing frameworks keep running.
    KeepTasks,
    /// The agent leaves the cluster permanently: all its tasks end.
    Unregister,
}

/// Time limit for sending the last messages to the master.
const END_LIMIT: std::time::Duration = std::time::Duration::from_millis(200);

impl RunningAgent {
    /// Serves until `stop` is ready and its request is done, or until the core ends the agent.
    ///
    /// # Errors
    /// The reason why the agent cannot continue.
    pub async fn run_until(mut self, stop: impl Future<Output = Stop>) -> anyhow::Result<Ended> {
        let mut stop = std::pin::pin!(stop);
        let mut asked = false;
        let ended = loop {
            tokio::select! {
                how = &mut stop, if !asked => {
                    asked = true;
                    if how == Stop::KeepTasks {
                        self.containers.leave();
                    }
                    self.driver.submit(Input::Shutdown { unregister: how == Stop::Unregister });
                }
                ended = &mut self.core => break match ended {
                    Ok(Err(error)) => Err(error.context("checkpoints cannot be written")),
                    Ok(Ok(())) => Ok(Ended { code: 0, message: String::new() }),
                    Err(panic) => Err(anyhow::Error::new(panic).context("the agent's core has failed")),
                },
                exit = exited(&mut self.exit) => {
                    if let Some(leftovers) = self.leftovers.take() {
                        let _ = leftovers.await;
                    }
                    break Ok(Ended { code: exit.code, message: exit.message });
                }
            }
        };
        self.checkpoint_writer.end();
        self.deleter.end();
        // The core ends before the streams do: otherwise it would take their end for the end of its executors.
        self.core.abort();
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
        if !self.core.is_finished() {
            let _ = (&mut self.core).await;
        }
        tokio::join!(self.server.stop(), self.network.flush(END_LIMIT));
        self.audit.flush().await;
        ended
    }
}

async fn exited(exit: &mut watch::Receiver<Option<Exit>>) -> Exit {
    let seen = exit.wait_for(Option::is_some).await.map(|exit| exit.clone());
    match seen {
        Ok(Some(exit)) => exit,
        _ => std::future::pending().await,
    }
}
