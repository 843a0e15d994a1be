//! Fairness of the whole cluster: Jain's index, and three measures of unfairness.
//!
//! S is a framework's share over time, F its fair share over the same time. All measures are over the competing
//! frameworks: those that have not suppressed offers or hold resources.

use super::ClientFairness;

/// Fairness of the cluster. With fewer than two competing frameworks it is perfectly fair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measures {
    /// Jain's index of S / F: 1 if all frameworks are served alike, 1/n if one of n has everything (Jain, Chiu, Hawe
    /// 1984).
    pub jain: f64,
    /// Relative gap, 1 - min S / max S: 0 if all frameworks have the same share, whatever their demand.
    pub relative_gap: f64,
    /// Largest relative deviation |S - F| / F of a framework.
    pub deviation: f64,
    /// Largest shortfall of a framework in share-seconds, as a fraction of its fair ones.
    pub lost_share: f64,
    /// Number of competing frameworks.
    pub competitors: usize,
}

impl Default for Measures {
    fn default() -> Measures {
        Measures { jain: 1.0, relative_gap: 0.0, deviation: 0.0, lost_share: 0.0, competitors: 0 }
    }
}

impl Measures {
    pub(crate) fn of(clients: &[ClientFairness]) -> Measures {
        let competing = clients.iter().filter(|client| client.wants || client.share > 0.0);
        let pairs: Vec<(f64, f64, f64)> = competing.map(over_time).filter(|(_, fair, _)| *fair > 0.0).collect();
        let mut measures = Measures { competitors: pairs.len(), ..Measures::default() };
        if pairs.len() < 2 {
            return measures;
        }
        let (mut sum, mut squares, mut least, mut most) = (0.0, 0.0, f64::INFINITY, 0.0_f64);
        for (share, fair, lost) in &pairs {
            let part = share / fair;
            sum += part;
            squares += part * part;
            least = least.min(*share);
            most = most.max(*share);
            measures.deviation = measures.deviation.max((share - fair).abs() / fair);
            measures.lost_share = measures.lost_share.max(*lost);
        }
        if most > 0.0 {
            measures.relative_gap = 1.0 - least / most;
            measures.jain = sum * sum / (pairs.len() as f64 * squares);
        }
        measures
    }
}

/// Returns share, fair share and the lacking fraction: over the samples, or the current values without samples.
fn over_time(client: &ClientFairness) -> (f64, f64, f64) {
    let sampled = &client.sampled;
    if sampled.seconds > 0.0 && sampled.target > 0.0 {
        let (share, fair) = (sampled.share / sampled.seconds, sampled.target / sampled.seconds);
        return (share, fair, sampled.missing / sampled.target);
    }
    let missing = (client.target - client.share).max(0.0);
    (client.share, client.target, if client.target > 0.0 { missing / client.target } else { 0.0 })
}
