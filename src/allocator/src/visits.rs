//! Agents that a run may visit, the choice of the next one, and their properties for sorters.
//!
//! The order of a run over many agents is drawn one by one: a run that soon has no client left costs no more than the
//! agents that it has visited.

use std::ops::ControlFlow;

use crate::allocator::Allocator;
use crate::bits::Bits;
use crate::policies::AgentOrder;

/// Number of agents that are compared to find the one that fits best; more would make a run with many agents quadratic.
const LOOKED_AT: usize = 128;

/// Number of agents up to which their order is drawn all at once, so that runs of a small cluster depend only on its
/// agents and the seed.
const DRAWN_TOGETHER: usize = 64;

/// Agents that a run has still to visit.
#[derive(Default)]
pub(crate) struct AgentsToVisit {
    /// Agents to visit. If `drawn`, they are in the order of the visits, the last one first.
    pub(crate) left: Vec<u32>,
    drawn: bool,
    /// Agents with changes, sorted; `None` if all agents that are left have changes. The others are visited for clients
    /// that were opened.
    pub(crate) changed: Option<Vec<u32>>,
    /// Agents that were visited, while the order of the others is drawn one by one.
    visited: Bits,
}

impl AgentsToVisit {
    /// Limits the round to agents with changes.
    pub(crate) fn only_changed(&mut self) {
        let Some(mut changed) = self.changed.take() else { return };
        if self.drawn {
            self.left.retain(|ix| changed.binary_search(ix).is_ok());
        } else {
            // Agents with changes are few, and all the others many.
            changed.retain(|ix| !self.visited.contains(*ix));
            self.left = changed;
        }
    }
}

impl Allocator {
    /// Returns a round over these agents.
    pub(crate) fn plan_round(&mut self, mut left: Vec<u32>, changed: Option<Vec<u32>>) -> AgentsToVisit {
        let drawn = left.len() <= DRAWN_TOGETHER;
        if drawn {
            if changed.is_some() {
                left.sort_unstable();
            }
            left.retain(|ix| self.may_visit(*ix));
            self.rng.shuffle(&mut left);
            left.reverse();
        }
        AgentsToVisit { left, drawn, changed, visited: Bits::default() }
    }

    /// Draws the order of all agents of a round.
    pub(crate) fn draw_all(&mut self, to_visit: &mut AgentsToVisit) {
        if !to_visit.drawn {
            to_visit.left.retain(|ix| self.may_visit(*ix));
            self.rng.shuffle(&mut to_visit.left);
            to_visit.drawn = true;
        }
    }

    /// Records whether an agent has free resources.
    pub(crate) fn set_spare(&mut self, ix: u32, spare: bool) {
        let agent = &mut self.agents[ix as usize];
        match (agent.spare, spare) {
            (None, true) => {
                agent.spare = Some(self.spare.len() as u32);
                self.spare.push(ix);
            }
            (Some(at), false) => {
                agent.spare = None;
                self.spare.swap_remove(at as usize);
                if let Some(moved) = self.spare.get(at as usize) {
                    self.agents[*moved as usize].spare = Some(at);
                }
            }
            _ => {}
        }
    }

    /// Passes the agent to the sorters that need it.
    pub(crate) fn begin_visit(&mut self, ix: u32) {
        if !self.tree.is_order_kept() {
            let draw = self.rng.next();
            self.tree.begin_visit(self.agents[ix as usize].total.quantities(), draw);
        }
    }

    /// Sorts the agents of a round by `agent_order`. Agents that are equally full stay shuffled.
    pub(crate) fn in_order(&mut self, to_visit: &mut AgentsToVisit) {
        let order = self.config.policies.agent_order;
        if order == AgentOrder::Random {
            return;
        }
        self.draw_all(to_visit);
        let free = |ix: &u32| {
            let agent = &self.agents[*ix as usize];
            let (free, total) = (agent.free.quantities(), agent.total.quantities());
            let parts = total.iter().map(|(name, all)| free.get(&name).ratio_of(all));
            let (sum, count) = parts.fold((0.0, 0_u32), |(sum, count), part| (sum + part, count + 1));
            // In millionths, because integers have a total order.
            (sum / f64::from(count.max(1)) * 1e6) as u64
        };
        if order == AgentOrder::Fullest {
            to_visit.left.sort_by_cached_key(|ix| std::cmp::Reverse(free(ix)));
        } else {
            to_visit.left.sort_by_cached_key(free);
        }
    }

    /// Returns the next agent to visit and removes it from the round: any agent with equal probability, or the one of
    /// some that fits best.
    pub(crate) fn next_agent(&mut self, to_visit: &mut AgentsToVisit) -> Option<u32> {
        if self.tree.is_best_fit() {
            self.draw_all(to_visit);
            return self.best_agent(&mut to_visit.left);
        }
        if to_visit.drawn {
            return to_visit.left.pop();
        }
        let count = u32::try_from(to_visit.left.len()).ok().filter(|count| *count > 0)?;
        let ix = to_visit.left.swap_remove(self.rng.below(count) as usize);
        if to_visit.changed.is_some() {
            to_visit.visited.set(ix);
        }
        Some(ix)
    }

    fn best_agent(&self, agents: &mut Vec<u32>) -> Option<u32> {
        let mut poorest = None;
        self.tree.walk(|client| {
            poorest = Some(client);
            ControlFlow::Break(())
        });
        let wanted = &self.clients.get(poorest?).used;
        let looked_at = agents.len().saturating_sub(LOOKED_AT)..agents.len();
        let distance = |at: &usize| {
            let free = self.agents[agents[*at] as usize].free.quantities();
            crate::sorters::distance(wanted, &free, self.tree.counted())
        };
        let best = looked_at.rev().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        Some(agents.swap_remove(best))
    }
}
