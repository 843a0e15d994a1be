//! Per-server dominant-share fairness: on each server its own shares count (Khamse-Ashari, Lambadaris, Kesidis,
//! Urgaonkar, Zhao, ICC 2017; compared on Mesos by Shan et al., arXiv 1803.00922).
//!
//! A user's virtual dominant share on server i is x / gamma: the number of its tasks anywhere by the number of them
//! that server i could run if it were the user's alone. With tasks of demand d and a server of capacity c that is the
//! largest x d_r / c_r, and x d is what the user holds: so demands need not be known. Servers that lack something which
//! the user needs come last for it.

use super::{Candidate, Sorter, Visit};

pub(super) struct PsDsf;

impl Sorter for PsDsf {
    fn key(&self, candidate: &Candidate<'_>, visit: &Visit) -> f64 {
        let mut share: f64 = 0.0;
        for (name, held) in candidate.allocated.iter() {
            if held.is_positive() && visit.counted.get(&name).is_positive() {
                let there = visit.server.get(&name);
                share = share.max(if there.is_positive() { held.ratio_of(there) } else { f64::INFINITY });
            }
        }
        share / candidate.weight
    }
}
