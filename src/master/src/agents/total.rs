//! What an agent has: its own resources, with the reservations and volumes that were made since.

use resources::Resources;

/// `own` with each checkpointed resource in the place of what it was made from.
///
/// # Errors
/// A checkpointed resource was made from what the agent does not have.
pub(crate) fn total_of(own: &Resources, checkpointed: &Resources) -> Result<Resources, String> {
    let mut total = own.clone();
    for resource in checkpointed {
        let mut plain = resource.without_volume();
        while plain.is_dynamically_reserved() {
            plain = plain.pop_reservation();
        }
        if !total.contains_resource(&plain) {
            return Err(format!("Incompatible agent resources: {own:?} does not contain {plain:?}"));
        }
        total.subtract(&plain);
        total.add(resource.clone());
    }
    Ok(total)
}
