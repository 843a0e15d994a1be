//! The answers to the calls of the v1 operator API that read (OPM-10 to OPM-25), and the SUBSCRIBED event.
//!
//! Large ones are written directly from the snapshot; small ones are built as messages.

use std::sync::Arc;

use base::Time;
use master::{Executor, Framework, FrameworkKey, Snapshot, Table, Task};
use protos::mesos;
use protos::mesos::master::call::Type;
use protos::mesos::master::{Response, response};
use resources::{Format, Resources};
use wire::negotiate::Encoding;

use super::chunk_cache::ChunkCache;
use super::index::Index;
use super::visibility::Visibility;
use super::{Context, roles, settings};
use crate::lists::{Builder, Item, message};
use crate::streams::encode_v1;

/// Interval of heartbeats, in seconds; it is fixed.
const HEARTBEAT: f64 = 15.0;

/// Answers a call that reads. Only for calls that a snapshot can answer; the answer to others has no type.
pub(in crate::master) fn answer(context: &Context, kind: Type, encoding: Encoding) -> Vec<u8> {
    let snapshot = &*context.snapshot;
    let (chunk_cache, visibility) = (&*context.chunk_cache, &context.visibility);
    let index = || Index::new(snapshot, chunk_cache);
    match kind {
        Type::GetState => big(encoding, "GET_STATE", response::Type::GetState, 9, "get_state", |b| {
            state(b, snapshot, chunk_cache, visibility);
        }),
        Type::GetAgents => big(encoding, "GET_AGENTS", response::Type::GetAgents, 10, "get_agents", |b| {
            agents(b, snapshot, visibility)
        }),
        Type::GetFrameworks => {
            big(encoding, "GET_FRAMEWORKS", response::Type::GetFrameworks, 11, "get_frameworks", |b| {
                frameworks(b, snapshot, &index(), visibility);
            })
        }
        Type::GetExecutors => big(encoding, "GET_EXECUTORS", response::Type::GetExecutors, 12, "get_executors", |b| {
            executors(b, snapshot, visibility);
        }),
        Type::GetTasks => {
            big(encoding, "GET_TASKS", response::Type::GetTasks, 13, "get_tasks", |b| tasks(b, snapshot, visibility))
        }
        other => encode_v1(encoding, &small(context, other)),
    }
}

/// Returns the first event of an operator's stream.
pub(in crate::master) fn subscribed(snapshot: &Snapshot, visibility: &Visibility, encoding: Encoding) -> Vec<u8> {
    message(encoding, |b| {
        b.choice(1, "type", "SUBSCRIBED", mesos::master::event::Type::Subscribed as i32);
        b.nested(2, "subscribed", |b| {
            b.nested(1, "get_state", |b| state(b, snapshot, &ChunkCache::default(), visibility));
            b.double(2, "heartbeat_interval_seconds", HEARTBEAT);
        });
    })
}

fn big(
    encoding: Encoding,
    name: &str,
    kind: response::Type,
    tag: u32,
    field: &str,
    fields: impl FnOnce(&mut Builder<'_, '_>),
) -> Vec<u8> {
    message(encoding, |b| {
        b.choice(1, "type", name, kind as i32);
        b.nested(tag, field, fields);
    })
}

fn state(b: &mut Builder<'_, '_>, snapshot: &Snapshot, chunk_cache: &ChunkCache, visibility: &Visibility) {
    let index = Index::new(snapshot, chunk_cache);
    b.nested(1, "get_tasks", |b| tasks(b, snapshot, visibility));
    b.nested(2, "get_executors", |b| executors(b, snapshot, visibility));
    b.nested(3, "get_frameworks", |b| frameworks(b, snapshot, &index, visibility));
    b.nested(4, "get_agents", |b| agents(b, snapshot, visibility));
}

fn tasks<'s>(b: &mut Builder<'_, '_>, snapshot: &'s Snapshot, visibility: &'s Visibility) {
    let all =
        || snapshot.frameworks.values().chain(snapshot.completed.values()).filter(|f| visibility.framework(&f.info));
    let of = |list: fn(&Framework) -> &Table<Task>| {
        let visible = move |f: &'s Arc<Framework>| list(f).values().filter(move |task| visibility.task(f, task));
        all().flat_map(visible).map(|task| whole(task))
    };
    b.list(2, "tasks", of(|f| &f.tasks));
    b.list(5, "unreachable_tasks", of(|f| &f.unreachable_tasks));
    b.list(3, "completed_tasks", of(|f| &f.completed_tasks));
}

fn whole(task: &Arc<master::Task>) -> Item<'_, mesos::Task> {
    Item::Owned(Box::new(task.to_proto()))
}

fn executors(b: &mut Builder<'_, '_>, snapshot: &Snapshot, visibility: &Visibility) {
    let executors = snapshot.agents.values().flat_map(|agent| {
        let visible = agent.executors.iter().flat_map(|(framework, all)| {
            let framework = snapshot.framework(*framework).map(|framework| &*framework.info);
            let may = move |executor: &&Arc<Executor>| visibility.executor_of(framework, &executor.info);
            all.values().filter(may)
        });
        visible.map(|executor| {
            Item::Owned(Box::new(response::get_executors::Executor {
                executor_info: (*executor.info).clone(),
                slave_id: agent.proto_id(),
            }))
        })
    });
    b.list(1, "executors", executors);
}

fn frameworks(b: &mut Builder<'_, '_>, snapshot: &Snapshot, index: &Index<'_>, visibility: &Visibility) {
    let active = snapshot.frameworks.iter().filter(|(_, f)| visibility.framework(&f.info));
    b.list(
        1,
        "frameworks",
        active.map(|(key, f)| Item::Owned(Box::new(framework(f, snapshot, index, Some(FrameworkKey(key)))))),
    );
    let completed = snapshot.completed.values().filter(|f| visibility.framework(&f.info));
    b.list(2, "completed_frameworks", completed.map(|f| Item::Owned(Box::new(framework(f, snapshot, index, None)))));
}

fn agents(b: &mut Builder<'_, '_>, snapshot: &Snapshot, visibility: &Visibility) {
    let visible = |agent| {
        let mut agent = master::views::agent(agent, Format::Endpoint);
        if !visibility.all_roles() {
            master::views::keep_visible(&mut agent, |role| visibility.role(role));
        }
        Item::Owned(Box::new(agent))
    };
    b.list(1, "agents", snapshot.agents.values().map(|agent| visible(agent)));
    let recovered = snapshot.recovered.values().map(|info| match visibility.all_roles() {
        true => Item::Borrowed(&**info),
        false => {
            let mut info = mesos::SlaveInfo::clone(info);
            info.resources.retain(|resource| visibility.resource(resource));
            Item::Owned(Box::new(info))
        }
    });
    b.list(2, "recovered_agents", recovered);
}

fn time(time: Time) -> mesos::TimeInfo {
    mesos::TimeInfo { nanoseconds: time.as_nanos() }
}

fn endpoint_form(resources: &Resources) -> Vec<mesos::Resource> {
    resources.to_proto(Format::Endpoint)
}

fn framework(
    framework: &Framework,
    snapshot: &Snapshot,
    index: &Index<'_>,
    key: Option<FrameworkKey>,
) -> response::get_frameworks::Framework {
    let own = index.of(key.unwrap_or(FrameworkKey(u64::MAX)));
    let offers = own.offers.iter().filter_map(|(key, offer)| {
        let role = Some((&offer.role).into());
        Some(mesos::Offer {
            resources: endpoint_form(&offer.resources),
            allocation_info: Some(mesos::resource::AllocationInfo { role }),
            ..snapshot.offer_to_proto(*key)?
        })
    });
    response::get_frameworks::Framework {
        unregistered_time: framework.unregistered.map(time),
        offers: offers.collect(),
        inverse_offers: own.inverse_offers.iter().filter_map(|key| snapshot.inverse_offer_to_proto(*key)).collect(),
        allocated_resources: endpoint_form(&own.used),
        offered_resources: endpoint_form(&own.offered),
        offer_constraints: Some(framework.offer_constraints.as_deref().cloned().unwrap_or_default()),
        ..master::views::framework(framework, Format::Endpoint)
    }
}

/// Builds the answers that are small enough for a message.
fn small(context: &Context, kind: Type) -> Response {
    let (snapshot, visibility) = (&*context.snapshot, &context.visibility);
    let mut answer = Response::default();
    match kind {
        Type::GetRoles => {
            answer.set_type(response::Type::GetRoles);
            answer.get_roles = Some(response::GetRoles { roles: roles::messages(context) });
        }
        Type::GetWeights => {
            answer.set_type(response::Type::GetWeights);
            let info =
                |(role, weight): (&String, &f64)| mesos::WeightInfo { role: Some(role.clone()), weight: *weight };
            let visible = snapshot.weights.iter().filter(|(role, _)| visibility.role(role));
            let weight_infos: Vec<_> = visible.map(info).collect();
            answer.get_weights = (!weight_infos.is_empty()).then_some(response::GetWeights { weight_infos });
        }
        Type::GetOperations => {
            answer.set_type(response::Type::GetOperations);
            let visible = snapshot.operations.values().filter(|operation| visibility.operation(&operation.info));
            answer.get_operations =
                Some(response::GetOperations { operations: visible.map(|operation| (**operation).clone()).collect() });
        }
        Type::GetMaster => {
            answer.set_type(response::Type::GetMaster);
            answer.get_master = Some(response::GetMaster {
                master_info: Some((*snapshot.info).clone()),
                start_time: Some(context.started.as_secs_f64()),
                elected_time: Some(snapshot.started.as_secs_f64()),
            });
        }
        Type::GetQuota => {
            answer.set_type(response::Type::GetQuota);
            answer.get_quota = Some(response::GetQuota { status: settings::quota(snapshot, visibility) });
        }
        Type::GetMaintenanceStatus => {
            answer.set_type(response::Type::GetMaintenanceStatus);
            let status = settings::maintenance_status(snapshot, visibility);
            answer.get_maintenance_status = Some(response::GetMaintenanceStatus { status });
        }
        Type::GetMaintenanceSchedule => {
            answer.set_type(response::Type::GetMaintenanceSchedule);
            let schedule = settings::schedule(snapshot, visibility);
            answer.get_maintenance_schedule = Some(response::GetMaintenanceSchedule { schedule });
        }
        _ => {}
    }
    answer
}
