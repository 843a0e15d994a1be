//! Tests the messages of commands and daemons about mistakes: each names the item, the rule, and what to do.

use std::os::unix::process::CommandExt;

use crate::process::{Process, Stream, ToItsEnd};
use crate::support::{Daemon, Directory, binary, free_port, request, tepui, until};

/// A user without rights.
const NOBODY: u32 = 65534;

/// Returns the arguments of a master that keeps no registry, in a directory.
fn master_words(directory: &Directory, more: &[String]) -> Vec<String> {
    let words = ["master", "--ip=127.0.0.1", "--registry=in_memory"].map(str::to_owned);
    let own = [format!("--port={}", free_port()), format!("--work_dir={}", directory.join("m"))];
    words.into_iter().chain(own).chain(more.iter().cloned()).collect()
}

fn agent_words(directory: &Directory, master: &str, more: &[&str]) -> Vec<String> {
    let words = ["agent", "--ip=127.0.0.1", "--port=0"].map(str::to_owned);
    let own = [
        format!("--master={master}"),
        format!("--work_dir={}", directory.join("a")),
        format!("--runtime_dir={}", directory.join("r")),
    ];
    words.into_iter().chain(own).chain(more.iter().map(|word| (*word).to_owned())).collect()
}

/// Returns the error of a command that must fail.
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

    // Calls of the API: responses have Mesos's texts, and the log has the name.
    let post = |body: &str| request(&address, "POST", "/api/v1", body).unwrap();
    names(&post(r#"{"type": "DRAIN_AGNT"}"#), &["400 Bad Request", "Expecting 'type' to be present"]);
    let logged = || std::fs::read_to_string(&log).unwrap();
    until("the log names the call", || logged().contains("\"DRAIN_AGNT\"; did you mean DRAIN_AGENT?"));
    let unknown = post(r#"{"type": "DRAIN_AGENT", "drain_agent": {"agent_id": {"value": "none-S0"}}}"#);
    names(&unknown, &["400 Bad Request", "Unknown agent 'none-S0'"]);
}

#[test]
fn a_command_that_is_pointed_at_an_agent_says_so() {
    let directory = Directory::new("messages-agent");
    let mut master = Daemon::start(&directory.path().join("m.log"), &master_words(&directory, &[]), &[]);
    let address = master.address().expect("the master runs");
    let words = agent_words(&directory, &address, &["--launcher=posix", "--resources=cpu:4;mem:64;disk:64"]);
    let log = directory.path().join("a.log");
    let mut agent = Daemon::start(&log, &words, &[]);
    let place = agent.address().expect("the agent runs");
    let agent = format!("--master={place}");
    let said = error_of(&["agents", &agent]);
    assert_eq!(said.matches("is it an agent? Name the master with --master").count(), 1, "{said}");
    // Frameworks are refused for good, with and without jobs.
    let job = directory.write("job.toml", "name = 'a'\ncommand = 'true'\n");
    let stages = directory.write("stages.toml", "name = 'a'\n[[stage]]\nname = 's'\ncommand = 'true'\n");
    for words in [
        &["execute", "--command=true"] as &[&str],
        &["framework", "binpack"],
        &["framework", "binpack", &job],
        &["framework", "dag", &stages],
        &["framework", "quality"],
        &["framework", "video"],
        &["framework", "video", "--encoding=json"],
    ] {
        let said = error_of(&[words, &[&agent]].concat());
        let rule = format!("the framework was refused: {place} is an agent: give the address of its master instead");
        assert_eq!(said.matches(&rule).count(), 1, "{words:?}: {said}");
    }
    // The agent's resources have a name that is similar to one that frameworks request.
    names(
        &std::fs::read_to_string(&log).unwrap(),
        &["'cpu' is not a resource that frameworks request", "did you mean 'cpus'?"],
    );
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
fn masters_without_a_port_have_that_of_mesos() {
    // There is no master at this name, whatever else runs on this machine.
    let said = error_of(&["agents", "-m", "none.invalid"]);
    names(&said, &["no master at none.invalid:5050: start a cluster with `tepui local`"]);
}

#[test]
fn isolation_that_needs_root_says_so() {
    if !nix::unistd::geteuid().is_root() {
        println!("not run: as root only a test can be another user");
        return;
    }
    let directory = Directory::new("messages-root");
    // A copy of the program that every user may run.
    let program = directory.join("tepui");
    if std::fs::hard_link(binary(), &program).is_err() {
        std::fs::copy(binary(), &program).unwrap();
    }
    std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let start = |more: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(agent_words(&directory, "127.0.0.1:1", more)).current_dir("/").uid(NOBODY).gid(NOBODY);
        Process::start(command.env("MESOS_SYSTEMD_RUNTIME_DIRECTORY", "/nowhere"))
    };
    let output = start(&["--isolation=cgroups/cpu"]).output();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    let advice = "needs root; without root use --launcher=posix and --isolation=posix/cpu,posix/mem";
    names(&said, &["the launcher linux, with --isolation=cgroups/cpu, ", advice]);
    start(&["--launcher=posix", "--isolation=posix/cpu,posix/mem"]).line(Stream::Stderr, &["agent listens on "]);
}

#[test]
fn flags_of_daemons_say_which_form_is_expected() {
    let directory = Directory::new("messages-flags");
    let work_dir = format!("--work_dir={}", directory.join("m"));
    names(&error_of(&["master", &work_dir, "--offer_timeout=5"]), &["--offer_timeout", "write it with a unit"]);
}
