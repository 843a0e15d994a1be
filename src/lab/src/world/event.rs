//! Events of a world. Their effects are in the file of the process that receives them.

use std::sync::Arc;

use base::Time;
use cores::Outbox;
use protos::mesos::{TaskInfo, TaskState, executor, scheduler};

use super::CallRefusal;

/// An event in the queue. Each names the life, connection or serial number of its receiver; an event for an earlier one
/// is dropped.
#[derive(Debug)]
pub(crate) enum Event {
    /// An input arrives at the master, over this connection if there is one.
    Master { life: u32, over: Option<Over>, input: master::Input },
    /// The master handles the inputs that have arrived.
    MasterBatch { life: u32 },
    /// What the master wrote first is durable.
    MasterWritten { life: u32 },
    /// The instant that the master named.
    MasterWake { life: u32 },
    /// The master's process starts.
    StartMaster,
    /// An input arrives at an agent, over its connection with the master if `epoch` names one.
    Agent { agent: u32, life: u32, epoch: Option<u32>, input: agent::Input },
    /// An agent handles the inputs that have arrived.
    AgentBatch { agent: u32, life: u32 },
    /// The first write of an agent is durable.
    AgentWritten { agent: u32, life: u32 },
    /// An agent tries again what its disk has refused.
    AgentTends { agent: u32, life: u32 },
    /// An agent's volumes, which the disk has refused to change, are tried again.
    AgentVolumes { agent: u32, life: u32 },
    /// The instant that an agent named.
    AgentWake { agent: u32, life: u32 },
    /// An agent's process starts.
    StartAgent(u32),
    /// A message arrives at a light agent.
    Light { agent: u32, epoch: u32, message: master::Outgoing },
    /// A task of such an agent gets into a state.
    LightTask { agent: u32, task: u32, serial: u64, state: TaskState },
    /// An agent's process crashes within a write.
    AgentDies { agent: u32, life: u32, doom: Doom },
    /// The same of the master.
    MasterDies { life: u32, doom: Doom },
    /// A master that was deposed finds out.
    FindsOut { life: u32 },
    /// A scheduler detects the leading master.
    SchedulerDetects(u32),
    /// An agent detects the leading master.
    Detect { agent: u32, life: u32 },
    /// Between an agent and the master everything arrives again.
    AgentRejoined(u32),
    /// The same between a scheduler and the master.
    SchedulerRejoined(u32),
    /// Data arrives over a scheduler's connection.
    Scheduler { who: u32, connection: u64, what: ToScheduler },
    /// Wake-up of a scheduler's session.
    SchedulerWake { who: u32, life: u32 },
    /// An external wake-up of a scheduler.
    Nudge { who: u32, life: u32 },
    /// A scheduler's process starts.
    StartScheduler(u32),
    /// A message arrives at an executor.
    Executor { executor: u32, serial: u64, what: ToExecutor },
}

impl Event {
    /// The life of the master to which it happens, if it does to one.
    pub fn master(&self) -> Option<u32> {
        match self {
            Event::Master { life, .. }
            | Event::MasterBatch { life }
            | Event::MasterWritten { life }
            | Event::MasterWake { life }
            | Event::MasterDies { life, .. } => Some(*life),
            _ => None,
        }
    }
}

/// A connection to the master: whose, and its epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Agent(u32, u32),
    Scheduler(u32, u32),
}

/// How far a process gets in its next batch before it ends, and for how long it stays away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doom {
    /// In the midst of the write, after this many entries (of the next one, if it appends, a half is there); else after
    /// the write, when this many outputs have been carried out.
    pub moment: Moment,
    /// For how long it stays away.
    pub away: std::time::Duration,
}

impl Doom {
    /// Takes the doom of a process if it ends in this batch, and removes the outputs that it does not carry out.
    pub(super) fn take<P, O>(doom: &mut Option<Doom>, out: &mut Outbox<P, O>) -> Option<Doom> {
        let ends = match doom.as_ref()?.moment {
            Moment::Writing(_) => !out.persist.is_empty(),
            Moment::After(_) => !out.outputs.is_empty(),
        };
        let doom = doom.take_if(|_| ends)?;
        if let Moment::After(outputs) = doom.moment {
            out.outputs.truncate(outputs as usize);
        }
        Some(doom)
    }

    /// When the process ends whose write begins and ends then.
    pub(super) fn instant(self, from: Time, until: Time) -> Time {
        match self.moment {
            Moment::Writing(_) => from + until.since(from) / 2,
            Moment::After(_) => until,
        }
    }
}

/// When a doomed process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// In the midst of a write, when so much is durable, modulo what there is to write.
    Writing(u32),
    /// When this many outputs of a batch have been carried out.
    After(u32),
}

/// Data for a scheduler.
#[derive(Debug)]
pub(crate) enum ToScheduler {
    /// An event of its stream.
    Event(Arc<scheduler::Event>),
    /// A call was refused.
    Refused { call: Box<sdk::v1::scheduler::Call>, why: CallRefusal },
    /// The connection is gone.
    Closed,
}

/// A message for an executor.
#[derive(Debug)]
pub(crate) enum ToExecutor {
    /// Its process runs; an agent of that life has started it.
    Started { life: u32 },
    /// It is time to subscribe.
    Subscribe,
    /// An event of a stream.
    Event { connection: u64, event: Arc<executor::Event> },
    /// A call was refused.
    Refused { connection: u64 },
    /// A connection is gone.
    Closed { connection: u64 },
    /// Its task ends in this state.
    TaskEnds(TaskState),
    /// The process ends with this wait status.
    Exit(i32),
}

/// State of a task in the model.
pub(crate) type BoxedTask = Box<TaskInfo>;
