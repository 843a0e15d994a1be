//! Sends every endpoint and every call of both daemons: without credentials, and as a user without permissions, with
//! the ids of the tenant.

use daemon::master::tepui_calls;
use protos::mesos::{agent, executor, master, scheduler};
use serde_json::{Value, json};

use crate::client::User;
use crate::support::get;
use crate::tenant::{Cluster, MARK};

/// Endpoints that answer everyone: they reveal nothing about the cluster's users.
const OPEN: [&str; 8] = ["/", "/assets", "/app", "/node_modules", "/health", "/version", "/help", "/redirect"];

/// Endpoint of executors, which have tokens instead of users.
const EXECUTORS: &str = "/api/v1/executor";

/// Expected answer to a call of a user without permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// The call is refused.
    Forbidden,
    /// The call is answered, without anything of the tenant.
    Filtered,
    /// The call shows nothing of users, and changes nothing of theirs.
    Harmless,
    /// The call is about an object that is hidden without permission: the answer is that it is unknown, or invalid.
    Unknown,
}

use Expected::{Filtered, Forbidden, Harmless, Unknown};

/// Returns the endpoints of a daemon, as its help page lists them.
fn endpoints(address: &str) -> Vec<String> {
    let page = get(address, "/help").expect("the help page");
    let codes = page.split("<code>").skip(1).filter_map(|rest| rest.split("</code>").next());
    let found: Vec<String> = codes.map(|code| code.split('?').next().unwrap_or(code).to_owned()).collect();
    assert!(found.len() > 15, "{page}");
    found
}

#[test]
fn endpoints_refuse_clients_without_credentials() {
    let cluster = Cluster::start("endpoints");
    for daemon in [&cluster.master, &cluster.agent] {
        for path in endpoints(daemon) {
            for method in ["GET", "POST", "PUT", "DELETE"] {
                let (status, body) = User::None.ask(daemon, method, &path, "");
                let expected: &[u16] = match path.as_str() {
                    EXECUTORS => &[400, 401, 403, 405, 415],
                    path if OPEN.contains(&path) => &[200, 307, 400, 404, 405],
                    _ => &[401],
                };
                assert!(expected.contains(&status), "{method} {path}: {status} {body}");
                assert!(!body.contains(MARK), "{method} {path} shows the tenant's: {body}");
            }
        }
    }
    cluster.is_untouched();
}

#[test]
fn endpoints_show_nothing_of_others_and_change_nothing() {
    let cluster = Cluster::start("powerless");
    for daemon in [&cluster.master, &cluster.agent] {
        for path in endpoints(daemon) {
            let (status, body) = User::Powerless.ask(daemon, "GET", &path, "");
            assert!(status < 500 || status == 501, "GET {path}: {status} {body}");
            assert!(!body.contains(MARK), "GET {path} shows the tenant's: {body}");
            for method in ["POST", "PUT", "DELETE"] {
                let (written, told) = User::Powerless.ask(daemon, method, &path, "{}");
                assert!(written < 500 || written == 501, "{method} {path}: {written} {told}");
                assert!(!told.contains(MARK), "{method} {path} shows the tenant's: {told}");
                // An endpoint that treats any method as reading shows the same as with GET.
                assert!(written >= 300 || status < 300, "{method} {path}: {written} {told}");
            }
        }
    }
    let (agent, framework) = (&cluster.agent_id, &cluster.framework);
    let resources =
        r#"[{"name":"cpus","type":"SCALAR","scalar":{"value":1},"role":"theirs","reservation":{"principal":"dev"}}]"#;
    for (method, path, body) in [
        ("POST", "/teardown", format!("frameworkId={framework}")),
        ("POST", "/reserve", format!("slaveId={agent}&resources={resources}")),
        ("POST", "/unreserve", format!("slaveId={agent}&resources={resources}")),
        ("POST", "/create-volumes", format!("slaveId={agent}&volumes={resources}")),
        ("POST", "/destroy-volumes", format!("slaveId={agent}&volumes={resources}")),
        ("PUT", "/weights", r#"[{"role":"theirs","weight":2}]"#.to_owned()),
        ("DELETE", "/quota/theirs", String::new()),
        ("POST", "/machine/down", r#"[{"hostname":"x"}]"#.to_owned()),
        ("POST", "/machine/up", r#"[{"hostname":"x"}]"#.to_owned()),
        ("POST", "/logging/toggle?level=3&duration=1secs", String::new()),
    ] {
        let (status, told) = User::Powerless.ask(&cluster.master, method, path, &body);
        assert!((400..500).contains(&status), "{method} {path}: {status} {told}");
    }
    for endpoint in ["browse", "read", "download"] {
        let path = format!("/files/{endpoint}?path={}", cluster.sandbox);
        assert_eq!(User::Powerless.ask(&cluster.agent, "GET", &path, "").0, 403, "{path}");
    }
    cluster.is_untouched();
}

/// Returns the names of a call's types. The numbers are small, and have gaps.
fn names<T: TryFrom<i32>>(name: fn(&T) -> &'static str) -> Vec<&'static str> {
    (1..200).filter_map(|number| T::try_from(number).ok()).map(|kind| name(&kind)).collect()
}

/// Sends each call without credentials, and as the user without permissions.
fn send_all(address: &str, path: &str, names: &[&str], case: impl Fn(&str) -> Option<(Expected, Value)>) {
    assert!(names.len() > 3, "{names:?}");
    for name in names {
        let (expected, body) = case(name).unwrap_or_else(|| panic!("{path}: the call {name} has no expectation here"));
        let mut call = json!({"type": name});
        if !body.is_null() {
            call[name.to_lowercase()] = body;
        }
        let (status, told) = User::None.call(address, path, &call);
        assert_eq!(status, 401, "{name} without credentials: {told}");
        if *name == "SUBSCRIBE" && expected == Filtered {
            // The answer has no end; the contents of its events are tested with the stream.
            continue;
        }
        let (status, told) = User::Powerless.call(address, path, &call);
        assert!(!told.contains(MARK), "{name} shows the tenant's: {told}");
        match expected {
            Forbidden => assert_eq!(status, 403, "{name}: {told}"),
            Filtered | Harmless => assert!((200..300).contains(&status), "{name}: {status} {told}"),
            Unknown => assert!([400, 403, 404, 409, 415, 500, 501].contains(&status), "{name}: {status} {told}"),
        }
    }
}

#[test]
fn operators_calls_to_the_master() {
    let cluster = Cluster::start("operator");
    let (agent, framework) = (json!({"value": cluster.agent_id}), json!({"value": cluster.framework}));
    let cpus = json!([{"name": "cpus", "type": "SCALAR", "scalar": {"value": 1},
        "reservations": [{"type": "DYNAMIC", "role": "theirs", "principal": "dev"}]}]);
    let volume = json!({"name": "disk", "type": "SCALAR", "scalar": {"value": 8},
        "reservations": [{"type": "DYNAMIC", "role": "theirs", "principal": "ops"}],
        "disk": {"persistence": {"id": "v", "principal": "ops"}, "volume": {"container_path": "v", "mode": "RW"}}});
    let case = |name: &str| {
        Some(match name {
            "GET_HEALTH" | "GET_VERSION" | "GET_LOGGING_LEVEL" => (Harmless, Value::Null),
            "GET_METRICS" => (Harmless, json!({})),
            "GET_FLAGS" => (Forbidden, Value::Null),
            "SET_LOGGING_LEVEL" => (Forbidden, json!({"level": 3, "duration": {"nanoseconds": 1}})),
            // There is no log here, and a master shows no other files.
            "LIST_FILES" => (Unknown, json!({"path": "/master/log"})),
            "READ_FILE" => (Unknown, json!({"path": "/master/log", "offset": 0})),
            "GET_STATE"
            | "GET_AGENTS"
            | "GET_FRAMEWORKS"
            | "GET_EXECUTORS"
            | "GET_OPERATIONS"
            | "GET_TASKS"
            | "GET_ROLES"
            | "GET_WEIGHTS"
            | "GET_MASTER"
            | "GET_QUOTA"
            | "SUBSCRIBE"
            | "GET_MAINTENANCE_STATUS"
            | "GET_MAINTENANCE_SCHEDULE" => (Filtered, Value::Null),
            "UPDATE_WEIGHTS" => (Forbidden, json!({"weight_infos": [{"role": "theirs", "weight": 2}]})),
            "RESERVE_RESOURCES" | "UNRESERVE_RESOURCES" => (Unknown, json!({"agent_id": agent, "resources": cpus})),
            "CREATE_VOLUMES" | "DESTROY_VOLUMES" => (Unknown, json!({"agent_id": agent, "volumes": [volume]})),
            "GROW_VOLUME" => (Unknown, json!({"agent_id": agent, "volume": volume, "addition": cpus[0]})),
            "SHRINK_VOLUME" => (Unknown, json!({"agent_id": agent, "volume": volume, "subtract": {"value": 1}})),
            "UPDATE_MAINTENANCE_SCHEDULE" => (
                Forbidden,
                json!({"schedule": {"windows": [{
                "machine_ids": [{"hostname": "x"}], "unavailability": {"start": {"nanoseconds": 1}}}]}}),
            ),
            "START_MAINTENANCE" | "STOP_MAINTENANCE" => (Forbidden, json!({"machines": [{"hostname": "x"}]})),
            "DRAIN_AGENT" | "DEACTIVATE_AGENT" | "REACTIVATE_AGENT" | "MARK_AGENT_GONE" => {
                (Forbidden, json!({"agent_id": agent}))
            }
            "UPDATE_QUOTA" => (Forbidden, json!({"quota_configs": [{"role": "theirs"}]})),
            "SET_QUOTA" => (Unknown, json!({"quota_request": {"role": "theirs", "guarantee": cpus}})),
            "REMOVE_QUOTA" => (Unknown, json!({"role": "theirs"})),
            "TEARDOWN" => (Forbidden, json!({"framework_id": framework})),
            _ => return None,
        })
    };
    send_all(&cluster.master, "/api/v1", &names(master::call::Type::as_str_name), case);
    // These calls are tepui's own.
    let task = json!({"framework_id": framework, "task_id": {"value": "victim-task"}});
    let case = |name: &str| {
        Some(match name {
            "KILL_TASK" => (Unknown, task.clone()),
            "EXPLAIN" => (Forbidden, json!({"framework": cluster.framework})),
            "GET_OVERVIEW" => (Filtered, Value::Null),
            "GET_POLICIES" | "GET_FAIRNESS" | "GET_MASTERS" => (Forbidden, Value::Null),
            "UPDATE_POLICIES" => (Forbidden, json!({"policies": {}})),
            "ADD_MASTER" | "REMOVE_MASTER" | "TRANSFER_LEADERSHIP" => (Forbidden, json!({"address": "10.0.0.1:5050"})),
            _ => return None,
        })
    };
    send_all(&cluster.master, "/api/v1", &tepui_calls().collect::<Vec<_>>(), case);
    cluster.is_untouched();
}

#[test]
fn calls_of_schedulers_with_the_tenants_framework() {
    let cluster = Cluster::start("scheduler");
    let names = names(scheduler::call::Type::as_str_name);
    assert!(names.len() > 10);
    let info = json!({"user": "root", "name": "x", "principal": "dev", "roles": ["theirs"],
        "capabilities": [{"type": "MULTI_ROLE"}]});
    for name in names {
        let mut call = json!({"type": name, "framework_id": {"value": cluster.framework}});
        let ids = json!({"agent_id": {"value": cluster.agent_id}, "task_id": {"value": "victim-task"},
            "executor_id": {"value": "victim-task"}, "framework_info": info, "uuid": "AAAAAAAAQACAAAAAAAAAAA==",
            "offer_ids": [], "inverse_offer_ids": [], "operations": [], "tasks": [], "data": "", "requests": []});
        call[name.to_lowercase()] = ids;
        assert_eq!(User::None.call(&cluster.master, "/api/v1/scheduler", &call).0, 401, "{name}");
        let (status, told) = User::Powerless.call(&cluster.master, "/api/v1/scheduler", &call);
        assert!((400..502).contains(&status), "{name}: {status} {told}");
        assert!(!told.contains(MARK), "{name}: {told}");
    }
    cluster.is_untouched();
}

#[test]
fn operators_calls_to_the_agent() {
    let cluster = Cluster::start("agent");
    let inside = json!({"value": "x", "parent": {"value": cluster.container}});
    let own = json!({"value": cluster.container});
    let command = json!({"value": "true"});
    let provider = json!({"type": "x", "name": "x"});
    let case = |name: &str| {
        Some(match name {
            "GET_HEALTH" | "GET_VERSION" | "GET_LOGGING_LEVEL" => (Harmless, Value::Null),
            "GET_METRICS" => (Harmless, json!({})),
            "GET_FLAGS" => (Forbidden, Value::Null),
            "SET_LOGGING_LEVEL" => (Forbidden, json!({"level": 3, "duration": {"nanoseconds": 1}})),
            "LIST_FILES" => (Forbidden, json!({"path": cluster.sandbox})),
            "READ_FILE" => (Forbidden, json!({"path": format!("{}/stdout", cluster.sandbox), "offset": 0})),
            "GET_STATE"
            | "GET_FRAMEWORKS"
            | "GET_EXECUTORS"
            | "GET_OPERATIONS"
            | "GET_TASKS"
            | "GET_AGENT"
            | "GET_RESOURCE_PROVIDERS" => (Filtered, Value::Null),
            "GET_CONTAINERS" => (Filtered, json!({"show_nested": true, "show_standalone": true})),
            "LAUNCH_NESTED_CONTAINER" | "LAUNCH_NESTED_CONTAINER_SESSION" => {
                (Forbidden, json!({"container_id": inside, "command": command}))
            }
            "LAUNCH_CONTAINER" => (
                Forbidden,
                json!({"container_id": {"value": "x"}, "command": command,
                "resources": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.1}}]}),
            ),
            "WAIT_NESTED_CONTAINER" | "KILL_NESTED_CONTAINER" | "REMOVE_NESTED_CONTAINER" => {
                (Unknown, json!({"container_id": inside}))
            }
            "WAIT_CONTAINER" | "KILL_CONTAINER" | "REMOVE_CONTAINER" => (Forbidden, json!({"container_id": own})),
            "ATTACH_CONTAINER_OUTPUT" => (Unknown, json!({"container_id": own})),
            "ATTACH_CONTAINER_INPUT" => (Unknown, json!({"type": "CONTAINER_ID", "container_id": own})),
            "ADD_RESOURCE_PROVIDER_CONFIG" | "UPDATE_RESOURCE_PROVIDER_CONFIG" => {
                (Forbidden, json!({"info": provider}))
            }
            "REMOVE_RESOURCE_PROVIDER_CONFIG" => (Forbidden, provider.clone()),
            "MARK_RESOURCE_PROVIDER_GONE" => (Forbidden, json!({"resource_provider_id": {"value": "x"}})),
            "PRUNE_IMAGES" => (Forbidden, json!({})),
            _ => return None,
        })
    };
    send_all(&cluster.agent, "/api/v1", &names(agent::call::Type::as_str_name), case);
    cluster.is_untouched();
}

#[test]
fn calls_of_executors_in_the_tenants_name() {
    let cluster = Cluster::start("executor");
    let names = names(executor::call::Type::as_str_name);
    assert!(names.len() >= 3);
    for name in names {
        let status = json!({"task_id": {"value": "victim-task"}, "state": "TASK_FAILED", "source": "SOURCE_EXECUTOR",
            "uuid": "AAAAAAAAQACAAAAAAAAAAA=="});
        let call = json!({"type": name, "framework_id": {"value": cluster.framework},
            "executor_id": {"value": "victim-task"}, "subscribe": {}, "update": {"status": status},
            "message": {"data": ""}});
        for user in [User::None, User::Powerless] {
            let (status, told) = user.call(&cluster.agent, EXECUTORS, &call);
            // A heartbeat reveals nothing, and is accepted from everyone.
            let is_harmless = name == "HEARTBEAT" && status == 202;
            assert!((400..500).contains(&status) || is_harmless, "{name} of {user:?}: {status} {told}");
        }
    }
    cluster.is_untouched();
}
