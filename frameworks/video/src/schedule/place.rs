//! Places queries on the agent with the highest score.
//!
//! The score is the mean of three parts, each 0 to 1, as in the paper: utilisation (fill the free cores), balance (keep
//! free cores on every agent), and lag spread (queries that can wait beside queries that cannot, so that the first can
//! lend cores to the second). The formulas of the parts are tepui's.

/// An agent as a placement sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Number of cores of the agent.
    pub cores: f64,
    /// Number of cores that are given to queries.
    pub used: f64,
    /// Number of these cores that belong to queries that can wait (see [`PlacementRequest::patient`]).
    pub patient: f64,
}

/// A query to place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacementRequest {
    /// Number of cores that the query will use.
    pub cores: f64,
    /// Whether the query's lag goal is longer than the horizon.
    pub patient: bool,
}

/// Returns the score of placing a query on an agent, 0 to 1; `None` if it does not fit.
pub fn place_score(load: &Load, query: PlacementRequest) -> Option<f64> {
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

/// Returns the agent that a placed query should move to, if its score there is higher than here by more than
/// `threshold`. On its present agent the query's own cores count as free.
pub fn better_place(loads: &[Load], query: PlacementRequest, here: usize, threshold: f64) -> Option<usize> {
    let mut own = *loads.get(here)?;
    own.used -= query.cores;
    own.patient -= if query.patient { query.cores } else { 0.0 };
    let now = place_score(&own, query).unwrap_or(0.0);
    let others = loads.iter().enumerate().filter(|(agent, _)| *agent != here);
    let best = others.filter_map(|(agent, load)| place_score(load, query).map(|score| (agent, score)));
    let (agent, score) = best.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    (score > now + threshold).then_some(agent)
}
