//! The page `/help`: the endpoints of a daemon. A test beside the routes checks that it is complete.

use wire::http::{Response, header};

use crate::flags::Part;

/// The content security policy: the page is text, without scripts and styles.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SHARED: &[(&str, &str)] = &[
    ("/", "the web page"),
    ("/assets", "files of the web page"),
    ("/health", "health check: 200 OK"),
    ("/version", "version of Mesos's API and of this build"),
    ("/flags", "the effective flags"),
    ("/metrics/snapshot?timeout=", "all metrics"),
    ("/metrics", "all metrics, for Prometheus"),
    ("/files/browse?path=", "the entries of a directory"),
    ("/files/read?path=&offset=&length=", "a part of a file"),
    ("/files/download?path=", "a whole file"),
    ("/files/debug", "directories of /files with their paths on disk"),
    ("/logging/toggle?level=&duration=", "raises the log level for a time"),
    ("/system/stats.json", "load and memory of the machine"),
    ("/help", "this page"),
];

const MASTER: &[(&str, &str)] = &[
    ("/app", "files of --webui_dir"),
    ("/node_modules", "files of --webui_dir"),
    ("/api/v1", "operator API (POST)"),
    ("/api/v1/scheduler", "scheduler API (POST)"),
    ("/state", "complete state: agents, frameworks, tasks"),
    ("/state-summary", "agents and frameworks with counts of tasks"),
    ("/slaves?slave_id=", "agents with their full resources"),
    ("/frameworks?framework_id=", "frameworks"),
    ("/tasks?limit=&offset=&order=&framework_id=&task_id=", "tasks, newest first"),
    ("/roles", "roles with weights and shares"),
    ("/redirect", "redirects to the leading master"),
    ("/teardown", "ends a framework (POST frameworkId=)"),
    ("/quota", "guaranteed resources of roles (GET, POST, DELETE /quota/<role>)"),
    ("/weights", "weights of roles (GET, PUT)"),
    ("/reserve", "reserves an agent's resources (POST slaveId=&resources=)"),
    ("/unreserve", "unreserves an agent's resources (POST slaveId=&resources=)"),
    ("/create-volumes", "creates persistent volumes (POST slaveId=&volumes=)"),
    ("/destroy-volumes", "destroys persistent volumes (POST slaveId=&volumes=)"),
    ("/maintenance/schedule", "maintenance schedule (GET, POST)"),
    ("/maintenance/status", "machines that are draining or down"),
    ("/machine/down", "brings scheduled machines down (POST)"),
    ("/machine/up", "brings machines up again (POST)"),
    ("/registrar(1)/registry", "registry: agents, machines, quota, weights"),
    ("/allocator/offer_constraints_debug", "agents that the offer constraints of frameworks exclude"),
];

const AGENT: &[(&str, &str)] = &[
    ("/api/v1", "operator API (POST)"),
    ("/api/v1/executor", "executor API (POST)"),
    ("/state", "complete state: frameworks, executors, tasks"),
    ("/containers", "containers of executors with resource statistics"),
    ("/containerizer/debug", "pending operations of containers"),
    ("/monitor/statistics", "resource statistics of executors"),
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
    Response::ok_body("text/html", text).with_header(header::CONTENT_SECURITY_POLICY, POLICY)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_runs_nothing() {
        for part in [Part::Master, Part::Agent] {
            let page = page(part);
            assert_eq!(page.headers()["content-security-policy"], POLICY);
            let text = String::from_utf8(page.body().unwrap().to_vec()).unwrap();
            assert!(!text.contains("<script") && !text.contains("style"), "the policy forbids them");
        }
    }
}
