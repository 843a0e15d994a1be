//! How a scheduler of a campaign uses offers for its volumes. The messages are in `volume_slots.rs`.

use base::Time;
use resources::{Name, Reservation, Resource, Resources, Role};
use sdk::v1::offer::{Operation, operation};
use sdk::v1::{Offer, TaskInfo};
use sdk::{Calls, task};

use super::super::volume_slots::{self, ABANDON_AFTER, IDLE, Slot};
use super::{CampaignScheduler, task_id};

impl CampaignScheduler {
    /// Returns the slot whose volume a job uses, if it uses one.
    pub(super) fn slot_of(&self, job: usize) -> Option<usize> {
        let slot = job % (self.slots.len() + 1);
        (slot < self.slots.len() && !self.is_service(job)).then_some(slot)
    }

    /// Creates, uses and destroys volumes with the held offers. Offers that are not needed for it stay held.
    pub(super) fn use_volumes(&mut self, now: Time, calls: &mut Calls) {
        let Ok(role) = Role::parse(self.plan.role) else { return };
        for offer in std::mem::take(&mut self.held) {
            let operations = self.operations(&role, &offer, now, calls);
            if operations.is_empty() {
                self.held.push(offer);
            } else {
                calls.accept(vec![offer.id], operations, self.plan.refuse);
            }
        }
    }

    fn operations(&mut self, role: &Role, offer: &Offer, now: Time, calls: &mut Calls) -> Vec<Operation> {
        let mut left = task::from_v1(&offer.resources).unwrap_or_default().unallocated();
        let (mut operations, mut tasks) = (Vec::new(), Vec::new());
        for volume in &left.persistent_volumes() {
            let Some((slot, attempt)) = volume_slots::read_id(self.framework, volume) else { continue };
            let Some(known) = self.slots.get(slot).copied() else { continue };
            let present = attempt == known.attempt;
            let useless = known.idle.is_some_and(|since| since + IDLE <= now);
            if present && self.is_wanted(slot) && !useless {
                let waits = self.waits_for(slot);
                let started = self.tasks(role, slot, volume, &mut left, calls);
                let idle = known.idle.or(Some(now)).filter(|_| waits && started.is_empty());
                self.put(slot, Slot { live: true, seen: Some(now), idle, ..known }, calls);
                tasks.extend(started);
            } else {
                if present {
                    self.put(slot, Slot { live: false, idle: None, ..known }, calls);
                }
                operations.extend(volume_slots::unmake(role, volume));
            }
        }
        let size = volume_slots::reserved(role);
        let is_free =
            |disk: &&Resource| *disk.name() == Name::Disk && disk.disk().is_none() && disk.amount() >= size.amount();
        let kept = |disk: &&Resource| disk.is_dynamically_reserved() && disk.reservation_role() == Some(role);
        let kept = left.iter().filter(is_free).find(kept).cloned();
        let plain = left.iter().filter(is_free).any(Resource::is_unreserved);
        // A volume on an agent that cannot fit a task is of no use.
        let room = left.non_revocable().find(&self.needs_in(role)).is_some();
        let empty = (0..self.slots.len()).find(|slot| !self.slots[*slot].live && self.waits_for(*slot));
        match (empty, kept) {
            (Some(slot), kept) if room && (kept.is_some() || plain) => {
                let attempt = self.slots[slot].attempt + 1;
                self.put(slot, Slot { attempt, live: true, seen: Some(now), idle: None }, calls);
                let volume = volume_slots::volume(
                    role,
                    &volume_slots::volume_id(self.framework, slot, attempt),
                    self.plan.shared,
                );
                operations.extend(volume_slots::make(role, volume.clone(), kept.is_some()));
                if self.rng.chance(50) {
                    tasks.extend(self.tasks(role, slot, &volume, &mut left, calls));
                }
            }
            (None, Some(kept)) => operations.push(volume_slots::free(role, &kept)),
            _ => {}
        }
        operations.extend(launch(offer, tasks));
        operations
    }

    /// Returns tasks for the jobs that wait for a volume: one at a time, unless it is shared.
    fn tasks(
        &mut self,
        role: &Role,
        slot: usize,
        volume: &Resource,
        left: &mut Resources,
        calls: &mut Calls,
    ) -> Vec<TaskInfo> {
        let most = if self.plan.shared { self.plan.at_once } else { 1 };
        let waiting: Vec<usize> = self.waiting().filter(|n| self.slot_of(*n) == Some(slot)).take(most).collect();
        let needs = self.needs_in(role);
        let mut tasks = Vec::new();
        for n in waiting {
            let Some(mut found) = left.non_revocable().find(&needs) else { break };
            *left -= &found;
            found.add_ref(volume);
            let id = task_id(n, self.jobs[n].attempt + 1);
            tasks.push(task::shell(&id, &self.command(n), &found.allocated(role)));
            self.launched(n, calls);
        }
        tasks
    }

    /// Returns the resources that a task needs. Those that are reserved to its role are used first.
    fn needs_in(&self, role: &Role) -> Resources {
        self.needs.push_reservation(&Reservation::fixed(role.clone()))
    }

    /// Returns whether a job that is not done uses the volume of a slot.
    fn is_wanted(&self, slot: usize) -> bool {
        (0..self.jobs.len()).any(|n| !self.jobs[n].done && self.slot_of(n) == Some(slot))
    }

    fn waits_for(&self, slot: usize) -> bool {
        self.waiting().any(|n| self.slot_of(n) == Some(slot))
    }

    /// Decides at the end of a job whether its volume is abandoned, so that the next one is a new volume.
    pub(super) fn change_volume(&mut self, job: usize, calls: &mut Calls) {
        let Some(slot) = self.slot_of(job) else { return };
        if self.rng.chance(self.plan.changes) {
            let known = self.slots[slot];
            self.put(slot, Slot { attempt: known.attempt + 1, live: false, idle: None, ..known }, calls);
        }
    }

    /// Abandons volumes that have not been seen for [`ABANDON_AFTER`]. Returns when to check again.
    pub(super) fn miss_volumes(&mut self, now: Time, calls: &mut Calls) -> Option<Time> {
        let mut next = None;
        for slot in 0..self.slots.len() {
            let known = self.slots[slot];
            if (0..self.jobs.len()).any(|n| self.jobs[n].running && self.slot_of(n) == Some(slot)) {
                self.slots[slot].seen = Some(now);
            } else if let Some(at) = known.seen.map(|seen| seen + ABANDON_AFTER).filter(|_| known.live) {
                if at <= now {
                    self.put(slot, Slot { live: false, ..known }, calls);
                } else {
                    next = [next, Some(at)].into_iter().flatten().min();
                }
            }
        }
        next
    }

    fn put(&mut self, slot: usize, new: Slot, calls: &mut Calls) {
        let old = std::mem::replace(&mut self.slots[slot], new);
        if (old.attempt, old.live) != (new.attempt, new.live) {
            calls.save(&volume_slots::key(slot), new.to_bytes());
        }
    }
}

fn launch(offer: &Offer, mut tasks: Vec<TaskInfo>) -> Option<Operation> {
    tasks.iter_mut().for_each(|task| task.agent_id = offer.agent_id.clone());
    let launch = operation::Launch { task_infos: tasks };
    let is_needed = !launch.task_infos.is_empty();
    let kind = Some(operation::Type::Launch as i32);
    is_needed.then(|| Operation { r#type: kind, launch: Some(launch), ..Operation::default() })
}
