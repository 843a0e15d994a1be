//! Tests the metrics for Prometheus, and the files of contrib/ that use them, with Prometheus's own tool.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::ToItsEnd;
use crate::support::{Cluster, get, tepui};

/// Families that exist under conditions only: control groups.
const CONDITIONAL: [&str; 1] = ["tepui_container_cpu_throttled_seconds_total"];

fn contrib(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// Runs promtool with this input.
fn promtool(words: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "promtool {words:?}: {}", text.concat());
}

/// Returns the names of families in an expression or in samples.
fn families(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named = words.filter(|word| word.starts_with("tepui_"));
    named.map(|word| word.trim_end_matches("_bucket").to_owned()).collect()
}

#[test]
fn metrics_rules_and_dashboard_pass_prometheus_checks() {
    if Command::new("promtool").arg("--version").stdout(Stdio::null()).status().is_err() {
        return println!("not run: it needs promtool");
    }
    let cluster = Cluster::start("prometheus", 1, "cpus:4;mem:1024");
    let run = |words: &[&str]| assert!(tepui().args(words).args(["--master", &cluster.master]).run().status.success());
    run(&["quota", "set", "prod", "--guarantee=cpus:1"]);
    let mut long = tepui();
    long.args(["execute", "--role=prod", "--command=echo up; exec sleep 1000", "--master", &cluster.master]);
    let mut long = long.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    crate::support::until("the task runs", || {
        let tasks = tepui().args(["tasks", "--master", &cluster.master]).run();
        String::from_utf8_lossy(&tasks.stdout).contains("running")
    });
    let agents = tepui().args(["agents", "--json", "--master", &cluster.master]).run();
    let agents: Value = serde_json::from_slice(&agents.stdout).unwrap();
    let agent = agents[0]["pid"].as_str().and_then(|pid| pid.split_once('@')).unwrap().1;
    let mut known = BTreeSet::new();
    for address in [cluster.master.as_str(), agent] {
        let text = get(address, "/metrics").unwrap();
        promtool(&["check", "metrics"], &text);
        let untyped = text.lines().filter(|line| line.starts_with("# TYPE") && line.ends_with("untyped"));
        assert_eq!(untyped.count(), 0);
        known.extend(families(&text));
    }
    long.kill().unwrap();
    long.wait().unwrap();

    let rules = contrib("prometheus/alerts.yml");
    let dashboard: Value = serde_json::from_str(&contrib("grafana/tepui.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let expressions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(expressions.len() > 20);
    let mut as_rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for (at, expression) in expressions.iter().enumerate() {
        let expression = Value::from(*expression).to_string();
        as_rules.push_str(&format!("  - record: panel:{at}\n    expr: {expression}\n"));
    }
    for text in [&rules, &as_rules] {
        let file = cluster.directory.write("rules.yml", text);
        promtool(&["check", "rules", &file], "");
        for name in families(text) {
            assert!(known.contains(&name) || CONDITIONAL.contains(&name.as_str()), "no family {name}");
        }
    }
}
