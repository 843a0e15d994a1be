//! The document `/state` of the agent (LEG-65).

use agent::{Executor, Framework, Queued};
use authorizer::Action;
use protos::json::{Dialect, Writer};
use protos::mesos;
use resources::{Resources, Role};

use super::Context;
use crate::acls::Caller;
use crate::common::{BUILD, MESOS_VERSION};
use crate::parts;

/// Writes the document `/state`.
pub(in crate::agent) fn write(context: &Context) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 << 10);
    let snapshot = &context.snapshot;
    Writer::new(&mut out).object(|w| {
        w.key("version").string(MESOS_VERSION);
        w.key("git_tag").string(BUILD.tag);
        w.key("build_date").string(BUILD.date);
        w.key("build_time").double(BUILD.time);
        w.key("build_user").string(BUILD.user);
        w.key("start_time").double(context.started.as_secs_f64());
        w.key("id").string(snapshot.id.as_ref().map_or("", |id| id.as_str()));
        w.key("pid").string(&context.shell.pid.to_string());
        w.key("hostname").string(&snapshot.info.hostname);
        w.key("capabilities");
        parts::agent_capabilities(w, &context.shell.capabilities);
        resources(w, context);
        w.key("attributes");
        parts::attributes(w, &snapshot.info.attributes);
        if let Some(domain) = &snapshot.info.domain {
            w.key("domain").message(domain, Dialect::V0);
        }
        if let Some(drain) = &snapshot.drain {
            w.key("drain_config").message(drain, Dialect::V0);
        }
        if let Some(start) = snapshot.drain_start {
            w.key("estimated_drain_start_time_seconds").double(start.as_secs_f64());
        }
        if let Some(master) = &snapshot.master {
            w.key("master_hostname").string(&crate::host::name_of(*master.address().ip()));
        }
        if context.caller.may(Action::ViewFlags, None) {
            context.common.write_log_fields(w);
            w.key("flags").object(|w| context.common.write_flags(w));
        }
        let visible = &context.visible;
        w.key("frameworks").array(|w| visible.frameworks.values().for_each(|one| framework(w, one)));
        w.key("completed_frameworks").array(|w| visible.completed_frameworks.iter().for_each(|one| framework(w, one)));
    });
    out
}

/// Writes the agent's resources, and those that executors use.
fn resources(w: &mut Writer<'_>, context: &Context) {
    let snapshot = &context.snapshot;
    let total = &*snapshot.resources;
    let mut used = Resources::default();
    for executor in snapshot.frameworks.values().flat_map(|framework| framework.executors.values()) {
        used += &resources::from_proto(&executor.resources()).unwrap_or_default();
    }
    w.key("resources");
    parts::resources(w, total);
    w.key("reserved_resources").object(|w| by_role(w, &context.caller, total, parts::resources));
    w.key("unreserved_resources");
    parts::resources(w, &total.unreserved());
    w.key("reserved_resources_full").object(|w| by_role(w, &context.caller, total, parts::resource_objects));
    w.key("unreserved_resources_full");
    parts::resource_objects(w, &total.unreserved());
    w.key("reserved_resources_allocated").object(|w| by_role(w, &context.caller, &used, parts::resources));
    w.key("unreserved_resources_allocated");
    parts::resources(w, &used.unreserved());
    w.key("resource_providers").array(|_| {});
}

fn by_role(w: &mut Writer<'_>, caller: &Caller, all: &Resources, write: fn(&mut Writer<'_>, &Resources)) {
    let visible = |role: &Role| caller.may(Action::ViewRole, Some(role.as_str()));
    for (role, reserved) in all.reservations().into_iter().filter(|(role, _)| visible(role)) {
        w.key(role.as_str());
        write(w, &reserved);
    }
}

#[allow(deprecated, reason = "the field is what frameworks without MULTI_ROLE still use")]
fn framework(w: &mut Writer<'_>, framework: &Framework) {
    let info = &framework.info;
    w.object(|w| {
        w.key("id").string(framework.id.as_str());
        w.key("name").string(&info.name);
        w.key("user").string(&info.user);
        w.key("failover_timeout").double(info.failover_timeout());
        w.key("checkpoint").bool(info.checkpoint());
        w.key("hostname").string(info.hostname.as_deref().unwrap_or_default());
        if let Some(principal) = &info.principal {
            w.key("principal").string(principal);
        }
        let multi_role = mesos::framework_info::capability::Type::MultiRole;
        if info.capabilities.iter().any(|capability| capability.r#type() == multi_role) {
            w.key("roles").array(|w| {
                for role in &info.roles {
                    w.string(role);
                }
            });
        } else {
            w.key("role").string(info.role.as_deref().unwrap_or("*"));
        }
        w.key("executors").array(|w| framework.executors.values().for_each(|one| executor(w, one)));
        w.key("completed_executors").array(|w| framework.completed_executors.iter().for_each(|one| executor(w, one)));
    });
}

fn executor(w: &mut Writer<'_>, executor: &Executor) {
    let info = &executor.info;
    let held = resources::from_proto(&executor.resources()).unwrap_or_default();
    w.object(|w| {
        w.key("id").string(executor.id.as_str());
        w.key("name").string(info.name.as_deref().unwrap_or_default());
        w.key("source").string(source(info));
        w.key("container").string(executor.container.as_str());
        w.key("directory").string(&executor.directory);
        w.key("resources");
        parts::resources(w, &held);
        w.key("role").string(held.allocations().keys().next().map_or("*", |role| role.as_str()));
        if let Some(labels) = &info.labels {
            w.key("labels");
            parts::labels(w, labels);
        }
        if let Some(kind) = info.r#type {
            w.key("type").string(mesos::executor_info::Type::try_from(kind).unwrap_or_default().as_str_name());
        }
        w.key("tasks").array(|w| {
            executor.launched.values().chain(executor.terminated.values()).for_each(|one| task(w, one));
        });
        w.key("queued_tasks").array(|w| {
            executor.queued.iter().flat_map(Queued::tasks).for_each(|one| queued_task(w, one));
        });
        w.key("completed_tasks").array(|w| executor.completed.iter().for_each(|one| task(w, one)));
    });
}

#[allow(deprecated, reason = "monitoring still reads it")]
pub(super) fn source(info: &mesos::ExecutorInfo) -> &str {
    info.source.as_deref().unwrap_or_default()
}

fn task(w: &mut Writer<'_>, task: &mesos::Task) {
    parts::task(w, task, &resources::from_proto(&task.resources).unwrap_or_default());
}

/// Writes a task in the queue for its executor.
fn queued_task(w: &mut Writer<'_>, task: &mesos::TaskInfo) {
    w.object(|w| {
        w.key("id").string(&task.task_id.value);
        w.key("name").string(&task.name);
        w.key("slave_id").string(&task.slave_id.value);
        w.key("resources");
        parts::resources(w, &resources::from_proto(&task.resources).unwrap_or_default());
        if let Some(labels) = &task.labels {
            w.key("labels");
            parts::labels(w, labels);
        }
    });
}
