//! The document `/tasks` (LEG-05).

use master::Task;
use protos::json::Writer;

use super::Context;
use crate::parts;

/// Default number of tasks in `/tasks`.
const LIMIT: usize = 100;

/// Writes the document `/tasks?limit=&offset=&order=&framework_id=&task_id=`.
pub(in crate::master) fn write(context: &Context, out: &mut Vec<u8>) {
    let query = &context.query;
    let number = |name: &str, default| query.get(name).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (limit, offset) = (number("limit", LIMIT), number("offset", 0));
    let snapshot = &context.snapshot;
    let frameworks = snapshot.frameworks.values().chain(snapshot.completed.values());
    let mut found: Vec<&Task> = Vec::new();
    for framework in frameworks {
        let other = query.get("framework_id").is_some_and(|wanted| wanted != framework.id.as_str());
        if other || !context.visibility.framework(&framework.info) {
            continue;
        }
        let all = framework.tasks.values();
        let all = all.chain(framework.unreachable_tasks.values()).chain(framework.completed_tasks.values());
        let wanted = all.filter(|task| query.get("task_id").is_none_or(|wanted| wanted == task.id.as_str()));
        let wanted = wanted.filter(|task| context.visibility.task(framework, task));
        found.extend(wanted.map(|task| &**task));
    }
    let began = |task: &Task| task.proto.statuses.first().and_then(|status| status.timestamp).unwrap_or(0.0);
    found.sort_by(|a, b| began(a).total_cmp(&began(b)));
    if query.get("order") != Some("asc") {
        found.reverse();
    }
    Writer::new(out).object(|w| {
        w.key("tasks").array(|w| {
            for task in found.into_iter().skip(offset).take(limit) {
                parts::task(w, &task.proto, &task.resources);
            }
        });
    });
}
