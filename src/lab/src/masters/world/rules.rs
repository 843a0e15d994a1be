//! Rules that hold at every instant in a world of masters: which of them answer, and what members know.
//!
//! The operations of clients are recorded here, but the rule about their history is checked at the end (`run.rs`).

use std::collections::{BTreeMap, BTreeSet};

use peers::{Configuration, Peer, State};

use crate::faults::Violation;
use crate::masters::history::Operation;

/// Identifies a process of a master by its host and its number there.
pub(super) type ProcessName = (usize, u64);

/// Position of a member: epoch and number of writes, then configuration and number of entries.
type Reached = ((u64, u64), (u32, usize));

/// What is known of all members, and the first broken rule.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub broken: Option<Violation>,
    /// Processes that have answered, by epoch.
    leaders: BTreeMap<u64, ProcessName>,
    /// Hashes of the states of all members, by configuration and number of entries.
    states: BTreeMap<(u32, usize), u64>,
    /// Last position of each process.
    reached: BTreeMap<ProcessName, Reached>,
    /// The newest configuration that any member has entered.
    pub newest: Option<Configuration>,
    /// All operations of clients.
    pub history: Vec<Operation>,
    /// Numbers of acknowledged writes.
    pub acknowledged: BTreeSet<u64>,
}

impl Rules {
    pub fn fail(&mut self, rule: &'static str, text: impl FnOnce() -> String) {
        self.broken.get_or_insert_with(|| Violation { rule, text: text() });
    }

    /// Records that a process which took the registry over in this epoch answers clients. Returns whether it is the
    /// first time.
    pub fn answers(&mut self, process: ProcessName, epoch: u64) -> bool {
        let is_first = !self.leaders.contains_key(&epoch);
        let known = *self.leaders.entry(epoch).or_insert(process);
        if known != process {
            self.fail("one master leads in an epoch", || {
                format!("masters {} and {} both answer in epoch {epoch}", known.0, process.0)
            });
        }
        if let Some((newest, leader)) = self.leaders.last_key_value().filter(|(newest, _)| **newest > epoch) {
            let text = format!(
                "master {} answers, which led in epoch {epoch}, and master {} has led in {newest}",
                process.0, leader.0
            );
            self.fail("no master answers after a later leader", || text);
        }
        is_first
    }

    /// Checks the state of a member against its earlier states and those of other members.
    pub fn look(&mut self, process: ProcessName, peer: &Peer) {
        let (Some(state), Some((configuration, _))) = (peer.state(), peer.members()) else { return };
        if self.newest.as_ref().is_none_or(|newest| newest.number < configuration.number) {
            self.newest = Some(configuration.clone());
        }
        let (writes, entries) = ((state.epoch, state.sequence), (configuration.number, peer.decided()));
        let before = self.reached.insert(process, (writes, entries));
        if before == Some((writes, entries)) {
            return;
        }
        if let Some((earlier, _)) = before.filter(|(earlier, _)| *earlier > writes) {
            self.fail("the state of a member does not go back", || {
                format!("master {} was at epoch and write {earlier:?}, and is at {writes:?}", process.0)
            });
        }
        let hash = hash(state);
        let known = *self.states.entry(entries).or_insert(hash);
        if known != hash {
            let (number, count) = entries;
            self.fail("members decide the same entries", || {
                format!("master {} has another state after {count} entries of configuration {number}", process.0)
            });
        }
    }
}

/// Returns the FNV-1a hash of a state.
pub(super) fn hash(state: &State) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    fold(&mut hash, &state.epoch.to_le_bytes());
    fold(&mut hash, &state.sequence.to_le_bytes());
    if let Some(claim) = &state.leader {
        fold(&mut hash, &claim.member.to_le_bytes());
        fold(&mut hash, &claim.start.to_le_bytes());
    }
    for (key, value) in &state.entries {
        fold(&mut hash, key.as_bytes());
        fold(&mut hash, &[0]);
        fold(&mut hash, value);
    }
    hash
}

/// Adds bytes to a hash.
pub(super) fn fold(hash: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *hash = (*hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
}
