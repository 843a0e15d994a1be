//! Event log of a run: one line for each event, for people.
//!
//! It records what happened, not why it is wrong.

use std::fmt;
use std::fmt::Write as _;

use base::Time;
use sdk::v1::scheduler::{Call, Event, event};

use super::volumes::v1_id;
use crate::world::{BEGIN, Note};

/// Explanation of the lines of a log.
pub const LEGEND: &str = "\
seconds since the start, then the process:
  FAULT  start of a fault                    master  its process          agent N, sched N, exec  the others
  sched N < event of a scheduler             sched N > call of a scheduler
  task ids are tJOB.ATTEMPT; updates of executors have numbers (#N)";

/// The lines of an event log; `None` inside if the log is not kept.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: Option<Vec<String>>,
}

impl Log {
    /// Creates an empty log that keeps its lines or drops them.
    pub fn new(keeps: bool) -> Log {
        Log { lines: keeps.then(Vec::new) }
    }

    /// Adds a line, if the log keeps lines.
    pub fn line(&mut self, now: Time, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>11.6}  {}", now.since(BEGIN).as_secs_f64(), text()));
        }
    }

    /// Returns all lines of the log.
    pub fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

/// Returns the number that is encoded in a generated UUID.
fn number(uuid: &[u8]) -> u64 {
    uuid.last_chunk::<8>().map_or(0, |tail| u64::from_be_bytes(*tail) & (u64::MAX >> 2))
}

/// Returns the line of an event that a scheduler receives; `None` for events that are not logged.
pub(super) fn received(scheduler: usize, event: &Event) -> Option<String> {
    let mut line = format!("sched {scheduler} <  ");
    match event.r#type() {
        event::Type::Subscribed => {
            let id = event.subscribed.as_ref().map(|part| part.framework_id.value.as_str());
            write!(line, "SUBSCRIBED as {}", id.unwrap_or_default())
        }
        event::Type::Offers => {
            let offers = event.offers.iter().flat_map(|part| &part.offers);
            let ids: Vec<_> = offers.map(|offer| format!("{} of {}", offer.id.value, offer.agent_id.value)).collect();
            write!(line, "OFFERS {}", ids.join(", "))
        }
        event::Type::Rescind => {
            write!(line, "RESCIND {}", event.rescind.as_ref().map_or("", |part| &part.offer_id.value))
        }
        event::Type::Update => {
            let status = &event.update.as_ref()?.status;
            let reason = status.reason.map(|_| status.reason().as_str_name().trim_start_matches("REASON_"));
            let uuid = status.uuid.as_deref().map_or_else(String::new, |uuid| format!("#{}", number(uuid)));
            let state = status.state().as_str_name();
            write!(line, "{state} {} {uuid} {}", status.task_id.value, reason.unwrap_or_default())
        }
        event::Type::Heartbeat => return None,
        other => write!(line, "{}", other.as_str_name()),
    }
    .ok()?;
    Some(line)
}

/// Returns the line of a scheduler's call.
pub(super) fn called(scheduler: usize, call: &Call) -> String {
    let mut line = format!("sched {scheduler} >  {}", call.r#type().as_str_name());
    if let Some(accept) = &call.accept {
        let tasks = launched(call).map(|task| task.task_id.value.as_str()).collect::<Vec<_>>().join(" ");
        let ids = accept.offer_ids.iter().map(|id| id.value.as_str()).collect::<Vec<_>>().join(" ");
        line += &format!(" {ids} for {tasks}");
        if accept.operations.iter().any(|operation| operation.launch_group.is_some()) {
            line += ", LAUNCH_GROUP";
        }
        for operation in &accept.operations {
            let volumes = operation.create.iter().flat_map(|create| &create.volumes);
            let volumes = volumes.chain(operation.destroy.iter().flat_map(|destroy| &destroy.volumes));
            let ids: Vec<&str> = volumes.filter_map(v1_id).collect();
            if operation.launch.is_none() && operation.launch_group.is_none() {
                line += &format!(", {} {}", operation.r#type().as_str_name(), ids.join(" "));
            }
        }
    }
    if let Some(decline) = &call.decline {
        decline.offer_ids.iter().for_each(|id| line += &format!(" {}", id.value));
    }
    if let Some(part) = &call.acknowledge {
        line += &format!(" {} #{}", part.task_id.value, number(&part.uuid));
    }
    if let Some(part) = &call.kill {
        line += &format!(" {}", part.task_id.value);
    }
    if let Some(part) = &call.reconcile {
        part.tasks.iter().for_each(|task| line += &format!(" {}", task.task_id.value));
    }
    line
}

/// Returns the tasks that a call launches.
pub(super) fn launched(call: &Call) -> impl Iterator<Item = &sdk::v1::TaskInfo> {
    let operations = call.accept.iter().flat_map(|accept| &accept.operations);
    operations.flat_map(|operation| {
        let plain = operation.launch.iter().flat_map(|launch| &launch.task_infos);
        plain.chain(operation.launch_group.iter().flat_map(|launch| &launch.task_group.tasks))
    })
}

impl fmt::Display for Note<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::MasterStarts { generation, place } => write!(f, "master     m{generation} leads on host {place}"),
            Note::MasterDeposed { generation } => {
                write!(f, "master     m{generation} is deposed and has not detected it")
            }
            Note::MasterStops => f.write_str("master     ends"),
            Note::MasterExits { reason } => write!(f, "master     exits: {reason}"),
            Note::AgentStarts { agent } => write!(f, "agent {agent}    starts"),
            Note::AgentStops { agent } => write!(f, "agent {agent}    ends"),
            Note::AgentExits { agent, why } => write!(f, "agent {agent}    exits: {why}"),
            Note::AgentCannotStart { agent, why } => write!(f, "agent {agent}    cannot start: {why}"),
            Note::AgentStartRefused { agent, why } => write!(f, "agent {agent}    cannot start on this disk: {why}"),
            Note::WriteRefused { agent } => write!(f, "agent {agent}    retries a refused write"),
            Note::CheckpointsFail { agent, why } => write!(f, "agent {agent}    disk failure reported: {why}"),
            Note::CheckpointsWork { agent } => write!(f, "agent {agent}    disk recovered"),
            Note::TaskForFailingDisk { agent, framework, task } => {
                write!(f, "agent {agent} <  {framework}/{task}, while its disk fails")
            }
            Note::RegistryRefused { why } => write!(f, "master     cannot write its registry: {why}"),
            Note::TaskFromFormerMaster { agent, framework, task } => {
                write!(f, "agent {agent} <  {framework}/{task} from a deposed master")
            }
            Note::TaskDropped { agent, framework, task } => write!(f, "agent {agent}    drops {framework}/{task}"),
            Note::SchedulerStarts { scheduler } => write!(f, "sched {scheduler}    starts"),
            Note::SchedulerStops { scheduler } => write!(f, "sched {scheduler}    ends"),
            Note::SchedulerEnds { scheduler, ending } => write!(f, "sched {scheduler}    is done: {ending:?}"),
            Note::CallRefused { scheduler, call, why } => {
                write!(f, "sched {scheduler} <  {} refused: {why}", call.r#type().as_str_name())
            }
            Note::ExecutorEnds { agent, framework, id, status } => {
                write!(f, "exec       {framework}/{id} on agent {agent} ends with {status}")
            }
            Note::UpdateCreated { framework, task, state, uuid } => {
                write!(f, "exec       {framework}/{task} sends #{} {}", number(uuid), state.as_str_name())
            }
            Note::OperatorCalls { call, .. } => write!(f, "operator > {}", call.r#type().as_str_name()),
            Note::OperatorAnswered { done, .. } => write!(f, "operator < {}", if *done { "done" } else { "refused" }),
            Note::VolumeCreated { agent, directory } => write!(f, "agent {agent}    creates {directory}"),
            Note::VolumeDestroyed { agent, directory } => write!(f, "agent {agent}    destroys {directory}"),
            Note::VolumeUsed { framework, task, id, data, .. } => {
                let seen = if data.is_some() { "uses" } else { "does not see" };
                write!(f, "exec       {framework}/{task} {seen} {id}")
            }
            Note::UpdateAcknowledged { framework, uuid } => {
                write!(f, "exec       of {framework} receives the acknowledgement of #{}", number(uuid))
            }
        }
    }
}
