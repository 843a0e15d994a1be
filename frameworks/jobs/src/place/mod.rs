//! Placement of tasks on offers.
//!
//! [`place`] is the whole of it as one pure function: it takes a queue, the free amounts of each agent and a policy,
//! and returns a room for each task. [`Placer`] does the same step by step, for a scheduler that handles its jobs in
//! turn. [`naive`] is the reference for the tests of both. Nothing here depends on offers, jobs or reservations: an
//! agent is a number and its free amounts.
//!
//! | policy | each task goes | source |
//! |---|---|---|
//! | first fit | where it fits first, in the order in which the offers came | Johnson 1974; Aurora's and Marathon's way |
//! | best fit | where the least is left | Johnson 1974; Scylla's "bin-pack", minimum hosts (MTAGS 2017) |
//! | worst fit | where the most is left | Scylla's "spread" (MTAGS 2017) |
//! | dot product | where need and room point the same way | Tetris, Grandl et al., SIGCOMM 2014 |
//! | least residual | where the squares of what is left are least (L2) | Panigrahy et al., "Heuristics for Vector Bin Packing", 2011 |
//! | first-fit decreasing | as first fit, after sorting the queue by size, largest first | Johnson 1974; size as the weighted sum, Panigrahy's FFDSum |
//!
//! Amounts of different kinds are made comparable by dividing them by the total free amount of that kind at the start.

mod index;
pub mod naive;
mod placer;
mod policy;

pub use placer::{Anywhere, Placer, Rules};
pub use policy::{Policy, UnknownPolicy};

use crate::Need;

/// Places each task of `queue`, in its order or in the policy's, into one of `rooms`. Returns the room of each task;
/// `None` if it fits nowhere. No room is ever overfilled, and no task is placed twice.
pub fn place(policy: Policy, queue: &[Need], rooms: &[Need]) -> Vec<Option<usize>> {
    let mut placer = Placer::new(policy, rooms);
    let mut places = vec![None; queue.len()];
    for task in placer.order(queue) {
        places[task] = placer.put(&queue[task], &mut Anywhere);
    }
    places
}

/// Places all of `tasks` or none of them. Returns the rooms in the order of the tasks.
pub fn place_all(policy: Policy, tasks: &[Need], rooms: &[Need]) -> Option<Vec<usize>> {
    Placer::new(policy, rooms).put_all(tasks, &mut Anywhere)
}

#[cfg(test)]
mod tests;
