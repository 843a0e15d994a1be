//! The demo's scheduler: it spreads its tasks over the agents and stops when all have ended or one has failed.

use base::Time;
use resources::Resources;
use sdk::v1::{Offer, TaskInfo};
use sdk::{Bin, Calls, DEFAULT_REFUSAL, Event, Packer, Scheduler};

use super::record::Records;
use super::view::View;
use crate::interrupt::Interrupt;

/// A queue of tasks, what became of those before, and who is shown it.
pub(super) struct Demo {
    pending: Vec<TaskInfo>,
    records: Records,
    view: Box<dyn View>,
    interrupt: Interrupt,
}

impl Demo {
    pub(super) fn new(tasks: Vec<TaskInfo>, view: Box<dyn View>, interrupt: Interrupt) -> Demo {
        Demo { pending: tasks, records: Records::default(), view, interrupt }
    }

    /// How many tasks were never launched.
    pub(super) fn left(&self) -> usize {
        self.pending.len()
    }

    /// What became of the tasks.
    pub(super) fn into_records(self) -> Records {
        self.records
    }

    /// Places each waiting task where most processors are free.
    fn offers(&mut self, offers: Vec<Offer>, now: Time, calls: &mut Calls) {
        let mut packer = Packer::new(offers);
        let free = |bin: &Bin| Some(Resources::cpus(bin.left()).to_f64());
        self.pending = std::mem::take(&mut self.pending)
            .into_iter()
            .filter_map(|task| packer.place_by(task, free).err().map(|task| *task))
            .collect();
        for bin in packer.bins() {
            for task in bin.tasks() {
                self.records.launched(task, bin.hostname(), now);
            }
        }
        let refuse = if self.pending.is_empty() { DEFAULT_REFUSAL } else { std::time::Duration::ZERO };
        packer.finish(calls, refuse);
        if self.pending.is_empty() {
            calls.suppress();
        }
    }

    /// A task has ended: the first that failed, and the last of all, end the demo.
    fn ended(&mut self, id: &str, calls: &mut Calls) {
        let record = &self.records.0[id];
        self.view.ended(id, record);
        let all = self.pending.is_empty() && self.records.ended() == self.records.0.len();
        if all || !record.finished() {
            calls.teardown();
        }
    }
}

impl Scheduler for Demo {
    fn on_event(&mut self, event: Event, now: Time, calls: &mut Calls) {
        match event {
            Event::Offers(offers) => self.offers(offers, now, calls),
            Event::Update(status) if self.records.update(&status, now) => self.ended(&status.task_id.value, calls),
            Event::Refused { why, .. } => self.view.note(&format!("the master refused a call: {why}")),
            Event::Disconnected { why } => self.view.note(&format!("disconnected from the master: {why}")),
            Event::Wake if self.interrupt.wanted() => calls.teardown(),
            _ => {}
        }
        self.view.show(&self.records);
    }
}
