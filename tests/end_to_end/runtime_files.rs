//! Tests the files of each container that the agent writes into `--runtime_dir`, and how its next start uses them.
//!
//! The contents of the files are tested beside the code that writes them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::one_agent::OneAgent;
use crate::support::{request, until, wait_for};

fn call(cluster: &OneAgent, call: &Value) -> (String, Value) {
    let answer = request(&cluster.agent_address(), "POST", "/api/v1", &call.to_string()).expect("the agent answers");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let json = body.find('{').and_then(|begin| serde_json::from_str(&body[begin..=body.rfind('}')?]).ok());
    (head.lines().next().unwrap_or_default().to_owned(), json.unwrap_or_default())
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the only subdirectory.
fn only(directory: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(directory).ok()?.flatten();
    entries.next().map(|entry| entry.path()).filter(|_| entries.next().is_none())
}

fn runs(pid: &str) -> bool {
    let stat = text(&Path::new("/proc").join(pid).join("stat"));
    !pid.is_empty() && stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// Opens a session and leaves it open.
fn session(cluster: &OneAgent, id: &Value) -> TcpStream {
    let launch = json!({"type": "LAUNCH_NESTED_CONTAINER_SESSION", "launch_nested_container_session":
        {"container_id": id, "command": {"value": "exec sleep 1000"}}});
    let (media, body) = ("application/json", launch.to_string());
    let mut stream = TcpStream::connect(cluster.agent_address()).unwrap();
    let head = format!("POST /api/v1 HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\nAccept: application/recordio\r\n");
    let more = format!("Message-Accept: {media}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all((head + &more).as_bytes()).unwrap();
    stream
}

/// Reads the head of an answer whose body continues.
fn head(stream: &TcpStream) -> String {
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let lines: Vec<String> = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
    lines.join("\n")
}

#[test]
fn documents_about_an_agent_and_their_methods() {
    let cluster = OneAgent::start("methods", &["--launcher=posix".to_owned()]);
    let answer = |method: &str, path: &str, body: &str| {
        let answer = request(&cluster.agent_address(), method, path, body).expect("the agent answers");
        answer.lines().next().unwrap_or_default().to_owned()
    };
    for path in ["/monitor/statistics", "/containers"] {
        assert!(answer("GET", path, "").contains("200"), "{path}");
        assert!(answer("POST", path, "").contains("405"), "{path}");
    }
    // Without containers, and without weights, there is no field for them, as with Mesos.
    assert_eq!(call(&cluster, &json!({"type": "GET_CONTAINERS"})).1, json!({"type": "GET_CONTAINERS"}));
    let weights = request(&cluster.address, "POST", "/api/v1", r#"{"type": "GET_WEIGHTS"}"#).unwrap();
    assert!(weights.ends_with("\r\n\r\n{\"type\":\"GET_WEIGHTS\"}"), "{weights}");
    // Clients of /state may send any body.
    assert!(answer("POST", "/state", "x").contains("200"));
    // A container to attach to must exist, and have streams.
    let attach =
        json!({"type": "ATTACH_CONTAINER_OUTPUT", "attach_container_output": {"container_id": {"value": "a"}}});
    assert!(call(&cluster, &attach).0.contains("404"));
    let alone = json!({"type": "LAUNCH_CONTAINER", "launch_container":
        {"container_id": {"value": "a"}, "command": {"value": "sleep 1000"}}});
    assert!(call(&cluster, &alone).0.contains("200"));
    assert!(call(&cluster, &attach).0.contains("500"));
    let gone = json!({"type": "MARK_RESOURCE_PROVIDER_GONE", "mark_resource_provider_gone":
        {"resource_provider_id": {"value": "p"}}});
    assert!(call(&cluster, &gone).0.contains("500"));
}

#[test]
fn containers_are_recorded_and_recovered() {
    let mut cluster = OneAgent::start("runtime", &["--launcher=posix".to_owned()]);
    let containers = cluster.directory.path().join("r/containers");
    let task = cluster.start_task("long", json!({"value": "echo up; sleep 1000"}), json!({"type": "MESOS"}));
    let top = wait_for("the task's container is noted", || {
        only(&containers).filter(|directory| runs(&text(&directory.join("pid"))))
    });
    let sandbox = cluster.sandbox("long").unwrap();
    assert_eq!(top.file_name(), sandbox.file_name());
    let config = fs::read(top.join("config")).unwrap();
    assert!(config.windows(4).any(|part| part == b"long") && top.join("launch_info").exists());
    assert!(!top.join("standalone.marker").exists() && !top.join("termination").exists());

    let parent = json!({"value": top.file_name().unwrap().to_str()});
    let inside = |name: &str| json!({"value": name, "parent": parent});
    let launch = |name: &str, command: Value| {
        let body = json!({"container_id": inside(name), "command": command});
        json!({"type": "LAUNCH_NESTED_CONTAINER", "launch_nested_container": body})
    };
    let variables = json!({"variables": [{"name": "CODE", "value": "5"}]});
    assert!(call(&cluster, &launch("short", json!({"value": "exit 3"}))).0.contains("200"));
    assert!(
        call(&cluster, &launch("lives", json!({"value": "sleep 1000", "environment": variables}))).0.contains("200")
    );
    let waits = |code: u8| json!({"value": format!("while [ ! -e end ]; do sleep 0.05; done; exit {code}")});
    for (name, code) in [("meanwhile", 7), ("later", 8)] {
        assert!(call(&cluster, &launch(name, waits(code))).0.contains("200"));
    }
    // These programs leave the process group of the process that was started for them.
    for name in ["apart", "killed"] {
        let command = json!({"value": "echo $$ > pid; exec setsid sleep 1000"});
        assert!(call(&cluster, &launch(name, command)).0.contains("200"));
    }
    let program = |name: &str| text(&sandbox.join("containers").join(name).join("pid")).trim().to_owned();
    let end = |name: &str| fs::write(sandbox.join("containers").join(name).join("end"), "").unwrap();
    until("the short one's end is noted", || top.join("containers/short/termination").exists());
    assert_eq!(text(&top.join("containers/short/status")), "768");
    let open = session(&cluster, &inside("session"));
    let head = head(&open);
    for line in ["200 OK", "content-type: application/recordio", "message-content-type: application/json"] {
        assert!(head.to_lowercase().contains(&line.to_lowercase()), "{head}");
    }
    let marker = top.join("containers/session/force_destroy_on_recovery");
    let of_session = wait_for("the session is noted", || {
        let pid = text(&top.join("containers/session/pid"));
        (marker.exists() && runs(&pid)).then_some(pid)
    });

    cluster.replace_agent(|| {
        end("meanwhile");
        until("it ends while the agent is away", || !runs(&text(&top.join("containers/meanwhile/pid"))));
    });
    drop(open);
    until("the session has ended", || !runs(&of_session));
    let wait = |name: &str| {
        let body = json!({"container_id": inside(name)});
        json!({"type": "WAIT_NESTED_CONTAINER", "wait_nested_container": body})
    };
    let of_short = wait_for("the agent has recovered", || {
        let (head, body) = call(&cluster, &wait("short"));
        head.contains("200").then_some(body)
    });
    assert_eq!(of_short["wait_nested_container"]["exit_status"], 768);
    assert!(call(&cluster, &launch("short", json!({"value": "true"}))).0.contains("400"), "its id is used");
    let remove =
        json!({"type": "REMOVE_NESTED_CONTAINER", "remove_nested_container": {"container_id": inside("short")}});
    assert!(call(&cluster, &remove).0.contains("200"));
    assert!(!top.join("containers/short").exists());
    let status = |name: &str| call(&cluster, &wait(name)).1["wait_nested_container"]["exit_status"].clone();
    assert_eq!(status("meanwhile"), 7 << 8);
    end("later");
    assert_eq!(status("later"), 8 << 8);
    assert!(runs(&text(&top.join("containers/lives/pid"))));
    for (name, signal) in [("lives", 15), ("apart", 15), ("killed", 9)] {
        until("its program runs", || name == "lives" || runs(&program(name)));
        let kill = json!({"type": "KILL_NESTED_CONTAINER", "kill_nested_container": {"container_id": inside(name), "signal": signal}});
        assert!(call(&cluster, &kill).0.contains("200"));
        assert_eq!(status(name), signal, "{name}");
        // The status is that of the container's first process: the processes that it has started end right after it.
        until("its program has ended", || !runs(&program(name)));
    }

    let alone = json!({"type": "LAUNCH_CONTAINER", "launch_container":
        {"container_id": {"value": "alone"}, "command": {"value": "sleep 1000"}}});
    assert!(call(&cluster, &alone).0.contains("200"));
    assert!(containers.join("alone/standalone.marker").exists());
    let kill = json!({"type": "KILL_CONTAINER", "kill_container": {"container_id": {"value": "alone"}}});
    assert!(call(&cluster, &kill).0.contains("200"));
    until("nothing is told of it any more", || !containers.join("alone").exists());
    until("its id may be used again", || call(&cluster, &alone).0.contains("200 OK"));
    assert!(call(&cluster, &kill).0.contains("200"));
    until("nothing is told of that one either", || !containers.join("alone").exists());
    let mut task = task;
    task.signal("-INT");
    until("nothing is told of the task any more", || !top.exists());
    drop(task);
}
