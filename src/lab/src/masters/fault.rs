//! The faults of a plan: their effect on a world of masters, and their lines in a log.

use std::fmt;
use std::time::Duration;

use super::world::{OperatorAction, PARTS, World};
use crate::faults::rng::FaultRng;
use crate::seeds::Seed;
use crate::span::show_span;
use crate::world::DiskError;

/// A fault with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Time after the beginning of the run.
    pub at: Duration,
    /// What the fault does.
    pub kind: Kind,
}

/// The master that a fault affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The master that leads at the time of the fault, or the first one if none leads.
    Leader,
    /// The master with this number.
    Master(usize),
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    missing_docs,
    reason = "`downtime`: until the process is started again; `part`: of a write in progress so many parts are durable; \
              `arrives`: what is sent meanwhile arrives late, and is not lost"
)]
pub enum Kind {
    /// The process of a master crashes.
    Crash { target: Target, part: u32, downtime: Duration },
    /// The process of a master crashes in its next write.
    PlannedCrash { target: Target, part: u32, downtime: Duration },
    /// The processes of all masters crash at once.
    CrashAll { part: u32, downtime: Duration },
    /// The process of a master is stopped for a while.
    Stop { target: Target, span: Duration },
    /// The connections between two masters break.
    Cut { one: usize, other: usize },
    /// Messages from one master to another one are lost or delayed for a while.
    Partition { from: usize, to: usize, span: Duration, arrives: bool },
    /// Messages between a master and all others are lost or delayed for a while.
    Isolate { target: Target, span: Duration, arrives: bool },
    /// Some of all messages are lost for a while.
    Lose { percent: u64, span: Duration },
    /// All messages take longer for a while.
    SlowNetwork { by: Duration, span: Duration },
    /// Disk writes of a master take longer for a while.
    SlowDisk { target: Target, by: Duration, span: Duration },
    /// The disk of a master refuses writes for a while.
    RefuseWrites { target: Target, error: DiskError, part: u32, span: Duration },
    /// The disk of a master is replaced by an empty one.
    ReplaceDisk { target: Target, downtime: Duration },
    /// The clock of a master runs too fast or too slow, in parts of a million.
    Drift { target: Target, drift: i32 },
    /// An operator performs actions.
    Operate(Vec<OperatorAction>),
    /// The disk of a master is replaced by an empty one; an operator adds a spare master, removes the member and adds
    /// it again.
    Replace { at: usize, spare: usize, downtime: Duration },
}

/// The longest pause of processes and networks.
const PAUSE: Duration = Duration::from_secs(8);
/// The largest drift of clocks, in parts of a million. Leases permit a tenth between two of them.
const DRIFT: u64 = 50_000;

impl Fault {
    /// Draws the fault of this seed, within `horizon`, in a group of this many founders and spares.
    pub fn draw(seed: Seed, horizon: Duration, founders: usize, spares: usize) -> Fault {
        let mut rng = FaultRng::new(seed);
        let at = Duration::from_millis(rng.within(1000, horizon.as_millis() as u64));
        let count = (founders + spares) as u64;
        let mut master = || rng.below(count) as usize;
        let (one, other, third) = (master(), master(), master());
        let spare = founders + rng.below(spares as u64) as usize;
        let target = if rng.chance(50) { Target::Leader } else { Target::Master(one) };
        let (part, span) = (rng.below(u64::from(PARTS) + 1) as u32, rng.span(PAUSE));
        // Half of the processes restart almost at once.
        let downtime = if rng.chance(50) { rng.span(Duration::from_millis(300)) } else { span };
        let arrives = rng.chance(40);
        let kind = match rng.below(100) {
            0..12 => Kind::Crash { target, part, downtime },
            12..24 => Kind::PlannedCrash { target, part, downtime },
            24..28 => Kind::CrashAll { part, downtime },
            28..36 => Kind::Stop { target, span },
            36..40 => Kind::Cut { one, other },
            40..50 => Kind::Partition { from: one, to: other, span, arrives },
            50..58 => Kind::Isolate { target, span, arrives },
            58..61 => Kind::Lose { percent: rng.within(1, 40), span },
            61..64 => Kind::SlowNetwork { by: rng.span(Duration::from_millis(800)), span },
            64..70 => Kind::SlowDisk { target, by: rng.span(Duration::from_millis(1500)), span },
            70..75 => Kind::RefuseWrites { target, error: rng.pick(&ERRORS), part, span },
            75..80 => Kind::ReplaceDisk { target, downtime },
            80..84 => Kind::Drift { target, drift: rng.within(0, 2 * DRIFT) as i32 - DRIFT as i32 },
            84..89 => Kind::Operate(vec![OperatorAction::HandOver(rng.chance(50).then_some(other))]),
            89..92 => Kind::Operate(vec![OperatorAction::Add(spare)]),
            92..95 => Kind::Operate(vec![OperatorAction::Add(spare), OperatorAction::Remove(third)]),
            95..97 => Kind::Operate(vec![OperatorAction::Remove(one)]),
            _ => Kind::Replace { at: one, spare, downtime },
        };
        Fault { at, kind }
    }

    /// Injects the fault into a world.
    pub fn inject(&self, world: &mut World) {
        let all = 0..world.count();
        match &self.kind {
            Kind::Crash { target, part, downtime } => {
                let at = target.find(world);
                world.crash(at, *part, Some(*downtime));
            }
            Kind::PlannedCrash { target, part, downtime } => {
                let at = target.find(world);
                world.plan_crash(at, *part, *downtime);
            }
            Kind::CrashAll { part, downtime } => all.for_each(|at| {
                if world.membership_state(at).is_some() {
                    world.crash(at, *part, Some(*downtime));
                }
            }),
            Kind::Stop { target, span } => {
                let at = target.find(world);
                world.stop(at, *span);
            }
            Kind::Cut { one, other } => world.cut(*one, *other),
            Kind::Partition { from, to, span, arrives } => world.partition(*from, *to, *span, *arrives),
            Kind::Isolate { target, span, arrives } => {
                let at = target.find(world);
                all.filter(|other| *other != at).for_each(|other| {
                    world.partition(at, other, *span, *arrives);
                    world.partition(other, at, *span, *arrives);
                });
            }
            Kind::Lose { percent, span } => world.lose(*percent, *span),
            Kind::SlowNetwork { by, span } => world.slow_network(*by, *span),
            Kind::SlowDisk { target, by, span } => {
                let at = target.find(world);
                world.slow_disk(at, *by, *span);
            }
            Kind::RefuseWrites { target, error, part, span } => {
                let at = target.find(world);
                world.refuse_writes(at, *error, *part, *span);
            }
            Kind::ReplaceDisk { target, downtime } => {
                let at = target.find(world);
                world.replace_disk(at, *downtime);
            }
            Kind::Drift { target, drift } => {
                let at = target.find(world);
                world.drift(at, *drift);
            }
            Kind::Operate(actions) => world.operate(actions),
            Kind::Replace { at, spare, downtime } => {
                world.replace_disk(*at, *downtime);
                world.operate(&[OperatorAction::Add(*spare), OperatorAction::Remove(*at), OperatorAction::Add(*at)]);
            }
        }
    }

    /// Returns milder forms of the fault: shorter ones, if it has a duration.
    pub fn milder(&self) -> Vec<Fault> {
        let mut kind = self.kind.clone();
        let spans: Vec<&mut Duration> = match &mut kind {
            Kind::Crash { downtime, .. }
            | Kind::PlannedCrash { downtime, .. }
            | Kind::CrashAll { downtime, .. }
            | Kind::ReplaceDisk { downtime, .. }
            | Kind::Replace { downtime, .. } => vec![downtime],
            Kind::Stop { span, .. }
            | Kind::Partition { span, .. }
            | Kind::Isolate { span, .. }
            | Kind::Lose { span, .. }
            | Kind::RefuseWrites { span, .. } => vec![span],
            Kind::SlowNetwork { by, span } | Kind::SlowDisk { by, span, .. } => vec![by, span],
            Kind::Cut { .. } | Kind::Drift { .. } | Kind::Operate(_) => Vec::new(),
        };
        let mut milder = false;
        for span in spans {
            milder |= *span > Duration::from_millis(1);
            *span = Duration::from_millis(span.as_millis() as u64 / 2);
        }
        if milder { vec![Fault { at: self.at, kind }] } else { Vec::new() }
    }
}

const ERRORS: [DiskError; 5] =
    [DiskError::NoSpace, DiskError::Quota, DiskError::Descriptors, DiskError::ReadOnly, DiskError::Io];

impl Target {
    fn find(self, world: &mut World) -> usize {
        match self {
            Target::Leader => world.leader().unwrap_or_default(),
            Target::Master(at) => at,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Leader => f.write_str("the leading master"),
            Target::Master(at) => write!(f, "master {at}"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = |arrives: bool| if arrives { "arrive at the end" } else { "are lost" };
        match self {
            Kind::Crash { target, part, downtime } => {
                let downtime = show_span(*downtime);
                write!(
                    f,
                    "{target} crashes, back in {downtime}: part {part} of {PARTS} of a write in progress is durable"
                )
            }
            Kind::PlannedCrash { target, part, downtime } => {
                let downtime = show_span(*downtime);
                write!(
                    f,
                    "{target} will crash in its next write, of which part {part} of {PARTS} is durable, back in {downtime}"
                )
            }
            Kind::CrashAll { part, downtime } => {
                let downtime = show_span(*downtime);
                write!(
                    f,
                    "all masters crash, back in {downtime}: part {part} of {PARTS} of writes in progress is durable"
                )
            }
            Kind::Stop { target, span } => write!(f, "{target} is stopped for {}", show_span(*span)),
            Kind::Cut { one, other } => write!(f, "masters {one} and {other} lose their connections"),
            Kind::Partition { from, to, span, arrives } => {
                let (span, way) = (show_span(*span), way(*arrives));
                write!(f, "messages of master {from} to master {to} for {span} {way}")
            }
            Kind::Isolate { target, span, arrives } => {
                let (span, way) = (show_span(*span), way(*arrives));
                write!(f, "messages between {target} and the others for {span} {way}")
            }
            Kind::Lose { percent, span } => write!(f, "{percent} % of the messages are lost for {}", show_span(*span)),
            Kind::SlowNetwork { by, span } => {
                write!(f, "messages take {} longer for {}", show_span(*by), show_span(*span))
            }
            Kind::SlowDisk { target, by, span } => {
                write!(f, "writes of {target} take {} longer for {}", show_span(*by), show_span(*span))
            }
            Kind::RefuseWrites { target, error, part, span } => {
                let span = show_span(*span);
                write!(
                    f,
                    "the disk of {target} refuses writes with {error} for {span}, and keeps part {part} of {PARTS}"
                )
            }
            Kind::ReplaceDisk { target, downtime } => {
                write!(f, "{target} loses its disk, back in {}", show_span(*downtime))
            }
            Kind::Drift { target, drift } => write!(f, "the clock of {target} is fast by {drift} millionths"),
            Kind::Operate(actions) => {
                let actions: Vec<String> = actions.iter().map(ToString::to_string).collect();
                write!(f, "an operator {}", actions.join(", then "))
            }
            Kind::Replace { at, spare, downtime } => {
                write!(f, "master {at} loses its disk, back in {}; an operator ", show_span(*downtime))?;
                write!(f, "adds master {spare}, removes master {at}, and adds it again")
            }
        }
    }
}
