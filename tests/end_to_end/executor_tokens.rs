//! Tests the authentication of executors with their agent: calls for another's executor are refused, pods work where
//! operators must authenticate, and tokens outlive an agent.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::one_agent::{OneAgent, a_little, end};
use crate::process::Process;
use crate::support::{call, get, until, wait_for};

const TOKEN: &str = "MESOS_EXECUTOR_AUTHENTICATION_TOKEN";

/// The response to a request. Of a stream only the head is read.
struct Answer {
    status: u16,
    challenge: String,
    body: String,
}

fn post(address: &str, path: &str, authorization: Option<&str>, body: &Value) -> Answer {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let (body, media) = (body.to_string(), "application/json");
    let authorization = authorization.map(|header| format!("Authorization: {header}\r\n")).unwrap_or_default();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {media}\r\nAccept: {media}\r\n{authorization}");
    write!(connection, "{head}Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut reader = BufReader::new(connection);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let status = line().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<String> = std::iter::from_fn(|| Some(line()).filter(|line| !line.is_empty())).collect();
    let challenge = headers.iter().find_map(|line| {
        line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate")).map(|(_, value)| value)
    });
    let mut body = String::new();
    if status != 200 {
        reader.read_to_string(&mut body).unwrap();
    }
    Answer { status, challenge: challenge.unwrap_or_default().to_owned(), body }
}

/// An executor, with the ids of its calls.
struct Known {
    framework: String,
    executor: String,
    container: String,
}

impl Known {
    /// Returns the executor as the agent shows it.
    fn of(cluster: &OneAgent, executor: &str) -> Known {
        let found = |state: &Value| {
            let frameworks = state["frameworks"].as_array()?.iter();
            let mut all = frameworks.flat_map(|known| known["executors"].as_array().into_iter().flatten());
            let found = all.find(|known| known["executor_id"] == executor || known["id"] == executor)?;
            let container = found["container"].as_str()?.to_owned();
            let framework = state["frameworks"].as_array()?.iter().find(|known| {
                known["executors"].as_array().into_iter().flatten().any(|one| one["container"] == container.as_str())
            })?;
            Some(Known { framework: framework["id"].as_str()?.to_owned(), executor: executor.to_owned(), container })
        };
        wait_for("the agent shows the executor", || found(&call(&cluster.agent_address(), "GET", "/state")?))
    }

    fn call(&self, kind: &str) -> Value {
        json!({"type": kind, "framework_id": {"value": self.framework}, "executor_id": {"value": self.executor}})
    }

    fn subscribe(&self) -> Value {
        let mut call = self.call("SUBSCRIBE");
        call["subscribe"] = json!({});
        call
    }

    fn update(&self, task: &str, state: &str) -> Value {
        let mut call = self.call("UPDATE");
        // Two updates of a task with the same UUID count as one.
        let uuid = if state == "TASK_FINISHED" { "MDEyMzQ1Njc4OWFiY2RlZg==" } else { "ZmVkY2JhOTg3NjU0MzIxMA==" };
        call["update"] = json!({"status": {"task_id": {"value": task}, "state": state, "uuid": uuid,
            "source": "SOURCE_EXECUTOR"}});
        call
    }

    /// Returns LAUNCH_NESTED_CONTAINER of a program that ends at once.
    fn nested(&self, id: &str) -> Value {
        let id = json!({"value": id, "parent": {"value": self.container}});
        json!({"type": "LAUNCH_NESTED_CONTAINER",
            "launch_nested_container": {"container_id": id, "command": {"value": "true"}}})
    }

    /// Returns the header with the executor's token, which the agent keeps in its private runtime directory.
    fn bearer(&self, cluster: &OneAgent) -> String {
        let config = cluster.directory.path().join("r/containers").join(&self.container).join("config");
        let token = wait_for("the container is described", || {
            let bytes = fs::read(&config).ok()?;
            let name = bytes.windows(TOKEN.len()).position(|part| part == TOKEN.as_bytes())? + TOKEN.len();
            let start = name + bytes[name..].windows(3).position(|part| part == b"eyJ")?;
            let is_its = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
            Some(bytes[start..].iter().take_while(is_its).map(|byte| char::from(*byte)).collect::<String>())
        });
        format!("Bearer {token}")
    }
}

const EXECUTORS: &str = "/slave(1)/api/v1/executor";

/// Tries to make calls as an executor, and asserts that each attempt is refused with this status.
fn cannot_be_impersonated(address: &str, known: &Known, authorization: Option<&str>, status: u16) -> String {
    let mut said = String::new();
    for call in [known.subscribe(), known.update(&known.executor, "TASK_FINISHED")] {
        let answer = post(address, EXECUTORS, authorization, &call);
        assert_eq!(answer.status, status, "{call} with {authorization:?}: {}", answer.body);
        said = answer.body;
    }
    said
}

#[test]
fn no_process_speaks_for_anothers_executor() {
    let mut cluster = OneAgent::start("tokens", &["--launcher=posix".to_owned()]);
    let address = cluster.agent_address();
    let run = json!({"value": "env; sleep 1000"});
    let first = cluster.start_task("first", run.clone(), json!({"type": "MESOS"}));
    let second = cluster.start_task("second", run, json!({"type": "MESOS"}));
    let (known, other) = (Known::of(&cluster, "first"), Known::of(&cluster, "second"));
    let (bearer, others) = (known.bearer(&cluster), other.bearer(&cluster));

    let refused = |cluster: &OneAgent| {
        assert!(cannot_be_impersonated(&address, &known, None, 403).contains("must authenticate with its token"));
        let said = cannot_be_impersonated(&address, &known, Some(&others), 403);
        assert!(said.contains("does not contain a 'fid' claim with the correct FrameworkID"), "{said}");
        cannot_be_impersonated(&address, &known, Some("Bearer garbage"), 401);
        assert_eq!(cluster.latest("first").unwrap()["state"], "TASK_RUNNING");
    };
    refused(&cluster);
    // The executor's own connection is still open.
    let answer = post(&address, EXECUTORS, Some(&bearer), &known.subscribe());
    assert_eq!(answer.status, 409, "{}", answer.body);
    let malformed = post(&address, EXECUTORS, Some("Bearer a b"), &known.subscribe());
    assert!(malformed.challenge.ends_with("error_description=\"Malformed 'Authorization' header\""));

    // The executors subscribe again with their tokens.
    cluster.kill_agent_and_start_it_again();
    until("both executors are back", || {
        get(&address, "/metrics/snapshot").is_some_and(|text| text.contains("\"slave/executors_running\":2"))
            && get(&address, "/metrics/snapshot").is_some_and(|text| text.contains("\"slave/registered\":1"))
    });
    refused(&cluster);

    // Only its executor and the agent's private directories have the token.
    let secret = bearer.strip_prefix("Bearer ").unwrap();
    let shown = ["/state", "/containers", "/flags", "/metrics/snapshot"].map(|path| get(&address, path).unwrap());
    let operator = post(&address, "/api/v1", None, &json!({"type": "GET_STATE"}));
    let written = fs::read_to_string(cluster.sandbox("first").unwrap().join("stdout")).unwrap();
    assert!(written.contains("MESOS_EXECUTOR_ID=first") && !written.contains(TOKEN), "{written}");
    for text in shown.iter().chain([&operator.body, &written, &cluster.log()]) {
        assert!(!text.contains(secret), "{text}");
    }
    end(first);
    end(second);
    until("the task has ended as asked", || was_killed(&cluster, "first"));
}

#[test]
fn a_frameworks_executor_is_bound_by_its_first_token() {
    let cluster = OneAgent::start("tokens-custom", &["--launcher=posix".to_owned()]);
    let address = cluster.agent_address();
    let executor = json!({"executor_id": {"value": "own"}, 
        "command": {"value": "sleep 1000"}, "resources": a_little()});
    let task = json!({"name": "t", "task_id": {"value": "t"}, "executor": executor, "resources": a_little()});
    let _execute = Process::start(&mut cluster.execute(&task));
    let known = Known::of(&cluster, "own");
    let bearer = known.bearer(&cluster);
    let say = |authorization: Option<&str>, call: &Value| post(&address, EXECUTORS, authorization, call).status;
    assert_eq!(say(Some("Bearer garbage"), &known.subscribe()), 401);
    // An executor that does not support tokens works.
    until("it is subscribed", || say(None, &known.subscribe()) == 200);
    assert_eq!(say(None, &known.update("t", "TASK_RUNNING")), 202);
    assert_eq!(say(Some(&bearer), &known.subscribe()), 200);
    assert_eq!(say(None, &known.subscribe()), 403);
    assert_eq!(say(None, &known.update("t", "TASK_FINISHED")), 403);
    assert_eq!(say(Some(&bearer), &known.update("t", "TASK_FINISHED")), 202);
}

/// Returns whether the master's last update of a task is TASK_KILLED, also when its framework is gone.
fn was_killed(cluster: &OneAgent, task: &str) -> bool {
    get(&cluster.address, &format!("/tasks?task_id={task}"))
        .is_some_and(|text| text.contains("\"state\":\"TASK_KILLED\""))
}

/// Returns flags of an agent whose operators authenticate as `ops` with the password `x`.
fn with_operators(directory: &crate::support::Directory, more: &[String]) -> Vec<String> {
    let users = directory.write("users", r#"{"credentials": [{"principal": "ops", "secret": "x"}]}"#);
    let own = ["--launcher=posix".to_owned(), "--authenticate_http_readwrite".to_owned()];
    own.into_iter().chain([format!("--http_credentials={users}")]).chain(more.iter().cloned()).collect()
}

/// Starts a pod whose task runs until it is killed.
fn start_pod(cluster: &OneAgent, task: &str) -> (Process, Known) {
    let pod = cluster.start_pod(&[json!({"name": task, "task_id": {"value": task}, "agent_id": {"value": ""},
        "resources": a_little(), "command": {"value": "sleep 1000"}})]);
    until("the pod runs", || cluster.latest(task).is_some_and(|status| status["state"] == "TASK_RUNNING"));
    let state = call(&cluster.agent_address(), "GET", "/state").unwrap();
    let executors = state["frameworks"].as_array().unwrap().iter();
    let mut executors = executors.flat_map(|known| known["executors"].as_array().into_iter().flatten());
    let has = |one: &&Value| one["tasks"].as_array().is_some_and(|tasks| tasks.iter().any(|known| known["id"] == task));
    let found = executors.find(has).unwrap()["id"].as_str().unwrap().to_owned();
    let known = Known::of(cluster, &found);
    (pod, known)
}

#[test]
fn pods_work_where_operators_authenticate() {
    let directory = crate::support::Directory::new("tokens-users");
    let mut cluster = OneAgent::start("tokens-pods", &with_operators(&directory, &[]));
    let address = cluster.agent_address();
    let told = cluster.run_pod(&[("one", "true".to_owned()), ("two", "true".to_owned())]);
    assert_eq!(told.matches("TASK_FINISHED").count(), 2, "{told}");

    let (pod, known) = start_pod(&cluster, "stays");
    let (stranger, other) = (
        cluster.start_task("alone", json!({"value": "echo up; sleep 1000"}), json!({"type": "MESOS"})),
        Known::of(&cluster, "alone"),
    );
    let (bearer, others) = (known.bearer(&cluster), other.bearer(&cluster));
    let launch = |authorization: Option<&str>, id: &str| post(&address, "/api/v1", authorization, &known.nested(id));
    let answer = launch(None, "n1");
    assert_eq!((answer.status, &*answer.challenge), (401, "Basic realm=\"mesos-agent-readwrite\""));
    let answer = launch(Some("Bearer garbage"), "n1");
    let both = "Basic realm=\"mesos-agent-readwrite\",Bearer realm=\"mesos-agent-readwrite\", error=\"invalid_token\", \
                error_description=\"Invalid JWT: Expected 3 components in token, got 1\"";
    assert_eq!((answer.status, &*answer.challenge), (401, both));
    assert_eq!(launch(Some(&others), "n1").status, 403);
    assert_eq!(launch(Some(&bearer), "n1").status, 200);
    assert_eq!(launch(Some("Basic b3BzOng="), "n2").status, 200);
    let alone = json!({"type": "LAUNCH_CONTAINER", "launch_container": {"container_id": {"value": "alone"},
        "command": {"value": "true"}, "resources": a_little()}});
    assert_eq!(post(&address, "/api/v1", Some(&bearer), &alone).status, 403);
    let level = json!({"type": "SET_LOGGING_LEVEL", "set_logging_level": {"level": 0, "duration": {"nanoseconds": 1}}});
    assert_eq!(post(&address, "/api/v1", Some(&bearer), &level).status, 403);

    // The pod continues with another agent.
    cluster.kill_agent_and_start_it_again();
    end(stranger);
    end(pod);
    until("the pod's task was killed", || was_killed(&cluster, "stays"));
}

#[test]
fn all_executors_authenticate_with_a_key_in_a_file() {
    let directory = crate::support::Directory::new("tokens-key");
    let key = directory.write("key", "a key of the operator");
    let flags = ["--authenticate_http_executors".to_owned(), format!("--jwt_secret_key={key}")];
    let mut cluster = OneAgent::start("tokens-flags", &with_operators(&directory, &flags));
    let address = cluster.agent_address();
    let told = cluster.run_pod(&[("one", "true".to_owned()), ("two", "true".to_owned())]);
    assert_eq!(told.matches("TASK_FINISHED").count(), 2, "{told}");
    let (pod, known) = start_pod(&cluster, "stays");
    let bearer = known.bearer(&cluster);
    cluster.kill_agent_and_start_it_again();
    until("the executor is back", || {
        get(&address, "/metrics/snapshot").is_some_and(|text| text.contains("\"slave/executors_running\":1"))
    });
    let answer = post(&address, EXECUTORS, None, &known.subscribe());
    assert_eq!((answer.status, &*answer.challenge), (401, "Bearer realm=\"mesos-agent-executor\""));
    let answer = post(&address, "/api/v1", None, &known.nested("n"));
    let both = "Basic realm=\"mesos-agent-readwrite\",Bearer realm=\"mesos-agent-readwrite\"";
    assert_eq!((answer.status, &*answer.challenge), (401, both));
    assert!(answer.body.starts_with("\"Basic\" authenticator returned:\n401 Unauthorized.\n\n\"Bearer\""));
    // Its subscription is over HTTP now: a later one with its token replaces it.
    assert_eq!(post(&address, "/api/v1", Some(&bearer), &known.nested("n")).status, 200);
    end(pod);
}
