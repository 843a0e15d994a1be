//! The thread of this master's member: it passes messages and the time to the core, and carries out the core's outputs.
//!
//! Records are made durable first, then messages are sent, then changes are published.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use base::Time;
use detector::{DetectionState, Leader, Lease};
use peers::{ChangeError, Journal, MembershipState, Peer, Settings, State, Stored};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::names::Outgoing;
use super::{Job, MembershipChange, Seen, adopt};
use crate::clock::Clock;

/// Maximum number of jobs that are handled before the core's outputs are carried out: they share one write to the disk.
const TOGETHER: usize = 256;
/// Time after which a warning is logged again, and maximum number of recorded warnings.
const AGAIN: Duration = Duration::from_secs(60);
const WARNED_MAX: usize = 64;

struct Member {
    peer: Peer,
    journal: Journal,
    clock: Clock,
    sender: watch::Sender<Seen>,
    lease: Arc<Lease>,
    outgoing: Outgoing,
    /// Writes that are not yet committed, with their callers.
    waiting: VecDeque<(u64, mpsc::SyncSender<Result<(), ChangeError>>)>,
    /// Standing and leader that were published last.
    membership_state: Option<MembershipState>,
    leader: peers::Leader,
    /// Path of the registry of a master without a group.
    file: PathBuf,
    /// Time of the last log line of each warning.
    warned: BTreeMap<String, Time>,
}

/// Starts the thread. It ends when there are no more callers, or when the journal cannot be written.
pub(super) fn start(
    (settings, file): (Settings, PathBuf),
    (journal, stored): (Journal, Stored),
    todo: mpsc::Receiver<Job>,
    (sender, lease): (watch::Sender<Seen>, Arc<Lease>),
    outgoing: Outgoing,
) -> std::io::Result<()> {
    let run = move || {
        let (clock, interval) = (Clock::start(), settings.interval());
        let peer = Peer::start(settings, stored, clock.now());
        let waiting = VecDeque::new();
        let mut member = Member {
            peer,
            journal,
            clock,
            sender,
            lease,
            outgoing,
            waiting,
            membership_state: None,
            leader: peers::Leader::Unknown,
            file,
            warned: BTreeMap::new(),
        };
        if let Err(why) = member.run(&todo, interval) {
            member.lease.end_at(member.clock.instant(Time::EPOCH));
            member.sender.send_modify(|seen| seen.failed = Some(why));
        }
    };
    std::thread::Builder::new().name("peers".to_owned()).spawn(run).map(drop)
}

impl Member {
    /// Runs until there are no more callers.
    ///
    /// # Errors
    /// The reason why this master must end.
    fn run(&mut self, todo: &mpsc::Receiver<Job>, interval: Duration) -> Result<(), String> {
        let mut next = self.now();
        loop {
            match todo.recv_timeout(next.since(self.now())) {
                Ok(job) => self.handle(job),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            }
            todo.try_iter().take(TOGETHER).for_each(|job| self.handle(job));
            let now = self.now();
            if now >= next {
                self.peer.tick(now);
                next = (next + interval).max(now);
            }
            self.settle()?;
        }
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn handle(&mut self, job: Job) {
        let now = self.now();
        match job {
            Job::Message(bytes) => {
                if let Err(error) = self.peer.receive(&bytes, now) {
                    self.warn(format!("a message of a peer is refused: {error}"));
                }
            }
            // A caller that has gone needs no answer.
            Job::Load(done) => {
                let _ = done.send(self.peer.state().map(|state| state.entries.clone()).unwrap_or_default());
            }
            Job::Write(changes, done) => match self.peer.write(changes, now) {
                Ok(number) => self.waiting.push_back((number, done)),
                Err(error) => drop(done.send(Err(error))),
            },
            Job::Change(membership_change, done) => {
                let outcome = match membership_change {
                    MembershipChange::Add(address) => self.peer.add(&address, now),
                    MembershipChange::Remove(address) => self.peer.remove(&address, now),
                    MembershipChange::TransferLeadership(to) => self.peer.transfer_leadership(to.as_deref(), now),
                };
                // The lease ends before the caller receives the result.
                self.lease.end_at(self.clock.instant(self.peer.lease()));
                let _ = done.send(outcome);
            }
            Job::Status(done) => drop(done.send(self.status(now))),
        }
    }

    /// Carries out the core's outputs.
    fn settle(&mut self) -> Result<(), String> {
        let output = self.peer.take();
        if output.anew || !output.changes.is_empty() {
            let written = self.journal.write(output.anew, output.changes, || self.peer.stored());
            written.map_err(|error| format!("the group's journal cannot be written: {}", base::error_chain(&error)))?;
        }
        for (to, bytes) in output.messages {
            self.outgoing.send(&to, &bytes);
        }
        for note in output.notes {
            match note {
                peers::Note::Members(_) => tracing::info!("{note}"),
                _ => self.warn(note.to_string()),
            }
        }
        let now = self.now();
        self.lease.end_at(self.clock.instant(self.peer.lease()));
        self.answer();
        self.tell(now)
    }

    /// Logs a warning that recurs until an operator repairs its cause, at most once a minute.
    fn warn(&mut self, text: String) {
        if self.warned.len() >= WARNED_MAX {
            self.warned.clear();
        }
        let now = self.now();
        if self.warned.get(&text).is_none_or(|last| now.since(*last) > AGAIN) {
            tracing::warn!("{text}");
            self.warned.insert(text, now);
        }
    }

    /// Sends callers the results of their writes.
    fn answer(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        match self.peer.written() {
            Some(written) => {
                while let Some((_, done)) = self.waiting.pop_front_if(|(number, _)| *number <= written) {
                    let _ = done.send(Ok(()));
                }
            }
            None => self.waiting.drain(..).for_each(|(_, done)| drop(done.send(Err(ChangeError::NotLeading)))),
        }
    }

    /// Publishes the standing of this member and the leader.
    ///
    /// # Errors
    /// This master was removed from the group.
    fn tell(&mut self, now: Time) -> Result<(), String> {
        let membership_state = self.peer.membership_state();
        if self.membership_state.as_ref() != Some(&membership_state) {
            match &membership_state {
                MembershipState::Forming { missing } if missing.is_empty() => {}
                MembershipState::Forming { missing } => {
                    tracing::info!("waiting for {} to form the group", missing.join(","));
                }
                MembershipState::Stranger { members } => tracing::warn!(
                    "this master is not a member of the group of {members}: add it with 'tepui masters add', or delete its \
                     directory '{}' if it belongs to another group",
                    super::DIRECTORY
                ),
                MembershipState::Removed { members } => {
                    return Err(format!(
                        "this master was removed from the group of {members}: to add it again, start it with an empty work \
                         directory and run 'tepui masters add'"
                    ));
                }
                MembershipState::Member => adopt::put_away(&self.file),
            }
            self.membership_state = Some(membership_state);
        }
        let leader = self.peer.leader(now);
        if self.leader != leader {
            let known = match leader {
                peers::Leader::Unknown => DetectionState::NoLeader,
                peers::Leader::Own => self.known(true),
                peers::Leader::Other(_) => self.known(false),
            };
            self.sender.send_modify(|seen| seen.known = known);
            self.leader = leader;
        }
        Ok(())
    }

    /// Returns the master that has taken the registry over last.
    fn known(&self, is_own: bool) -> DetectionState {
        let claim = self.peer.state().and_then(|state: &State| state.leader.as_ref());
        let leader = claim.and_then(|claim| {
            let name = format!("{}.{}", claim.member, claim.start);
            Leader::of_info(&name, &claim.info)
        });
        leader.map_or(DetectionState::Unknown, |leader| DetectionState::Leader(Leader { is_own, ..leader }))
    }

    fn status(&self, now: Time) -> Value {
        let Some((configuration, own)) = self.peer.members() else {
            return json!({ "members": [], "standing": format!("{:?}", self.peer.membership_state()) });
        };
        let leader = match self.peer.leader(now) {
            peers::Leader::Own => Some(own),
            peers::Leader::Other(claim) => Some(claim.member),
            peers::Leader::Unknown => None,
        };
        let answering = self.peer.answering(now);
        let members = configuration.members.iter().map(|member| {
            // Only the leader sends requests to all others.
            let answers = match leader {
                _ if member.number == own => Some(true),
                Some(leader) if leader == own => Some(answering.contains(&member.number)),
                _ => None,
            };
            json!({
                "address": member.address,
                "number": member.number,
                "leads": Some(member.number) == leader,
                "answers": answers,
            })
        });
        json!({
            "configuration": configuration.number,
            "members": members.collect::<Vec<_>>(),
            "joining": self.peer.joining(now),
            "entries": self.peer.state().map_or(0, |state| state.entries.len()),
        })
    }
}
