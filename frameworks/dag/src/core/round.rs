//! One scheduling round: tasks are placed on the held offers in the order of stages, and the remaining offers are
//! declined.

use std::sync::Arc;

use base::Time;
use jobs::Need;
use jobs::constraint::Checker;
use jobs::offers::{AgentOffers, Hold, TaskResources};
use jobs::place::{Placer, Rules};
use sdk::Calls;
use sdk::v1::Offer;

use super::record::{Phase, Record};
use super::view::JobEvent;
use super::{Core, approximate, sizes};
use crate::order::Action;
use crate::split::Part;

/// A task that was placed in this round.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) serial: u64,
    pub(super) stage: usize,
    pub(super) index: u32,
    /// Part of the input; `None` if the task was launched before and has its part.
    pub(super) part: Option<Part>,
    pub(super) room: usize,
    pub(super) taken: TaskResources,
}

/// The held offers while tasks are placed on them.
pub(super) struct Plan {
    pub(super) rooms: Vec<AgentOffers>,
    placer: Placer,
    pub(super) placed: Vec<Placed>,
}

/// Which of the held offers satisfy a stage's constraints; empty if the stage has none.
struct Allowed(Vec<bool>);

impl Allowed {
    fn new(checker: &Checker, rooms: &[AgentOffers]) -> Allowed {
        if checker.is_empty() {
            return Allowed(Vec::new());
        }
        Allowed(rooms.iter().map(|room| checker.broken_by_agent(&*room.identity).is_none()).collect())
    }
}

impl Rules for Allowed {
    fn allows(&self, room: usize) -> bool {
        self.0.get(room).copied().unwrap_or(true)
    }

    fn placed(&mut self, _room: usize) {}

    fn taken_back(&mut self, _room: usize) {}
}

impl Plan {
    fn put(&mut self, need: &Need, allowed: &mut Allowed) -> Option<(usize, TaskResources)> {
        loop {
            let room = self.placer.put(need, allowed)?;
            if let Some(taken) = self.rooms[room].take(need) {
                return Some((room, taken));
            }
            // The amounts are available, but not in one reservation: no further task is placed here in this round.
            self.placer.close(room);
        }
    }
}

impl Core {
    /// Adds offers to the held ones.
    pub(super) fn add_offers(&mut self, offers: Vec<Offer>, now: Time, calls: &mut Calls) {
        let mut surplus = Vec::new();
        for offer in offers {
            let id = offer.id.clone();
            match self.offers.add(offer, now, &Hold::default()) {
                Some(room) => {
                    let room = &self.offers.rooms[room];
                    self.known_agents.offered(room, room.free(), now);
                }
                None => surplus.push(id),
            }
        }
        self.dirty = true;
        calls.decline(surplus, self.settings.refuse_idle);
    }

    /// Launches tasks that may run, and declines the offers that are not needed.
    pub(super) fn round(&mut self, now: Time, calls: &mut Calls) {
        if !std::mem::take(&mut self.dirty) || self.offers.is_empty() {
            return;
        }
        let work = self.has_work();
        if work {
            self.place_all(now, calls);
        }
        self.decline_unused_offers(work, calls);
    }

    fn place_all(&mut self, now: Time, calls: &mut Calls) {
        let mut rooms = std::mem::take(&mut self.offers.rooms);
        rooms.retain(|room| !room.offers.is_empty());
        let free: Vec<Need> = rooms.iter().map(AgentOffers::free).collect();
        let observation = Arc::new(self.observe(&free, now));
        let actions = self.order.decide_shared(observation);
        for note in self.order.take_notes() {
            self.record_event(JobEvent::Order { order: self.order.name(), note });
        }
        let placer = Placer::new(self.settings.placement, &free);
        let mut plan = Plan { rooms, placer, placed: Vec::new() };
        for action in actions {
            self.carry_out(action, &mut plan);
        }
        self.launch(plan, now, calls);
    }

    /// Places tasks of a stage until the job has as many as the action says, or no further task fits.
    fn carry_out(&mut self, action: Action, plan: &mut Plan) {
        let Some(stage) = usize::try_from(action.stage).ok() else { return };
        let Some(record) = self.records.get(&action.job) else { return };
        if stage >= record.stages.len() || !record.is_runnable(stage) {
            return;
        }
        let slots = if record.stages[stage].sizing.is_some() { self.slots(action.job, stage) } else { 1 };
        let placed = plan.placed.iter().filter(|placed| placed.serial == action.job).count();
        let held = record.live().saturating_add(u32::try_from(placed).unwrap_or(u32::MAX));
        let need = record.stage(stage).need;
        let mut allowed = Allowed::new(&record.stages[stage].checker, &plan.rooms);
        for _ in held..action.limit {
            let Some(record) = self.records.get_mut(&action.job) else { return };
            if record.stages[stage].ready.is_empty() && record.stages[stage].fresh() == 0 {
                return;
            }
            let Some((room, taken)) = plan.put(&need, &mut allowed) else { return };
            let machine = plan.rooms[room].identity.agent_id.clone();
            let mut skipped = Vec::new();
            let next = next_task(record, stage, (&machine, slots), &mut skipped);
            self.totals.dropped += skipped.len() as u64;
            self.changed.tasks.extend(skipped.into_iter().map(|index| (action.job, stage, index)));
            match next {
                Some((index, part)) => {
                    plan.placed.push(Placed { serial: action.job, stage, index, part, room, taken });
                }
                None => {
                    plan.rooms[room].put_back(taken);
                    // The dropped tasks may have been the last ones.
                    self.jobs_to_advance.insert(action.job);
                    return;
                }
            }
        }
    }

    /// Declines all held offers.
    fn decline_unused_offers(&mut self, work: bool, calls: &mut Calls) {
        let rooms = std::mem::take(&mut self.offers.rooms);
        self.offers.set(Vec::new());
        let unused: Vec<_> = rooms.into_iter().flat_map(|room| room.offers).collect();
        let refuse = if work { self.settings.refuse } else { self.settings.refuse_idle };
        self.offer_state.refused |= !unused.is_empty() && !refuse.is_zero();
        calls.decline(unused, refuse);
    }
}

/// Returns the next task of a stage: one that is tried again, or the next part of the input. Tasks to drop are skipped.
fn next_task(
    record: &mut Record,
    stage: usize,
    (machine, slots): (&str, u32),
    skipped: &mut Vec<u32>,
) -> Option<(u32, Option<Part>)> {
    let job = record.job.clone();
    let run = &mut record.stages[stage];
    while let Some(index) = run.ready.pop_first() {
        if run.tasks().get(&index).is_some_and(|task| matches!(task.phase, Phase::Waiting(_))) {
            return Some((index, None));
        }
    }
    while run.fresh() > 0 {
        let part = sizes::next_part(&job.stages[stage], run, machine, slots);
        let index = run.next;
        run.next += 1;
        if !run.tasks_to_drop.contains(&index) {
            return Some((index, Some(part)));
        }
        run.insert(index, approximate::dropped(part));
        skipped.push(index);
    }
    None
}
