//! `/help`: the endpoints of a daemon on one plain page.

use wire::http::Response;

use crate::flags::Part;

const SHARED: &[(&str, &str)] = &[
    ("/health", "200 while the daemon answers"),
    ("/version", "the version whose wire this is, and this build"),
    ("/flags", "the effective flags"),
    ("/metrics/snapshot", "all metrics"),
    ("/files/browse?path=", "the entries of a folder"),
    ("/files/read?path=&offset=&length=", "a part of a file"),
    ("/files/download?path=", "a whole file"),
    ("/files/debug", "what /files shows, and where it is on disk"),
    ("/logging/toggle?level=&duration=", "more log lines for a while"),
    ("/system/stats.json", "load and memory of the machine"),
];

const MASTER: &[(&str, &str)] = &[
    ("/api/v1", "operator API (POST)"),
    ("/api/v1/scheduler", "scheduler API (POST)"),
    ("/state", "everything: agents, frameworks, tasks"),
    ("/state-summary", "agents and frameworks with counts of tasks"),
    ("/slaves?slave_id=", "agents with their full resources"),
    ("/frameworks?framework_id=", "frameworks"),
    ("/tasks?limit=&offset=&order=&framework_id=&task_id=", "tasks, newest first"),
    ("/roles", "roles with weights and shares"),
    ("/redirect", "to the leading master"),
    ("/teardown", "ends a framework (POST frameworkId=)"),
];

const AGENT: &[(&str, &str)] = &[
    ("/api/v1", "operator API (POST)"),
    ("/api/v1/executor", "executor API (POST)"),
    ("/state", "everything: frameworks, executors, tasks"),
    ("/containers", "containers of executors with what they use"),
    ("/monitor/statistics", "what executors use"),
];

pub(super) fn page(part: Part) -> Response {
    let own = match part {
        Part::Master => MASTER,
        Part::Agent => AGENT,
    };
    let mut text = format!("<html><head><title>Help</title></head><body><h1>tepui {}</h1><table>\n", part.command());
    for (path, what) in own.iter().chain(SHARED) {
        text.push_str(&format!("<tr><td><code>{}</code></td><td>{what}</td></tr>\n", path.replace('&', "&amp;")));
    }
    text.push_str("</table></body></html>\n");
    Response::ok_body("text/html", text)
}
