//! One member of the group: a core without I/O.
//!
//! The shell calls it with messages and with the time, and takes its output: it first makes the records durable, then
//! sends the messages, then examines what has changed. Election and replication are OmniPaxos's. This module adds the
//! forming of the group, leases, the numbering of writes, and the recovery of members that are behind.

mod forming;
mod member;
mod members;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::Time;

use crate::entry::{Change, Claim, Number, State};
use crate::link::Links;
use crate::log::{InitialState, Log, LogChange};
use crate::members::{ChangeError, Cluster, Configuration};
use crate::message::{Body, Envelope, Hello, MessageError, Secret};
use crate::records::Stored;

use forming::Forming;
use member::Membership;

/// Number of ticks in the length of a lease.
const TICKS: u32 = 10;

/// Settings of a peer, which the shell provides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address of this master, one of `peers`.
    pub address: String,
    /// Addresses of the masters that found the group, and by which later ones find it.
    pub peers: Vec<String>,
    /// Time for which members elect no other leader than the one that has their promise.
    pub lease: Duration,
    /// Secret that authenticates messages; `None` for no authentication.
    pub secret: Option<Secret>,
    /// `MasterInfo` of this master, as JSON, for the others.
    pub info: Vec<u8>,
    /// Entries of a registry, with which the group starts if it forms now. At most one master has such a registry.
    pub registry: Option<BTreeMap<String, Vec<u8>>>,
}

impl Settings {
    /// Returns the interval at which [`Peer::tick`] must be called.
    pub fn interval(&self) -> Duration {
        self.lease / TICKS
    }
}

/// Relation of a master to its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembershipState {
    /// The group has not formed: some masters have not sent a message yet.
    Forming {
        /// Addresses of these masters.
        missing: Vec<String>,
    },
    /// The group has formed without this master.
    Stranger {
        /// Addresses of the members.
        members: String,
    },
    /// This master was a member, and was removed.
    Removed {
        /// Addresses of the members.
        members: String,
    },
    /// This master is a member.
    Member,
}

/// The leader, as far as this member knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leader {
    /// There is no leader, or none that more than half of the members follow.
    Unknown,
    /// Another member leads.
    Other(Claim),
    /// This process leads. It may answer clients until [`Peer::lease`].
    Own,
}

/// A condition to report to the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// The group has formed, or its members have changed.
    #[error("the members of the group are {0}")]
    Members(String),
    /// A master has other `--peers` than this one.
    #[error(
        "the master at {address} has --peers={theirs}, and this one --peers={ours}: a group forms when they are equal"
    )]
    UnequalPeers {
        /// Address of that master.
        address: String,
        /// `--peers` of that master.
        theirs: String,
        /// `--peers` of this master.
        ours: String,
    },
    /// Several masters bring a registry into the group.
    #[error("{0} have a registry each: keep one, and move the file 'registry.redb' of the others away")]
    SeveralRegistries(String),
    /// A member of another group has sent a message.
    #[error("the master at {0} belongs to another group: its messages are ignored")]
    Foreign(String),
    /// A master has the address of a member, but is none.
    #[error(
        "the master at {0} is not a member of the group; if it has lost its disk, remove it and add it again with 'tepui masters'"
    )]
    Stranger(String),
}

/// Output of a peer, which the shell carries out in this order.
#[derive(Debug, Default)]
pub struct Output {
    /// Changes of the log that must be made durable.
    pub changes: Vec<LogChange>,
    /// Whether more than the log has changed: then all of [`Peer::stored`] must be made durable, which includes the
    /// changes.
    pub anew: bool,
    /// Messages to send, with the addresses of their receivers.
    pub messages: Vec<(String, Vec<u8>)>,
    /// Conditions to log.
    pub notes: Vec<Note>,
}

/// A member, or a master that is to become one.
pub struct Peer {
    settings: Settings,
    disk: u64,
    starts: u64,
    cluster: Option<Cluster>,
    /// Number of entries after which the log is compacted.
    entries_max: usize,
    links: Links,
    phase: Phase,
    output: Output,
}

enum Phase {
    Outside(Forming),
    Inside(Box<Membership>),
    Removed(Configuration),
}

impl Peer {
    /// Starts a master with the content of its disk.
    pub fn start(mut settings: Settings, stored: Stored, now: Time) -> Peer {
        // Members compare their lists of peers.
        settings.peers.sort();
        let Stored { disk, starts, cluster, configuration, log } = stored;
        let phase = match configuration {
            None => Phase::Outside(Forming::default()),
            Some(configuration) => match configuration.with_disk(disk).map(|member| member.number) {
                Some(own) => {
                    // Earlier promises may have been forgotten. A member keeps them from one configuration to the next
                    // one, whose log has none at first.
                    let may_have_promised = log.has_promised() || configuration.number > 1;
                    let wait = if may_have_promised { now + settings.lease } else { Time::EPOCH };
                    Phase::Inside(Box::new(Membership::new((&settings, starts), configuration, own, log, wait)))
                }
                None => Phase::Removed(configuration),
            },
        };
        let links = Links::new(disk, starts);
        let entries_max = member::ENTRIES_MAX;
        Peer { settings, disk, starts, cluster, entries_max, links, phase, output: Output::default() }
    }

    /// Compacts the log after this many entries, instead of after some thousands: for short runs.
    pub fn compact_after(&mut self, entries: usize) {
        self.entries_max = entries;
        if let Phase::Inside(member) = &mut self.phase {
            member.entries_max = entries;
        }
    }

    /// Advances the time. Call it every [`Settings::interval`].
    pub fn tick(&mut self, now: Time) {
        match &mut self.phase {
            Phase::Outside(_) => self.send_hellos(),
            Phase::Inside(member) => {
                member.tick(now);
                if member.leases.is_waiting(now) {
                    // This makes the process known to the others.
                    self.send_hellos();
                }
                self.advance(now);
            }
            Phase::Removed(_) => {}
        }
    }

    /// Handles a message.
    ///
    /// # Errors
    /// The message cannot be decoded. Messages that can be decoded and do not match are ignored.
    pub fn receive(&mut self, bytes: &[u8], now: Time) -> Result<(), MessageError> {
        let envelope = Envelope::decode(bytes, self.settings.secret.as_ref())?;
        if envelope.to != self.settings.address || envelope.from == self.settings.address {
            return Ok(());
        }
        if self.cluster.is_some() && envelope.cluster.is_some() && self.cluster != envelope.cluster {
            self.output.notes.push(Note::Foreign(envelope.from));
            return Ok(());
        }
        if let Phase::Outside(forming) = &mut self.phase
            && envelope.cluster.is_some()
            && matches!(envelope.body, Body::Log { .. } | Body::Ask { .. })
        {
            forming.add_sender(&envelope.from);
        }
        // Masters that do not know the group take no part in its protocol, and cannot fill the list of links.
        if envelope.cluster.is_some() && !self.links.admit(&envelope.from, envelope.numbers) {
            return Ok(());
        }
        let is_known = self.cluster.is_some() && self.cluster == envelope.cluster;
        let from = envelope.from;
        match (envelope.body, &mut self.phase) {
            (Body::Hello(hello), _) => self.handle_hello((from, is_known, envelope.numbers), hello, now),
            // A member accepts only messages of members.
            (Body::Welcome(welcome), _) if is_known || self.cluster.is_none() => {
                self.handle_welcome(envelope.cluster, *welcome, now);
            }
            (Body::NotMember { configuration, members }, _) if is_known || self.cluster.is_none() => {
                self.handle_not_member(Configuration::of_other_group(configuration, members));
            }
            (body, Phase::Inside(member)) if is_known => match member.receive(&from, body, now) {
                member::Received::Handled => self.advance(now),
                member::Received::Behind => self.send_hello(from),
            },
            _ => {}
        }
        Ok(())
    }

    /// Changes the registry by all of `changes`, or by none. Returns the number of the write, see [`Peer::written`].
    ///
    /// # Errors
    /// Another master leads.
    pub fn write(&mut self, changes: Vec<Change>, now: Time) -> Result<u64, ChangeError> {
        let Phase::Inside(member) = &mut self.phase else { return Err(ChangeError::NotLeading) };
        let number = member.write(changes)?;
        self.advance(now);
        Ok(number)
    }

    /// Returns the number of the last write of this process that is decided, or `None` if another process has taken the
    /// registry over.
    pub fn written(&self) -> Option<u64> {
        match &self.phase {
            Phase::Inside(member) => member.written(),
            _ => None,
        }
    }

    /// Returns the leader at a time.
    pub fn leader(&self, now: Time) -> Leader {
        match &self.phase {
            Phase::Inside(member) => member.leader(now),
            _ => Leader::Unknown,
        }
    }

    /// Returns the time until which this process may answer as the leader.
    pub fn lease(&self) -> Time {
        match &self.phase {
            Phase::Inside(member) => member.lease(),
            _ => Time::EPOCH,
        }
    }

    /// Returns the relation of this master to the group.
    pub fn membership_state(&self) -> MembershipState {
        match &self.phase {
            Phase::Outside(forming) => forming.membership_state(&self.settings),
            Phase::Inside(_) => MembershipState::Member,
            Phase::Removed(configuration) => MembershipState::Removed { members: configuration.addresses() },
        }
    }

    /// Returns the members that have granted this process a lease within its length.
    pub fn answering(&self, now: Time) -> BTreeSet<Number> {
        match &self.phase {
            Phase::Inside(member) => member.leases.answering(now),
            _ => BTreeSet::new(),
        }
    }

    /// Returns the addresses of masters that ask to join.
    pub fn joining(&self, now: Time) -> Vec<String> {
        match &self.phase {
            Phase::Inside(member) => member.joining(now),
            _ => Vec::new(),
        }
    }

    /// Returns the members, and the number of this one.
    pub fn members(&self) -> Option<(&Configuration, Number)> {
        match &self.phase {
            Phase::Inside(member) => Some((&member.configuration, member.own())),
            _ => None,
        }
    }

    /// Returns the number of entries of the configuration that were applied to the state.
    pub fn decided(&self) -> usize {
        match &self.phase {
            Phase::Inside(member) => member.applied(),
            _ => 0,
        }
    }

    /// Returns the state that the decided entries result in.
    pub fn state(&self) -> Option<&State> {
        match &self.phase {
            Phase::Inside(member) => Some(&member.state),
            _ => None,
        }
    }

    /// Adds the master at an address. It is a member once [`Peer::members`] contains it.
    ///
    /// # Errors
    /// The reason why it cannot be added.
    pub fn add(&mut self, address: &str, now: Time) -> Result<(), ChangeError> {
        self.change(now, |member, now| member.add(address, now))
    }

    /// Removes the member at an address.
    ///
    /// # Errors
    /// The reason why it cannot be removed.
    pub fn remove(&mut self, address: &str, now: Time) -> Result<(), ChangeError> {
        self.change(now, |member, now| member.remove(address, now))
    }

    /// Hands the lead over, to the member at an address or to any. This process does not lead from now on.
    ///
    /// # Errors
    /// This process does not lead, or there is no such member.
    pub fn transfer_leadership(&mut self, to: Option<&str>, now: Time) -> Result<(), ChangeError> {
        self.change(now, |member, now| member.transfer_leadership(to, now))
    }

    fn change(
        &mut self,
        now: Time,
        change: impl FnOnce(&mut Membership, Time) -> Result<(), ChangeError>,
    ) -> Result<(), ChangeError> {
        let Phase::Inside(member) = &mut self.phase else { return Err(ChangeError::NotLeading) };
        change(member, now)?;
        self.advance(now);
        Ok(())
    }

    /// Returns the output since the last call.
    pub fn take(&mut self) -> Output {
        std::mem::take(&mut self.output)
    }

    /// Returns the whole content of a new journal.
    pub fn stored(&self) -> Stored {
        let (configuration, log) = match &self.phase {
            Phase::Outside(_) => (None, Log::default()),
            Phase::Inside(member) => (Some(member.configuration.clone()), member.log()),
            Phase::Removed(configuration) => (Some(configuration.clone()), Log::default()),
        };
        Stored { disk: self.disk, starts: self.starts, cluster: self.cluster, configuration, log }
    }

    /// Applies what was decided, and collects the output.
    fn advance(&mut self, now: Time) {
        let Phase::Inside(member) = &mut self.phase else { return };
        let next = member.advance(now);
        let (changes, bodies) = member.take();
        self.output.changes.extend(changes);
        for (to, body) in bodies {
            self.send(to, body);
        }
        if let Some((configuration, state)) = next {
            self.enter(configuration, InitialState::of(state), now);
        }
    }

    /// Enters another configuration.
    fn enter(&mut self, configuration: Configuration, initial_state: InitialState, now: Time) {
        self.output.notes.push(Note::Members(configuration.addresses()));
        let own = configuration.with_disk(self.disk).map(|member| member.number);
        let phase = std::mem::replace(&mut self.phase, Phase::Outside(Forming::default()));
        self.phase = match (phase, own) {
            (_, None) => Phase::Removed(configuration),
            (Phase::Inside(member), Some(own)) => {
                debug_assert_eq!(own, member.own(), "the number of a disk does not change");
                Phase::Inside(Box::new(member.in_configuration(configuration, initial_state, now)))
            }
            (_, Some(own)) => {
                let log = Log::from_initial_state(initial_state);
                Phase::Inside(Box::new(Membership::new(
                    (&self.settings, self.starts),
                    configuration,
                    own,
                    log,
                    Time::EPOCH,
                )))
            }
        };
        if let Phase::Inside(member) = &mut self.phase {
            member.entries_max = self.entries_max;
        }
        self.output.anew = true;
        self.advance(now);
    }

    fn send(&mut self, to: String, body: Body) {
        self.send_as(self.cluster, to, body);
    }

    /// Sends a message. A master that is not a member must not learn the identity of the group.
    fn send_as(&mut self, cluster: Option<Cluster>, to: String, body: Body) {
        let numbers = match cluster {
            Some(_) => self.links.next(&to),
            None => Some(self.links.unnumbered()),
        };
        let Some(numbers) = numbers else { return };
        let envelope = Envelope { cluster, from: self.settings.address.clone(), to, numbers, body };
        let bytes = envelope.encode(self.settings.secret.as_ref());
        self.output.messages.push((envelope.to, bytes));
    }

    fn hello(&self) -> Body {
        let peers = self.settings.peers.clone();
        let configuration = self.members().map(|(configuration, _)| configuration.number);
        let brings_registry = self.settings.registry.is_some();
        Body::Hello(Hello {
            disk: self.disk,
            peers,
            configuration,
            brings_registry,
            founders_hash: self.founders_hash(),
        })
    }

    fn send_hello(&mut self, to: String) {
        let hello = self.hello();
        self.send(to, hello);
    }
}
