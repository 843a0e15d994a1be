//! Weighted random order: a permutation drawn for each visit, in which the probability to be next is proportional to
//! the weight (Mesos 1.11's random sorter; ALL-26).

use super::{Candidate, Sorter, Visit};
use crate::rng::Rng;

pub(super) struct Random;

impl Sorter for Random {
    /// Draws a key so that the first competitor is drawn by weight, and so on among the others: a race of exponential
    /// clocks (Efraimidis and Spirakis 2006).
    fn key(&self, candidate: &Candidate<'_>, visit: &Visit) -> f64 {
        let mut rng = Rng::new(visit.draw ^ u64::from(candidate.number).wrapping_mul(0xd6e8_feb8_6659_fd93));
        -rng.unit().ln() / candidate.weight
    }
}
