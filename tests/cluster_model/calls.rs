//! What schedulers do when a step says so: the calls.
//!
//! How a call travels, and what comes back, is in `scheduler.rs`.

use protos::mesos::scheduler::{Call, call};
use protos::mesos::{self as pb, offer::Operation, offer::operation};
use resources::{Format, Role, parse_text};

use crate::scheduler::TaskView;
use crate::world::World;

fn call_of(kind: call::Type) -> Call {
    Call { r#type: Some(kind as i32), ..Call::default() }
}

impl World {
    /// Acknowledges all that is owed.
    pub fn acknowledge(&mut self, who: usize) {
        for acknowledge in std::mem::take(&mut self.schedulers[who].owed) {
            let mut call = call_of(call::Type::Acknowledge);
            call.acknowledge = Some(acknowledge);
            self.call(who, call);
        }
    }

    fn take_offer(&mut self, who: usize, pick: usize) -> Option<pb::Offer> {
        let offers = &mut self.schedulers[who].offers;
        let id = offers.keys().nth(pick % offers.len().max(1))?.clone();
        offers.remove(&id)
    }

    /// Launches tasks on one of the offers. Every sixteenth task asks for more than any agent has.
    pub fn accept(&mut self, who: usize, pick: usize, tasks: usize, refuse: f64) {
        let Some(offer) = self.take_offer(who, pick) else { return };
        let role = Role::parse(self.schedulers[who].kind.role).unwrap();
        let mut infos = Vec::new();
        for _ in 0..tasks {
            let id = format!("t{}", self.id());
            let wanted = if self.rng.one_in(16) { "cpus:64;mem:64" } else { "cpus:0.5;mem:64" };
            let mut resources = parse_text(wanted, &Role::star()).unwrap().to_proto(Format::PostRefinement);
            for resource in &mut resources {
                let role = Some(role.as_str().to_owned());
                resource.allocation_info = Some(pb::resource::AllocationInfo { role });
            }
            let view = TaskView { agent: offer.slave_id.clone(), state: None };
            self.schedulers[who].tasks.insert(id.clone(), view);
            infos.push(pb::TaskInfo {
                name: id.clone(),
                task_id: pb::TaskId { value: id },
                slave_id: offer.slave_id.clone(),
                resources,
                command: Some(pb::CommandInfo { value: Some("true".to_owned()), ..pb::CommandInfo::default() }),
                ..pb::TaskInfo::default()
            });
        }
        self.note(|| format!("scheduler {who} accepts {} with {tasks} tasks", offer.id.value));
        let launch = Operation {
            r#type: Some(operation::Type::Launch as i32),
            launch: Some(operation::Launch { task_infos: infos }),
            ..Operation::default()
        };
        let mut call = call_of(call::Type::Accept);
        let filters = Some(pb::Filters { refuse_seconds: Some(refuse) });
        let operations = if tasks == 0 { Vec::new() } else { vec![launch] };
        call.accept = Some(call::Accept { offer_ids: vec![offer.id], operations, filters });
        self.call(who, call);
    }

    /// Declines one of the offers.
    pub fn decline(&mut self, who: usize, pick: usize, refuse: f64) {
        let Some(offer) = self.take_offer(who, pick) else { return };
        let mut call = call_of(call::Type::Decline);
        let filters = Some(pb::Filters { refuse_seconds: Some(refuse) });
        call.decline = Some(call::Decline { offer_ids: vec![offer.id], filters });
        self.call(who, call);
    }

    /// Kills one of the tasks that have not ended.
    pub fn kill(&mut self, who: usize, pick: usize) {
        let living: Vec<_> = self.schedulers[who].tasks.iter().filter(|(_, view)| !view.has_ended()).collect();
        let Some((id, view)) = living.get(pick % living.len().max(1)) else { return };
        let mut call = call_of(call::Type::Kill);
        let slave_id = Some(view.agent.clone());
        call.kill = Some(call::Kill { task_id: pb::TaskId { value: (*id).clone() }, slave_id, kill_policy: None });
        self.call(who, call);
    }

    /// Asks about all tasks: those that the master knows, or each that has not ended.
    pub fn reconcile(&mut self, who: usize, explicit: bool) {
        let living = self.schedulers[who].tasks.iter().filter(|(_, view)| explicit && !view.has_ended());
        let tasks: Vec<_> = living
            .map(|(id, view)| call::reconcile::Task {
                task_id: pb::TaskId { value: id.clone() },
                slave_id: Some(view.agent.clone()),
            })
            .collect();
        if explicit && tasks.is_empty() {
            return;
        }
        let mut call = call_of(call::Type::Reconcile);
        call.reconcile = Some(call::Reconcile { tasks });
        self.call(who, call);
    }

    /// Wants no offers, or wants them again.
    pub fn want_offers(&mut self, who: usize, wanted: bool) {
        self.call(who, call_of(if wanted { call::Type::Revive } else { call::Type::Suppress }));
    }

    /// Ends the framework, if the call can be made.
    pub fn tear_down(&mut self, who: usize) {
        if self.call(who, call_of(call::Type::Teardown)) {
            self.note(|| format!("scheduler {who} tears down"));
            self.schedulers[who].gone = true;
        }
    }
}
