//! Reservations and volumes that an agent keeps over a restart, laid over the resources of its flags.

use crate::{Resource, Resources};

/// Why checkpointed resources do not fit the agent's flags.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Not something that an operation made.
    #[error("Unexpected checkpointed resources {0}")]
    Unexpected(Resource),
    /// The flags give less than what was reserved.
    #[error("Incompatible agent resources: {total} does not contain {needed}")]
    Incompatible {
        /// What the flags and the conversions before give.
        total: Resources,
        /// What is needed.
        needed: Box<Resource>,
    },
}

impl Resource {
    /// Made by an operation on the agent's own resources, so that the agent must remember it.
    #[must_use]
    pub fn needs_checkpointing(&self) -> bool {
        self.provider().is_none() && (self.is_dynamically_reserved() || self.is_persistent_volume())
    }

    /// What the flags must give for this to be possible: without volume and dynamic reservations.
    fn before_operations(&self) -> Self {
        let fixed = self.reservations().iter().take(1).filter(|r| !r.is_dynamic()).cloned().collect::<Vec<_>>();
        let plain = if self.is_persistent_volume() { self.without_volume() } else { self.clone() };
        if self.is_dynamically_reserved() { plain.with_reservations(&fixed) } else { plain }.with_copies(0)
    }
}

impl Resources {
    /// What an agent must remember of its resources.
    #[must_use]
    pub fn to_checkpoint(&self) -> Self {
        self.filter(Resource::needs_checkpointing)
    }

    /// The agent's resources after what it had remembered.
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
