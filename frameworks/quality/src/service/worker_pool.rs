//! The connected workers of a job, and the current round: the assignment of shards, and the results.
//!
//! The first result of a shard counts. A shard whose worker has disconnected is assigned to another.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::frame::{self, ToWorker};
use crate::scheduler::{Directive, Move};

/// A connected worker.
#[derive(Debug)]
pub(super) struct ConnectedWorker {
    pub(super) task: String,
    pub(super) cores: u32,
    frames: mpsc::Sender<Arc<Vec<u8>>>,
    pending: BTreeSet<u32>,
}

/// The connected workers of a job, with their current round.
#[derive(Debug, Default)]
pub(super) struct WorkerPool {
    connected: BTreeMap<u64, ConnectedWorker>,
    round: u64,
    /// Connections of workers that have computed a shard of the round.
    computed: BTreeSet<u64>,
    results: Vec<Option<Vec<f64>>>,
    missing: usize,
    parameters: Vec<f64>,
}

impl WorkerPool {
    pub(super) fn join(&mut self, connection: u64, task: String, cores: u32, frames: mpsc::Sender<Arc<Vec<u8>>>) {
        // A worker that reconnects has lost its old connection, even if that was not detected yet.
        let old: Vec<u64> = self.connected.iter().filter(|(_, h)| h.task == task).map(|(c, _)| *c).collect();
        old.into_iter().for_each(|c| drop(self.connected.remove(&c)));
        self.connected.insert(connection, ConnectedWorker { task, cores, frames, pending: BTreeSet::new() });
    }

    /// Removes a worker; its shards must be assigned again.
    pub(super) fn remove(&mut self, connection: u64) -> Option<ConnectedWorker> {
        self.connected.remove(&connection)
    }

    /// Tells workers to leave, or for which job to work, and removes them. A worker that cannot be reached loses its
    /// connection, and receives the order when it reconnects.
    pub(super) fn dismiss(&mut self, directive: &Directive) {
        let leave = encoded(&ToWorker::Leave);
        self.connected.retain(|_, worker| {
            if let Some(Move { job, token, .. }) = directive.moves.iter().find(|m| m.task == worker.task) {
                post(worker, &encoded(&ToWorker::Move { job: job.clone(), token: token.clone() }));
            } else if directive.leave.contains(&worker.task) {
                post(worker, &leave);
            } else {
                return true;
            }
            false
        });
    }

    /// Returns the tasks of all workers.
    pub(super) fn tasks(&self) -> Vec<String> {
        self.connected.values().map(|worker| worker.task.clone()).collect()
    }

    /// Tells all workers to leave.
    pub(super) fn dismiss_all(&mut self) {
        let leave = encoded(&ToWorker::Leave);
        self.connected.values().for_each(|worker| post(worker, &leave));
        self.connected.clear();
    }

    /// Returns the number of workers that have computed a shard of the round. A worker that joined in the middle of it
    /// may have come too late.
    pub(super) fn computed(&self) -> usize {
        self.computed.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connected.is_empty()
    }

    /// Returns the connections of workers that have not sent all their results.
    pub(super) fn unfinished(&self) -> Vec<u64> {
        self.connected.iter().filter(|(_, h)| !h.pending.is_empty()).map(|(c, _)| *c).collect()
    }

    /// Starts a round over this many shards.
    pub(super) fn start(&mut self, shards: usize, parameters: Vec<f64>) {
        self.round += 1;
        self.results = vec![None; shards];
        self.missing = shards;
        self.computed.clear();
        self.parameters = parameters;
        self.connected.values_mut().for_each(|h| h.pending.clear());
        self.assign_shards();
    }

    /// Assigns every unassigned shard: neighbouring shards to the same worker, in proportion to its cores, so that a
    /// worker mostly keeps its shards from round to round. A worker that cannot be reached is dropped.
    pub(super) fn assign_shards(&mut self) {
        while !self.connected.is_empty() {
            let taken: BTreeSet<u32> = self.connected.values().flat_map(|h| h.pending.iter().copied()).collect();
            let open = (0_u32..).zip(&self.results).filter(|(s, r)| r.is_none() && !taken.contains(s));
            let open: Vec<u32> = open.map(|(shard, _)| shard).collect();
            if open.is_empty() {
                return;
            }
            // Idle workers take the shards that are left; if none is idle, all share them.
            let idle = self.connected.values().any(|h| h.pending.is_empty());
            let takers = |h: &ConnectedWorker| !idle || h.pending.is_empty();
            let cores: usize = self.connected.values().filter(|h| takers(h)).map(|h| h.cores as usize).sum();
            let (mut before, mut lost) = (0, Vec::new());
            for (connection, worker) in &mut self.connected {
                if !takers(worker) {
                    continue;
                }
                let from = open.len() * before / cores;
                before += worker.cores as usize;
                let shards = open[from..open.len() * before / cores].to_vec();
                if shards.is_empty() {
                    continue;
                }
                worker.pending.extend(&shards);
                let (round, parameters) = (self.round, self.parameters.clone());
                if worker.frames.try_send(encoded(&ToWorker::Compute { round, shards, parameters })).is_err() {
                    lost.push(*connection);
                }
            }
            if lost.is_empty() {
                return;
            }
            lost.into_iter().for_each(|c| drop(self.connected.remove(&c)));
        }
    }

    /// Records a result. Returns `false` for results of other rounds, and for those that have arrived before.
    pub(super) fn take(&mut self, connection: u64, round: u64, shard: u32, values: Vec<f64>) -> bool {
        if round != self.round {
            return false;
        }
        if let Some(worker) = self.connected.get_mut(&connection) {
            worker.pending.remove(&shard);
        }
        match self.results.get_mut(shard as usize) {
            Some(place @ None) => {
                *place = Some(values);
                self.missing -= 1;
                self.computed.insert(connection);
                true
            }
            _ => false,
        }
    }

    /// Returns the parameters of the round.
    pub(super) fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// Returns whether the results of all shards of the round have arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0 && !self.results.is_empty()
    }

    /// Returns the results, in the order of the shards.
    pub(super) fn results(&mut self) -> Vec<Vec<f64>> {
        std::mem::take(&mut self.results).into_iter().flatten().collect()
    }

    /// Sends a worker its first frame, the description of the job.
    pub(super) fn set_up(&self, connection: u64, setup: &Arc<Vec<u8>>) {
        if let Some(worker) = self.connected.get(&connection) {
            post(worker, setup);
        }
    }
}

/// Encodes a frame; empty if it is too long, which ends the connection.
pub(super) fn encoded(frame: &ToWorker) -> Arc<Vec<u8>> {
    Arc::new(frame::encode(frame).unwrap_or_default())
}

/// Sends a frame to a worker. A worker that does not read will be detected as late.
fn post(worker: &ConnectedWorker, frame: &Arc<Vec<u8>>) {
    if worker.frames.try_send(frame.clone()).is_err() {
        tracing::debug!(task = worker.task, "a worker does not read");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Frames = mpsc::Receiver<Arc<Vec<u8>>>;

    fn joined(pool: &mut WorkerPool, connection: u64, cores: u32) -> Frames {
        let (sender, receiver) = mpsc::channel(8);
        pool.join(connection, format!("t{connection}"), cores, sender);
        receiver
    }

    fn shards(frames: &mut Frames) -> Vec<u32> {
        let Ok(bytes) = frames.try_recv() else { return Vec::new() };
        match frame::decode(&bytes[4..]) {
            Ok(ToWorker::Compute { shards, .. }) => shards,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn shards_of_a_worker_that_dies_are_done_by_the_others_and_count_once() {
        let mut pool = WorkerPool::default();
        let (mut one, mut two) = (joined(&mut pool, 1, 1), joined(&mut pool, 2, 2));
        pool.start(6, vec![1.0]);
        assert_eq!((shards(&mut one), shards(&mut two)), (vec![0, 1], vec![2, 3, 4, 5]));
        assert!(pool.take(2, 1, 2, vec![2.0]));
        assert!(pool.remove(2).is_some());
        pool.assign_shards();
        // The worker has not finished its own shards yet, but there is no other worker.
        assert_eq!(shards(&mut one), [3, 4, 5]);
        // A worker that joins when all shards are assigned has no part in the round.
        let mut three = joined(&mut pool, 3, 1);
        pool.assign_shards();
        assert_eq!(shards(&mut three), Vec::<u32>::new());
        for shard in [0, 1, 3, 4, 5] {
            assert!(!pool.is_complete());
            assert!(pool.take(1, 1, shard, vec![f64::from(shard)]));
        }
        assert!(pool.is_complete());
        assert_eq!(pool.computed(), 2, "the one that died, too");
        assert!(!pool.take(2, 1, 3, vec![99.0]), "what comes twice");
        assert!(!pool.take(1, 0, 3, vec![99.0]), "what is of another round");
        assert!(!pool.take(1, 1, 77, vec![99.0]), "what is of no shard");
        let results = pool.results();
        assert_eq!(results, (0..6).map(|s| vec![f64::from(s)]).collect::<Vec<_>>());
    }

    #[test]
    fn a_round_without_workers_waits_for_one() {
        let mut pool = WorkerPool::default();
        pool.start(3, vec![1.0]);
        assert!(!pool.is_complete());
        let mut frames = joined(&mut pool, 1, 1);
        pool.assign_shards();
        assert_eq!(shards(&mut frames), [0, 1, 2]);
        drop(frames);
        assert_eq!(pool.unfinished(), [1]);
        pool.start(3, vec![1.0]);
        assert!(pool.is_empty(), "a worker that cannot be told is dropped");
    }
}
