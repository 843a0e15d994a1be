//! The policies written directly from their rules, without any data structure: the reference for the tests of
//! [`super::place`], and the easiest version to read. Far too slow for a large cluster.

use super::policy::Policy;
use crate::Need;
use crate::need::KINDS;

/// Returns the same result as [`super::place`], by checking every room for every task.
pub fn place(policy: Policy, queue: &[Need], rooms: &[Need]) -> Vec<Option<usize>> {
    let mut all = Need::default();
    for room in rooms {
        all = all.plus(room);
    }
    let share = |need: &Need, k: usize| if all.0[k] > 0 { need.0[k] as f64 * (1.0 / all.0[k] as f64) } else { 0.0 };
    let size = |need: &Need| (0..KINDS).map(|k| share(need, k)).sum::<f64>();

    let mut order: Vec<usize> = (0..queue.len()).collect();
    if policy == Policy::FirstFitDecreasing {
        order.sort_by(|&a, &b| size(&queue[b]).total_cmp(&size(&queue[a])));
    }
    let mut free = rooms.to_vec();
    let mut places = vec![None; queue.len()];
    for task in order {
        let need = &queue[task];
        let score = |room: usize| match policy {
            Policy::FirstFit | Policy::FirstFitDecreasing => -(room as f64),
            Policy::BestFit => -size(&free[room]),
            Policy::WorstFit => size(&free[room]),
            Policy::DotProduct => (0..KINDS).map(|k| share(need, k) * share(&free[room], k)).sum(),
            Policy::LeastResidual => -(0..KINDS).map(|k| share(&free[room].minus(need), k).powi(2)).sum::<f64>(),
        };
        let mut best: Option<usize> = None;
        for (room, left) in free.iter().enumerate() {
            if need.fits(left) && best.is_none_or(|best| score(room) > score(best)) {
                best = Some(room);
            }
        }
        if let Some(room) = best {
            free[room] = free[room].minus(need);
            places[task] = Some(room);
        }
    }
    places
}
