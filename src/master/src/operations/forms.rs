//! Forms of an operation's resources: fills in allocations that a framework leaves out, removes them for an agent, and
//! finds the resource provider.

use protos::mesos::Resource;
use protos::mesos::offer::Operation;

/// Allocates resources without an allocation to the offers' role.
pub(crate) fn fill_allocations(operation: &mut Operation, role: &str) {
    each_list(operation, |list| crate::calls::allocate(list, role));
}

/// Returns the operation in the form of an agent's tables, which have no allocations.
pub(crate) fn without_allocations(operation: &Operation) -> Operation {
    let mut bare = operation.clone();
    each_list(&mut bare, |list| list.iter_mut().for_each(|resource| resource.allocation_info = None));
    bare
}

/// Returns the id of the resource provider that an operation is for, or `None` if it is for the agent's own resources.
pub(crate) fn provider_of(operation: &Operation) -> Option<&str> {
    let reserve = operation.reserve.iter().flat_map(|body| body.resources.iter().chain(&body.source));
    let unreserve = operation.unreserve.iter().flat_map(|body| &body.resources);
    let create = operation.create.iter().flat_map(|body| &body.volumes);
    let destroy = operation.destroy.iter().flat_map(|body| &body.volumes);
    let grow = operation.grow_volume.iter().map(|body| &body.volume);
    let shrink = operation.shrink_volume.iter().map(|body| &body.volume);
    let disks = operation.create_disk.iter().map(|body| &body.source);
    let disks = disks.chain(operation.destroy_disk.iter().map(|body| &body.source));
    // All resources of an operation come from one provider, or from none.
    let mut all = reserve.chain(unreserve).chain(create).chain(destroy).chain(grow).chain(shrink).chain(disks);
    all.next()?.provider_id.as_ref().map(|id| id.value.as_str())
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
