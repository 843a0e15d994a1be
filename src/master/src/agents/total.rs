//! Total resources of an agent: its own resources, with the reservations and volumes that operations have made.

use resources::Resources;

/// Returns `own` with each checkpointed resource in place of the resources that it was made from.
///
/// # Errors
/// A checkpointed resource was made from resources that the agent does not have.
pub(crate) fn total_of(own: &Resources, checkpointed: &Resources) -> Result<Resources, String> {
    own.with_checkpointed(checkpointed).map_err(|why| format!("Incompatible agent resources: {why}"))
}
