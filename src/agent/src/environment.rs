//! Environment variables of executors and nested containers (docs/mesos/libprocess.md).

use std::time::Duration;

use base::format_duration;
use protos::mesos as pb;

use crate::agent::Agent;
use crate::config::Config;
use crate::state::Executor;

/// Value of the variable `PATH` in containers, if nothing else sets it.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Prefixes of the variables by which agents configure their executors. Only the agent sets them for an executor.
const AGENT_PREFIXES: [&str; 3] = ["TEPUI_DOCKER_", "TEPUI_IMAGE_", "TEPUI_SESSION_"];

/// Name of the variable that holds an executor's token. The shell sets it, because the shell has the key.
pub const TOKEN: &str = "MESOS_EXECUTOR_AUTHENTICATION_TOKEN";

/// Returns whether only agents may set a variable of this name for an executor. A task's variable of this name reaches
/// only the task.
pub fn is_agents_own(name: &str) -> bool {
    name == TOKEN || AGENT_PREFIXES.iter().any(|start| name.starts_with(start))
}

/// Environment variables in order; a later value replaces an earlier one of the same name.
#[derive(Default)]
pub(crate) struct Variables(Vec<(String, String)>);

impl Variables {
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value.into(),
            None => self.0.push((name.to_owned(), value.into())),
        }
    }

    pub(crate) fn set_all(&mut self, command: Option<&pb::CommandInfo>) {
        self.set_some(command, |_| true);
    }

    fn set_some(&mut self, command: Option<&pb::CommandInfo>, wanted: impl Fn(&str) -> bool) {
        let environment = command.into_iter().filter_map(|command| command.environment.as_ref());
        let variables = environment.flat_map(|environment| &environment.variables);
        for variable in variables.filter(|variable| wanted(&variable.name)) {
            let secret = variable.secret.as_ref().and_then(|secret| secret.value.as_ref());
            match (variable.r#type(), secret) {
                (pb::environment::variable::Type::Value, _) => self.set(&variable.name, variable.value()),
                // Other secrets are resolved when the container is started.
                (pb::environment::variable::Type::Secret, Some(secret)) => {
                    self.set(&variable.name, String::from_utf8_lossy(&secret.data));
                }
                _ => {}
            }
        }
    }

    pub(crate) fn finish(mut self) -> Vec<(String, String)> {
        if !self.0.iter().any(|(name, _)| name == "PATH") {
            self.0.push(("PATH".to_owned(), PATH.to_owned()));
        }
        self.0
    }
}

/// Returns the variables of a command whose values are secrets to be resolved.
pub(crate) fn references(command: Option<&pb::CommandInfo>) -> Vec<(String, pb::Secret)> {
    let variables = command.and_then(|command| command.environment.as_ref());
    let variables = variables.into_iter().flat_map(|environment| &environment.variables);
    let reference = |variable: &pb::environment::Variable| {
        let is_secret = variable.r#type() == pb::environment::variable::Type::Secret;
        let secret = variable.secret.as_ref().filter(|secret| is_secret && secret.value.is_none())?;
        Some((variable.name.clone(), secret.clone()))
    };
    variables.filter_map(reference).collect()
}

/// Returns the variables of an executor's command whose values are secrets to be resolved, except those of
/// [`is_agents_own`].
pub(crate) fn executor_references(command: Option<&pb::CommandInfo>) -> Vec<(String, pb::Secret)> {
    references(command).into_iter().filter(|(name, _)| !is_agents_own(name)).collect()
}

/// Returns the environment of an executor. Variables of its command come from a framework, or from a task, so those of
/// [`is_agents_own`] are left out.
pub(crate) fn executor_environment(agent: &Agent, executor: &Executor, checkpoint: bool) -> Vec<(String, String)> {
    let (config, texts) = (&agent.config, &agent.texts);
    let flag = |set: bool| if set { "1" } else { "0" };
    let mut variables = Variables(Vec::with_capacity(16));
    if let Some(ip) = &config.libprocess_ip {
        variables.set("LIBPROCESS_IP", ip);
    }
    for (name, value) in &config.executor_environment {
        variables.set(name, value);
    }
    variables.set("LIBPROCESS_PORT", "0");
    if let Some(library) = &config.native_library {
        for name in ["MESOS_NATIVE_JAVA_LIBRARY", "MESOS_NATIVE_LIBRARY"] {
            if !variables.0.iter().any(|(known, _)| known == name) {
                variables.set(name, library);
            }
        }
    }
    variables.set("MESOS_FRAMEWORK_ID", executor.framework_id.as_str());
    variables.set("MESOS_EXECUTOR_ID", executor.id.as_str());
    variables.set("MESOS_DIRECTORY", &*executor.directory);
    variables.set("MESOS_SLAVE_ID", agent.slave_id().value);
    variables.set("MESOS_SLAVE_PID", &texts.pid);
    variables.set("MESOS_AGENT_ENDPOINT", &texts.endpoint);
    variables.set("MESOS_CHECKPOINT", flag(checkpoint));
    variables.set("MESOS_HTTP_COMMAND_EXECUTOR", flag(config.http_command_executor));
    let grace_period = own_grace_period(&executor.info).map(format_duration);
    variables.set("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", grace_period.as_ref().unwrap_or(&texts.grace_period));
    if checkpoint {
        variables.set("MESOS_RECOVERY_TIMEOUT", &texts.recovery_timeout);
        variables.set("MESOS_SUBSCRIPTION_BACKOFF_MAX", &texts.reregistration_timeout);
    }
    variables.set("MESOS_SANDBOX", &*executor.directory);
    variables.set_some(executor.info.command.as_ref(), |name| !is_agents_own(name));
    variables.finish()
}

/// Returns the environment of a nested or standalone container.
pub(crate) fn nested_environment(sandbox: &str, command: &pb::CommandInfo) -> Vec<(String, String)> {
    let mut variables = Variables::default();
    variables.set("MESOS_SANDBOX", sandbox);
    variables.set_all(Some(command));
    variables.finish()
}

/// Returns the grace period of an executor's shutdown.
pub(crate) fn grace_period(config: &Config, info: &pb::ExecutorInfo) -> Duration {
    own_grace_period(info).unwrap_or(config.executor_shutdown_grace_period)
}

fn own_grace_period(info: &pb::ExecutorInfo) -> Option<Duration> {
    let grace = info.shutdown_grace_period.and_then(|grace| u64::try_from(grace.nanoseconds).ok());
    grace.map(Duration::from_nanos)
}

/// Returns the program and argv of a command: a script for the shell, or a program with its whole argv.
pub(crate) fn program_of(command: &pb::CommandInfo) -> (String, Vec<String>) {
    let value = command.value.clone().unwrap_or_default();
    if command.shell() {
        return ("/bin/sh".to_owned(), vec!["sh".to_owned(), "-c".to_owned(), value]);
    }
    let argv = if command.arguments.is_empty() { vec![value.clone()] } else { command.arguments.clone() };
    (value, argv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pb::environment::Variable;
    use pb::environment::variable::Type;

    #[test]
    fn variables_of_executors_are_the_agents() {
        let value = |name: &str| Variable { name: name.into(), value: Some("task".into()), ..Variable::default() };
        let kept = |name: &str| Variable {
            name: name.into(),
            r#type: Some(Type::Secret as i32),
            secret: Some(pb::Secret { reference: Some(pb::secret::Reference::default()), ..pb::Secret::default() }),
            ..Variable::default()
        };
        let variables = vec![
            value("A"),
            value("TEPUI_DOCKER_OUTPUT"),
            value("TEPUI_TOKEN"),
            value(TOKEN),
            value("TEPUI_IMAGE_CMD"),
            kept("PASSWORD"),
            kept("TEPUI_DOCKER_LOGIN"),
        ];
        let environment = Some(pb::Environment { variables });
        let command = pb::CommandInfo { environment, ..pb::CommandInfo::default() };
        let mut variables = Variables::default();
        variables.set("TEPUI_DOCKER_OUTPUT", "agent");
        variables.set_some(Some(&command), |name| !is_agents_own(name));
        let variables: Vec<String> = variables.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(variables, ["TEPUI_DOCKER_OUTPUT=agent", "A=task", "TEPUI_TOKEN=task"]);
        let asked: Vec<String> = executor_references(Some(&command)).into_iter().map(|(name, _)| name).collect();
        assert_eq!(asked, ["PASSWORD"]);
        // A container in a pod is not an executor: it has its task's variables.
        let inside = nested_environment("/s", &command);
        assert!(inside.iter().any(|(name, value)| name == "TEPUI_DOCKER_OUTPUT" && value == "task"));
    }
}
