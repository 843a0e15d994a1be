//! Tests masters whose etcd is a cluster of three: members of it are killed, including its leader.
//!
//! Requires etcd; where it is missing the tests report that.

use crate::etcd_server::Etcd;
use crate::group::Group;
use crate::support::{Directory, request, until};

/// Returns the list of all members, in this order.
fn list<'e>(members: impl IntoIterator<Item = &'e Etcd>) -> String {
    members.into_iter().map(Etcd::address).collect::<Vec<_>>().join(",")
}

/// Returns the leader of etcd among the running members.
fn leader(members: &[Etcd], running: &[usize]) -> usize {
    let mut found = None;
    until("a member of etcd leads", || {
        found = running.iter().copied().find(|index| members[*index].leads());
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_leader_goes_on_while_more_than_half_of_etcd_does() {
    let directory = Directory::new("etcd-members");
    let Some(mut members) = Etcd::start_members(&directory, 3) else { return };
    let mut group = Group::of_etcd(directory, &members[0], 2);
    // etcd's leader is first, so that the masters have to ask another member.
    let first = leader(&members, &[0, 1, 2]);
    let order = [first, (first + 1) % 3, (first + 2) % 3];
    group.etcd = Some(list(order.map(|index| &members[index])));
    (0..2).for_each(|index| group.start(index, &["--etcd_lease_timeout=1mins"]));
    let leading = group.leader();
    group.set_weight(leading, "2");

    members[first].stop();
    group.set_weight(leading, "3");
    assert!(group.leads(leading));
    until("the other master follows", || group.follows(1 - leading, leading));
    // A member that has missed a write returns, and the next leader of etcd is killed.
    members[first].resume();
    let second = leader(&members, &order);
    members[second].stop();
    group.set_weight(leading, "4");
    assert!(group.leads(leading) && group.weight(leading) == Some(4.0));

    // One of three is not a majority: nothing is written, and the leader remains until its lease is over.
    let third = order.into_iter().find(|index| *index != second).unwrap();
    members[third].stop();
    until("it says so", || group.log(leading).contains("cannot be renewed"));
    assert!(group.leads(leading));
    members[third].resume();
    group.set_weight(leading, "5");
    members[second].resume();
    assert!(group.leads(leading) && !group.masters[leading].as_mut().unwrap().ended());
}

#[test]
fn another_master_leads_although_the_leader_of_etcd_has_died_with_the_first() {
    let directory = Directory::new("etcd-both");
    let Some(mut members) = Etcd::start_members(&directory, 3) else { return };
    let mut group = Group::of_etcd(directory, &members[0], 2);
    let first = leader(&members, &[0, 1, 2]);
    group.etcd = Some(list([&members[first], &members[(first + 1) % 3], &members[(first + 2) % 3]]));
    (0..2).for_each(|index| group.start(index, &[]));
    let leading = group.leader();
    group.set_weight(leading, "2");
    until("the other master follows", || group.follows(1 - leading, leading));

    members[first].stop();
    group.end(leading, "-KILL");
    let second = group.leader();
    assert_eq!(group.weight(second), Some(2.0));
    group.set_weight(second, "3");
    // A master starts while the first address of the list is dead.
    group.start(leading, &[]);
    until("the first master follows", || group.follows(leading, second));
    let other = [(first + 1) % 3, (first + 2) % 3];
    assert!(members[leader(&members, &other)].keys().contains("/tepui/registry/weight/r"));
}

#[test]
fn a_list_without_a_member_that_serves_is_reported_and_waited_for() {
    let directory = Directory::new("etcd-late");
    let Some(mut members) = Etcd::start_members(&directory, 3) else { return };
    members.iter_mut().for_each(Etcd::stop);
    let mut group = Group::of_etcd(directory, &members[0], 1);
    group.etcd = Some(list(&members));
    group.start(0, &[]);
    until("it is reported", || group.log(0).contains("cannot read the leading master from etcd at"));
    let answer = request(&group.address(0), "GET", "/redirect", "").unwrap_or_default();
    assert!(answer.contains("No leader elected"), "{answer}");
    // The last members of the list suffice.
    members[1].begin();
    members[2].resume();
    assert_eq!(group.leader(), 0);
}
