//! Isolator `network/cni`: containers in network namespaces of their own, which plugins connect (AGT-109).
//!
//! A namespace is created and connected before its container starts, and recovered from files below `--runtime_dir`.
//! `config.rs` reads the networks, `plugin.rs` runs the plugins.

pub(crate) mod config;
mod plugin;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{ContainerName, ContainerSpec, Input};
use anyhow::Context;
use containers::cgroups::Group;
use containers::isolation::{Isolation, Mount, MountPath};
use protos::mesos::{self, NetworkInfo};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Access;

use crate::config::Config;
use crate::default_dns::DefaultDns;
use crate::mesos::isolators::filesystem::view::View;
use crate::mesos::isolators::{Container, Isolator, Launch};
use plugin::{Plugins, Verb};

/// Files below `/etc` that each container has of its own.
const FILES: [&str; 3] = ["hosts", "hostname", "resolv.conf"];
/// Maximum length of a host name on Linux.
const HOSTNAME_MAX: usize = 63;

/// The isolator `network/cni`.
#[derive(Clone)]
pub(crate) struct Cni {
    /// Directory of network configurations (`--network_cni_config_dir`).
    configs: PathBuf,
    plugins: Plugins,
    /// Name servers for networks whose plugins name none.
    dns: DefaultDns,
    /// Directory with a subdirectory for each container.
    root: PathBuf,
}

/// Record of one connection of a container to a network.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Attachment {
    interface: String,
    /// Configurations of the plugins, in the order in which they connect.
    plugins: Vec<Value>,
    /// Result of the last plugin.
    result: Option<Value>,
    /// Name of the network, and the container's addresses on it.
    name: String,
    addresses: Vec<String>,
}

/// The network namespace of a container.
struct Connected {
    namespace: File,
    directory: PathBuf,
    hostname: String,
}

/// Returns whether a container requests networks of its own.
pub(crate) fn wanted(spec: &ContainerSpec) -> bool {
    spec.session.is_none() && named(spec).next().is_some()
}

impl Isolator for Cni {
    /// Disconnects containers that the previous agent process has left, in the background because plugins may take
    /// long.
    fn recover(&self, kept: &BTreeSet<String>) {
        let (cni, kept) = (self.clone(), kept.clone());
        tokio::task::spawn_blocking(move || cni.clean(&kept));
    }

    fn needs_provisioning(&self, spec: &ContainerSpec) -> bool {
        wanted(spec)
    }

    /// Creates a container's network namespace and connects it. Returns its networks and addresses.
    fn provision(&self, container: &ContainerName, spec: &ContainerSpec) -> anyhow::Result<Option<Input>> {
        let connected = self.try_connect(container, spec);
        let networks = connected.inspect_err(|_| self.cleanup(container))?;
        Ok(Some(Input::ContainerNetworks { container: container.clone(), networks }))
    }

    fn prepare(&self, container: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        if let Some(network) = self.open(container.name)? {
            network.enter(&mut launch.isolation, &launch.view);
        }
        Ok(())
    }

    /// Returns the networks and addresses of a running container; `None` if it is on the host's network.
    fn status(&self, container: &ContainerName, _: Option<&Group>) -> Option<Input> {
        let info =
            |attachment: &Attachment| NetworkInfo { name: Some(attachment.name.clone()), ..NetworkInfo::default() };
        let noted = attachments(&self.directory(container)).into_iter();
        let networks: Vec<_> = noted.map(|(_, attachment)| known(info(&attachment), &attachment)).collect();
        let container = container.clone();
        (!networks.is_empty()).then_some(Input::ContainerNetworks { container, networks })
    }

    /// Disconnects a container with its plugins, and removes its namespace. Failures are logged.
    fn cleanup(&self, container: &ContainerName) {
        let directory = self.directory(container);
        if !directory.exists() {
            return;
        }
        let namespace = directory.join("ns");
        for (_, attachment) in attachments(&directory).into_iter().rev() {
            for config in attachment.plugins.iter().rev() {
                let call = plugin::Call { verb: Verb::Del, container, namespace: &namespace, attachment: &attachment };
                if let Err(error) = self.plugins.run(&call, config) {
                    tracing::warn!(%container, "a container cannot be disconnected from '{}': {error:#}", attachment.name);
                }
            }
        }
        if let Err(error) = containers::remove_network(&namespace) {
            tracing::warn!(%container, "cannot remove '{}': {error}", namespace.display());
        }
        crate::delete(&directory);
    }
}

impl Cni {
    pub(crate) fn new(config: &Config) -> Cni {
        let cni = config.isolation.cni.clone().unwrap_or_default();
        Cni {
            configs: cni.configs,
            plugins: Plugins::new(&cni.plugins),
            dns: config.dns.clone(),
            root: config.runtime_dir.join("isolators/network/cni"),
        }
    }

    fn clean(&self, kept: &BTreeSet<String>) {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
            let root = name.split('.').next().unwrap_or_default();
            if !kept.contains(root)
                && let Some(container) = container_of(&name)
            {
                self.cleanup(&container);
            }
        }
    }

    fn try_connect(&self, container: &ContainerName, spec: &ContainerSpec) -> anyhow::Result<Vec<NetworkInfo>> {
        let directory = self.directory(container);
        store::create_private(&directory).with_context(|| format!("'{}'", directory.display()))?;
        let namespace = directory.join("ns");
        containers::make_network(&namespace).context("A network namespace cannot be created")?;
        let mut networks = Vec::new();
        let mut resolver = None;
        for (index, info) in named(spec).enumerate() {
            config::check_ports(info, &spec.resources)?;
            let plugins = config::find(&self.configs, info, &self.plugins)?;
            let (interface, name) = (format!("eth{index}"), info.name().to_owned());
            let mut attachment = Attachment { interface, plugins, result: None, name, addresses: Vec::new() };
            // The record is written first, so that a partial connection can be undone.
            note(&directory, index, &attachment)?;
            for config in attachment.plugins.clone() {
                let call = plugin::Call { verb: Verb::Add, container, namespace: &namespace, attachment: &attachment };
                let result = self.plugins.run(&call, &config);
                attachment.result = result.with_context(|| format!("The network '{}'", attachment.name))?;
            }
            let result = attachment.result.clone().unwrap_or_default();
            attachment.addresses = config::addresses(&result);
            let default = || config::resolver(&self.dns.of_cni(&attachment.name)?);
            resolver = resolver.or_else(|| config::resolver(&result)).or_else(default);
            note(&directory, index, &attachment)?;
            networks.push(known(info.clone(), &attachment));
        }
        let own = spec.container.as_ref().and_then(|container| container.hostname.clone());
        let hostname = own.unwrap_or_else(|| container.id().chars().take(HOSTNAME_MAX).collect());
        self.write_files(&directory, &hostname, &networks, resolver)?;
        Ok(networks)
    }

    fn write_files(
        &self,
        directory: &Path,
        hostname: &str,
        networks: &[NetworkInfo],
        resolver: Option<String>,
    ) -> anyhow::Result<()> {
        let mut hosts = "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n".to_owned();
        for address in networks.iter().flat_map(|network| &network.ip_addresses) {
            hosts += &format!("{} {hostname}\n", address.ip_address());
        }
        let resolver = resolver.unwrap_or_else(|| fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
        for (file, text) in FILES.into_iter().zip([hosts, format!("{hostname}\n"), resolver]) {
            let path = directory.join(file);
            store::write_file(&path, text.as_bytes(), Access::All).with_context(|| format!("'{}'", path.display()))?;
            // The task's user reads the file through a mount. The umask may have removed the permission.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
        }
        Ok(())
    }

    /// Opens the network namespace of a container that is about to start; `None` if it has none.
    ///
    /// # Errors
    /// If the namespace cannot be opened.
    fn open(&self, container: &ContainerName) -> anyhow::Result<Option<Connected>> {
        let directory = self.directory(container);
        if !directory.join("ns").exists() {
            return Ok(None);
        }
        let namespace = File::open(directory.join("ns")).context("The container's network cannot be entered")?;
        let hostname = fs::read_to_string(directory.join("hostname"))?.trim_end().to_owned();
        Ok(Some(Connected { namespace, directory, hostname }))
    }

    fn directory(&self, container: &ContainerName) -> PathBuf {
        self.root.join(container.as_str())
    }
}

fn container_of(name: &str) -> Option<ContainerName> {
    let mut ids = name.split('.').map(|id| base::ContainerId::new(id).ok());
    let top = ContainerName::top(&ids.next()??);
    ids.try_fold(top, |container, id| Some(container.child(&id?)))
}

/// Returns the networks that a container names; those without a name are the host's.
fn named(spec: &ContainerSpec) -> impl Iterator<Item = &NetworkInfo> {
    let infos = spec.container.as_ref().map(|container| container.network_infos.as_slice()).unwrap_or_default();
    infos.iter().filter(|info| !info.name().is_empty())
}

fn known(mut info: NetworkInfo, attachment: &Attachment) -> NetworkInfo {
    use mesos::network_info::{IpAddress, Protocol};
    let protocol = |text: &str| if text.contains(':') { Protocol::IPv6 } else { Protocol::IPv4 };
    let one = |text: &String| IpAddress { protocol: Some(protocol(text) as i32), ip_address: Some(text.clone()) };
    info.ip_addresses = attachment.addresses.iter().map(one).collect();
    info
}

fn note(directory: &Path, index: usize, attachment: &Attachment) -> anyhow::Result<()> {
    let path = directory.join(format!("{index}.json"));
    store::write_file(&path, &serde_json::to_vec(attachment)?, Access::Owner)
        .with_context(|| format!("'{}'", path.display()))
}

fn attachments(directory: &Path) -> Vec<(usize, Attachment)> {
    let read = |index: usize| {
        let text = fs::read(directory.join(format!("{index}.json"))).ok()?;
        Some((index, serde_json::from_slice(&text).ok()?))
    };
    (0..).map_while(read).collect()
}

impl Connected {
    /// Adds the namespace, the host name and the files that belong to it.
    fn enter(self, isolation: &mut Isolation, view: &View) {
        for file in FILES {
            let inside = Path::new("etc").join(file);
            let target = match view.root() {
                Some(root) => MountPath { base: root.path().to_owned(), inside },
                None => MountPath::trusted(Path::new("/").join(inside)),
            };
            if view.root().is_some() || target.base.exists() {
                let source = MountPath::trusted(self.directory.join(file));
                isolation.mounts.push(Mount::Bind { source, target, read_only: false });
            }
        }
        isolation.namespaces.mount = true;
        isolation.namespaces.uts = true;
        isolation.hostname = Some(self.hostname);
        isolation.network = Some(Arc::new(self.namespace.into()));
    }
}
