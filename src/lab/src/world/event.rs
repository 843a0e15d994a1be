//! Events of a world. Their effects are in the file of the process that receives them.

use std::sync::Arc;

use base::Time;
use cores::Outbox;
use protos::mesos::{TaskInfo, TaskState, executor, scheduler};

use super::CallRefusal;

/// An event in the queue. It carries the generation, connection or serial number of its receiver, and is dropped if
/// that is no longer current.
#[derive(Debug)]
pub(crate) enum Event {
    /// An input arrives at the master, over this connection if there is one.
    Master { generation: u32, via: Option<MasterConnection>, input: master::Input },
    /// The master handles the inputs that have arrived.
    MasterBatch { generation: u32 },
    /// The first write of the master is durable.
    MasterWritten { generation: u32 },
    /// A wake-up time of the master is reached.
    MasterWake { generation: u32 },
    /// The master's process starts.
    StartMaster,
    /// An input arrives at an agent, over its connection with the master if `epoch` names one.
    Agent { agent: u32, generation: u32, epoch: Option<u32>, input: agent::Input },
    /// An agent handles the inputs that have arrived.
    AgentBatch { agent: u32, generation: u32 },
    /// The first write of an agent is durable.
    AgentWritten { agent: u32, generation: u32 },
    /// An agent checks its disk, and repeats what it has refused.
    AgentDiskCheck { agent: u32, generation: u32 },
    /// An agent repeats the changes of volumes that its disk has refused.
    AgentVolumes { agent: u32, generation: u32 },
    /// A wake-up time of an agent is reached.
    AgentWake { agent: u32, generation: u32 },
    /// An agent's process starts.
    StartAgent(u32),
    /// A message arrives at a light agent.
    Light { agent: u32, epoch: u32, message: master::Outgoing },
    /// A task of a light agent changes its state.
    LightTask { agent: u32, task: u32, serial: u64, state: TaskState },
    /// An agent's process crashes as planned.
    AgentCrashes { agent: u32, generation: u32, planned_crash: PlannedCrash },
    /// The master's process crashes as planned.
    MasterCrashes { generation: u32, planned_crash: PlannedCrash },
    /// A deposed master detects that it no longer leads.
    DepositionDetected { generation: u32 },
    /// A scheduler detects the leading master.
    SchedulerDetects(u32),
    /// An agent detects the leading master.
    Detect { agent: u32, generation: u32 },
    /// The partition between an agent and the master ends.
    AgentRejoined(u32),
    /// The partition between a scheduler and the master ends.
    SchedulerRejoined(u32),
    /// Data arrives over a scheduler's connection.
    Scheduler { scheduler: u32, connection: u64, what: ToScheduler },
    /// A wake-up time of a scheduler's session is reached.
    SchedulerWake { scheduler: u32, generation: u32 },
    /// A scheduler is woken from outside.
    WakeScheduler { scheduler: u32, generation: u32 },
    /// A scheduler's process starts.
    StartScheduler(u32),
    /// A message arrives at an executor.
    Executor { executor: u32, serial: u64, what: ToExecutor },
}

impl Event {
    /// Returns the generation of the master that receives the event; `None` if another process does.
    pub fn master(&self) -> Option<u32> {
        match self {
            Event::Master { generation, .. }
            | Event::MasterBatch { generation }
            | Event::MasterWritten { generation }
            | Event::MasterWake { generation }
            | Event::MasterCrashes { generation, .. } => Some(*generation),
            _ => None,
        }
    }
}

/// A connection to the master: number of the client, and epoch of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MasterConnection {
    Agent(u32, u32),
    Scheduler(u32, u32),
}

/// A planned crash: how far a process gets in its next batch, and when it starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedCrash {
    /// Point of the batch at which the process ends.
    ///
    /// It is within the write, after this many entries (and a half of the next one, if it appends), or after the write,
    /// when this many outputs have been carried out.
    pub point: CrashPoint,
    /// Time until the process starts again.
    pub downtime: std::time::Duration,
}

impl PlannedCrash {
    /// Takes the planned crash of a process if it ends in this batch, and removes the outputs that are not carried out.
    pub(super) fn take<P, O>(planned_crash: &mut Option<PlannedCrash>, out: &mut Outbox<P, O>) -> Option<PlannedCrash> {
        let ends = match planned_crash.as_ref()?.point {
            CrashPoint::Writing(_) => !out.persist.is_empty(),
            CrashPoint::After(_) => !out.outputs.is_empty(),
        };
        let planned_crash = planned_crash.take_if(|_| ends)?;
        if let CrashPoint::After(outputs) = planned_crash.point {
            out.outputs.truncate(outputs as usize);
        }
        Some(planned_crash)
    }

    /// Returns when the process ends, if its write takes from `from` to `until`.
    pub(super) fn time(self, from: Time, until: Time) -> Time {
        match self.point {
            CrashPoint::Writing(_) => from + until.since(from) / 2,
            CrashPoint::After(_) => until,
        }
    }
}

/// The point of a batch at which a process with a planned crash ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// Within a write, when this many entries are durable, modulo their number plus one.
    Writing(u32),
    /// After this many outputs of a batch have been carried out.
    After(u32),
}

/// Data for a scheduler over its connection.
#[derive(Debug)]
pub(crate) enum ToScheduler {
    /// An event of the scheduler's stream.
    Event(Arc<scheduler::Event>),
    /// A call of the scheduler that was refused.
    Refused { call: Box<sdk::v1::scheduler::Call>, why: CallRefusal },
    /// The connection of the scheduler has ended.
    Closed,
}

/// A message for an executor.
#[derive(Debug)]
pub(crate) enum ToExecutor {
    /// The executor's process has started, in a container that an agent with this life number launched.
    Started { generation: u32 },
    /// The executor must subscribe.
    Subscribe,
    /// An event of the stream of this connection.
    Event { connection: u64, event: Arc<executor::Event> },
    /// The agent refused a call of this connection.
    Refused { connection: u64 },
    /// The connection with this number has ended.
    Closed { connection: u64 },
    /// The tasks of the executor end in this state.
    TaskEnds(TaskState),
    /// The executor's process ends with this wait status.
    Exit(i32),
}

/// A task of an executor, on the heap.
pub(crate) type BoxedTask = Box<TaskInfo>;
