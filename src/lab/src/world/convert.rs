//! Converts events of the scheduler API from v0 to v1, and calls from v1 to v0.
//!
//! Frequent messages (updates, plain offers, acknowledgements, launches of plain tasks) are converted field by field:
//! encoding them would take much of the laboratory's time. All others are encoded and decoded by [`protos::evolve`],
//! with the same result.

use prost::Message;
use protos::evolve::{devolve, evolve};
use protos::mesos::scheduler as v0;
use protos::mesos::{self as old};
use sdk::v1 as new;
use sdk::v1::scheduler as v1;

/// Returns whether a resource, of either version, is a scalar without other properties.
macro_rules! is_plain {
    ($resource:ident) => {
        $resource.scalar.is_some()
            && $resource.provider_id.is_none()
            && $resource.ranges.is_none()
            && $resource.set.is_none()
            && $resource.reservation.is_none()
            && $resource.reservations.is_empty()
            && $resource.disk.is_none()
            && $resource.revocable.is_none()
            && $resource.shared.is_none()
    };
}

/// Converts a message to the other version by encoding and decoding it. Both versions have the same binary form.
fn recode<A: Message, B: Message + Default>(message: &A) -> B {
    B::decode(message.encode_to_vec().as_slice()).unwrap_or_default()
}

/// Converts an event from v0 to v1, for schedulers.
pub(super) fn event(event: v0::Event) -> v1::Event {
    match event {
        v0::Event { r#type, update: Some(update), .. } => {
            let update = Some(v1::event::Update { status: status(update.status) });
            v1::Event { r#type, update, ..v1::Event::default() }
        }
        v0::Event { r#type, offers: Some(offers), .. } => {
            let offers = offers.offers.into_iter().map(offer).collect();
            v1::Event { r#type, offers: Some(v1::event::Offers { offers }), ..v1::Event::default() }
        }
        other => evolve(&other),
    }
}

fn status(status: old::TaskStatus) -> new::TaskStatus {
    new::TaskStatus {
        task_id: new::TaskId { value: status.task_id.value },
        state: status.state,
        message: status.message,
        source: status.source,
        reason: status.reason,
        data: status.data,
        agent_id: status.slave_id.map(|id| new::AgentId { value: id.value }),
        executor_id: status.executor_id.map(|id| new::ExecutorId { value: id.value }),
        timestamp: status.timestamp,
        uuid: status.uuid,
        healthy: status.healthy,
        check_status: status.check_status.map(|part| recode(&part)),
        labels: status.labels.map(|part| recode(&part)),
        container_status: status.container_status.map(container_status),
        unreachable_time: status.unreachable_time.map(|part| recode(&part)),
        limitation: status.limitation.map(|part| recode(&part)),
    }
}

fn container_status(status: old::ContainerStatus) -> new::ContainerStatus {
    let plain_address = |address: &old::network_info::IpAddress| address.protocol.is_none();
    let plain_network = |network: &old::NetworkInfo| {
        network.name.is_none()
            && network.groups.is_empty()
            && network.labels.is_none()
            && network.port_mappings.is_empty()
            && network.ip_addresses.iter().all(plain_address)
    };
    let plain_id = |id: &old::ContainerId| id.parent.is_none();
    let plain = status.cgroup_info.is_none()
        && status.container_id.as_ref().is_none_or(plain_id)
        && status.network_infos.iter().all(plain_network);
    if !plain {
        return recode(&status);
    }
    let address = |address: old::network_info::IpAddress| new::network_info::IpAddress {
        ip_address: address.ip_address,
        ..new::network_info::IpAddress::default()
    };
    let network = |network: old::NetworkInfo| new::NetworkInfo {
        ip_addresses: network.ip_addresses.into_iter().map(address).collect(),
        ..new::NetworkInfo::default()
    };
    new::ContainerStatus {
        container_id: status.container_id.map(|id| new::ContainerId { value: id.value, parent: None }),
        network_infos: status.network_infos.into_iter().map(network).collect(),
        executor_pid: status.executor_pid,
        ..new::ContainerStatus::default()
    }
}

fn offer(offer: old::Offer) -> new::Offer {
    new::Offer {
        id: new::OfferId { value: offer.id.value },
        framework_id: new::FrameworkId { value: offer.framework_id.value },
        agent_id: new::AgentId { value: offer.slave_id.value },
        hostname: offer.hostname,
        url: offer.url.map(url),
        domain: offer.domain.map(|part| recode(&part)),
        resources: offer.resources.into_iter().map(resource).collect(),
        attributes: offer.attributes.iter().map(recode).collect(),
        executor_ids: offer.executor_ids.into_iter().map(|id| new::ExecutorId { value: id.value }).collect(),
        unavailability: offer.unavailability.map(|part| recode(&part)),
        allocation_info: offer.allocation_info.map(|info| new::resource::AllocationInfo { role: info.role }),
    }
}

fn url(url: old::Url) -> new::Url {
    new::Url {
        scheme: url.scheme,
        address: new::Address { hostname: url.address.hostname, ip: url.address.ip, port: url.address.port },
        path: url.path,
        query: url.query.iter().map(recode).collect(),
        fragment: url.fragment,
    }
}

fn resource(resource: old::Resource) -> new::Resource {
    if !is_plain!(resource) {
        return recode(&resource);
    }
    new::Resource {
        name: resource.name,
        r#type: resource.r#type,
        scalar: resource.scalar.map(|scalar| new::value::Scalar { value: scalar.value }),
        role: resource.role,
        allocation_info: resource.allocation_info.map(|info| new::resource::AllocationInfo { role: info.role }),
        ..new::Resource::default()
    }
}

/// Converts a call from v1 to v0, for the master.
pub(super) fn call(call: v1::Call) -> v0::Call {
    if call.acknowledge.is_none() && call.decline.is_none() && call.accept.is_none() {
        return devolve(&call);
    }
    let filters =
        |filters: Option<new::Filters>| filters.map(|filters| old::Filters { refuse_seconds: filters.refuse_seconds });
    v0::Call {
        framework_id: call.framework_id.map(|id| old::FrameworkId { value: id.value }),
        r#type: call.r#type,
        acknowledge: call.acknowledge.map(|part| v0::call::Acknowledge {
            slave_id: old::SlaveId { value: part.agent_id.value },
            task_id: old::TaskId { value: part.task_id.value },
            uuid: part.uuid,
        }),
        decline: call
            .decline
            .map(|part| v0::call::Decline { offer_ids: offer_ids(part.offer_ids), filters: filters(part.filters) }),
        accept: call.accept.map(|part| v0::call::Accept {
            offer_ids: offer_ids(part.offer_ids),
            operations: part.operations.into_iter().map(operation).collect(),
            filters: filters(part.filters),
        }),
        ..v0::Call::default()
    }
}

fn offer_ids(ids: Vec<new::OfferId>) -> Vec<old::OfferId> {
    ids.into_iter().map(|id| old::OfferId { value: id.value }).collect()
}

fn operation(mut operation: new::offer::Operation) -> old::offer::Operation {
    let kind = operation.r#type();
    match operation.launch.take_if(|_| operation.id.is_none() && kind == new::offer::operation::Type::Launch) {
        Some(launch) => {
            let task_infos = launch.task_infos.into_iter().map(task).collect();
            let launch = Some(old::offer::operation::Launch { task_infos });
            old::offer::Operation { r#type: operation.r#type, launch, ..old::offer::Operation::default() }
        }
        None => recode(&operation),
    }
}

fn task(task: new::TaskInfo) -> old::TaskInfo {
    let plain_command = |command: &new::CommandInfo| command.uris.is_empty() && command.environment.is_none();
    let plain = task.executor.is_none()
        && task.container.is_none()
        && task.health_check.is_none()
        && task.check.is_none()
        && task.kill_policy.is_none()
        && task.data.is_none()
        && task.discovery.is_none()
        && task.max_completion_time.is_none()
        && task.limits.is_empty()
        && task.command.as_ref().is_some_and(plain_command)
        && task.resources.iter().all(|resource| is_plain!(resource));
    if !plain {
        return recode(&task);
    }
    let command = task.command.map(|command| old::CommandInfo {
        shell: command.shell,
        value: command.value,
        arguments: command.arguments,
        user: command.user,
        ..old::CommandInfo::default()
    });
    let label = |label: new::Label| old::Label { key: label.key, value: label.value };
    old::TaskInfo {
        name: task.name,
        task_id: old::TaskId { value: task.task_id.value },
        slave_id: old::SlaveId { value: task.agent_id.value },
        resources: task.resources.into_iter().map(plain_resource).collect(),
        command,
        labels: task.labels.map(|all| old::Labels { labels: all.labels.into_iter().map(label).collect() }),
        ..old::TaskInfo::default()
    }
}

fn plain_resource(resource: new::Resource) -> old::Resource {
    old::Resource {
        name: resource.name,
        r#type: resource.r#type,
        scalar: resource.scalar.map(|scalar| old::value::Scalar { value: scalar.value }),
        role: resource.role,
        allocation_info: resource.allocation_info.map(|info| old::resource::AllocationInfo { role: info.role }),
        ..old::Resource::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(name: &str) -> old::Resource {
        old::Resource {
            name: name.into(),
            scalar: Some(old::value::Scalar { value: 2.5 }),
            role: Some("*".into()),
            allocation_info: Some(old::resource::AllocationInfo { role: Some("dev".into()) }),
            ..old::Resource::default()
        }
    }

    /// Returns a status with a value in every field that agents set.
    fn status() -> old::TaskStatus {
        old::TaskStatus {
            task_id: old::TaskId { value: "t1".into() },
            state: old::TaskState::TaskRunning as i32,
            message: Some("well".to_owned()),
            source: Some(2),
            reason: Some(3),
            data: Some(vec![1, 2]),
            slave_id: Some(old::SlaveId { value: "s1".into() }),
            executor_id: Some(old::ExecutorId { value: "e".into() }),
            timestamp: Some(1.5),
            uuid: Some(vec![7; 16]),
            healthy: Some(true),
            container_status: Some(old::ContainerStatus {
                container_id: Some(old::ContainerId { value: "c".to_owned(), parent: None }),
                network_infos: vec![old::NetworkInfo {
                    ip_addresses: vec![old::network_info::IpAddress {
                        ip_address: Some("10.0.0.1".to_owned()),
                        ..old::network_info::IpAddress::default()
                    }],
                    ..old::NetworkInfo::default()
                }],
                executor_pid: Some(7),
                ..old::ContainerStatus::default()
            }),
            labels: Some(old::Labels { labels: vec![old::Label { key: "k".to_owned(), value: None }] }),
            ..old::TaskStatus::default()
        }
    }

    #[test]
    fn events_are_converted_as_through_their_binary_form() {
        let reserved = old::Resource {
            reservations: vec![old::resource::ReservationInfo {
                role: Some("dev".to_owned()),
                ..old::resource::ReservationInfo::default()
            }],
            ..resource("disk")
        };
        let offers = vec![old::Offer {
            id: old::OfferId { value: "o1".into() },
            slave_id: old::SlaveId { value: "s1".into() },
            hostname: "host".to_owned(),
            url: Some(old::Url {
                scheme: "http".to_owned(),
                address: old::Address {
                    hostname: Some("host".to_owned()),
                    ip: Some("10.0.0.1".to_owned()),
                    port: 5051,
                },
                path: Some("/slave(1)".to_owned()),
                ..old::Url::default()
            }),
            resources: vec![resource("cpus"), reserved],
            executor_ids: vec![old::ExecutorId { value: "e".into() }],
            allocation_info: Some(old::resource::AllocationInfo { role: Some("dev".into()) }),
            ..old::Offer::default()
        }];
        let events = [
            v0::Event { r#type: Some(3), offers: Some(v0::event::Offers { offers }), ..v0::Event::default() },
            v0::Event { r#type: Some(5), update: Some(v0::event::Update { status: status() }), ..v0::Event::default() },
        ];
        for one in events {
            assert_eq!(event(one.clone()), evolve(&one));
        }
    }

    #[test]
    fn calls_are_converted_as_through_their_binary_form() {
        let ids = || vec![new::OfferId { value: "o1".into() }];
        let filters = Some(new::Filters { refuse_seconds: Some(5.0) });
        let command = new::CommandInfo {
            shell: Some(false),
            value: Some("sleep".to_owned()),
            arguments: vec!["sleep".to_owned(), "1".to_owned()],
            user: Some("u".to_owned()),
            ..new::CommandInfo::default()
        };
        let labels = new::Labels { labels: vec![new::Label { key: "k".to_owned(), value: Some("v".to_owned()) }] };
        let plain = new::TaskInfo {
            name: "t1".to_owned(),
            task_id: new::TaskId { value: "t1".into() },
            agent_id: new::AgentId { value: "s1".into() },
            resources: vec![recode(&resource("cpus"))],
            command: Some(command),
            labels: Some(labels),
            ..new::TaskInfo::default()
        };
        let not_plain = new::TaskInfo { data: Some(vec![1]), ..plain.clone() };
        let launch = new::offer::operation::Launch { task_infos: vec![plain, not_plain] };
        let operation = new::offer::Operation {
            r#type: Some(new::offer::operation::Type::Launch as i32),
            launch: Some(launch),
            ..new::offer::Operation::default()
        };
        let accept = v1::call::Accept { offer_ids: ids(), operations: vec![operation], filters };
        let acknowledge = v1::call::Acknowledge { uuid: vec![7; 16], ..v1::call::Acknowledge::default() };
        let calls = [
            v1::Call { r#type: Some(3), accept: Some(accept), ..v1::Call::default() },
            v1::Call { r#type: Some(8), acknowledge: Some(acknowledge), ..v1::Call::default() },
            v1::Call {
                framework_id: Some(new::FrameworkId { value: "f".into() }),
                r#type: Some(4),
                decline: Some(v1::call::Decline { offer_ids: ids(), filters }),
                ..v1::Call::default()
            },
        ];
        for one in calls {
            let expected: v0::Call = devolve(&one);
            assert_eq!(call(one), expected);
        }
    }

    #[test]
    fn subscribe_keeps_its_suppressed_roles() {
        // In v0 the field `force` precedes the suppressed roles, so the binary forms differ.
        let part = v1::call::Subscribe { suppressed_roles: vec!["dev".to_owned()], ..v1::call::Subscribe::default() };
        let subscribe = v1::Call { r#type: Some(1), subscribe: Some(Box::new(part)), ..v1::Call::default() };
        let old = call(subscribe);
        assert_eq!(old.subscribe.map(|part| part.suppressed_roles), Some(vec!["dev".to_owned()]));
    }
}
