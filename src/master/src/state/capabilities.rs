//! Capabilities of agents and frameworks, as sets.
//!
//! It does not decide what follows from a capability.

use protos::mesos::{framework_info, slave_info};

/// Capabilities of a framework.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FrameworkCapabilities {
    pub revocable_resources: bool,
    pub task_killing_state: bool,
    pub gpu_resources: bool,
    pub shared_resources: bool,
    pub partition_aware: bool,
    pub multi_role: bool,
    pub reservation_refinement: bool,
    pub region_aware: bool,
}

impl FrameworkCapabilities {
    /// Reads a set of capabilities; unknown ones are ignored.
    pub fn new(list: &[framework_info::Capability]) -> FrameworkCapabilities {
        use framework_info::capability::Type;
        let mut set = FrameworkCapabilities::default();
        for capability in list {
            match capability.r#type() {
                Type::RevocableResources => set.revocable_resources = true,
                Type::TaskKillingState => set.task_killing_state = true,
                Type::GpuResources => set.gpu_resources = true,
                Type::SharedResources => set.shared_resources = true,
                Type::PartitionAware => set.partition_aware = true,
                Type::MultiRole => set.multi_role = true,
                Type::ReservationRefinement => set.reservation_refinement = true,
                Type::RegionAware => set.region_aware = true,
                Type::Unknown => {}
            }
        }
        set
    }
}

/// Capabilities of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct AgentCapabilities {
    pub multi_role: bool,
    pub hierarchical_role: bool,
    pub reservation_refinement: bool,
    pub resource_provider: bool,
    pub resize_volume: bool,
    pub agent_operation_feedback: bool,
    pub agent_draining: bool,
    pub task_resource_limits: bool,
}

impl AgentCapabilities {
    /// Reads a set of capabilities; unknown ones are ignored.
    pub fn new(list: &[slave_info::Capability]) -> AgentCapabilities {
        use slave_info::capability::Type;
        let mut set = AgentCapabilities::default();
        for capability in list {
            match capability.r#type() {
                Type::MultiRole => set.multi_role = true,
                Type::HierarchicalRole => set.hierarchical_role = true,
                Type::ReservationRefinement => set.reservation_refinement = true,
                Type::ResourceProvider => set.resource_provider = true,
                Type::ResizeVolume => set.resize_volume = true,
                Type::AgentOperationFeedback => set.agent_operation_feedback = true,
                Type::AgentDraining => set.agent_draining = true,
                Type::TaskResourceLimits => set.task_resource_limits = true,
                Type::Unknown => {}
            }
        }
        set
    }

    /// Returns the set as it stands on the wire, in the order of the numbers.
    pub fn to_proto(self) -> Vec<slave_info::Capability> {
        use slave_info::capability::Type;
        let all = [
            (self.multi_role, Type::MultiRole),
            (self.hierarchical_role, Type::HierarchicalRole),
            (self.reservation_refinement, Type::ReservationRefinement),
            (self.resource_provider, Type::ResourceProvider),
            (self.resize_volume, Type::ResizeVolume),
            (self.agent_operation_feedback, Type::AgentOperationFeedback),
            (self.agent_draining, Type::AgentDraining),
            (self.task_resource_limits, Type::TaskResourceLimits),
        ];
        let present = all.into_iter().filter(|(on, _)| *on);
        present.map(|(_, kind)| slave_info::Capability { r#type: Some(kind as i32) }).collect()
    }
}
