//! RESERVE_RESOURCES, UNRESERVE_RESOURCES, CREATE_VOLUMES, DESTROY_VOLUMES, GROW_VOLUME, SHRINK_VOLUME, and the legacy
//! endpoints (OPM-29 to OPM-34).
//!
//! Offers are rescinded for them, as few as needed; used resources are not touched.

use cores::{CallError, ErrorKind};
use protos::mesos::master::{Call, call};
use protos::mesos::offer::{Operation, operation};
use resources::{Conversion, Requester, Resources};

use crate::io::Outbox;
use crate::master::Master;
use crate::operations::{agent_text, check, well_formed, without_allocations};
use crate::state::{AgentKey, OfferKey};

/// Returns the agent and the operation of a call, or the call itself if it is of another kind.
pub(crate) fn operation_of(kind: call::Type, body: Call) -> Result<(String, Operation), Box<Call>> {
    use operation::Type;
    let mut wanted = Operation::default();
    let agent = match kind {
        call::Type::ReserveResources => {
            let call::ReserveResources { slave_id, source, resources } = body.reserve_resources.unwrap_or_default();
            wanted.set_type(Type::Reserve);
            wanted.reserve = Some(operation::Reserve { source, resources });
            slave_id
        }
        call::Type::UnreserveResources => {
            let call::UnreserveResources { slave_id, resources } = body.unreserve_resources.unwrap_or_default();
            wanted.set_type(Type::Unreserve);
            wanted.unreserve = Some(operation::Unreserve { resources });
            slave_id
        }
        call::Type::CreateVolumes => {
            let call::CreateVolumes { slave_id, volumes } = body.create_volumes.unwrap_or_default();
            wanted.set_type(Type::Create);
            wanted.create = Some(operation::Create { volumes });
            slave_id
        }
        call::Type::DestroyVolumes => {
            let call::DestroyVolumes { slave_id, volumes } = body.destroy_volumes.unwrap_or_default();
            wanted.set_type(Type::Destroy);
            wanted.destroy = Some(operation::Destroy { volumes });
            slave_id
        }
        call::Type::GrowVolume => {
            let call::GrowVolume { slave_id, volume, addition } = body.grow_volume.unwrap_or_default();
            wanted.set_type(Type::GrowVolume);
            wanted.grow_volume = Some(Box::new(operation::GrowVolume { volume, addition }));
            slave_id.unwrap_or_default()
        }
        call::Type::ShrinkVolume => {
            let call::ShrinkVolume { slave_id, volume, subtract } = body.shrink_volume.unwrap_or_default();
            wanted.set_type(Type::ShrinkVolume);
            wanted.shrink_volume = Some(Box::new(operation::ShrinkVolume { volume, subtract }));
            slave_id.unwrap_or_default()
        }
        _ => return Err(Box::new(body)),
    };
    Ok((agent.value.into(), wanted))
}

impl Master {
    /// Applies an operator's operation to unused resources.
    pub(crate) fn operate_on(
        &mut self,
        agent_id: &str,
        operation: &Operation,
        principal: Option<&str>,
        out: &mut Outbox,
    ) -> Result<(), CallError> {
        let unknown = || CallError::invalid("No agent found with specified ID");
        let key = self.agent_by_id(agent_id).ok_or_else(unknown)?;
        let agent = self.agent(key).ok_or_else(unknown)?;
        let kind = operation.r#type();
        let invalid = |why: String| {
            let place = match kind {
                operation::Type::Unreserve | operation::Type::Destroy => String::new(),
                _ => format!(" on agent {}", agent_text(agent)),
            };
            CallError::invalid(format!("Invalid {} operation{place}: {why}", kind.as_str_name()))
        };
        well_formed(operation).map_err(CallError::invalid)?;
        check(operation, Requester { principal, framework: None }, agent).map_err(invalid)?;
        if let Err(why) = self.authorize_operation(principal, operation) {
            out.warn(format!("Refusing a call of {}: {why}", principal.unwrap_or("a client without a principal")));
            return Err(CallError::forbidden(why));
        }
        let operation = without_allocations(operation);
        let conversions = resources::conversions(&operation).map_err(|why| invalid(why.to_string()))?;
        self.free_for(key, &conversions, out)?;
        self.apply_operation(key, None, operation, &conversions, out);
        Ok(())
    }

    /// Applies the conversions in the allocator, and rescinds the offers that conflict with them. No offer is rescinded
    /// if that would not help.
    fn free_for(&mut self, key: AgentKey, conversions: &[Conversion], out: &mut Outbox) -> Result<(), CallError> {
        let Some(agent) = self.agent(key).cloned() else { return Err(CallError::new(ErrorKind::Conflict, "")) };
        if !agent.connected || self.agents.is_task_list_uncertain(key) {
            // Tasks that were lost with its connection may still run, and be listed when it reregisters.
            let why = format!("Agent {} is not connected, so its used resources are uncertain", agent.id);
            return Err(CallError::new(ErrorKind::Conflict, why));
        }
        let unused = &agent.total - &agent.used.unallocated();
        unused.apply_conversions(conversions).map_err(|why| CallError::new(ErrorKind::Conflict, why.to_string()))?;
        self.rescind_copies(key, conversions, out);
        let mut wanted = Resources::new();
        conversions.iter().for_each(|step| wanted += &step.consumed);
        let mut offers = self.offers.on_agent(key);
        loop {
            let refused = match self.allocation.update_available(&agent.id, conversions) {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            let touches = |offer: &OfferKey| {
                let offer = self.offers.get(*offer);
                offer.is_some_and(|offer| &wanted - &offer.resources.unallocated() != wanted)
            };
            let Some(at) = offers.iter().position(touches) else {
                return Err(CallError::new(ErrorKind::Conflict, refused));
            };
            let offer = offers.remove(at);
            self.rescind_offer(offer, out);
        }
    }
}
