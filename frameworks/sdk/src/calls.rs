//! Calls of a scheduler to the master, collected while it handles an event and sent afterwards.
//!
//! It sends nothing itself, and does not check what only the master can know.

use std::time::Duration;

use base::Time;

use crate::ledger::Ledger;
use crate::requests::{Deferred, Request};
use crate::saved;
use crate::session::Ending;
use crate::state::Change;
use crate::v1::scheduler::{Call, call};
use crate::v1::{
    AgentId, DurationInfo, ExecutorId, Filters, KillPolicy, Offer, OfferId, TaskGroupInfo, TaskId, TaskInfo,
    TaskStatus,
    offer::{Operation, operation},
};

/// Default of the time for which declined resources are not offered to the framework again.
pub const DEFAULT_REFUSAL: Duration = Duration::from_secs(5);

/// The calls that a scheduler makes while it handles one event, in their order.
#[derive(Debug, Default)]
pub struct Calls {
    pub(crate) ledger: Ledger,
    pub(crate) queue: Vec<Call>,
    pub(crate) saves: Vec<Change>,
    pub(crate) wake: Option<Time>,
    pub(crate) hold_acknowledgement: bool,
    pub(crate) answers: Vec<Deferred>,
    pub(crate) ending: Option<Ending>,
}

impl Calls {
    /// Returns the ledger of the framework's tasks that have not ended.
    pub fn tasks(&self) -> &Ledger {
        &self.ledger
    }

    /// Accepts offers of one agent and one role: the master applies `operations` in turn to their resources. What
    /// remains is not offered to the framework again before `refuse` is over.
    pub fn accept(&mut self, offer_ids: Vec<OfferId>, operations: Vec<Operation>, refuse: Duration) {
        let accept = call::Accept { offer_ids, operations, filters: Some(filters(refuse)) };
        self.push(Call { accept: Some(accept), ..of(call::Type::Accept) });
    }

    /// Launches tasks on one offer. Fills in the agent of the tasks; see [`accept`](Calls::accept) for `refuse`.
    pub fn launch(&mut self, offer: &Offer, mut tasks: Vec<TaskInfo>, refuse: Duration) {
        for task in &mut tasks {
            task.agent_id = offer.agent_id.clone();
        }
        self.accept(vec![offer.id.clone()], vec![launch(tasks)], refuse);
    }

    /// Launches tasks together in one executor, all or none.
    pub fn launch_group(
        &mut self,
        offer: &Offer,
        executor: crate::v1::ExecutorInfo,
        mut tasks: Vec<TaskInfo>,
        refuse: Duration,
    ) {
        for task in &mut tasks {
            task.agent_id = offer.agent_id.clone();
        }
        let group = operation::LaunchGroup { executor, task_group: TaskGroupInfo { tasks } };
        let operation = Operation {
            r#type: Some(operation::Type::LaunchGroup as i32),
            launch_group: Some(Box::new(group)),
            ..Default::default()
        };
        self.accept(vec![offer.id.clone()], vec![operation], refuse);
    }

    /// Declines offers. Their resources are not offered to the framework again before `refuse` is over.
    pub fn decline(&mut self, offer_ids: Vec<OfferId>, refuse: Duration) {
        if offer_ids.is_empty() {
            return;
        }
        let decline = call::Decline { offer_ids, filters: Some(filters(refuse)) };
        self.push(Call { decline: Some(decline), ..of(call::Type::Decline) });
    }

    /// Accepts inverse offers: the framework agrees to vacate their resources in time.
    pub fn accept_inverse(&mut self, inverse_offer_ids: Vec<OfferId>, refuse: Duration) {
        let part = call::AcceptInverseOffers { inverse_offer_ids, filters: Some(filters(refuse)) };
        self.push(Call { accept_inverse_offers: Some(Box::new(part)), ..of(call::Type::AcceptInverseOffers) });
    }

    /// Declines inverse offers: the framework cannot vacate their resources in time.
    pub fn decline_inverse(&mut self, inverse_offer_ids: Vec<OfferId>, refuse: Duration) {
        let part = call::DeclineInverseOffers { inverse_offer_ids, filters: Some(filters(refuse)) };
        self.push(Call { decline_inverse_offers: Some(Box::new(part)), ..of(call::Type::DeclineInverseOffers) });
    }

    /// Kills a task, with the grace period `grace` between the request and the kill if it is given. The kill is
    /// repeated after a new subscription until the task has ended.
    pub fn kill(&mut self, task_id: &str, grace: Option<Duration>) {
        let policy = grace.map(|g| KillPolicy { grace_period: Some(duration_info(g)) });
        self.ledger.kill(task_id, policy);
        let agent_id = self.ledger.get(task_id).map(|e| e.agent_id.clone()).filter(|a| !a.value.is_empty());
        self.push(kill(task_id, agent_id, policy));
    }

    /// Shuts an executor down, with all its tasks.
    pub fn shutdown(&mut self, executor_id: ExecutorId, agent_id: AgentId) {
        let part = call::Shutdown { executor_id, agent_id };
        self.push(Call { shutdown: Some(Box::new(part)), ..of(call::Type::Shutdown) });
    }

    /// Sends bytes to an executor. They may be lost on the way.
    pub fn message(&mut self, executor_id: ExecutorId, agent_id: AgentId, data: Vec<u8>) {
        let part = call::Message { agent_id, executor_id, data };
        self.push(Call { message: Some(Box::new(part)), ..of(call::Type::Message) });
    }

    /// Withholds the acknowledgement of the update that is being handled. Updates of that task stop until
    /// [`acknowledge`](Calls::acknowledge) is called with it. The agent repeats the update meanwhile; this scheduler
    /// does not receive the repetitions, but a scheduler that is restarted before the acknowledgement does.
    pub fn hold_acknowledgement(&mut self) {
        self.hold_acknowledgement = true;
    }

    /// Acknowledges an update whose acknowledgement was withheld. An update that needs none is ignored.
    pub fn acknowledge(&mut self, status: &TaskStatus) {
        if let Some(call) = acknowledgement(status) {
            self.ledger.release(&status.task_id.value, status.uuid());
            self.push(call);
        }
    }

    /// Removes a task from the ledger without waiting for its end: a task that was given up, and whose agent the master
    /// does not know (`TASK_UNKNOWN`), so that no update will follow. It is neither killed nor reconciled. An update
    /// that follows nevertheless adds it again.
    pub fn forget_task(&mut self, task_id: &str) {
        self.ledger.forget(task_id);
    }

    /// Revives the offers of all roles: removes offer filters and ends a [`suppress`](Calls::suppress).
    pub fn revive(&mut self) {
        self.revive_roles(Vec::new());
    }

    /// Does the same as [`revive`](Calls::revive) for some roles; an empty list means all roles.
    pub fn revive_roles(&mut self, roles: Vec<String>) {
        self.push(Call { revive: Some(call::Revive { roles }), ..of(call::Type::Revive) });
    }

    /// Suppresses the offers of all roles until [`revive`](Calls::revive).
    pub fn suppress(&mut self) {
        self.suppress_roles(Vec::new());
    }

    /// Does the same as [`suppress`](Calls::suppress) for some roles; an empty list means all roles.
    pub fn suppress_roles(&mut self, roles: Vec<String>) {
        self.push(Call { suppress: Some(call::Suppress { roles }), ..of(call::Type::Suppress) });
    }

    /// Asks the master for the state of every task in the ledger. The answers arrive as updates.
    pub fn reconcile(&mut self) {
        let ids: Vec<String> = self.ledger.iter().map(|(id, _)| id.to_owned()).collect();
        self.reconcile_some(&ids);
    }

    /// Does the same as [`reconcile`](Calls::reconcile) for those of these tasks that are in the ledger.
    pub fn reconcile_some(&mut self, ids: &[String]) {
        let known = ids.iter().filter_map(|id| Some((id, self.ledger.get(id)?)));
        let tasks: Vec<_> = known.map(|(id, entry)| reconcile_task(id, &entry.agent_id)).collect();
        if !tasks.is_empty() {
            self.push(Call { reconcile: Some(call::Reconcile { tasks }), ..of(call::Type::Reconcile) });
        }
    }

    /// Asks the master for the state of every task of this framework that it knows, including those that the ledger
    /// lacks.
    pub fn reconcile_all(&mut self) {
        self.push(Call { reconcile: Some(call::Reconcile::default()), ..of(call::Type::Reconcile) });
    }

    /// Saves `value` under `key`. After a restart the scheduler receives it with
    /// [`Event::Restored`](crate::Event::Restored). What one event saves is written as a whole, together with the
    /// changes of the ledger, and is durable before the event's calls are sent. Without a store this method does
    /// nothing.
    pub fn save(&mut self, key: &str, value: Vec<u8>) {
        self.saves.push(saved::own(key, Some(value)));
    }

    /// Deletes what was [saved](Calls::save) under `key`.
    pub fn forget(&mut self, key: &str) {
        self.saves.push(saved::own(key, None));
    }

    /// Answers a request when the state saved by this event is durable, so that an answer never depends on something
    /// that a crash could undo. If the state cannot be written, the request fails as if the scheduler had ended.
    pub fn answer<Q, A: Send + 'static>(&mut self, request: Request<Q, A>, answer: A) {
        self.answers.push(request.deferred(answer));
    }

    /// Requests an [`Event::Wake`](crate::Event::Wake) at this instant. Of several instants the earliest counts.
    pub fn wake_at(&mut self, at: Time) {
        self.wake = Some(self.wake.map_or(at, |w| w.min(at)));
    }

    /// Tears the framework down: the master kills its tasks and removes it. The session ends too. Without a connection
    /// it waits for one, for 10 s at most; then it ends with [`Ending::Unreachable`], and the tasks keep running for
    /// the failover timeout.
    pub fn teardown(&mut self) {
        self.push(of(call::Type::Teardown));
        self.stop();
    }

    /// Ends the session without ending the framework: its tasks keep running for its failover timeout, and another
    /// session with the framework's id can take over.
    pub fn stop(&mut self) {
        self.ending.get_or_insert(Ending::Stopped);
    }

    /// Ends the session with [`Ending::State`], because the persisted state cannot be used; `why` is the reason. No
    /// further call is sent and nothing is written: tasks keep running for the failover timeout, and the persisted
    /// state stays as it is.
    pub fn fail(&mut self, why: String) {
        self.ending = Some(Ending::State(why));
    }

    /// Returns the calls so far, in order, for a scheduler that wraps another one and inspects or changes its calls.
    /// Some may have been made before the event that is being handled.
    pub fn queued(&mut self) -> &mut [Call] {
        &mut self.queue
    }

    /// Returns the instant that was given to [`wake_at`](Calls::wake_at), for a scheduler that wraps another one;
    /// `None` if there is none.
    pub fn wake(&mut self) -> &mut Option<Time> {
        &mut self.wake
    }

    /// Makes a call of the v1 API that has no method here. Fills in the framework's id.
    pub fn push(&mut self, call: Call) {
        self.queue.push(call);
    }
}

/// Returns the operation that launches tasks.
pub(crate) fn launch(task_infos: Vec<TaskInfo>) -> Operation {
    Operation {
        r#type: Some(operation::Type::Launch as i32),
        launch: Some(operation::Launch { task_infos }),
        ..Default::default()
    }
}

/// Returns a call of this type in which nothing else is set.
pub(crate) fn of(kind: call::Type) -> Call {
    Call { r#type: Some(kind as i32), ..Default::default() }
}

/// Returns the acknowledgement of an update, or `None` if it needs none.
pub(crate) fn acknowledgement(status: &TaskStatus) -> Option<Call> {
    let uuid = status.uuid.clone()?;
    let agent_id = status.agent_id.clone()?;
    let part = call::Acknowledge { agent_id, task_id: status.task_id.clone(), uuid };
    Some(Call { acknowledge: Some(part), ..of(call::Type::Acknowledge) })
}

/// Returns the call that kills a task.
pub(crate) fn kill(task_id: &str, agent_id: Option<AgentId>, kill_policy: Option<KillPolicy>) -> Call {
    let part = call::Kill { task_id: TaskId { value: task_id.into() }, agent_id, kill_policy };
    Call { kill: Some(Box::new(part)), ..of(call::Type::Kill) }
}

fn reconcile_task(task_id: &str, agent_id: &AgentId) -> call::reconcile::Task {
    let agent_id = (!agent_id.value.is_empty()).then(|| agent_id.clone());
    call::reconcile::Task { task_id: TaskId { value: task_id.into() }, agent_id }
}

fn filters(refuse: Duration) -> Filters {
    Filters { refuse_seconds: Some(refuse.as_secs_f64()) }
}

/// Converts a duration to the message of the v1 API; saturates at 292 years.
pub(crate) fn duration_info(duration: Duration) -> DurationInfo {
    DurationInfo { nanoseconds: i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX) }
}
