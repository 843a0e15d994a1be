//! The container of an app: image, containerizer, network and port mappings, in the forms of Marathon 1.4 and of later
//! versions.
//!
//! Before 1.5 the network and the mappings are in `container.docker`, later in `networks` and `container`. Both are
//! read; the later form is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{App, Container, PortDefinition};
use crate::job::{self, Containerizer, Job, Network};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Docker {
    pub(super) image: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) network: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) port_mappings: Vec<PortMapping>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) privileged: bool,
    pub(super) force_pull_image: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Parameter {
    key: String,
    value: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PortMapping {
    container_port: u16,
    pub(super) host_port: u16,
    service_port: u16,
    protocol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    labels: BTreeMap<String, String>,
}

impl Default for PortMapping {
    fn default() -> PortMapping {
        PortMapping {
            container_port: 0,
            host_port: 0,
            service_port: 0,
            protocol: "tcp".to_owned(),
            name: None,
            labels: BTreeMap::new(),
        }
    }
}

impl PortMapping {
    /// Returns what a load balancer needs of a mapping: the service port, its protocol and labels.
    pub(super) fn definition(&self) -> PortDefinition {
        PortDefinition {
            port: self.service_port,
            protocol: self.protocol.clone(),
            name: self.name.clone(),
            labels: self.labels.clone(),
        }
    }

    fn of(definition: &PortDefinition, container_port: u16) -> PortMapping {
        PortMapping {
            container_port,
            host_port: 0,
            service_port: definition.port,
            protocol: definition.protocol.clone(),
            name: definition.name.clone(),
            labels: definition.labels.clone(),
        }
    }
}

impl App {
    /// Returns the port mappings, from either place.
    pub(super) fn mappings(&self) -> &[PortMapping] {
        match &self.container {
            Some(Container { port_mappings, .. }) if !port_mappings.is_empty() => port_mappings,
            Some(Container { docker: Some(docker), .. }) => &docker.port_mappings,
            _ => &[],
        }
    }

    /// Returns the network in the form of a job file, from either place; `None` if it is not a supported one.
    pub(super) fn network(&self) -> Option<String> {
        let mode = |network: &Value| match network["mode"].as_str() {
            Some("host") => Some("host".to_owned()),
            Some("container/bridge") => Some("bridge".to_owned()),
            Some("container") => network["name"].as_str().map(str::to_owned),
            _ => None,
        };
        let docker = self.container.as_ref().and_then(|container| container.docker.as_ref());
        match (self.networks.as_slice(), docker.and_then(|docker| docker.network.as_deref())) {
            ([], None | Some("HOST")) => Some("host".to_owned()),
            ([], Some("BRIDGE")) => Some("bridge".to_owned()),
            ([network], _) => mode(network),
            _ => None,
        }
    }
}

/// Adds the container's fields to a job file.
pub(super) fn describe(app: &App, set: &mut impl FnMut(&str, Option<Value>)) {
    let Some(container) = &app.container else { return };
    let docker = container.docker.clone().unwrap_or_default();
    let network = app.network();
    let mapped = app.mappings();
    set("image", container.docker.as_ref().map(|docker| json!(docker.image)));
    set("network", network.filter(|name| name != "host").map(|name| json!(name)));
    set("container_ports", (!mapped.is_empty()).then(|| mapped.iter().map(|m| m.container_port).collect()));
    if container.r#type == "DOCKER" {
        let parameters: Vec<Value> = docker.parameters.iter().map(|p| json!([p.key, p.value])).collect();
        set("containerizer", Some(json!("docker")));
        set(
            "docker",
            Some(json!({
                "force_pull": docker.force_pull_image, "privileged": docker.privileged, "parameters": parameters,
            })),
        );
    }
}

/// Returns the networks of a job's container in the later form; none for the host's network.
pub(super) fn networks(container: &job::Container) -> Vec<Value> {
    match &container.network {
        Network::Host => Vec::new(),
        Network::Bridge => vec![json!({"mode": "container/bridge"})],
        Network::Named(name) => vec![json!({"mode": "container", "name": name})],
    }
}

/// Returns the container of a job, if it has one.
pub(super) fn of(job: &Job, definitions: &[PortDefinition]) -> Option<Container> {
    let has_network = job.container.network != Network::Host;
    if job.image.is_none() && !has_network {
        return None;
    }
    let parameter = |(key, value): &(String, String)| Parameter { key: key.clone(), value: value.clone() };
    let inner = job.container.ports.iter().copied().chain(std::iter::repeat(0));
    let mappings = definitions.iter().zip(inner).map(|(definition, port)| PortMapping::of(definition, port));
    let kind = match job.container.containerizer {
        Containerizer::Docker => "DOCKER",
        Containerizer::Mesos => "MESOS",
    };
    Some(Container {
        r#type: kind.to_owned(),
        docker: job.image.as_ref().map(|image| Docker {
            image: image.clone(),
            parameters: job.container.parameters.iter().map(parameter).collect(),
            privileged: job.container.privileged,
            force_pull_image: job.container.force_pull,
            ..Docker::default()
        }),
        port_mappings: if has_network { mappings.collect() } else { Vec::new() },
        ..Container::default()
    })
}
