//! Applies the reservations and volumes that an agent keeps over a restart to the resources of its flags.

use crate::{Resource, Resources};

/// An error of applying checkpointed resources to those of the agent's flags.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The checkpoint contains a resource that no operation makes.
    #[error("Unexpected checkpointed resources {0}")]
    Unexpected(Resource),
    /// The flags contain less than what was reserved.
    #[error("Incompatible agent resources: {total} does not contain {needed}")]
    Incompatible {
        /// Resources of the flags after the conversions before.
        total: Resources,
        /// Resource that is needed.
        needed: Box<Resource>,
    },
}

impl Resource {
    /// Returns whether an operation on the agent's own resources made this resource, so that the agent must checkpoint
    /// it.
    #[must_use]
    pub fn needs_checkpointing(&self) -> bool {
        self.provider().is_none() && (self.is_dynamically_reserved() || self.is_persistent_volume())
    }

    /// Returns the resource that the flags must contain for this one: without volume and dynamic reservations.
    fn before_operations(&self) -> Self {
        let fixed = self.reservations().iter().take(1).filter(|r| !r.is_dynamic()).cloned().collect::<Vec<_>>();
        let plain = if self.is_persistent_volume() { self.without_volume() } else { self.clone() };
        if self.is_dynamically_reserved() { plain.with_reservations(&fixed) } else { plain }.with_copies(0)
    }
}

impl Resources {
    /// Returns the resources that an agent must checkpoint.
    #[must_use]
    pub fn to_checkpoint(&self) -> Self {
        self.filter(Resource::needs_checkpointing)
    }

    /// Returns the agent's resources with the checkpointed ones applied.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn with_checkpointed(&self, checkpointed: &Self) -> Result<Self, CheckpointError> {
        let mut total = self.clone();
        for resource in checkpointed {
            if !resource.needs_checkpointing() {
                return Err(CheckpointError::Unexpected(resource.clone()));
            }
            let needed = resource.before_operations();
            if !total.contains_resource(&needed) {
                return Err(CheckpointError::Incompatible { total, needed: Box::new(needed) });
            }
            total.subtract(&needed);
            total.add_ref(resource);
        }
        Ok(total)
    }
}
