//! Handles calls about nested containers, sessions and standalone containers, which the default executor and operators
//! send (docs/mesos/agent-api.md).
//!
//! This file waits for, kills, removes and reports containers; `nested_launch.rs` launches them. Their tasks belong to
//! the executor.

use base::Time;
use cores::{ErrorKind, RequestId};
use protos::mesos::{self as pb, agent as api};

use crate::agent::{Agent, AgentState};
use crate::disk::RecoveredNested;
use crate::environment::references;
use crate::nested_call::{launch_request, rights, target};
use crate::output::{Answer, Done, Outbox, Output};
use crate::state::{ContainerName, ExecutorState, Nested, Wait};

/// Maximum number of requests that wait for one container.
const MAX_WAITING: usize = 100;

impl Agent {
    /// Handles an operator call about containers.
    #[allow(deprecated)]
    pub(crate) fn operator_call(&mut self, request: RequestId, call: api::Call, out: &mut Outbox) {
        use api::call::Type;
        if self.state == AgentState::Recovering {
            return self.reject(request, ErrorKind::Unavailable, "Agent has not finished recovery", out);
        }
        match call.r#type() {
            Type::LaunchContainer | Type::LaunchNestedContainer | Type::LaunchNestedContainerSession => {
                match launch_request(call) {
                    Some(launch_request) => self.launch_nested(request, launch_request, out),
                    None => self.reject(request, ErrorKind::Invalid, "The call has no body", out),
                }
            }
            kind => {
                let target = target(&call);
                let Some(Ok(container)) = target.as_ref().map(|(id, _)| ContainerName::from_proto(id)) else {
                    return self.reject(request, ErrorKind::Invalid, "Invalid container id", out);
                };
                let signal = target.and_then(|(_, signal)| signal);
                match kind {
                    Type::WaitContainer => self.wait_nested(request, &container, Wait::Container, out),
                    Type::WaitNestedContainer => self.wait_nested(request, &container, Wait::NestedContainer, out),
                    Type::KillContainer | Type::KillNestedContainer => {
                        self.kill_nested(request, &container, signal.unwrap_or(9), out);
                    }
                    Type::RemoveContainer | Type::RemoveNestedContainer => self.remove_nested(request, &container, out),
                    _ => self.reject(request, ErrorKind::Unimplemented, "This call is not supported", out),
                }
            }
        }
    }

    fn wait_nested(&mut self, request: RequestId, container: &ContainerName, wait: Wait, out: &mut Outbox) {
        let Some(nested) = self.nested.get_mut(container) else {
            return self.reject(request, ErrorKind::NotFound, &format!("Container {container} cannot be found"), out);
        };
        if nested.ended.is_some() {
            let answer = ended(nested, wait);
            return self.respond(request, answer, out);
        }
        if nested.waiting.len() >= MAX_WAITING {
            return self.reject(
                request,
                ErrorKind::Unavailable,
                &format!("{MAX_WAITING} requests wait for container {container}"),
                out,
            );
        }
        nested.waiting.push((request, wait));
    }

    fn kill_nested(&mut self, request: RequestId, container: &ContainerName, signal: i32, out: &mut Outbox) {
        let runs = match self.nested.get(container) {
            Some(nested) => nested.ended.is_none(),
            None => self.frameworks.has_container(container),
        };
        if !runs {
            let text = format!("Container '{container}' cannot be found (or is already killed)");
            return self.reject(request, ErrorKind::NotFound, &text, out);
        }
        out.outputs.push(Output::Signal { container: container.clone(), signal });
        self.respond(request, Ok(Done::Complete), out);
    }

    fn remove_nested(&mut self, request: RequestId, container: &ContainerName, out: &mut Outbox) {
        if self.frameworks.has_container(container) {
            return self.reject(request, ErrorKind::Invalid, "Expecting 'container_id.parent' to be present", out);
        }
        let root = container.root();
        if root != *container && !self.frameworks.has_container(&root) && !self.nested.contains_key(&root) {
            return self.reject(request, ErrorKind::Failed, "Unknown root container", out);
        }
        let inside = |name: &ContainerName| name == container || name.is_inside(container);
        if self.nested.iter().any(|(name, nested)| inside(name) && nested.ended.is_none()) {
            return self.reject(request, ErrorKind::Failed, "Nested container has not terminated yet", out);
        }
        match self.nested.get(container).filter(|nested| !nested.session) {
            Some(nested) => out.outputs.push(Output::DeleteSandbox { path: nested.sandbox.clone(), request }),
            None => self.respond(request, Ok(Done::Complete), out),
        }
        self.nested.retain(|name, _| !inside(name));
        out.outputs.push(Output::Forget { container: container.clone() });
    }

    /// Handles the start of a nested container: answers its launch. Returns `false` if the container is not nested.
    pub(crate) fn nested_started(&mut self, container: &ContainerName, out: &mut Outbox) -> bool {
        let Some(nested) = self.nested.get_mut(container) else { return false };
        if let Some(request) = nested.launching.take() {
            self.respond(request, Ok(Done::Complete), out);
        }
        true
    }

    /// Handles a failed start of a nested container: its launch fails, and the container is removed. Returns `false` if
    /// the container is not nested.
    pub(crate) fn nested_start_failed(&mut self, container: &ContainerName, why: &str, out: &mut Outbox) -> bool {
        let Some(nested) = self.nested.remove(container) else { return false };
        if let Some(request) = nested.launching {
            self.reject(request, ErrorKind::Invalid, why, out);
        }
        for (request, _) in nested.waiting {
            self.reject(request, ErrorKind::NotFound, &format!("Container {container} cannot be found"), out);
        }
        true
    }

    /// Records that a nested container is destroyed because it exceeded a limit. Returns `false` if the container is
    /// not nested.
    pub(crate) fn nested_limited(
        &mut self,
        container: &ContainerName,
        reason: pb::task_status::Reason,
        message: &str,
        resources: &[pb::Resource],
    ) -> bool {
        let Some(nested) = self.nested.get_mut(container) else { return false };
        nested.limited = Some((reason, message.to_owned(), resources.to_vec()));
        true
    }

    /// Handles the end of a nested container: answers the requests that wait for it. Returns `false` if the container
    /// is not nested.
    pub(crate) fn nested_exited(&mut self, container: &ContainerName, status: Option<i32>, out: &mut Outbox) -> bool {
        let Some(nested) = self.nested.get_mut(container) else { return false };
        nested.ended = Some(status);
        // A restarted agent does not recover standalone containers that have ended.
        if container.parent().is_some() {
            let termination = Box::new(termination(nested));
            out.outputs.push(Output::RecordTermination { container: container.clone(), termination });
        }
        let waiting = std::mem::take(&mut nested.waiting);
        let answers: Vec<_> = waiting.into_iter().map(|(request, wait)| (request, ended(nested, wait))).collect();
        let launching = nested.launching.take();
        // Containers inside a standalone one end with it.
        let inside = container.parent().is_none();
        for (request, answer) in launching.map(|request| (request, Ok(Done::Complete))).into_iter().chain(answers) {
            self.respond(request, answer, out);
        }
        if inside {
            self.forget_nested(container, out);
        }
        true
    }

    /// Removes the containers inside a container that has ended; destroys those that still run.
    pub(crate) fn forget_nested(&mut self, root: &ContainerName, out: &mut Outbox) {
        let inside: Vec<_> = self.nested.keys().filter(|name| name.is_inside(root)).cloned().collect();
        for container in inside {
            if self.nested.get(&container).is_some_and(|nested| nested.ended.is_none()) {
                out.outputs.push(Output::Destroy { container: container.clone() });
                self.nested_exited(&container, None, out);
            }
            self.nested.remove(&container);
        }
    }

    /// Recovers the containers inside recovered executors and the standalone ones, and destroys those without an
    /// executor. Outer containers come first in `recovered`.
    pub(crate) fn recover_nested(
        &mut self,
        recovered: Vec<(ContainerName, RecoveredNested)>,
        now: Time,
        out: &mut Outbox,
    ) {
        for (container, found) in recovered {
            let root = container.root();
            let is_known = self.frameworks.has_container(&root);
            // An executor is recovered from its checkpoint, even if the record of its container cannot be read.
            if is_known && (found.is_executor || container == root) {
                continue;
            }
            let owner = self.frameworks.executor_in(&root);
            let owner = owner.filter(|executor| executor.state != ExecutorState::Terminated);
            let base = match owner {
                Some(executor) => Some(executor.directory.to_string()),
                // A standalone container precedes the containers inside it.
                None if !found.is_executor && (root == container || self.nested.contains_key(&root)) => {
                    Some(format!("{}/containers/{root}", self.config.work_dir))
                }
                None => None,
            };
            if found.termination.is_none() {
                let (pid, recorded) = (found.pid, found.recorded);
                out.outputs.push(Output::Reattach { container: container.clone(), pid, recorded, sandbox: None });
                if base.is_none() || found.is_session {
                    out.outputs.push(Output::Destroy { container: container.clone() });
                }
            }
            let Some(base) = base else { continue };
            let parts = container.as_str().split('.').skip(1);
            let sandbox = match found.is_session {
                true => String::new(),
                false => parts.fold(base, |path, id| format!("{path}/containers/{id}")),
            };
            if found.termination.is_some() {
                self.discard_sandbox(&sandbox, now);
            }
            self.nested.insert(container, recover(found, sandbox));
        }
    }
}

/// Returns the state of a container that the previous agent process started.
fn recover(found: RecoveredNested, sandbox: String) -> Nested {
    let variables = found.command.iter().filter_map(|command| command.environment.as_ref());
    let variables = variables.flat_map(|environment| &environment.variables);
    let plain = variables.filter_map(|variable| Some((variable.name.clone(), variable.value.clone()?)));
    let ended = found.termination.as_ref().map(|termination| termination.status);
    let limited = found.termination.and_then(|termination| {
        let reason = termination.reason.is_some().then(|| termination.reason());
        Some((reason?, termination.message.unwrap_or_default(), termination.limited_resources))
    });
    Nested {
        environment: plain.collect(),
        secrets: references(found.command.as_ref()),
        rights: found.description.as_ref().and_then(rights),
        session: found.is_session,
        sandbox,
        ended,
        limited,
        ..Nested::default()
    }
}

/// Returns the record of how a container has ended, for the next agent process.
fn termination(nested: &Nested) -> pb::slave::ContainerTermination {
    let status = nested.ended.flatten();
    match nested.limited.clone() {
        Some((reason, message, limited_resources)) => pb::slave::ContainerTermination {
            status,
            state: Some(pb::TaskState::TaskFailed as i32),
            reason: Some(reason as i32),
            message: Some(message),
            limited_resources,
        },
        None => pb::slave::ContainerTermination { status, ..pb::slave::ContainerTermination::default() },
    }
}

/// Returns the response to a wait for a container that has ended.
#[allow(deprecated)]
fn ended(nested: &Nested, wait: Wait) -> Answer {
    let exit_status = nested.ended.flatten();
    let (reason, message, limitation) = match &nested.limited {
        Some((reason, message, resources)) => {
            let limitation = pb::TaskResourceLimitation { resources: resources.clone() };
            (Some(*reason as i32), Some(message.clone()), Some(limitation))
        }
        None => (None, None, None),
    };
    let state = nested.limited.as_ref().map(|_| pb::TaskState::TaskFailed as i32);
    let response = match wait {
        Wait::Container => api::Response {
            r#type: Some(api::response::Type::WaitContainer as i32),
            wait_container: Some(api::response::WaitContainer { exit_status, state, reason, limitation, message }),
            ..api::Response::default()
        },
        Wait::NestedContainer => api::Response {
            r#type: Some(api::response::Type::WaitNestedContainer as i32),
            wait_nested_container: Some(api::response::WaitNestedContainer {
                exit_status,
                state,
                reason,
                limitation,
                message,
            }),
            ..api::Response::default()
        },
    };
    Ok(Done::Response(Box::new(response)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_agent_reports_a_recorded_end() {
        let reason = pb::task_status::Reason::ContainerLimitationMemory;
        let memory = pb::Resource { name: "mem".into(), ..pb::Resource::default() };
        for limited in [None, Some((reason, "too much".to_owned(), vec![memory]))] {
            let nested = Nested { ended: Some(Some(9)), limited, ..Nested::default() };
            let found = RecoveredNested { termination: Some(termination(&nested)), ..RecoveredNested::default() };
            let again = recover(found, "/s".to_owned());
            assert_eq!((again.ended, &again.limited, again.sandbox.as_str()), (nested.ended, &nested.limited, "/s"));
        }
    }

    #[test]
    fn what_a_session_inside_has_is_known_again() {
        let variable = |name: &str, value: Option<&str>| {
            let secret = pb::Secret { r#type: Some(pb::secret::Type::Reference as i32), ..pb::Secret::default() };
            let kind = if value.is_some() { "VALUE" } else { "SECRET" };
            pb::environment::Variable {
                name: name.to_owned(),
                r#type: pb::environment::variable::Type::from_str_name(kind).map(|kind| kind as i32),
                value: value.map(str::to_owned),
                secret: value.is_none().then_some(secret),
            }
        };
        let environment = pb::Environment { variables: vec![variable("A", Some("b")), variable("S", None)] };
        let command = Some(pb::CommandInfo { environment: Some(environment), ..pb::CommandInfo::default() });
        let linux_info = Some(pb::LinuxInfo { share_pid_namespace: Some(true), ..pb::LinuxInfo::default() });
        let description = Some(pb::ContainerInfo { linux_info, ..pb::ContainerInfo::default() });
        let nested = recover(RecoveredNested { command, description, ..RecoveredNested::default() }, String::new());
        assert_eq!(nested.environment, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(nested.secrets.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["S"]);
        assert_eq!(nested.rights, Some(pb::LinuxInfo::default()));
    }
}
