//! Best fit: visits first the agents whose free resources have the same mix as those that the framework with the least
//! share uses (the heuristic of Best-Fit DRFH; Wang, Li, Liang, INFOCOM 2014).

use resources::{Name, Quantities};

/// Returns the distance of two mixes: the sum of the differences of their parts, each mix measured in shares of the
/// cluster and scaled to 1. From 0 (equal) to 2 (nothing in common); an empty mix fits everywhere.
pub(crate) fn distance(wanted: &Quantities, free: &Quantities, cluster: &Quantities) -> f64 {
    let parts = |of: &Quantities| -> Vec<(Name, f64)> {
        let parts: Vec<(Name, f64)> =
            cluster.iter().map(|(name, all)| (name.clone(), of.get(&name).ratio_of(all).max(0.0))).collect();
        let sum: f64 = parts.iter().map(|(_, part)| part).sum();
        if sum > 0.0 { parts.into_iter().map(|(name, part)| (name, part / sum)).collect() } else { Vec::new() }
    };
    let (wanted, free) = (parts(wanted), parts(free));
    wanted.iter().zip(&free).map(|((_, a), (_, b))| (a - b).abs()).sum()
}
