//! Tests masters that need no ZooKeeper: they elect their leader and store the registry by themselves.

use std::process::Command;

use crate::group::Group;
use crate::small_disk::SmallDisk;
use crate::support::{Daemon, call, free_port, get, request, tepui, until, wait_for};

#[test]
fn the_registry_outlives_each_leader() {
    let mut group = Group::of_peers("peers-kill").started();
    let first = group.leader();
    group.set_weight(first, "2");
    group.end(first, "-KILL");
    let second = group.leader();
    assert_eq!(group.weight(second), Some(2.0));
    group.set_weight(second, "3");
    group.start(first, &[]);
    until("the first master follows", || group.follows(first, second));
    // All masters are killed at once, without time to write anything.
    (0..3).for_each(|index| group.end(index, "-KILL"));
    (0..3).for_each(|index| group.start(index, &[]));
    let third = group.leader();
    assert_eq!(group.weight(third), Some(3.0));
}

/// With such a wait before the second attempt, the first one must reach a master that accepts it.
#[test]
fn an_agent_registers_with_each_next_leader_at_the_first_try() {
    let mut group = Group::of_peers("peers-agent").started();
    let words =
        ["agent", "--ip=127.0.0.1", "--hostname=127.0.0.1", "--launcher=posix", "--resources=cpus:1;mem:64;disk:64"];
    let own = [
        "--registration_backoff_factor=1days".to_owned(),
        format!("--port={}", free_port()),
        format!("--master={}", group.list()),
        format!("--work_dir={}", group.directory.join("a")),
        format!("--runtime_dir={}", group.directory.join("a-run")),
    ];
    let words: Vec<String> = words.map(str::to_owned).into_iter().chain(own).collect();
    let log = group.directory.path().join("a.log");
    let _agent = Daemon::start(&log, &words, &[]);
    for _ in 0..4 {
        let leader = group.leader();
        until("the agent is registered", || {
            let state = call(&group.address(leader), "GET", "/state").unwrap_or_default();
            state["activated_slaves"] == 1.0
        });
        group.end(leader, "-KILL");
        group.start(leader, &[]);
    }
}

#[test]
fn a_leader_that_was_stopped_does_not_answer_any_more() {
    let mut group = Group::of_peers("peers-stopped").started();
    let first = group.leader();
    let stopped = group.masters[first].take().unwrap();
    stopped.signal("-STOP");
    let address = group.address(first);
    let asked = std::thread::spawn(move || request(&address, "GET", "/state", ""));
    let second = group.leader();
    group.set_weight(second, "2");
    stopped.signal("-CONT");
    let answer = asked.join().unwrap().unwrap_or_default();
    assert!(answer.is_empty(), "{answer}");
    let mut stopped = stopped;
    until("it ends", || stopped.ended());
    assert!(group.log(first).contains("has lost leadership"), "{}", group.log(first));
}

#[test]
fn a_leader_that_ends_hands_over() {
    let mut group = Group::of_peers("peers-terminate").started();
    let first = group.leader();
    group.set_weight(first, "2");
    let mut master = group.masters[first].take().unwrap();
    master.signal("-TERM");
    let second = group.leader();
    until("it has ended", || master.ended());
    assert_eq!(group.weight(second), Some(2.0));
    assert!(!group.log(first).contains("no other master leads"), "{}", group.log(first));
}

#[test]
fn masters_are_added_and_removed_with_commands() {
    let mut group = Group::of_peers("peers-members").started();
    let leader = group.leader();
    group.set_weight(leader, "2");
    let (succeeded, said) = group.command(&["masters", "status"]);
    assert!(succeeded && said.contains(&format!("{}  leads", group.address(leader))), "{said}");
    until("both others follow", || group.command(&["masters", "status"]).1.matches("follows").count() == 2);
    let (succeeded, said) = group.command(&["masters", "remove", &group.address((leader + 1) % 3)]);
    assert!(!succeeded && said.contains("a group has at least 3 members"), "{said}");

    let peers = group.list();
    group.ports.push(free_port());
    group.masters.push(None);
    let fourth = group.address(3);
    let (succeeded, said) = group.command(&["masters", "add", &fourth]);
    assert!(!succeeded && said.contains(&format!("no master at {fourth} asks to join")), "{said}");
    group.start(3, &[&format!("--peers={peers}"), &format!("--peer_address={fourth}")]);
    until("it asks to join", || {
        group.command(&["masters", "status"]).1.contains(&format!("tepui masters add {fourth}"))
    });
    assert!(group.log(3).contains("is not a member of the group"), "{}", group.log(3));
    assert!(group.command(&["masters", "add", &fourth]).0);
    until("it follows", || group.follows(3, leader));

    let gone = (leader + 1) % 3;
    assert!(group.command(&["masters", "remove", &group.address(gone)]).0);
    let mut removed = group.masters[gone].take().unwrap();
    until("it ends", || removed.ended());
    assert!(group.log(gone).contains("was removed from the group"), "{}", group.log(gone));
    let (succeeded, said) = group.command(&["masters", "remove", &group.address(leader)]);
    assert!(!succeeded && said.contains("a group has at least 3 members"), "{said}");
    // The new member counts: it and another one are a majority. It may not have received the removal yet.
    until("the lead is handed over", || {
        let (succeeded, said) = group.command(&["masters", "transfer", &fourth]);
        assert!(succeeded || said.contains("does not answer this master"), "{said}");
        succeeded
    });
    let others = || (0..4).filter(|index| *index != gone && *index != leader);
    let next = wait_for("another master leads", || others().find(|index| group.leads(*index)));
    assert_eq!((next, group.weight(next)), (3, Some(2.0)), "{}", group.log(next));
}

#[test]
fn a_master_with_an_empty_disk_is_no_member() {
    let mut group = Group::of_peers("peers-empty").started();
    let leader = group.leader();
    let other = (leader + 1) % 3;
    group.end(other, "-KILL");
    std::fs::remove_dir_all(group.directory.join(&format!("m{other}"))).unwrap();
    group.start(other, &[]);
    until("it says so", || group.log(other).contains("this master is not a member of the group"));
    until("the leader says so", || group.log(leader).contains("if it has lost its disk"));
    assert!(group.leads(leader));
}

#[test]
fn what_keeps_a_group_from_forming_is_named() {
    let mut group = Group::of_peers("peers-unequal");
    let other = format!("{},{},127.0.0.1:1", group.address(0), group.address(1));
    group.start(0, &[]);
    group.start(1, &[&format!("--peers={other}")]);
    until("unequal peers are named", || group.log(0).contains("has --peers=127.0.0.1:1,127.0.0.1:"));
    assert!(group.log(0).contains("waiting for"), "{}", group.log(0));
    group.end(1, "-KILL");
    let secret = group.directory.write("secret", "0123456789abcdef");
    group.start(1, &[&format!("--peer_secret={secret}")]);
    until("a missing secret is named", || {
        group.log(0).contains("its sender does not have the secret of --peer_secret")
    });
}

#[test]
fn a_member_of_another_group_is_named_and_changes_nothing() {
    let mut group = Group::of_peers("peers-foreign").started();
    let leader = group.leader();
    group.set_weight(leader, "2");
    let mut others = Group::of_peers("peers-foreign-other").started();
    let theirs = others.leader();
    others.set_weight(theirs, "7");
    // A disk of the other group is started at the address of a member of this group.
    let place = (leader + 1) % 3;
    group.end(place, "-KILL");
    (0..3).for_each(|index| others.end(index, "-KILL"));
    let (from, to) = (others.directory.join(&format!("m{theirs}")), group.directory.join(&format!("m{place}")));
    std::fs::remove_dir_all(&to).unwrap();
    std::fs::rename(from, to).unwrap();
    group.start(place, &[]);
    until("it is named", || {
        let said = format!("the master at {} belongs to another group: its messages are ignored", group.address(place));
        group.log(leader).contains(&said)
    });
    assert!(group.leads(leader) && !group.leads(place));
    group.set_weight(leader, "3");
    assert_eq!(group.weight(leader), Some(3.0));
}

#[test]
fn a_group_with_a_secret_forms() {
    let mut group = Group::of_peers("peers-secret");
    let planted = "pl4nted-secret-of-peers";
    let secret = group.directory.write("secret", planted);
    for index in 0..3 {
        group.start(index, &[&format!("--peer_secret={secret}")]);
    }
    let leader = group.leader();
    group.set_weight(leader, "2");
    let ps = Command::new("ps").args(["-eww", "-o", "args"]).output().unwrap();
    let mut texts =
        vec![String::from_utf8_lossy(&ps.stdout).into_owned(), get(&group.address(leader), "/state").unwrap()];
    texts.extend((0..3).flat_map(|index| [group.log(index), get(&group.address(index), "/flags").unwrap()]));
    for text in texts {
        assert!(text.len() > 20 && !text.contains(planted), "{text}");
    }
}

#[test]
fn a_damaged_journal_is_refused_and_the_group_goes_on() {
    let mut group = Group::of_peers("peers-damaged");
    // With one of three gone, a pause of another one for the length of a lease ends the leader, and nothing restarts it
    // here.
    let patient = ["--peer_timeout=20secs"];
    (0..3).for_each(|index| group.start(index, &patient));
    let leader = group.leader();
    let other = (leader + 1) % 3;
    group.end(other, "-KILL");
    let path = group.directory.join(&format!("m{other}/peers/journal"));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[30] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    group.start(other, &patient);
    let mut master = group.masters[other].take().unwrap();
    until("it ends", || master.ended());
    assert!(group.log(other).contains("journal' is damaged at byte 8: the checksum of a record is wrong"));
    group.set_weight(leader, "2");
    assert_eq!(group.weight(leader), Some(2.0));
}

#[test]
fn the_registry_of_a_single_master_is_taken_over() {
    let mut group = Group::of_peers("peers-adopt");
    let words = ["master", "--ip=127.0.0.1"]
        .map(str::to_owned)
        .into_iter()
        .chain([format!("--port={}", group.ports[0]), format!("--work_dir={}", group.directory.join("m0"))]);
    let words: Vec<String> = words.collect();
    let mut alone = Daemon::start(&group.directory.path().join("alone.log"), &words, &[]);
    alone.address().expect("it runs");
    until("it leads", || group.leads(0));
    group.set_weight(0, "7");
    alone.signal("-TERM");
    until("it ends", || alone.ended());
    (0..3).for_each(|index| group.start(index, &[]));
    let leader = group.leader();
    assert_eq!(group.weight(leader), Some(7.0));
    until("the file is put away", || group.log(0).contains("is in the group of masters from now on"));
    assert!(group.directory.path().join("m0/registry.moved").exists());
}

#[test]
fn a_registry_moves_to_peers_and_back_as_a_file() {
    let mut group = Group::of_peers("peers-move");
    let alone = |group: &Group, name: &str| {
        let words = vec![
            "master".to_owned(),
            "--ip=127.0.0.1".to_owned(),
            format!("--port={}", group.ports[0]),
            format!("--work_dir={}", group.directory.join(name)),
        ];
        Daemon::start(&group.directory.path().join(format!("{name}.log")), &words, &[])
    };
    let mut before = alone(&group, "before");
    until("it leads", || group.leads(0));
    group.set_weight(0, "2");
    let (first, second) = (group.directory.join("first.json"), group.directory.join("second.json"));
    let command = |words: &[&str]| {
        let output = tepui().args(words).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let address = group.address(0);
    assert!(command(&["masters", "backup", &first, "--master", &address]).0);
    before.signal("-TERM");
    until("it ends", || before.ended());

    let work_dir = format!("--work_dir={}", group.directory.join("m1"));
    assert!(command(&["masters", "restore", &first, &work_dir]).0);
    let (succeeded, said) = command(&["masters", "restore", &first, &work_dir]);
    assert!(!succeeded && said.contains("already: name another --work_dir"), "{said}");
    (0..3).for_each(|index| group.start(index, &[]));
    let leader = group.leader();
    assert_eq!(group.weight(leader), Some(2.0));
    group.set_weight(leader, "3");
    let peers = group.list();
    assert!(command(&["masters", "backup", &second, "--master", &peers]).0);
    let (succeeded, said) = command(&["masters", "backup", &second, "--master", &peers]);
    assert!(!succeeded && said.contains("File exists"), "{said}");
    (0..3).for_each(|index| group.end(index, "-KILL"));
    let (succeeded, said) = command(&["masters", "restore", &second, &work_dir]);
    assert!(!succeeded && said.contains("belongs to a member of a group"), "{said}");

    assert!(command(&["masters", "restore", &second, &format!("--work_dir={}", group.directory.join("after"))]).0);
    let _after = alone(&group, "after");
    until("it leads", || group.leads(0));
    assert_eq!(group.weight(0), Some(3.0));
}

#[test]
fn a_full_disk_ends_one_master_and_not_the_group() {
    let mut group = Group::of_peers("peers-full");
    let place = group.directory.path().join("m0");
    let Some(disk) = SmallDisk::tmpfs_at("peers-full-disk", place) else { return };
    (0..3).for_each(|index| group.start(index, &[]));
    let mut leader = group.leader();
    let filling = disk.fill();
    // Each write is sent to all disks; if the master with the full one leads, another one replaces it.
    let mut full = group.masters[0].take().unwrap();
    until("it ends", || {
        let body = r#"[{"role": "r", "weight": 2}]"#;
        drop(request(&group.address(leader), "PUT", "/weights", body));
        full.ended()
    });
    let log = group.log(0);
    assert!(log.contains("the group's journal cannot be written: cannot write '"), "{log}");
    assert!(log.contains("No space left on device"), "{log}");
    leader = group.leader();
    group.set_weight(leader, "3");
    assert_eq!(group.weight(leader), Some(3.0));
    filling.remove();
    group.start(0, &[]);
    until("it follows again", || group.follows(0, leader));
}
