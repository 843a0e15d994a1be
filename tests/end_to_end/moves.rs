//! Tests the move of a cluster from a ZooKeeper of Debian's to peers and back, with a file of `tepui masters backup`.
//! Its agent and the running task stay.
//!
//! Requires Java and ZooKeeper; where they are missing the test reports that.

use crate::group::Group;
use crate::master_list::{Server, agent, is_registered};
use crate::process::{Process, Stream};
use crate::support::{Daemon, call, tepui, until};

/// Starts a master whose registry is in ZooKeeper, at the first address of the group.
fn zookeeper_master(group: &Group, name: &str, url: &str) -> Daemon {
    let words = vec![
        "master".to_owned(),
        "--ip=127.0.0.1".to_owned(),
        "--hostname=127.0.0.1".to_owned(),
        format!("--port={}", group.ports[0]),
        format!("--work_dir={}", group.directory.join(name)),
        format!("--zk={url}"),
        "--quorum=1".to_owned(),
        "--zk_session_timeout=2secs".to_owned(),
    ];
    let master = Daemon::start(&group.directory.path().join(format!("{name}.log")), &words, &[]);
    until("it leads", || group.leads(0));
    master
}

fn end(mut master: Daemon) {
    master.signal("-TERM");
    until("it ends", || master.ended());
}

fn run(words: &[&str]) {
    let output = tepui().args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the ids of a master's agents, and of the running tasks.
fn seen(master: &str) -> Option<(Vec<String>, Vec<String>)> {
    let ids = |path: &str, key: &str, is_wanted: fn(&serde_json::Value) -> bool| {
        let all = call(master, "GET", path)?[key].as_array()?.clone();
        Some(all.iter().filter(|row| is_wanted(row)).map(|row| row["id"].to_string()).collect::<Vec<_>>())
    };
    let agents = ids("/slaves", "slaves", |agent| agent["active"] == true)?;
    Some((agents, ids("/tasks", "tasks", |task| task["state"] == "TASK_RUNNING")?))
}

#[test]
fn a_cluster_moves_from_zookeeper_to_peers_and_back_with_its_tasks() {
    let mut group = Group::of_peers("moves");
    let Some(zookeeper) = Server::start(&group.directory) else {
        return println!("not run: it needs Java and ZooKeeper");
    };
    let before = zookeeper_master(&group, "before", &zookeeper.url());
    group.set_weight(0, "2");
    let (masters, first_master) = (group.list(), group.address(0));
    let (_agent, agent_address) = agent(&group.directory, &masters);
    until("the agent is registered", || is_registered(&agent_address));
    let words = ["execute", "--name=stays", "--resources=cpus:1;mem:32", "--command=exec sleep 1000", "--master"];
    let mut execute = Process::start(tepui().args(words).arg(&masters));
    execute.line(Stream::Stdout, &["TASK_RUNNING"]);
    let all = seen(&first_master).unwrap();
    assert_eq!((all.0.len(), all.1.len()), (1, 1));

    let file = group.directory.join("to-peers.json");
    run(&["masters", "backup", &file, "--master", &zookeeper.url()]);
    end(before);
    run(&["masters", "restore", &file, &format!("--work_dir={}", group.directory.join("m1"))]);
    (0..3).for_each(|index| group.start(index, &[]));
    let leader = group.leader();
    assert_eq!(group.weight(leader), Some(2.0));
    until("the agent and its task are known to the peers", || seen(&group.address(leader)).as_ref() == Some(&all));
    group.set_weight(leader, "3");

    let file = group.directory.join("to-zookeeper.json");
    run(&["masters", "backup", &file, "--master", &masters]);
    group.masters.iter_mut().filter_map(Option::take).for_each(end);
    run(&["masters", "restore", &file, &format!("--work_dir={}", group.directory.join("after"))]);
    let _after = zookeeper_master(&group, "after", &format!("{}-again", zookeeper.url()));
    assert_eq!(group.weight(0), Some(3.0));
    until("the agent and its task are known again", || seen(&first_master).as_ref() == Some(&all));
}
