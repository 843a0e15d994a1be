//! Draws the disks of a plan that refuse writes, and other faults of the same processes meanwhile.
//!
//! They have their own branch in the tree of seeds, so the other faults of a seed do not depend on them.

use std::time::Duration;

use super::fault::{Fault, Kind, LONG_PAUSE};
use super::rng::FaultRng;
use crate::seeds::Seed;
use crate::world::{DiskError, Process, Refusal};

/// Percentage of seeds in which disks refuse writes.
const SEEDS: u64 = 30;
/// The longest time for which a disk refuses writes, except for the few up to `LONG_PAUSE`.
const SPAN: Duration = Duration::from_secs(60);

/// Time after the start of a framework within which disks begin to refuse writes: agents write most then.
const BUSY: Duration = Duration::from_secs(30);

/// Draws the disks that refuse writes, in a cluster of this many agents whose frameworks start at `starts`.
pub(super) fn draw(seed: Seed, agents: usize, starts: &[Duration]) -> Vec<Fault> {
    let mut rng = FaultRng::new(seed);
    let mut faults = Vec::new();
    if !rng.chance(SEEDS) {
        return faults;
    }
    for _ in 0..rng.within(1, 3) {
        let begins = rng.pick(starts);
        let at = begins + rng.span(BUSY);
        let agent = rng.below(agents as u64) as usize;
        let process = if rng.chance(75) { Process::Agent(agent) } else { Process::Master };
        let span = if rng.chance(15) { rng.span(LONG_PAUSE) } else { millis(rng.within(500, SPAN.as_millis() as u64)) };
        let refusal = refusal(&mut rng, process);
        faults.push(Fault { at, kind: Kind::RefuseWrites { process, refusal, span } });
        let mut crashes_within = span;
        if process == Process::Agent(agent) && rng.chance(70) {
            let span = millis(rng.within(500, 15_000));
            crashes_within = span;
            let kind = match rng.chance(50) {
                // No messages pass between the agent and the master.
                true => Kind::Partition { process, span },
                // Launches still arrive, because the master does not learn that the agent is unhealthy.
                false => Kind::StallOneWay { process, span, to_master: true },
            };
            faults.push(Fault { at, kind });
        }
        if rng.chance(60) {
            let at = at + millis(rng.within(0, crashes_within.as_millis() as u64));
            let (downtime, durable) = (rng.span(Duration::from_secs(20)), rng.below(8) as u32);
            faults.push(Fault { at, kind: Kind::Crash { process, downtime, durable, arrives: rng.chance(50) } });
        }
    }
    faults
}

fn refusal(rng: &mut FaultRng, process: Process) -> Refusal {
    let errors = [DiskError::NoSpace, DiskError::Quota, DiskError::ReadOnly, DiskError::Io, DiskError::Descriptors];
    // A registry's file is already open, so it needs no descriptor.
    let error = rng.pick(if process == Process::Master { &errors[..4] } else { &errors });
    let is_full = matches!(error, DiskError::NoSpace | DiskError::Quota);
    let room = (rng.chance(40) && is_full && process != Process::Master).then(|| rng.within(1, 3) as u32);
    Refusal { error, room, partial: rng.below(8) as u32, reserve: rng.chance(50) }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
