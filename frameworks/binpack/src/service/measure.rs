//! Reports the resource usage of tasks to the scheduler, with active sizing. Asks the agents that the tasks run on.
//!
//! The core acts on the reports. Tasks of agents that do not answer are launched as before.

use std::time::Duration;

use sdk::AskError;
use sdk::driver::{Cluster, ContainerUse};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::{Error, Handle};
use crate::core::{Measurable, Measurement, Reply, Request};
use advice::Reading;

/// Maximum time for an answer of an agent.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of requests to agents at the same time.
const AT_ONCE: usize = 64;

/// Measures at intervals until the scheduler ends.
pub(super) async fn follow(cluster: Cluster, every: Duration, handle: Handle) {
    let mut every = tokio::time::interval(every);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = String::new();
    loop {
        every.tick().await;
        let measurable = match handle.ask_unchanged(Request::Measurable).await {
            Ok(Reply::Measurable(measurable)) => measurable,
            Err(Error::Ask(AskError::Gone)) => return,
            _ => continue,
        };
        let (measurements, failure) = measure(&cluster, measurable).await;
        if failure != last && !failure.is_empty() {
            tracing::warn!("{failure}; its tasks are not measured");
        }
        last = failure;
        if !measurements.is_empty() {
            // A scheduler that has ended needs no measurements.
            let _ = handle.ask_unchanged(Request::Measured(measurements)).await;
        }
    }
}

/// Returns the measurements that the agents have of this framework's tasks, and the error of one that does not answer.
async fn measure(cluster: &Cluster, measurable: Measurable) -> (Vec<Measurement>, String) {
    let Some(framework_id) = measurable.framework_id else { return Default::default() };
    let mut agents = measurable.agents.into_iter();
    let mut questions = JoinSet::new();
    let (mut measurements, mut failure) = (Vec::new(), String::new());
    loop {
        while questions.len() < AT_ONCE
            && let Some(agent) = agents.next()
        {
            let cluster = cluster.clone();
            questions.spawn(async move { (cluster.agent_statistics(&agent, REQUEST_TIMEOUT).await, agent) });
        }
        match questions.join_next().await {
            None => return (measurements, failure),
            Some(Ok((Ok(containers), _))) => {
                let own = containers.into_iter().filter(|container| container.framework_id == framework_id);
                measurements.extend(own.map(measurement));
            }
            Some(Ok((Err(error), agent))) => failure = format!("agent {agent}: {}", base::error_chain(&error)),
            Some(Err(_)) => {}
        }
    }
}

/// Converts the measurement of a container. A task of this framework has no executor of its own, so its executor has
/// its id.
fn measurement(container: ContainerUse) -> Measurement {
    let used = container.statistics;
    let reading = Reading {
        at: used.timestamp,
        cpu_seconds: used.cpus_user_time_secs + used.cpus_system_time_secs,
        throttled_seconds: used.cpus_throttled_time_secs,
        rss_bytes: used.mem_rss_bytes,
    };
    Measurement { task_id: container.executor_id, reading }
}
