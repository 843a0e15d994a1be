//! Places tasks one by one, or several at once, into rooms that fill up.
//!
//! [`Rules`] add conditions beyond amounts.

use super::index::Index;
use super::policy::Policy;
use crate::Need;
use crate::need::KINDS;

/// Conditions on placement beyond amounts, such as constraints.
pub trait Rules {
    /// Returns whether the current task may be placed into this room.
    fn allows(&self, room: usize) -> bool;

    /// Records that the current task was placed into this room.
    fn placed(&mut self, room: usize);

    /// Records that the last task that was placed into this room was removed again.
    fn taken_back(&mut self, room: usize);
}

/// Rules that allow every task everywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anywhere;

impl Rules for Anywhere {
    fn allows(&self, _room: usize) -> bool {
        true
    }

    fn placed(&mut self, _room: usize) {}

    fn taken_back(&mut self, _room: usize) {}
}

/// Rooms that are filled by a policy.
#[derive(Clone, Debug)]
pub struct Placer {
    policy: Policy,
    free: Vec<Need>,
    /// Weight of one thousandth of each kind: the inverse of the total at the start.
    weights: [f64; KINDS],
    /// Index for the policies whose order of the rooms does not depend on the task.
    index: Option<Index>,
    /// Free amounts of each room, as shares of the totals at the start.
    shares: Vec<Shares>,
}

/// Amounts as shares of the totals at the start.
type Shares = [f64; KINDS];

impl Placer {
    /// Creates a placer for rooms with these free amounts.
    pub fn new(policy: Policy, rooms: &[Need]) -> Placer {
        let all = rooms.iter().fold(Need::default(), |all, room| all.plus(room));
        let weights = all.0.map(|amount| if amount > 0 { 1.0 / amount as f64 } else { 0.0 });
        let shares = rooms.iter().map(|room| room.shares(&weights)).collect();
        let mut placer = Placer { policy, free: rooms.to_vec(), weights, index: None, shares };
        if !matches!(policy, Policy::DotProduct | Policy::LeastResidual) {
            placer.index = Some(Index::new((0..rooms.len()).map(|room| (placer.key(room), rooms[room]))));
        }
        placer
    }

    /// Returns the score of a room under a policy that compares all rooms; the highest score is chosen.
    #[cfg(test)]
    pub(super) fn score(&self, need: &Need, free: &Need) -> f64 {
        let (need, free) = (need.shares(&self.weights), free.shares(&self.weights));
        if self.policy == Policy::DotProduct { dot(&need, &free) } else { -residual(&need, &free) }
    }

    /// Returns the present free amounts of each room.
    pub fn free(&self) -> &[Need] {
        &self.free
    }

    /// Returns the order in which the policy takes the tasks of a queue, as indices.
    pub fn order(&self, queue: &[Need]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..queue.len()).collect();
        if self.policy == Policy::FirstFitDecreasing {
            order.sort_by(|&a, &b| self.size(&queue[b]).total_cmp(&self.size(&queue[a])));
        }
        order
    }

    /// Returns the size of a task: the sum of its amounts as shares of the totals at the start.
    pub fn size(&self, need: &Need) -> f64 {
        need.shares(&self.weights).iter().sum()
    }

    /// Returns the room that the policy chooses for this task; `None` if it fits nowhere. Changes nothing.
    pub fn choose(&self, need: &Need, rules: &impl Rules) -> Option<usize> {
        let allowed = |room: usize| rules.allows(room);
        match (&self.index, self.policy) {
            // The order by the rest is the order by the free amounts, since the task takes the same from all. A room
            // smaller than the task itself is skipped; rounding of sums is allowed for.
            (Some(index), Policy::BestFit) => index.first(need, self.size(need) * (1.0 - 1e-9), allowed),
            (Some(index), _) => index.first(need, f64::NEG_INFINITY, allowed),
            (None, Policy::DotProduct) => self.highest(need, allowed, dot),
            (None, _) => self.highest(need, allowed, |need, free| -residual(need, free)),
        }
    }

    /// Places a task by the policy.
    pub fn put(&mut self, need: &Need, rules: &mut impl Rules) -> Option<usize> {
        let room = self.choose(need, rules)?;
        self.set(room, self.free[room].minus(need));
        rules.placed(room);
        Some(room)
    }

    /// Places all of these tasks, or none of them. Returns the rooms in the order of the tasks.
    pub fn put_all(&mut self, tasks: &[Need], rules: &mut impl Rules) -> Option<Vec<usize>> {
        let mut rooms: Vec<Option<usize>> = vec![None; tasks.len()];
        let mut done: Vec<usize> = Vec::new();
        for task in self.order(tasks) {
            let Some(room) = self.put(&tasks[task], rules) else {
                for task in done.into_iter().rev() {
                    if let Some(room) = rooms[task] {
                        self.set(room, self.free[room].plus(&tasks[task]));
                        rules.taken_back(room);
                    }
                }
                return None;
            };
            rooms[task] = Some(room);
            done.push(task);
        }
        rooms.into_iter().collect()
    }

    /// Closes a room for all further tasks.
    pub fn close(&mut self, room: usize) {
        self.set(room, Need([-1; KINDS]));
    }

    fn set(&mut self, room: usize, free: Need) {
        let from = self.key(room);
        self.free[room] = free;
        self.shares[room] = free.shares(&self.weights);
        let to = self.key(room);
        if let Some(index) = &mut self.index {
            index.change(room, from, to, free);
        }
    }

    /// Returns the key of a room in the index; the lowest one is chosen.
    fn key(&self, room: usize) -> f64 {
        match self.policy {
            Policy::BestFit => self.shares[room].iter().sum(),
            Policy::WorstFit => -self.shares[room].iter().sum::<f64>(),
            _ => room as f64,
        }
    }

    fn highest(
        &self,
        need: &Need,
        allowed: impl Fn(usize) -> bool,
        score: impl Fn(&Shares, &Shares) -> f64,
    ) -> Option<usize> {
        let shares = need.shares(&self.weights);
        let mut best: Option<(f64, usize)> = None;
        for (room, (free, free_shares)) in self.free.iter().zip(&self.shares).enumerate() {
            if need.fits(free) {
                let score = score(&shares, free_shares);
                if best.is_none_or(|(highest, _)| score > highest) && allowed(room) {
                    best = Some((score, room));
                }
            }
        }
        best.map(|(_, room)| room)
    }
}

/// Returns the dot product of need and free amounts: Tetris's alignment.
fn dot(need: &Shares, free: &Shares) -> f64 {
    (0..KINDS).map(|k| need[k] * free[k]).sum()
}

/// Returns the sum of the squares of the amounts that would be left.
fn residual(need: &Shares, free: &Shares) -> f64 {
    (0..KINDS).map(|k| (free[k] - need[k]).powi(2)).sum()
}
