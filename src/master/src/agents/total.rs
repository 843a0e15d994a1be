//! What an agent has: its own resources, with the reservations and volumes that were made since.

use resources::Resources;

/// `own` with each checkpointed resource in the place of what it was made from.
///
/// # Errors
/// A checkpointed resource was made from what the agent does not have.
pub(crate) fn total_of(own: &Resources, checkpointed: &Resources) -> Result<Resources, String> {
    own.with_checkpointed(checkpointed).map_err(|why| format!("Incompatible agent resources: {why}"))
}
