//! State of a master that is not a member yet: it finds the others, and forms the group with them or is admitted.
//!
//! A group forms when each of `--peers` knows all others, with equal `--peers`, and each has reported recently that it
//! knows the same. A master that has become a member of a group meanwhile would not report that, and two groups with
//! the same `--peers` would be possible. All masters then derive the same members, so it does not matter which one is
//! first: the one that has formed the group admits the others.

use std::collections::{BTreeMap, BTreeSet};

use base::Time;
use sha2::{Digest, Sha256};

use super::{MembershipState, Note, Peer, Phase, Settings};
use crate::entry::State;
use crate::link::Numbers;
use crate::log::InitialState;
use crate::members::{Cluster, Configuration};
use crate::message::{Body, Hello, Welcome};

/// Maximum number of senders that are remembered: more than a group has members.
const SENDERS_MAX: usize = 16;

/// State of a master that is not a member.
#[derive(Debug, Default)]
pub(super) struct Forming {
    /// Other masters of `--peers` that have announced themselves.
    announced: BTreeMap<String, Announcement>,
    /// Members of a group that this master does not belong to.
    others: Option<Configuration>,
    /// Addresses of masters that send messages for members: this one was added, and does not know it yet. It announces
    /// itself to them as well, because the masters of `--peers` may have left the group.
    senders: BTreeSet<String>,
}

/// Announcement of a master that is not a member.
#[derive(Clone, Copy, Debug)]
struct Announcement {
    disk: u64,
    brings_registry: bool,
    /// Hash of the disks of all of `--peers`, if that master knows them.
    founders_hash: Option<u64>,
    at: Time,
}

impl Forming {
    /// Records that a member takes this master for a member.
    pub(super) fn add_sender(&mut self, address: &str) {
        if self.senders.len() < SENDERS_MAX {
            self.senders.insert(address.to_owned());
        }
    }

    pub(super) fn membership_state(&self, settings: &Settings) -> MembershipState {
        match &self.others {
            Some(others) => MembershipState::Stranger { members: others.addresses() },
            None => {
                let missing = settings.peers.iter().filter(|peer| **peer != settings.address);
                let missing = missing.filter(|peer| !self.announced.contains_key(*peer)).cloned().collect();
                MembershipState::Forming { missing }
            }
        }
    }
}

impl Peer {
    /// Announces this master to all others.
    pub(super) fn send_hellos(&mut self) {
        let mut others = self.settings.peers.clone();
        let members = match &self.phase {
            Phase::Outside(Forming { others, .. }) => others.as_ref(),
            Phase::Inside(member) => Some(&member.configuration),
            Phase::Removed(_) => None,
        };
        others.extend(members.into_iter().flat_map(|known| &known.members).map(|member| member.address.clone()));
        if let Phase::Outside(forming) = &self.phase {
            others.extend(forming.senders.iter().cloned());
        }
        others.sort();
        others.dedup();
        others.retain(|other| *other != self.settings.address);
        others.into_iter().for_each(|other| self.send_hello(other));
    }

    /// Handles the announcement of a master.
    pub(super) fn handle_hello(&mut self, (from, is_known, numbers): (String, bool, Numbers), hello: Hello, now: Time) {
        match &mut self.phase {
            Phase::Outside(forming) if hello.configuration.is_none() && self.settings.peers.contains(&from) => {
                if self.settings.peers != hello.peers {
                    let (ours, theirs) = (self.settings.peers.join(","), hello.peers.join(","));
                    self.output.notes.push(Note::UnequalPeers { address: from, theirs, ours });
                    return;
                }
                // There is a group already, and its members may not reach this other master.
                if let Some(others) = &forming.others {
                    let answer = others.not_member_answer();
                    return self.send_as(None, from, answer);
                }
                let Hello { disk, brings_registry, founders_hash, .. } = hello;
                forming.announced.insert(from, Announcement { disk, brings_registry, founders_hash, at: now });
                self.form(now);
            }
            Phase::Inside(member) => {
                let (cluster, answer) = match member.configuration.with_disk(hello.disk) {
                    Some(known) if known.address == from => {
                        if hello.configuration.is_some_and(|number| number >= member.configuration.number) {
                            return;
                        }
                        // It does not know the group yet, so this is the first message of its process. Messages to it
                        // must not be for a former process at its address, which had another disk.
                        self.links.meet(&from, numbers);
                        let configuration = member.configuration.clone();
                        let initial_state = member.decided();
                        (self.cluster, Body::Welcome(Box::new(Welcome { configuration, initial_state })))
                    }
                    _ => {
                        // A removed member keeps its disk until it exits, and cannot be added with it.
                        if hello.configuration.is_none() {
                            member.record_joining(&from, hello.disk, now);
                        }
                        if member.configuration.at(&from).is_some() {
                            self.output.notes.push(Note::Stranger(from.clone()));
                        }
                        (self.cluster.filter(|_| is_known), member.configuration.not_member_answer())
                    }
                };
                self.send_as(cluster, from, answer);
            }
            _ => {}
        }
    }

    /// Returns the disks of all of `--peers` by their addresses, once they are known.
    fn founders(&self) -> Option<Vec<(String, u64)>> {
        let Phase::Outside(forming) = &self.phase else { return None };
        let founder = |peer: &String| match *peer == self.settings.address {
            true => Some((peer.clone(), self.disk)),
            false => forming.announced.get(peer).map(|announcement| (peer.clone(), announcement.disk)),
        };
        self.settings.peers.iter().map(founder).collect()
    }

    /// Returns the hash of the disks of all of `--peers`, once they are known.
    pub(super) fn founders_hash(&self) -> Option<u64> {
        self.founders().map(|founders| hash(&founders))
    }

    /// Forms the group if all others are known, and know the same.
    fn form(&mut self, now: Time) {
        let (Phase::Outside(forming), Some(founders)) = (&self.phase, self.founders()) else { return };
        let (own, founders_hash) = (self.settings.registry.is_some(), hash(&founders));
        let agrees = |announcement: &Announcement| {
            announcement.founders_hash == Some(founders_hash) && now.since(announcement.at) <= self.settings.lease
        };
        if !forming.announced.values().all(agrees) {
            return;
        }
        let bringing = |peer: &&String| match **peer == self.settings.address {
            true => own,
            false => forming.announced.get(*peer).is_some_and(|announcement| announcement.brings_registry),
        };
        let bringing: Vec<&str> = self.settings.peers.iter().filter(bringing).map(|peer| &**peer).collect();
        match bringing.len() {
            // All masters derive the same group.
            0 => {}
            // The others cannot form it: they do not have the registry.
            1 if own => {}
            1 => return,
            _ => {
                self.output.notes.push(Note::SeveralRegistries(bringing.join(" and ")));
                return;
            }
        }
        // The others may not know this master yet, and a member sends them only answers.
        self.send_hellos();
        let (configuration, cluster) = Configuration::first(founders);
        self.cluster = Some(cluster);
        let entries = self.settings.registry.take().unwrap_or_default();
        self.enter(configuration, InitialState::of(State { entries, ..State::default() }), now);
    }

    /// Enters the configuration of a member that admits this master, or that has a newer one.
    pub(super) fn handle_welcome(&mut self, cluster: Option<Cluster>, welcome: Welcome, now: Time) {
        let Welcome { configuration, initial_state } = welcome;
        let own = configuration.with_disk(self.disk).map(|member| member.number);
        let is_entered = match &self.phase {
            Phase::Outside(_) => own.is_some(),
            // A member keeps its number as long as it has its disk.
            Phase::Inside(member) => configuration.number > member.configuration.number && own == Some(member.own()),
            Phase::Removed(_) => false,
        };
        if is_entered && cluster.is_some() {
            self.cluster = cluster;
            self.enter(configuration, initial_state, now);
        }
    }

    /// Handles the answer of a member that does not know this master.
    pub(super) fn handle_not_member(&mut self, configuration: Configuration) {
        match &mut self.phase {
            Phase::Outside(forming) => forming.others = Some(configuration),
            Phase::Inside(member)
                if configuration.number > member.configuration.number
                    && configuration.with_disk(self.disk).is_none() =>
            {
                self.phase = Phase::Removed(configuration);
                self.output.anew = true;
            }
            _ => {}
        }
    }
}

/// Returns a hash of the founders of a group.
fn hash(founders: &[(String, u64)]) -> u64 {
    let mut hash = Sha256::new();
    for (address, disk) in founders {
        hash.update(address);
        hash.update([0]);
        hash.update(disk.to_le_bytes());
    }
    hash.finalize().first_chunk().copied().map(u64::from_le_bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::log::Log;
    use crate::message::Envelope;
    use crate::records::Stored;

    fn member() -> Peer {
        let peers = ["a:1", "b:1", "c:1"].map(str::to_owned);
        let (configuration, cluster) =
            Configuration::first((1..).zip(peers.clone()).map(|(disk, peer)| (peer, disk)).collect());
        let settings = Settings {
            address: "a:1".to_owned(),
            peers: peers.to_vec(),
            lease: Duration::from_secs(1),
            secret: None,
            info: Vec::new(),
            registry: None,
        };
        let disk = configuration.at("a:1").unwrap().disk;
        let log = Log::from_initial_state(InitialState::default());
        Peer::start(
            settings,
            Stored { disk, starts: 1, cluster: Some(cluster), configuration: Some(configuration), log },
            Time::EPOCH,
        )
    }

    fn outside(disk: u64, address: &str) -> Peer {
        let settings = Settings {
            address: address.to_owned(),
            peers: ["a:1", "b:1", "c:1"].map(str::to_owned).to_vec(),
            lease: Duration::from_secs(1),
            secret: None,
            info: Vec::new(),
            registry: None,
        };
        Peer::start(settings, Stored::new(disk), Time::EPOCH)
    }

    /// Delivers the messages of all peers to each other until there are none.
    fn exchange(peers: &mut [Peer], now: Time) {
        loop {
            let outputs = peers.iter_mut().flat_map(|peer| peer.take().messages);
            let messages: Vec<(String, Vec<u8>)> = outputs.collect();
            if messages.is_empty() {
                return;
            }
            for (to, bytes) in messages {
                for peer in peers.iter_mut().filter(|peer| peer.settings.address == to) {
                    peer.receive(&bytes, now).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_group_forms_when_all_know_the_same_and_have_said_so_a_moment_ago() {
        let mut former = [outside(1, "a:1"), outside(2, "b:1"), outside(3, "c:1")];
        former.iter_mut().for_each(Peer::send_hellos);
        // The master at b:1 becomes a member of some group after this, and the disks of the others are replaced.
        let late: Vec<_> = former[1].take().messages;
        let mut peers = [outside(4, "a:1"), outside(6, "c:1")];
        for second in 0..3 {
            let now = Time::from_secs(second);
            for (to, bytes) in &late {
                for peer in peers.iter_mut().filter(|peer| peer.settings.address == *to) {
                    peer.receive(bytes, now).unwrap();
                }
            }
            peers.iter_mut().for_each(Peer::send_hellos);
            exchange(&mut peers, now);
            assert!(
                peers.iter().all(|peer| peer.membership_state() == MembershipState::Forming { missing: Vec::new() }),
                "{second}"
            );
        }
        // Now with all three masters.
        let mut peers = [outside(4, "a:1"), outside(5, "b:1"), outside(6, "c:1")];
        for _ in 0..2 {
            peers.iter_mut().for_each(Peer::send_hellos);
            exchange(&mut peers, Time::EPOCH);
        }
        assert!(peers.iter().all(|peer| peer.membership_state() == MembershipState::Member));
    }

    /// Checks that messages of members are refused from a process that does not know the group's identity.
    #[test]
    fn a_member_believes_members_only() {
        let mut peer = member();
        let known = peer.cluster;
        let configuration = Configuration { number: 9, ..peer.members().unwrap().0.clone() };
        let numbers = crate::link::Numbers { disk: 3, start: 1, to: 0, number: 1 };
        let welcome = Welcome { configuration, initial_state: InitialState::default() };
        let bodies = [Body::NotMember { configuration: 9, members: Vec::new() }, Body::Welcome(Box::new(welcome))];
        for body in bodies.clone() {
            let envelope = Envelope { cluster: None, from: "b:1".to_owned(), to: "a:1".to_owned(), numbers, body };
            peer.receive(&envelope.encode(None), Time::EPOCH).unwrap();
            assert_eq!((peer.membership_state(), peer.members().unwrap().0.number), (MembershipState::Member, 1));
        }
        let [stranger, _] = bodies;
        let envelope =
            Envelope { cluster: known, from: "b:1".to_owned(), to: "a:1".to_owned(), numbers, body: stranger };
        peer.receive(&envelope.encode(None), Time::EPOCH).unwrap();
        assert_eq!(peer.membership_state(), MembershipState::Removed { members: String::new() });
    }

    /// Checks that a newer configuration in which this master's disk has another number is not entered.
    #[test]
    fn a_member_keeps_its_number() {
        let mut peer = member();
        let disks = [("b:1", 2), ("c:1", 3), ("z:1", 1)].map(|(address, disk)| (address.to_owned(), disk));
        let configuration = Configuration { number: 9, ..Configuration::first(disks.to_vec()).0 };
        let numbers = crate::link::Numbers { disk: 3, start: 1, to: 0, number: 1 };
        let body = Body::Welcome(Box::new(Welcome { configuration, initial_state: InitialState::default() }));
        let (from, to) = ("b:1".to_owned(), "a:1".to_owned());
        let envelope = Envelope { cluster: peer.cluster, from, to, numbers, body };
        peer.receive(&envelope.encode(None), Time::EPOCH).unwrap();
        assert_eq!((peer.membership_state(), peer.members().unwrap().0.number), (MembershipState::Member, 1));
    }

    #[test]
    fn a_member_of_another_group_is_named_and_ignored() {
        let mut peer = member();
        let configuration = Configuration { number: 9, ..peer.members().unwrap().0.clone() };
        let (_, other) =
            Configuration::first((5..).zip(["b:1", "c:1", "d:1"]).map(|(disk, at)| (at.to_owned(), disk)).collect());
        let numbers = crate::link::Numbers { disk: 3, start: 1, to: 0, number: 1 };
        let body = Body::Welcome(Box::new(Welcome { configuration, initial_state: InitialState::default() }));
        let (from, to) = ("b:1".to_owned(), "a:1".to_owned());
        let envelope = Envelope { cluster: Some(other), from, to, numbers, body };
        peer.receive(&envelope.encode(None), Time::EPOCH).unwrap();
        assert_eq!((peer.membership_state(), peer.members().unwrap().0.number), (MembershipState::Member, 1));
        let notes: Vec<String> = peer.take().notes.iter().map(ToString::to_string).collect();
        assert_eq!(notes, ["the master at b:1 belongs to another group: its messages are ignored"]);
    }
}
