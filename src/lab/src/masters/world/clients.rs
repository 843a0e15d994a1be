//! Clients of the registry: each reads, writes and deletes keys one after the other, through any process that answers.

use std::time::Duration;

use base::Time;

use super::defect::Defect;
use super::host::Job;
use super::{Event, World};
use crate::faults::rng::FaultRng;
use crate::masters::history::{Operation, OperationKind};

/// Number of keys that clients share.
const KEYS: u64 = 3;
/// The longest time between two operations of a client.
const THINKING: Duration = Duration::from_millis(400);
/// Time for which a client waits for an answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(3);

/// A client of the registry.
#[derive(Debug)]
pub(super) struct Client {
    chance: FaultRng,
    /// Number of the write for whose answer the client waits.
    waits_for: Option<usize>,
}

impl Client {
    pub fn new(chance: FaultRng) -> Client {
        Client { chance, waits_for: None }
    }
}

/// Returns the key that only this write sets and that no operation deletes.
pub(super) fn write_marker(operation: usize) -> String {
    format!("w{operation}")
}

impl World {
    /// Starts the next operation of a client, unless it waits for an answer.
    pub(super) fn client_acts(&mut self, client: usize) {
        if self.at_rest || self.clients[client].waits_for.is_some() {
            return;
        }
        let chance = &mut self.clients[client].chance;
        let key = format!("k{}", chance.below(KEYS));
        let (pick, anywhere, kind) = (chance.below(1 << 32), chance.chance(20), chance.below(10));
        let answering: Vec<usize> = (0..self.hosts.len()).filter(|at| self.answers(*at)).collect();
        let at = match answering.is_empty() || anywhere {
            true => pick as usize % self.hosts.len(),
            false => answering[pick as usize % answering.len()],
        };
        match kind {
            0..5 => drop(self.start_write(at, &key, false, Some(client))),
            5 => drop(self.start_write(at, &key, true, Some(client))),
            _ => self.read(at, &key),
        }
        if self.clients[client].waits_for.is_none() {
            self.client_thinks(client);
        }
    }

    fn client_thinks(&mut self, client: usize) {
        let time = self.clients[client].chance.span(THINKING);
        self.after(time, Event::Client(client));
    }

    /// Ends a client's wait for the answer to an operation.
    pub(super) fn client_gives_up(&mut self, client: usize, operation: usize) {
        if self.clients[client].waits_for == Some(operation) {
            self.log.line(self.now, || format!("client {client} <  no answer to #{operation}"));
            self.clients[client].waits_for = None;
            self.client_thinks(client);
        }
    }

    /// Asks a master to write or delete a key. Returns the number of the operation, if the master answers clients.
    pub(super) fn start_write(&mut self, at: usize, key: &str, deletes: bool, client: Option<usize>) -> Option<usize> {
        if !self.answers(at) {
            return None;
        }
        let operation = self.rules.history.len();
        let value = (!deletes).then_some(operation as u64);
        let called = self.next_step();
        let kind = OperationKind::Write(value);
        self.rules.history.push(Operation { key: key.to_owned(), kind, called, answered: None });
        let bytes = value.map(|value| value.to_le_bytes().to_vec());
        let changes = vec![(key.to_owned(), bytes), (write_marker(operation), Some(Vec::new()))];
        if let Some(client) = client {
            self.clients[client].waits_for = Some(operation);
            self.after(CLIENT_TIMEOUT, Event::GiveUp { client, operation });
        }
        self.log.line(self.now, || {
            let what = if deletes { "deletes" } else { "writes" };
            let caller = client.map_or("end     ".to_owned(), |client| format!("client {client}"));
            format!("{caller} >  {what} {key} as #{operation} at master {at}")
        });
        self.push(at, Job::Write(changes, operation));
        Some(operation)
    }

    /// Reads a key at a master, if it answers clients.
    pub(super) fn read(&mut self, at: usize, key: &str) {
        let answers = self.answers(at);
        let process = self.hosts[at].process.as_ref();
        let entries = match (answers, self.setup.defect) {
            (true, _) => process.and_then(|process| process.view.as_ref()).map(|(_, entries)| entries),
            (false, Some(Defect::StaleReads)) if self.is_running(at) => {
                process.and_then(|process| process.peer.state()).map(|state| &state.entries)
            }
            _ => None,
        };
        let Some(entries) = entries else { return };
        let bytes = entries.get(key).and_then(|bytes| bytes.first_chunk::<8>());
        let value = bytes.map(|bytes| u64::from_le_bytes(*bytes));
        let (called, answered) = (self.next_step(), Some(self.next_step()));
        self.log.line(self.now, || {
            let seen = value.map_or("nothing".to_owned(), |value| format!("what #{value} wrote"));
            format!("a client <  reads {key} at master {at}: {seen}")
        });
        self.rules.history.push(Operation { key: key.to_owned(), kind: OperationKind::Read(value), called, answered });
    }

    /// Records that a write was acknowledged.
    pub(super) fn answered(&mut self, operation: usize) {
        let step = self.next_step();
        if self.rules.history[operation].answered.replace(step).is_none() {
            self.log.line(self.now, || format!("a client <  #{operation} is done"));
        }
        self.rules.acknowledged.insert(operation as u64);
        self.stop_waiting(operation);
    }

    /// Records that it stays unknown whether a write has happened.
    pub(super) fn outcome_unknown(&mut self, operation: usize) {
        self.log.line(self.now, || format!("a client <  #{operation} is done or not"));
        self.stop_waiting(operation);
    }

    fn stop_waiting(&mut self, operation: usize) {
        if let Some(client) = self.clients.iter().position(|client| client.waits_for == Some(operation)) {
            self.clients[client].waits_for = None;
            self.client_thinks(client);
        }
    }

    /// Returns the first acknowledged write that is missing in a master's registry.
    pub(super) fn lost_write(&self, at: usize) -> Option<u64> {
        let state = self.hosts[at].process.as_ref().and_then(|process| process.peer.state())?;
        let lacks = |operation: &&u64| !state.entries.contains_key(&write_marker(**operation as usize));
        self.rules.acknowledged.iter().find(lacks).copied()
    }

    fn next_step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }

    /// Returns the latest time until which clients that wait now do so.
    pub(super) fn client_deadline(&self) -> Time {
        self.now + CLIENT_TIMEOUT
    }
}
