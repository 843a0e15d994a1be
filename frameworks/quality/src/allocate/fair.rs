//! The work-conserving fair policy, the baseline of SLAQ.

use super::{Bid, floors, raise};

/// Shares the cores equally, weighted by priority. Cores that one job cannot use are shared among the others. Cores
/// that cannot be shared evenly, and all cores if there are fewer than jobs, go to the jobs that have received least so
/// far. No job gets more because of a deadline.
pub(super) fn fair(bids: &[Bid], cores: u32) -> Vec<u32> {
    let equal: Vec<Bid> = bids.iter().map(|b| Bid { floor: b.floor.min(1), ..*b }).collect();
    let bids = &equal[..];
    let mut given = vec![0; bids.len()];
    let mut order: Vec<usize> = (0..bids.len()).collect();
    let received = |job: usize| bids[job].received / bids[job].priority;
    order.sort_by(|a, b| received(*a).total_cmp(&received(*b)));
    let mut left = floors(bids, cores, &order, &mut given);
    let mut open: Vec<usize> = order.iter().copied().filter(|j| given[*j] < bids[*j].ceiling).collect();
    while left > 0 && !open.is_empty() {
        let weights: f64 = open.iter().map(|j| bids[*j].priority).sum();
        let held: u32 = open.iter().map(|j| given[*j]).sum();
        let pot = f64::from(left + held);
        let before = left;
        for &job in &open {
            let share = (pot * bids[job].priority / weights).floor() as u32;
            left -= raise(&mut given[job], share.min(bids[job].ceiling), left);
        }
        if before == left {
            // Fewer cores than jobs are left, so each job gets at most one more. A job that already holds one more than
            // its share may keep it.
            open.sort_by_key(|j| bids[*j].held <= given[*j]);
            for &job in &open {
                let to = given[job] + 1;
                left -= raise(&mut given[job], to, left);
            }
        }
        open.retain(|j| given[*j] < bids[*j].ceiling);
    }
    given
}
