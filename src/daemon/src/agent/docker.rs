//! The Docker containerizer's part of the agent (mesos-features.md AGT-85 to AGT-87): which containers are Docker's, what their
//! executors are told, and what is left of them.
//!
//! The containers themselves are run by executors (see crate `executor`), which outlive the agent.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use agent::{ContainerName, ContainerSpec};
use anyhow::Context;
use containers::Spec;
use executor::docker::{Client, DNS, PREFIX, QUOTA, SANDBOX, SOCKET};
use protos::mesos::container_info::Type;
use tokio::runtime::Handle;

use super::dns::DefaultDns;
use crate::flags::{FlagError, Flags};
use crate::sync::lock;

/// Docker, if `--containerizers` names it. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Docker(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    socket: String,
    client: Client,
    sandbox: String,
    quota: bool,
    /// How long the containers of ended tasks are kept.
    remove_delay: Duration,
    kill_orphans: bool,
    dns: DefaultDns,
    /// Whether it is the only containerizer.
    alone: bool,
    /// The containers that it runs, or may run.
    known: Mutex<BTreeSet<String>>,
}

impl Docker {
    /// Reads the flags.
    ///
    /// # Errors
    /// If `--containerizers` names others than `mesos` and `docker`.
    pub(super) fn read(flags: &Flags) -> Result<Docker, FlagError> {
        let names: Vec<&str> = flags.text("containerizers").split(',').map(str::trim).collect();
        if let Some(other) = names.iter().find(|name| !["mesos", "docker"].contains(name)) {
            let why = format!("there is no containerizer '{other}': use mesos, docker, or both");
            return Err(FlagError::Refused { name: "containerizers", why });
        }
        if !names.contains(&"docker") {
            return Ok(Docker(None));
        }
        let socket = flags.text("docker_socket").trim_start_matches("unix://").to_owned();
        Ok(Docker(Some(Arc::new(Inner {
            client: Client::new(&socket),
            socket,
            sandbox: flags.text("sandbox_directory").to_owned(),
            quota: flags.on("cgroups_enable_cfs"),
            remove_delay: flags.duration("docker_remove_delay").unwrap_or(Duration::from_secs(6 * 3600)),
            kill_orphans: flags.on("docker_kill_orphans"),
            dns: DefaultDns::read(flags)?,
            alone: names == ["docker"],
            known: Mutex::default(),
        }))))
    }

    /// Asks the daemon for its version, so that an agent without one does not start.
    ///
    /// # Errors
    /// If it does not answer.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Some(inner) = &self.0 else { return Ok(()) };
        let version = inner.client.version().context("the containerizer docker cannot be used")?;
        tracing::info!("Docker {version} runs containers of the type DOCKER");
        Ok(())
    }

    /// Whether it runs, or may run, a container.
    pub(super) fn knows(&self, container: &ContainerName) -> bool {
        self.0.as_ref().is_some_and(|inner| lock(&inner.known).contains(container.as_str()))
    }

    /// Notes that a container is one that it runs.
    pub(super) fn note(&self, container: &ContainerName, spec: &ContainerSpec) {
        if let Some(inner) = self.0.as_ref().filter(|_| Docker::runs(spec)) {
            lock(&inner.known).insert(container.as_str().to_owned());
        }
    }

    /// Whether a container is one that Docker runs.
    pub(super) fn runs(spec: &ContainerSpec) -> bool {
        spec.container.as_ref().is_some_and(|container| container.r#type() == Type::Docker)
    }

    /// Refuses what nobody here can run.
    ///
    /// # Errors
    /// A Docker container without Docker, or of an executor that is no task's own; any other one with Docker alone.
    pub(super) fn refuse(&self, spec: &ContainerSpec) -> anyhow::Result<()> {
        if !Docker::runs(spec) {
            let alone = self.0.as_ref().is_some_and(|inner| inner.alone);
            anyhow::ensure!(!alone, "This agent runs Docker containers only (--containerizers=docker)");
            return Ok(());
        }
        anyhow::ensure!(self.0.is_some(), "Docker containers need the containerizer docker (--containerizers)");
        let own = spec.latest.is_some() && spec.argv.get(1..3).is_some_and(|words| words == ["executor", "command"]);
        anyhow::ensure!(own, "Docker containers are supported for tasks with a command, not for executors");
        Ok(())
    }

    /// Tells an executor how to reach Docker.
    pub(super) fn add_variables(&self, spec: &ContainerSpec, process: &mut Spec) {
        let Some(inner) = self.0.as_ref().filter(|_| Docker::runs(spec)) else { return };
        let mut set = |name: &str, value: &str| process.environment.push((OsString::from(name), OsString::from(value)));
        set(SOCKET, &inner.socket);
        set(SANDBOX, &inner.sandbox);
        if inner.quota {
            set(QUOTA, "1");
        }
        if let Some(servers) = inner.servers(spec) {
            set(DNS, &servers);
        }
        // Who may ask the Docker daemon is root.
        process.user = None;
    }

    /// A container's executor has ended: what Docker runs of it ends now, and is deleted later. Blocks.
    pub(super) fn ended(&self, container: &ContainerName, runtime: &Handle) {
        let known = |inner: &Arc<Inner>| lock(&inner.known).remove(container.as_str());
        let Some(inner) = self.0.clone().filter(known) else { return };
        let name = format!("{PREFIX}{container}");
        if let Err(error) = inner.client.kill(&name, "SIGKILL") {
            tracing::warn!(%container, "{:#}", anyhow::Error::from(error));
        }
        runtime.spawn(async move {
            tokio::time::sleep(inner.remove_delay).await;
            tokio::task::spawn_blocking(move || remove(&inner.client, &name));
        });
    }

    /// Ends and deletes what an earlier agent has left of containers other than these. Blocks.
    pub(super) fn clean(&self, wanted: &BTreeSet<String>, runtime: &Handle) {
        let Some(inner) = &self.0 else { return };
        // Of those that go on nobody knows whose they are.
        lock(&inner.known).extend(wanted.iter().cloned());
        let listed = match inner.client.containers() {
            Ok(listed) => listed,
            Err(error) => return tracing::warn!("{:#}", anyhow::Error::from(error)),
        };
        for container in listed {
            let id = container.name.trim_start_matches(PREFIX).to_owned();
            if wanted.contains(&id) || container.running && !inner.kill_orphans {
                continue;
            }
            let created = SystemTime::UNIX_EPOCH + Duration::from_secs(container.created);
            let age = created.elapsed().unwrap_or_default();
            if container.running {
                tracing::info!(container = id, "ending a Docker container that an earlier agent has left");
                if let Err(error) = inner.client.kill(&container.name, "SIGKILL") {
                    tracing::warn!("{:#}", anyhow::Error::from(error));
                }
            }
            let (inner, left) = (inner.clone(), inner.remove_delay.saturating_sub(age));
            runtime.spawn(async move {
                tokio::time::sleep(left).await;
                tokio::task::spawn_blocking(move || remove(&inner.client, &container.name));
            });
        }
    }
}

impl Inner {
    /// The name servers of a container for which its task names none.
    fn servers(&self, spec: &ContainerSpec) -> Option<String> {
        use protos::mesos::container_info::docker_info::Network;
        let container = spec.container.as_ref()?;
        let named = container.network_infos.first().and_then(|info| info.name.as_deref());
        match container.docker.as_ref()?.network() {
            Network::Bridge => self.dns.of_docker("BRIDGE", None),
            Network::User => self.dns.of_docker("USER", named),
            Network::Host | Network::None => None,
        }
    }
}

fn remove(client: &Client, name: &str) {
    if let Err(error) = client.remove(name) {
        tracing::warn!("the Docker container '{name}' cannot be removed: {:#}", anyhow::Error::from(error));
    }
}
