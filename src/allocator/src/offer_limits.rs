//! Application of the policies of offers and refusals to the allocator's state: timeouts, back-off, the cap on what is
//! held as offers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base::FrameworkId;
use resources::{Quantities, Resources, Role};
use rustc_hash::FxHashMap;

use crate::Filter;
use crate::allocator::Allocator;
use crate::clients::ClientIx;
use crate::policies::Policies;

/// Frameworks that were skipped because of what they hold as offers.
#[derive(Debug, Default)]
pub(crate) struct CappedFrameworks {
    capped: BTreeSet<u32>,
    /// Frameworks among these that hold less now. The next run considers them for every agent.
    below_cap: BTreeSet<u32>,
    /// How often each framework was skipped in this run. From [`PASSES`] on it is not considered any more.
    passes: FxHashMap<u32, u32>,
    /// Number of frameworks that are not considered any more in this run.
    skipped_for_run: usize,
}

/// Number of agents for which a framework is skipped in a run because of what it holds, before it is no longer
/// considered. Without this limit, a framework that holds almost all that it may hold is considered for every agent of
/// the cluster, for a last small offer.
const PASSES: u32 = 16;

impl CappedFrameworks {
    /// Records that a framework was skipped.
    pub(crate) fn cap(&mut self, framework: u32) {
        self.capped.insert(framework);
        let passes = self.passes.entry(framework).or_default();
        *passes += 1;
        self.skipped_for_run += usize::from(*passes == PASSES);
    }

    /// Resets the counts at the start of a run.
    pub(crate) fn begin_run(&mut self) {
        self.passes.clear();
        self.skipped_for_run = 0;
    }

    /// Returns the number of frameworks that are not considered any more in this run.
    pub(crate) fn skipped_for_run(&self) -> usize {
        self.skipped_for_run
    }

    /// Returns whether a framework is not considered any more in this run.
    pub(crate) fn is_skipped_for_run(&self, framework: u32) -> bool {
        self.skipped_for_run > 0 && self.passes.get(&framework).is_some_and(|passes| *passes >= PASSES)
    }

    /// Records that a framework holds less than before.
    pub(crate) fn mark_below_cap(&mut self, framework: u32) {
        if self.capped.remove(&framework) {
            self.below_cap.insert(framework);
        }
    }

    /// Records that the shares of all frameworks may be smaller than before.
    pub(crate) fn mark_all_below_cap(&mut self) {
        self.below_cap.append(&mut self.capped);
    }

    pub(crate) fn forget(&mut self, framework: u32) {
        self.capped.remove(&framework);
        self.below_cap.remove(&framework);
    }
}

impl Allocator {
    /// Returns the policies in force.
    #[must_use]
    pub fn policies(&self) -> &Policies {
        &self.config.policies
    }

    /// Replaces the policies, which the caller has [checked](Policies::check). Current refusals and outstanding offers
    /// keep their times.
    pub fn set_policies(&mut self, policies: Policies) {
        self.config.policies = policies;
        self.caps.mark_all_below_cap();
        for (ix, agent) in &mut self.agents {
            agent.clients_to_consider.all = true;
            if !agent.queued {
                agent.queued = true;
                self.queue.push(ix as u32);
            }
        }
    }

    /// Returns the time that a framework has to answer an offer in a role, or `None` for no limit.
    #[must_use]
    pub fn offer_timeout(&self, framework: &FrameworkId, role: &Role) -> Option<Duration> {
        let state = &self.frameworks[self.framework(framework)? as usize];
        let policies = &self.config.policies;
        let set = policies.offer_timeout(framework.as_str(), &state.title, role);
        let learned = policies.adaptive_timeout.map(|limits| state.learned_timeout.limit(limits));
        [set, learned].into_iter().flatten().min()
    }

    /// Returns the duration of a refusal, which is longer if it follows other refusals of the same agent.
    pub(crate) fn backed_off(&mut self, agent: u32, client: ClientIx, role: &Role, refuse: Duration) -> Duration {
        let limits = self.config.policies.refusing(role);
        let Some(backoff) = limits.backoff.filter(|_| !refuse.is_zero()) else { return refuse };
        let before = self.agents[agent as usize].refusals.count_in_a_row(client, &self.clients);
        let longest = backoff.max.min(limits.max.unwrap_or(Filter::MAX_REFUSE)).as_secs_f64();
        let seconds = (refuse.as_secs_f64() * backoff.factor.powi(i32::from(before))).min(longest);
        Duration::try_from_secs_f64(seconds).map_or(refuse, |longer| longer.max(refuse))
    }

    /// Returns whether a framework may hold one more offer, in addition to what it holds and what was just `given` to
    /// it.
    pub(crate) fn is_within_cap(
        &self,
        framework: u32,
        offer: &Resources,
        given: &[(ClientIx, Arc<Resources>)],
    ) -> bool {
        let state = &self.frameworks[framework as usize];
        let Some(cap) = self.config.policies.max_offered_share(state.id.as_str(), &state.title) else { return true };
        let mut held = Quantities::new();
        for client in state.clients.values() {
            held += &self.clients.get(*client).offered;
        }
        for (client, resources) in given {
            if self.clients.get(*client).framework == framework {
                held += &resources.quantities();
            }
        }
        held.is_empty() || self.tree.share_of(&(held + &offer.quantities())) <= cap
    }

    /// Opens clients that hold less than when they were skipped.
    pub(crate) fn open_clients_below_cap(&mut self) {
        for framework in std::mem::take(&mut self.caps.below_cap) {
            let Some(state) = self.frameworks.get(framework as usize) else { continue };
            let clients: Vec<ClientIx> = state.clients.values().copied().collect();
            for client in clients {
                let listed = self.clients.get(client).node.is_some_and(|node| self.tree.is_active(node));
                if listed {
                    self.open(client);
                }
            }
        }
    }
}
