//! Where a query runs: the agent with the highest score.
//!
//! The score is the mean of three parts, each 0 to 1, as in the paper: utilisation (fill what is there), balance (keep
//! room on every agent), and lag spread (queries that can wait beside queries that cannot, so that the first can lend
//! cores to the second). The forms of the parts are ours.

/// An agent as a placement sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Cores that there are.
    pub cores: f64,
    /// Cores that are given to queries.
    pub used: f64,
    /// Of those, cores of queries that can wait (see [`Placing::patient`]).
    pub patient: f64,
}

/// A query to place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placing {
    /// Cores that it will use.
    pub cores: f64,
    /// Whether its lag goal is longer than the horizon.
    pub patient: bool,
}

/// The score of placing a query on an agent, 0 to 1; `None` if it has no room.
pub fn place_score(load: &Load, query: Placing) -> Option<f64> {
    let free = load.cores - load.used;
    if query.cores > free + 1e-9 || load.cores <= 0.0 {
        return None;
    }
    let utilisation = if free <= 1e-9 { 1.0 } else { (query.cores / free).clamp(0.0, 1.0) };
    let balance = 1.0 - ((load.used + query.cores) / load.cores).clamp(0.0, 1.0);
    let waiting = (load.patient / load.cores).clamp(0.0, 1.0);
    let spread = if query.patient { 1.0 - waiting } else { waiting };
    Some((utilisation + balance + spread) / 3.0)
}

/// The agent that a placed query should move to, if its score there is higher than here by more than `threshold`. Its
/// own share is taken off where it is, so that it does not stand in its own way.
pub fn better_place(loads: &[Load], query: Placing, here: usize, threshold: f64) -> Option<usize> {
    let mut own = *loads.get(here)?;
    own.used -= query.cores;
    own.patient -= if query.patient { query.cores } else { 0.0 };
    let now = place_score(&own, query).unwrap_or(0.0);
    let others = loads.iter().enumerate().filter(|(agent, _)| *agent != here);
    let best = others.filter_map(|(agent, load)| place_score(load, query).map(|score| (agent, score)));
    let (agent, score) = best.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    (score > now + threshold).then_some(agent)
}
