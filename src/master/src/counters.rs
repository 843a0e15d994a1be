//! Counters since the start of the master, with the names of docs/mesos/metrics.md without `master/`.
//!
//! It computes no gauges; those are computed from a snapshot.

use std::collections::BTreeMap;

use protos::mesos::offer::operation::Type;
use protos::mesos::{OperationState, TaskState, task_status};

macro_rules! counters {
    ($($variant:ident = $name:literal,)*) => {
        /// A counter of the master.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Counter { $($variant,)* }

        impl Counter {
            /// All counters, in the order of their declaration.
            pub const ALL: &[Counter] = &[$(Counter::$variant,)*];

            /// Returns the name of the metric, without `master/`.
            pub fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name,)* }
            }
        }
    };
}

counters! {
    SlaveRegistrations = "slave_registrations",
    SlaveReregistrations = "slave_reregistrations",
    SlaveRemovals = "slave_removals",
    SlaveRemovalsUnhealthy = "slave_removals/reason_unhealthy",
    SlaveRemovalsUnregistered = "slave_removals/reason_unregistered",
    SlaveRemovalsRegistered = "slave_removals/reason_registered",
    SlaveShutdownsScheduled = "slave_shutdowns_scheduled",
    SlaveShutdownsCompleted = "slave_shutdowns_completed",
    SlaveShutdownsCanceled = "slave_shutdowns_canceled",
    SlaveUnreachableScheduled = "slave_unreachable_scheduled",
    SlaveUnreachableCompleted = "slave_unreachable_completed",
    SlaveUnreachableCanceled = "slave_unreachable_canceled",
    RecoverySlaveRemovals = "recovery_slave_removals",
    TasksFinished = "tasks_finished",
    TasksFailed = "tasks_failed",
    TasksKilled = "tasks_killed",
    TasksLost = "tasks_lost",
    TasksError = "tasks_error",
    TasksDropped = "tasks_dropped",
    TasksGone = "tasks_gone",
    TasksGoneByOperator = "tasks_gone_by_operator",
    DroppedMessages = "dropped_messages",
    MessagesRegisterFramework = "messages_register_framework",
    MessagesReregisterFramework = "messages_reregister_framework",
    MessagesUnregisterFramework = "messages_unregister_framework",
    MessagesDeactivateFramework = "messages_deactivate_framework",
    MessagesKillTask = "messages_kill_task",
    MessagesStatusUpdateAcknowledgement = "messages_status_update_acknowledgement",
    MessagesResourceRequest = "messages_resource_request",
    MessagesLaunchTasks = "messages_launch_tasks",
    MessagesDeclineOffers = "messages_decline_offers",
    MessagesReviveOffers = "messages_revive_offers",
    MessagesSuppressOffers = "messages_suppress_offers",
    MessagesReconcileOperations = "messages_reconcile_operations",
    MessagesReconcileTasks = "messages_reconcile_tasks",
    MessagesFrameworkToExecutor = "messages_framework_to_executor",
    MessagesOperationStatusUpdateAcknowledgement = "messages_operation_status_update_acknowledgement",
    MessagesExecutorToFramework = "messages_executor_to_framework",
    MessagesRegisterSlave = "messages_register_slave",
    MessagesReregisterSlave = "messages_reregister_slave",
    MessagesUnregisterSlave = "messages_unregister_slave",
    MessagesStatusUpdate = "messages_status_update",
    MessagesOperationStatusUpdate = "messages_operation_status_update",
    MessagesExitedExecutor = "messages_exited_executor",
    MessagesUpdateSlave = "messages_update_slave",
    MessagesAuthenticate = "messages_authenticate",
    ValidFrameworkToExecutorMessages = "valid_framework_to_executor_messages",
    InvalidFrameworkToExecutorMessages = "invalid_framework_to_executor_messages",
    ValidExecutorToFrameworkMessages = "valid_executor_to_framework_messages",
    InvalidExecutorToFrameworkMessages = "invalid_executor_to_framework_messages",
    ValidStatusUpdates = "valid_status_updates",
    InvalidStatusUpdates = "invalid_status_updates",
    ValidStatusUpdateAcknowledgements = "valid_status_update_acknowledgements",
    InvalidStatusUpdateAcknowledgements = "invalid_status_update_acknowledgements",
    ValidOperationStatusUpdates = "valid_operation_status_updates",
    InvalidOperationStatusUpdates = "invalid_operation_status_updates",
    ValidOperationStatusUpdateAcknowledgements = "valid_operation_status_update_acknowledgements",
    InvalidOperationStatusUpdateAcknowledgements = "invalid_operation_status_update_acknowledgements",
}

/// Values of the master's counters.
#[derive(Clone, Debug)]
pub struct Counters {
    values: [u64; Counter::ALL.len()],
    /// Numbers of terminal tasks by state, source and reason: `task_<state>/source_<source>/reason_<reason>`.
    reasons: BTreeMap<(i32, i32, i32), u64>,
    /// Numbers of operations that were sent to agents, by the number of the type.
    operations: BTreeMap<i32, u64>,
    /// Numbers of operations that have ended, by the numbers of type and state.
    ended_operations: BTreeMap<(i32, i32), u64>,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            values: [0; Counter::ALL.len()],
            reasons: BTreeMap::new(),
            operations: BTreeMap::new(),
            ended_operations: BTreeMap::new(),
        }
    }
}

impl Counters {
    /// Returns the value of a counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// Returns all counters with their names, without `master/`, including those by state, source and reason.
    pub fn iter(&self) -> impl Iterator<Item = (String, u64)> {
        let plain = Counter::ALL.iter().map(|counter| (counter.name().to_owned(), self.get(*counter)));
        plain.chain(self.reasons.iter().filter_map(|(cause, count)| Some((cause_name(*cause)?, *count))))
    }

    /// Returns how many operations of a type were sent to agents.
    pub fn operations(&self, kind: Type) -> u64 {
        self.operations.get(&(kind as i32)).copied().unwrap_or_default()
    }

    /// Returns how many operations of a type have ended in a state.
    pub fn ended_operations(&self, kind: Type, state: OperationState) -> u64 {
        self.ended_operations.get(&(kind as i32, state as i32)).copied().unwrap_or_default()
    }

    /// Counts an operation that was sent to an agent.
    pub(crate) fn operation(&mut self, kind: Type) {
        *self.operations.entry(kind as i32).or_default() += 1;
    }

    /// Counts an operation that has ended.
    pub(crate) fn operation_ended(&mut self, kind: Type, state: OperationState) {
        *self.ended_operations.entry((kind as i32, state as i32)).or_default() += 1;
    }

    pub(crate) fn add(&mut self, counter: Counter) {
        self.values[counter as usize] += 1;
    }

    /// Counts a task that has reached a terminal state.
    pub(crate) fn terminal(&mut self, state: TaskState, source: i32, reason: Option<i32>) {
        let counter = match state {
            TaskState::TaskFinished => Counter::TasksFinished,
            TaskState::TaskFailed => Counter::TasksFailed,
            TaskState::TaskKilled => Counter::TasksKilled,
            TaskState::TaskLost => Counter::TasksLost,
            TaskState::TaskError => Counter::TasksError,
            TaskState::TaskDropped => Counter::TasksDropped,
            TaskState::TaskGone => Counter::TasksGone,
            TaskState::TaskGoneByOperator => Counter::TasksGoneByOperator,
            _ => return,
        };
        self.add(counter);
        if let Some(reason) = reason {
            *self.reasons.entry((state as i32, source, reason)).or_default() += 1;
        }
    }
}

/// Returns a name such as `task_lost/source_master/reason_slave_removed`, or `None` if a number has no name.
fn cause_name((state, source, reason): (i32, i32, i32)) -> Option<String> {
    let state = TaskState::try_from(state).ok()?.as_str_name();
    let source = task_status::Source::try_from(source).ok()?.as_str_name();
    let reason = task_status::Reason::try_from(reason).ok()?.as_str_name();
    Some(format!("{state}/{source}/{reason}").to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_tasks_are_counted_by_cause() {
        let mut counters = Counters::default();
        counters.terminal(TaskState::TaskLost, 0, Some(task_status::Reason::SlaveRemoved as i32));
        counters.terminal(TaskState::TaskRunning, 0, None);
        assert_eq!(counters.get(Counter::TasksLost), 1);
        let (name, count) = counters.iter().last().unwrap();
        assert_eq!((name.as_str(), count), ("task_lost/source_master/reason_slave_removed", 1));
    }

    /// Compares the counts of a framework's operations, refused tasks, kills and subscriptions with the recorded
    /// history of Mesos.
    #[test]
    fn what_calls_count_for() {
        let mut script = crate::testing::Script::new();
        for line in [
            "register a cpus:4;mem:4096;disk:1000",
            "subscribe f roles=r principal=p failover=3600",
            "accept f m1-O0 on=a launch=t1:cpus:1;mem:64,t2:cpus:9;mem:64,t3:cpus:1;mem:64 role=r refuse=0",
            "after 1secs",
            "accept f m1-O1 on=a group=e1:t4,t5:cpus:0.5;mem:64 role=r refuse=0",
            "after 1secs",
            "accept f m1-O2 on=a group=e2:t6:cpus:9;mem:64 role=r refuse=0",
            "after 1secs",
            "accept f m1-O3 on=a reserve=disk:100 create=100 role=r principal=p refuse=0",
            "after 1secs",
            "accept f m1-O4 on=a reserve=cpus:9 role=r principal=p refuse=0",
            "reconcile f",
            "kill f nothing",
            "subscribe g id=f roles=r principal=p failover=3600",
        ] {
            script.line(line);
        }
        let snapshot = script.master().snapshot();
        let counts = &snapshot.frameworks.values().next().unwrap().counts;
        let operations: Vec<(Type, u64)> =
            counts.operations.iter().map(|(kind, count)| (Type::try_from(*kind).unwrap(), *count)).collect();
        let done = [(Type::Launch, 2), (Type::Reserve, 1), (Type::Create, 1), (Type::LaunchGroup, 1)];
        assert_eq!(operations, done);
        assert!(counts.terminal.is_empty(), "tasks that were never launched are none of the framework's");
        let of = |counter| snapshot.counters.get(counter);
        assert_eq!((of(Counter::TasksError), of(Counter::MessagesReconcileTasks)), (2, 2));
        assert_eq!((of(Counter::MessagesRegisterFramework), of(Counter::MessagesReregisterFramework)), (1, 1));
    }
}
