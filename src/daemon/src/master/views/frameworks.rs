//! The document `/frameworks`, and the fields of a framework in `/state`, `/state-summary` and `/frameworks` (LEG-04,
//! LEG-62).

use master::{Framework, FrameworkKey, Task};
use protos::json::{Dialect, Writer};
use protos::mesos;

use super::Context;
use super::index::{FrameworkHoldings, Index};
use crate::parts;

/// Writes the document `/frameworks?framework_id=`.
pub(in crate::master) fn write(context: &Context, out: &mut Vec<u8>) {
    let wanted = context.query.get("framework_id");
    let is_wanted = |framework: &Framework| wanted.is_none_or(|wanted| wanted == framework.id.as_str());
    let index = Index::new(&context.snapshot, &context.chunk_cache);
    Writer::new(out).object(|w| lists(w, context, &index, is_wanted));
}

/// Writes `frameworks`, `completed_frameworks`, and `unregistered_frameworks`, which is always empty.
pub(super) fn lists(w: &mut Writer<'_>, context: &Context, index: &Index<'_>, is_wanted: impl Fn(&Framework) -> bool) {
    let is_wanted = |framework: &Framework| is_wanted(framework) && context.visibility.framework(&framework.info);
    w.key("frameworks").array(|w| {
        for (key, framework) in context.snapshot.frameworks.iter().filter(|(_, framework)| is_wanted(framework)) {
            w.object(|w| full(w, context, index, FrameworkKey(key), framework));
        }
    });
    w.key("completed_frameworks").array(|w| {
        for framework in context.snapshot.completed.values().filter(|framework| is_wanted(framework)) {
            w.object(|w| full(w, context, index, FrameworkKey(u64::MAX), framework));
        }
    });
    w.key("unregistered_frameworks").array(|_| {});
}

/// Writes the fields of a framework that every list of frameworks has.
pub(super) fn fields(w: &mut Writer<'_>, framework: &Framework, own: &FrameworkHoldings<'_>) {
    let info = &framework.info;
    w.key("id").string(framework.id.as_str());
    w.key("name").string(&info.name);
    if let Some(pid) = framework.pid() {
        w.key("pid").string(&pid.to_string());
    }
    w.key("used_resources");
    parts::resources(w, &own.used);
    w.key("offered_resources");
    parts::resources(w, &own.offered);
    w.key("capabilities");
    parts::framework_capabilities(w, &info.capabilities);
    w.key("hostname").string(info.hostname.as_deref().unwrap_or_default());
    w.key("webui_url").string(info.webui_url.as_deref().unwrap_or_default());
    w.key("active").bool(framework.active);
    w.key("connected").bool(framework.connected());
    w.key("recovered").bool(framework.recovered());
}

fn full(w: &mut Writer<'_>, context: &Context, index: &Index<'_>, key: FrameworkKey, framework: &Framework) {
    let own = index.of(key);
    fields(w, framework, own);
    info_fields(w, framework);
    w.key("resources");
    parts::resources(w, &(&own.used + &own.offered));
    roles(w, framework);
    for (key, tasks) in [
        ("tasks", &framework.tasks),
        ("unreachable_tasks", &framework.unreachable_tasks),
        ("completed_tasks", &framework.completed_tasks),
    ] {
        w.key(key).array(|w| {
            let write = |w: &mut Writer<'_>, task: &Task| parts::task(w, &task.proto, &task.resources);
            if context.visibility.all_tasks() {
                context.chunk_cache.tasks.list(w, &mut context.splices.borrow_mut(), tasks, write);
            } else {
                let visible = tasks.values().filter(|task| context.visibility.task(framework, task));
                visible.for_each(|task| write(w, task));
            }
        });
    }
    offers(w, context, index, framework, own);
    executors(w, context, framework, own);
    if let Some(labels) = &framework.info.labels {
        w.key("labels");
        parts::labels(w, labels);
    }
    let constraints = w.key("offer_constraints");
    match &framework.offer_constraints {
        Some(set) => constraints.message(&**set, Dialect::V0),
        None => constraints.object(|_| {}),
    };
}

fn info_fields(w: &mut Writer<'_>, framework: &Framework) {
    let info = &framework.info;
    w.key("user").string(&info.user);
    w.key("failover_timeout").double(info.failover_timeout());
    w.key("checkpoint").bool(info.checkpoint());
    w.key("registered_time").double(framework.registered.as_secs_f64());
    w.key("unregistered_time").double(framework.unregistered.map_or(0.0, |time| time.as_secs_f64()));
    if let Some(time) = framework.reregistered {
        w.key("reregistered_time").double(time.as_secs_f64());
    }
    if let Some(principal) = &info.principal {
        w.key("principal").string(principal);
    }
}

/// Writes `roles` for frameworks that may have several, `role` for others.
#[allow(deprecated, reason = "the field is what frameworks without MULTI_ROLE still use")]
fn roles(w: &mut Writer<'_>, framework: &Framework) {
    if framework.capabilities.multi_role {
        w.key("roles").array(|w| {
            for role in &framework.info.roles {
                w.string(role);
            }
        });
    } else {
        w.key("role").string(framework.info.role.as_deref().unwrap_or("*"));
    }
}

fn offers(
    w: &mut Writer<'_>,
    context: &Context,
    index: &Index<'_>,
    framework: &Framework,
    own: &FrameworkHoldings<'_>,
) {
    w.key("offers").array(|w| {
        for (key, offer) in &own.offers {
            let Some(agent) = index.agent(offer.agent) else { continue };
            w.object(|w| {
                w.key("id").string(&format!("{}-O{}", context.snapshot.info.id, key.0));
                w.key("framework_id").string(framework.id.as_str());
                w.key("allocation_info");
                let role = Some((&offer.role).into());
                w.message(&mesos::resource::AllocationInfo { role }, Dialect::V0);
                w.key("slave_id").string(agent.id.as_str());
                w.key("resources");
                parts::resources(w, &offer.resources);
            });
        }
    });
}

fn executors(w: &mut Writer<'_>, context: &Context, framework: &Framework, own: &FrameworkHoldings<'_>) {
    w.key("executors").array(|w| {
        for (agent, id, executor) in &own.executors {
            let info = &executor.info;
            if !context.visibility.executor(&framework.info, info) {
                continue;
            }
            w.object(|w| {
                w.key("executor_id").string(id.as_str());
                w.key("name").string(info.name.as_deref().unwrap_or_default());
                w.key("framework_id").string(framework.id.as_str());
                // The default executor has no command; the document has an empty one.
                let none = mesos::CommandInfo::default();
                w.key("command").object(|w| command_fields(w, info.command.as_ref().unwrap_or(&none)));
                w.key("resources");
                parts::resources(w, &executor.resources);
                if let Some(role) = executor.resources.iter().find_map(|resource| resource.allocation()) {
                    w.key("role").string(role.as_str());
                }
                if let Some(labels) = &info.labels {
                    w.key("labels");
                    parts::labels(w, labels);
                }
                if let Some(kind) = info.r#type {
                    let kind = mesos::executor_info::Type::try_from(kind).unwrap_or_default();
                    w.key("type").string(kind.as_str_name());
                }
                w.key("slave_id").string(agent.id.as_str());
            });
        }
    });
}

fn command_fields(w: &mut Writer<'_>, command: &mesos::CommandInfo) {
    if let Some(shell) = command.shell {
        w.key("shell").bool(shell);
    }
    if let Some(value) = &command.value {
        w.key("value").string(value);
    }
    w.key("argv").array(|w| {
        for argument in &command.arguments {
            w.string(argument);
        }
    });
    if let Some(environment) = &command.environment {
        w.key("environment").message(environment, Dialect::V0);
    }
    w.key("uris").array(|w| {
        for uri in &command.uris {
            w.message(uri, Dialect::V0);
        }
    });
}
