//! Tests the audit log: changes that are allowed and refused, failed log-ins; and the size of logs under floods of
//! messages.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Daemon, Directory, PATIENCE, call, exchange, free_port, until, wait_for};

/// A user with its password, in the form of the header `Authorization`.
pub const OPS: &str = "b3BzOjBwcy1zZWNyZXQtMQ==";
const DEV: &str = "ZGV2OmRldi1zZWNyZXQtMg==";
/// A user that is not known, `eve`.
const STRANGER: &str = "ZXZlOng=";
/// A wrong password of `ops`.
pub const WRONG: &str = "b3BzOndyMG5nLXBhc3N3MHJk";
/// All passwords that must not be in a log, also in the form in which they are sent.
pub const PASSWORDS: [&str; 6] = ["0ps-secret-1", "dev-secret-2", "wr0ng-passw0rd", OPS, DEV, WRONG];

/// Returns the file for `--credentials` and `--http_credentials`.
fn credentials(directory: &Directory) -> String {
    let known = r#"{"credentials": [{"principal": "ops", "secret": "0ps-secret-1"}, {"principal": "dev", "secret": "dev-secret-2"}]}"#;
    directory.write("credentials", known)
}

/// Starts a master with an audit log.
pub fn master(directory: &Directory, more: &[String]) -> Daemon {
    let own = [
        "master".to_owned(),
        "--ip=127.0.0.1".to_owned(),
        "--registry=in_memory".to_owned(),
        format!("--port={}", free_port()),
        format!("--work_dir={}", directory.join("m")),
        format!("--audit_log={}", directory.join("audit.log")),
        format!("--credentials={}", credentials(directory)),
    ];
    let words: Vec<String> = own.into_iter().chain(more.iter().cloned()).collect();
    Daemon::start(&directory.path().join("m.log"), &words, &[])
}

/// Sends a request as a user and returns the answer.
pub fn ask(address: &str, user: &str, method: &str, path: &str, body: &str) -> String {
    exchange(address, &request(user, method, path, body)).unwrap()
}

fn request(user: &str, method: &str, path: &str, body: &str) -> String {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {user}\r\nConnection: close\r\n");
    let media = "Content-Type: application/json\r\nAccept: application/json\r\n";
    format!("{head}{media}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Makes a call as a user and returns the status.
pub fn make(address: &str, user: &str, path: &str, call: &Value) -> u16 {
    let answer = ask(address, user, "POST", path, &call.to_string());
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Returns the lines of an audit log so far.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
}

/// Waits for a line with these fields, and returns it.
fn line(path: &Path, fields: &Value) -> Value {
    let has = |line: &Value| fields.as_object().unwrap().iter().all(|(name, value)| line[name] == *value);
    wait_for(&format!("a line with {fields}"), || lines(path).into_iter().find(has))
}

fn none(object: &str) -> Value {
    json!([{"principals": {"values": ["dev"]}, object: {"type": "NONE"}}])
}

#[test]
fn changes_are_written_with_what_decided() {
    let directory = Directory::new("audit");
    let acls = json!({"drain_agents": none("agents"), "update_quotas": none("roles"), "set_log_level": none("level"),
        "register_frameworks": [{"principals": {"values": ["dev"]}, "roles": {"values": ["closed"]}},
                                {"principals": {"values": ["ops"]}, "roles": {"type": "NONE"}}],
        "run_tasks": [{"principals": {"type": "NONE"}, "users": {"values": ["nobody"]}}]});
    let more = [
        "--authenticate_http_readwrite".to_owned(),
        "--authenticate_http_frameworks".to_owned(),
        "--http_framework_authenticators=basic".to_owned(),
        "--allocation_interval=50ms".to_owned(),
        format!("--acls={acls}"),
    ];
    let mut master = master(&directory, &more);
    let address = master.address().expect("the master runs");
    let audit = directory.path().join("audit.log");
    let agent_audit = directory.path().join("agent-audit.log");
    let words = [
        "agent".to_owned(),
        "--ip=127.0.0.1".to_owned(),
        "--port=0".to_owned(),
        "--launcher=posix".to_owned(),
        format!("--master={address}"),
        format!("--work_dir={}", directory.join("a")),
        format!("--runtime_dir={}", directory.join("r")),
        "--resources=cpus:1;mem:64;disk:64".to_owned(),
        "--authenticate_http_readwrite".to_owned(),
        format!("--http_credentials={}", directory.join("credentials")),
        format!("--audit_log={}", agent_audit.display()),
        format!("--acls={acls}"),
    ];
    let mut agent = Daemon::start(&directory.path().join("a.log"), &words, &[]);
    let agent_address = agent.address().expect("the agent runs");
    let registered = line(&audit, &json!({"call": "RegisterSlaveMessage", "decision": "received"}));
    assert_eq!(registered["pid"], format!("slave(1)@{agent_address}"));
    assert_eq!(registered["transport"], "libprocess");
    let id = wait_for("the agent is registered", || {
        call(&address, "GET", "/slaves")?["slaves"][0]["id"].as_str().map(str::to_owned)
    });

    operators(&address, &audit, &id);
    frameworks(&address, &audit, &id);
    operators_of_the_agent(&agent_address, &agent_audit);

    let calls: Vec<String> = lines(&audit).iter().filter_map(|line| Some(line["call"].as_str()?.to_owned())).collect();
    assert!(!calls.iter().any(|call| ["GET_STATE", "REVIVE"].contains(&&**call)), "{calls:?}");
    assert_eq!(fs::metadata(&audit).unwrap().permissions().mode() & 0o777, 0o600);
    for name in ["audit.log", "agent-audit.log", "m.log", "a.log"] {
        let text = fs::read_to_string(directory.path().join(name)).unwrap();
        assert!(!PASSWORDS.iter().any(|password| text.contains(password)), "{name}: {text}");
    }
}

/// Makes calls of the operator API, and of older endpoints.
fn operators(address: &str, audit: &Path, id: &str) {
    let deactivate = json!({"type": "DEACTIVATE_AGENT", "deactivate_agent": {"agent_id": {"value": id}}});
    let drain = json!({"type": "DRAIN_AGENT", "drain_agent": {"agent_id": {"value": id}}});
    let quota = json!({"type": "UPDATE_QUOTA", "update_quota": {"force": true, "quota_configs": [{"role": "r"}]}});
    assert_eq!(make(address, OPS, "/api/v1", &deactivate), 200);
    assert_eq!(make(address, DEV, "/api/v1", &drain), 403);
    assert_eq!(make(address, DEV, "/api/v1", &quota), 403);
    assert_eq!(
        make(address, OPS, "/api/v1", &json!({"type": "DRAIN_AGENT", "drain_agent": {"agent_id": {"value": "X"}}})),
        400
    );
    assert!(ask(address, OPS, "POST", "/teardown", "frameworkId=nothing").starts_with("HTTP/1.1 400 "));
    assert_eq!(
        make(address, OPS, "/api/v1", &json!({"type": "UPDATE_POLICIES", "update_policies": {"policies": {}}})),
        200
    );
    assert!(ask(address, OPS, "POST", "/quota", "{\"role\": \"wr0ng-passw0rd").starts_with("HTTP/1.1 400 "));
    assert_eq!(make(address, WRONG, "/api/v1", &drain), 401);
    assert_eq!(make(address, OPS, "/api/v1", &json!({"type": "GET_STATE"})), 200);
    let done = line(audit, &json!({"call": "DEACTIVATE_AGENT"}));
    assert_eq!(
        (&done["principal"], &done["decision"], &done["status"]),
        (&json!("ops"), &json!("allowed"), &json!(200))
    );
    assert_eq!((&done["target"]["agent"], &done["daemon"]), (&json!(id), &json!("master")));
    assert!(done["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{done}");
    let denied = line(audit, &json!({"call": "DRAIN_AGENT", "decision": "denied"}));
    assert_eq!((&denied["principal"], &denied["status"]), (&json!("dev"), &json!(403)));
    assert!(denied["rule"].as_str().unwrap().contains("drain_agents"), "{denied}");
    let denied = line(audit, &json!({"call": "UPDATE_QUOTA", "decision": "denied", "target": {"role": "r"}}));
    assert!(denied["rule"].as_str().unwrap().contains("update_quotas"), "{denied}");
    line(audit, &json!({"call": "DRAIN_AGENT", "decision": "invalid", "target": {"agent": "X"}}));
    line(audit, &json!({"call": "POST /teardown", "decision": "invalid", "target": {"framework": "nothing"}}));
    line(audit, &json!({"call": "UPDATE_POLICIES", "decision": "allowed"}));
    // A body that cannot be decoded is not logged.
    let quota = line(audit, &json!({"call": "POST /quota", "decision": "invalid"}));
    assert_eq!(quota["rule"], "the request cannot be decoded");
    let login = line(audit, &json!({"call": "LOGIN", "status": 401, "target": {"user": "ops"}}));
    assert_eq!((&login["principal"], &login["rule"]), (&Value::Null, &json!("mesos-master-readwrite")));
    until("the user has to wait", || make(address, STRANGER, "/api/v1", &drain) == 429);
    let login = line(audit, &json!({"call": "LOGIN", "status": 429, "target": {"user": "eve"}}));
    assert_eq!((&login["decision"], &login["rule"]), (&json!("denied"), &json!("mesos-master-readwrite")));
}

/// Makes calls of frameworks.
fn frameworks(address: &str, audit: &Path, id: &str) {
    let subscribe = |role: &str| {
        let info = json!({"user": "nobody", "name": "f", "roles": [role], "capabilities": [{"type": "MULTI_ROLE"}]});
        json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}).to_string()
    };
    let refused = ask(address, OPS, "POST", "/api/v1/scheduler", &subscribe("closed"));
    assert!(refused.starts_with("HTTP/1.1 200 ") && refused.contains("Not authorized"), "{refused}");
    let denied = line(audit, &json!({"call": "SUBSCRIBE", "decision": "denied", "principal": "ops"}));
    assert!(denied["rule"].as_str().unwrap().contains("register_frameworks"), "{denied}");
    let reactivate = json!({"type": "REACTIVATE_AGENT", "reactivate_agent": {"agent_id": {"value": id}}});
    assert_eq!(make(address, OPS, "/api/v1", &reactivate), 200);
    let mut scheduler = Scheduler::subscribe(address, &subscribe("closed"));
    line(audit, &json!({"call": "SUBSCRIBE", "decision": "allowed", "principal": "dev"}));
    let offer = scheduler.until("\"OFFERS\"", |events| {
        let event = events.iter().find(|event| event["type"] == "OFFERS")?;
        Some(event["offers"]["offers"][0].clone())
    });
    let scalar = |name: &str, value: f64| json!({"name": name, "type": "SCALAR", "scalar": {"value": value}, "allocation_info": {"role": "closed"}});
    let command = json!({"value": "true", "user": "nobody"});
    let task = json!({"name": "t", "task_id": {"value": "task-1"}, "agent_id": {"value": id}, "command": command,
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)]});
    let launch = json!({"type": "LAUNCH", "launch": {"task_infos": [task]}});
    let framework = &offer["framework_id"];
    let accept = json!({"type": "ACCEPT", "framework_id": framework,
        "accept": {"offer_ids": [offer["id"]], "operations": [launch]}});
    assert_eq!(scheduler.call(address, &accept), 202);
    assert_eq!(scheduler.call(address, &json!({"type": "REVIVE", "framework_id": framework})), 202);
    let taken = line(audit, &json!({"call": "ACCEPT", "decision": "allowed", "principal": "dev"}));
    assert_eq!((&taken["target"]["task"], &taken["target"]["operation"]), (&json!("task-1"), &json!("LAUNCH")));
    let denied = line(audit, &json!({"call": "LAUNCH", "decision": "denied", "principal": "dev"}));
    assert_eq!((&denied["target"]["task"], &denied["target"]["framework"]), (&json!("task-1"), &framework["value"]));
    assert!(denied["rule"].as_str().unwrap().contains("nobody"), "{denied}");
    let teardown = format!("frameworkId={}", framework["value"].as_str().unwrap());
    assert!(ask(address, OPS, "POST", "/master/teardown", &teardown).starts_with("HTTP/1.1 200 "));
    line(audit, &json!({"call": "POST /teardown", "decision": "allowed", "target": {"framework": framework["value"]}}));
}

/// Makes calls of the agent's operator API.
fn operators_of_the_agent(address: &str, audit: &Path) {
    let level = json!({"type": "SET_LOGGING_LEVEL", "set_logging_level": {"level": 0, "duration": {"nanoseconds": 1}}});
    assert_eq!(make(address, OPS, "/api/v1", &level), 200);
    assert_eq!(make(address, DEV, "/api/v1", &level), 403);
    assert_eq!(make(address, WRONG, "/api/v1", &level), 401);
    line(audit, &json!({"call": "SET_LOGGING_LEVEL", "decision": "allowed", "daemon": "agent"}));
    let denied = line(audit, &json!({"call": "SET_LOGGING_LEVEL", "decision": "denied"}));
    assert_eq!((&denied["principal"], &denied["target"]["level"]), (&json!("dev"), &json!("0")));
    line(audit, &json!({"call": "LOGIN", "rule": "mesos-agent-readwrite"}));
    let forged = request("x", "POST", "/api/v1/executor", "{}").replace("Basic x", "Bearer x");
    assert!(exchange(address, &forged).unwrap().starts_with("HTTP/1.1 401 "));
    line(audit, &json!({"call": "LOGIN", "status": 401, "rule": "mesos-agent-executor"}));
}

/// A framework of `dev`, whose events are read as text.
struct Scheduler {
    stream: TcpStream,
    text: String,
}

impl Scheduler {
    fn subscribe(address: &str, subscribe: &str) -> Scheduler {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request(DEV, "POST", "/api/v1/scheduler", subscribe).as_bytes()).unwrap();
        Scheduler { stream, text: String::new() }
    }

    /// Reads events until `found` returns something for the events so far.
    fn until<T>(&mut self, what: &str, found: impl Fn(&[Value]) -> Option<T>) -> T {
        loop {
            // Each record is one line of JSON after its length and the head of its chunk.
            let records: Vec<Value> =
                self.text.lines().filter_map(|line| serde_json::from_str(line.get(line.find('{')?..)?).ok()).collect();
            if let Some(found) = found(&records) {
                return found;
            }
            let mut buffer = [0; 64 << 10];
            let length = self.stream.read(&mut buffer).unwrap();
            assert!(length > 0, "the stream has ended before {what}: {}", self.text);
            self.text.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    }

    /// Makes a call and returns the status.
    fn call(&self, address: &str, call: &Value) -> u16 {
        let id =
            self.text.lines().find_map(|line| line.to_lowercase().strip_prefix("mesos-stream-id: ").map(str::to_owned));
        let request = request(DEV, "POST", "/api/v1/scheduler", &call.to_string());
        let request = request.replacen("\r\n", &format!("\r\nMesos-Stream-Id: {}\r\n", id.unwrap()), 1);
        let answer = exchange(address, &request).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// Number of messages and requests of a flood.
const FLOOD: usize = 3000;

#[test]
fn refused_requests_do_not_fill_the_logs() {
    let directory = Directory::new("audit-flood");
    let more = ["--authenticate_frameworks".to_owned(), "--authenticate_http_readwrite".to_owned()];
    let mut master = master(&directory, &more);
    let address = master.address().expect("the master runs");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // user and name; nothing listens at the sender's address.
    let body = [10, 6, 10, 1, b'u', 18, 1, b'n'];
    let head = format!(
        "POST /master/mesos.internal.RegisterFrameworkMessage HTTP/1.1\r\nUser-Agent: libprocess/s@127.0.0.1:1\r\n\
         Libprocess-From: s@127.0.0.1:1\r\nConnection: Keep-Alive\r\nHost: \r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let message = [head.as_bytes(), &body].concat();
    let mut answers = Vec::new();
    for _ in 0..FLOOD / 100 {
        stream.write_all(&message.repeat(100)).unwrap();
    }
    let count = |text: &[u8]| String::from_utf8_lossy(text).matches(" 202 ").count();
    while count(&answers) < FLOOD {
        let mut buffer = [0; 64 << 10];
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "the master has ended the connection");
        answers.extend_from_slice(&buffer[..length]);
    }
    let login = request(WRONG, "POST", "/api/v1", "{}").replace("Connection: close\r\n", "");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    for _ in 0..FLOOD {
        stream.write_all(login.as_bytes()).unwrap();
        let mut answer = String::new();
        // After many failures the user has to wait.
        while !answer.contains("401 Unauthorized.") && !answer.contains("Too many failed log-ins") {
            let mut buffer = [0; 4096];
            let length = stream.read(&mut buffer).unwrap();
            assert!(length > 0, "{answer}");
            answer.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    }
    let audit: PathBuf = directory.path().join("audit.log");
    until("the core has refused the messages", || lines(&audit).len() > 1000);
    master.signal("-TERM");
    until("the master has ended", || master.ended());

    let log = fs::read_to_string(directory.path().join("m.log")).unwrap();
    let refusals = log.lines().filter(|line| line.contains("Refusing a subscription of s@")).count();
    assert!(refusals <= 201 && log.len() < 64 << 10, "{refusals} lines, {} bytes", log.len());
    assert!(log.contains(&format!("Suppressed {} similar lines", FLOOD - 200)), "{log}");
    let all = lines(&audit);
    let denied = all.iter().filter(|line| line["decision"] == "denied" && line["call"].is_string()).count();
    let left_out: u64 =
        all.iter().filter(|line| line["decision"] == "denied").filter_map(|line| line["left_out"].as_u64()).sum();
    // A minute may end in between.
    assert!(denied == 1000 || denied == 2000, "{denied}");
    assert_eq!(denied as u64 + left_out, 2 * FLOOD as u64);
}
