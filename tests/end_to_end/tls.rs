//! Tests TLS of real daemons: certificates of `tepui tls init`, curl, openssl, tasks, downgrade, required certificates
//! of clients, reload.

use std::process::{Command, Output};

use serde_json::json;

use crate::process::ToItsEnd;
use crate::support::{Daemon, Directory, free_port, tepui, until};

/// A cluster with TLS.
pub struct Secure {
    master: Daemon,
    _agent: Daemon,
    /// Address of the master.
    pub address: String,
    pub directory: Directory,
}

/// Creates certificates for 127.0.0.1 in a new directory.
fn certificates(name: &str) -> Directory {
    let directory = Directory::new(name);
    init(&directory, "c", &["--host=127.0.0.1,localhost", "--host=client"]);
    directory
}

/// Creates certificates and keys in a directory below that of the test.
pub fn init(directory: &Directory, into: &str, more: &[&str]) -> Output {
    let output = tepui().args(["tls", "init", &directory.join(into)]).args(more).run();
    assert!(output.status.success(), "{output:?}");
    output
}

/// Returns the flags of a daemon for the certificate of 127.0.0.1 in `c`.
pub fn tls_flags(directory: &Directory) -> Vec<String> {
    let file = |name: &str| directory.join(&format!("c/{name}.pem"));
    vec![
        format!("--tls_cert_file={}", file("127.0.0.1")),
        format!("--tls_key_file={}", file("127.0.0.1-key")),
        format!("--tls_ca_file={}", file("ca")),
        "--tls_verify_server_cert".to_owned(),
    ]
}

impl Secure {
    /// Starts a master and an agent with TLS and these additional flags.
    pub fn start(name: &str, more: &[&str]) -> Secure {
        let directory = certificates(name);
        let flags = |words: &[String]| {
            let tls = tls_flags(&directory).into_iter();
            words.iter().cloned().chain(tls).chain(more.iter().map(|flag| (*flag).to_owned())).collect::<Vec<_>>()
        };
        let port = free_port();
        let words = ["master".into(), "--ip=127.0.0.1".into(), format!("--port={port}"), "--registry=in_memory".into()];
        let mut master = Daemon::start(&directory.path().join("m.log"), &flags(&words), &[]);
        let address = master.address().expect("the master runs");
        let words = [
            "agent".to_owned(),
            "--ip=127.0.0.1".to_owned(),
            "--port=0".to_owned(),
            format!("--master={address}"),
            format!("--work_dir={}", directory.join("a")),
            format!("--runtime_dir={}", directory.join("r")),
            "--launcher=posix".to_owned(),
            "--isolation=posix/cpu,posix/mem".to_owned(),
            "--resources=cpus:4;mem:1024;disk:1024".to_owned(),
        ];
        let mut agent = Daemon::start(&directory.path().join("a.log"), &flags(&words), &[]);
        agent.address().expect("the agent runs");
        let secure = Secure { master, _agent: agent, address, directory };
        until("the agent is registered", || secure.curl(&["-s"], "/slaves").contains("\"active\":true"));
        secure
    }

    /// Returns the path of a certificate or key.
    pub fn file(&self, name: &str) -> String {
        self.directory.join(&format!("c/{name}.pem"))
    }

    /// Runs curl over TLS, with the client's certificate, and returns its output.
    fn curl(&self, flags: &[&str], path: &str) -> String {
        let url = format!("https://{}{path}", self.address);
        let files = [self.file("ca"), self.file("client"), self.file("client-key")];
        let with = ["--cacert", &files[0], "--cert", &files[1], "--key", &files[2]];
        String::from_utf8(Command::new("curl").args(flags).args(with).arg(url).run().stdout).unwrap()
    }

    /// Runs a command of tepui with the client's certificate, for the master at `scheme`.
    fn tepui(&self, scheme: &str, words: &[&str]) -> Output {
        let mut command = tepui();
        command.args(words).arg(format!("--master={scheme}{}", self.address));
        for (name, file) in [("CA_FILE", "ca"), ("CERT_FILE", "client"), ("KEY_FILE", "client-key")] {
            command.env(format!("LIBPROCESS_SSL_{name}"), self.file(file));
        }
        command.run()
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_cluster_over_tls_alone() {
    let cluster = Secure::start("tls-alone", &["--tls_require_client_cert"]);
    // All messages of master and agent, and those of the task, are sent over TLS with certificates of clients.
    let output = cluster.tepui("https://", &["execute", "--command=echo over-tls", "--name=t"]);
    assert!(output.status.success() && text(&output).contains("over-tls"), "{}", text(&output));
    // A pod's executor makes calls over connections of its own.
    let amount = |name: &str, value: f64| json!({"name": name, "type": "SCALAR", "scalar": {"value": value}});
    let resources = json!([amount("cpus", 0.1), amount("mem", 32.0)]);
    let pod = json!({"tasks": [{
        "name": "in-pod", "task_id": {"value": "in-pod"}, "agent_id": {"value": ""}, "resources": resources,
        "command": {"value": "true"},
        "check": {"type": "COMMAND", "interval_seconds": 0.1, "command": {"command": {"value": "true"}}},
    }]});
    let output = cluster.tepui("https://", &["execute", &format!("--task_group={pod}")]);
    assert!(output.status.success() && text(&output).contains("TASK_FINISHED"), "{}", text(&output));
    let agents = text(&cluster.tepui("https://", &["agents"]));
    assert!(agents.contains("1 agent"), "{agents}");
    assert!(cluster.curl(&["-s", "--tlsv1.2", "--tls-max", "1.2"], "/version").contains("1.11.0"));

    let plain = Command::new("curl").args(["-s", "-i", &format!("http://{}/version", cluster.address)]).run();
    assert!(text(&plain).contains("400 Bad Request") && text(&plain).contains("use https://"), "{}", text(&plain));
    for scheme in ["http://", ""] {
        let refused = text(&cluster.tepui(scheme, &["agents"]));
        assert!(refused.contains("use https://"), "{refused}");
    }
    let url = format!("https://{}/version", cluster.address);
    let without = Command::new("curl").args(["-s", "--cacert", &cluster.file("ca"), &url]).run();
    assert!(!without.status.success(), "no certificate is required");
    let untrusted = tepui().args(["agents", &format!("--master=https://{}", cluster.address)]).run();
    assert!(text(&untrusted).contains("docs/security.md"), "{}", text(&untrusted));
}

#[test]
fn openssl_agrees_and_changed_certificates_are_served() {
    let cluster = Secure::start("tls-openssl", &[]);
    let handshake = |ca: &str| {
        let with = ["s_client", "-connect", &cluster.address, "-CAfile", ca, "-verify_return_error", "-brief"];
        let output = Command::new("openssl").args(with).stdin(std::process::Stdio::null()).run();
        (output.status.success(), text(&output))
    };
    let (agreed, said) = handshake(&cluster.file("ca"));
    assert!(agreed && said.contains("Verification: OK"), "{said}");
    // Another authority's certificate in the same files.
    init(&cluster.directory, "new", &["--host=127.0.0.1"]);
    for name in ["127.0.0.1.pem", "127.0.0.1-key.pem"] {
        let path = |directory: &str| cluster.directory.path().join(directory).join(name);
        std::fs::copy(path("new"), path("c")).unwrap();
    }
    until("the new certificate is served", || handshake(&cluster.directory.join("new/ca.pem")).0);
    assert!(!handshake(&cluster.file("ca")).0);
}

#[test]
fn plain_and_tls_side_by_side_while_a_cluster_moves_over() {
    let cluster = Secure::start("tls-downgrade", &["--tls_support_downgrade"]);
    for scheme in ["https://", "http://", ""] {
        let output = cluster.tepui(scheme, &["agents"]);
        assert!(text(&output).contains("1 agent"), "{}", text(&output));
    }
    // The agent starts without TLS, as it was before.
    let words = [
        "agent".to_owned(),
        "--ip=127.0.0.1".to_owned(),
        "--port=0".to_owned(),
        format!("--master={}", cluster.address),
        format!("--work_dir={}", cluster.directory.join("b")),
        format!("--runtime_dir={}", cluster.directory.join("s")),
        "--launcher=posix".to_owned(),
        "--isolation=posix/cpu,posix/mem".to_owned(),
        "--resources=cpus:4;mem:1024;disk:1024".to_owned(),
    ];
    let _plain = Daemon::start(&cluster.directory.path().join("b.log"), &words, &[]);
    until("both agents are registered", || text(&cluster.tepui("", &["agents"])).contains("2 agents"));
    cluster.master.signal("-TERM");
}

#[test]
fn settings_that_contradict_are_errors_at_the_start() {
    let directory = certificates("tls-settings");
    let start = |flags: &[&str], variables: &[(&str, &str)]| {
        let work_dir = format!("--work_dir={}", directory.join("m"));
        let words = ["master", "--ip=127.0.0.1", "--port=0", &work_dir];
        let output = tepui().args(words).args(flags).envs(variables.iter().copied()).run();
        assert!(!output.status.success());
        text(&output)
    };
    let said = start(&[], &[("LIBPROCESS_SSL_ENABLED", "true")]);
    assert!(said.contains("'LIBPROCESS_SSL_ENABLED' turns TLS on, which needs 'LIBPROCESS_SSL_CERT_FILE'"), "{said}");
    let said = start(&["--tls_cert_file=/nowhere/cert.pem", "--tls_key_file=/nowhere/key.pem"], &[]);
    assert!(said.contains("cannot read '/nowhere/cert.pem'"), "{said}");
}

#[test]
fn init_overwrites_nothing() {
    let directory = certificates("tls-init");
    let read = |name: &str| std::fs::read(directory.path().join("c").join(name)).unwrap();
    let (authority, certificate) = (read("ca.pem"), read("127.0.0.1.pem"));
    let again = tepui().args(["tls", "init", &directory.join("c"), "--host=127.0.0.1"]).run();
    assert!(!again.status.success() && text(&again).contains("--force overwrites it"), "{}", text(&again));
    init(&directory, "c", &["--host=other.example", "--json"]);
    init(&directory, "c", &["--host=127.0.0.1", "--force"]);
    assert!(read("ca.pem") == authority && read("127.0.0.1.pem") != certificate);
    let (ca, other) = (directory.join("c/ca.pem"), directory.join("c/other.example.pem"));
    let verified = Command::new("openssl").args(["verify", "-x509_strict", "-CAfile", &ca, &other]).run();
    assert!(verified.status.success(), "{}", text(&verified));
    let bad = tepui().args(["tls", "init", &directory.join("c"), "--host=a/b"]).run();
    assert!(text(&bad).contains("'a/b' is neither a host name nor an IP address"), "{}", text(&bad));
}
