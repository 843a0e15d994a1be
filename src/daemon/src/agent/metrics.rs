//! `/metrics/snapshot` of the agent (docs/mesos/metrics.md).
//!
//! Gauges are computed from a snapshot, counters are the core's.

use agent::{AgentState, Executor, ExecutorState, Queued, Snapshot};
use protos::mesos::TaskState;
use resources::Resources;
use wire::http::{Request, Response};

use super::handler::Handler;
use crate::metrics::Metrics;

pub(super) async fn answer(handler: &Handler, request: &Request) -> Response {
    crate::metrics::answer(request, async { collect(handler).await.json() }).await
}

/// Collects all metrics at the current time.
pub(super) async fn collect(handler: &Handler) -> Metrics {
    let snapshot = handler.snapshot().await;
    let mut metrics = Metrics::default();
    metrics.system();
    metrics.connections(handler.common.connections.counts());
    metrics.refusals(handler.senders.refused(), handler.realms.failures());
    metrics.set("slave/uptime_secs", handler.driver.now().since(handler.started).as_secs_f64());
    metrics.set("slave/registered", f64::from(u8::from(snapshot.state == AgentState::Running)));
    if let Some(took) = snapshot.recovery_time {
        metrics.set("slave/recovery_time_secs", took.as_secs_f64());
    }
    counters(&mut metrics, &snapshot);
    let mut used = Resources::default();
    for executor in executors(&snapshot) {
        used += &resources::from_proto(&executor.resources()).unwrap_or_default();
    }
    let mut total = Resources::clone(&snapshot.resources);
    if let Some(oversubscribed) = &snapshot.oversubscribed {
        total += &**oversubscribed;
    }
    metrics.resources("slave/", &total, &used);
    gauges(&mut metrics, &snapshot);
    metrics.count("gc/path_removals_pending", snapshot.garbage);
    metrics.set("slave/executor_directory_max_allowed_age_secs", snapshot.garbage_kept_for.as_secs_f64());
    fetches(&mut metrics, handler);
    absent(&mut metrics);
    metrics
}

fn executors(snapshot: &Snapshot) -> impl Iterator<Item = &Executor> {
    snapshot.frameworks.values().flat_map(|framework| framework.executors.values()).map(|executor| &**executor)
}

fn counters(metrics: &mut Metrics, snapshot: &Snapshot) {
    let counters = &snapshot.counters;
    for state in ["finished", "failed", "killed", "lost", "gone"] {
        metrics.counter(format!("slave/tasks_{state}"), counters.tasks.get(state).copied().unwrap_or(0) as f64);
    }
    for (name, value) in [
        ("slave/executors_terminated", counters.executors_terminated),
        ("slave/executors_preempted", counters.executors_preempted),
        ("slave/valid_status_updates", counters.valid_status_updates),
        ("slave/invalid_status_updates", counters.invalid_status_updates),
        ("slave/valid_framework_messages", counters.valid_framework_messages),
        ("slave/invalid_framework_messages", counters.invalid_framework_messages),
        ("slave/container_launch_errors", counters.container_launch_errors),
        ("slave/recovery_errors", counters.recovery_errors),
        ("gc/path_removals_succeeded", counters.gc_paths_removed),
    ] {
        metrics.counter(name, value as f64);
    }
}

fn gauges(metrics: &mut Metrics, snapshot: &Snapshot) {
    metrics.count("slave/frameworks_active", snapshot.frameworks.len());
    for (state, name) in [
        (ExecutorState::Registering, "registering"),
        (ExecutorState::Running, "running"),
        (ExecutorState::Terminating, "terminating"),
    ] {
        let count = executors(snapshot).filter(|executor| executor.state == state).count();
        metrics.count(format!("slave/executors_{name}"), count);
    }
    let queued: usize =
        executors(snapshot).map(|executor| executor.queued.iter().flat_map(Queued::tasks).count()).sum();
    for (state, name, more) in [
        (TaskState::TaskStaging, "staging", queued),
        (TaskState::TaskStarting, "starting", 0),
        (TaskState::TaskRunning, "running", 0),
        (TaskState::TaskKilling, "killing", 0),
    ] {
        let launched = executors(snapshot).flat_map(|executor| executor.launched.values());
        metrics.count(format!("slave/tasks_{name}"), more + launched.filter(|task| task.state() == state).count());
    }
}

fn fetches(metrics: &mut Metrics, handler: &Handler) {
    let fetcher = &handler.shell.fetcher;
    let ((total, used), (succeeded, failed)) = (fetcher.cache_sizes(), fetcher.counts());
    for (name, value) in [("cache_size_total_bytes", total), ("cache_size_used_bytes", used)] {
        metrics.set(format!("containerizer/fetcher/{name}"), value as f64);
    }
    for (name, value) in [("task_fetches_succeeded", succeeded), ("task_fetches_failed", failed)] {
        metrics.counter(format!("containerizer/fetcher/{name}"), value as f64);
    }
}

/// Sets metrics of parts of Mesos that this agent does not have, for monitoring that expects their names.
fn absent(metrics: &mut Metrics) {
    for name in [
        "containerizer/mesos/container_destroy_errors",
        "containerizer/mesos/provisioner/bind/remove_rootfs_errors",
        "containerizer/mesos/provisioner/remove_container_errors",
        "gc/path_removals_failed",
        "resource_provider_manager/events/disconnect",
        "resource_provider_manager/events/subscribe",
    ] {
        metrics.counter(name, 0.0);
    }
    metrics.set("resource_provider_manager/subscribed", 0.0);
}
