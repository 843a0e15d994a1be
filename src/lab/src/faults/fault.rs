//! The faults of a plan: their effect on a world, and their lines in a log.

use std::fmt;
use std::time::Duration;

use crate::seeds::Seed;
use crate::span::show_span;
use crate::world::{CrashPoint, Observer, PlannedCrash, Process, Refusal, World};

use super::operate::Action;
use super::rng::FaultRng;

/// A fault with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Time after the beginning of the run.
    pub at: Duration,
    /// What the fault does.
    pub kind: Kind,
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    missing_docs,
    reason = "`downtime`: until the process is started again; `durable` and `arrives`: see the world's faults"
)]
pub enum Kind {
    /// A process crashes.
    Crash { process: Process, downtime: Duration, durable: u32, arrives: bool },
    /// A process crashes in its next batch that has outputs or writes.
    PlannedCrash { process: Process, planned_crash: PlannedCrash },
    /// Another master takes over.
    FailOver { downtime: Duration, durable: u32, arrives: bool },
    /// Another master takes over, and the former leader continues for a while without knowing it.
    Depose { lasts: Duration, downtime: Duration, durable: u32, arrives: bool },
    /// An agent's host restarts.
    Reboot { agent: usize, downtime: Duration, durable: u32 },
    /// An agent and all its executors are killed, but its host does not restart.
    KillAll { agent: usize, downtime: Duration, durable: u32 },
    /// An executor's process is killed.
    KillExecutor { agent: usize, pick: usize },
    /// An executor's connection to its agent breaks.
    CutExecutor { agent: usize, pick: usize },
    /// The next `containers` containers of an agent cannot be started.
    FailContainers { agent: usize, containers: u32 },
    /// The connection of an agent or a scheduler to the master breaks.
    Cut { process: Process },
    /// One direction of the connection between an agent and the master breaks.
    CutOneWay { agent: usize, to_master: bool },
    /// All messages between a process and the master are lost for a while.
    Partition { process: Process, span: Duration },
    /// Messages between a process and the master are delayed to the end of a period.
    Stall { process: Process, span: Duration },
    /// Messages between a process and the master are delayed in one direction only.
    StallOneWay { process: Process, span: Duration, to_master: bool },
    /// Disk writes of a process take longer for a while.
    SlowDisk { process: Process, span: Duration, by: Duration },
    /// The disk of an agent's checkpoints or of the registry refuses writes.
    RefuseWrites { process: Process, refusal: Refusal, span: Duration },
    /// The clock of a process runs too fast or too slow, in parts of a million.
    Drift { process: Process, drift: i32 },
    /// An operator makes a call.
    Operate(Action),
}

/// The longest pause of processes and networks, except for the few up to [`LONG_PAUSE`].
const PAUSE: Duration = Duration::from_secs(20);
/// The longest pause of all; it exceeds the timeouts of agents and frameworks.
pub(super) const LONG_PAUSE: Duration = Duration::from_secs(900);

impl Fault {
    /// Draws the fault of this seed, within `horizon`, in a cluster of this many agents and schedulers.
    pub fn draw(seed: Seed, horizon: Duration, agents: usize, schedulers: usize) -> Fault {
        let mut rng = FaultRng::new(seed);
        let at = Duration::from_millis(rng.within(0, horizon.as_millis() as u64));
        let agent = rng.below(agents as u64) as usize;
        let scheduler = rng.below(schedulers as u64) as usize;
        let pick = rng.below(16) as usize;
        let some = [Process::Agent(agent), Process::Scheduler(scheduler)];
        let any = [Process::Master, Process::Agent(agent), Process::Agent(agent), Process::Scheduler(scheduler)];
        let span = if rng.chance(8) { rng.span(LONG_PAUSE) } else { rng.span(PAUSE) };
        let durable = rng.below(8) as u32;
        let arrives = rng.chance(50);
        let planned_crash = |rng: &mut FaultRng| PlannedCrash {
            point: if rng.chance(60) { CrashPoint::Writing(durable) } else { CrashPoint::After(durable) },
            downtime: span,
        };
        let kind = match rng.below(132) {
            125.. => {
                let lasts = Duration::from_millis(rng.within(200, 20_000));
                Kind::Depose { lasts, downtime: span.min(lasts), durable, arrives }
            }
            100..125 => Kind::Operate(Action::draw(&mut rng, agent)),
            0..16 => Kind::Crash { process: rng.pick(&any), downtime: span, durable, arrives },
            16..34 => Kind::PlannedCrash { process: rng.pick(&any), planned_crash: planned_crash(&mut rng) },
            34..40 => Kind::FailOver { downtime: span, durable, arrives },
            40..45 => Kind::Reboot { agent, downtime: span, durable },
            45 => Kind::KillAll { agent, downtime: span, durable },
            46..54 => Kind::KillExecutor { agent, pick },
            54..58 => Kind::CutExecutor { agent, pick },
            58..61 => Kind::FailContainers { agent, containers: 1 + durable % 3 },
            61..64 => Kind::CutOneWay { agent, to_master: arrives },
            64..70 => Kind::Cut { process: rng.pick(&some) },
            70..79 => Kind::Partition { process: rng.pick(&some), span },
            79..82 => Kind::StallOneWay { process: rng.pick(&some), span, to_master: arrives },
            82..86 => Kind::Stall { process: rng.pick(&some), span },
            86..93 => {
                let by = rng.span(Duration::from_secs(5));
                Kind::SlowDisk { process: rng.pick(&any[..3]), span: span * 4, by }
            }
            _ => Kind::Drift { process: rng.pick(&any), drift: rng.within(0, 100_000) as i32 - 50_000 },
        };
        Fault { at, kind }
    }

    /// Injects the fault into a world.
    pub fn inject<O: Observer>(&self, world: &mut World<O>) {
        let now = world.now();
        match self.kind {
            Kind::Crash { process, downtime, durable, arrives } => match process {
                Process::Master => world.crash_master_with(downtime, durable, arrives),
                Process::Agent(agent) => world.crash_agent_with(agent, downtime, durable, arrives),
                // Half of the time the master notices only after the next process has started.
                Process::Scheduler(scheduler) => {
                    let noticed = Duration::from_millis(if durable % 2 == 0 { 50 } else { 30_000 });
                    world.crash_scheduler(scheduler, downtime, noticed, arrives);
                }
            },
            Kind::PlannedCrash { process, planned_crash } => world.plan_crash(process, planned_crash),
            Kind::FailOver { downtime, durable, arrives } => world.fail_master_over(downtime, durable, arrives),
            Kind::Depose { lasts, downtime, durable, arrives } => {
                world.depose_master(lasts, downtime, durable, arrives)
            }
            Kind::Reboot { agent, downtime, durable } => world.reboot_agent(agent, downtime, durable),
            Kind::KillAll { agent, downtime, durable } => world.kill_agent_and_executors(agent, downtime, durable),
            Kind::KillExecutor { agent, pick } => world.kill_executor(agent, pick),
            Kind::CutExecutor { agent, pick } => world.cut_executor(agent, pick),
            Kind::FailContainers { agent, containers } => world.fail_containers(agent, containers),
            Kind::Cut { process } => match process {
                Process::Agent(agent) => world.cut_agent(agent),
                Process::Scheduler(scheduler) => world.cut_framework(scheduler),
                Process::Master => {}
            },
            Kind::CutOneWay { agent, to_master } => world.cut_agent_one_way(agent, to_master),
            Kind::Partition { process, span } => match process {
                Process::Agent(agent) => world.partition_agent(agent, now + span),
                Process::Scheduler(scheduler) => world.partition_framework(scheduler, now + span),
                Process::Master => {}
            },
            Kind::StallOneWay { process, span, to_master } => {
                world.stall_one_way(process, now + span, to_master);
            }
            Kind::Stall { process, span } => match process {
                Process::Agent(agent) => world.stall_agent(agent, now + span),
                Process::Scheduler(scheduler) => world.stall_framework(scheduler, now + span),
                Process::Master => {}
            },
            Kind::SlowDisk { process, span, by } => match process {
                Process::Agent(agent) => world.slow_agent(agent, now + span, by),
                Process::Master => world.slow_registry(now + span, by),
                Process::Scheduler(_) => {}
            },
            Kind::RefuseWrites { process, refusal, span } => match process {
                Process::Agent(agent) => world.refuse_checkpoints(agent, refusal, span),
                Process::Master => world.refuse_registry(refusal, span),
                Process::Scheduler(_) => {}
            },
            Kind::Drift { process, drift } => world.drift(process, drift),
            Kind::Operate(action) => action.inject(world),
        }
    }

    /// Returns milder forms of the fault: shorter ones, if it has a duration.
    pub fn milder(&self) -> Vec<Fault> {
        let mut kind = self.kind.clone();
        let spans: Vec<&mut Duration> = match &mut kind {
            Kind::Crash { downtime, .. }
            | Kind::FailOver { downtime, .. }
            | Kind::Reboot { downtime, .. }
            | Kind::KillAll { downtime, .. } => {
                vec![downtime]
            }
            Kind::Depose { lasts, downtime, .. } => vec![lasts, downtime],
            Kind::PlannedCrash { planned_crash, .. } => vec![&mut planned_crash.downtime],
            Kind::Partition { span, .. } | Kind::Stall { span, .. } | Kind::StallOneWay { span, .. } => vec![span],
            Kind::SlowDisk { span, by, .. } => vec![span, by],
            Kind::RefuseWrites { span, .. } => vec![span],
            _ => Vec::new(),
        };
        let mut milder = false;
        for span in spans {
            milder |= *span > Duration::from_millis(1);
            *span = Duration::from_millis(span.as_millis() as u64 / 2);
        }
        if milder { vec![Fault { at: self.at, kind }] } else { Vec::new() }
    }

    /// Returns whether the fault is about this agent or scheduler.
    pub fn concerns(&self, process: Process) -> bool {
        match self.kind {
            Kind::Crash { process: of, .. }
            | Kind::PlannedCrash { process: of, .. }
            | Kind::Cut { process: of }
            | Kind::Partition { process: of, .. }
            | Kind::Stall { process: of, .. }
            | Kind::StallOneWay { process: of, .. }
            | Kind::SlowDisk { process: of, .. }
            | Kind::RefuseWrites { process: of, .. }
            | Kind::Drift { process: of, .. } => of == process,
            Kind::Reboot { agent, .. }
            | Kind::KillAll { agent, .. }
            | Kind::CutOneWay { agent, .. }
            | Kind::KillExecutor { agent, .. }
            | Kind::CutExecutor { agent, .. }
            | Kind::FailContainers { agent, .. } => Process::Agent(agent) == process,
            Kind::FailOver { .. } | Kind::Depose { .. } => process == Process::Master,
            Kind::Operate(action) => action.agent().is_some_and(|agent| Process::Agent(agent) == process),
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Process::Master => f.write_str("master"),
            Process::Agent(agent) => write!(f, "agent {agent}"),
            Process::Scheduler(scheduler) => write!(f, "scheduler {scheduler}"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |durable: u32, arrives: bool| {
            let sent = if arrives { "sent messages arrive" } else { "messages in flight are lost" };
            format!("part {durable} of a write in progress is durable, {sent}")
        };
        match self {
            Kind::Crash { process, downtime, durable, arrives } => {
                write!(f, "{process} crashes, back in {}: {}", show_span(*downtime), part(*durable, *arrives))
            }
            Kind::PlannedCrash { process, planned_crash } => {
                let when = match planned_crash.point {
                    CrashPoint::Writing(durable) => {
                        format!("during its next write, of which part {durable} is durable")
                    }
                    CrashPoint::After(outputs) => format!("after {outputs} outputs of its next batch"),
                };
                write!(f, "{process} will crash {when}, back in {}", show_span(planned_crash.downtime))
            }
            Kind::FailOver { downtime, durable, arrives } => {
                write!(f, "another master leads in {}: {}", show_span(*downtime), part(*durable, *arrives))
            }
            Kind::Depose { lasts, downtime, durable, arrives } => {
                let (lasts, downtime) = (show_span(*lasts), show_span(*downtime));
                write!(
                    f,
                    "another master leads in {downtime}, the previous one stays up for {lasts}: {}",
                    part(*durable, *arrives)
                )
            }
            Kind::Reboot { agent, downtime, .. } => {
                write!(f, "the host of agent {agent} restarts in {}", show_span(*downtime))
            }
            Kind::KillAll { agent, downtime, .. } => {
                write!(f, "agent {agent} and all its executors are killed, back in {}", show_span(*downtime))
            }
            Kind::KillExecutor { agent, pick } => write!(f, "executor {pick} of agent {agent} is killed"),
            Kind::CutExecutor { agent, pick } => write!(f, "executor {pick} and agent {agent} lose their connection"),
            Kind::FailContainers { agent, containers } => {
                write!(f, "the next {containers} containers of agent {agent} cannot be started")
            }
            Kind::Cut { process } => write!(f, "{process} and the master lose their connection"),
            Kind::CutOneWay { agent, to_master: true } => {
                write!(f, "the connection of agent {agent} to the master breaks")
            }
            Kind::CutOneWay { agent, .. } => write!(f, "the connection of the master to agent {agent} breaks"),
            Kind::StallOneWay { process, span, to_master } => {
                let way = if *to_master {
                    "the master receives no messages from"
                } else {
                    "no message of the master reaches"
                };
                write!(f, "{way} {process} for {}, and then all of them", show_span(*span))
            }
            Kind::Partition { process, span } => {
                write!(f, "no message passes between {process} and the master for {}", show_span(*span))
            }
            Kind::Stall { process, span } => {
                write!(
                    f,
                    "{process} and the master receive no messages of each other for {}, and then all of them",
                    show_span(*span)
                )
            }
            Kind::SlowDisk { process, span, by } => {
                write!(f, "writes of {process} take {} longer for {}", show_span(*by), show_span(*span))
            }
            Kind::RefuseWrites { process, refusal, span } => {
                write!(f, "the disk of {process} refuses writes with {} for {}", refusal.error, show_span(*span))?;
                match refusal.room {
                    Some(room) => write!(f, ", or until {room} deletions free space"),
                    None => Ok(()),
                }
            }
            Kind::Operate(action) => action.fmt(f),
            Kind::Drift { process, drift } => write!(f, "the clock of {process} is fast by {drift} millionths"),
        }
    }
}
