//! Runs a plan: builds its world, injects the faults at their times, ends them, lets an operator restore the group, and
//! checks the rules.

use std::time::Duration;

use base::Time;

use super::history::first_violation;
use super::plan::Plan;
use super::world::World;
use crate::faults::Broken;
use crate::world::BEGIN;

/// A group without faults has a leader within this time, five leases: one for promises to the leader before, one for
/// members that have started and wait, and three for elections that a member with a later round makes anew.
const ELECTION: Duration = Duration::from_secs(5);
/// An operator adds or removes a member in a group without faults within this time.
///
/// A master is started and shows itself for a lease, and an election may come between.
const CHANGE: Duration = Duration::from_secs(8);
/// In a group without faults a write is done within this time. An election may come between.
const WRITE: Duration = Duration::from_secs(5);
/// All members know all that was decided within this time: members ask for the log again every half lease, and some of
/// these questions are late.
const CATCH_UP: Duration = Duration::from_secs(4);
/// How often it is examined whether something has happened.
const LOOK: Duration = Duration::from_millis(20);

/// What became of a plan.
#[derive(Debug)]
pub struct Played {
    /// The first rule that was broken.
    pub broken: Option<Broken>,
    /// Hash over all messages between masters.
    pub digest: u64,
    /// Events that happened.
    pub events: u64,
    /// Reads and writes of clients.
    pub operations: u64,
    /// How often a master has begun to lead.
    pub leaders: u64,
    /// The virtual time that passed.
    pub time: Duration,
    /// From the end of all faults until a master led.
    pub election: Duration,
    /// The longest time of a change of the members after that.
    pub change: Duration,
    /// A line for each event, if the log is kept.
    pub log: Vec<String>,
}

/// Plays a plan to its end, or to the first rule that is broken.
pub fn play(plan: &Plan, keep_log: bool) -> Played {
    let mut world = World::new(plan.setup.clone(), plan.root(), keep_log);
    for fault in &plan.faults {
        let time = fault.at.saturating_sub(world.now().since(BEGIN));
        world.run(time);
        world.note(|| format!("FAULT      {}", fault.kind));
        fault.strike(&mut world);
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
    Played {
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

/// Ends all faults, and checks that the group becomes whole in time. Returns how long an election and a change of the
/// members took.
pub(super) fn restore(world: &mut World) -> (Duration, Duration) {
    world.note(|| "FAULT      no more: all is healed".to_owned());
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
        world.run(LOOK);
    }
    finish(world);
    (election, change)
}

/// An operator makes every master a member with the disk that it has now. Returns the longest time that a change took.
fn repair(world: &mut World) -> Duration {
    let rule = "members change in time";
    let mut longest = Duration::ZERO;
    let rest = |world: &mut World| match world.operators_rest() {
        true => Ok(()),
        false => Err("an operator waits".to_owned()),
    };
    // What operators began during the faults, they give up in the end.
    wait(world, world.now() + 2 * CHANGE, rule, &mut |world| rest(world));
    while world.broken().is_none()
        && let Some(act) = world.next_repair()
    {
        let began = world.now();
        world.operate(&[act]);
        wait(world, began + CHANGE, rule, &mut |world| match (rest(world), world.next_repair() == Some(act)) {
            (Ok(()), false) => Ok(()),
            _ => Err(format!("an operator {act}, and it is not done")),
        });
        longest = longest.max(world.now().since(began));
    }
    longest
}

/// All keys are written and read once more, and all members must know everything.
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

/// Lets time pass until something holds. It breaks the rule if it does not hold by then.
fn wait(world: &mut World, until: Time, rule: &'static str, holds: &mut dyn FnMut(&mut World) -> Result<(), String>) {
    while world.broken().is_none() {
        let Err(why) = holds(world) else { return };
        if world.now() >= until {
            return world.fail(rule, || why);
        }
        world.run(LOOK);
    }
}
