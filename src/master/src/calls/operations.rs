//! ACCEPT's operations on resources: RESERVE, UNRESERVE, CREATE, DESTROY, GROW_VOLUME, SHRINK_VOLUME.
//!
//! They are applied at once, and the agent is told (mesos-features.md SCH-79). CREATE_DISK and DESTROY_DISK need a resource
//! provider's answer, and are refused.

use std::sync::Arc;

use protos::mesos::internal::{ApplyOperationMessage, CheckpointResourcesMessage, ResourceVersionUuid};
use protos::mesos::offer::{Operation, operation::Type};
use protos::mesos::{self, OperationState, OperationStatus};
use resources::{AgentAbilities, Conversion, Format, Requester, RequestingFramework, Resources, Role};

use super::accept::Deal;
use super::normalize::allocate;
use crate::io::Outbox;
use crate::master::Master;
use crate::state::{Agent, AgentKey};

impl Master {
    pub(crate) fn convert(&mut self, deal: &mut Deal, mut operation: Operation, out: &mut Outbox) {
        fill_allocations(&mut operation, deal.role.as_str());
        match self.conversions_of(deal, &operation) {
            Ok((conversions, left)) => {
                // What is grown or shrunk cannot be used in the same ACCEPT: the agent may yet refuse.
                if matches!(operation.r#type(), Type::GrowVolume | Type::ShrinkVolume) {
                    let made = &left - &deal.left;
                    deal.left = &left - &made;
                    deal.aside += &made;
                } else {
                    deal.left = left;
                }
                self.apply_to_agent(deal.agent, &conversions);
                self.send_operation(deal, operation, out);
            }
            Err(why) => self.fail_operation(deal.framework, &operation, Some(deal.agent), &why, out),
        }
    }

    /// Checks an operation. What it converts, and what is left of the deal then; the allocator has been told.
    fn conversions_of(&mut self, deal: &Deal, operation: &Operation) -> Result<(Vec<Conversion>, Resources), String> {
        let (Some(framework), Some(agent)) = (self.framework(deal.framework), self.agent(deal.agent)) else {
            return Err("The agent is gone".to_owned());
        };
        let able = agent.capabilities.resource_provider && agent.capabilities.agent_operation_feedback;
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
        check(operation, requester, agent)?;
        let conversions = resources::conversions(operation).map_err(|why| why.to_string())?;
        let left = deal.left.apply_conversions(&conversions).map_err(|why| why.to_string())?;
        let (framework_id, agent_id) = (framework.id.clone(), agent.id.clone());
        self.allocation.transform(&framework_id, &agent_id, &deal.role, &conversions)?;
        Ok((conversions, left))
    }

    /// The agent has other resources from now on.
    fn apply_to_agent(&mut self, key: AgentKey, conversions: &[Conversion]) {
        let Some(agent) = self.agent_mut(key) else { return };
        for conversion in conversions {
            agent.total -= &conversion.consumed.unallocated();
            agent.total += &conversion.converted.unallocated();
        }
        agent.checkpointed = agent.total.to_checkpoint();
    }

    /// Tells the agent, and remembers the operation until its end is acknowledged.
    fn send_operation(&mut self, deal: &Deal, operation_info: Operation, out: &mut Outbox) {
        let uuid = mesos::Uuid { value: self.next_uuid() };
        let (Some(framework), Some(agent)) = (self.framework(deal.framework), self.agent(deal.agent)) else { return };
        if !agent.capabilities.resource_provider {
            let resources = agent.checkpointed.to_proto(Format::PreRefinement);
            out.send(&agent.pid, CheckpointResourcesMessage { resources });
            return;
        }
        let version = agent.resource_version.clone().unwrap_or_default();
        let framework_id = Some(framework.proto_id());
        let message = ApplyOperationMessage {
            framework_id: framework_id.clone(),
            operation_info: operation_info.clone(),
            operation_uuid: uuid.clone(),
            resource_version_uuid: ResourceVersionUuid { resource_provider_id: None, uuid: version },
        };
        out.send(&agent.pid, message);
        let latest_status = OperationStatus {
            operation_id: operation_info.id.clone(),
            state: OperationState::OperationPending as i32,
            slave_id: Some(agent.proto_id()),
            ..Default::default()
        };
        let operation = mesos::Operation {
            framework_id,
            slave_id: Some(agent.proto_id()),
            info: operation_info,
            latest_status,
            statuses: Vec::new(),
            uuid: uuid.clone(),
        };
        if let Some(agent) = self.agent_mut(deal.agent) {
            agent.operations.insert(uuid.value, Arc::new(operation));
        }
    }

    /// 16 bytes that this master has not made before (SplitMix64, twice).
    fn next_uuid(&mut self) -> Vec<u8> {
        let mut half = || {
            self.next_operation += 1;
            let mut z = self.seed.wrapping_add(self.next_operation.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)).to_be_bytes()
        };
        [half(), half()].concat()
    }
}

/// The rules of the operation's kind.
fn check(operation: &Operation, requester: Requester<'_>, agent: &Agent) -> Result<(), String> {
    let abilities = AgentAbilities {
        hierarchical_role: agent.capabilities.hierarchical_role,
        reservation_refinement: agent.capabilities.reservation_refinement,
        resize_volume: agent.capabilities.resize_volume,
    };
    let checkpointed = &agent.checkpointed;
    let result = match operation.r#type() {
        Type::Reserve => {
            let body = operation.reserve.as_ref().ok_or("Expecting 'reserve' to be present")?;
            resources::check_reserve(body, requester, abilities)
        }
        Type::Unreserve => {
            resources::check_unreserve(operation.unreserve.as_ref().ok_or("Expecting 'unreserve' to be present")?)
        }
        Type::Create => {
            let body = operation.create.as_ref().ok_or("Expecting 'create' to be present")?;
            resources::check_create(body, checkpointed, requester, abilities)
        }
        Type::Destroy => {
            let body = operation.destroy.as_ref().ok_or("Expecting 'destroy' to be present")?;
            resources::check_destroy(body, checkpointed, [&agent.used.unallocated()])
        }
        Type::GrowVolume => {
            let body = operation.grow_volume.as_ref().ok_or("Expecting 'grow_volume' to be present")?;
            resources::check_grow(body, abilities)
        }
        Type::ShrinkVolume => {
            let body = operation.shrink_volume.as_ref().ok_or("Expecting 'shrink_volume' to be present")?;
            resources::check_shrink(body, abilities)
        }
        Type::CreateDisk | Type::DestroyDisk => return Err("Operation not supported".to_owned()),
        Type::Launch | Type::LaunchGroup | Type::Unknown => return Err("Unknown operation".to_owned()),
    };
    result.map_err(|why| format!("Invalid {} operation: {why}", operation.r#type().as_str_name()))
}

/// Resources without an allocation are the offers' role's.
fn fill_allocations(operation: &mut Operation, role: &str) {
    let reserve = operation.reserve.iter_mut().flat_map(|body| body.source.iter_mut().chain(&mut body.resources));
    reserve.for_each(|resource| allocate(std::slice::from_mut(resource), role));
    operation.unreserve.iter_mut().for_each(|body| allocate(&mut body.resources, role));
    operation.create.iter_mut().for_each(|body| allocate(&mut body.volumes, role));
    operation.destroy.iter_mut().for_each(|body| allocate(&mut body.volumes, role));
    if let Some(body) = &mut operation.grow_volume {
        allocate(std::slice::from_mut(&mut body.volume), role);
        allocate(std::slice::from_mut(&mut body.addition), role);
    }
    operation.shrink_volume.iter_mut().for_each(|body| allocate(std::slice::from_mut(&mut body.volume), role));
}
