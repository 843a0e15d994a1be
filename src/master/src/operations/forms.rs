//! The allocations in an operation's resources: filled in where a framework leaves them out, taken off for an agent.

use protos::mesos::Resource;
use protos::mesos::offer::Operation;

/// Resources without an allocation are the offers' role's.
pub(crate) fn fill_allocations(operation: &mut Operation, role: &str) {
    each_list(operation, |list| crate::calls::allocate(list, role));
}

/// The operation as an agent's own books want it: what it has is allocated to nobody.
pub(crate) fn without_allocations(operation: &Operation) -> Operation {
    let mut bare = operation.clone();
    each_list(&mut bare, |list| list.iter_mut().for_each(|resource| resource.allocation_info = None));
    bare
}

fn each_list(operation: &mut Operation, mut change: impl FnMut(&mut [Resource])) {
    if let Some(body) = &mut operation.reserve {
        change(&mut body.source);
        change(&mut body.resources);
    }
    operation.unreserve.iter_mut().for_each(|body| change(&mut body.resources));
    operation.create.iter_mut().for_each(|body| change(&mut body.volumes));
    operation.destroy.iter_mut().for_each(|body| change(&mut body.volumes));
    if let Some(body) = &mut operation.grow_volume {
        change(std::slice::from_mut(&mut body.volume));
        change(std::slice::from_mut(&mut body.addition));
    }
    operation.shrink_volume.iter_mut().for_each(|body| change(std::slice::from_mut(&mut body.volume)));
}
