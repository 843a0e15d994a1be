//! Start of the containerizer: checks that the host supports the configuration, before the agent registers.
//!
//! It launches nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{ContainerName, RecoveredNested};
use anyhow::Context;
use base::Time;
use containers::ProgramFile;
use protos::mesos::Resource;

use crate::composing::{ComposingContainerizer, Connect, LauncherParts, Report};
use crate::config::Config;
use crate::config::SecretResolver;
use crate::container_logger::ContainerLogger;
use crate::containerizer::Containerizers;
use crate::deleter::Deleter;
use crate::docker::Docker;
use crate::fetcher::Fetcher;
use crate::mesos::MesosContainerizer;
use crate::mesos::isolators::gpu::nvidia::Gpus;
use crate::mesos::isolators::{Isolators, list::IsolatorContext};
use crate::mesos::provisioner::Provisioner;
use crate::runtime_dir::Records;
use crate::systemd::Systemd;

/// A host that supports the configuration.
pub struct Host {
    isolators: Isolators,
    docker: Docker,
    records: Records,
    fetcher: Fetcher,
    rotation: ContainerLogger,
    secrets: SecretResolver,
    systemd: Systemd,
    /// Directory of the sandboxes of standalone containers.
    standalone: PathBuf,
}

/// Connections of the containerizer to the rest of the agent.
pub struct AgentConnections {
    /// Program of the executors, with the name by which the core knows it.
    pub executor: Option<(String, ProgramFile)>,
    /// Function that receives reports about containers.
    pub report: Report,
    /// Function that serves executors that are started with a connection.
    pub connect: Connect,
    /// Deleter of directories; a launch waits for the deletion of its sandbox.
    pub deleter: Deleter,
    /// Function that is called at points where a test may end the agent.
    pub on_step: fn(&'static str),
}

impl Host {
    /// Checks the host and prepares what all containers need.
    ///
    /// `resources` are the agent's, `program` is its own program, `meta` the directory that names it, and `now` returns
    /// the time.
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
        let context = IsolatorContext { images, fetcher: fetcher.clone(), gpus, resources, now };
        Ok(Host {
            isolators: Isolators::start(config, context)?,
            docker,
            records: Records::new(&config.runtime_dir, meta),
            fetcher,
            rotation: ContainerLogger::new(config.logger.clone()),
            secrets: config.secrets.clone(),
            systemd,
            standalone: config.work_dir.join("containers"),
        })
    }

    /// Returns whether containers run in control groups and namespaces.
    pub fn is_linux(&self) -> bool {
        self.isolators.is_linux()
    }

    /// Returns which resources of a task can have a limit beyond what it holds.
    pub fn limitable(&self) -> agent::Limitable {
        self.isolators.limitable()
    }

    /// Returns the records of the previous agent process about its containers, outer ones first.
    pub fn recovered(&self) -> Vec<(ContainerName, RecoveredNested)> {
        self.records.read()
    }

    /// Returns the fetcher.
    pub fn fetcher(&self) -> Fetcher {
        self.fetcher.clone()
    }

    /// Starts the launcher's thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn launch(self, connections: AgentConnections) -> anyhow::Result<ComposingContainerizer> {
        let AgentConnections { executor, report, connect, deleter, on_step } = connections;
        let live = Arc::default();
        let mesos = MesosContainerizer::new(self.isolators.clone(), !self.docker.is_alone(), Arc::clone(&live));
        let containerizers = Containerizers(Arc::new([Arc::new(self.docker.clone()), Arc::new(mesos)]));
        let parts = LauncherParts {
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
        ComposingContainerizer::start(parts).context("the launcher's thread cannot be started")
    }
}
