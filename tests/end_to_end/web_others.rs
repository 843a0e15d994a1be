//! Tests pages that are not the leading master's own, in a browser: a standby's, and one of `--webui_dir` that makes
//! the requests of Mesos's page.

use serde_json::json;

use crate::browser::Browser;
use crate::group::Group;
use crate::support::{Daemon, Directory, free_port, request};
use crate::web::{agent_words, start_task};

/// Makes a call of the operator API.
fn operator_call(address: &str, call: &serde_json::Value) -> String {
    request(address, "POST", "/api/v1", &call.to_string()).unwrap_or_default()
}

#[test]
fn a_standby_names_the_leader_and_shows_the_cluster_once_it_leads() {
    let group = Group::of_peers("web-standby").started();
    let leader = group.leader();
    let standby = (leader + 1) % 3;
    crate::support::until("the standby knows the leader", || group.follows(standby, leader));
    let browser = Browser::start();
    browser.view(1280, 900, "light");
    let page = |index: usize| format!("http://{}/#/agents", group.address(index));
    browser.open(&page(standby));
    browser.shows(&["This master does not lead.", "Go to the leading master"]);
    browser.is_accessible();
    browser.picture("standby-light");

    // The link keeps the route.
    browser.click_link("Go to the leading master");
    browser.shows(&["No agent has registered."]);
    assert_eq!(browser.url(), page(leader));

    // The page follows a change of the leader without a reload.
    browser.open_tab(&page(standby));
    browser.shows(&["This master does not lead."]);
    let call = json!({ "type": "TRANSFER_LEADERSHIP", "transfer_leadership": { "address": group.address(standby) } });
    let answer = operator_call(&group.address(leader), &call);
    assert!(answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.1 202"), "{answer}");
    browser.shows(&["No agent has registered."]);
    assert_eq!(browser.url(), page(standby));
}

/// Page with the requests of Mesos's page (`src/webui/app/controllers.js` of 1.11), with AngularJS's names of
/// callbacks.
const APP: &str = r##"
window.angular = { callbacks: {} };
let count = 0;
const jsonp = (url) => new Promise((resolve) => {
  const name = `_${count++}`;
  angular.callbacks[name] = resolve;
  const script = document.createElement("script");
  script.src = `${url}${url.includes("?") ? "&" : "?"}jsonp=angular.callbacks.${name}`;
  script.onerror = () => show(`not loaded: ${url}`);
  document.head.append(script);
});
const show = (text) => document.querySelector("pre").append(`${text}\n`);
async function run() {
  document.querySelector("header").innerHTML = await (await fetch("app/home.html")).text();
  const state = await jsonp("/master/state");
  show(`leader ${state.leader_info.hostname}, ${state.slaves.length} agents`);
  const metrics = await jsonp("/metrics/snapshot");
  show(`${metrics["master/tasks_running"]} running`);
  const { roles } = await jsonp("/master/roles");
  show(`roles ${roles.map((role) => role.name)}`);
  show(`schedule ${JSON.stringify(await jsonp("/master/maintenance/schedule"))}`);
  const [{ hostname, pid }] = state.slaves;
  const agent = `//${hostname}:${pid.split(":").pop()}`;
  const own = await jsonp(`${agent}/${pid.split("@")[0]}/state`);
  const [executor] = own.frameworks[0].executors;
  const measured = await jsonp(`${agent}/${pid.split("@")[0]}/monitor/statistics`);
  show(`executor ${executor.id}, measured ${measured.map((one) => one.executor_id)}`);
  const path = encodeURIComponent(executor.directory);
  const files = await jsonp(`${agent}/files/browse?path=${path}`);
  show(`files ${files.map((file) => file.path.split("/").pop())}`);
  const read = await jsonp(`${agent}/files/read?path=${path}%2Fstdout&offset=0&length=100`);
  show(`output ${read.data}`);
}
run();
"##;

const INDEX: &str = r#"<!doctype html><html lang="en"><head><title>Another</title>
<link rel="stylesheet" href="assets/css/another.css"></head>
<body><header></header><pre></pre><script src="app/app.js"></script></body></html>"#;

#[test]
fn the_page_of_webui_dir_reads_master_and_agents_as_mesos_page_does() {
    let directory = Directory::new("web-mesos-page");
    for part in ["ui/app", "ui/assets/css"] {
        std::fs::create_dir_all(directory.path().join(part)).unwrap();
    }
    directory.write("ui/index.html", INDEX);
    directory.write("ui/app/app.js", APP);
    directory.write("ui/app/home.html", "<h1>Home of another page</h1>");
    directory.write("ui/assets/css/another.css", "h1 { letter-spacing: 3px }");
    let words: Vec<String> =
        ["master", "--ip=127.0.0.1", "--hostname=127.0.0.1", "--registry=in_memory"].map(str::to_owned).to_vec();
    let own = [
        format!("--port={}", free_port()),
        format!("--work_dir={}", directory.join("m")),
        format!("--webui_dir={}", directory.join("ui")),
    ];
    let words: Vec<String> = words.into_iter().chain(own).collect();
    let mut master = Daemon::start(&directory.path().join("m.log"), &words, &[]);
    let address = master.address().expect("the master runs");
    let words = agent_words(&directory, &address, &["--hostname=127.0.0.1".to_owned()]);
    let mut agent = Daemon::start(&directory.path().join("a.log"), &words, &[]);
    agent.address().expect("the agent runs");
    let _task = start_task(&address, "writes");
    let browser = Browser::start();
    browser.view(1280, 900, "light");
    browser.open(&format!("http://{address}/"));
    browser.shows(&[
        "Home of another page",
        "leader 127.0.0.1, 1 agents",
        "1 running",
        "roles eng,eng/web",
        "schedule {",
        "executor writes, measured writes",
        "files stderr,stdout",
        "output ",
        "line 1",
    ]);
    let spacing = browser.script("return getComputedStyle(document.querySelector('h1')).letterSpacing");
    assert_eq!(spacing, "3px", "the style sheet is loaded");
    browser.picture("webui-dir-light");
}
