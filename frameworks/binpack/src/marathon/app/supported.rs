//! Rejects, by name, parts of Marathon's definitions that this framework does not support, unless their value is the
//! default.

use serde_json::{Value, json};

use super::super::problem::Problem;
use super::{App, KEPT};

/// Protocols of a port. A port number of an agent belongs to the task for both protocols.
const PROTOCOLS: &[&str] = &["tcp", "udp", "tcp,udp", "udp,tcp"];

/// Whether an app uses an unsupported feature, the path of the feature in the app, and the reason.
type Check = (bool, &'static str, &'static str);

impl App {
    /// Refuses definitions with unsupported parts.
    pub(super) fn check_supported(&self) -> Result<(), Problem> {
        let checks = self.container_checks().into_iter().chain(self.task_checks()).chain(self.strategy_checks());
        let found: Vec<(String, String)> =
            checks.filter(|c| c.0).map(|(_, path, why)| (path.to_owned(), why.to_owned())).collect();
        if found.is_empty() { Ok(()) } else { Err(Problem::invalid(found)) }
    }

    fn container_checks(&self) -> Vec<Check> {
        let Some(container) = &self.container else { return Vec::new() };
        let docker = container.docker.clone().unwrap_or_default();
        let known = ["", "MESOS", "DOCKER"].contains(&container.r#type.as_str());
        let is_docker = container.r#type == "DOCKER";
        let plain = docker.parameters.is_empty() && !docker.privileged && !docker.force_pull_image;
        let is_mapped = !self.mappings().is_empty();
        let is_host = self.network().is_none_or(|network| network == "host");
        vec![
            (!known, "/container/type", "an image runs as MESOS or DOCKER"),
            (!container.volumes.is_empty(), "/container/volumes", "containers have no volumes here"),
            (
                is_mapped && is_host,
                "/container/portMappings",
                "ports are mapped in a network of the container's own: networks has mode container/bridge or container",
            ),
            (
                self.mappings().iter().any(|mapping| mapping.host_port != 0),
                "/container/portMappings/hostPort",
                "the cluster assigns host ports here: use 0",
            ),
            (
                !is_docker && !plain,
                "/container/docker",
                "parameters, privileged and forcePullImage are for the type DOCKER",
            ),
        ]
    }

    fn task_checks(&self) -> Vec<Check> {
        let foreign_role = |role: &String| role != "*";
        let early = self.health_checks.iter().any(|check| check.ignore_http1xx);
        let ports = self.definitions().iter().all(|port| PROTOCOLS.contains(&port.protocol.as_str()));
        vec![
            (!self.store_urls.is_empty(), "/storeUrls", "there is no artifact store here; use fetch"),
            (!self.readiness_checks.is_empty(), "/readinessChecks", "there are no readiness checks here"),
            (self.health_checks.len() > 1, "/healthChecks", "an app has one health check here"),
            (early, "/healthChecks/ignoreHttp1xx", "a response below 200 is not healthy here"),
            (self.require_ports, "/requirePorts", "the cluster assigns host ports here"),
            (
                !ports,
                "/portDefinitions/protocol",
                "a port is for tcp, udp or both; its number is the task's for either",
            ),
            (self.residency.is_some(), "/residency", "apps have no persistent volumes here"),
            (!self.secrets.is_empty(), "/secrets", "secrets are not supported here"),
            (self.ip_address.is_some(), "/ipAddress", "addresses for each task are not known here; use networks"),
            (
                self.network().is_none(),
                "/networks",
                "one network: of mode host, container/bridge, or container with a name; or docker.network HOST or BRIDGE",
            ),
            (!matches!(self.executor.as_str(), "" | "//cmd"), "/executor", "there are no custom executors here"),
            (self.role.as_ref().is_some_and(foreign_role), "/role", "all apps run in this framework's role"),
            (
                self.accepted_resource_roles.iter().any(foreign_role),
                "/acceptedResourceRoles",
                "apps take what is offered to this framework's role, reserved or not",
            ),
            (self.labels.contains_key(KEPT), "/labels", "the label TEPUI_MARATHON is reserved"),
        ]
    }

    fn strategy_checks(&self) -> Vec<Check> {
        let unreachable = !is_default_strategy(&self.unreachable_strategy);
        vec![
            (!self.dependencies.is_empty(), "/dependencies", "an app cannot depend on another here"),
            (unreachable, "/unreachableStrategy", "a task is replaced when its agent was silent for a minute"),
            (
                self.kill_selection != "YOUNGEST_FIRST",
                "/killSelection",
                "surplus tasks are killed in this order: unhealthy ones, then the newest",
            ),
            (self.task_rate_limit.is_some(), "/taskRateLimit", "the pace of launches is the framework's: --pace"),
        ]
    }
}

/// Returns whether this is the strategy of an app that sets none: missing, or the default of Marathon 1.4 or of later
/// versions.
fn is_default_strategy(strategy: &Value) -> bool {
    let of = |inactive: u32, expunge: u32| json!({"inactiveAfterSeconds": inactive, "expungeAfterSeconds": expunge});
    strategy.is_null() || *strategy == of(300, 600) || *strategy == of(0, 0)
}
