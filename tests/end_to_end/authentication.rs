//! Agents prove who they are to a master that asks for it.

use std::path::Path;

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{Daemon, Folder, call, free_port, request, tepui, until};

/// A master's words, with more flags.
fn master_words(folder: &Folder, port: u16, more: &[String]) -> Vec<String> {
    let words = ["master", "--ip=127.0.0.1", "--registry=in_memory", "--allocation_interval=50ms"];
    let own = [format!("--port={port}"), format!("--work_dir={}", folder.join("m"))];
    words.into_iter().map(str::to_owned).chain(own).chain(more.iter().cloned()).collect()
}

fn agent_words(folder: &Folder, name: &str, master: &str, credential: Option<String>) -> Vec<String> {
    let words = ["agent", "--ip=127.0.0.1", "--port=0", "--launcher=posix", "--resources=cpus:1;mem:64;disk:64"];
    let own = [
        format!("--master={master}"),
        format!("--attributes=name:{name}"),
        format!("--work_dir={}", folder.join(&format!("{name}.w"))),
        format!("--runtime_dir={}", folder.join(&format!("{name}.r"))),
        "--registration_backoff_factor=10ms".to_owned(),
    ];
    let credential = credential.map(|path| format!("--credential={path}"));
    words.into_iter().map(str::to_owned).chain(own).chain(credential).collect()
}

/// The names of the active agents.
fn names(master: &str) -> Vec<String> {
    let Some(told) = call(master, "GET", "/slaves") else { return Vec::new() };
    let agents = told["slaves"].as_array().cloned().unwrap_or_default();
    let active = agents.iter().filter(|agent| agent["active"] == true);
    let mut names: Vec<_> = active.filter_map(|agent| Some(agent["attributes"]["name"].as_str()?.to_owned())).collect();
    names.sort();
    names
}

fn has(log: &Path, words: &str) -> bool {
    std::fs::read_to_string(log).is_ok_and(|text| text.lines().any(|line| line.contains(words)))
}

#[test]
fn only_agents_with_the_right_secret_are_admitted() {
    let folder = Folder::new("authentication");
    let known =
        r#"{"credentials": [{"principal": "agents", "secret": "s3 cret"}, {"principal": "old", "secret": "x"}]}"#;
    let more = ["--authenticate_slaves".to_owned(), format!("--credentials={}", folder.write("known", known))];
    let port = free_port();
    let log = folder.path().join("m.log");
    let mut master = Daemon::start(&log, &master_words(&folder, port, &more), &[]);
    let address = master.address().expect("the master runs");

    let right = folder.write("right", r#"{"principal": "agents", "secret": "s3 cret"}"#);
    let words = agent_words(&folder, "right", &address, Some(right));
    let _right = Daemon::start(&folder.path().join("right.log"), &words, &[]);
    let words = agent_words(&folder, "lines", &address, Some(folder.write("lines", "old x\n")));
    let _lines = Daemon::start(&folder.path().join("lines.log"), &words, &[]);
    until("both agents are registered", || names(&address) == ["lines", "right"]);
    assert!(has(&log, "Successfully authenticated principal 'agents'"));

    let wrong = folder.write("wrong", r#"{"principal": "agents", "secret": "another"}"#);
    let mut command = tepui();
    let mut wrong = Process::start(command.args(agent_words(&folder, "wrong", &address, Some(wrong))));
    wrong.line(Stream::Stderr, &[&format!("Master master@{address} refused authentication")]);
    assert_eq!(wrong.end().code(), Some(1));

    let words = agent_words(&folder, "none", &address, None);
    let mut none = Daemon::start(&folder.path().join("none.log"), &words, &[]);
    let none_at = none.address().expect("the agent runs");
    let refusal = format!("Refusing registration of agent at slave(1)@{none_at} because it is not authenticated");
    until("an agent without a credential is refused", || has(&log, &refusal));
    assert_eq!(names(&address), ["lines", "right"]);

    // To another master they prove it anew.
    drop(master);
    let log = folder.path().join("m2.log");
    let mut master = Daemon::start(&log, &master_words(&folder, port, &more), &[]);
    master.address().expect("the master runs again");
    until("both agents are registered again", || names(&address) == ["lines", "right"]);
    until("the other one is refused again", || has(&log, &refusal));
}

#[test]
fn who_need_not_may_all_the_same_and_unknown_ones_are_refused() {
    let folder = Folder::new("authentication-free");
    let log = folder.path().join("m.log");
    // It has no credentials: nobody can prove anything.
    let mut master = Daemon::start(&log, &master_words(&folder, free_port(), &[]), &[]);
    let address = master.address().expect("the master runs");
    let _none = Daemon::start(&folder.path().join("none.log"), &agent_words(&folder, "none", &address, None), &[]);
    until("an agent without a credential is registered", || names(&address) == ["none"]);
    let mut command = tepui();
    let words = agent_words(&folder, "some", &address, Some(folder.write("some", "some secret")));
    let mut some = Process::start(command.args(words));
    some.line(Stream::Stderr, &["refused authentication"]);
    assert_eq!(some.end().code(), Some(1));
    assert_eq!(names(&address), ["none"]);
}

#[test]
fn frameworks_and_operators_say_who_they_are_by_http() {
    let folder = Folder::new("authentication-http");
    let known = folder.write("known", r#"{"credentials": [{"principal": "ann", "secret": "s3cret"}]}"#);
    let more = [
        "--authenticate_http_readonly".to_owned(),
        "--authenticate_http_readwrite".to_owned(),
        "--authenticate_http_frameworks".to_owned(),
        "--http_framework_authenticators=basic".to_owned(),
        format!("--credentials={known}"),
    ];
    let log = folder.path().join("m.log");
    let mut master = Daemon::start(&log, &master_words(&folder, free_port(), &more), &[]);
    let address = master.address().expect("the master runs");
    let _agent = Daemon::start(&folder.path().join("a.log"), &agent_words(&folder, "a", &address, None), &[]);

    let refusal = |method: &str, path: &str| request(&address, method, path, "{}").unwrap().to_lowercase();
    for (method, path, realm) in [
        ("GET", "/state", "mesos-master-readonly"),
        ("GET", "/metrics/snapshot", "mesos-master-readonly"),
        ("POST", "/api/v1", "mesos-master-readwrite"),
        ("POST", "/master/teardown", "mesos-master-readwrite"),
        ("POST", "/api/v1/scheduler", "mesos-master-scheduler"),
    ] {
        let told = refusal(method, path);
        assert!(told.starts_with("http/1.1 401 "), "{path}: {told}");
        assert!(told.contains(&format!("www-authenticate: basic realm=\"{realm}\"")), "{path}: {told}");
        assert!(told.ends_with("401 unauthorized."), "{path}: {told}");
    }
    for path in ["/health", "/version"] {
        assert!(refusal("GET", path).starts_with("http/1.1 200 "), "{path}");
    }

    let with = |words: &[&str], secret: &str| {
        let mut command = tepui();
        command.args(words).arg(format!("--master={address}"));
        command.args(["--principal=ann".to_owned(), format!("--secret={secret}")]);
        command.run()
    };
    let task = ["execute", "--resources=cpus:0.1;mem:16", "--command=true"];
    // The agent may not have registered yet: a framework waits for it.
    assert!(with(&task, "s3cret").status.success());
    assert!(with(&["agents"], "s3cret").status.success());
    for words in [&task[..], &["agents"]] {
        assert!(!with(words, "wrong").status.success(), "{words:?}");
    }
}
