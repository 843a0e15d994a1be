//! Runs a plan: builds its world, injects the faults at their times, ends them, lets an operator restore the group, and
//! checks the rules.

use std::time::Duration;

use base::Time;

use super::history::first_violation;
use super::plan::Plan;
use super::world::World;
use crate::faults::Violation;
use crate::world::BEGIN;

/// The longest time in which a group without faults elects a leader.
///
/// It is five leases: one for promises to the leader before, one for members that have started and wait, and three for
/// elections that a member with a later round repeats.
const ELECTION: Duration = Duration::from_secs(5);
/// The longest time in which an operator adds or removes a member in a group without faults.
///
/// The master is started and must have run for a lease, and an election may happen meanwhile.
const CHANGE: Duration = Duration::from_secs(8);
/// The longest time of a write in a group without faults. An election may happen meanwhile.
const WRITE: Duration = Duration::from_secs(5);
/// The longest time until all members have all decided entries. Members ask for the log again every half lease, and
/// some of these requests are late.
const CATCH_UP: Duration = Duration::from_secs(4);
/// Interval at which a condition is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The result of running a plan of masters.
#[derive(Debug)]
pub struct RunResult {
    /// The first broken rule; `None` if all hold.
    pub broken: Option<Violation>,
    /// Hash over all messages between masters.
    pub digest: u64,
    /// Number of events in the run.
    pub events: u64,
    /// Number of reads and writes of clients.
    pub operations: u64,
    /// Number of times that a master has begun to lead.
    pub leaders: u64,
    /// Virtual time that passed in the run.
    pub time: Duration,
    /// Time from the end of all faults until a master led.
    pub election: Duration,
    /// The longest change of the members after all faults.
    pub change: Duration,
    /// A line for each event; empty unless the log is kept.
    pub log: Vec<String>,
}

/// Runs a plan to its end, or to the first broken rule.
pub fn run_plan(plan: &Plan, keep_log: bool) -> RunResult {
    let mut world = World::new(plan.setup.clone(), plan.root(), keep_log);
    for fault in &plan.faults {
        let time = fault.at.saturating_sub(world.now().since(BEGIN));
        world.run(time);
        world.note(|| format!("FAULT      {}", fault.kind));
        fault.inject(&mut world);
    }
    world.run(plan.horizon.saturating_sub(world.now().since(BEGIN)));
    let (election, change) = restore(&mut world);
    if let Some((key, operations)) = first_violation(world.history()) {
        let show = |operation: &super::history::Operation| format!("{operation:?}");
        world.fail("operations are linearizable", || {
            format!("those on {key} are not: {}", operations.iter().map(show).collect::<Vec<_>>().join("; "))
        });
    }
    let broken = world.broken().cloned();
    if let Some(broken) = &broken {
        world.note(|| format!("BROKEN {broken}"));
    }
    RunResult {
        broken,
        digest: world.digest(),
        events: world.events(),
        operations: world.history().len() as u64,
        leaders: world.leaders() as u64,
        time: world.now().since(BEGIN),
        election,
        change,
        log: world.into_log(),
    }
}

/// Ends all faults, and checks that the group recovers in time. Returns the durations of the election and of the
/// longest change of the members.
pub(super) fn restore(world: &mut World) -> (Duration, Duration) {
    world.note(|| "FAULT      end of faults".to_owned());
    world.heal();
    let healed = world.now();
    let rule = "a group without faults has a leader in time";
    wait(world, healed + ELECTION, rule, &mut |world| match world.leader() {
        Some(_) => Ok(()),
        None => Err("no master leads".to_owned()),
    });
    let election = world.now().since(healed);
    let change = repair(world);
    let rested = world.rest();
    while world.now() < rested && world.broken().is_none() {
        world.run(CHECK_INTERVAL);
    }
    finish(world);
    (election, change)
}

/// Makes every master a member with its present disk, through an operator. Returns the duration of the longest change.
fn repair(world: &mut World) -> Duration {
    let rule = "members change in time";
    let mut longest = Duration::ZERO;
    let rest = |world: &mut World| match world.operators_rest() {
        true => Ok(()),
        false => Err("an operator waits".to_owned()),
    };
    // Operators finish or give up what they began during the faults.
    wait(world, world.now() + 2 * CHANGE, rule, &mut |world| rest(world));
    while world.broken().is_none()
        && let Some(action) = world.next_repair()
    {
        let began = world.now();
        world.operate(&[action]);
        wait(world, began + CHANGE, rule, &mut |world| match (rest(world), world.next_repair() == Some(action)) {
            (Ok(()), false) => Ok(()),
            _ => Err(format!("an operator {action}: not done")),
        });
        longest = longest.max(world.now().since(began));
    }
    longest
}

/// Writes and reads all keys once more, and checks that all members have all entries.
fn finish(world: &mut World) {
    for key in ["k0", "k1", "k2"] {
        world.read_key(key);
        let rule = "a write in a group without faults is done in time";
        let mut operation = None;
        wait(world, world.now() + WRITE, rule, &mut |world| {
            operation = operation.or_else(|| world.write(key));
            match operation.is_some_and(|operation| world.is_acknowledged(operation)) {
                true => Ok(()),
                false => Err(format!("the write {operation:?} of {key} is not acknowledged")),
            }
        });
        world.read_key(key);
    }
    let rule = "members catch up in time";
    wait(world, world.now() + CATCH_UP, rule, &mut |world| {
        let mut positions = (0..world.count()).map(|at| world.position(at));
        let first = positions.next().flatten();
        match first.is_some() && positions.all(|position| position == first) {
            true => Ok(()),
            false => {
                Err(format!("masters are at {:?}", (0..world.count()).map(|at| world.position(at)).collect::<Vec<_>>()))
            }
        }
    });
    for at in 0..world.count() {
        if let Some(operation) = world.lost(at) {
            world.fail("nothing that was acknowledged is lost", || format!("master {at} lacks #{operation}"));
        }
    }
}

/// Runs the world until a condition holds. Reports `rule` as broken if it does not hold at `until`.
fn wait(world: &mut World, until: Time, rule: &'static str, holds: &mut dyn FnMut(&mut World) -> Result<(), String>) {
    while world.broken().is_none() {
        let Err(why) = holds(world) else { return };
        if world.now() >= until {
            return world.fail(rule, || why);
        }
        world.run(CHECK_INTERVAL);
    }
}
