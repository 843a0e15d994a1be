//! `/tasks`, and a task as `/state`, `/frameworks` and `/tasks` show it (LEG-05, LEG-63).

use master::{Framework, Task};
use protos::json::{Dialect, Writer};
use protos::mesos;

use super::{Context, parts};

/// How many tasks `/tasks` lists if nobody says.
const LIMIT: usize = 100;

/// `/tasks?limit=&offset=&order=&framework_id=&task_id=`
pub(in crate::master) fn write(context: &Context, out: &mut Vec<u8>) {
    let query = &context.query;
    let number = |name: &str, default| query.get(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (limit, offset) = (number("limit", LIMIT), number("offset", 0));
    let snapshot = &context.snapshot;
    let frameworks = snapshot.frameworks.values().chain(snapshot.completed.values());
    let mut found: Vec<(&Framework, &Task)> = Vec::new();
    for framework in frameworks {
        if query.get("framework_id").is_some_and(|wanted| wanted != framework.id.as_str()) {
            continue;
        }
        let all = framework.tasks.values();
        let all = all.chain(framework.unreachable_tasks.values()).chain(framework.completed_tasks.values());
        let wanted = all.filter(|task| query.get("task_id").is_none_or(|wanted| wanted == task.id.as_str()));
        found.extend(wanted.map(|task| (&**framework, &**task)));
    }
    let began = |task: &Task| task.proto.statuses.first().and_then(|status| status.timestamp).unwrap_or(0.0);
    found.sort_by(|(_, a), (_, b)| began(a).total_cmp(&began(b)));
    if query.get("order") != Some("asc") {
        found.reverse();
    }
    Writer::new(out).object(|w| {
        w.key("tasks").array(|w| {
            for (framework, task_) in found.into_iter().skip(offset).take(limit) {
                task(w, framework, task_);
            }
        });
    });
}

/// One task.
pub(super) fn task(w: &mut Writer<'_>, framework: &Framework, task: &Task) {
    let proto = &task.proto;
    w.object(|w| {
        w.key("id").string(task.id.as_str());
        w.key("name").string(&proto.name);
        w.key("framework_id").string(framework.id.as_str());
        w.key("executor_id").string(proto.executor_id.as_ref().map_or("", |id| &id.value));
        w.key("slave_id").string(&proto.slave_id.value);
        w.key("state").string(proto.state().as_str_name());
        w.key("resources");
        parts::resources(w, &task.resources);
        if !proto.limits.is_empty() {
            w.key("limits").object(|w| {
                for (name, limit) in &proto.limits {
                    w.key(name);
                    if limit.value.is_finite() { w.double(limit.value) } else { w.string("Infinity") };
                }
            });
        }
        w.key("role").string(role(proto));
        w.key("statuses").array(|w| proto.statuses.iter().for_each(|one| status(w, one)));
        if let Some(user) = &proto.user {
            w.key("user").string(user);
        }
        if let Some(labels) = &proto.labels {
            w.key("labels");
            parts::labels(w, labels);
        }
        if let Some(discovery) = &proto.discovery {
            w.key("discovery").message(discovery, Dialect::V0);
        }
        if let Some(container) = &proto.container {
            w.key("container").message(container, Dialect::V0);
        }
        if let Some(check) = &proto.health_check {
            w.key("health_check").message(check, Dialect::V0);
        }
    });
}

/// The role that a task's resources are allocated to.
fn role(task: &mesos::Task) -> &str {
    let allocation = task.resources.iter().find_map(|resource| resource.allocation_info.as_ref());
    allocation.and_then(|info| info.role.as_deref()).unwrap_or("*")
}

fn status(w: &mut Writer<'_>, status: &mesos::TaskStatus) {
    w.object(|w| {
        w.key("state").string(status.state().as_str_name());
        w.key("timestamp").double(status.timestamp.unwrap_or(0.0));
        if let Some(labels) = &status.labels {
            w.key("labels");
            parts::labels(w, labels);
        }
        if let Some(container) = &status.container_status {
            w.key("container_status").message(container, Dialect::V0);
        }
        if let Some(healthy) = status.healthy {
            w.key("healthy").bool(healthy);
        }
    });
}
