//! The page `/help`: the endpoints of a daemon. A test beside the routes checks that it is complete.

use wire::http::Response;

use crate::flags::Part;

const SHARED: &[(&str, &str)] = &[
    ("/", "the web page"),
    ("/assets", "files of the web page"),
    ("/health", "200 while the daemon answers"),
    ("/version", "the version whose wire this is, and this build"),
    ("/flags", "the effective flags"),
    ("/metrics/snapshot?timeout=", "all metrics"),
    ("/metrics", "all metrics, for Prometheus"),
    ("/files/browse?path=", "the entries of a directory"),
    ("/files/read?path=&offset=&length=", "a part of a file"),
    ("/files/download?path=", "a whole file"),
    ("/files/debug", "what /files shows, and where it is on disk"),
    ("/logging/toggle?level=&duration=", "more log lines for a while"),
    ("/system/stats.json", "load and memory of the machine"),
    ("/help", "this page"),
];

const MASTER: &[(&str, &str)] = &[
    ("/app", "files of --webui_dir"),
    ("/node_modules", "files of --webui_dir"),
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
    ("/quota", "guaranteed resources of roles (GET, POST, DELETE /quota/<role>)"),
    ("/weights", "weights of roles (GET, PUT)"),
    ("/reserve", "reserves an agent's resources (POST slaveId=&resources=)"),
    ("/unreserve", "takes reservations back (POST slaveId=&resources=)"),
    ("/create-volumes", "creates persistent volumes (POST slaveId=&volumes=)"),
    ("/destroy-volumes", "destroys persistent volumes (POST slaveId=&volumes=)"),
    ("/maintenance/schedule", "when machines will be away (GET, POST)"),
    ("/maintenance/status", "which machines drain or are down"),
    ("/machine/down", "takes machines of the schedule out (POST)"),
    ("/machine/up", "takes machines in again (POST)"),
    ("/registrar(1)/registry", "what the master keeps on disk: agents, machines, quota, weights"),
    ("/allocator/offer_constraints_debug", "which agents frameworks want no offers of, by their constraints"),
];

const AGENT: &[(&str, &str)] = &[
    ("/api/v1", "operator API (POST)"),
    ("/api/v1/executor", "executor API (POST)"),
    ("/state", "everything: frameworks, executors, tasks"),
    ("/containers", "containers of executors with what they use"),
    ("/containerizer/debug", "what containers wait for"),
    ("/monitor/statistics", "what executors use"),
];

fn endpoints(part: Part) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let own = match part {
        Part::Master => MASTER,
        Part::Agent => AGENT,
    };
    own.iter().chain(SHARED)
}

pub(super) fn page(part: Part) -> Response {
    let mut text = format!("<html><head><title>Help</title></head><body><h1>tepui {}</h1><table>\n", part.command());
    for (path, what) in endpoints(part) {
        let [path, what] = [path, what].map(|text| text.replace('&', "&amp;").replace('<', "&lt;"));
        text.push_str(&format!("<tr><td><code>{path}</code></td><td>{what}</td></tr>\n"));
    }
    text.push_str("</table></body></html>\n");
    Response::ok_body("text/html", text)
}

/// Returns the paths on the page that have no endpoint, and the endpoints that the page leaves out: both must be none.
#[cfg(test)]
pub fn gaps<T>(part: Part, routes: &wire::route::Table<T>) -> (Vec<String>, Vec<String>) {
    let listed: Vec<&str> = endpoints(part).map(|(path, _)| path.split('?').next().unwrap_or(path)).collect();
    let leads = |path: &str| routes.find(path).is_some_and(|found| found.rest.is_empty());
    let idle = listed.iter().filter(|path| !leads(path)).map(|path| (*path).to_owned()).collect();
    let missing = routes.paths().filter(|path| !listed.contains(&path.as_str())).collect();
    (idle, missing)
}
