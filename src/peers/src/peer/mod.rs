//! One member of the group: a core without I/O.
//!
//! The shell calls it with messages and with the time, and takes what it puts out: first it makes the records durable,
//! then it sends the messages and looks at what has changed. Election and replication are OmniPaxos's; this module adds
//! the forming of the group, leases, the numbering of writes, and what members do that are behind.

mod forming;
mod member;
mod members;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::Time;

use crate::entry::{Change, Claim, Number, State};
use crate::link::Links;
use crate::log::{Beginning, Log, LogChange};
use crate::members::{ChangeError, Cluster, Configuration};
use crate::message::{Body, Envelope, Hello, MessageError, Secret};
use crate::records::Stored;

use forming::Forming;
use member::Membership;

/// Ticks in the length of a lease.
const TICKS: u32 = 10;

/// What the shell decides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The own address, one of `peers`.
    pub address: String,
    /// The masters that found the group, and by which later ones find it.
    pub peers: Vec<String>,
    /// For how long members elect no other leader than the one that has their promise.
    pub lease: Duration,
    /// Authenticates messages.
    pub secret: Option<Secret>,
    /// The `MasterInfo` of this master, as JSON, for the others.
    pub info: Vec<u8>,
    /// The entries of a registry, with which the group begins if it forms now. One master has such a registry at most.
    pub registry: Option<BTreeMap<String, Vec<u8>>>,
}

impl Settings {
    /// How often [`Peer::tick`] is to be called.
    pub fn interval(&self) -> Duration {
        self.lease / TICKS
    }
}

/// What a master is to its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The group has not formed: no message has come from these masters.
    Forming {
        /// Their addresses.
        missing: Vec<String>,
    },
    /// The group has formed without this master.
    Stranger {
        /// The addresses of its members.
        members: String,
    },
    /// It was a member, and is none any more.
    Removed {
        /// The addresses of the members.
        members: String,
    },
    /// It is a member.
    Member,
}

/// The leader, as far as this member knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leader {
    /// None, or none that more than half of the members follow.
    Unknown,
    /// Another member.
    Other(Claim),
    /// This process. It may answer clients until [`Peer::lease`].
    Own,
}

/// Something that the operator should know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Note {
    /// The group has formed, or its members have changed.
    #[error("the members of the group are {0}")]
    Members(String),
    /// A master has other peers.
    #[error(
        "the master at {address} has --peers={theirs}, and this one --peers={ours}: a group forms when they are equal"
    )]
    UnequalPeers {
        /// Where it is.
        address: String,
        /// Its peers.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// Several masters bring a registry into the group.
    #[error("{0} have a registry each: keep one, and move the file 'registry.redb' of the others away")]
    SeveralRegistries(String),
    /// A member of another group has sent something.
    #[error("the master at {0} belongs to another group: its messages are ignored")]
    Foreign(String),
    /// It has the address of a member, but is not one.
    #[error(
        "the master at {0} is not a member of the group; if it has lost its disk, remove it and add it again with 'tepui masters'"
    )]
    Stranger(String),
}

/// What the shell has to do, in this order.
#[derive(Debug, Default)]
pub struct Output {
    /// Changes of the log, to be made durable.
    pub changes: Vec<LogChange>,
    /// More than the log has changed: all of [`Peer::stored`] is to be made durable, with the changes.
    pub anew: bool,
    /// To be sent, with the addresses of their receivers.
    pub messages: Vec<(String, Vec<u8>)>,
    /// To be logged.
    pub notes: Vec<Note>,
}

/// A member, or a master that is to become one.
pub struct Peer {
    settings: Settings,
    disk: u64,
    starts: u64,
    cluster: Option<Cluster>,
    /// Entries after which the log is compacted.
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
    /// A master with what its disk has, at the time of its start.
    pub fn start(mut settings: Settings, stored: Stored, now: Time) -> Peer {
        // Members compare them.
        settings.peers.sort();
        let Stored { disk, starts, cluster, configuration, log } = stored;
        let phase = match configuration {
            None => Phase::Outside(Forming::default()),
            Some(configuration) => match configuration.with_disk(disk).map(|member| member.number) {
                Some(own) => {
                    // Promises of before may have been forgotten. They go with a member from one configuration to the
                    // next one, whose log has none at first.
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

    /// Compacts the log after this many entries, instead of after some thousands: for runs that are short.
    pub fn compact_after(&mut self, entries: usize) {
        self.entries_max = entries;
        if let Phase::Inside(member) = &mut self.phase {
            member.entries_max = entries;
        }
    }

    /// Time has passed: to be called every [`Settings::interval`].
    pub fn tick(&mut self, now: Time) {
        match &mut self.phase {
            Phase::Outside(_) => self.say_hello(),
            Phase::Inside(member) => {
                member.tick(now);
                if member.leases.is_waiting(now) {
                    // The others are to know this process.
                    self.say_hello();
                }
                self.advance(now);
            }
            Phase::Removed(_) => {}
        }
    }

    /// A message has come.
    ///
    /// # Errors
    /// It cannot be read. Messages that can be read and do not fit are ignored.
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
            forming.heard_from(&envelope.from);
        }
        // Masters that do not know the group have no part in its protocol, and cannot fill the list of links.
        if envelope.cluster.is_some() && !self.links.admit(&envelope.from, envelope.numbers) {
            return Ok(());
        }
        let is_known = self.cluster.is_some() && self.cluster == envelope.cluster;
        let from = envelope.from;
        match (envelope.body, &mut self.phase) {
            (Body::Hello(hello), _) => self.greeted((from, is_known, envelope.numbers), hello, now),
            // A member accepts messages of members only.
            (Body::Welcome(welcome), _) if is_known || self.cluster.is_none() => {
                self.welcomed(envelope.cluster, *welcome, now);
            }
            (Body::Stranger { configuration, members }, _) if is_known || self.cluster.is_none() => {
                self.turned_away(Configuration::of_strangers(configuration, members));
            }
            (body, Phase::Inside(member)) if is_known => match member.receive(&from, body, now) {
                member::Received::Handled => self.advance(now),
                member::Received::Behind => self.greet(from),
            },
            _ => {}
        }
        Ok(())
    }

    /// Changes the registry: all of `changes`, or nothing. Returns the number of the write, see [`Peer::written`].
    ///
    /// # Errors
    /// Another master leads.
    pub fn write(&mut self, changes: Vec<Change>, now: Time) -> Result<u64, ChangeError> {
        let Phase::Inside(member) = &mut self.phase else { return Err(ChangeError::NotLeading) };
        let number = member.write(changes)?;
        self.advance(now);
        Ok(number)
    }

    /// The number of the last write of this process that is decided; `None` if another one has taken the registry over.
    pub fn written(&self) -> Option<u64> {
        match &self.phase {
            Phase::Inside(member) => member.written(),
            _ => None,
        }
    }

    /// The leader, at that time.
    pub fn leader(&self, now: Time) -> Leader {
        match &self.phase {
            Phase::Inside(member) => member.leader(now),
            _ => Leader::Unknown,
        }
    }

    /// Until when this process may answer as the leader.
    pub fn lease(&self) -> Time {
        match &self.phase {
            Phase::Inside(member) => member.lease(),
            _ => Time::EPOCH,
        }
    }

    /// What this master is to the group.
    pub fn standing(&self) -> Standing {
        match &self.phase {
            Phase::Outside(forming) => forming.standing(&self.settings),
            Phase::Inside(_) => Standing::Member,
            Phase::Removed(configuration) => Standing::Removed { members: configuration.addresses() },
        }
    }

    /// The members that have granted this process a lease within its length.
    pub fn answering(&self, now: Time) -> BTreeSet<Number> {
        match &self.phase {
            Phase::Inside(member) => member.leases.answering(now),
            _ => BTreeSet::new(),
        }
    }

    /// The addresses of masters that ask to join.
    pub fn joining(&self, now: Time) -> Vec<String> {
        match &self.phase {
            Phase::Inside(member) => member.joining(now),
            _ => Vec::new(),
        }
    }

    /// The members, and the own number.
    pub fn members(&self) -> Option<(&Configuration, Number)> {
        match &self.phase {
            Phase::Inside(member) => Some((&member.configuration, member.own())),
            _ => None,
        }
    }

    /// Number of entries of the configuration that the state comprises.
    pub fn decided(&self) -> usize {
        match &self.phase {
            Phase::Inside(member) => member.applied(),
            _ => 0,
        }
    }

    /// The state that the decided entries make.
    pub fn state(&self) -> Option<&State> {
        match &self.phase {
            Phase::Inside(member) => Some(&member.state),
            _ => None,
        }
    }

    /// Adds the master at an address. It is a member when [`Peer::members`] says so.
    ///
    /// # Errors
    /// Why it cannot be added.
    pub fn add(&mut self, address: &str, now: Time) -> Result<(), ChangeError> {
        self.change(now, |member, now| member.add(address, now))
    }

    /// Removes the member at an address.
    ///
    /// # Errors
    /// Why it cannot be removed.
    pub fn remove(&mut self, address: &str, now: Time) -> Result<(), ChangeError> {
        self.change(now, |member, now| member.remove(address, now))
    }

    /// Hands the lead over, to the member at an address or to any. This process does not lead from now on.
    ///
    /// # Errors
    /// It does not lead, or there is no such member.
    pub fn hand_over(&mut self, to: Option<&str>, now: Time) -> Result<(), ChangeError> {
        self.change(now, |member, now| member.hand_over(to, now))
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

    /// What is to be done since the last call.
    pub fn take(&mut self) -> Output {
        std::mem::take(&mut self.output)
    }

    /// The whole content of a new journal.
    pub fn stored(&self) -> Stored {
        let (configuration, log) = match &self.phase {
            Phase::Outside(_) => (None, Log::default()),
            Phase::Inside(member) => (Some(member.configuration.clone()), member.log()),
            Phase::Removed(configuration) => (Some(configuration.clone()), Log::default()),
        };
        Stored { disk: self.disk, starts: self.starts, cluster: self.cluster, configuration, log }
    }

    /// Takes over what has been decided, and collects what is to be done.
    fn advance(&mut self, now: Time) {
        let Phase::Inside(member) = &mut self.phase else { return };
        let next = member.advance(now);
        let (changes, bodies) = member.take();
        self.output.changes.extend(changes);
        for (to, body) in bodies {
            self.send(to, body);
        }
        if let Some((configuration, state)) = next {
            self.enter(configuration, Beginning::of(state), now);
        }
    }

    /// Goes on in another configuration.
    fn enter(&mut self, configuration: Configuration, beginning: Beginning, now: Time) {
        self.output.notes.push(Note::Members(configuration.addresses()));
        let own = configuration.with_disk(self.disk).map(|member| member.number);
        let phase = std::mem::replace(&mut self.phase, Phase::Outside(Forming::default()));
        self.phase = match (phase, own) {
            (_, None) => Phase::Removed(configuration),
            (Phase::Inside(member), Some(own)) => {
                debug_assert_eq!(own, member.own(), "the number of a disk does not change");
                Phase::Inside(Box::new(member.in_configuration(configuration, beginning, now)))
            }
            (_, Some(own)) => {
                let log = Log::beginning(beginning);
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

    /// Sends a message. A master that is not a member does not learn which group it is.
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
        Body::Hello(Hello { disk: self.disk, peers, configuration, brings_registry, knows: self.knows() })
    }

    fn greet(&mut self, to: String) {
        let hello = self.hello();
        self.send(to, hello);
    }
}
