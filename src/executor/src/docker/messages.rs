//! The parts of a task that make a Docker container of it; see `crate::messages`.

use prost::Message;

/// Of `TaskInfo`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Task {
    #[prost(message, repeated, tag = "4")]
    pub(super) resources: Vec<Resource>,
    #[prost(message, optional, tag = "9")]
    pub(super) container: Option<Container>,
    #[prost(btree_map = "string, message", tag = "15")]
    pub(super) limits: std::collections::BTreeMap<String, Scalar>,
}

/// Of `Value`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Scalar {
    #[prost(double, required, tag = "1")]
    pub(super) value: f64,
}

/// Of `Value`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Ranges {
    #[prost(message, repeated, tag = "1")]
    pub(super) range: Vec<Range>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Range {
    #[prost(uint64, required, tag = "1")]
    pub(super) begin: u64,
    #[prost(uint64, required, tag = "2")]
    pub(super) end: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Resource {
    #[prost(string, required, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "3")]
    pub(super) scalar: Option<Scalar>,
    #[prost(message, optional, tag = "4")]
    pub(super) ranges: Option<Ranges>,
    #[prost(message, optional, tag = "7")]
    pub(super) disk: Option<Disk>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Disk {
    #[prost(message, optional, tag = "2")]
    pub(super) volume: Option<Volume>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Container {
    #[prost(int32, required, tag = "1")]
    pub(super) r#type: i32,
    #[prost(message, repeated, tag = "2")]
    pub(super) volumes: Vec<Volume>,
    #[prost(message, optional, tag = "3")]
    pub(super) docker: Option<Docker>,
    #[prost(string, optional, tag = "4")]
    pub(super) hostname: Option<String>,
    #[prost(message, repeated, tag = "7")]
    pub(super) network_infos: Vec<Network>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Network {
    #[prost(string, optional, tag = "6")]
    pub(super) name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Volume {
    /// 1 is RW, 2 is RO.
    #[prost(int32, required, tag = "3")]
    pub(super) mode: i32,
    #[prost(string, required, tag = "1")]
    pub(super) container_path: String,
    #[prost(string, optional, tag = "2")]
    pub(super) host_path: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(super) source: Option<Source>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Source {
    #[prost(message, optional, tag = "2")]
    pub(super) docker_volume: Option<DockerVolume>,
    #[prost(message, optional, tag = "4")]
    pub(super) host_path: Option<HostPath>,
    #[prost(message, optional, tag = "3")]
    pub(super) sandbox_path: Option<HostPath>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DockerVolume {
    #[prost(string, optional, tag = "1")]
    pub(super) driver: Option<String>,
    #[prost(string, required, tag = "2")]
    pub(super) name: String,
}

/// `HostPath`, and of `SandboxPath` the path.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HostPath {
    #[prost(string, optional, tag = "2")]
    pub(super) inside: Option<String>,
    #[prost(string, optional, tag = "1")]
    pub(super) path: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Docker {
    #[prost(string, required, tag = "1")]
    pub(super) image: String,
    /// 1 HOST, 2 BRIDGE, 3 NONE, 4 USER.
    #[prost(int32, optional, tag = "2", default = "1")]
    pub(super) network: Option<i32>,
    #[prost(message, repeated, tag = "3")]
    pub(super) port_mappings: Vec<PortMapping>,
    #[prost(bool, optional, tag = "4")]
    pub(super) privileged: Option<bool>,
    #[prost(message, repeated, tag = "5")]
    pub(super) parameters: Vec<Parameter>,
    #[prost(bool, optional, tag = "6")]
    pub(super) force_pull_image: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PortMapping {
    #[prost(uint32, required, tag = "1")]
    pub(super) host_port: u32,
    #[prost(uint32, required, tag = "2")]
    pub(super) container_port: u32,
    #[prost(string, optional, tag = "3")]
    pub(super) protocol: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Parameter {
    #[prost(string, required, tag = "1")]
    pub(super) key: String,
    #[prost(string, required, tag = "2")]
    pub(super) value: String,
}
