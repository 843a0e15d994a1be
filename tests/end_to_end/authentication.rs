//! Tests agents, drivers and HTTP clients that authenticate with a master that requires it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{Daemon, Directory, call, exchange, free_port, request, tepui, until, wait_for};

/// Returns the command line of a master with additional flags.
fn master_words(directory: &Directory, port: u16, more: &[String]) -> Vec<String> {
    let words = ["master", "--ip=127.0.0.1", "--registry=in_memory", "--allocation_interval=50ms"];
    let own = [format!("--port={port}"), format!("--work_dir={}", directory.join("m"))];
    words.into_iter().map(str::to_owned).chain(own).chain(more.iter().cloned()).collect()
}

fn agent_words(directory: &Directory, name: &str, master: &str, credential: Option<String>) -> Vec<String> {
    let words = ["agent", "--ip=127.0.0.1", "--port=0", "--launcher=posix", "--resources=cpus:1;mem:64;disk:64"];
    let own = [
        format!("--master={master}"),
        format!("--attributes=name:{name}"),
        format!("--work_dir={}", directory.join(&format!("{name}.w"))),
        format!("--runtime_dir={}", directory.join(&format!("{name}.r"))),
        "--registration_backoff_factor=10ms".to_owned(),
    ];
    let credential = credential.map(|path| format!("--credential={path}"));
    words.into_iter().map(str::to_owned).chain(own).chain(credential).collect()
}

/// Returns the names of the active agents.
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
    let directory = Directory::new("authentication");
    let known =
        r#"{"credentials": [{"principal": "agents", "secret": "s3 cret"}, {"principal": "old", "secret": "x"}]}"#;
    let more = ["--authenticate_slaves".to_owned(), format!("--credentials={}", directory.write("known", known))];
    let port = free_port();
    let log = directory.path().join("m.log");
    let mut master = Daemon::start(&log, &master_words(&directory, port, &more), &[]);
    let address = master.address().expect("the master runs");

    let right = directory.write("right", r#"{"principal": "agents", "secret": "s3 cret"}"#);
    let words = agent_words(&directory, "right", &address, Some(right));
    let _right = Daemon::start(&directory.path().join("right.log"), &words, &[]);
    let words = agent_words(
        &directory,
        "other",
        &address,
        Some(directory.write("other", r#"{"principal": "old", "secret": "x"}"#)),
    );
    let _other = Daemon::start(&directory.path().join("other.log"), &words, &[]);
    until("both agents are registered", || names(&address) == ["other", "right"]);
    assert!(has(&log, "Successfully authenticated principal 'agents'"));

    let wrong = directory.write("wrong", r#"{"principal": "agents", "secret": "another"}"#);
    let mut command = tepui();
    let mut wrong = Process::start(command.args(agent_words(&directory, "wrong", &address, Some(wrong))));
    let refused = format!("Master master@{address} refused authentication");
    wrong.line(Stream::Stderr, &["WARN", &refused, "check the principal and the secret of --credential"]);
    assert_eq!(wrong.end().code(), Some(1));

    let words = agent_words(&directory, "none", &address, None);
    let mut none = Daemon::start(&directory.path().join("none.log"), &words, &[]);
    let none_at = none.address().expect("the agent runs");
    let refusal = format!("Refusing registration of agent at slave(1)@{none_at} because it is not authenticated");
    until("an agent without a credential is refused", || has(&log, &refusal));
    assert_eq!(names(&address), ["other", "right"]);

    // The agents authenticate again with the next master.
    drop(master);
    let log = directory.path().join("m2.log");
    let mut master = Daemon::start(&log, &master_words(&directory, port, &more), &[]);
    master.address().expect("the master runs again");
    until("both agents are registered again", || names(&address) == ["other", "right"]);
    until("the other one is refused again", || has(&log, &refusal));
}

#[test]
fn optional_authentication_accepts_all_but_wrong_credentials() {
    let directory = Directory::new("authentication-free");
    let log = directory.path().join("m.log");
    // The master has no credentials: no client can authenticate.
    let mut master = Daemon::start(&log, &master_words(&directory, free_port(), &[]), &[]);
    let address = master.address().expect("the master runs");
    let _none =
        Daemon::start(&directory.path().join("none.log"), &agent_words(&directory, "none", &address, None), &[]);
    until("an agent without a credential is registered", || names(&address) == ["none"]);
    let mut command = tepui();
    let some = directory.write("some", r#"{"principal": "some", "secret": "x"}"#);
    let words = agent_words(&directory, "some", &address, Some(some));
    let mut some = Process::start(command.args(words));
    some.line(Stream::Stderr, &["refused authentication"]);
    assert_eq!(some.end().code(), Some(1));
    assert_eq!(names(&address), ["none"]);
}

#[test]
fn frameworks_and_operators_say_who_they_are_by_http() {
    let directory = Directory::new("authentication-http");
    let known = directory.write("known", r#"{"credentials": [{"principal": "ann", "secret": "s3cret"}]}"#);
    let more = [
        "--authenticate_http_readonly".to_owned(),
        "--authenticate_http_readwrite".to_owned(),
        "--authenticate_http_frameworks".to_owned(),
        "--http_framework_authenticators=basic".to_owned(),
        format!("--credentials={known}"),
    ];
    let log = directory.path().join("m.log");
    let mut master = Daemon::start(&log, &master_words(&directory, free_port(), &more), &[]);
    let address = master.address().expect("the master runs");
    let _agent = Daemon::start(&directory.path().join("a.log"), &agent_words(&directory, "a", &address, None), &[]);

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
    let subscribe =
        r#"{"type": "SUBSCRIBE", "subscribe": {"framework_info": {"user": "u", "name": "f", "principal": "bob"}}}"#;
    // ann:s3cret
    let head = "POST /api/v1/scheduler HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YW5uOnMzY3JldA==\r\n\
                Content-Type: application/json\r\nAccept: application/json\r\nConnection: close\r\n";
    let told = exchange(&address, &format!("{head}Content-Length: {}\r\n\r\n{subscribe}", subscribe.len())).unwrap();
    assert!(told.starts_with("HTTP/1.1 400 "), "{told}");
    let why = "Failed to validate scheduler::Call: Authenticated principal 'ann' does not match principal 'bob' set in \
               `FrameworkInfo`";
    assert!(told.ends_with(why), "{told}");
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
    let errors = |output: Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors(with(&["agents"], "wrong")).contains("the secret is wrong"));
    let without = errors(tepui().args(["agents", "--master", &address]).run());
    assert!(without.contains("give --principal and --secret"), "{without}");
}

/// A received message: its path, its sender and its body.
type Heard = (String, String, Vec<u8>);

/// An older driver, written as bytes, and the messages that its processes have received.
struct Driver {
    address: String,
    master: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Driver {
    fn start(master: &str) -> Driver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let noted = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let noted = noted.clone();
                std::thread::spawn(move || hear(BufReader::new(stream), &noted));
            }
        });
        Driver { address, master: master.to_owned(), heard }
    }

    /// Sends a message over a connection of its own.
    fn send(&self, from: &str, to: &str, name: &str, body: &[u8]) {
        let mut stream = TcpStream::connect(&self.master).unwrap();
        self.send_over(&mut stream, from, to, name, body);
    }

    fn send_over(&self, stream: &mut TcpStream, from: &str, to: &str, name: &str, body: &[u8]) {
        let from = format!("{from}@{}", self.address);
        let head = format!(
            "POST /{to}/mesos.internal.{name} HTTP/1.1\r\nUser-Agent: libprocess/{from}\r\nLibprocess-From: {from}\r\n\
             Connection: Keep-Alive\r\nHost: \r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
    }

    /// Returns the number of messages of that name that were received.
    fn count(&self, name: &str) -> usize {
        self.heard.lock().unwrap().iter().filter(|(path, _, _)| path.ends_with(name)).count()
    }

    /// Returns the next message of that name to that process: its sender's id, and its body.
    fn next(&self, to: &str, name: &str) -> (String, Vec<u8>) {
        let path = format!("/{to}/mesos.internal.{name}");
        wait_for(&path, || {
            let mut heard = self.heard.lock().unwrap();
            let at = heard.iter().position(|(known, _, _)| known.replace("%28", "(").replace("%29", ")") == path)?;
            let (_, from, body) = heard.remove(at);
            Some((from.split('@').next()?.to_owned(), body))
        })
    }
}

/// Records messages in the form in which libprocess writes them: with a body they have one chunk.
fn hear(mut from: BufReader<TcpStream>, noted: &Mutex<Vec<Heard>>) {
    let line = |from: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|length| *length > 0).map(|_| line.trim_end().to_owned())
    };
    while let Some(first) = line(&mut from) {
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let (mut sender, mut body) = (String::new(), Vec::new());
        let mut has_body = false;
        while let Some(line) = line(&mut from).filter(|line| !line.is_empty()) {
            has_body |= line == "Transfer-Encoding: chunked";
            if let Some(pid) = line.strip_prefix("Libprocess-From: ") {
                sender = pid.to_owned();
            }
        }
        if has_body {
            let length = line(&mut from).and_then(|length| usize::from_str_radix(&length, 16).ok());
            body.resize(length.expect("a chunk"), 0);
            let mut end = [0; 7];
            from.read_exact(&mut body).and_then(|()| from.read_exact(&mut end)).unwrap();
            assert_eq!(&end, b"\r\n0\r\n\r\n");
        }
        noted.lock().unwrap().push((path, sender, body));
    }
}

/// Encodes a field of protobuf: text, or a message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

#[test]
fn drivers_prove_who_they_are_by_mesoss_bytes() {
    let directory = Directory::new("authentication-driver");
    let known = directory.write("known", r#"{"credentials": [{"principal": "ann", "secret": "s3cret"}]}"#);
    let more = ["--authenticate".to_owned(), format!("--credentials={known}")];
    let log = directory.path().join("m.log");
    let mut master = Daemon::start(&log, &master_words(&directory, free_port(), &more), &[]);
    let driver = Driver::start(&master.address().expect("the master runs"));
    let own = "scheduler-1";
    // user, name and principal
    let info = [field(1, b"nobody"), field(2, b"driver"), field(8, b"ann")].concat();
    let register = || driver.send(own, "master", "RegisterFrameworkMessage", &field(1, &info));
    register();
    let (_, told) = driver.next(own, "FrameworkErrorMessage");
    let pid = format!("{own}@{}", driver.address);
    assert_eq!(told, field(2, format!("Framework at {pid} is not authenticated").as_bytes()));

    authenticate(&driver, &pid, b"wrong");
    assert!(driver.next(AUTHENTICATEE, "AuthenticationFailedMessage").1.is_empty());
    register();
    driver.next(own, "FrameworkErrorMessage");
    authenticate(&driver, &pid, b"s3cret");
    assert!(driver.next(AUTHENTICATEE, "AuthenticationCompletedMessage").1.is_empty());
    register();
    driver.next(own, "FrameworkRegisteredMessage");

    // mesos-go's older driver authenticates through a socket of its own.
    let (second, beside) = (Driver::start(&driver.master), Driver::start(&driver.master));
    let pid = format!("scheduler(1)@{}", second.address);
    authenticate(&beside, &pid, b"s3cret");
    assert!(beside.next(AUTHENTICATEE, "AuthenticationCompletedMessage").1.is_empty());
    second.send("scheduler(1)", "master", "RegisterFrameworkMessage", &field(1, &info));
    second.next("scheduler(1)", "FrameworkRegisteredMessage");
}

/// Id of a driver's process that authenticates.
const AUTHENTICATEE: &str = "crammd5-authenticatee(1)";

/// Requests the authentication of a process, and answers the challenge. Each message has a connection of its own.
fn authenticate(by: &Driver, pid: &str, secret: &[u8]) {
    converse(by, pid, secret, |to, name, body| by.send(AUTHENTICATEE, to, name, body));
}

/// Requests the authentication of a process, and answers the challenge. `send` sends a message to a process of the
/// master.
fn converse(by: &Driver, pid: &str, secret: &[u8], mut send: impl FnMut(&str, &str, &[u8])) {
    send("master", "AuthenticateMessage", &field(1, pid.as_bytes()));
    let (session, told) = by.next(AUTHENTICATEE, "AuthenticationMechanismsMessage");
    assert!(session.starts_with("crammd5-authenticator-session("), "{session}");
    assert_eq!(told, field(1, b"CRAM-MD5"));
    send(&session, "AuthenticationStartMessage", &[field(1, b"CRAM-MD5"), field(2, b"")].concat());
    let (_, told) = by.next(AUTHENTICATEE, "AuthenticationStepMessage");
    let answer = format!("ann {}", base::cram_md5(secret, &told[2..]));
    send(&session, "AuthenticationStepMessage", &field(1, answer.as_bytes()));
}

/// Number of wrong answers after which the next log-in must wait for two seconds.
const GUESSES: usize = 102;

#[test]
fn answers_that_come_too_soon_do_not_prolong_the_delay() {
    let directory = Directory::new("authentication-delay");
    let known = directory.write("known", r#"{"credentials": [{"principal": "ann", "secret": "s3cret"}]}"#);
    let more = ["--authenticate".to_owned(), format!("--credentials={known}")];
    let log = directory.path().join("m.log");
    let mut master = Daemon::start(&log, &master_words(&directory, free_port(), &more), &[]);
    let driver = Driver::start(&master.address().expect("the master runs"));
    let pid = format!("scheduler-1@{}", driver.address);
    // An attempt over the same connection ends the one before, whose answer was not checked.
    let mut stream = TcpStream::connect(&driver.master).unwrap();
    let mut attempt = |secret: &[u8]| {
        converse(&driver, &pid, secret, |to, name, body| driver.send_over(&mut stream, AUTHENTICATEE, to, name, body));
    };
    until("the wrong answers are refused", || {
        attempt(b"wrong");
        driver.count("AuthenticationFailedMessage") >= GUESSES
    });
    until("the right answer is accepted", || {
        attempt(b"s3cret");
        driver.count("AuthenticationCompletedMessage") > 0
    });
    let metrics = call(&driver.master, "GET", "/metrics/snapshot").expect("the metrics");
    assert!(metrics["security/delayed_logins"].as_f64() >= Some(1.0), "{metrics}");
    let failed = driver.count("AuthenticationFailedMessage") as f64;
    assert_eq!(metrics["security/failed_logins"].as_f64(), Some(failed), "only what was checked has failed");
}
