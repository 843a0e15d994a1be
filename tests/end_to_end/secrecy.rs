//! Tests that no task can read the files that an agent writes for itself, which contain other tasks' variables. No log
//! and no page has a password, a key or a task's variable. Core dumps, which have them, are as docs/security.md says.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::audit;
use crate::connection::Connection;
use crate::one_agent::OneAgent;
use crate::support::{Daemon, Directory, binary, get, until, wait_for};
use crate::tls;

/// Returns everything below a directory, and the directory, except links.
fn below(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => all.extend(below(&entry.path())),
            Ok(kind) if !kind.is_symlink() => all.push(entry.path()),
            _ => {}
        }
    }
    all
}

fn is_open(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.mode() & 0o077 != 0)
}

#[test]
fn a_task_cannot_read_what_others_receive() {
    if !nix::unistd::geteuid().is_root() {
        return println!("not run: it needs root, to run tasks of two users");
    }
    let mut cluster = OneAgent::start("secrecy", &["--launcher=posix".to_owned()]);
    let private = [cluster.directory.path().join("a/meta"), cluster.directory.path().join("r")];
    let variables = json!({"variables": [{"name": "PASSWORD", "value": "xyzzy"}]});
    let command = json!({"value": "echo up; sleep 1000", "user": "daemon", "environment": variables});
    let _told = cluster.start_task("told", command, json!({"type": "MESOS"}));
    let kept = || private.iter().flat_map(|path| below(path)).collect::<Vec<_>>();
    let holds = |path: &PathBuf| fs::read(path).is_ok_and(|bytes| bytes.windows(5).any(|part| part == b"xyzzy"));
    assert!(kept().iter().any(holds), "nothing to protect: {:?}", kept());

    let look = format!(
        "touch mine && cat mine; grep -rl xyzzy {} {}; find {} {}; echo looked",
        private[0].display(),
        private[1].display(),
        private[0].display(),
        private[1].display()
    );
    let seen = |cluster: &OneAgent, id: &str| {
        let (told, written) = cluster.run(id, json!({"value": look, "user": "nobody"}), json!({"type": "MESOS"}));
        assert!(told.contains("TASK_FINISHED"), "{told}");
        written
    };
    // The task may see that the directories exist.
    let shown = format!("{}\n{}\nlooked\n", private[0].display(), private[1].display());
    assert_eq!(seen(&cluster, "first"), shown);
    let open: Vec<PathBuf> = kept().into_iter().filter(|path| is_open(path)).collect();
    assert!(open.is_empty(), "open to others: {open:?}");

    // Permissions as an older version, or Mesos, has set them.
    cluster.replace_agent(|| {
        for path in kept() {
            let mode = if path.is_dir() { 0o755 } else { 0o644 };
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    });
    // A directory that existed before may be shared; the files in it are not.
    fs::set_permissions(&private[1], Permissions::from_mode(0o700)).unwrap();
    assert_eq!(seen(&cluster, "second"), shown);
    until("the old files are closed, too", || !kept().iter().any(|path| is_open(path)));
}

/// Variables of a task: one as text, one of the type SECRET, and that one in base64.
const PLANTED: [&str; 3] = ["pl4nted-plain", "pl4nted-secret", "cGw0bnRlZC1zZWNyZXQ="];
/// Key with which the agent signs the tokens of executors.
const KEY: &str = "pl4nted-key-of-executors-0123456789";

/// Creates a certificate for the daemons. Returns their flags, and the lines of the text of the private key.
fn with_tls(directory: &Directory) -> (Vec<String>, Vec<String>) {
    tls::init(directory, "c", &["--host=127.0.0.1"]);
    let key = fs::read_to_string(directory.path().join("c/127.0.0.1-key.pem")).unwrap();
    let lines: Vec<String> = key.lines().filter(|line| !line.starts_with("---")).map(str::to_owned).collect();
    assert!(lines.iter().any(|line| line.len() > 40), "the key is text");
    (tls::tls_flags(directory).into_iter().chain(["--tls_support_downgrade".to_owned()]).collect(), lines)
}

/// Returns a task on an agent with both variables.
fn with_secrets(agent: &Value, id: &str, user: &str) -> Value {
    let scalar = |name: &str, value: f64| json!({"name": name, "type": "SCALAR", "scalar": {"value": value}, "allocation_info": {"role": "*"}});
    let variables = json!([{"name": "PLAIN", "value": PLANTED[0]},
        {"name": "HIDDEN", "type": "SECRET", "secret": {"type": "VALUE", "value": {"data": PLANTED[2]}}}]);
    let command = json!({"value": "env > env.part; mv env.part env; exec sleep 1000", "user": user,
        "environment": {"variables": variables}});
    json!({"name": id, "task_id": {"value": id}, "agent_id": agent, "command": command,
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)]})
}

#[test]
fn secrets_are_in_no_log_and_on_no_page() {
    let directory = Directory::new("secrets");
    let (tls, private_key) = with_tls(&directory);
    let more = ["--authenticate_agents", "--authenticate_http_readwrite", "--allocation_interval=50ms"];
    let more: Vec<String> = more.map(str::to_owned).into_iter().chain(tls.iter().cloned()).collect();
    let mut master = audit::master(&directory, &more);
    let address = master.address().expect("the master runs");
    let credential = directory.write("credential", r#"{"principal": "dev", "secret": "dev-secret-2"}"#);
    let own = [
        "agent".to_owned(),
        "--ip=127.0.0.1".to_owned(),
        "--port=0".to_owned(),
        "--launcher=posix".to_owned(),
        "--resources=cpus:1;mem:64;disk:64".to_owned(),
        "--authenticate_http_readwrite".to_owned(),
        format!("--master={address}"),
        format!("--work_dir={}", directory.join("a")),
        format!("--runtime_dir={}", directory.join("r")),
        format!("--credential={credential}"),
        format!("--http_credentials={}", directory.join("credentials")),
        format!("--audit_log={}", directory.join("agent-audit.log")),
        format!("--jwt_secret_key={}", directory.write("key", KEY)),
    ];
    let words: Vec<String> = own.into_iter().chain(tls).collect();
    let mut agent = Daemon::start(&directory.path().join("a.log"), &words, &[]);
    let agent_address = agent.address().expect("the agent runs");

    let mut scheduler = Connection::open(&address, "/api/v1/scheduler");
    let info = json!({"user": "root", "name": "f", "roles": ["*"], "capabilities": [{"type": "MULTI_ROLE"}]});
    scheduler.send(&json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}));
    assert_eq!(scheduler.status(), 200);
    let offer = loop {
        let event = scheduler.event().unwrap();
        if event["type"] == "OFFERS" {
            break event["offers"]["offers"][0].clone();
        }
    };
    let mut calls = Connection::open(&address, "/api/v1/scheduler");
    calls.stream_id.clone_from(&scheduler.stream_id);
    let agent_id = &offer["agent_id"];
    // The second task is refused.
    let tasks = [with_secrets(agent_id, "t", "root"), with_secrets(agent_id, "t", "root")];
    let launch = json!({"type": "LAUNCH", "launch": {"task_infos": tasks}});
    let accept = json!({"type": "ACCEPT", "framework_id": offer["framework_id"],
        "accept": {"offer_ids": [offer["id"]], "operations": [launch]}});
    calls.send(&accept);
    assert_eq!(calls.status(), 202);
    let sandboxes = directory.path().join("a/slaves");
    let written = || below(&sandboxes).into_iter().find(|path| path.ends_with("env") && path.is_file());
    let told = fs::read_to_string(wait_for("the task runs", written)).unwrap();
    assert!(PLANTED[..2].iter().all(|planted| told.contains(planted)), "the task has its variables: {told}");
    // Log-ins with a wrong password, and bodies that cannot be decoded or are refused.
    for (address, path) in [(&address, "/api/v1"), (&agent_address, "/api/v1")] {
        assert_eq!(audit::make(address, audit::WRONG, path, &accept), 401);
        assert_eq!(audit::make(address, audit::OPS, path, &accept), 400);
        let broken = format!("{{\"type\": \"{}\"", PLANTED[0]);
        assert!(audit::ask(address, audit::OPS, "POST", path, &broken).starts_with("HTTP/1.1 400 "));
    }
    for path in ["/quota", "/weights", "/machine/down"] {
        let method = if path == "/weights" { "PUT" } else { "POST" };
        let answer = audit::ask(&address, audit::OPS, method, path, &format!("[\"{}\"", PLANTED[0]));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{path}: {answer}");
    }

    let mut texts = Vec::new();
    for name in ["m.log", "a.log", "audit.log", "agent-audit.log"] {
        texts.push((name.to_owned(), fs::read_to_string(directory.path().join(name)).unwrap()));
    }
    for address in [&address, &agent_address] {
        for path in ["/flags", "/state"] {
            texts.push((format!("{address}{path}"), get(address, path).unwrap()));
        }
    }
    let output = Command::new("ps").args(["-eww", "-o", "args"]).output().expect("ps runs");
    texts.push(("ps".to_owned(), String::from_utf8_lossy(&output.stdout).into_owned()));
    for (name, text) in texts {
        assert!(text.len() > 20, "{name}: {text}");
        let keys = private_key.iter().map(String::as_str).filter(|line| line.len() > 8).chain([KEY]);
        for secret in PLANTED.into_iter().chain(audit::PASSWORDS).chain(keys) {
            assert!(!text.contains(secret), "{secret} is in {name}: {text}");
        }
    }
}

/// Returns the line with the limits of the size of a process's core dumps.
fn core_limit(process: u32) -> String {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    limits.lines().find(|line| line.starts_with("Max core file size")).unwrap().to_owned()
}

#[test]
fn a_master_of_the_packages_dumps_no_core_and_tasks_have_the_limit_of_their_agent() {
    let unit = |daemon: &str| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/systemd");
        fs::read_to_string(directory.join(format!("tepui-{daemon}.service"))).unwrap()
    };
    assert!(unit("master").lines().any(|line| line == "LimitCORE=0"));
    assert!(!unit("agent").contains("LimitCORE"));

    // A daemon keeps the limit that systemd sets before it executes the program.
    let directory = Directory::new("core-limit");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -c 0 && exec \"$0\" \"$@\"", &binary()]);
    let words = ["master", "--ip=127.0.0.1", "--port=0", "--registry=in_memory"].map(str::to_owned);
    let words: Vec<String> = words.into_iter().chain([format!("--work_dir={}", directory.join("m"))]).collect();
    let mut master = Daemon::start_as(limited, &directory.path().join("m.log"), &words, &[]);
    master.address().expect("the master runs");
    let limit = core_limit(master.id());
    assert_eq!(limit.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{limit}");

    let mut cluster = OneAgent::start("core-limit", &["--launcher=posix".to_owned()]);
    let shows = json!({"value": "grep '^Max core file size' /proc/self/limits"});
    let (told, written) = cluster.run("t", shows, json!({"type": "MESOS"}));
    assert!(told.contains("TASK_FINISHED"), "{told}");
    assert_eq!(written.trim_end(), core_limit(cluster.agent().id()).trim_end());
}
