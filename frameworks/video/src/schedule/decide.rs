//! A whole decision: cores for all, then places for those without, then again for each agent what it really has.

use super::allocate::{Demand, Horizon, Objective, Policy, Share, allocate};
use super::place::{Load, Placing, place_score};

/// An agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentView {
    /// Cores for queries.
    pub cores: f64,
}

/// A query.
#[derive(Clone, Debug)]
pub struct QueryView<'a> {
    /// What it needs and wants.
    pub demand: Demand<'a>,
    /// The number of the agent that it is on, if any.
    pub agent: Option<usize>,
}

/// What becomes of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The number of its agent; `None` if there is no agent at all.
    pub agent: Option<usize>,
    /// Its configuration and cores.
    pub share: Share,
}

/// Decides for all queries, in their order. Who has an agent stays there; the others are placed, the largest first, on
/// the agent with the highest score, or where most is free if none has room. On no agent more cores are given than it
/// has.
pub fn decide(
    agents: &[AgentView],
    queries: &[QueryView<'_>],
    policy: Policy,
    objective: Objective,
    horizon: Horizon,
) -> Vec<Decision> {
    let demands: Vec<Demand<'_>> = queries.iter().map(|q| q.demand.clone()).collect();
    let total = agents.iter().map(|a| a.cores.max(0.0)).sum();
    let shares = allocate(&demands, total, policy, objective, horizon);
    let mut loads: Vec<Load> = agents.iter().map(|a| Load { cores: a.cores, ..Default::default() }).collect();
    let mut places: Vec<Option<usize>> = queries.iter().map(|q| q.agent.filter(|a| *a < agents.len())).collect();
    let patient = |query: usize| demands[query].goals.max_lag > horizon.seconds;
    let put = |load: &mut Load, query: usize| {
        load.used += shares[query].cores;
        load.patient += if patient(query) { shares[query].cores } else { 0.0 };
    };
    for (query, place) in places.iter().enumerate() {
        if let Some(agent) = place {
            put(&mut loads[*agent], query);
        }
    }
    let mut waiting: Vec<usize> = (0..queries.len()).filter(|q| places[*q].is_none()).collect();
    waiting.sort_by(|a, b| shares[*b].cores.total_cmp(&shares[*a].cores).then(a.cmp(b)));
    for query in waiting {
        let placing = Placing { cores: shares[query].cores, patient: patient(query) };
        let scores = loads.iter().enumerate().filter_map(|(a, load)| place_score(load, placing).map(|s| (a, s)));
        let best = scores.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map(|(agent, _)| agent);
        let free = |load: &Load| load.cores - load.used;
        let emptiest = || (0..loads.len()).max_by(|a, b| free(&loads[*a]).total_cmp(&free(&loads[*b])).then(b.cmp(a)));
        if let Some(agent) = best.or_else(emptiest) {
            places[query] = Some(agent);
            put(&mut loads[agent], query);
        }
    }
    settle(agents, &demands, shares, &places, (policy, objective, horizon))
}

/// Allocates again on each agent that was given more than it has, or has cores over.
fn settle(
    agents: &[AgentView],
    demands: &[Demand<'_>],
    mut shares: Vec<Share>,
    places: &[Option<usize>],
    (policy, objective, horizon): (Policy, Objective, Horizon),
) -> Vec<Decision> {
    let mut on: Vec<Vec<usize>> = vec![Vec::new(); agents.len()];
    for (query, place) in places.iter().enumerate() {
        match place {
            Some(agent) => on[*agent].push(query),
            None => shares[query] = Share { point: shares[query].point, cores: 0.0 },
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
