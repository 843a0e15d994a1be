//! The stage of a scenario: one agent and a modelled disk, driven by lines of words.

mod inputs;
mod show;

use std::collections::BTreeMap;
use std::time::Duration;

use agent::oversubscription::{FixedEstimator, LoadController, Policy};
use agent::{
    Agent, Config, ContainerName, Credential, Input, Limitable, Outbox, Outgoing, Output, Persist, Reconfiguration,
    RecoverMode, Recovered, RecoveredNested, Tree,
};
use base::{Pid, Time};
use cores::Core;
use protos::mesos as pb;
use resources::{Format, Resources, Role, parse_attributes, parse_text};

/// Pid of the leading master in all scenarios.
pub(crate) const MASTER: &str = "master@10.0.0.1:5050";

/// An agent with its modelled environment.
pub struct TestAgent {
    pub(crate) agent: Option<Agent>,
    pub(crate) config: Config,
    pub(crate) info: pb::SlaveInfo,
    pub(crate) disk: Tree,
    pub(crate) now: Time,
    pub(crate) seed: u64,
    /// Containers in the order of their launches. Those of executors are named by framework and executor.
    pub(crate) containers: Vec<ContainerName>,
    pub(crate) executors: BTreeMap<String, ContainerName>,
    /// Records of nested and standalone containers.
    pub(crate) nested: BTreeMap<ContainerName, RecoveredNested>,
    /// Last update of each task that was sent to the master.
    pub(crate) sent: BTreeMap<String, pb::internal::StatusUpdate>,
    pub(crate) requests: u64,
    pub(crate) updates: u64,
    pub(crate) operation: Option<pb::OperationStatus>,
    pub(crate) quiet: bool,
    /// Resources that a fixed estimator offers as revocable.
    pub(crate) estimator: Option<Resources>,
    /// Load over five minutes above which revocable executors are ended.
    pub(crate) load: Option<f64>,
}

impl TestAgent {
    /// Returns the stage of an agent with 4 CPUs that has never run.
    pub fn new() -> TestAgent {
        let pid: Pid = "slave(1)@10.0.0.2:5051".parse().unwrap();
        let mut config = Config::new(pid, "/w");
        config.boot_id = "boot-1".to_owned();
        config.program = "/bin/tepui".to_owned();
        let resources = parse_text("cpus:4;mem:4096;disk:1000", &Role::star()).unwrap();
        let info = pb::SlaveInfo {
            hostname: "host".into(),
            port: Some(5051),
            resources: resources.to_proto(Format::PostRefinement),
            checkpoint: Some(true),
            ..pb::SlaveInfo::default()
        };
        TestAgent {
            agent: None,
            config,
            info,
            disk: Tree::default(),
            now: Time::from_secs(1000),
            seed: 1,
            containers: Vec::new(),
            executors: BTreeMap::new(),
            nested: BTreeMap::new(),
            sent: BTreeMap::new(),
            requests: 0,
            updates: 0,
            operation: None,
            quiet: false,
            estimator: None,
            load: None,
        }
    }

    /// Carries out one line, and returns the outputs as text.
    pub fn act(&mut self, line: &str) -> Vec<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["flag", name, value] => self.flag(name, value),
            ["boot", id] => {
                self.config.boot_id = (*id).to_owned();
                Vec::new()
            }
            ["start"] => self.start(),
            ["kill"] => {
                self.agent = None;
                Vec::new()
            }
            ["tear", file, bytes] => self.tear(file, bytes.parse().unwrap()),
            ["disk"] => self.files(),
            ["quiet"] => {
                self.quiet = true;
                Vec::new()
            }
            ["after", duration] => self.after(base::parse_duration(duration).unwrap()),
            words => {
                let inputs = self.inputs(words);
                self.feed(inputs)
            }
        }
    }

    fn flag(&mut self, name: &str, value: &str) -> Vec<String> {
        let duration = || base::parse_duration(value).unwrap();
        match name {
            "resources" => {
                self.info.resources = parse_text(value, &Role::star()).unwrap().to_proto(Format::PostRefinement);
            }
            // The value is a principal, and after a colon a secret.
            "credential" => {
                let (principal, secret) = value.split_once(':').map_or((value, None), |(one, two)| (one, Some(two)));
                let secret = secret.map(str::to_owned);
                self.config.credential = Some(Credential { principal: principal.to_owned(), secret });
            }
            "attributes" => self.info.attributes = parse_attributes(value).unwrap(),
            "reconfiguration_policy" => self.config.reconfiguration_policy = Reconfiguration::Additive,
            "executor_reregistration_timeout" => self.config.executor_reregistration_timeout = duration(),
            "estimator" => self.estimator = Some(parse_text(value, &Role::star()).unwrap()),
            "load" => self.load = Some(value.parse().unwrap()),
            "registration_backoff_factor" => {
                self.config.registration_backoff_factor = duration();
                self.config.first_registration_wait = duration();
            }
            "first_registration_wait" => self.config.first_registration_wait = duration(),
            "acls" => self.config.authorizer = authorizer::Acls::parse(value).unwrap().into(),
            "recover" => self.config.recover = RecoverMode::Cleanup,
            "gc_delay" => self.config.gc_delay = duration(),
            "gc_non_executor_container_sandboxes" => self.config.gc_sandboxes_inside = value.parse().unwrap(),
            "executor_heartbeat" => self.config.executor_heartbeat = Some(duration()),
            // Permits all limits that an agent can set.
            "limits" => {
                self.config.can_limit = Limitable { cpus: value.contains("cpus"), mem: value.contains("mem") };
            }
            _ => panic!("unknown flag {name}"),
        }
        Vec::new()
    }

    fn start(&mut self) -> Vec<String> {
        self.seed += 1;
        let mut recovered = match Recovered::read(&self.disk, true) {
            Ok(recovered) => recovered,
            Err(why) => return vec![format!("refused: {why}")],
        };
        recovered.nested = self.nested.clone().into_iter().collect();
        let mut out = Outbox::default();
        match Agent::new(self.config.clone(), self.info.clone(), recovered, self.seed, self.now, &mut out) {
            Ok(mut agent) => {
                agent.oversubscribe(self.policy(), self.now);
                self.agent = Some(agent);
            }
            Err(why) => return vec![format!("refused: {}", why.to_string().lines().next().unwrap())],
        }
        self.carry_out(out)
    }

    fn policy(&self) -> Policy {
        let mut policy = Policy { estimate_interval: Duration::from_secs(15), ..Policy::default() };
        if let Some(resources) = &self.estimator {
            policy.estimator = Some(Box::new(FixedEstimator::new(resources)));
        }
        if self.load.is_some() {
            policy.controller = Some(Box::new(LoadController { five_minutes: self.load, fifteen_minutes: None }));
            policy.correction_interval = Duration::from_secs(60);
        }
        policy
    }

    /// Truncates a file by some bytes. `file` is the end of its path.
    fn tear(&mut self, file: &str, bytes: usize) -> Vec<String> {
        let (_, content) = self.disk.files.iter_mut().find(|(path, _)| path.ends_with(file)).unwrap();
        content.truncate(content.len() - bytes);
        Vec::new()
    }

    fn files(&self) -> Vec<String> {
        let files = self.disk.files.iter().map(|(path, bytes)| format!("{path} ({} bytes)", bytes.len()));
        let links = self.disk.links.iter().map(|(path, target)| format!("{path} -> {target}"));
        files.chain(links).map(|line| self.rename(&line)).collect()
    }

    /// Lets time pass, waking the agent whenever it asks for it.
    fn after(&mut self, duration: Duration) -> Vec<String> {
        let end = self.now + duration;
        let mut lines = Vec::new();
        while let Some(wake) = self.agent.as_ref().and_then(Agent::next_wake).filter(|wake| *wake <= end) {
            self.now = wake.max(self.now);
            lines.extend(self.feed(vec![Input::Wake]));
        }
        self.now = end;
        lines
    }

    fn feed(&mut self, inputs: Vec<Input>) -> Vec<String> {
        let mut out = Outbox::default();
        let agent = self.agent.as_mut().expect("the agent runs");
        for input in inputs {
            agent.handle(input, self.now, &mut out);
        }
        agent.end_batch(self.now, &mut out);
        self.carry_out(out)
    }

    fn carry_out(&mut self, out: Outbox) -> Vec<String> {
        let mut lines = Vec::new();
        for entry in &out.persist {
            self.disk.apply(entry);
            if !self.quiet {
                lines.push(self.show_persist(entry));
            }
        }
        for output in &out.at_once {
            self.note(output);
            lines.push(format!("at once: {}", self.show_output(output)));
        }
        for output in &out.outputs {
            self.note(output);
            lines.push(self.show_output(output));
        }
        lines.into_iter().map(|line| self.rename(&line)).collect()
    }

    fn note(&mut self, output: &Output) {
        match output {
            Output::RecordTermination { container, termination } => {
                if let Some(nested) = self.nested.get_mut(container) {
                    nested.termination = Some(pb::slave::ContainerTermination::clone(termination));
                }
            }
            Output::Forget { container } => {
                self.nested.retain(|name, _| name != container && !name.is_inside(container))
            }
            Output::Launch { container, spec } => {
                self.containers.push(container.clone());
                if spec.latest.is_none() {
                    let is_session = spec.session.is_some();
                    self.nested.insert(container.clone(), RecoveredNested { is_session, ..RecoveredNested::default() });
                }
                let snapshot = self.agent.as_mut().unwrap().snapshot();
                for executor in snapshot.frameworks.values().flat_map(|framework| framework.executors.values()) {
                    let name = format!("{}/{}", executor.framework_id, executor.id);
                    self.executors.insert(name, executor.container.clone());
                }
            }
            Output::Send { message, .. } => match &**message {
                Outgoing::StatusUpdate(message) => {
                    let update = message.update.clone();
                    self.sent.insert(update.status.task_id.value.to_string(), update);
                }
                Outgoing::UpdateOperationStatus(message) => self.operation = Some(message.status.clone()),
                _ => {}
            },
            _ => {}
        }
    }

    /// Replaces the random names of containers by c1, c2 and so on.
    fn rename(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (index, container) in self.containers.iter().enumerate().filter(|(_, c)| c.parent().is_none()) {
            line = line.replace(container.as_str(), &format!("c{}", index + 1));
        }
        line
    }

    pub(crate) fn container(&self, name: &str) -> ContainerName {
        match self.executors.get(name) {
            Some(container) => container.clone(),
            None => match name.rsplit_once('.') {
                Some((around, child)) => self.container(around).child(&base::ContainerId::new(child).unwrap()),
                None => ContainerName::top(&base::ContainerId::new(name).expect("a container")),
            },
        }
    }

    fn show_persist(&self, entry: &Persist) -> String {
        match entry {
            Persist::Replace { path, .. } => format!("disk: replace {path}"),
            Persist::Append { path, .. } => format!("disk: append {path}"),
            Persist::Directory { path } => format!("disk: directory {path}"),
            Persist::Link { path, target } => format!("disk: link {path} -> {target}"),
            Persist::Remove { path } => format!("disk: remove {path}"),
        }
    }
}
