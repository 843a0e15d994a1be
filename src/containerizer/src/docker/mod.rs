//! The Docker containerizer (AGT-85 to AGT-87), which selects Docker's containers, configures their executors, and
//! cleans up.
//!
//! Executors run the tasks' containers (see crate `executor`) and outlive the agent. An executor in a container is
//! started by a runner, a small process of the agent beside it, which need not outlive the agent.
//! `executor_container.rs` describes such containers; `recover.rs` recovers those of the previous agent process.

mod executor_container;
mod recover;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use agent::{ContainerName, ContainerSpec, Input, Limits};
use anyhow::Context;
use base::lock;
use containers::Spec;
use executor::docker::{
    Client, ContainerSettings, DEVICES, DNS, EXECUTOR, LOGIN, NAME, PREFIX, QUOTA, SANDBOX, SOCKET, STOP_TIMEOUT,
};
use prost::Message;
use protos::mesos::container_info::Type;
use protos::mesos::{self, TaskInfo};
use tokio::runtime::Handle;

use crate::config::{self, Config};
use crate::containerizer::{Container, Containerizer, Launched};
use crate::credential_helpers::{self, Logins};
use crate::default_dns::DefaultDns;
use crate::mesos::isolators::gpu::nvidia::Gpus;
use crate::mesos::isolators::posix::rlimits::rlimits;

/// Subcommand of the executors' program for the runner, the process beside an executor's container.
pub(crate) const RUNNER: &str = "docker";
/// Registry of image names without one.
const DOCKER_HUB: &str = "docker.io";

/// The Docker containerizer; empty if `--containerizers` does not name it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Docker(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    config: config::Docker,
    client: Client,
    dns: DefaultDns,
    /// Logins to registries, in the format of Docker's configuration file (`--docker_config`).
    logins: Logins,
    gpus: Option<Gpus>,
    /// Whether executors get the resource limits that their containers request.
    rlimits: bool,
    /// Logins from credential helpers, for containers that are about to start.
    helper_logins: Mutex<BTreeMap<String, String>>,
    /// Ids of containers that it runs, or may run.
    known: Mutex<BTreeSet<String>>,
    /// Ids of the known containers that are executors of frameworks.
    executors: Mutex<BTreeSet<String>>,
    /// Ids of the known containers whose executor is in a container beside the task's.
    executors_in_containers: Mutex<BTreeSet<String>>,
    /// Docker's names of the containers in which executors of the previous agent process run.
    left_containers: Mutex<BTreeMap<String, String>>,
    /// Docker's names of containers with a name in the format of old agents.
    old_names: Mutex<BTreeMap<String, String>>,
    /// Set when the agent stops and leaves its containers to the next process.
    leaving: AtomicBool,
    /// Ids of containers that were to be destroyed before that.
    to_be_destroyed: Mutex<BTreeSet<String>>,
}

impl Docker {
    /// Creates the containerizer from the configuration. It does not contact the daemon.
    pub(crate) fn new(config: &Config, gpus: Option<Gpus>) -> Docker {
        let Some(docker) = config.docker.clone() else { return Docker(None) };
        Docker(Some(Arc::new(Inner {
            client: Client::new(&docker.socket),
            config: docker,
            dns: config.dns.clone(),
            logins: Logins::of(&config.docker_config),
            gpus,
            rlimits: config.isolation.has(&["posix/rlimits"]),
            helper_logins: Mutex::default(),
            known: Mutex::default(),
            executors: Mutex::default(),
            executors_in_containers: Mutex::default(),
            left_containers: Mutex::default(),
            old_names: Mutex::default(),
            leaving: AtomicBool::new(false),
            to_be_destroyed: Mutex::default(),
        })))
    }

    /// Requests the daemon's version, so that an agent without a daemon does not start.
    ///
    /// # Errors
    /// If the daemon does not answer.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let Some(inner) = &self.0 else { return Ok(()) };
        let version = inner.client.version().context("the containerizer docker cannot be used")?;
        tracing::info!("Docker {version} runs containers of the type DOCKER");
        Ok(())
    }

    /// Returns whether Docker is the only containerizer.
    pub(crate) fn is_alone(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.config.alone)
    }

    /// Returns whether it runs, or may run, a container.
    fn knows(&self, container: &ContainerName) -> bool {
        self.0.as_ref().is_some_and(|inner| lock(&inner.known).contains(container.as_str()))
    }

    /// Returns whether a credential helper has the login to the registry of a container's image.
    fn asks_helper(&self, spec: &ContainerSpec) -> bool {
        Docker::runs(spec) && self.0.as_ref().is_some_and(|inner| inner.helped(spec).is_some())
    }

    /// Runs the credential helper for a container's image, unless the image is already present. Blocks.
    fn ask_helper(&self, container: &ContainerName, spec: &ContainerSpec) {
        let Some(inner) = self.0.as_ref().filter(|_| Docker::runs(spec)) else { return };
        if let Some(host) = inner.helped(spec).filter(|_| inner.pulls(spec)) {
            self.note(container, spec);
            let login = inner.logins.ask(&host);
            lock(&inner.helper_logins).insert(container.as_str().to_owned(), login);
        }
    }

    /// Records that Docker runs a container.
    fn note(&self, container: &ContainerName, spec: &ContainerSpec) {
        if let Some(inner) = self.0.as_ref().filter(|_| Docker::runs(spec)) {
            lock(&inner.known).insert(container.as_str().to_owned());
        }
    }

    /// Returns whether a container is of the type DOCKER.
    pub(crate) fn runs(spec: &ContainerSpec) -> bool {
        spec.container.as_ref().is_some_and(|container| container.r#type() == Type::Docker)
    }

    /// Returns whether Docker runs the executor itself, because it is the framework's own.
    fn is_executor(spec: &ContainerSpec) -> bool {
        Docker::runs(spec) && spec.latest.is_some() && !spec.is_builtin_executor
    }

    /// Returns whether the executor itself runs in a Docker container.
    fn runs_executor(&self, spec: &ContainerSpec) -> bool {
        let has_executor_image = self.0.as_ref().is_some_and(|inner| inner.config.mesos_image.is_some());
        Docker::is_executor(spec) || has_executor_image && Docker::runs(spec)
    }

    /// Creates the container of an executor that runs in one; does nothing for others. Blocks.
    ///
    /// # Errors
    /// Docker's error.
    fn make(&self, container: &ContainerName, spec: &ContainerSpec) -> anyhow::Result<()> {
        let Some(inner) = self.0.as_ref().filter(|_| self.runs_executor(spec)) else { return Ok(()) };
        let devices = inner.devices(container, spec)?;
        let id = container.as_str().to_owned();
        lock(&inner.known).insert(id.clone());
        if let Some(image) = inner.config.mesos_image.as_ref().filter(|_| !Docker::is_executor(spec)) {
            lock(&inner.executors_in_containers).insert(id);
            let login = executor::docker::login(inner.logins.text(), image);
            let variables = inner.variables(container, spec, devices);
            let create_request =
                executor_container::create_request(image, spec, variables, &inner.config.socket, login)?;
            return Ok(create_request.make(&inner.client, &inner.executor_container_name(container, spec))?);
        }
        lock(&inner.executors).insert(id);
        let name = format!("{PREFIX}{container}");
        let settings = ContainerSettings {
            name: &name,
            sandbox: Path::new(&spec.sandbox),
            sandbox_in_container: &inner.config.sandbox,
            quota: inner.config.enable_cfs,
            dns: inner.servers(spec).and_then(|text| serde_json::from_str(&text).ok()),
            login: inner.login(container, spec),
            devices: devices.and_then(|text| serde_json::from_str(&text).ok()),
        };
        let mut create_request = executor::docker::create_request(&description(spec).encode_to_vec(), &settings)?;
        create_request.create["Labels"][EXECUTOR] = "".into();
        Ok(create_request.make(&inner.client, &name)?)
    }

    /// Returns the variables of the runner of an executor that runs in a container. The runner starts the container and
    /// ends with it.
    fn runner(&self, container: &ContainerName, spec: &ContainerSpec) -> Option<Vec<(OsString, OsString)>> {
        let inner = self.0.as_ref().filter(|_| self.runs_executor(spec))?;
        let all = [
            (SOCKET, inner.config.socket.clone()),
            (NAME, inner.executor_container_name(container, spec)),
            (crate::reaper::SANDBOX_VARIABLE, spec.sandbox.clone()),
        ];
        Some(all.map(|(name, value)| (name.into(), value.into())).into())
    }

    /// Updates the resources and limits of a running executor that Docker runs. Blocks.
    fn resize(&self, container: &ContainerName, held: Vec<mesos::Resource>, limits: Limits) {
        let is_executor = |inner: &&Arc<Inner>| lock(&inner.executors).contains(container.as_str());
        let Some(inner) = self.0.as_ref().filter(is_executor) else { return };
        let task = TaskInfo { resources: held, limits: named(limits), ..TaskInfo::default() };
        let limits = executor::docker::new_limits(&task.encode_to_vec(), inner.config.enable_cfs).unwrap_or_default();
        if let Err(error) = inner.client.resize(&inner.name(container), limits) {
            tracing::warn!(%container, "{:#}", anyhow::Error::from(error));
        }
    }

    /// Adds the variables that tell an executor how to reach Docker, and which GPUs it has.
    ///
    /// # Errors
    /// The container needs more GPUs than are free.
    fn add_variables(&self, container: &ContainerName, spec: &ContainerSpec, process: &mut Spec) -> anyhow::Result<()> {
        let Some(inner) = self.0.as_ref().filter(|_| Docker::runs(spec)) else { return Ok(()) };
        let all = inner.variables(container, spec, inner.devices(container, spec)?).into_iter();
        process.environment.extend(all.map(|(name, value)| (OsString::from(name), OsString::from(value))));
        // A process with access to the Docker daemon has the power of root anyway.
        process.user = None;
        Ok(())
    }

    /// Records that the agent stops and leaves its containers to the next process.
    pub(crate) fn leave(&self) {
        if let Some(inner) = &self.0 {
            inner.leaving.store(true, Ordering::Relaxed);
        }
    }

    /// Records that a container is to be destroyed.
    fn give_up(&self, container: &ContainerName) {
        if let Some(inner) = self.0.as_ref().filter(|_| self.knows(container)) {
            lock(&inner.to_be_destroyed).insert(container.as_str().to_owned());
        }
    }

    /// Returns whether an executor's container is left to the next agent process, even if its runner has ended.
    fn is_left(&self, container: &ContainerName) -> bool {
        let id = container.as_str();
        self.0.as_ref().is_some_and(|inner| {
            let runs_executor =
                lock(&inner.executors).contains(id) || lock(&inner.executors_in_containers).contains(id);
            inner.leaving.load(Ordering::Relaxed) && runs_executor && !lock(&inner.to_be_destroyed).contains(id)
        })
    }

    /// Handles the end of a container's executor: kills the containers that Docker runs for it, and deletes them later.
    /// Blocks.
    fn ended(&self, container: &ContainerName) {
        let known = |inner: &Arc<Inner>| lock(&inner.known).remove(container.as_str());
        let Some(inner) = self.0.clone().filter(known) else { return };
        lock(&inner.executors).remove(container.as_str());
        lock(&inner.helper_logins).remove(container.as_str());
        lock(&inner.to_be_destroyed).remove(container.as_str());
        if let Some(gpus) = &inner.gpus {
            gpus.release(container.as_str());
        }
        let name = inner.name(container);
        lock(&inner.old_names).remove(container.as_str());
        if lock(&inner.executors_in_containers).remove(container.as_str()) {
            // The executor's output is in the sandbox, so its container is not needed any more.
            remove(&inner.client, &format!("{name}{}", executor_container::SUFFIX));
        }
        if let Err(error) = inner.client.kill(&name, "SIGKILL") {
            tracing::warn!(%container, "{:#}", anyhow::Error::from(error));
        }
        Handle::current().spawn(async move {
            tokio::time::sleep(inner.config.remove_delay).await;
            tokio::task::spawn_blocking(move || remove(&inner.client, &name));
        });
    }
}

impl Containerizer for Docker {
    fn supports(&self, spec: &ContainerSpec) -> bool {
        Docker::runs(spec)
    }

    fn check(&self, spec: &ContainerSpec) -> anyhow::Result<()> {
        anyhow::ensure!(self.0.is_some(), "Docker containers need the containerizer docker (--containerizers)");
        anyhow::ensure!(spec.latest.is_some(), "Docker containers cannot be standalone or nested containers");
        anyhow::ensure!(!is_pod(spec), "The containers of a task group cannot be Docker containers");
        Ok(())
    }

    /// Returns `false`: Docker mounts volumes itself, and finds them by their links.
    fn mounts(&self) -> bool {
        false
    }

    fn needs_provisioning(&self, spec: &ContainerSpec) -> bool {
        self.asks_helper(spec) || self.runs_executor(spec)
    }

    fn provision(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        fetch: &dyn Fn() -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<Input>> {
        fetch()?;
        self.ask_helper(container, spec);
        self.make(container, spec)?;
        Ok(Vec::new())
    }

    fn launch(&self, container: Container<'_>, process: &mut Spec) -> anyhow::Result<Launched> {
        let Container { name, spec, .. } = container;
        if self.0.as_ref().is_some_and(|inner| inner.rlimits) {
            process.rlimits = rlimits(spec)?;
        }
        self.note(name, spec);
        self.add_variables(name, spec, process)?;
        let runner = self.runner(name, spec);
        let subcommand = runner.is_some().then_some(RUNNER);
        if let Some(variables) = runner {
            process.environment = variables;
        }
        Ok(Launched { subcommand, ..Launched::default() })
    }

    fn records_executors(&self) -> bool {
        false
    }

    fn attach(&self, _: &ContainerSpec) -> Option<(u32, u32)> {
        None
    }

    fn update(&self, container: &ContainerName, held: &[mesos::Resource], limits: Limits) {
        if self.knows(container) {
            let (docker, container, held) = (self.clone(), container.clone(), held.to_vec());
            tokio::task::spawn_blocking(move || docker.resize(&container, held, limits));
        }
    }

    fn processes(&self, container: &ContainerName) -> Vec<i32> {
        let Some(inner) = self.0.as_ref().filter(|_| self.knows(container)) else { return Vec::new() };
        inner.client.processes(&inner.name(container)).unwrap_or_default()
    }

    fn destroy(&self, container: &ContainerName) {
        self.give_up(container);
    }

    /// Returns `false` for a container that is left to the next agent process: its runner may end with this one, and
    /// the next one starts another.
    fn wait(&self, container: &ContainerName) -> bool {
        !self.is_left(container)
    }

    fn recover<'a>(
        &'a self,
        kept: &'a BTreeSet<String>,
    ) -> Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send + 'a>> {
        Box::pin(self.recover_containers(kept))
    }

    fn reattach(&self, container: &ContainerName, sandbox: &str) -> Option<Vec<(OsString, OsString)>> {
        self.runner_environment(container, sandbox)
    }

    fn needs_cleanup(&self, container: &ContainerName) -> bool {
        self.knows(container)
    }

    fn cleanup(&self, container: &ContainerName) {
        self.ended(container);
    }
}

impl Inner {
    /// Allocates the GPUs that a container holds. Returns their description for its executor, if it holds any.
    fn devices(&self, container: &ContainerName, spec: &ContainerSpec) -> anyhow::Result<Option<String>> {
        self.gpus.as_ref().map_or(Ok(None), |gpus| gpus.assign_to_docker(container, &spec.resources))
    }

    /// Returns Docker's name of a container.
    fn name(&self, container: &ContainerName) -> String {
        let old = lock(&self.old_names).get(container.as_str()).cloned();
        old.unwrap_or_else(|| format!("{PREFIX}{container}"))
    }

    /// Returns Docker's name of an executor's container.
    fn executor_container_name(&self, container: &ContainerName, spec: &ContainerSpec) -> String {
        let suffix = if Docker::is_executor(spec) { "" } else { executor_container::SUFFIX };
        format!("{PREFIX}{container}{suffix}")
    }

    /// Returns the variables that a tepui executor reads.
    fn variables(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        devices: Option<String>,
    ) -> Vec<(&'static str, String)> {
        let mut all = vec![(SOCKET, self.config.socket.clone()), (SANDBOX, self.config.sandbox.clone())];
        all.extend(self.config.enable_cfs.then(|| (QUOTA, "1".to_owned())));
        all.extend(devices.map(|devices| (DEVICES, devices)));
        all.extend(self.config.stop_timeout.clone().map(|time| (STOP_TIMEOUT, time)));
        all.extend(self.servers(spec).map(|servers| (DNS, servers)));
        all.extend(self.login(container, spec).map(|login| (LOGIN, login)));
        all
    }

    /// Returns the operator's login to the registry of a container's image.
    fn login(&self, container: &ContainerName, spec: &ContainerSpec) -> Option<String> {
        let docker = spec.container.as_ref()?.docker.as_ref()?;
        let login = lock(&self.helper_logins).get(container.as_str()).cloned();
        executor::docker::login(login.as_deref().unwrap_or(self.logins.text()), &docker.image)
    }

    /// Returns the registry of a container's image, if a credential helper has its login.
    fn helped(&self, spec: &ContainerSpec) -> Option<String> {
        let image = &spec.container.as_ref()?.docker.as_ref()?.image;
        let host = credential_helpers::host_of(image).unwrap_or(DOCKER_HUB);
        self.logins.are_kept(host).then(|| host.to_owned())
    }

    /// Returns whether the daemon has to pull a container's image.
    fn pulls(&self, spec: &ContainerSpec) -> bool {
        let docker = spec.container.as_ref().and_then(|container| container.docker.as_ref());
        let there = |image: &str| self.client.has_image(image).unwrap_or(false);
        docker.is_some_and(|docker| docker.force_pull_image() || !there(&docker.image))
    }

    /// Returns the default name servers of a container whose task names none.
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

/// Returns whether a container's program is the default executor.
fn is_pod(spec: &ContainerSpec) -> bool {
    spec.is_builtin_executor && spec.argv.get(2).is_some_and(|kind| kind == "default")
}

/// Describes an executor as a task, which is what Docker runs.
fn description(spec: &ContainerSpec) -> TaskInfo {
    let variables = spec.environment.iter();
    // The container has directories of its own, and the image has its own paths of programs.
    let variables =
        variables.filter(|(name, value)| name != "MESOS_SANDBOX" && (name != "PATH" || value != agent::PATH));
    let variable = |(name, value): &(String, String)| mesos::environment::Variable {
        name: name.clone(),
        value: Some(value.clone()),
        ..Default::default()
    };
    let environment = Some(mesos::Environment { variables: variables.map(variable).collect() });
    let (file, argv) = (spec.program.as_str(), spec.argv.as_slice());
    let command = match argv {
        [shell, option, script] if file == "/bin/sh" && shell == "sh" && option == "-c" => {
            mesos::CommandInfo { shell: Some(true), value: Some(script.clone()), environment, ..Default::default() }
        }
        _ => mesos::CommandInfo {
            shell: Some(false),
            value: Some(file.to_owned()).filter(|file| !file.is_empty()),
            // An argv that consists of the program alone adds no arguments.
            arguments: argv.iter().filter(|_| argv != [file]).cloned().collect(),
            environment,
            ..Default::default()
        },
    };
    TaskInfo {
        resources: spec.resources.clone(),
        limits: named(spec.limits),
        container: spec.container.clone().map(Box::new),
        command: Some(command),
        ..TaskInfo::default()
    }
}

fn named(limits: Limits) -> BTreeMap<String, mesos::value::Scalar> {
    let one = |(name, most): (&str, Option<f64>)| Some((name.to_owned(), mesos::value::Scalar { value: most? }));
    [("cpus", limits.cpus), ("mem", limits.mem)].into_iter().filter_map(one).collect()
}

fn remove(client: &Client, name: &str) {
    if let Err(error) = client.remove(name) {
        tracing::warn!("the Docker container '{name}' cannot be removed: {:#}", anyhow::Error::from(error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(program: &str, argv: &[&str]) -> (bool, Option<String>, Vec<String>) {
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        let spec = ContainerSpec { program: program.to_owned(), argv, ..ContainerSpec::default() };
        let command = description(&spec).command.unwrap();
        (command.shell(), command.value.clone(), command.arguments.clone())
    }

    #[test]
    fn variables_of_an_executor_are_the_agents() {
        let all = [SOCKET, SANDBOX, QUOTA, DNS, DEVICES, LOGIN, STOP_TIMEOUT, NAME, executor::docker::SINCE];
        assert!(all.into_iter().chain([executor::docker::OUTPUT]).all(agent::is_agents_own));
        assert!(!agent::is_agents_own("TEPUI_INDEX"));
    }

    #[test]
    fn executors_that_look_like_ours_are_in_containers() {
        let argv = ["x", "executor", "command"].map(str::to_owned).to_vec();
        let container = Some(mesos::ContainerInfo { r#type: Type::Docker as i32, ..Default::default() });
        let latest = Some("/w/latest".to_owned());
        let theirs = ContainerSpec { argv, container, latest, ..ContainerSpec::default() };
        assert!(Docker::is_executor(&theirs));
        assert!(!Docker::is_executor(&ContainerSpec { is_builtin_executor: true, ..theirs }));
    }

    #[test]
    fn an_agent_that_stops_leaves_executors_but_ends_what_was_being_killed() {
        let config = config::Docker { socket: "/nowhere".to_owned(), ..config::Docker::default() };
        let docker = Docker::new(&Config { docker: Some(config), ..Config::default() }, None);
        let name = |id| ContainerName::top(&base::ContainerId::new(id).unwrap());
        let [kept, ended, task] = ["kept", "ended", "task"].map(name);
        let inner = docker.0.as_ref().unwrap();
        lock(&inner.known).extend(["kept", "ended", "task"].map(str::to_owned));
        lock(&inner.executors).extend(["kept", "ended"].map(str::to_owned));
        assert!(!docker.is_left(&kept));
        docker.leave();
        docker.give_up(&ended);
        assert!(docker.is_left(&kept) && !docker.is_left(&ended) && !docker.is_left(&task));
    }

    #[test]
    fn what_the_executor_is() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(said("/bin/sh", &["sh", "-c", "run it"]), (true, Some("run it".to_owned()), Vec::new()));
        assert_eq!(said("/run", &["/run"]), (false, Some("/run".to_owned()), Vec::new()));
        assert_eq!(said("/run", &["a", "b"]), (false, Some("/run".to_owned()), words(&["a", "b"])));
        // The image defines the command.
        assert_eq!(said("", &[""]), (false, None, Vec::new()));
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let environment = vec![variable("MESOS_SANDBOX", "/w"), variable("PATH", agent::PATH), variable("A", "b")];
        let command = description(&ContainerSpec { environment, ..ContainerSpec::default() }).command.unwrap();
        let names: Vec<String> = command.environment.unwrap().variables.into_iter().map(|one| one.name).collect();
        assert_eq!(names, ["A"]);
    }
}
