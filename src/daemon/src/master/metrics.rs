//! `/metrics/snapshot` of the master (docs/mesos/metrics.md).
//!
//! Gauges are computed from a snapshot, counters are the core's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use allocator::RoleView;
use allocator::fairness::Report;
use master::{Counter, Framework, Snapshot};
use protos::mesos::{OperationState, TaskState, offer, scheduler};
use resources::{Name, Resources};
use wire::ConnectionCounts;
use wire::http::{Request, Response};

use super::fairness;
use super::handler::Handler;
use super::outputs::TimedMaster;
use super::reported_roles::ReportedRoles;
use crate::metrics::Metrics;
use crate::prometheus::{Text, add_all};

pub(super) async fn answer(handler: &Handler, request: &Request) -> Response {
    crate::metrics::answer(request, made(handler, |metrics| metrics.json())).await
}

/// Collects all metrics at the current time.
pub(super) async fn collect(handler: &Handler) -> Metrics {
    made(handler, |metrics| metrics).await
}

/// Calls `make` with all current metrics, on another thread than the reactor's, because the metrics of a large cluster
/// take a while to compute and write.
///
/// Returns the default if that thread panics.
async fn made<T: Default + Send + 'static>(handler: &Handler, make: fn(Metrics) -> T) -> T {
    let (snapshot, mut report, facts) = look(handler).await;
    let computed = tokio::task::spawn_blocking(move || {
        let roles_reported = ReportedRoles::of(&snapshot.roles);
        let mut metrics = compute(&snapshot, &facts, &roles_reported);
        roles_reported.limit(&mut report);
        let names = names(&snapshot);
        fairness::flat(&mut metrics, &report, facts.per_framework.then_some(&names), snapshot.time);
        make(metrics)
    });
    computed.await.unwrap_or_else(|error| {
        tracing::warn!("metrics cannot be computed: {error}");
        T::default()
    })
}

/// Answers `/metrics`: the metrics in Prometheus's text format.
pub(super) async fn prometheus(handler: &Handler, request: &Request) -> Response {
    if !request.is_get_or_head() {
        return Response::method_not_allowed(&["GET"], request.method.as_str());
    }
    let (snapshot, mut report, facts) = look(handler).await;
    let written = tokio::task::spawn_blocking(move || {
        let mut text = Text::default();
        let roles_reported = ReportedRoles::of(&snapshot.roles);
        add_all(&mut text, &compute(&snapshot, &facts, &roles_reported));
        roles_reported.limit(&mut report);
        fairness::families(&mut text, &report, &names(&snapshot), snapshot.time);
        text.write()
    });
    match written.await {
        Ok(text) => Response::ok_body(crate::prometheus::MEDIA_TYPE, text),
        Err(error) => Response::internal(error.to_string()),
    }
}

fn names(snapshot: &Snapshot) -> fairness::Names {
    snapshot.frameworks.values().map(|framework| (framework.id.clone(), framework.info.name.clone())).collect()
}

/// Returns the current data from which metrics are computed.
async fn look(handler: &Handler) -> (Arc<Snapshot>, Report, Facts) {
    let look = |live: &mut TimedMaster| (live.snapshot(), live.fairness());
    let ((snapshot, runs), report) = handler.driver.read(look).await;
    let shell = handler.shell.clone();
    // On another thread than the reactor's, because a write may hold the lock of the registry.
    let of_registry = tokio::task::spawn_blocking(move || {
        let (registry, mut timers) = (base::lock(&shell.registry), Metrics::default());
        registry.timings(&mut timers);
        (timers, registry.size())
    });
    let (mut timers, registry_bytes) = of_registry.await.unwrap_or_default();
    runs.write_metrics(&mut timers);
    let facts = Facts {
        timers,
        standby: handler.standby.as_ref().map(|standby| standby.dropped()),
        uptime: handler.driver.now().since(handler.started),
        cache_hits: handler.documents.hits(),
        refused: handler.refused.counts(),
        registry_bytes,
        per_framework: handler.flags.frameworks.publish_per_framework_metrics,
        connections: handler.common.connections.counts(),
        refusals: handler.refusals(),
    };
    (snapshot, report, facts)
}

/// Data of metrics that the snapshot does not have.
struct Facts {
    timers: Metrics,
    /// Number of messages that this master has dropped; `None` if it leads.
    standby: Option<u64>,
    uptime: Duration,
    cache_hits: u64,
    refused: [(Counter, u64); 2],
    registry_bytes: usize,
    per_framework: bool,
    connections: ConnectionCounts,
    /// Number of refused messages, and numbers of log-ins that failed and that had to wait.
    refusals: (u64, (u64, u64)),
}

fn compute(snapshot: &Snapshot, facts: &Facts, roles_reported: &ReportedRoles<'_>) -> Metrics {
    let mut metrics = facts.timers.clone();
    metrics.system();
    metrics.connections(facts.connections);
    metrics.refusals(facts.refusals.0, facts.refusals.1);
    metrics.set("master/elected", if facts.standby.is_some() { 0.0 } else { 1.0 });
    metrics.set("master/uptime_secs", facts.uptime.as_secs_f64());
    for name in ["dispatches", "http_requests", "messages"] {
        metrics.set(format!("master/event_queue_{name}"), 0.0);
    }
    metrics.counter("master/http_cache_hits", facts.cache_hits as f64);
    for (name, count) in snapshot.counters.iter() {
        metrics.counter(format!("master/{name}"), count as f64);
    }
    for (counter, refused) in facts.refused {
        metrics.counter(format!("master/{}", counter.name()), (snapshot.counters.get(counter) + refused) as f64);
    }
    if let Some(dropped) = facts.standby {
        metrics.counter("master/dropped_messages", dropped as f64);
    }
    cluster(&mut metrics, snapshot);
    tasks(&mut metrics, snapshot);
    operations(&mut metrics, snapshot);
    allocator(&mut metrics, snapshot, roles_reported);
    registrar(&mut metrics, facts.registry_bytes);
    per_principal(&mut metrics, snapshot);
    if facts.per_framework {
        snapshot.frameworks.values().for_each(|framework| per_framework(&mut metrics, framework));
        let all = snapshot.frameworks.values();
        let pairs = all.flat_map(|framework| framework.roles.iter().map(move |role| (framework, role)));
        for (framework, role) in roles_reported.pairs(pairs) {
            let suppressed = f64::from(u8::from(framework.suppressed.contains(role)));
            metrics.set(format!("{}/roles/{role}/suppressed", prefix_of(framework)), suppressed);
        }
    }
    metrics
}

fn cluster(metrics: &mut Metrics, snapshot: &Snapshot) {
    let (mut total, mut used) = (Resources::default(), Resources::default());
    let (mut connected, mut active) = (0, 0);
    for agent in snapshot.agents.values() {
        total += &agent.total;
        used += &agent.used;
        connected += usize::from(agent.connected);
        active += usize::from(agent.active());
    }
    metrics.resources("master/", &total, &used);
    metrics.count("master/slaves_connected", connected);
    metrics.count("master/slaves_disconnected", snapshot.agents.len() - connected);
    metrics.count("master/slaves_active", active);
    metrics.count("master/slaves_inactive", snapshot.agents.len() - active);
    metrics.count("master/slaves_unreachable", snapshot.unreachable);
    let connected = snapshot.frameworks.values().filter(|framework| framework.connected()).count();
    let active = snapshot.frameworks.values().filter(|framework| framework.active).count();
    metrics.count("master/frameworks_connected", connected);
    metrics.count("master/frameworks_disconnected", snapshot.frameworks.len() - connected);
    metrics.count("master/frameworks_active", active);
    metrics.count("master/frameworks_inactive", snapshot.frameworks.len() - active);
    metrics.count("master/outstanding_offers", snapshot.offers.len());
    metrics.count("master/operator_event_stream_subscribers", snapshot.subscribers);
}

fn tasks(metrics: &mut Metrics, snapshot: &Snapshot) {
    let states = [
        (TaskState::TaskStaging, "staging"),
        (TaskState::TaskStarting, "starting"),
        (TaskState::TaskRunning, "running"),
        (TaskState::TaskKilling, "killing"),
    ];
    let living = || snapshot.frameworks.values().flat_map(|framework| framework.tasks.values());
    for (state, name) in states {
        metrics.count(format!("master/tasks_{name}"), living().filter(|task| task.state() == state).count());
    }
    let unreachable = snapshot.frameworks.values().map(|framework| framework.unreachable_tasks.len()).sum();
    metrics.count("master/tasks_unreachable", unreachable);
}

const OPERATIONS: [(offer::operation::Type, &str); 8] = [
    (offer::operation::Type::Reserve, "reserve"),
    (offer::operation::Type::Unreserve, "unreserve"),
    (offer::operation::Type::Create, "create"),
    (offer::operation::Type::Destroy, "destroy"),
    (offer::operation::Type::GrowVolume, "grow_volume"),
    (offer::operation::Type::ShrinkVolume, "shrink_volume"),
    (offer::operation::Type::CreateDisk, "create_disk"),
    (offer::operation::Type::DestroyDisk, "destroy_disk"),
];

const OPERATION_STATES: [(OperationState, &str); 8] = [
    (OperationState::OperationPending, "pending"),
    (OperationState::OperationRecovering, "recovering"),
    (OperationState::OperationUnreachable, "unreachable"),
    (OperationState::OperationFinished, "finished"),
    (OperationState::OperationFailed, "failed"),
    (OperationState::OperationError, "error"),
    (OperationState::OperationDropped, "dropped"),
    (OperationState::OperationGoneByOperator, "gone_by_operator"),
];

/// Sets the metrics of operations by type and state: gauges of pending ones, counters of ended ones.
fn operations(metrics: &mut Metrics, snapshot: &Snapshot) {
    let held: Vec<_> = snapshot
        .operations
        .values()
        .map(|operation| (operation.info.r#type(), operation.latest_status.state()))
        .collect();
    let counters = &snapshot.counters;
    let mut sums = [0; OPERATION_STATES.len()];
    let mut total = 0;
    for (kind, kind_name) in OPERATIONS {
        for ((state, state_name), sum) in OPERATION_STATES.into_iter().zip(&mut sums) {
            let living = matches!(state_name, "pending" | "recovering" | "unreachable");
            let count = match living {
                true => held.iter().filter(|(k, s)| (*k, *s) == (kind, state)).count() as u64,
                false => counters.ended_operations(kind, state),
            };
            *sum += count;
            let name = format!("master/operations/{kind_name}/{state_name}");
            match living {
                true => metrics.set(name, count as f64),
                false => metrics.counter(name, count as f64),
            }
        }
        total += counters.operations(kind);
        metrics.counter(format!("master/operations/{kind_name}/total"), counters.operations(kind) as f64);
    }
    for ((_, state_name), sum) in OPERATION_STATES.into_iter().zip(sums) {
        metrics.set(format!("master/operations/{state_name}"), sum as f64);
    }
    metrics.counter("master/operations/total", total as f64);
}

fn allocator(metrics: &mut Metrics, snapshot: &Snapshot, roles_reported: &ReportedRoles<'_>) {
    let (mut total, mut taken) = (Resources::default(), Resources::default());
    for agent in snapshot.agents.values() {
        total += &agent.total;
        taken += &agent.used;
        taken += &agent.offered;
    }
    let (total, taken) = (total.quantities(), taken.quantities());
    for name in [resources::Name::Cpus, resources::Name::Mem, resources::Name::Disk] {
        let label = format!("allocator/mesos/resources/{}", name.as_str());
        metrics.set(format!("{label}/total"), total.get(&name).to_f64());
        metrics.set(format!("{label}/offered_or_allocated"), taken.get(&name).to_f64());
    }
    roles(metrics, snapshot, roles_reported);
    metrics.count("allocator/mesos/roles_left_out", roles_reported.left_out());
    metrics.set("allocator/event_queue_dispatches", 0.0);
    metrics.set("allocator/mesos/event_queue_dispatches", 0.0);
}

/// Sets the allocator's metrics of each role: share, offer filters, quota.
fn roles(metrics: &mut Metrics, snapshot: &Snapshot, roles_reported: &ReportedRoles<'_>) {
    let mut consumed = resources::Quantities::new();
    for view in &snapshot.roles {
        let role = &view.role;
        if role.parent().is_none() {
            consumed += &view.consumed;
        }
        if !roles_reported.has(role.as_str()) {
            continue;
        }
        if !view.frameworks.is_empty() {
            metrics.set(format!("allocator/mesos/roles/{role}/shares/dominant"), view.dominant_share);
        }
        metrics.set(format!("allocator/mesos/offer_filters/roles/{role}/active"), view.refusals as f64);
        quota(metrics, view);
    }
    consumption(metrics, "", &consumed);
}

fn quota(metrics: &mut Metrics, view: &RoleView) {
    consumption(metrics, view.role.as_str(), &view.consumed);
    let label = |name: &Name| format!("allocator/mesos/quota/roles/{}/resources/{name}", view.role);
    for (name, amount) in view.quota.guarantees.iter() {
        metrics.set(format!("{}/guarantee", label(&name)), amount.to_f64());
    }
    for (name, limit) in view.quota.limits.iter() {
        metrics.set(format!("{}/limit", label(&name)), limit.to_f64());
    }
    let guaranteed = view.quota.guarantees.iter().map(|(name, _)| name);
    for name in guaranteed.chain(view.quota.limits.iter().map(|(name, _)| name)) {
        metrics.set(format!("{}/offered_or_allocated", label(&name)), view.held.get(&name).to_f64());
    }
}

/// Sets the metrics of the quota that a role consumes. The root of all roles has the empty name.
fn consumption(metrics: &mut Metrics, role: &str, consumed: &resources::Quantities) {
    for (name, amount) in consumed.iter() {
        metrics.set(format!("allocator/mesos/quota/roles/{role}/resources/{name}/consumed"), amount.to_f64());
    }
}

fn registrar(metrics: &mut Metrics, bytes: usize) {
    metrics.set("registrar/queued_operations", 0.0);
    metrics.set("registrar/log/recovered", 1.0);
    metrics.set("registrar/log/ensemble_size", 1.0);
    metrics.count("registrar/registry_size_bytes", bytes);
}

/// A number that is above those of all calls, events and operations.
const MOST_KINDS: i32 = 64;

/// Terminal states by which a framework's ended tasks are counted.
const TERMINAL: [TaskState; 8] = [
    TaskState::TaskFinished,
    TaskState::TaskFailed,
    TaskState::TaskKilled,
    TaskState::TaskLost,
    TaskState::TaskError,
    TaskState::TaskDropped,
    TaskState::TaskGone,
    TaskState::TaskGoneByOperator,
];

/// Sets the numbers of messages of drivers by their frameworks' principal (MET-04). Messages that rate limits delay or
/// drop count as received only.
fn per_principal(metrics: &mut Metrics, snapshot: &Snapshot) {
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for framework in snapshot.frameworks.values() {
        if let Some(principal) = &framework.info.principal {
            let (received, processed) = sums.entry(principal).or_default();
            let counts = &framework.counts;
            *received += counts.messages + counts.held + counts.dropped;
            *processed += counts.messages;
        }
    }
    for (principal, (received, processed)) in sums {
        metrics.counter(format!("frameworks/{principal}/messages_received"), received as f64);
        metrics.counter(format!("frameworks/{principal}/messages_processed"), processed as f64);
    }
}

/// Sets a counter for the sum, and one for each kind; 0 for kinds without a count, so that all names exist.
fn kinds(metrics: &mut Metrics, prefix: &str, counts: &BTreeMap<i32, u64>, name: impl Fn(i32) -> Option<&'static str>) {
    metrics.counter(prefix, counts.values().sum::<u64>() as f64);
    // None of the three enums has larger numbers; 0 is the unknown kind.
    for (number, name) in (1..=MOST_KINDS).filter_map(|number| Some((number, name(number)?))) {
        let count = counts.get(&number).copied().unwrap_or_default();
        metrics.counter(format!("{prefix}/{}", name.to_lowercase()), count as f64);
    }
}

fn prefix_of(framework: &Framework) -> String {
    let name = percent_encoding::utf8_percent_encode(&framework.info.name, percent_encoding::NON_ALPHANUMERIC);
    format!("master/frameworks/{name}/{}", framework.id)
}

fn per_framework(metrics: &mut Metrics, framework: &Framework) {
    let prefix = prefix_of(framework);
    let counts = &framework.counts;
    metrics.count(format!("{prefix}/subscribed"), usize::from(framework.connected()));
    let name = |number| scheduler::call::Type::try_from(number).ok().map(|kind| kind.as_str_name());
    kinds(metrics, &format!("{prefix}/calls"), &counts.calls, name);
    let name = |number| scheduler::event::Type::try_from(number).ok().map(|kind| kind.as_str_name());
    kinds(metrics, &format!("{prefix}/events"), &counts.events, name);
    let name = |number| offer::operation::Type::try_from(number).ok().map(|kind| kind.as_str_name());
    kinds(metrics, &format!("{prefix}/operations"), &counts.operations, name);
    for (state, name) in [
        ("sent", counts.offers_sent),
        ("accepted", counts.offers_accepted),
        ("declined", counts.offers_declined),
        ("rescinded", counts.offers_rescinded),
    ] {
        metrics.counter(format!("{prefix}/offers/{state}"), name as f64);
    }
    for state in TERMINAL {
        metrics.counter(format!("{prefix}/tasks/terminal/{}", state.as_str_name().to_lowercase()), 0.0);
    }
    for (number, count) in &counts.terminal {
        if let Ok(state) = TaskState::try_from(*number) {
            metrics.counter(format!("{prefix}/tasks/terminal/{}", state.as_str_name().to_lowercase()), *count as f64);
        }
    }
    for state in ["task_staging", "task_starting", "task_running", "task_killing", "task_unreachable", "task_unknown"] {
        metrics.set(format!("{prefix}/tasks/active/{state}"), 0.0);
    }
    for task in framework.tasks.values() {
        let name = format!("{prefix}/tasks/active/{}", task.state().as_str_name().to_lowercase());
        let before = metrics.get(&name).unwrap_or(0.0);
        metrics.set(name, before + 1.0);
    }
}
