//! A complete decision: allocates cores to all queries, places those without an agent, then allocates again on each
//! agent what it really has.

use super::allocate::{Demand, Horizon, Objective, Policy, Share, allocate};
use super::place::{Load, PlacementRequest, place_score};

/// An agent as a decision sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentView {
    /// Number of cores for queries.
    pub cores: f64,
}

/// A query as a decision sees it.
#[derive(Clone, Debug)]
pub struct QueryView<'a> {
    /// Demand and goals of the query.
    pub demand: Demand<'a>,
    /// Index of the agent that the query is on; `None` if it has none.
    pub agent: Option<usize>,
}

/// The decision about a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Index of the query's agent; `None` if there are no agents.
    pub agent: Option<usize>,
    /// Configuration and cores of the query.
    pub share: Share,
}

/// Decides for all queries, in their order. A query that has an agent stays there. The others are placed, the largest
/// first, on the agent with the highest score, or on the one with the most free cores if they fit nowhere. No agent
/// gives more cores than it has.
///
/// A query counts with its long-term demand, not with its present share: the share may be 0 if the query can wait, and
/// any number of those would fit on one agent.
pub fn decide(
    agents: &[AgentView],
    queries: &[QueryView<'_>],
    policy: Policy,
    objective: Objective,
    horizon: Horizon,
) -> Vec<Decision> {
    let demands: Vec<Demand<'_>> = queries.iter().map(|q| q.demand.clone()).collect();
    let mut places: Vec<Option<usize>> = queries.iter().map(|q| q.agent.filter(|a| *a < agents.len())).collect();
    if places.iter().any(Option::is_none) {
        let total = agents.iter().map(|a| a.cores.max(0.0)).sum();
        let shares = allocate(&demands, total, policy, objective, horizon);
        let takes: Vec<f64> =
            demands.iter().zip(&shares).map(|(d, share)| share.cores.max(d.least_cores_for_goals())).collect();
        place(agents, &demands, &takes, &mut places, horizon);
    }
    settle(agents, &demands, &places, (policy, objective, horizon))
}

/// Places the queries that have no agent; `takes` has the cores that each one uses.
fn place(agents: &[AgentView], demands: &[Demand<'_>], takes: &[f64], places: &mut [Option<usize>], horizon: Horizon) {
    let mut loads: Vec<Load> = agents.iter().map(|a| Load { cores: a.cores, ..Default::default() }).collect();
    let patient = |query: usize| demands[query].goals.max_lag > horizon.seconds;
    let put = |load: &mut Load, query: usize| {
        load.used += takes[query];
        load.patient += if patient(query) { takes[query] } else { 0.0 };
    };
    for (query, place) in places.iter().enumerate() {
        if let Some(agent) = place {
            put(&mut loads[*agent], query);
        }
    }
    let mut waiting: Vec<usize> = (0..demands.len()).filter(|q| places[*q].is_none()).collect();
    waiting.sort_by(|a, b| takes[*b].total_cmp(&takes[*a]).then(a.cmp(b)));
    for query in waiting {
        let placing = PlacementRequest { cores: takes[query], patient: patient(query) };
        let scores = loads.iter().enumerate().filter_map(|(a, load)| place_score(load, placing).map(|s| (a, s)));
        let best = scores.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(agent, _)| agent);
        let free = |load: &Load| load.cores - load.used;
        let emptiest = || (0..loads.len()).max_by(|a, b| free(&loads[*a]).total_cmp(&free(&loads[*b])).then(b.cmp(a)));
        if let Some(agent) = best.or_else(emptiest) {
            places[query] = Some(agent);
            put(&mut loads[agent], query);
        }
    }
}

/// Allocates the cores of each agent to the queries on it.
fn settle(
    agents: &[AgentView],
    demands: &[Demand<'_>],
    places: &[Option<usize>],
    (policy, objective, horizon): (Policy, Objective, Horizon),
) -> Vec<Decision> {
    let mut on: Vec<Vec<usize>> = vec![Vec::new(); agents.len()];
    let mut shares = vec![Share { point: 0, cores: 0.0 }; demands.len()];
    for (query, place) in places.iter().enumerate() {
        if let Some(agent) = place {
            on[*agent].push(query);
        }
    }
    for (agent, queries) in agents.iter().zip(&on) {
        let here: Vec<Demand<'_>> = queries.iter().map(|q| demands[*q].clone()).collect();
        for (query, share) in queries.iter().zip(allocate(&here, agent.cores, policy, objective, horizon)) {
            shares[*query] = share;
        }
    }
    places.iter().zip(shares).map(|(agent, share)| Decision { agent: *agent, share }).collect()
}
