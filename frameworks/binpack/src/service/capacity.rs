//! Tells the scheduler what the agents have in all, as long as a gang waits: asks the leading master.
//!
//! What follows from it is decided by the core. Where the master does not answer, or the framework's principal may not
//! see agents, the core goes by offers alone.

use std::time::Duration;

use resources::Role;
use sdk::AskError;
use sdk::driver::{self, AgentsError, Cluster};
use tokio::time::MissedTickBehavior;

use super::{Error, Handle};
use crate::core::{Reply, Request, Total};
use crate::job::{Job, Kind};

/// Interval between questions to the master while a gang waits.
const EVERY: Duration = Duration::from_secs(10);
/// How long the master may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where agents are asked for, and what of them counts.
#[derive(Debug)]
pub(super) struct Source {
    cluster: Cluster,
    /// The framework's role.
    role: Option<Role>,
}

impl Source {
    pub(super) fn new(options: &driver::Options) -> Source {
        let role = options.settings.framework.roles.first().and_then(|role| Role::parse(role).ok());
        Source { cluster: options.cluster(), role }
    }

    /// Asks the master, and tells the scheduler.
    async fn refresh(&self, handle: &Handle) -> Result<(), AgentsError> {
        let agents = self.cluster.agents(PATIENCE).await?;
        let totals = agents.iter().filter_map(|agent| Total::of(agent, self.role.as_ref())).collect();
        // A scheduler that has ended needs no report.
        let _ = handle.ask_as_is(Request::Agents(totals)).await;
        Ok(())
    }

    /// Before a gang is submitted: it is to hold nothing if it cannot form.
    pub(super) async fn before(&self, jobs: &[Job], handle: &Handle) {
        if jobs.iter().any(|job| job.kind == Kind::Gang) {
            // Without an answer the gang is judged by offers, and the report follows.
            let _ = self.refresh(handle).await;
        }
    }

    /// Asks at intervals while a gang waits, until the scheduler ends.
    pub(super) async fn follow(&self, handle: Handle) {
        let mut every = tokio::time::interval(EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = String::new();
        loop {
            every.tick().await;
            match handle.ask_as_is(Request::WantsAgents).await {
                Ok(Reply::Wants(true)) => {}
                Err(Error::Ask(AskError::Gone)) => return,
                _ => continue,
            }
            let failure = self.refresh(&handle).await.err().map(|error| base::error_chain(&error)).unwrap_or_default();
            if failure != last && !failure.is_empty() {
                tracing::warn!("{failure}; whether a gang could form is judged by offers alone");
            }
            last = failure;
        }
    }
}
