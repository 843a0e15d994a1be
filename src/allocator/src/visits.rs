//! What a sorter wants to know of a visit, and which agent is visited next.

use std::ops::ControlFlow;

use crate::allocator::Allocator;
use crate::policies::AgentOrder;

/// How many agents are looked at for the one that fits best; more would make a run with many agents quadratic.
const LOOKED_AT: usize = 128;

impl Allocator {
    /// Tells sorters of the agent, if there are any who want to know.
    pub(crate) fn begin_visit(&mut self, ix: u32) {
        if !self.tree.is_order_kept() {
            let draw = self.rng.next();
            self.tree.begin_visit(self.agents[ix as usize].total.quantities(), draw);
        }
    }

    /// Puts a shuffled list of agents, whose end is visited first, into the order of `agent_order`. Agents that are as full as
    /// each other stay shuffled.
    pub(crate) fn in_order(&self, agents: &mut [u32]) {
        let free = |ix: &u32| {
            let agent = &self.agents[*ix as usize];
            let (free, total) = (agent.free.quantities(), agent.total.quantities());
            let parts = total.iter().map(|(name, all)| free.get(&name).ratio_of(all));
            let (sum, count) = parts.fold((0.0, 0_u32), |(sum, count), part| (sum + part, count + 1));
            // In millionths: an integer has an order without surprises.
            (sum / f64::from(count.max(1)) * 1e6) as u64
        };
        match self.config.policies.agent_order {
            AgentOrder::Random => {}
            AgentOrder::Fullest => agents.sort_by_cached_key(|ix| std::cmp::Reverse(free(ix))),
            AgentOrder::Emptiest => agents.sort_by_cached_key(free),
        }
    }

    /// Takes the next agent to visit out of a shuffled list, whose end comes first.
    pub(crate) fn next_agent(&self, agents: &mut Vec<u32>) -> Option<u32> {
        if !self.tree.is_best_fit() {
            return agents.pop();
        }
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
