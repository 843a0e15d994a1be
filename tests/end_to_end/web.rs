//! Tests the web page of masters and agents in a browser, with real daemons and tasks.
//!
//! The answers of the endpoints behind it are tested elsewhere.

use std::path::Path;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::process::Process;
use crate::support::{Cluster, Daemon, Directory, call, exchange, free_port, get, request, tepui, until, wait_for};

/// Starts a task that writes a line a second.
pub fn start_task(master: &str, name: &str) -> Process {
    let mut command = tepui();
    command.args(["execute", &format!("--master={master}"), &format!("--name={name}"), "--role=eng/web"]);
    command
        .args(["--resources=cpus:0.5;mem:64", "--command=i=0; while true; do i=$((i+1)); echo line $i; sleep 1; done"]);
    let task = Process::start(&mut command);
    until("the task runs", || state_of(master, name).as_deref() == Some("TASK_RUNNING"));
    task
}

fn find_task(master: &str, name: &str) -> Option<Value> {
    let told = call(master, "GET", "/tasks")?;
    told["tasks"].as_array()?.iter().find(|task| task["id"] == name).cloned()
}

fn state_of(master: &str, name: &str) -> Option<String> {
    Some(find_task(master, name)?["state"].as_str()?.to_owned())
}

/// Returns the route of a task's page.
fn route_of(master: &str, name: &str) -> String {
    let task = find_task(master, name).unwrap();
    format!("#/tasks/{}/{name}", task["framework_id"].as_str().unwrap())
}

#[test]
fn pages_show_agents_tasks_and_output_and_survive_a_reload() {
    let cluster = Cluster::start("web-pages", 2, "cpus:2;mem:256;disk:256");
    let _task = start_task(&cluster.master, "writes");
    let browser = Browser::start();
    browser.view(1280, 900, "light");
    browser.open(&format!("http://{}/", cluster.master));
    browser.shows(&["Overview", "Running tasks\n1", "Agents\n2", "eng/web", "12.5 %"]);
    browser.picture("overview-light");

    // A list, one of its entries by its link, and the same page after a reload.
    browser.click_link("Tasks");
    browser.shows(&["writes", "running", "tepui-execute"]);
    browser.click_link("writes");
    browser.shows(&["History", "starting"]);
    let route = route_of(&cluster.master, "writes");
    assert!(browser.url().ends_with(&route), "{}", browser.url());
    browser.reload();
    browser.shows(&["writes", "Sandbox and output", "0.5 cpus, 64 MB mem"]);
    browser.picture("task-light");

    // The agent's own page shows the output while it is written.
    browser.click_link("Sandbox and output");
    browser.shows(&["stdout", "line 1\n", "Sandbox", "stderr"]);
    let lines = browser.text().matches("\nline ").count();
    let more = format!("line {}", lines + 2);
    browser.shows(&[&more]);
    browser.picture("agent-task-light");

    // New tasks appear without a reload.
    browser.open(&format!("http://{}/#/tasks", cluster.master));
    browser.shows(&["writes"]);
    let _second = start_task(&cluster.master, "later");
    browser.shows(&["later"]);
    browser.fill("Search agents, frameworks, tasks", "lat\u{e007}");
    browser.shows(&["Search: lat", "later"]);
    until("only what fits is shown", || !browser.text().contains("writes"));
}

#[test]
fn pages_fit_small_and_large_screens_and_are_accessible() {
    let cluster = Cluster::start("web-screens", 2, "cpus:2;mem:256;disk:256");
    let _task = start_task(&cluster.master, "writes");
    let task = find_task(&cluster.master, "writes").unwrap();
    let (framework, agent) = (task["framework_id"].as_str().unwrap(), task["slave_id"].as_str().unwrap());
    let agents = call(&cluster.master, "GET", "/slaves").unwrap();
    let port = agents["slaves"].as_array().unwrap().iter().find(|one| one["id"] == agent).unwrap()["port"].clone();
    let master = format!("http://{}/", cluster.master);
    let pages = [
        ("overview", format!("{master}#/"), "Tasks over time"),
        ("agents", format!("{master}#/agents"), "active"),
        ("agent", format!("{master}#/agents/{agent}"), "Deactivate"),
        ("frameworks", format!("{master}#/frameworks"), "tepui-execute"),
        ("framework", format!("{master}#/frameworks/{framework}"), "Order of allocation"),
        ("tasks", format!("{master}#/tasks"), "writes"),
        ("task", format!("{master}#/tasks/{framework}/writes"), "History"),
        ("roles", format!("{master}#/roles"), "eng/web"),
        ("role", format!("{master}#/roles/eng/web"), "The role has no quota."),
        ("fairness", format!("{master}#/fairness"), "Jain's index"),
        ("offers", format!("{master}#/offers"), "Offers"),
        ("operations", format!("{master}#/operations"), "No operation is under way."),
        ("maintenance", format!("{master}#/maintenance"), "No maintenance is scheduled."),
        ("search", format!("{master}#/search?q=w"), "writes"),
        ("agent-overview", format!("http://127.0.0.1:{port}/#/"), "writes"),
        ("agent-task", format!("http://127.0.0.1:{port}/#/tasks/{framework}/writes"), "line 1\n"),
    ];
    let browser = Browser::start();
    for (width, height, scheme) in [(400, 800, "light"), (1440, 900, "dark"), (3840, 2160, "light")] {
        browser.view(width, height, scheme);
        for (name, url, text) in &pages {
            browser.open(url);
            browser.shows(&[text]);
            browser.fits();
            browser.is_accessible();
            browser.picture(&format!("{name}-{width}-{scheme}"));
        }
    }
}

/// A browser opens six connections to a server, and each visible page holds one for its event stream.
#[test]
fn pages_out_of_view_leave_their_connections_to_others() {
    let cluster = Cluster::start("web-tabs", 1, "cpus:2;mem:256;disk:256");
    let browser = Browser::start();
    for _ in 0..8 {
        browser.open_tab(&format!("http://{}/#/agents", cluster.master));
        browser.shows(&["Agents", "active"]);
    }
}

#[test]
fn agents_are_drained_tasks_killed_and_frameworks_torn_down_after_a_confirmation() {
    let cluster = Cluster::start("web-changes", 1, "cpus:2;mem:256;disk:256");
    let _task = start_task(&cluster.master, "killed");
    let browser = Browser::start();
    browser.view(1280, 900, "light");
    browser.open(&format!("http://{}/{}", cluster.master, route_of(&cluster.master, "killed")));
    browser.click_link("Sandbox and output");
    browser.click_button("Kill");
    browser.shows(&["Kill killed?", "SIGKILL"]);
    browser.confirm("Kill");
    until("the task has failed", || state_of(&cluster.master, "killed").as_deref() == Some("TASK_FAILED"));

    let _task = start_task(&cluster.master, "ended");
    browser.open(&format!("http://{}/{}", cluster.master, route_of(&cluster.master, "ended")));
    browser.click_button("Kill");
    browser.shows(&["Kill ended?", "by its kill policy"]);
    browser.confirm("Kill");
    until("the task is killed", || state_of(&cluster.master, "ended").as_deref() == Some("TASK_KILLED"));

    let _task = start_task(&cluster.master, "drained");
    browser.open(&format!("http://{}/#/agents", cluster.master));
    browser.click("//td/a");
    browser.click_button("Drain");
    browser.shows(&["its tasks are killed", "Longest grace period"]);
    browser.picture("drain-light");
    browser.confirm("Cancel");
    assert_eq!(state_of(&cluster.master, "drained").as_deref(), Some("TASK_RUNNING"));
    browser.click_button("Drain");
    browser.fill("grace", "1");
    browser.confirm("Drain");
    until("the task has ended", || state_of(&cluster.master, "drained").as_deref() != Some("TASK_RUNNING"));
    browser.shows(&["drained", "Reactivate"]);
    browser.click_button("Reactivate");
    browser.confirm("Reactivate");
    browser.shows(&["active", "Deactivate"]);

    let _task = start_task(&cluster.master, "torn");
    let framework = find_task(&cluster.master, "torn").unwrap()["framework_id"].as_str().unwrap().to_owned();
    browser.open(&format!("http://{}/#/frameworks/{framework}", cluster.master));
    browser.click_button("Tear down");
    browser.shows(&["All of its 1 active tasks are killed"]);
    browser.confirm("Tear down");
    browser.shows(&["completed", "killed"]);
}

/// Returns the arguments of a master that requires users, one of whom may change nothing.
fn guarded_master(directory: &Directory) -> Vec<String> {
    let known =
        r#"{"credentials": [{"principal": "ann", "secret": "s3cret"}, {"principal": "guest", "secret": "gü st"}]}"#;
    let rule = |principals: Value, agents: &str| json!({ "principals": principals, "agents": { "type": agents } });
    let acls = json!({ "drain_agents": [
        rule(json!({ "values": ["ann"] }), "ANY"),
        rule(json!({ "type": "ANY" }), "NONE"),
    ] });
    let words = ["master", "--ip=127.0.0.1", "--registry=in_memory", "--authenticate_http_readonly"];
    let own = [
        "--authenticate_http_readwrite".to_owned(),
        "--cluster=guarded".to_owned(),
        format!("--port={}", free_port()),
        format!("--work_dir={}", directory.join("m")),
        format!("--credentials={}", directory.write("known", known)),
        format!("--acls={}", directory.write("acls", &acls.to_string())),
    ];
    words.into_iter().map(str::to_owned).chain(own).collect()
}

pub fn agent_words(directory: &Directory, master: &str, more: &[String]) -> Vec<String> {
    let words = ["agent", "--ip=127.0.0.1", "--port=0", "--launcher=posix", "--resources=cpus:1;mem:64;disk:64"];
    let own = [
        format!("--master={master}"),
        format!("--work_dir={}", directory.join("a")),
        format!("--runtime_dir={}", directory.join("r")),
    ];
    words.into_iter().map(str::to_owned).chain(own).chain(more.iter().cloned()).collect()
}

#[test]
fn users_log_in_and_see_why_a_change_is_refused() {
    let directory = Directory::new("web-log-in");
    let mut master = Daemon::start(&directory.path().join("m.log"), &guarded_master(&directory), &[]);
    let address = master.address().expect("the master runs");
    let known = directory.write("agents", r#"{"credentials": [{"principal": "bob", "secret": "x1"}]}"#);
    let more = ["--authenticate_http_readonly".to_owned(), format!("--http_credentials={known}")];
    let mut agent = Daemon::start(&directory.path().join("a.log"), &agent_words(&directory, &address, &more), &[]);
    let agent_address = agent.address().expect("the agent runs");
    let browser = Browser::start();
    browser.view(1280, 900, "light");
    browser.open(&format!("http://{address}/#/agents"));
    browser.shows(&["Principal", "Log in"]);
    browser.is_accessible();
    browser.picture("log-in-light");
    browser.fill("name", "guest");
    browser.fill("password", "wrong");
    browser.click_button("Log in");
    browser.shows(&["The principal or the password is wrong."]);
    browser.fill("password", "gü st");
    browser.click_button("Log in");
    browser.shows(&["Agents", "active", "guest", "guarded"]);
    browser.reload();
    browser.shows(&["active", "guest"]);
    assert!(browser.url().ends_with("/#/agents"), "{}", browser.url());

    browser.click("//td/a");
    browser.click_button("Drain");
    browser.confirm("Drain");
    browser.shows(&["403 Forbidden"]);
    browser.confirm("Cancel");

    browser.click_button("Log out");
    browser.shows(&["Log in"]);
    browser.fill("name", "ann");
    browser.fill("password", "s3cret\u{e007}");
    browser.click_button("Drain");
    browser.confirm("Drain");
    browser.shows(&["drained"]);

    // An agent has users of its own.
    browser.open(&format!("http://{agent_address}/"));
    browser.fill("name", "bob");
    browser.fill("password", "wrong\u{e007}");
    browser.shows(&["The principal or the password is wrong."]);
    browser.fill("password", "x1\u{e007}");
    browser.shows(&["Executors", "bob"]);
}

#[test]
fn a_master_that_does_not_answer_is_reported_and_connected_to_again() {
    let directory = Directory::new("web-reconnect");
    let port = free_port();
    let words: Vec<String> = ["master", "--ip=127.0.0.1", "--registry=in_memory"].map(str::to_owned).to_vec();
    let own = [format!("--port={port}"), format!("--work_dir={}", directory.join("m"))];
    let words: Vec<String> = words.into_iter().chain(own).collect();
    let mut master = Daemon::start(&directory.path().join("m.log"), &words, &[]);
    let address = master.address().expect("the master runs");
    let browser = Browser::start();
    browser.open(&format!("http://{address}/#/agents"));
    browser.shows(&["No agent has registered."]);
    drop(master);
    browser.shows(&["the page keeps trying to connect"]);
    let mut master = Daemon::start(&directory.path().join("again.log"), &words, &[]);
    master.address().expect("the master runs again");
    let mut agent = Daemon::start(&directory.path().join("a.log"), &agent_words(&directory, &address, &[]), &[]);
    agent.address().expect("the agent runs");
    browser.shows(&["active"]);
    until("the notice is gone", || !browser.text().contains("keeps trying"));
}

/// Returns the status and the head of an answer, in lower case, and its body.
fn answer(address: &str, path: &str) -> (u16, String, String) {
    let answer = exchange(address, &format!("GET {path} HTTP/1.0\r\n\r\n")).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
}

/// Returns the text of a file of the repository.
fn source(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn files_of_the_page_are_public_and_cached_and_run_no_inline_script() {
    let directory = Directory::new("web-files");
    let mut master = Daemon::start(&directory.path().join("m.log"), &guarded_master(&directory), &[]);
    let address = master.address().expect("the master runs");
    for path in ["/", "/master", "/assets/master.js", "/master/assets/style.css", "/assets/vendor/preact-htm.js"] {
        let (status, head, _) = answer(&address, path);
        assert_eq!(status, 200, "{path}");
        assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self';"), "{path}: {head}");
        let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().replace('w', "W");
        let again = exchange(&address, &format!("GET {path} HTTP/1.0\r\nIf-None-Match: {tag}\r\n\r\n")).unwrap();
        assert!(again.starts_with("HTTP/1.0 304"), "{path}: {again}");
    }
    let (_, head, body) = answer(&address, "/");
    assert!(head.contains("content-type: text/html"), "{head}");
    assert_eq!(body, source("src/daemon/webui/master.html"));
    assert_eq!(answer(&address, "/state").0, 401);
    for path in ["/app/x.js", "/assets", "/assets/", "/assets/nothing.js", "/assets/master.html", "/assets/%2e%2e/x"] {
        assert_eq!(answer(&address, path).0, 404, "{path}");
    }
    let posted = request(&address, "POST", "/", "").unwrap();
    assert!(posted.starts_with("HTTP/1.1 405"), "{posted}");
}

#[test]
fn webui_dir_serves_another_page_and_nothing_outside() {
    let directory = Directory::new("web-dir");
    for part in ["ui/app", "ui/assets/css", "ui/node_modules", "ui/private"] {
        std::fs::create_dir_all(directory.path().join(part)).unwrap();
    }
    directory.write("ui/index.html", "<p>another page</p>");
    directory.write("ui/app/app.js", "run()");
    directory.write("ui/assets/css/a b.css", "p {}");
    directory.write("ui/private/key", "secret");
    directory.write("outside", "secret");
    std::os::unix::fs::symlink("../../outside", directory.path().join("ui/app/link.js")).unwrap();
    let words: Vec<String> = ["master", "--ip=127.0.0.1", "--registry=in_memory"].map(str::to_owned).to_vec();
    let own = [
        format!("--port={}", free_port()),
        format!("--work_dir={}", directory.join("m")),
        format!("--webui_dir={}", directory.join("ui")),
    ];
    let mut master =
        Daemon::start(&directory.path().join("m.log"), &words.into_iter().chain(own).collect::<Vec<_>>(), &[]);
    let address = master.address().expect("the master runs");
    let files = [
        ("/", "text/html", "<p>another page</p>"),
        ("/master", "text/html", "<p>another page</p>"),
        ("/app/app.js", "text/javascript", "run()"),
        ("/assets/css/a%20b.css", "text/css", "p {}"),
    ];
    for (path, kind, text) in files {
        let (status, head, body) = answer(&address, path);
        assert_eq!((status, body.as_str()), (200, text), "{path}");
        assert!(head.contains(&format!("content-type: {kind}")), "{path}: {head}");
        // Scripts are not restricted: Mesos's page loads answers of agents as scripts.
        assert!(head.contains("content-security-policy: object-src 'none'; base-uri 'self'"), "{path}: {head}");
    }
    let closed = [
        "/private/key",
        "/app",
        "/app/",
        "/app/../private/key",
        "/app/%2e%2e/private/key",
        "/app/..%2fprivate/key",
        "/app/%2fetc/passwd",
        "/app//etc/passwd",
        "/app/link.js",
        "/node_modules/nothing.js",
    ];
    for path in closed {
        let (status, _, body) = answer(&address, path);
        assert_eq!(status, 404, "{path}: {body}");
    }
    assert!(get(&address, "/flags").unwrap().contains("\"webui_dir\""));
    wait_for("the state is served as well", || call(&address, "GET", "/state"));
}
