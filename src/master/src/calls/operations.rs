//! Operations on resources of an ACCEPT: RESERVE, UNRESERVE, CREATE, DESTROY, GROW_VOLUME, SHRINK_VOLUME.
//!
//! They are applied at once, and sent to the agent (SCH-79). CREATE_DISK and DESTROY_DISK need a resource provider's
//! answer, and are rejected.

use protos::mesos::offer::{Operation, operation::Type};
use resources::{Conversion, Requester, RequestingFramework, Resources, Role};

use super::accept::AcceptedOffers;
use crate::io::Outbox;
use crate::master::Master;
use crate::operations::{agent_text, check, fill_allocations, provider_of, well_formed};
use crate::state::AgentKey;

impl Master {
    pub(crate) fn convert(&mut self, accepted: &mut AcceptedOffers, mut operation: Operation, out: &mut Outbox) {
        fill_allocations(&mut operation, accepted.role.as_str());
        match self.conversions_of(accepted, &operation, out) {
            Ok((conversions, left)) => {
                self.frameworks.count_operation(accepted.framework, operation.r#type());
                // A grown or shrunk volume cannot be used in the same ACCEPT: the agent may still refuse.
                if matches!(operation.r#type(), Type::GrowVolume | Type::ShrinkVolume) {
                    let made = &left - &accepted.left;
                    accepted.left = &left - &made;
                    accepted.unusable_results += &made;
                } else {
                    accepted.left = left;
                }
                self.apply_operation(accepted.agent, Some(accepted.framework), operation, &conversions, out);
            }
            Err(why) => self.fail_operation(accepted.framework, &operation, Some(accepted.agent), &why, out),
        }
    }

    /// Checks an operation, and applies it in the allocator. Returns its conversions and the remaining resources
    /// of the accepted offers.
    fn conversions_of(
        &mut self,
        accepted: &AcceptedOffers,
        operation: &Operation,
        out: &mut Outbox,
    ) -> Result<(Vec<Conversion>, Resources), String> {
        let (Some(framework), Some(agent)) = (self.framework(accepted.framework), self.agent(accepted.agent)) else {
            return Err("The agent is gone".to_owned());
        };
        // Resource providers send feedback themselves.
        let able = agent.capabilities.resource_provider
            && (agent.capabilities.agent_operation_feedback || provider_of(operation).is_some());
        if operation.id.is_some() && !able {
            return Err("Operation requested feedback, but agent does not have the required capability".to_owned());
        }
        let roles: Vec<Role> = framework.roles.iter().filter_map(|role| Role::parse(role).ok()).collect();
        let requester = Requester {
            principal: framework.info.principal.as_deref(),
            framework: Some(RequestingFramework {
                id: framework.id.as_str(),
                roles: &roles,
                shared_resources: framework.capabilities.shared_resources,
            }),
        };
        well_formed(operation)?;
        check(operation, requester, agent).map_err(|why| format!("{why}; on agent {}", agent_text(agent)))?;
        self.authorize_operation(framework.info.principal.as_deref(), operation)?;
        let conversions = resources::conversions(operation).map_err(|why| why.to_string())?;
        if operation.r#type() == Type::Destroy {
            self.rescind_copies(accepted.agent, &conversions, out);
        }
        let (Some(framework), Some(agent)) = (self.framework(accepted.framework), self.agent(accepted.agent)) else {
            return Err("The agent is gone".to_owned());
        };
        let left = accepted.left.apply_conversions(&conversions).map_err(|why| why.to_string())?;
        let (framework_id, agent_id) = (framework.id.clone(), agent.id.clone());
        self.allocation.transform(&framework_id, &agent_id, &accepted.role, &conversions)?;
        Ok((conversions, left))
    }

    /// Rescinds other offers of a shared volume that is to be destroyed (SCH-80).
    pub(crate) fn rescind_copies(&mut self, agent: AgentKey, conversions: &[Conversion], out: &mut Outbox) {
        let doomed: Resources = conversions.iter().filter_map(|step| step.must_be_gone.as_ref()).fold(
            Resources::new(),
            |mut all, volume| {
                all.add(volume.clone().with_allocation(None));
                all
            },
        );
        for key in self.offers.on_agent(agent) {
            let Some(offer) = self.offers.get(key) else { continue };
            let offered = offer.resources.unallocated();
            if doomed.iter().any(|volume| offered.contains_resource(volume)) {
                self.rescind_offer(key, out);
            }
        }
    }
}
