//! ACCEPT: a framework accepts offers (docs/mesos/scheduler-api.md).
//!
//! The operations are in files of their own: `launch.rs`, `launch_group.rs`, `operations.rs`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use allocator::fairness::OfferEnd;
use protos::mesos::offer::{Operation, operation::Type};
use protos::mesos::scheduler::call::Accept;
use protos::mesos::task_status::Reason;
use protos::mesos::{Filters, OfferId, OperationState, OperationStatus, TaskInfo, TaskState};
use resources::{Resources, Role};

use crate::counters::Counter;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::{AgentKey, FrameworkKey, Offer, OfferKey};
use crate::tasks::{MasterStatus, state_or_lost};

/// Resources of an ACCEPT, and what is left of them as its operations are carried out.
pub(crate) struct AcceptedOffers {
    pub framework: FrameworkKey,
    pub agent: AgentKey,
    pub role: Role,
    /// Offers that the call accepts.
    pub offers: Vec<Arc<Offer>>,
    /// Sum of the resources of the offers.
    pub offered: Resources,
    /// Resources that are left, including results of operations.
    pub left: Resources,
    /// Results of operations that no other operation of this ACCEPT may use.
    pub unusable_results: Resources,
    /// Shared resources that tasks of this ACCEPT use. Other tasks of it may use them as well.
    pub shared: Resources,
    /// Resources of tasks and executors that the allocator does not know yet. It is notified once per operation.
    pub unreported: Resources,
    /// Whether the ACCEPT has an operation other than LAUNCH and LAUNCH_GROUP.
    pub has_other_operations: bool,
}

impl AcceptedOffers {
    /// Returns the resources that a task may use: those that are left, and the shared ones that earlier tasks use.
    pub fn available(&self) -> Cow<'_, Resources> {
        match self.shared.is_empty() {
            true => Cow::Borrowed(&self.left),
            false => Cow::Owned(&self.left + &self.shared),
        }
    }
}

impl Master {
    pub(crate) fn accept(&mut self, key: FrameworkKey, call: Accept, out: &mut Outbox) {
        if call.operations.iter().any(|operation| operation.r#type() == Type::Launch) {
            self.count(Counter::MessagesLaunchTasks);
        }
        let offers = match self.check_offers(key, &call.offer_ids) {
            Ok(offers) => offers,
            Err(why) => {
                self.refuse_accept(key, call, &why, out);
                return;
            }
        };
        let Some(mut accepted) = self.take_offers(key, &offers) else { return };
        for operation in call.operations {
            self.operate(&mut accepted, operation, out);
        }
        self.recover_unused(accepted, call.filters.unwrap_or_default());
    }

    fn operate(&mut self, accepted: &mut AcceptedOffers, operation: Operation, out: &mut Outbox) {
        match operation.r#type() {
            Type::Launch => self.launch(accepted, operation, out),
            Type::LaunchGroup => self.launch_group(accepted, operation, out),
            _ => {
                accepted.has_other_operations = true;
                self.convert(accepted, operation, out);
            }
        }
        self.report_used(accepted);
    }

    /// Checks a list of offers by the rules of SCH-70, in their order.
    fn check_offers(&self, key: FrameworkKey, ids: &[OfferId]) -> Result<Vec<OfferKey>, String> {
        if ids.is_empty() {
            return Err("No offers specified".to_owned());
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = ids.iter().find(|id| !seen.insert(id.value.as_str())) {
            return Err(format!("Duplicate offer {} in offer list", twice.value));
        }
        let find =
            |id: &OfferId| self.offers.find(&id.value).ok_or_else(|| format!("Offer {} is no longer valid", id.value));
        let offers: Vec<_> = ids.iter().map(find).collect::<Result<_, _>>()?;
        let mut first = None;
        for (id, (_, offer)) in ids.iter().zip(&offers) {
            if offer.framework != key {
                let id_of = |key| self.framework(key).map(|f| f.id.to_string()).unwrap_or_default();
                return Err(format!(
                    "Offer {} has invalid framework {} while framework {} is expected",
                    id.value,
                    id_of(offer.framework),
                    id_of(key)
                ));
            }
            let (role, agent) = first.get_or_insert((offer.role.clone(), offer.agent));
            if *role != offer.role {
                return Err(format!(
                    "Aggregated offers must be allocated to the same role. Offer {} uses role '{}' but another is using \
                     role '{role}'",
                    id.value, offer.role
                ));
            }
            if *agent != offer.agent {
                let id_of = |key| self.agent(key).map(|a| a.id.to_string()).unwrap_or_default();
                return Err(format!(
                    "Aggregated offers must belong to one single agent. Offer {} uses agent {} and agent {}",
                    id.value,
                    id_of(offer.agent),
                    id_of(*agent)
                ));
            }
        }
        Ok(offers.into_iter().map(|(key, _)| key).collect())
    }

    /// Removes the offers. Their resources belong to the returned accepted offers.
    fn take_offers(&mut self, key: FrameworkKey, offers: &[OfferKey]) -> Option<AcceptedOffers> {
        let mut accepted: Option<AcceptedOffers> = None;
        for offer in offers.iter().filter_map(|key| self.take_offer(*key)) {
            let accepted = accepted.get_or_insert_with(|| AcceptedOffers {
                framework: key,
                agent: offer.agent,
                role: offer.role.clone(),
                offers: Vec::new(),
                offered: Resources::new(),
                left: Resources::new(),
                unusable_results: Resources::new(),
                shared: Resources::new(),
                unreported: Resources::new(),
                has_other_operations: false,
            });
            accepted.offered += &offer.resources;
            accepted.offers.push(offer);
        }
        let count = offers.len() as u64;
        if let Some(counts) = self.frameworks.counts(key) {
            counts.offers_accepted += count;
        }
        accepted.map(|accepted| AcceptedOffers { left: accepted.offered.clone(), ..accepted })
    }

    /// Returns the resources that are left to the allocator: under the filters, except for results of operations
    /// (SCH-81).
    fn recover_unused(&mut self, accepted: AcceptedOffers, filters: Filters) {
        if !accepted.has_other_operations
            && let [offer] = &accepted.offers[..]
        {
            // The short form of the code below, for one offer without conversions.
            self.offer_ended(offer, &(&accepted.offered - &accepted.left), OfferEnd::Accepted);
            self.recover_offered(accepted.framework, accepted.agent, &accepted.role, &accepted.left, Some(&filters));
            return;
        }
        let made = &accepted.left - &accepted.offered;
        let declined = &accepted.left - &made;
        let made = made + &accepted.unusable_results;
        let mut used = &accepted.offered - &declined;
        for offer in &accepted.offers {
            // With several offers, the used resources are attributed to the first ones that have them.
            let part = &offer.resources - &(&offer.resources - &used);
            used -= &part;
            self.offer_ended(offer, &part, OfferEnd::Accepted);
        }
        self.recover_offered(accepted.framework, accepted.agent, &accepted.role, &made, None);
        self.recover_offered(accepted.framework, accepted.agent, &accepted.role, &declined, Some(&filters));
    }

    /// Refuses an ACCEPT with invalid offers: no offer is used, tasks are dropped, operations fail.
    fn refuse_accept(&mut self, key: FrameworkKey, call: Accept, why: &str, out: &mut Outbox) {
        out.warn(format!("Refusing an ACCEPT: {why}"));
        self.refuse_offers(key, why, out);
        for id in &call.offer_ids {
            if let Some(offer) = self.offers.find_own(&id.value, key) {
                self.discard_offer(offer, None, OfferEnd::Rescinded);
            }
        }
        for operation in call.operations {
            match operation.r#type() {
                Type::Launch | Type::LaunchGroup => {
                    for task in tasks_of(operation) {
                        match self.is_draining(&task.slave_id.value) {
                            // The drain has rescinded the agent's offers.
                            true => {
                                let why = format!("{why}: agent {} is draining", task.slave_id.value);
                                self.drop_task(key, task, Reason::SlaveDraining, &why, out);
                            }
                            false => self.drop_task(key, task, Reason::InvalidOffers, why, out),
                        }
                    }
                }
                _ => {
                    let message = format!("Operation attempted with invalid offers: {why}");
                    self.fail_operation(key, &operation, None, &message, out);
                }
            }
        }
    }

    /// Returns whether a registered agent drains or has drained.
    fn is_draining(&self, agent: &str) -> bool {
        self.agent_by_id(agent).and_then(|key| self.agent(key)).is_some_and(|agent| agent.drain.is_some())
    }

    fn drop_task(&mut self, key: FrameworkKey, task: TaskInfo, reason: Reason, why: &str, out: &mut Outbox) {
        let Some(framework) = self.framework(key) else { return };
        let status = MasterStatus {
            state: state_or_lost(TaskState::TaskDropped, framework.capabilities),
            reason: Some(reason),
            message: format!("Task launched with invalid offers: {why}"),
            agent_id: Some(task.slave_id),
            executor_id: task.executor.map(|executor| executor.executor_id),
            unreachable_time: None,
            task_id: task.task_id,
        };
        self.refuse_task(key, status, out);
    }

    /// Reports the terminal state of a task that was never launched. The task is not counted among its framework's
    /// tasks.
    pub(crate) fn refuse_task(&mut self, key: FrameworkKey, status: MasterStatus, out: &mut Outbox) {
        let (state, reason) = (status.state, status.reason.map(|reason| reason as i32));
        self.counters.terminal(state, 0, reason);
        self.send_status(key, status, out);
    }

    /// Reports an operation that cannot be carried out, if it has an id. A driver must abort (SCH-73).
    pub(crate) fn fail_operation(
        &mut self,
        key: FrameworkKey,
        operation: &Operation,
        agent: Option<AgentKey>,
        message: &str,
        out: &mut Outbox,
    ) {
        out.warn(format!("Refusing an operation: {message}"));
        self.refuse_operation(key, operation, message, out);
        let Some(operation_id) = operation.id.clone() else { return };
        if self.framework(key).is_some_and(|framework| framework.pid().is_some()) {
            self.frameworks.send_error(key, message, out);
            return;
        }
        let status = OperationStatus {
            operation_id: Some(operation_id),
            state: OperationState::OperationError as i32,
            message: Some(message.to_owned()),
            slave_id: agent.and_then(|agent| self.agent(agent)).map(|agent| agent.proto_id()),
            ..Default::default()
        };
        self.frameworks.send_operation_status(key, status, out);
    }
}

/// Returns the tasks of a LAUNCH or LAUNCH_GROUP.
pub(crate) fn tasks_of(operation: Operation) -> Vec<TaskInfo> {
    let launch = operation.launch.map(|launch| launch.task_infos).unwrap_or_default();
    let group = operation.launch_group.map(|group| group.task_group.tasks).unwrap_or_default();
    launch.into_iter().chain(group).collect()
}
