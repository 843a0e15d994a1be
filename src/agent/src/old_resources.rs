//! Resources in the format from before reservation refinement, which old masters read (docs/mesos/libprocess.md).

use protos::mesos as pb;
use resources::{Format, resource_from_proto, resource_to_proto};

/// Rewrites resources in the format from before reservation refinement; leaves all of them as they are if one cannot be
/// expressed in it.
pub(crate) fn in_old_form(messages: &mut [pb::Resource]) {
    if messages.iter().any(|resource| resource.reservations.len() > 1) {
        return;
    }
    for message in messages {
        if let Ok(resource) = resource_from_proto(message) {
            *message = resource_to_proto(&resource, Format::PreRefinement);
        }
    }
}
