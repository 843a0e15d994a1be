//! A member of the group: the library that replicates the log, the leases, and the writes of the leading master.

use std::collections::{BTreeMap, VecDeque};

use base::Time;
use omnipaxos::ballot_leader_election::Ballot;
use omnipaxos::messages::Message;
use omnipaxos::messages::ballot_leader_election::{BLEMessage, HeartbeatMsg, HeartbeatReply};
use omnipaxos::messages::sequence_paxos::{Accepted, NotAccepted, PaxosMessage, PaxosMsg};
use omnipaxos::util::LogEntry as Read;
use omnipaxos::{ClusterConfig, OmniPaxos, ServerConfig};

use super::{Leader, Settings};
use crate::entry::{Change, Claim, LogEntry, Number, State};
use crate::lease::Leases;
use crate::log::{InitialState, Log, LogChange, Shared};
use crate::members::{ChangeError, Configuration};
use crate::message::Body;

/// Number of entries after which the log is compacted.
pub(super) const ENTRIES_MAX: usize = 4096;
/// Bytes of values after which the log is compacted.
const BYTES_MAX: usize = 16 << 20;

/// Number of the leader's requests, half a lease, until a member may ask for the log again. Asking earlier would void
/// an answer that is still on its way.
const REQUESTS_UNTIL_RETRY: u32 = 5;

/// Maximum number of rounds that a leader skips at a time.
const SKIPPED_ROUNDS_MAX: usize = 100;

/// A member in one configuration.
pub(super) struct Membership {
    pub(super) configuration: Configuration,
    /// Claim that this process makes when it leads.
    claim: Claim,
    paxos: OmniPaxos<LogEntry, Shared>,
    log: Shared,
    pub(super) state: State,
    /// Number of entries that were applied to `state`.
    applied: usize,
    /// Bytes of values that were applied since the log was compacted.
    bytes: usize,
    /// Number of entries after which the log is compacted.
    pub(super) entries_max: usize,
    pub(super) leases: Leases,
    /// Writes of this process that are not decided, with their numbers.
    pending: VecDeque<(u64, Vec<Change>)>,
    next_write: u64,
    /// The last round in which this member led; `None` if it never led.
    led: Option<Led>,
    /// Number of the library's round of heartbeats.
    heartbeat: u32,
    /// Number of promises that this process was asked for.
    promises: u64,
    /// Number of the last promise of each other member.
    answered: BTreeMap<Number, u64>,
    /// Numbers of accepted and decided entries of the leader at its last request.
    seen: Option<(usize, usize)>,
    /// Number of requests until this member may ask for the log again, since the answer takes time.
    requests_until_retry: u32,
    /// Whether this process has given up the lead, and does not ask for it again.
    pub(super) resigned: bool,
    /// Masters that have asked to join, by address, with their disk and the time of the last request.
    pub(super) joining_masters: BTreeMap<String, (u64, Time)>,
    pub(super) outgoing: Vec<(String, Body)>,
}

/// A round in which this member leads.
struct Led {
    round: Ballot,
    /// Number of entries in the log when the round started.
    inherited: usize,
    /// Epoch after which this member has claimed the lead.
    claimed: Option<u64>,
    /// Number of the last pending write that was proposed.
    proposed: u64,
}

/// Result of handling a message.
pub(super) enum Received {
    /// The message was for this member.
    Handled,
    /// The sender of the message has a newer configuration.
    Behind,
}

impl Membership {
    pub(super) fn new(
        (settings, start): (&Settings, u64),
        configuration: Configuration,
        own: Number,
        log: Log,
        wait: Time,
    ) -> Membership {
        let leases = Leases::new(own, settings.lease, wait);
        let claim = Claim { member: own, start, info: settings.info.clone() };
        Membership::with(configuration, claim, leases, log)
    }

    fn with(configuration: Configuration, claim: Claim, leases: Leases, log: Log) -> Membership {
        let (state, applied) = log.base();
        let (log, paxos) = open(&configuration, claim.member, log);
        Membership {
            configuration,
            claim,
            paxos,
            log,
            state,
            applied,
            bytes: 0,
            entries_max: ENTRIES_MAX,
            leases,
            pending: VecDeque::new(),
            next_write: 1,
            led: None,
            heartbeat: 0,
            promises: 0,
            answered: BTreeMap::new(),
            seen: None,
            requests_until_retry: 0,
            resigned: false,
            joining_masters: BTreeMap::new(),
            outgoing: Vec::new(),
        }
    }

    /// Returns this member in another configuration, with its promises and writes.
    pub(super) fn in_configuration(
        mut self,
        configuration: Configuration,
        initial_state: InitialState,
        now: Time,
    ) -> Membership {
        let leads = matches!(self.leader(now), Leader::Own);
        self.leases.forget_questions();
        let mut next = Membership::with(configuration, self.claim, self.leases, Log::from_initial_state(initial_state));
        (next.pending, next.next_write, next.resigned) = (self.pending, self.next_write, self.resigned);
        if leads {
            // The others have promised to elect no other leader.
            next.paxos.try_become_leader();
        }
        next
    }

    pub(super) fn log(&self) -> Log {
        self.log.copy()
    }

    /// Returns the number of this member.
    pub(super) fn own(&self) -> Number {
        self.claim.member
    }

    /// Returns the number of entries that were applied to the state.
    pub(super) fn applied(&self) -> usize {
        self.applied
    }

    /// Returns what a member needs that enters this configuration now.
    pub(super) fn decided(&self) -> InitialState {
        InitialState { state: self.state.clone(), decided: self.applied, round: self.log.accepted_round() }
    }

    /// Returns the round in which this member leads the log, or `None` if it does not.
    pub(super) fn leading_round(&self) -> Option<Ballot> {
        let leads = self.paxos.get_current_leader() == Some((self.own(), true));
        leads.then(|| self.paxos.get_promise())
    }

    fn has_claimed(&self) -> bool {
        self.state.leader.as_ref() == Some(&self.claim)
    }

    pub(super) fn leader(&self, now: Time) -> Leader {
        match &self.state.leader {
            Some(claim) if *claim == self.claim => match now < self.leases.until() && !self.resigned {
                true => Leader::Own,
                false => Leader::Unknown,
            },
            Some(claim) if self.leases.granted_to(now) == Some(claim.member) => Leader::Other(claim.clone()),
            _ => Leader::Unknown,
        }
    }

    pub(super) fn lease(&self) -> Time {
        match self.has_claimed() && !self.resigned {
            true => self.leases.until(),
            false => Time::EPOCH,
        }
    }

    pub(super) fn write(&mut self, changes: Vec<Change>) -> Result<u64, ChangeError> {
        if !self.has_claimed() {
            return Err(ChangeError::NotLeading);
        }
        let number = self.next_write;
        self.next_write += 1;
        self.pending.push_back((number, changes));
        Ok(number)
    }

    pub(super) fn written(&self) -> Option<u64> {
        self.has_claimed().then_some(self.state.sequence)
    }

    pub(super) fn tick(&mut self, now: Time) {
        if self.leases.is_waiting(now) {
            return;
        }
        if let Some(leader) = self.leases.granted_to(now).filter(|leader| *leader != self.own()) {
            // In a new configuration the leader is elected first.
            if self.paxos.get_promise().pid != leader {
                return;
            }
            self.answer_for_leader(leader);
        }
        self.paxos.tick();
        self.ask(now);
    }

    /// Sends the others the position of the log, and asks them for a lease.
    fn ask(&mut self, now: Time) {
        let led = self.led.as_ref().filter(|led| self.leading_round() == Some(led.round) && !self.resigned);
        let Some(inherited) = led.map(|led| led.inherited) else { return };
        // Another master may have led since this one did. Until the entries of earlier rounds are applied, this one
        // cannot know.
        let round = match self.applied >= inherited {
            true => match self.leases.ask(now) {
                Some(round) => Some(round),
                None => return,
            },
            false => None,
        };
        let configuration = self.configuration.number;
        let (accepted, decided) = self.indices();
        let own = self.own();
        for member in self.configuration.members.iter().filter(|member| member.number != own) {
            self.outgoing.push((member.address.clone(), Body::Ask { configuration, round, accepted, decided }));
        }
    }

    pub(super) fn receive(&mut self, from: &str, body: Body, now: Time) -> Received {
        let configuration = match &body {
            Body::Log { configuration: number, .. } | Body::Ask { configuration: number, .. } => *number,
            Body::Grant { configuration: number, .. } => *number,
            _ => self.configuration.number,
        };
        if configuration > self.configuration.number {
            return Received::Behind;
        }
        if configuration < self.configuration.number && self.configuration.at(from).is_none() {
            // The sender was removed, and does not know it.
            self.outgoing.push((from.to_owned(), self.configuration.not_member_answer()));
        }
        let sender = self.configuration.at(from).map(|member| member.number);
        let Some(sender) = sender.filter(|_| configuration == self.configuration.number) else {
            return Received::Handled;
        };
        match body {
            Body::Log { promise, message, .. } => self.log_message(sender, promise, *message, now),
            Body::Ask { round, accepted, decided, .. }
                if self.paxos.get_promise().pid == sender && (round.is_none() || self.leases.grant(sender, now)) =>
            {
                let own = (self.log.accepted_round(), self.paxos.get_accepted_idx());
                self.outgoing.push((from.to_owned(), Body::Grant { configuration, round, accepted: own }));
                self.compare((accepted, decided), sender);
            }
            // A candidate that was not elected may have this member's promise. Then the messages of the leader are not
            // accepted any more.
            Body::Ask { .. } if self.paxos.get_promise().pid != sender && self.leases.permits(sender, now) => {
                let (from, n) = (self.own(), self.paxos.get_promise());
                let refused = PaxosMessage { from, to: sender, msg: PaxosMsg::NotAccepted(NotAccepted { n }) };
                let message = Box::new(Message::SequencePaxos(refused));
                let answer = Body::Log { configuration, promise: 0, message };
                self.outgoing.extend(self.configuration.member(sender).map(|leader| (leader.address.clone(), answer)));
            }
            Body::Grant { round, accepted, .. } => {
                if let Some(round) = round {
                    self.leases.granted(sender, round, self.configuration.majority(), now);
                }
                self.accepted(sender, accepted);
            }
            Body::Release { successor } => {
                self.leases.release(sender);
                if successor && self.leases.permits(self.own(), now) && !self.resigned {
                    self.paxos.try_become_leader();
                }
            }
            _ => {}
        }
        Received::Handled
    }

    fn log_message(&mut self, sender: Number, promise: u64, mut message: Message<LogEntry>, now: Time) {
        if message.get_sender() != sender || message.get_receiver() != self.own() {
            return;
        }
        match &message {
            Message::SequencePaxos(PaxosMessage { msg: PaxosMsg::Prepare(prepare), .. }) => {
                // The former leader is not a new one.
                let is_known = prepare.n == self.paxos.get_promise() && self.leases.granted_to(now).is_none();
                if prepare.n.pid != sender {
                    return;
                }
                if !(self.leases.permits(sender, now) || is_known) {
                    self.take_later_round(prepare.n);
                    return;
                }
                self.promises += 1;
            }
            // The library would send that member nothing more.
            Message::SequencePaxos(PaxosMessage { msg: PaxosMsg::NotAccepted(refused), .. }) => {
                let leads = !self.resigned && self.leases.granted_to(now) == Some(self.own());
                if leads && refused.n > self.paxos.get_promise() {
                    self.take_later_round(refused.n);
                }
                return;
            }
            // A member that was restarted asks for the log of the round that it promised itself before it stopped.
            Message::SequencePaxos(PaxosMessage { msg: PaxosMsg::PrepareReq(request), .. })
                if request.n > self.paxos.get_promise() =>
            {
                self.take_later_round(request.n);
                return;
            }
            Message::SequencePaxos(PaxosMessage { msg: PaxosMsg::Promise(promised), .. })
                if promised.n == self.paxos.get_promise() =>
            {
                self.answered.insert(sender, promise);
            }
            // The leader answers each repeated promise. Only the answer to the last one matches the log: an earlier one
            // would remove entries that were accepted since.
            Message::SequencePaxos(PaxosMessage { msg: PaxosMsg::AcceptSync(_), .. }) if promise != self.promises => {
                return;
            }
            // Only the leading master writes, and it has a log of its own.
            Message::SequencePaxos(PaxosMessage {
                msg: PaxosMsg::ProposalForward(_) | PaxosMsg::ForwardStopSign(_) | PaxosMsg::Compaction(_),
                ..
            }) => return,
            _ => {}
        }
        self.correct(&mut message);
        self.paxos.handle_incoming(message);
    }

    /// Corrects the index at which a log continues. The library (0.2.4) counts the entry that ends a configuration as
    /// accepted, and uses that number as the index (`send_accsync`). A member that had accepted that entry and asks for
    /// the log again would count it twice, and never see the configuration end. No log continues after the entries that
    /// this member has.
    fn correct(&self, message: &mut Message<LogEntry>) {
        let Message::SequencePaxos(PaxosMessage { msg, .. }) = message else { return };
        let sync = match msg {
            PaxosMsg::AcceptSync(accept) => &mut accept.log_sync,
            PaxosMsg::Promise(promised) => match &mut promised.log_sync {
                Some(sync) => sync,
                None => return,
            },
            _ => return,
        };
        if sync.stopsign.is_some() && sync.decided_snapshot.is_none() {
            sync.sync_idx = sync.sync_idx.min(self.log.end());
        }
    }

    /// Takes a round after that of a member that has promised itself a later one. Such a member does not follow the
    /// leader any more, although the leader has its lease.
    fn take_later_round(&mut self, refused: Ballot) {
        if self.leading_round().is_none() {
            return;
        }
        for _ in 0..SKIPPED_ROUNDS_MAX {
            if self.paxos.get_promise() > refused {
                break;
            }
            self.paxos.try_become_leader();
        }
    }

    /// Returns the numbers of accepted and of decided entries.
    fn indices(&self) -> (usize, usize) {
        (self.paxos.get_accepted_idx(), self.paxos.get_decided_idx())
    }

    /// Compares the log with that of the leader, and asks for what is missing. The library notices a lost message only
    /// when the next one arrives, which may take long. This member asks if it is behind the position of the leader at
    /// the previous request, or has not accepted the leader's log since its promise.
    fn compare(&mut self, leaders: (usize, usize), leader: Number) {
        let own = self.indices();
        self.requests_until_retry = self.requests_until_retry.saturating_sub(1);
        if let Some(before) = self.seen.replace(leaders)
            && self.requests_until_retry == 0
            && (own.0 < before.0 || own.1 < before.1 || self.log.accepted_round() != self.paxos.get_promise())
        {
            (self.seen, self.requests_until_retry) = (None, REQUESTS_UNTIL_RETRY);
            self.paxos.reconnected(leader);
        }
    }

    /// Records the entries that a member has accepted. The library reports them once. If that message was lost and no
    /// entry follows, these entries are decided because each grant repeats it.
    fn accepted(&mut self, sender: Number, (n, accepted_idx): (Ballot, usize)) {
        let msg = PaxosMsg::Accepted(Accepted { n, accepted_idx });
        self.paxos.handle_incoming(Message::SequencePaxos(PaxosMessage { from: sender, to: self.own(), msg }));
    }

    /// Applies what was decided, and does the work of the leader. Returns the next configuration with its first state,
    /// once this one has ended.
    pub(super) fn advance(&mut self, now: Time) -> Option<(Configuration, State)> {
        if let Some(next) = self.apply() {
            return Some((next, self.state.clone()));
        }
        if let Some(round) = self.leading_round().filter(|_| !self.resigned) {
            self.lead(round, now);
        }
        let next = self.apply();
        if self.log.len() > self.entries_max || self.bytes > BYTES_MAX {
            // No entry is decided that could not be compacted.
            if self.paxos.snapshot(None, true).is_ok() {
                self.bytes = 0;
            }
        }
        next.map(|next| (next, self.state.clone()))
    }

    fn lead(&mut self, round: Ballot, now: Time) {
        let (epoch, has_claimed) = (self.state.epoch, self.has_claimed());
        let led = match &mut self.led {
            Some(led) if led.round == round => led,
            led => {
                let inherited = self.paxos.get_accepted_idx();
                led.insert(Led { round, inherited, claimed: None, proposed: 0 })
            }
        };
        if has_claimed {
            let proposed = led.proposed;
            for (number, changes) in self.pending.iter().skip_while(|(number, _)| *number <= proposed) {
                let entry = LogEntry::Write { epoch, sequence: *number, changes: changes.clone() };
                if self.paxos.append(entry).is_err() {
                    // This configuration ends; the next one proposes the write.
                    return;
                }
                led.proposed = *number;
            }
        } else if led.claimed != Some(epoch) {
            let entry = LogEntry::Lead { epoch: epoch + 1, claim: self.claim.clone() };
            // In a configuration that ends, only ticks ask: this is called after each answer as well.
            if self.paxos.append(entry).is_ok() {
                led.claimed = Some(epoch);
                self.ask(now);
            }
        }
    }

    /// Applies decided entries. Returns the next configuration, if one is decided.
    fn apply(&mut self) -> Option<Configuration> {
        while let Some(entries) = self.paxos.read_decided_suffix(self.applied).filter(|entries| !entries.is_empty()) {
            for entry in entries {
                match entry {
                    Read::Decided(entry) => {
                        self.count(&entry);
                        self.applied += 1;
                        self.state.apply(entry);
                    }
                    Read::Snapshotted(snapshot) => {
                        self.applied = snapshot.trimmed_idx;
                        self.state = snapshot.snapshot.state.unwrap_or_default();
                    }
                    Read::StopSign(sign, true) => {
                        self.forget_written();
                        return sign.metadata.and_then(|bytes| postcard::from_bytes(&bytes).ok());
                    }
                    Read::StopSign(_, false) | Read::Undecided(_) | Read::Trimmed(_) => return None,
                }
            }
        }
        self.forget_written();
        None
    }

    fn count(&mut self, entry: &LogEntry) {
        if let LogEntry::Write { changes, .. } = entry {
            self.bytes +=
                changes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Vec::len)).sum::<usize>();
        }
    }

    fn forget_written(&mut self) {
        match self.written() {
            Some(written) => {
                while self.pending.front().is_some_and(|(number, _)| *number <= written) {
                    self.pending.pop_front();
                }
            }
            // Another process has taken the registry over.
            None => {
                self.pending.clear();
                self.next_write = 1;
                // Numbers start again with the next claim, which may be in the same round.
                if let Some(led) = &mut self.led {
                    led.proposed = 0;
                }
            }
        }
    }

    /// Returns the changes of the log, and the messages to send.
    pub(super) fn take(&mut self) -> (Vec<LogChange>, Vec<(String, Body)>) {
        let mut messages = Vec::new();
        self.paxos.take_outgoing_messages(&mut messages);
        for message in messages {
            if let Message::BLE(BLEMessage { msg: HeartbeatMsg::Request(request), .. }) = &message {
                self.heartbeat = request.round;
            }
            let Some(to) = self.configuration.member(message.get_receiver()).map(|member| member.address.clone())
            else {
                continue;
            };
            let promise = match &message {
                Message::SequencePaxos(PaxosMessage { msg: PaxosMsg::Promise(_), .. }) => self.promises,
                Message::SequencePaxos(PaxosMessage { to, msg: PaxosMsg::AcceptSync(_), .. }) => {
                    self.answered.get(to).copied().unwrap_or_default()
                }
                _ => 0,
            };
            let configuration = self.configuration.number;
            self.outgoing.push((to, Body::Log { configuration, promise, message: Box::new(message) }));
        }
        (self.log.take(), std::mem::take(&mut self.outgoing))
    }

    /// Reports a living leader to the library, for a member that has promised not to replace it. The library elects
    /// another one after a round in which no member sees a leader.
    fn answer_for_leader(&mut self, leader: Number) {
        let promise = self.paxos.get_promise();
        let reply = HeartbeatReply { round: self.heartbeat, ballot: promise, leader: promise, happy: true };
        let msg = HeartbeatMsg::Reply(reply);
        self.paxos.handle_incoming(Message::BLE(BLEMessage { from: leader, to: self.own(), msg }));
    }

    pub(super) fn reconfigure(&mut self, next: &Configuration) -> Result<(), ChangeError> {
        let bytes = postcard::to_allocvec(next).map_err(|_| ChangeError::UnderWay)?;
        self.paxos.reconfigure(cluster_of(next), Some(bytes)).map_err(|_| ChangeError::UnderWay)
    }
}

/// Returns a configuration in the form of the library.
fn cluster_of(configuration: &Configuration) -> ClusterConfig {
    let nodes = configuration.members.iter().map(|member| member.number).collect();
    ClusterConfig { configuration_id: configuration.number, nodes, flexible_quorum: None }
}

/// Opens the log of a member with the library.
fn open(configuration: &Configuration, own: Number, log: Log) -> (Shared, OmniPaxos<LogEntry, Shared>) {
    let server =
        ServerConfig { pid: own, election_tick_timeout: 1, resend_message_tick_timeout: 1, ..ServerConfig::default() };
    let log = Shared::new(log);
    let paxos = cluster_of(configuration).build_for_server(server, log.clone());
    // The library checks that there are at least two members, and that numbers of members and configurations are not
    // zero.
    (log, paxos.unwrap_or_else(|error| unreachable!("a configuration of the group is refused: {error}")))
}
