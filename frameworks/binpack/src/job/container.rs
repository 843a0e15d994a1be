//! The container of a job's tasks: containerizer, network and ports; and its part of a job file.
//!
//! `core::container` converts it to messages.

use serde::{Deserialize, Serialize};

use jobs::Containerizer;
use jobs::file::{Fields, Node, Value};

/// Name of the network of containers that share their host's.
const HOST: &str = "host";
/// Name of Docker's default network.
const BRIDGE: &str = "bridge";

/// The network of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Network {
    /// Network of the host.
    #[default]
    Host,
    /// Docker's default bridge.
    Bridge,
    /// A network of Docker (`docker network create`) or a CNI network of the agents, by its name.
    Named(String),
}

impl From<String> for Network {
    fn from(name: String) -> Network {
        match name.as_str() {
            HOST => Network::Host,
            BRIDGE => Network::Bridge,
            _ => Network::Named(name),
        }
    }
}

impl From<Network> for String {
    fn from(network: Network) -> String {
        match network {
            Network::Host => HOST.to_owned(),
            Network::Bridge => BRIDGE.to_owned(),
            Network::Named(name) => name,
        }
    }
}

/// Settings of a job's container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    /// Containerizer that runs the container.
    pub containerizer: Containerizer,
    /// Network of the container.
    pub network: Network,
    /// Ports inside the container, one for each of the task's first ports on the host; 0 means the same number as on
    /// the host.
    pub ports: Vec<u16>,
    /// Whether Docker pulls the image before each task.
    pub force_pull: bool,
    /// Whether Docker runs the container with all privileges.
    pub privileged: bool,
    /// Options of `docker run`: names without dashes, and values.
    pub parameters: Vec<(String, String)>,
}

/// Parses the fields `containerizer`, `network`, `container_ports` and `docker` of a job whose tasks have this many
/// ports.
pub(super) fn read(fields: &mut Fields<'_, '_>, has_image: bool, ports: i64) -> Container {
    let containerizer = Containerizer::read(fields, has_image);
    let mut container = Container { containerizer, network: network(fields, containerizer), ..Container::default() };
    inner_ports(fields, &mut container, ports);
    docker(fields, &mut container);
    container
}

fn network(fields: &mut Fields<'_, '_>, containerizer: Containerizer) -> Network {
    let Some((text, at)) = fields.text("network") else { return Network::Host };
    let network = Network::from(text.to_owned());
    if text.is_empty() {
        fields.faults.add(at, "network must be \"host\", \"bridge\" or the name of a network");
    } else if network == Network::Bridge && containerizer == Containerizer::Mesos {
        let rule =
            "network = \"bridge\" is Docker's: write containerizer = \"docker\", or name a CNI network of the agents";
        fields.faults.add(at, rule);
    }
    network
}

fn inner_ports(fields: &mut Fields<'_, '_>, container: &mut Container, ports: i64) {
    let Some(at) = fields.take("container_ports").map(|node| node.at) else { return };
    for node in fields.list("container_ports") {
        match &node.value {
            Value::Whole(number) if u16::try_from(*number).is_ok() => {
                container.ports.push(u16::try_from(*number).unwrap_or_default());
            }
            _ => {
                fields.faults.add(node.at, "container_ports are whole numbers from 0 to 65535; 0 is the host's number")
            }
        }
    }
    if container.network == Network::Host {
        fields.faults.add(at, "container_ports need a network other than the host's: write network = \"bridge\"");
    } else if container.ports.len() as i64 > ports {
        let rule = format!("there are {} container_ports, and the job has ports = {ports}", container.ports.len());
        fields.faults.add(at, rule);
    }
}

fn docker(fields: &mut Fields<'_, '_>, container: &mut Container) {
    let Some(node) = fields.take("docker") else { return };
    if container.containerizer == Containerizer::Mesos {
        fields.faults.add(node.at, "the table docker is for containerizer = \"docker\" only");
    }
    let Some(mut table) = Fields::of("docker", node, fields.faults) else { return };
    container.force_pull = table.flag("force_pull").unwrap_or(false);
    container.privileged = table.flag("privileged").unwrap_or(false);
    for node in table.list("parameters") {
        match parameter(node) {
            Some(parameter) => container.parameters.push(parameter),
            None => table.faults.add(node.at, "a parameter is a list of two texts, such as [\"label\", \"a=b\"]"),
        }
    }
    table.finish(|_| None);
}

fn parameter(node: &Node) -> Option<(String, String)> {
    let Value::List(words) = &node.value else { return None };
    match words.as_slice() {
        [Node { value: Value::Text(name), .. }, Node { value: Value::Text(value), .. }] if !name.is_empty() => {
            Some((name.clone(), value.clone()))
        }
        _ => None,
    }
}
