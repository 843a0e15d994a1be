//! Tests commands of operators on a real cluster: each changes it, and the lists show the change.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::process::ToItsEnd;
use crate::support::{Cluster, request, tepui, until};

/// Runs a command. Returns whether it succeeded, and its output with its errors.
fn run(cluster: &Cluster, words: &[&str]) -> (bool, String) {
    let output = tepui().args(words).args(["--master", &cluster.master]).run();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.success(), text.concat())
}

/// Returns the output of a command that must succeed.
#[track_caller]
fn done(cluster: &Cluster, words: &[&str]) -> String {
    let (succeeded, text) = run(cluster, words);
    assert!(succeeded, "{words:?}: {text}");
    text
}

/// Returns the error of a command that must fail.
#[track_caller]
fn fails(cluster: &Cluster, words: &[&str]) -> String {
    let (succeeded, text) = run(cluster, words);
    assert!(!succeeded, "{words:?}: {text}");
    text
}

/// Returns the words of the line of a list that contains `text`.
fn line(list: &str, text: &str) -> String {
    let line = list.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text} in {list}"));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A process of `tepui execute` with a long task; it is killed when this is dropped.
struct Execute(Child);

impl Execute {
    fn start(cluster: &Cluster, name: &str) -> Execute {
        Execute::start_with(cluster, name, "cpus:1;mem:64")
    }

    fn start_with(cluster: &Cluster, name: &str, resources: &str) -> Execute {
        let mut command = tepui();
        command.args(["execute", "--master", &cluster.master, "--resources", resources, "--command=exec sleep 1000"]);
        command.arg(format!("--name={name}")).stdout(Stdio::null()).stderr(Stdio::null());
        Execute(command.spawn().unwrap())
    }
}

impl Drop for Execute {
    fn drop(&mut self) {
        // Both calls fail for a process that has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn operators_share_the_cluster_by_commands() {
    let cluster = Cluster::start("operate-shares", 1, "cpus:4;mem:512");
    assert!(done(&cluster, &["quota"]).contains("no role has a quota"));
    done(&cluster, &["quota", "set", "prod", "--guarantee=cpus:1;mem:64", "--limit=cpus:2.5"]);
    assert_eq!(line(&done(&cluster, &["quota"]), "prod"), "prod cpus:1;mem:64 cpus:2.5");
    done(&cluster, &["quota", "set", "prod", "--guarantee=cpus:2"]);
    assert_eq!(line(&done(&cluster, &["quota"]), "prod"), "prod cpus:2 cpus:2.5");
    let error = fails(&cluster, &["quota", "set", "other", "--guarantee=cpus:100"]);
    assert!(error.contains("role other") && error.contains("force"), "{error}");
    assert!(fails(&cluster, &["quota", "set", "prod", "--limit=cpu"]).contains("--limit"));
    done(&cluster, &["quota", "remove", "prod"]);
    assert!(done(&cluster, &["quota"]).contains("no role has a quota"));

    done(&cluster, &["weights", "set", "prod=2.5", "dev=1"]);
    assert_eq!(line(&done(&cluster, &["weights"]), "prod"), "prod 2.5");
    assert!(line(&done(&cluster, &["roles"]), "prod").starts_with("prod 2.5 0"));
    assert!(done(&cluster, &["fairness"]).contains("no framework is subscribed"));

    let policies = done(&cluster, &["policies"]);
    let file = std::env::temp_dir().join(format!("tepui-policies-{}.json", std::process::id()));
    std::fs::write(&file, r#"{"max_offered_share": 0.5}"#).unwrap();
    let path = file.to_string_lossy();
    done(&cluster, &["policies", "set", &path]);
    assert_ne!(done(&cluster, &["policies"]), policies);
    std::fs::write(&file, r#"{"max_offered_shares": 0.5}"#).unwrap();
    assert!(fails(&cluster, &["policies", "set", &path]).contains("max_offered_shares"));
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn operators_drain_agents_and_end_frameworks_by_commands() {
    let cluster = Cluster::start("operate-agents", 1, "cpus:4;mem:512");
    let state = |state: &str| line(&done(&cluster, &["agents"]), "-S0").contains(state);
    let mut framework = Execute::start(&cluster, "long");
    until("the task runs", || done(&cluster, &["tasks"]).contains("running"));
    let told = done(&cluster, &["agents", "drain", "S0", "--wait", "--max-grace-period=1secs"]);
    assert!(told.contains("is drained") && state("drained"), "{told}");
    framework.0.wait().unwrap();
    done(&cluster, &["agents", "reactivate", "S0"]);
    done(&cluster, &["agents", "deactivate", "S0"]);
    assert!(state("deactivated"));
    // The master is asked about a complete id, which may be that of an unreachable agent.
    assert!(fails(&cluster, &["agents", "gone", "another-S9"]).contains("Agent 'another-S9' not found"));
    let error = fails(&cluster, &["agents", "drain", "S7"]);
    assert!(error.contains("no agent is 'S7'"), "{error}");
    done(&cluster, &["agents", "reactivate", "S0"]);
    let error = fails(&cluster, &["agents", "reactivate", "S0"]);
    assert!(error.contains("-S0: Agent is not deactivated"), "{error}");

    let mut framework = Execute::start(&cluster, "other");
    until("the task runs", || done(&cluster, &["tasks"]).contains("running"));
    let name = line(&done(&cluster, &["frameworks"]), "execute");
    let id = name.split(' ').next().unwrap().to_owned();
    assert!(done(&cluster, &["frameworks", "teardown", &id]).contains("is torn down: 1 task ends"));
    framework.0.wait().unwrap();
    assert!(fails(&cluster, &["frameworks", "teardown", &id]).contains("no framework is"));
}

#[test]
fn operators_read_what_tasks_write_and_kill_tasks_by_commands() {
    let cluster = Cluster::start("operate-tasks", 1, "cpus:4;mem:1024;disk:1024");
    // The output of a task is shown while it runs, and stays in its sandbox.
    let script = "for i in 1 2 3 4 5; do echo line $i; done; printf end; echo bad >&2";
    let ran = done(&cluster, &["execute", "--name=short", "--command", script]);
    assert!(ran.contains("line 1\nline 2\n") && ran.contains("bad") && ran.contains("TASK_FINISHED"), "{ran}");
    assert_eq!(done(&cluster, &["task", "logs", "short"]), "line 1\nline 2\nline 3\nline 4\nline 5\nend");
    assert_eq!(done(&cluster, &["task", "logs", "--tail=2", "sho"]), "line 5\nend");
    assert_eq!(done(&cluster, &["task", "logs", "--tail=0", "sho"]), "");
    assert_eq!(done(&cluster, &["task", "logs", "-n100", "short"]).lines().count(), 6);
    assert!(done(&cluster, &["task", "logs", "--stderr", "short"]).contains("bad"));
    let error = fails(&cluster, &["task", "logs", "--file=none", "short"]);
    assert!(error.contains("there is no ") && error.contains("/none"), "{error}");
    assert!(fails(&cluster, &["task", "logs", "nothing"]).contains("tepui tasks --all"));
    // Tasks of a pod have sandboxes of their own.
    let group = r#"{"tasks": [
        {"name": "a", "task_id": {"value": "pod-a"}, "command": {"value": "echo of a"},
         "resources": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.1}}]},
        {"name": "b", "task_id": {"value": "pod-b"}, "command": {"value": "echo of b"},
         "resources": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.1}}]}]}"#;
    let ran = done(&cluster, &["execute", "--task_group", group]);
    assert!(ran.contains("of a\n") && ran.contains("of b\n"), "{ran}");
    assert_eq!(done(&cluster, &["task", "logs", "pod-b"]), "of b\n");

    let mut long = Execute::start(&cluster, "long");
    until("the task runs", || done(&cluster, &["tasks"]).contains("running"));
    assert!(fails(&cluster, &["task", "kill", "short"]).contains("no running task"));
    let told = done(&cluster, &["task", "kill", "--wait", "--grace-period=1secs", "lon"]);
    assert_eq!(told, "task 'long' is killed\n");
    assert!(!long.0.wait().unwrap().success());
}

#[test]
fn operators_reserve_resources_and_make_volumes_by_commands() {
    let cluster = Cluster::start("operate-volumes", 1, "cpus:4;mem:1024;disk:1000");
    assert!(done(&cluster, &["reservations"]).contains("nothing is reserved"));
    done(&cluster, &["reserve", "S0", "cpus:1;disk:100;ports:[31000-31009]", "--role=db"]);
    done(&cluster, &["reserve", "S0", "disk:50", "--role=db", "--label=for=logs"]);
    let list = done(&cluster, &["reservations"]);
    assert!(line(&list, "disk:100").ends_with("localhost db disk:100 a call"), "{list}");
    assert!(list.contains("disk:50") && list.contains("ports:[31000-31009]"), "{list}");
    assert!(fails(&cluster, &["reserve", "S0", "cpus:99", "--role=db"]).contains("-S0: "));
    assert!(fails(&cluster, &["reserve", "S0", "cpus", "--role=db"]).contains("'cpus' cannot be read"));

    assert!(done(&cluster, &["volumes"]).contains("no volumes"));
    done(&cluster, &["volumes", "create", "S0", "60MB", "--role=db", "--id=v1"]);
    let error = fails(&cluster, &["volumes", "create", "S0", "60MB", "--role=db"]);
    assert!(error.contains("has 50 MB of disk reserved for role db") && error.contains("disk:10"), "{error}");
    done(&cluster, &["volumes", "grow", "v1", "40MB"]);
    assert!(line(&done(&cluster, &["volumes"]), "v1").ends_with("localhost db 100 root no"));
    assert!(fails(&cluster, &["volumes", "grow", "v1", "1MB"]).contains("has 0 MB of disk"));
    done(&cluster, &["volumes", "shrink", "v1", "70MB"]);
    assert!(line(&done(&cluster, &["volumes"]), "v1").contains(" 30 "));
    assert!(fails(&cluster, &["volumes", "shrink", "v1", "30MB"]).contains("it cannot be shrunk to 0"));
    assert!(fails(&cluster, &["volumes", "destroy", "v2"]).contains("no volume has the id 'v2'"));
    let error = fails(&cluster, &["unreserve", "S0", "disk:121", "--role=db"]);
    assert!(error.contains("disk:121 is more than the dynamic reservations of role"), "{error}");
    done(&cluster, &["volumes", "destroy", "v1"]);
    done(&cluster, &["unreserve", "S0", "cpus:1;disk:150;ports:[31000-31004]", "--role=db"]);
    let list = done(&cluster, &["reservations"]);
    assert!(list.contains("ports:[31005-31009]") && list.lines().count() == 2, "{list}");
}

#[test]
fn operators_follow_events_and_set_log_levels_by_commands() {
    let cluster = Cluster::start("operate-events", 1, "cpus:1;mem:128");
    let mut events = tepui();
    events.args(["events", "--count=2", "--type=subscribed,TASK_UPDATED", "--master", &cluster.master]);
    let mut events = events.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(events.stdout.take().unwrap()).lines();
    assert!(output.next().unwrap().unwrap().ends_with("agents: 1, frameworks: 0, tasks: 0"));
    done(&cluster, &["execute", "--command=true", "--resources=cpus:0.5;mem:64", "--name=one"]);
    let update = output.next().unwrap().unwrap();
    assert!(update.contains("TASK_UPDATED") && update.contains("task one of framework "), "{update}");
    assert!(output.next().is_none() && events.wait().unwrap().success());
    assert!(fails(&cluster, &["events", "--type=tasks"]).contains("the types are SUBSCRIBED"));

    assert_eq!(done(&cluster, &["log-level"]), "the master logs at level 0\n");
    done(&cluster, &["log-level", "1", "--for=1mins"]);
    assert_eq!(done(&cluster, &["log-level"]), "the master logs at level 1\n");
    assert!(done(&cluster, &["log-level", "2", "--agent=S0"]).contains("S0 logs at level 2 for 600s"));
    assert!(fails(&cluster, &["log-level", "9"]).contains("0..=3"));
}

#[test]
fn operators_see_why_work_waits() {
    let cluster = Cluster::start("operate-waits", 2, "cpus:4;mem:1024");
    done(&cluster, &["quota", "set", "prod", "--guarantee=cpus:4"]);
    let error = fails(&cluster, &["execute", "--command=true", "--resources=cpus:5;mem:64"]);
    assert!(error.contains("No agent can offer cpus:5; mem:64"), "{error}");
    assert!(error.contains("2 agents: too small (at most cpus:4;mem:1024)"), "{error}");
    assert!(error.contains("the work cannot run: no agent can offer cpus:5;mem:64. With --wait"), "{error}");

    // Free resources are withheld for a guarantee.
    let _running = Execute::start_with(&cluster, "long", "cpus:2.5;mem:64");
    until("the task runs", || done(&cluster, &["tasks"]).contains("running"));
    let mut waiting = tepui();
    waiting.args([
        "execute",
        "--master",
        &cluster.master,
        "--command=true",
        "--resources=cpus:2;mem:64",
        "--name=short",
    ]);
    let mut waiting = Execute(waiting.stdout(Stdio::piped()).spawn().unwrap());
    let mut output = BufReader::new(waiting.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut line_with = |text: &str| output.find(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text}"));
    line_with("Waiting for an offer of cpus:2;mem:64");
    line_with("Withheld for guarantees: cpus:4 for prod.");
    line_with("1 agent: the free resources (at most cpus:4;mem:1024) are withheld for the guarantees of prod");
    done(&cluster, &["quota", "set", "prod", "--guarantee=cpus:8", "--force"]);
    done(&cluster, &["agents", "drain", "S0"]);
    done(&cluster, &["agents", "drain", "S1", "--wait"]);
    line_with("2 agents: drained, and not reactivated");
    done(&cluster, &["agents", "reactivate", "S0"]);
    done(&cluster, &["agents", "reactivate", "S1"]);
    done(&cluster, &["quota", "remove", "prod"]);
    line_with("TASK_FINISHED");
    assert!(waiting.0.wait().unwrap().success());
}

#[test]
fn operators_learn_at_once_that_there_are_no_agents() {
    let cluster = Cluster::start("operate-empty", 0, "cpus:1;mem:64");
    let error = fails(&cluster, &["execute", "--command=true"]);
    assert!(error.contains("the work cannot run: there are no agents. With --wait"), "{error}");
    assert!(done(&cluster, &["agents"]).contains("no agents; start one with"));
    assert!(fails(&cluster, &["agents", "drain", "S0"]).contains("no agent is 'S0'"));
}

#[test]
fn operators_take_machines_down_and_up_by_commands() {
    let cluster = Cluster::start("operate-machines", 1, "cpus:1;mem:64");
    assert!(done(&cluster, &["maintenance", "status"]).contains("no machine is scheduled"));
    done(&cluster, &["maintenance", "schedule", "S0", "--in=1hrs", "--for=30mins"]);
    let status = line(&done(&cluster, &["maintenance", "status"]), "127.0.0.1");
    assert!(status.contains("draining in 60 min 30 min") || status.contains("draining in 1.0 h 30 min"), "{status}");
    done(&cluster, &["maintenance", "schedule", "S0", "--in=2hrs", "--for=30mins"]);
    let status = done(&cluster, &["maintenance", "status"]);
    assert!(status.lines().count() == 2 && line(&status, "127.0.0.1").contains("draining in 2.0 h"), "{status}");
    done(&cluster, &["maintenance", "start", "127.0.0.1"]);
    assert!(line(&done(&cluster, &["maintenance", "status"]), "127.0.0.1").contains("down"));
    done(&cluster, &["maintenance", "stop", "127.0.0.1"]);
    assert!(done(&cluster, &["maintenance", "status"]).contains("no machine is scheduled"));
    assert!(fails(&cluster, &["maintenance", "start", "nowhere"]).contains("'nowhere'"));
    done(&cluster, &["maintenance", "schedule", "other,10.0.0.1"]);
    done(&cluster, &["maintenance", "cancel"]);
    assert!(done(&cluster, &["maintenance", "status", "--json"]).contains("\"windows\": []"));
}

#[test]
fn the_overview_counts_what_the_lists_have() {
    let cluster = Cluster::start("overview", 2, "cpus:4;mem:512;disk:64");
    let _task = Execute::start(&cluster, "runs");
    let overview = || {
        let answer = request(&cluster.master, "POST", "/api/v1", r#"{"type": "GET_OVERVIEW"}"#)?;
        let answer: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        Some(answer["get_overview"].clone())
    };
    let is_counted = || overview().is_some_and(|answer| answer["tasks"] == json!({ "TASK_RUNNING": 1 }));
    until("the task is counted", is_counted);
    done(&cluster, &["agents", "deactivate", "S1"]);
    let overview = overview().unwrap();
    assert_eq!(overview["agents"], json!({ "registered": 2, "active": 1 }));
    assert_eq!(overview["frameworks"], json!({ "registered": 1, "connected": 1 }));
    assert_eq!(overview["resources"]["total"], json!({ "cpus": 8.0, "mem": 1024.0, "disk": 128.0 }));
    assert_eq!(overview["resources"]["allocated"], json!({ "cpus": 1.0, "mem": 64.0 }));
    let shares = overview["agent_shares"].as_array().unwrap();
    let busy: Vec<f64> = shares.iter().filter_map(|one| one["share"].as_f64()).filter(|share| *share > 0.0).collect();
    assert_eq!((shares.len(), busy), (2, vec![0.25]));
    let inactive = shares.iter().find(|one| one["active"] == false).unwrap();
    assert!(inactive["agent_id"]["value"].as_str().unwrap().ends_with("-S1"), "{inactive}");
}
