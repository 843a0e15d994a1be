//! Builds the container of a task: the message that describes it to the agent.

use sdk::v1::container_info::{self, DockerInfo, MesosInfo, docker_info};
use sdk::v1::{ContainerInfo, Image, NetworkInfo, Parameter, image, network_info};

use crate::job::{Container, Containerizer, Job, Network};
use jobs::Place;

/// Returns the container of a task; `None` for a task without an image in its host's network.
pub(super) fn container(job: &Job, place: &Place) -> Option<ContainerInfo> {
    match (job.container.containerizer, &job.image) {
        (Containerizer::Docker, Some(image)) => Some(docker(image, &job.container, place)),
        (_, image) if image.is_some() || job.container.network != Network::Host => {
            Some(mesos(image.as_deref(), &job.container, place))
        }
        _ => None,
    }
}

/// Returns the port inside the container for each of the task's ports. In the host's network, where no ports are
/// mapped, it is the same port.
pub(super) fn inner_ports(container: &Container, place: &Place) -> Vec<u64> {
    let inner = container.ports.iter().copied().map(u64::from).chain(std::iter::repeat(0));
    place.ports.iter().zip(inner).map(|(host, inner)| if inner == 0 { *host } else { inner }).collect()
}

fn port(port: u64) -> u32 {
    u32::try_from(port).unwrap_or_default()
}

fn docker(image: &str, container: &Container, place: &Place) -> ContainerInfo {
    let mapping = |(host, inner): (&u64, u64)| docker_info::PortMapping {
        host_port: port(*host),
        container_port: port(inner),
        protocol: Some("tcp".into()),
    };
    let (network, name) = match &container.network {
        Network::Host => (docker_info::Network::Host, None),
        Network::Bridge => (docker_info::Network::Bridge, None),
        Network::Named(name) => (docker_info::Network::User, Some(name)),
    };
    let mapped = network != docker_info::Network::Host;
    let mappings = place.ports.iter().zip(inner_ports(container, place)).filter(|_| mapped).map(mapping).collect();
    let parameter = |(key, value): &(String, String)| Parameter { key: key.clone(), value: value.clone() };
    ContainerInfo {
        r#type: container_info::Type::Docker as i32,
        docker: Some(DockerInfo {
            image: image.to_owned(),
            network: Some(network as i32),
            port_mappings: mappings,
            privileged: Some(container.privileged),
            parameters: container.parameters.iter().map(parameter).collect(),
            force_pull_image: Some(container.force_pull),
            ..Default::default()
        }),
        network_infos: name
            .map(|name| NetworkInfo { name: Some(name.clone()), ..Default::default() })
            .into_iter()
            .collect(),
        ..Default::default()
    }
}

/// Returns the container for the Mesos containerizer. A CNI network maps only the requested ports, because not every
/// network maps ports.
fn mesos(name: Option<&str>, container: &Container, place: &Place) -> ContainerInfo {
    let image = name.map(|name| {
        let docker = image::Docker { name: name.to_owned(), ..Default::default() };
        Image { r#type: image::Type::Docker as i32, docker: Some(docker), ..Default::default() }
    });
    let mapping = |(host, inner): (&u64, u64)| network_info::PortMapping {
        host_port: port(*host),
        container_port: port(inner),
        protocol: Some("tcp".into()),
    };
    let mappings = place.ports.iter().zip(inner_ports(container, place)).take(container.ports.len()).map(mapping);
    let network = match &container.network {
        Network::Host => None,
        other => Some(NetworkInfo {
            name: Some(other.clone().into()),
            port_mappings: mappings.collect(),
            ..Default::default()
        }),
    };
    ContainerInfo {
        r#type: container_info::Type::Mesos as i32,
        mesos: Some(MesosInfo { image }),
        network_infos: network.into_iter().collect(),
        ..Default::default()
    }
}
