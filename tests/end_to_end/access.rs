//! Tests what an agent's access control lists refuse and hide, by HTTP and for tasks.

use serde_json::{Value, json};

use crate::one_agent::{OneAgent, a_little};
use crate::support::exchange;

/// Returns lists by which the principal `dev` may neither see nor change what belongs to root.
fn lists(user: &str) -> String {
    let dev = |object: &str| {
        json!([{"principals": {"values": ["dev"]}, object: {"values": [user]}},
               {"principals": {"values": ["dev"]}, object: {"type": "NONE"}}])
    };
    let none = |object: &str| json!([{"principals": {"values": ["dev"]}, object: {"type": "NONE"}}]);
    json!({
        "run_tasks": [{"principals": {"type": "NONE"}, "users": {"values": ["nobody"]}}],
        "view_frameworks": dev("users"),
        "view_containers": dev("users"),
        "access_sandboxes": dev("users"),
        "kill_nested_containers": dev("users"),
        "launch_nested_containers_under_parent_with_user": dev("users"),
        "launch_nested_container_sessions_as_user": dev("users"),
        "launch_standalone_containers": none("users"),
        "view_flags": none("flags"),
        "set_log_level": none("level"),
        "prune_images": none("images"),
        "modify_resource_provider_configs": none("resource_providers"),
        "get_endpoints": [{"principals": {"values": ["dev"]}, "paths": {"values": ["/containers"]}},
                          {"principals": {"values": ["dev"]}, "paths": {"type": "NONE"}}],
    })
    .to_string()
}

/// Sends a request with a user's name and its password, which is `x`; returns status and body.
fn ask(address: &str, who: &str, path: &str, call: Option<Value>) -> (String, Value) {
    let user = if who == "ops" { "b3BzOng=" } else { "ZGV2Ong=" };
    let (method, body) = call.map_or(("GET", String::new()), |call| ("POST", call.to_string()));
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {user}\r\nConnection: close\r\n");
    let media = "Content-Type: application/json\r\nAccept: application/json\r\n";
    let answer = exchange(address, &format!("{head}{media}Content-Length: {}\r\n\r\n{body}", body.len())).unwrap();
    let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = answer.find(['{', '[']).zip(answer.rfind(['}', ']'])).and_then(|(from, to)| answer.get(from..=to));
    (status, body.and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default())
}

#[test]
fn an_agent_holds_requests_and_tasks_against_its_lists() {
    let known = r#"{"credentials": [{"principal": "ops", "secret": "x"}, {"principal": "dev", "secret": "x"}]}"#;
    let file = tempfile_of(known);
    let flags = [
        "--launcher=posix".to_owned(),
        "--authenticate_http_readonly".to_owned(),
        "--authenticate_http_readwrite".to_owned(),
        format!("--http_credentials={}", file.0),
        format!("--acls={}", lists("somebody-else")),
        r#"--firewall_rules={"disabled_endpoints":{"paths":["/system/stats.json"]}}"#.to_owned(),
    ];
    let cluster = OneAgent::start("access", &flags);
    let address = cluster.agent_address();

    let refused = json!({"value": "true", "user": "nobody"});
    let (told, _) = cluster.run("refused", refused, json!({"type": "MESOS"}));
    assert!(told.contains("Not authorized to launch task 'refused' as user 'nobody'"), "{told}");

    let _running = cluster.start_task("t", json!({"value": "echo here; sleep 1000"}), json!({"type": "MESOS"}));
    let sandbox = cluster.sandbox("t").unwrap();
    let get = |who: &str, path: &str| ask(&address, who, path, None);
    let call = |who: &str, call: Value| ask(&address, who, "/api/v1", Some(call));
    let all = |who: &str| get(who, "/state").1["frameworks"].as_array().map(Vec::len);
    assert_eq!((all("ops"), all("dev")), (Some(1), Some(0)));
    assert!(get("ops", "/state").1["flags"].is_object() && get("dev", "/state").1["flags"].is_null());
    let tasks = |who: &str| {
        let found = call(who, json!({"type": "GET_TASKS"})).1;
        found["get_tasks"]["launched_tasks"].as_array().map_or(0, Vec::len)
    };
    assert_eq!((tasks("ops"), tasks("dev")), (1, 0));
    let containers = |who: &str| get(who, "/containers").1.as_array().map(Vec::len);
    assert_eq!((containers("ops"), containers("dev")), (Some(1), Some(0)));
    let id = get("ops", "/containers").1[0]["container_id"].clone();
    let nested = json!({"value": "inner", "parent": {"value": id}});
    let file = format!("{}/stdout", sandbox.display());
    for path in ["/flags", "/monitor/statistics", "/metrics/snapshot", "/metrics", "/files/debug", "/logging/toggle"] {
        assert_eq!((get("ops", path).0, get("dev", path).0), ("200".into(), "403".into()), "{path}");
    }
    for path in [format!("/files/read?path={file}&offset=0"), format!("/files/browse?path={}", sandbox.display())] {
        assert_eq!((get("ops", &path).0, get("dev", &path).0), ("200".into(), "403".into()), "{path}");
    }
    // Owner and limits of a sandbox also hold for paths with dots.
    std::fs::create_dir(sandbox.join("sub")).unwrap();
    let name = sandbox.file_name().unwrap().to_string_lossy();
    for (path, status) in
        [("sub/../stdout".to_owned(), "200"), ("sub/../../nothing".into(), "400"), (format!("../{name}/stdout"), "400")]
    {
        let path = format!("/files/read?path={}/{path}&offset=0", sandbox.display());
        assert_eq!((get("ops", &path).0, get("dev", &path).0), (status.into(), "403".into()), "{path}");
    }
    for path in ["/system/stats.json", "/system/stats.json/"] {
        assert_eq!(get("ops", path), ("403".to_owned(), Value::Null), "no principal may read it");
    }
    let level = json!({"level": 0, "duration": {"nanoseconds": 1_000_000}});
    for (done, made) in [
        (200, json!({"type": "GET_FLAGS"})),
        (200, json!({"type": "SET_LOGGING_LEVEL", "set_logging_level": level})),
        (200, json!({"type": "READ_FILE", "read_file": {"path": file, "offset": 0}})),
        (200, json!({"type": "PRUNE_IMAGES", "prune_images": {}})),
        (
            500,
            json!({"type": "REMOVE_RESOURCE_PROVIDER_CONFIG",
            "remove_resource_provider_config": {"type": "disks", "name": "one"}}),
        ),
        (404, json!({"type": "KILL_CONTAINER", "kill_container": {"container_id": nested}})),
        (
            200,
            json!({"type": "LAUNCH_CONTAINER",
            "launch_container": {"container_id": nested, "command": {"value": "sleep 1000"}}}),
        ),
        (
            200,
            json!({"type": "LAUNCH_CONTAINER",
            "launch_container": {"container_id": {"value": "alone"}, "command": {"value": "true"}, "resources": a_little()}}),
        ),
    ] {
        let kind = made["type"].clone();
        assert_eq!(call("dev", made.clone()).0, "403", "{kind}");
        assert_eq!(call("ops", made).0, done.to_string(), "{kind}");
    }
    assert_eq!(call("ops", json!({"type": "KILL_CONTAINER", "kill_container": {"container_id": nested}})).0, "200");
}

/// A file that is deleted when this is dropped.
struct TemporaryFile(String);

fn tempfile_of(text: &str) -> TemporaryFile {
    let path = std::env::temp_dir().join(format!("tepui-access-{}.json", std::process::id()));
    std::fs::write(&path, text).unwrap();
    TemporaryFile(path.display().to_string())
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
