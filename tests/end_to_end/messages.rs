//! What commands and daemons say of mistakes: each names the item, the rule, and what to do.

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{Daemon, Directory, free_port, request, tepui, until};

/// The words of a master that keeps nothing, in a directory.
fn master_words(directory: &Directory, more: &[String]) -> Vec<String> {
    let words = ["master", "--ip=127.0.0.1", "--registry=in_memory"].map(str::to_owned);
    let own = [format!("--port={}", free_port()), format!("--work_dir={}", directory.join("m"))];
    words.into_iter().chain(own).chain(more.iter().cloned()).collect()
}

fn agent_words(directory: &Directory, master: &str, more: &[&str]) -> Vec<String> {
    let words = ["agent", "--ip=127.0.0.1", "--port=0", "--launcher=posix"].map(str::to_owned);
    let own = [
        format!("--master={master}"),
        format!("--work_dir={}", directory.join("a")),
        format!("--runtime_dir={}", directory.join("r")),
    ];
    words.into_iter().chain(own).chain(more.iter().map(|word| (*word).to_owned())).collect()
}

/// The error of a command that fails.
#[track_caller]
fn error_of(words: &[&str]) -> String {
    let output = tepui().args(words).run();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{words:?}: {error}");
    error
}

#[track_caller]
fn names(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_cluster_without_agents_and_names_that_are_not_known() {
    let directory = Directory::new("messages-empty");
    let log = directory.path().join("m.log");
    let mut master = Daemon::start(&log, &master_words(&directory, &[]), &[]);
    let address = master.address().expect("the master runs");
    let at = format!("--master={address}");
    names(&error_of(&["execute", &at, "--command=true"]), &["there are no agents", "--wait"]);
    names(&error_of(&["tasks", "-f", "nosuch", &at]), &["no framework has the id or the name 'nosuch'"]);
    names(&error_of(&["agents", "drain", "nosuch", &at]), &["no agent is 'nosuch'"]);

    // Calls of the API: the texts of Mesos on the wire, and the name in the log.
    let post = |body: &str| request(&address, "POST", "/api/v1", body).unwrap();
    names(&post(r#"{"type": "DRAIN_AGNT"}"#), &["400 Bad Request", "Expecting 'type' to be present"]);
    let logged = || std::fs::read_to_string(&log).unwrap();
    until("the log names the call", || logged().contains("\"DRAIN_AGNT\"; is DRAIN_AGENT meant?"));
    let unknown = post(r#"{"type": "DRAIN_AGENT", "drain_agent": {"agent_id": {"value": "none-S0"}}}"#);
    names(&unknown, &["400 Bad Request", "Unknown agent 'none-S0'"]);
}

#[test]
fn a_command_that_is_pointed_at_an_agent_says_so() {
    let directory = Directory::new("messages-agent");
    let mut master = Daemon::start(&directory.path().join("m.log"), &master_words(&directory, &[]), &[]);
    let address = master.address().expect("the master runs");
    let words = agent_words(&directory, &address, &["--resources=cpu:4;mem:64;disk:64"]);
    let log = directory.path().join("a.log");
    let mut agent = Daemon::start(&log, &words, &[]);
    let agent = format!("--master={}", agent.address().expect("the agent runs"));
    for words in [&["agents", &agent] as &[&str], &["execute", &agent, "--command=true"]] {
        names(&error_of(words), &["is it an agent? Name the master with --master"]);
    }
    // The agent's resources have a name that is nearly one of those that frameworks ask for.
    names(&std::fs::read_to_string(&log).unwrap(), &["'cpu' is a resource of its own", "is 'cpus' meant?"]);
}

#[test]
fn wrong_passwords_and_paths_relative_to_the_working_directory() {
    let directory = Directory::new("messages-password");
    directory.write("known.json", r#"{"credentials": [{"principal": "ann", "secret": "s3cret"}]}"#);
    directory.write("acls.json", r#"{"permissive": true}"#);
    let more = ["--authenticate_http_readonly", "--credentials=known.json", "--acls=acls.json"].map(str::to_owned);
    let mut command = tepui();
    command.current_dir(directory.path()).args(master_words(&directory, &more));
    let mut master = Process::start(&mut command);
    let line = master.line(Stream::Stderr, &["master listens on "]);
    let at = format!("--master={}", line.rsplit(' ').next().unwrap());
    let wrong = error_of(&["agents", &at, "--principal=ann", "--secret=wrong"]);
    names(&wrong, &["rejects --principal and --secret", "the secret is wrong"]);
    names(&error_of(&["agents", &at]), &["authenticates clients: give --principal and --secret"]);
    let right = tepui().args(["agents", &at, "--principal=ann", "--secret=s3cret"]).run();
    assert!(right.status.success(), "{right:?}");
    master.kill();
}

#[test]
fn flags_of_daemons_say_which_form_is_expected() {
    let directory = Directory::new("messages-flags");
    let work_dir = format!("--work_dir={}", directory.join("m"));
    names(&error_of(&["master", &work_dir, "--offer_timeout=5"]), &["--offer_timeout", "write it with a unit"]);
}
