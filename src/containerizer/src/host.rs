//! The start of the containerizer: it checks that the host has what is configured, before the agent registers.
//!
//! It launches nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{ContainerName, RecoveredNested};
use anyhow::Context;
use base::Time;
use containers::ProgramFile;
use protos::mesos::Resource;

use crate::composing::{ComposingContainerizer, Connect, Report, Tools};
use crate::config::Config;
use crate::config::SecretResolver;
use crate::container_logger::ContainerLogger;
use crate::containerizer::Containerizers;
use crate::deleter::Deleter;
use crate::docker::Docker;
use crate::fetcher::Fetcher;
use crate::mesos::MesosContainerizer;
use crate::mesos::isolators::gpu::nvidia::Gpus;
use crate::mesos::isolators::{Isolators, list::Parts};
use crate::mesos::provisioner::Provisioner;
use crate::runtime_dir::Records;
use crate::systemd::Systemd;

/// A host that has what is configured.
pub struct Host {
    isolators: Isolators,
    docker: Docker,
    records: Records,
    fetcher: Fetcher,
    rotation: ContainerLogger,
    secrets: SecretResolver,
    systemd: Systemd,
    /// Where the sandboxes of standalone containers are.
    standalone: PathBuf,
}

/// What the containerizer is connected to.
pub struct Links {
    /// The executors' program under the name that the core knows it by.
    pub executor: Option<(String, ProgramFile)>,
    /// Receives reports about containers.
    pub report: Report,
    /// Serves executors that are started with a connection.
    pub connect: Connect,
    /// Deletes directories in the background; a launch waits for the deletion of its sandbox.
    pub deleter: Deleter,
    /// Called at points where a test may end the agent.
    pub on_step: fn(&'static str),
}

impl Host {
    /// Checks the host and prepares what all containers need. `resources` are the agent's, `program` is its own
    /// program, `meta` the directory that names it, and `now` returns the time.
    ///
    /// # Errors
    /// What the host lacks.
    pub async fn start(
        config: &Config,
        gpus: Option<Gpus>,
        resources: Vec<Resource>,
        (program, meta): (String, &Path),
        now: Arc<dyn Fn() -> Time + Send + Sync>,
    ) -> anyhow::Result<Host> {
        let docker = Docker::new(config, gpus.clone());
        docker.check()?;
        let systemd = Systemd::start(config.systemd.clone()).await;
        let images = Provisioner::start(config)?;
        let fetcher = Fetcher::new(&config.fetcher, &config.work_dir, program);
        let parts = Parts { images, fetcher: fetcher.clone(), gpus, resources, now };
        Ok(Host {
            isolators: Isolators::start(config, parts)?,
            docker,
            records: Records::new(&config.runtime_dir, meta),
            fetcher,
            rotation: ContainerLogger::new(config.logger.clone()),
            secrets: config.secrets.clone(),
            systemd,
            standalone: config.work_dir.join("containers"),
        })
    }

    /// Whether containers are in control groups and namespaces.
    pub fn is_linux(&self) -> bool {
        self.isolators.is_linux()
    }

    /// Which limits tasks can have beyond what they hold.
    pub fn limitable(&self) -> agent::Limitable {
        self.isolators.limitable()
    }

    /// What an earlier agent has noted of its containers, outer ones first.
    pub fn recovered(&self) -> Vec<(ContainerName, RecoveredNested)> {
        self.records.read()
    }

    /// The fetcher.
    pub fn fetcher(&self) -> Fetcher {
        self.fetcher.clone()
    }

    /// Starts the launcher.
    ///
    /// # Errors
    /// If its thread cannot be started.
    pub fn launch(self, links: Links) -> anyhow::Result<ComposingContainerizer> {
        let Links { executor, report, connect, deleter, on_step } = links;
        let live = Arc::default();
        let mesos = MesosContainerizer::new(self.isolators.clone(), !self.docker.is_alone(), Arc::clone(&live));
        let containerizers = Containerizers(Arc::new([Arc::new(self.docker.clone()), Arc::new(mesos)]));
        let tools = Tools {
            executor,
            report,
            records: self.records,
            connect,
            fetcher: self.fetcher,
            isolators: self.isolators,
            containerizers,
            live,
            docker: self.docker,
            rotation: self.rotation,
            secrets: self.secrets,
            systemd: self.systemd,
            standalone: self.standalone,
            deleter,
            on_step,
        };
        ComposingContainerizer::start(tools).context("the launcher's thread cannot be started")
    }
}
