//! Results of offers: resources are returned, accepted, or changed by an operation.

use base::{AgentId, FrameworkId, Time};
use resources::{Conversion, ConversionError, Resources, Role};

use crate::allocator::{Allocator, conversions_without_allocation, without_allocation};
use crate::clients::ClientIx;
use crate::{Filter, Held, Holder, refusals};

/// Reasons why a framework's resources could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum TransformError {
    /// The framework holds nothing on that agent in that role.
    #[error("Framework {framework} holds nothing on agent {agent} in role {role}")]
    HoldsNothing {
        /// Framework of the operation.
        framework: FrameworkId,
        /// Role of the operation.
        role: Role,
        /// Agent of the operation.
        agent: AgentId,
    },
    /// One of the steps needs more than the framework holds, or than the agent has.
    #[error("Framework {framework} cannot change its resources on agent {agent}")]
    NotHeld {
        /// Framework of the operation.
        framework: FrameworkId,
        /// Agent of the operation.
        agent: AgentId,
        /// Resources that are needed, and those that exist.
        source: Box<ConversionError>,
    },
}

impl Allocator {
    /// Returns resources to the allocator: declined, unused or rescinded ones (`Held::Offered`), or those of a task
    /// that has ended (`Held::Used`).
    ///
    /// With a filter the framework, in this role, is not offered them again for that time, at least until the next
    /// interval run. Resources that are unknown or not held (because a framework or an agent was removed meanwhile) are
    /// ignored.
    pub fn recover(
        &mut self,
        holder: Holder<'_>,
        resources: &Resources,
        held: Held,
        filter: Option<Filter>,
        now: Time,
    ) {
        self.set_time(now);
        let Some((client, ix)) = self.holder(holder) else { return };
        let resources = without_allocation(resources);
        self.release(ix, client, &resources, held);
        if let Some(filter) = filter
            && !resources.is_empty()
            && self.clients.get(client).subscribed
        {
            // Even a refusal for no time lasts until the next interval run. Otherwise a framework that declines
            // everything would be offered it again at once, forever.
            let least = self.config.allocation_interval;
            let refuse = self.backed_off(ix, client, holder.role, filter.refuse);
            let until = (!refuse.is_zero()).then(|| now + refuse.max(least));
            let new = refusals::NewRefusal { agent: ix, client, refused: &resources, until };
            refusals::store(new, &mut self.agents[ix as usize].refusals, &mut self.refusal_expiries, &mut self.clients);
            if until.is_none() {
                self.await_interval(now);
            }
        }
        self.drop_unused_client(client);
    }

    /// Records that offered resources are used by a task, an executor or an operation of the framework from now on.
    pub fn mark_offered_used(&mut self, holder: Holder<'_>, resources: &Resources) {
        if let Some((client, ix)) = self.holder(holder) {
            self.mark_used(ix, client, &without_allocation(resources));
            self.agents[ix as usize].refusals.used(client);
        }
    }

    /// Records that a further task of the framework uses `shared`, copies of shared resources that the framework uses
    /// already. Resources that are not shared, or not used by it yet, are ignored.
    pub fn add_shared_copies(&mut self, holder: Holder<'_>, shared: &Resources) {
        if let Some((client, ix)) = self.holder(holder) {
            let used = self.agents[ix as usize].holding(client).map_or(Resources::new(), |held| held.used().shared());
            let further = without_allocation(shared).filter(|r| used.count(r) > 0);
            self.add_copies(ix, client, &further);
        }
    }

    fn holder(&self, holder: Holder<'_>) -> Option<(ClientIx, u32)> {
        Some((self.client(holder.framework, holder.role)?, self.agent(holder.agent)?))
    }

    /// Applies operations to resources that a framework was offered or uses: RESERVE, UNRESERVE, CREATE, DESTROY and
    /// the like.
    ///
    /// # Errors
    /// One of the steps needs resources that the framework does not hold. Nothing is changed then.
    pub fn transform(
        &mut self,
        holder: Holder<'_>,
        conversions: &[Conversion],
        held: Held,
    ) -> Result<(), TransformError> {
        let (framework, agent) = (holder.framework.clone(), holder.agent.clone());
        let Some((client, ix)) = self.holder(holder) else {
            return Err(TransformError::HoldsNothing { framework, agent, role: holder.role.clone() });
        };
        let holding = self.agents[ix as usize].holding(client).cloned().unwrap_or_default();
        let before = holding.get(held).clone();
        let apply = || {
            let conversions = conversions_without_allocation(conversions);
            Ok((
                before.apply_conversions(&conversions)?,
                self.agents[ix as usize].total.apply_conversions(&conversions)?,
            ))
        };
        let (after, total) = apply().map_err(|source: ConversionError| TransformError::NotHeld {
            framework,
            agent,
            source: Box::new(source),
        })?;
        self.replace_allocation(ix, client, &before, &after, held);
        self.set_total(ix, total);
        Ok(())
    }
}
