//! Tests masters that elect their leader in a real etcd and keep their registry there.
//!
//! Requires etcd; where it is missing the tests report that.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::etcd_server::Etcd;
use crate::group::Group;
use crate::support::{Directory, call, free_port, request, tepui, until};

/// The shortest lease that etcd grants.
const LEASE: Duration = Duration::from_secs(2);

/// Starts a proxy between masters and etcd. While `cuts` holds, it forwards the next transaction, and closes the
/// connection instead of returning its answer. It ends with the test's process.
fn proxy(port: u16, cuts: Arc<AtomicBool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
            let (mut answers, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            let is_cut = Arc::new(AtomicBool::new(false));
            let (cuts, cut) = (cuts.clone(), is_cut.clone());
            std::thread::spawn(move || {
                pass(client, server, |bytes| {
                    if bytes.starts_with(b"POST /v3/kv/txn") && cuts.swap(false, Ordering::SeqCst) {
                        cut.store(true, Ordering::SeqCst);
                    }
                    true
                });
            });
            std::thread::spawn(move || {
                let closing = to_client.try_clone().unwrap();
                pass(answers.try_clone().unwrap(), &mut to_client, |_| !is_cut.load(Ordering::SeqCst));
                let _ = closing.shutdown(Shutdown::Both);
                let _ = answers.flush();
                let _ = answers.shutdown(Shutdown::Both);
            });
        }
    });
    address
}

/// Copies until one side ends, or `goes_on` returns `false` for the data.
fn pass(mut from: impl Read, mut to: impl Write, goes_on: impl Fn(&[u8]) -> bool) {
    let mut bytes = [0; 64 << 10];
    while let Ok(count) = from.read(&mut bytes) {
        if count == 0 || !goes_on(&bytes[..count]) || to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// Returns the number of agents in a master's registry.
fn admitted(address: &str) -> usize {
    let registry = call(address, "GET", "/registrar(1)/registry").unwrap_or_default();
    registry["slaves"]["slaves"].as_array().map_or(0, Vec::len)
}

#[test]
fn an_agent_a_task_and_the_registry_outlive_a_killed_leader() {
    let directory = Directory::new("etcd-kill");
    let Some(etcd) = Etcd::start(&directory) else { return };
    let mut group = Group::of_etcd(directory, &etcd, 3).started();
    let first = group.leader();
    (0..3).filter(|index| *index != first).for_each(|index| {
        until("another master names the leader", || group.follows(index, first));
    });
    group.set_weight(first, "2");
    let agents = |group: &Group| group.command(&["agents", "-o", "json"]).1;
    let _agent = group.agent();
    until("the agent is registered", || agents(&group).contains("\"active\": true"));
    let marker = group.directory.join("done");
    let (file, again) = (group.directory.join("go"), marker.clone());
    let words = format!("until [ -e {file} ]; do sleep 0.05; done; touch {again}");
    let mut execute = tepui();
    execute.args(["execute", "--resources=cpus:1;mem:32", "--master", &group.list()]).arg(format!("--command={words}"));
    let mut execute = execute.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let tasks = |group: &Group| group.command(&["tasks", "-o", "json"]).1;
    until("the task runs", || tasks(&group).contains("TASK_RUNNING"));
    assert_eq!(admitted(&group.address(first)), 1);

    group.end(first, "-KILL");
    let second = group.leader();
    assert_eq!(group.weight(second), Some(2.0));
    assert_eq!(admitted(&group.address(second)), 1);
    until("the agent is registered again", || agents(&group).contains("\"active\": true"));
    until("the task is known", || tasks(&group).contains("TASK_RUNNING"));
    group.set_weight(second, "3");
    group.start(first, &[]);
    until("the first master follows", || group.follows(first, second));
    std::fs::write(&file, "").unwrap();
    until("the task ends", || std::path::Path::new(&marker).exists());
    until("its framework knows it", || execute.try_wait().unwrap().is_some());
    // All masters are killed at once, without time to write anything.
    (0..3).for_each(|index| group.end(index, "-KILL"));
    (0..3).for_each(|index| group.start(index, &[]));
    let third = group.leader();
    assert_eq!(group.weight(third), Some(3.0));
    assert!(etcd.keys().contains("/tepui/registry/weight/r"), "{}", etcd.keys());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a lease is over when real time has passed")]
fn a_leader_that_was_stopped_for_longer_than_its_lease_does_not_act_any_more() {
    let directory = Directory::new("etcd-stopped");
    let Some(mut etcd) = Etcd::start(&directory) else { return };
    let mut group = Group::of_etcd(directory, &etcd, 2).started();
    let first = group.leader();
    let mut stopped = group.masters[first].take().unwrap();
    stopped.signal("-STOP");
    let began = Instant::now();
    let address = group.address(first);
    let call = r#"{"type": "SUBSCRIBE", "subscribe": {"framework_info": {"user": "u", "name": "n"}}}"#;
    let asked = std::thread::spawn(move || request(&address, "POST", "/api/v1/scheduler", call));
    let second = group.leader();
    group.set_weight(second, "2");
    // The stopped master cannot ask etcd either: it must detect by itself that it no longer leads.
    etcd.stop();
    until("the lease is over", || began.elapsed() > LEASE);
    stopped.signal("-CONT");
    let answer = asked.join().unwrap().unwrap_or_default();
    assert!(answer.is_empty(), "{answer}");
    until("it ends", || stopped.ended());
    assert!(group.log(first).contains("has lost leadership"), "{}", group.log(first));
}

#[test]
fn a_leader_that_ends_lets_another_one_lead_at_once() {
    let directory = Directory::new("etcd-terminate");
    let Some(etcd) = Etcd::start(&directory) else { return };
    // With this lease a master that waits for its end does not lead before the test gives up.
    let mut group = Group::of_etcd(directory, &etcd, 2);
    (0..2).for_each(|index| group.start(index, &["--etcd_lease_timeout=1hrs"]));
    let first = group.leader();
    group.set_weight(first, "2");
    group.end(first, "-TERM");
    let second = group.leader();
    assert_eq!(group.weight(second), Some(2.0));
}

#[test]
fn a_leader_outlives_an_outage_that_its_lease_outlives() {
    let directory = Directory::new("etcd-outage");
    let Some(mut etcd) = Etcd::start(&directory) else { return };
    let mut group = Group::of_etcd(directory, &etcd, 2);
    (0..2).for_each(|index| group.start(index, &["--etcd_lease_timeout=1mins"]));
    let leader = group.leader();
    group.set_weight(leader, "2");
    etcd.stop();
    until("it says so", || group.log(leader).contains("cannot be renewed"));
    assert!(group.leads(leader));
    etcd.resume();
    group.set_weight(leader, "3");
    assert!(group.leads(leader) && group.follows(1 - leader, leader));
    assert!(!group.masters[leader].as_mut().unwrap().ended());
}

#[test]
fn a_leader_without_etcd_ends_and_the_group_comes_back_with_it() {
    let directory = Directory::new("etcd-away");
    let Some(mut etcd) = Etcd::start(&directory) else { return };
    let mut group = Group::of_etcd(directory, &etcd, 2).started();
    let leader = group.leader();
    group.set_weight(leader, "2");
    etcd.stop();
    let mut master = group.masters[leader].take().unwrap();
    until("it ends", || master.ended());
    let log = group.log(leader);
    assert!(log.contains("cannot be renewed: etcd does not answer") && log.contains("has lost leadership"), "{log}");
    etcd.resume();
    let next = group.leader();
    assert_eq!(group.weight(next), Some(2.0));
}

#[test]
fn what_is_wrong_with_etcd_is_named() {
    let directory = Directory::new("etcd-wrong");
    let Some(etcd) = Etcd::start(&directory) else { return };
    let mut group = Group::of_etcd(directory, &etcd, 4);
    let nothing = format!("--etcd=http://127.0.0.1:{}", free_port());
    group.start_with(0, &[&nothing]);
    until("a missing etcd is named", || group.log(0).contains("etcd does not answer: cannot connect to 127.0.0.1:"));
    let answer = request(&group.address(0), "GET", "/redirect", "").unwrap_or_default();
    assert!(answer.contains("No leader elected"), "{answer}");
    // Another server instead of etcd.
    let other = format!("--etcd=http://{}", group.address(0));
    group.start_with(1, &[&other]);
    until("another server is named", || group.log(1).contains("it is not an etcd from version 3.4 on"));
    // etcd without authentication.
    let secret = group.directory.write("credential", "root:s3cret\n");
    group.start(2, &[&format!("--etcd_credential={secret}")]);
    let mut master = group.masters[2].take().unwrap();
    until("it ends", || master.ended());
    let log = group.log(2);
    assert!(log.contains("denies access to this master: etcd returned an error: ") && !log.contains("s3cret"), "{log}");
    // Both etcd and ZooKeeper are given.
    group.start(3, &["--zk=zk://h:1/m"]);
    let mut master = group.masters[3].take().unwrap();
    until("it ends", || master.ended());
    assert!(group.log(3).contains("'--etcd': excludes --zk"), "{}", group.log(3));
}

#[test]
fn a_value_that_no_master_has_written_keeps_masters_from_leading() {
    let directory = Directory::new("etcd-foreign");
    let Some(etcd) = Etcd::start(&directory) else { return };
    assert!(etcd.control(&["put", "/tepui/leader", "hello"]).0);
    let group = Group::of_etcd(directory, &etcd, 1).started();
    until("it is named", || group.log(0).contains("the key '/tepui/leader' in etcd holds no MasterInfo with a lease"));
    assert!(!group.leads(0));
    assert!(etcd.control(&["del", "/tepui/leader"]).0);
    assert_eq!(group.leader(), 0);
}

#[test]
fn a_leader_whose_key_is_deleted_writes_nothing_any_more() {
    let directory = Directory::new("etcd-deleted");
    let Some(etcd) = Etcd::start(&directory) else { return };
    let mut group = Group::of_etcd(directory, &etcd, 1);
    group.start(0, &["--etcd_lease_timeout=1hrs"]);
    group.leader();
    group.set_weight(0, "2");
    assert!(etcd.control(&["del", "/tepui/leader"]).0);
    let answer = request(&group.address(0), "PUT", "/weights", r#"[{"role": "r", "weight": 3}]"#).unwrap_or_default();
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut master = group.masters[0].take().unwrap();
    until("it ends", || master.ended());
    assert!(group.log(0).contains("'/tepui/leader' in etcd is gone"), "{}", group.log(0));
    group.start(0, &[]);
    group.leader();
    assert_eq!(group.weight(0), Some(2.0));
}

#[test]
fn a_write_whose_answer_is_lost_is_made_once() {
    let directory = Directory::new("etcd-lost");
    let Some(etcd) = Etcd::start(&directory) else { return };
    let cuts = Arc::new(AtomicBool::new(false));
    let mut group = Group::of_etcd(directory, &etcd, 1);
    group.etcd = Some(proxy(etcd.port, cuts.clone()));
    group.start(0, &["--etcd_lease_timeout=1mins"]);
    group.leader();
    // Number of changes of the owner's key.
    let writes = || {
        let (_, text) = etcd.control(&["get", "/tepui/owner", "--write-out=json"]);
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        found["kvs"][0]["version"].as_u64().unwrap()
    };
    group.set_weight(0, "2");
    let before = writes();
    cuts.store(true, Ordering::SeqCst);
    group.set_weight(0, "3");
    assert!(!cuts.load(Ordering::SeqCst), "no answer was lost");
    assert_eq!((writes(), group.weight(0)), (before + 1, Some(3.0)));
    group.set_weight(0, "4");
    assert_eq!((writes(), group.weight(0)), (before + 2, Some(4.0)));
}

#[test]
fn more_changes_than_a_transaction_takes() {
    let directory = Directory::new("etcd-many");
    let Some(etcd) = Etcd::start(&directory) else { return };
    let mut group = Group::of_etcd(directory, &etcd, 1).started();
    group.leader();
    // More than etcd accepts at once, and more than are read at once.
    let weights: Vec<_> =
        (0..300).map(|number| serde_json::json!({ "role": format!("r{number}"), "weight": 2 })).collect();
    let body = serde_json::Value::from(weights).to_string();
    let answer = request(&group.address(0), "PUT", "/weights", &body).unwrap_or_default();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    group.end(0, "-KILL");
    group.start(0, &[]);
    group.leader();
    let weights = call(&group.address(0), "GET", "/weights").unwrap();
    assert_eq!(weights.as_array().map(Vec::len), Some(300));
}

#[test]
fn users_and_passwords() {
    let directory = Directory::new("etcd-users");
    let Some(etcd) = Etcd::start(&directory) else { return };
    for words in [
        &["user", "add", "root:s3cret"][..],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "tepui:other"],
        &["role", "add", "tepui"],
        &["role", "grant-permission", "--prefix=true", "tepui", "readwrite", "/tepui/"],
        &["user", "grant-role", "tepui", "tepui"],
        &["auth", "enable"],
    ] {
        assert!(etcd.control(words).0, "{words:?}");
    }
    let mut group = Group::of_etcd(directory, &etcd, 3);
    let wrong = group.directory.write("wrong", "tepui:wrong");
    group.start(0, &[]);
    group.start(1, &[&format!("--etcd_credential={wrong}")]);
    for index in [0, 1] {
        let mut master = group.masters[index].take().unwrap();
        until("it ends", || master.ended());
        assert!(
            group.log(index).contains("denies access to this master: etcd returned an error: "),
            "{}",
            group.log(index)
        );
    }
    let right = group.directory.write("right", "tepui:other\n");
    group.start(2, &[&format!("--etcd_credential={right}")]);
    assert_eq!(group.leader(), 2);
    group.set_weight(2, "2");
    assert!(!group.log(2).contains("other"), "{}", group.log(2));
}

#[test]
fn certificates() {
    let directory = Directory::new("etcd-tls");
    let place = directory.join("c");
    let made = tepui().args(["tls", "init", &place, "--host=127.0.0.1", "--host=client"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let Some(etcd) = Etcd::start_with(&directory, Some(place.clone())) else { return };
    let mut group = Group::of_etcd(directory, &etcd, 3);
    let authority = format!("--etcd_ca_file={place}/ca.pem");
    let own = [format!("--etcd_cert_file={place}/client.pem"), format!("--etcd_key_file={place}/client-key.pem")];
    group.start(0, &[&authority, &own[0], &own[1]]);
    assert_eq!(group.leader(), 0);
    group.set_weight(0, "2");
    group.start(1, &[&authority]);
    until("a missing certificate is reported", || group.log(1).contains("etcd does not answer: "));
    group.start(2, &[&own[0], &own[1]]);
    until("an unknown authority is reported", || group.log(2).contains("UnknownIssuer"));
    assert_eq!(group.leader(), 0);
}

#[test]
fn a_registry_moves_to_etcd_and_back_as_a_file() {
    let directory = Directory::new("etcd-move");
    let Some(etcd) = Etcd::start(&directory) else { return };
    let mut group = Group::of_etcd(directory, &etcd, 2);
    // A single master; its file is taken over.
    group.start_with(0, &[]);
    group.leader();
    group.set_weight(0, "2");
    group.end(0, "-TERM");
    group.start(0, &[]);
    group.leader();
    assert!(group.log(0).contains("is in etcd from now on"), "{}", group.log(0));
    assert!(group.directory.path().join("m0/registry.moved").exists());
    assert_eq!(group.weight(0), Some(2.0));
    group.start(1, &[]);
    until("the second master follows", || group.follows(1, 0));
    group.set_weight(0, "3");
    let (succeeded, said) = group.command(&["masters", "status"]);
    assert!(!succeeded && said.contains("--etcd"), "{said}");
    let file = group.directory.join("registry.json");
    let (succeeded, said) = group.command(&["masters", "backup", &file]);
    assert!(succeeded, "{said}");
    (0..2).for_each(|index| group.end(index, "-TERM"));
    // The registry is moved to another prefix, through a file.
    let work_dir = format!("--work_dir={}", group.directory.join("m1"));
    let (succeeded, said) = group.command(&["masters", "restore", &file, &work_dir]);
    assert!(succeeded && said.contains("etcd"), "{said}");
    let url = format!("--etcd={}/other", etcd.address());
    group.start_with(1, &[&url, "--etcd_lease_timeout=2secs"]);
    let second = group.leader();
    assert_eq!(group.weight(second), Some(3.0));
    assert!(etcd.keys().contains("/other/registry/weight/r"), "{}", etcd.keys());
}
