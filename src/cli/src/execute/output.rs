//! Copies what tasks write to the standard output and error of this process, while they run.
//!
//! A sandbox that cannot be read does not stop the command, which then names the command that prints the output later.

use std::time::Duration;

use anyhow::{Context, Result};
use sdk::v1::TaskStatus;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connect::MasterArgs;
use crate::read::model::Agents;
use crate::sandbox::File;

/// Interval of reads of a file.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Time limit for copying the remaining output when all tasks have ended.
const REST: Duration = Duration::from_secs(5);

/// Copies the output of the tasks that have started.
pub(super) struct Outputs {
    master: MasterArgs,
    copies: JoinSet<()>,
    ended: watch::Sender<bool>,
}

impl Outputs {
    pub(super) fn new(master: MasterArgs) -> Outputs {
        Outputs { master, copies: JoinSet::new(), ended: watch::Sender::new(false) }
    }

    /// Starts copying the output of the task with this status.
    pub(super) fn start(&mut self, status: &TaskStatus) {
        let task = status.task_id.value.to_string();
        let agent = status.agent_id.as_ref().map(|id| id.value.to_string()).unwrap_or_default();
        for name in ["stdout", "stderr"] {
            let copy = Copy { master: self.master.clone(), agent: agent.clone(), task: task.clone(), name };
            let mut ended = self.ended.subscribe();
            self.copies.spawn(async move {
                if let Err(error) = copy.run(&mut ended).await {
                    let Copy { task, .. } = copy;
                    stdio::err!("the {name} of task '{task}' cannot be read ({error:#}); try: tepui task logs {task}");
                }
            });
        }
    }

    /// Copies the remaining output, when all tasks have ended.
    pub(super) async fn finish(mut self) {
        self.ended.send_replace(true);
        let rest = async { while self.copies.join_next().await.is_some() {} };
        if tokio::time::timeout(REST, rest).await.is_err() {
            stdio::err!("the end of the output is missing: the agent does not answer");
        }
    }
}

struct Copy {
    master: MasterArgs,
    agent: String,
    task: String,
    name: &'static str,
}

impl Copy {
    async fn run(&self, ended: &mut watch::Receiver<bool>) -> Result<()> {
        let mut file = loop {
            // A task that has just started may have no file yet.
            match self.file().await {
                Err(error) if *ended.borrow() => return Err(error),
                Err(_) => pause(ended).await,
                Ok(file) => break file,
            }
        };
        loop {
            let last = *ended.borrow();
            match self.name {
                "stdout" => file.copy(&mut std::io::stdout()).await?,
                _ => file.copy(&mut std::io::stderr()).await?,
            }
            if last {
                return Ok(());
            }
            pause(ended).await;
        }
    }

    async fn file(&self) -> Result<File> {
        let agents: Agents = self.master.read("/slaves").await?;
        let agent = agents.slaves.iter().find(|agent| agent.id == self.agent);
        let agent = agent.with_context(|| format!("agent {} is not connected", self.agent))?;
        File::find(&self.master, agent.address(), (None, &self.task), self.name).await
    }
}

/// Waits for the next read, or for the end of the tasks.
async fn pause(ended: &mut watch::Receiver<bool>) {
    // The sender is dropped after the copies have ended.
    let _ = tokio::time::timeout(POLL_INTERVAL, ended.wait_for(|ended| *ended)).await;
}
