//! Dominant resource fairness: the child with the least dominant share of the cluster by weight comes first (Ghodsi et
//! al., NSDI 2011).

use super::{Candidate, Sorter, Visit};

pub(super) struct Drf;

impl Sorter for Drf {
    fn key(&self, candidate: &Candidate<'_>, _: &Visit) -> f64 {
        candidate.share / candidate.weight
    }
}
