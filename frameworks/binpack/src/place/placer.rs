//! Placing tasks one by one, or several at once, onto rooms that fill up.
//!
//! It finds the place; what may go where beside the amounts is told by [`Rules`].

use super::index::Index;
use super::policy::Policy;
use crate::Need;
use crate::need::KINDS;

/// What keeps a task off a room although it would fit.
pub trait Rules {
    /// Whether the task at hand may go onto this room.
    fn allows(&self, room: usize) -> bool;

    /// The task at hand goes onto this room.
    fn placed(&mut self, room: usize);

    /// The task that was placed on this room last is taken back.
    fn taken_back(&mut self, room: usize);
}

/// Every task may go everywhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anywhere;

impl Rules for Anywhere {
    fn allows(&self, _room: usize) -> bool {
        true
    }

    fn placed(&mut self, _room: usize) {}

    fn taken_back(&mut self, _room: usize) {}
}

/// Rooms that fill up by a policy.
#[derive(Clone, Debug)]
pub struct Placer {
    policy: Policy,
    free: Vec<Need>,
    /// What one thousandth of each kind counts: one over all of it at the start.
    weights: [f64; KINDS],
    /// For the policies whose order of the rooms does not depend on the task.
    index: Option<Index>,
    /// The room of each, weighed; empty without an index.
    weighed: Vec<f64>,
}

impl Placer {
    /// All of these rooms are free as a whole.
    pub fn new(policy: Policy, rooms: &[Need]) -> Placer {
        let all = rooms.iter().fold(Need::default(), |all, room| all.plus(room));
        let weights = all.0.map(|amount| if amount > 0 { 1.0 / amount as f64 } else { 0.0 });
        let mut placer = Placer { policy, free: rooms.to_vec(), weights, index: None, weighed: Vec::new() };
        if !matches!(policy, Policy::DotProduct | Policy::LeastResidual) {
            placer.weighed = rooms.iter().map(|room| room.weighed(&weights)).collect();
            placer.index = Some(Index::new((0..rooms.len()).map(|room| (placer.key(room), rooms[room]))));
        }
        placer
    }

    /// What is free in each room now.
    pub fn free(&self) -> &[Need] {
        &self.free
    }

    /// In which order the policy takes the tasks of a queue, as places in it.
    pub fn order(&self, queue: &[Need]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..queue.len()).collect();
        if self.policy == Policy::FirstFitDecreasing {
            order.sort_by(|&a, &b| self.size(&queue[b]).total_cmp(&self.size(&queue[a])));
        }
        order
    }

    /// How large a task is: each amount's share of all the room there was, added up.
    pub fn size(&self, need: &Need) -> f64 {
        need.weighed(&self.weights)
    }

    /// Where the policy puts this task; none if it fits nowhere. Changes nothing.
    pub fn choose(&self, need: &Need, rules: &impl Rules) -> Option<usize> {
        let allowed = |room: usize| rules.allows(room);
        match (&self.index, self.policy) {
            // What is left sorts as what is free: the task takes the same from all. Less than the task itself holds
            // no task; rounding of sums is allowed for.
            (Some(index), Policy::BestFit) => index.first(need, self.size(need) * (1.0 - 1e-9), allowed),
            (Some(index), _) => index.first(need, f64::NEG_INFINITY, allowed),
            (None, Policy::DotProduct) => self.highest(need, allowed, |free| self.dot(need, free)),
            (None, _) => self.highest(need, allowed, |free| -self.residual(need, free)),
        }
    }

    /// Puts a task where the policy wants it.
    pub fn put(&mut self, need: &Need, rules: &mut impl Rules) -> Option<usize> {
        let room = self.choose(need, rules)?;
        self.set(room, self.free[room].minus(need));
        rules.placed(room);
        Some(room)
    }

    /// Puts all of these tasks, or none of them. The rooms are in the order of the tasks.
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
        self.free[room] = free;
        if self.index.is_none() {
            return;
        }
        let from = self.key(room);
        self.weighed[room] = free.weighed(&self.weights);
        let to = self.key(room);
        if let Some(index) = &mut self.index {
            index.change(room, from, to, free);
        }
    }

    /// Where a room stands in the index: the one with the lowest key is taken.
    fn key(&self, room: usize) -> f64 {
        match self.policy {
            Policy::BestFit => self.weighed[room],
            Policy::WorstFit => -self.weighed[room],
            _ => room as f64,
        }
    }

    fn highest(&self, need: &Need, allowed: impl Fn(usize) -> bool, score: impl Fn(&Need) -> f64) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        for (room, free) in self.free.iter().enumerate() {
            if need.fits(free) {
                let score = score(free);
                if best.is_none_or(|(highest, _)| score > highest) && allowed(room) {
                    best = Some((score, room));
                }
            }
        }
        best.map(|(_, room)| room)
    }

    /// Need times room, by kinds: Tetris's alignment.
    pub(super) fn dot(&self, need: &Need, free: &Need) -> f64 {
        let one = |k: usize| need.0[k] as f64 * free.0[k] as f64 * self.weights[k] * self.weights[k];
        (0..KINDS).map(one).sum()
    }

    /// The squares of what would be left, by kinds.
    pub(super) fn residual(&self, need: &Need, free: &Need) -> f64 {
        let one = |k: usize| ((free.0[k] - need.0[k]) as f64 * self.weights[k]).powi(2);
        (0..KINDS).map(one).sum()
    }
}
