//! App definitions: Marathon's JSON, and the service that it describes.
//!
//! A definition becomes a job file and is checked as one, so that both ways to describe a service have the same rules.
//! What Marathon supports and this framework does not is refused by name, never ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::problem::Problem;
use crate::constraint::Operator;
use crate::job::{self, Job, Network, Probe, Run, Syntax};
use container::{Docker, PortMapping};

/// Label that keeps the fields of a definition that have no effect here; Marathon's clients do not see the label.
const KEPT: &str = "TEPUI_MARATHON";
/// Environment variable with the id of a task's app, as under Marathon.
const APP_ID: &str = "MARATHON_APP_ID";
/// Fields of Marathon's answers that cannot be set.
const READ_ONLY: &[&str] = &[
    "deployments",
    "lastTaskFailure",
    "readinessCheckResults",
    "taskStats",
    "tasks",
    "tasksHealthy",
    "tasksRunning",
    "tasksStaged",
    "tasksUnhealthy",
    "version",
    "versionInfo",
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct App {
    id: String,
    cmd: Option<String>,
    args: Option<Vec<String>>,
    user: Option<String>,
    env: BTreeMap<String, Value>,
    pub(super) instances: u32,
    cpus: f64,
    mem: f64,
    disk: f64,
    gpus: u32,
    executor: String,
    constraints: Vec<Vec<String>>,
    uris: Vec<String>,
    fetch: Vec<Fetch>,
    store_urls: Vec<String>,
    ports: Vec<u16>,
    port_definitions: Vec<PortDefinition>,
    require_ports: bool,
    backoff_seconds: f64,
    backoff_factor: f64,
    max_launch_delay_seconds: f64,
    container: Option<Container>,
    health_checks: Vec<HealthCheck>,
    readiness_checks: Vec<Value>,
    dependencies: Vec<String>,
    upgrade_strategy: UpgradeStrategy,
    labels: BTreeMap<String, String>,
    kill_selection: String,
    task_kill_grace_period_seconds: Option<f64>,
    accepted_resource_roles: Vec<String>,
    role: Option<String>,
    unreachable_strategy: Value,
    networks: Vec<Value>,
    secrets: Map<String, Value>,
    residency: Option<Value>,
    ip_address: Option<Value>,
    task_rate_limit: Option<f64>,
}

/// Returns Marathon's own defaults.
impl Default for App {
    fn default() -> App {
        App {
            id: String::new(),
            cmd: None,
            args: None,
            user: None,
            env: BTreeMap::new(),
            instances: 1,
            cpus: 1.0,
            mem: 128.0,
            disk: 0.0,
            gpus: 0,
            executor: String::new(),
            constraints: Vec::new(),
            uris: Vec::new(),
            fetch: Vec::new(),
            store_urls: Vec::new(),
            ports: Vec::new(),
            port_definitions: vec![PortDefinition::default()],
            require_ports: false,
            backoff_seconds: 1.0,
            backoff_factor: 1.15,
            max_launch_delay_seconds: 300.0,
            container: None,
            health_checks: Vec::new(),
            readiness_checks: Vec::new(),
            dependencies: Vec::new(),
            upgrade_strategy: UpgradeStrategy::default(),
            labels: BTreeMap::new(),
            kill_selection: "YOUNGEST_FIRST".to_owned(),
            task_kill_grace_period_seconds: None,
            accepted_resource_roles: Vec::new(),
            role: None,
            unreachable_strategy: Value::Null,
            networks: Vec::new(),
            secrets: Map::new(),
            residency: None,
            ip_address: None,
            task_rate_limit: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Fetch {
    uri: String,
    #[serde(default = "yes")]
    extract: bool,
    #[serde(default)]
    executable: bool,
    #[serde(default)]
    cache: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dest_path: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct PortDefinition {
    port: u16,
    protocol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    labels: BTreeMap<String, String>,
}

impl Default for PortDefinition {
    fn default() -> PortDefinition {
        PortDefinition { port: 0, protocol: "tcp".to_owned(), name: None, labels: BTreeMap::new() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Container {
    r#type: String,
    docker: Option<Docker>,
    volumes: Vec<Value>,
    port_mappings: Vec<PortMapping>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct HealthCheck {
    protocol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Command>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    port_index: u32,
    grace_period_seconds: f64,
    interval_seconds: f64,
    timeout_seconds: f64,
    max_consecutive_failures: u32,
    #[serde(rename = "ignoreHttp1xx")]
    ignore_http1xx: bool,
}

impl Default for HealthCheck {
    fn default() -> HealthCheck {
        HealthCheck {
            protocol: "HTTP".to_owned(),
            command: None,
            path: None,
            port_index: 0,
            grace_period_seconds: 300.0,
            interval_seconds: 60.0,
            timeout_seconds: 20.0,
            max_consecutive_failures: 3,
            ignore_http1xx: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct UpgradeStrategy {
    minimum_health_capacity: f64,
    maximum_over_capacity: f64,
}

impl Default for UpgradeStrategy {
    fn default() -> UpgradeStrategy {
        UpgradeStrategy { minimum_health_capacity: 1.0, maximum_over_capacity: 1.0 }
    }
}

impl App {
    /// Parses the definition of a new app.
    ///
    /// # Errors
    /// A field has the wrong type, or is unknown.
    pub(super) fn new(given: &Value) -> Result<App, Problem> {
        App::default().with(given)
    }

    /// Replaces the given fields of the definition.
    ///
    /// # Errors
    /// As [`App::new`].
    pub(super) fn with(self, given: &Value) -> Result<App, Problem> {
        let Value::Object(given) = given else { return Err(Problem::malformed("an app is a JSON object")) };
        let mut fields = match serde_json::to_value(&self) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let is_given = |name: &str| given.get(name).is_some_and(|value| !value.is_null());
        for (name, value) in given {
            if is_given(name) && !READ_ONLY.contains(&name.as_str()) {
                fields.insert(name.clone(), value.clone());
            }
        }
        // Ports and files have two descriptions each. A client that reads an app and sends it back sends both: then the
        // newer one, which contains more, counts.
        for (old, new) in [("ports", "portDefinitions"), ("uris", "fetch")] {
            if is_given(new) {
                fields.remove(old);
            } else if is_given(old) {
                fields.insert(new.to_owned(), json!([]));
            }
        }
        for one_of in [["cmd", "args"], ["args", "cmd"]] {
            if given.get(one_of[0]).is_some_and(|v| !v.is_null()) {
                fields.remove(one_of[1]);
            }
        }
        let app: App = serde_json::from_value(Value::Object(fields)).map_err(|error| Problem::unreadable(&error))?;
        Ok(app.with_any_ports())
    }

    /// Sets ports to 0 (any port) that have the number which was only shown for an app without a port: the client did
    /// not choose it.
    fn with_any_ports(mut self) -> App {
        let free = (0..).map(|place| free_port(&self.id, place));
        for (definition, free) in self.port_definitions.iter_mut().zip(free.clone()) {
            definition.port = if definition.port == free { 0 } else { definition.port };
        }
        for (port, free) in self.ports.iter_mut().zip(free) {
            *port = if *port == free { 0 } else { *port };
        }
        self
    }

    /// Converts the definition to a service.
    ///
    /// # Errors
    /// Returns all faults of the definition.
    pub(super) fn job(&self, name: &str) -> Result<Job, Problem> {
        self.check_supported()?;
        let file = self.file(name);
        let jobs = job::read(name, &file.to_string(), Syntax::Json).map_err(|faults| {
            Problem::invalid(faults.0.into_iter().map(|fault| ("/".to_owned(), fault.rule)).collect())
        })?;
        jobs.into_iter().next().ok_or_else(|| Problem::malformed("there is no app"))
    }

    /// Converts the definition to a job file.
    fn file(&self, name: &str) -> Value {
        let ports = self.definitions();
        let mut file = json!({
            "name": name,
            "kind": "service",
            "count": self.instances,
            "cpus": self.cpus,
            "mem": self.mem,
            "disk": self.disk,
            "gpus": self.gpus,
            "ports": ports.len(),
            "env": self.variables(name),
            "labels": self.kept_labels(&ports),
            "constraints": self.constraints,
            "uris": self.files(),
            "restart": {
                "first": self.backoff_seconds,
                "factor": self.backoff_factor,
                "longest": self.max_launch_delay_seconds,
            },
            "update": {
                "min_healthy": self.upgrade_strategy.minimum_health_capacity,
                "max_over": self.upgrade_strategy.maximum_over_capacity,
            },
        });
        let mut set = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                file[field] = value;
            }
        };
        set("command", self.cmd.as_ref().map(|cmd| json!(cmd)));
        set("program", self.args.as_ref().filter(|_| self.cmd.is_none()).map(|args| json!(args)));
        set("user", self.user.as_ref().map(|user| json!(user)));
        container::describe(self, &mut set);
        set("health", self.health_checks.first().map(HealthCheck::file));
        set("kill_grace", self.task_kill_grace_period_seconds.map(|seconds| json!(seconds)));
        file
    }

    /// Returns the ports, from any of their descriptions.
    fn definitions(&self) -> Vec<PortDefinition> {
        let mapped = self.mappings();
        if !mapped.is_empty() {
            return mapped.iter().map(PortMapping::definition).collect();
        }
        if self.ports.is_empty() {
            return self.port_definitions.clone();
        }
        self.ports.iter().map(|port| PortDefinition { port: *port, ..PortDefinition::default() }).collect()
    }

    fn variables(&self, name: &str) -> BTreeMap<String, Value> {
        let text = |value: &Value| match value {
            Value::Number(number) => json!(number.to_string()),
            Value::Bool(flag) => json!(flag.to_string()),
            other => other.clone(),
        };
        let mut env: BTreeMap<String, Value> = self.env.iter().map(|(k, v)| (k.clone(), text(v))).collect();
        env.insert(APP_ID.to_owned(), json!(super::id::app(name).unwrap_or_default()));
        env
    }

    fn kept_labels(&self, ports: &[PortDefinition]) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        if ports.iter().any(|p| *p != PortDefinition::default()) {
            labels.insert(KEPT.to_owned(), serde_json::to_string(ports).unwrap_or_default());
        }
        labels
    }

    fn files(&self) -> Vec<Value> {
        let fetch = self.fetch.iter().map(|f| {
            let mut uri = json!({"value": f.uri, "extract": f.extract, "executable": f.executable, "cache": f.cache});
            if let Some(path) = &f.dest_path {
                uri["output"] = json!(path);
            }
            uri
        });
        self.uris.iter().map(|uri| json!(uri)).chain(fetch).collect()
    }

    /// Converts a service to Marathon's definition.
    pub(super) fn of(job: &Job) -> App {
        let (cmd, args) = match &job.run {
            Run::Command(command) => (Some(command.clone()), None),
            Run::Program(words) => (None, Some(words.clone())),
            Run::Image => (None, None),
        };
        let kept = job.labels.get(KEPT).and_then(|text| serde_json::from_str::<Vec<PortDefinition>>(text).ok());
        let default_ports = || vec![PortDefinition::default(); job.need.ports()];
        let definitions = kept.filter(|k| k.len() == job.need.ports()).unwrap_or_else(default_ports);
        let whole = |place: usize| job.need.amount(place).to_f64();
        App {
            id: super::id::app(&job.name).unwrap_or_default(),
            cmd,
            args,
            user: job.user.clone(),
            env: job.env.iter().filter(|(k, _)| *k != APP_ID).map(|(k, v)| (k.clone(), json!(v))).collect(),
            instances: job.count,
            cpus: whole(0),
            mem: whole(1),
            disk: whole(2),
            gpus: whole(3) as u32,
            constraints: job.constraints.iter().map(|c| constraint(&c.field, &c.operator)).collect(),
            fetch: job.uris.iter().map(fetch).collect(),
            backoff_seconds: job.restart.first.as_secs_f64(),
            backoff_factor: job.restart.factor,
            max_launch_delay_seconds: job.restart.longest.as_secs_f64(),
            networks: container::networks(&job.container),
            container: container::of(job, &definitions),
            port_definitions: if job.container.network == Network::Host { definitions } else { Vec::new() },
            health_checks: job.health.iter().map(HealthCheck::of).collect(),
            upgrade_strategy: UpgradeStrategy {
                minimum_health_capacity: job.update.min_healthy,
                maximum_over_capacity: job.update.max_over,
            },
            labels: job.labels.iter().filter(|(k, _)| *k != KEPT).map(|(k, v)| (k.clone(), v.clone())).collect(),
            task_kill_grace_period_seconds: job.kill_grace.map(|grace| grace.as_secs_f64()),
            ..App::default()
        }
    }

    /// Returns the definition as Marathon shows it.
    pub(super) fn shown(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else { return Map::new() };
        fields.retain(|_, value| !value.is_null());
        let named: Vec<Value> = self.fetch.iter().map(|f| json!(f.uri)).collect();
        fields.insert("uris".to_owned(), named.into());
        let ports = self.service_ports();
        if let Some(Value::Array(definitions)) = fields.get_mut("portDefinitions") {
            for (definition, port) in definitions.iter_mut().zip(&ports) {
                definition["port"] = json!(port);
            }
        }
        fields.insert("ports".to_owned(), json!(ports));
        fields
    }

    /// Returns the ports at which a load balancer serves the app: the requested ones, or some that are computed from
    /// the app's id.
    pub(super) fn service_ports(&self) -> Vec<u16> {
        let port = |(place, given): (u32, &PortDefinition)| match given.port {
            0 => free_port(&self.id, place),
            port => port,
        };
        (0..).zip(&self.definitions()).map(port).collect()
    }
}

/// Returns the service port of an app without a port. It is the same after every restart (FNV-1a of the app's id;
/// Fowler, Noll, Vo).
fn free_port(app: &str, place: u32) -> u16 {
    let id = app.trim_matches('/').bytes();
    let hash = id.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    10_000 + (hash.wrapping_add(place) % 10_000) as u16
}

fn constraint(field: &str, operator: &Operator) -> Vec<String> {
    let (name, value) = match operator {
        Operator::Equal(value) => ("IS", Some(value.clone())),
        Operator::Like(value) => ("LIKE", Some(value.clone())),
        Operator::Unlike(value) => ("UNLIKE", Some(value.clone())),
        Operator::Unique => ("UNIQUE", None),
        Operator::Cluster => ("CLUSTER", None),
        Operator::GroupBy(number) => ("GROUP_BY", number.map(|n| n.to_string())),
        Operator::MaxPer(number) => ("MAX_PER", Some(number.to_string())),
    };
    [field.to_owned(), name.to_owned()].into_iter().chain(value).collect()
}

fn fetch(uri: &job::Uri) -> Fetch {
    Fetch {
        uri: uri.value.clone(),
        extract: uri.extract,
        executable: uri.executable,
        cache: uri.cache,
        dest_path: uri.output.clone(),
    }
}

impl HealthCheck {
    /// Converts the check to the form of a job file, whose reader refuses unknown protocols.
    fn file(&self) -> Value {
        let mut check = json!({
            "grace": self.grace_period_seconds,
            "interval": self.interval_seconds,
            "timeout": self.timeout_seconds,
            "failures": self.max_consecutive_failures.max(1),
        });
        match self.protocol.as_str() {
            "COMMAND" => check["command"] = json!(self.command.as_ref().map(|c| c.value.as_str()).unwrap_or_default()),
            "TCP" | "MESOS_TCP" => {
                check["tcp"] = json!(true);
                check["port"] = json!(self.port_index);
            }
            "HTTP" | "MESOS_HTTP" => {
                check["http"] = json!(self.path.as_deref().unwrap_or("/"));
                check["port"] = json!(self.port_index);
            }
            other => check[format!("protocol {other}")] = json!(true),
        }
        check
    }

    fn of(health: &job::Health) -> HealthCheck {
        let (protocol, command, path, port) = match &health.probe {
            Probe::Command(command) => ("COMMAND", Some(Command { value: command.clone() }), None, 0),
            Probe::Http { path, port } => ("MESOS_HTTP", None, Some(path.clone()), *port),
            Probe::Tcp { port } => ("MESOS_TCP", None, None, *port),
        };
        HealthCheck {
            protocol: protocol.to_owned(),
            command,
            path,
            port_index: port,
            grace_period_seconds: health.grace.as_secs_f64(),
            interval_seconds: health.interval.as_secs_f64(),
            timeout_seconds: health.timeout.as_secs_f64(),
            max_consecutive_failures: health.failures,
            ignore_http1xx: false,
        }
    }
}

mod container;
mod supported;
#[cfg(test)]
mod tests;
