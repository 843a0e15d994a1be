//! Launches nested containers, sessions, and standalone containers (OPA-17, OPA-22).
//!
//! `nested.rs` handles what follows.

use cores::{CallError, ErrorKind, RequestId};
use protos::mesos as pb;

use crate::agent::Agent;
use crate::environment::{
    Variables, executor_environment, executor_references, nested_environment, program_of, references,
};
use crate::nested_call::{LaunchRequest, rights};
use crate::output::{Done, Outbox, Output};
use crate::state::{
    ContainerName, ContainerSpec, Executor, ExecutorState, Limits, Nested, Prepare, Session, VolumeLink,
};

/// Maximum number of containers inside one executor's container, and of standalone containers. Ended ones that were not
/// removed count too.
const MAX_INSIDE: usize = 1000;

/// Container in which another container is launched.
enum OuterContainer {
    /// An executor's container, or a container inside it.
    Executor(Box<Executor>),
    /// A standalone container, or a container inside it.
    Standalone,
}

impl Agent {
    pub(crate) fn launch_nested(&mut self, request: RequestId, launch_request: LaunchRequest, out: &mut Outbox) {
        let container = match ContainerName::from_proto(&launch_request.id) {
            Ok(container) => container,
            Err(why) => {
                return self.reject(request, ErrorKind::Invalid, &format!("Invalid container id: {why}"), out);
            }
        };
        // Sessions write nothing to the disk, and health checks of running tasks are sessions.
        if let Some(why) =
            self.refusal("Launch").filter(|_| !launch_request.session && !self.nested.contains_key(&container))
        {
            let answer = Err(CallError::new(ErrorKind::Unavailable, why));
            out.at_once.push(Output::Respond { request, answer });
            return;
        }
        match self.nested.get(&container).map(|known| known.ended.is_some()) {
            Some(false) => return self.respond(request, Ok(Done::Accepted), out),
            // The id of a standalone container may be used again.
            Some(true) if container.parent().is_some() => {
                return self.reject(
                    request,
                    ErrorKind::Invalid,
                    &format!("Container {container} has ended already"),
                    out,
                );
            }
            _ => {}
        }
        match self.spec_of(&container, launch_request) {
            Ok((spec, nested)) => {
                out.outputs.push(Output::Launch { container: container.clone(), spec: Box::new(spec) });
                self.nested.insert(container, Nested { launching: Some(request), ..nested });
            }
            Err(why) => self.reject(request, ErrorKind::Invalid, &why, out),
        }
    }

    fn spec_of(
        &self,
        container: &ContainerName,
        launch_request: LaunchRequest,
    ) -> Result<(ContainerSpec, Nested), String> {
        let linux = launch_request.container.as_ref().and_then(|container| container.linux_info.as_ref());
        let shares = linux.is_none_or(|linux| linux.share_cgroups());
        let depth = container.as_str().split('.').count();
        if !shares && (depth > 2 || launch_request.session) {
            return Err("Only containers directly inside a task's may have cgroups of their own".to_owned());
        }
        check_program(&launch_request)?;
        let Some(parent) = container.parent() else {
            if self.frameworks.has_container(container) {
                return Err(format!("Container {container} is an executor's"));
            }
            let known = self.nested.keys().filter(|name| name.parent().is_none() && *name != container).count();
            if known >= MAX_INSIDE {
                return Err(format!(
                    "There are {MAX_INSIDE} standalone containers already; remove those that have ended"
                ));
            }
            return Ok(self.standalone_spec(container, launch_request));
        };
        let root = container.root();
        let outer_container =
            self.outer_container(&root).ok_or_else(|| format!("Root container {root} does not exist"))?;
        let runs = |nested: &Nested| nested.ended.is_none() && !nested.session;
        let executors = parent == root && matches!(outer_container, OuterContainer::Executor(_));
        if !executors && !self.nested.get(&parent).is_some_and(runs) {
            return Err(format!("Parent container {parent} does not exist"));
        }
        if self.nested.keys().filter(|name| name.is_inside(&root)).count() >= MAX_INSIDE {
            return Err(format!("Container {root} has {MAX_INSIDE} containers inside already"));
        }
        let outer = match &outer_container {
            OuterContainer::Executor(executor) => self.sandbox_of(&parent, executor),
            OuterContainer::Standalone => {
                self.nested.get(&parent).map(|nested| nested.sandbox.clone()).unwrap_or_default()
            }
        };
        Ok(match launch_request.session {
            true => self.session_spec(&parent, &outer, &outer_container, launch_request),
            false => self.nested_spec(container, &outer, &outer_container, launch_request),
        })
    }

    fn outer_container(&self, root: &ContainerName) -> Option<OuterContainer> {
        if let Some(executor) = self.frameworks.executor_in(root) {
            let runs = executor.state != ExecutorState::Terminated;
            return runs.then(|| OuterContainer::Executor(Box::new(Executor::clone(executor))));
        }
        self.nested.get(root).filter(|nested| nested.ended.is_none()).map(|_| OuterContainer::Standalone)
    }

    fn sandbox_of(&self, container: &ContainerName, executor: &Executor) -> String {
        match self.nested.get(container) {
            Some(nested) => nested.sandbox.clone(),
            None => executor.directory.to_string(),
        }
    }

    fn user(&self, command: &pb::CommandInfo, outer_container: &OuterContainer) -> Option<String> {
        let own = command.user.clone().filter(|_| self.config.switch_user);
        own.or_else(|| match outer_container {
            OuterContainer::Executor(executor) => executor.user.clone(),
            OuterContainer::Standalone => None,
        })
    }

    fn standalone_spec(&self, container: &ContainerName, launch_request: LaunchRequest) -> (ContainerSpec, Nested) {
        let sandbox = format!("{}/containers/{container}", self.config.work_dir);
        self.plain_spec(sandbox, String::new(), &OuterContainer::Standalone, launch_request)
    }

    fn nested_spec(
        &self,
        container: &ContainerName,
        outer: &str,
        outer_container: &OuterContainer,
        launch_request: LaunchRequest,
    ) -> (ContainerSpec, Nested) {
        let sandbox = format!("{outer}/containers/{}", container.id());
        self.plain_spec(sandbox, outer.to_owned(), outer_container, launch_request)
    }

    fn plain_spec(
        &self,
        sandbox: String,
        outer: String,
        outer_container: &OuterContainer,
        launch_request: LaunchRequest,
    ) -> (ContainerSpec, Nested) {
        let (program, argv) = program_of(&launch_request.command);
        let environment = nested_environment(&sandbox, &launch_request.command);
        let rights = launch_request.container.as_ref().and_then(rights);
        let secrets = references(Some(&launch_request.command));
        let spec = ContainerSpec {
            executor: None,
            is_builtin_executor: false,
            secrets: secrets.clone(),
            sandbox: sandbox.clone(),
            latest: None,
            argv,
            program,
            environment: environment.clone(),
            user: self.user(&launch_request.command, outer_container),
            uris: launch_request.command.uris,
            resources: launch_request.resources,
            limits: Limits::of(&launch_request.limits),
            volumes: sandbox_volumes(launch_request.container.as_ref(), &outer, &sandbox),
            container: launch_request.container.map(without_sandbox_volumes),
            session: None,
        };
        (spec, Nested { sandbox, environment, secrets, rights, ..Nested::default() })
    }

    /// Returns the description of a session. It uses its parent's directory and variables, and its output goes to the
    /// client that launched it.
    fn session_spec(
        &self,
        parent: &ContainerName,
        outer: &str,
        outer_container: &OuterContainer,
        launch_request: LaunchRequest,
    ) -> (ContainerSpec, Nested) {
        let (program, argv) = program_of(&launch_request.command);
        let mut variables = Variables::default();
        for (name, value) in self.environment_of(parent, outer_container) {
            variables.set(&name, value);
        }
        variables.set_all(Some(&launch_request.command));
        let terminal = launch_request.container.as_ref().and_then(|container| container.tty_info.as_ref());
        let size = terminal.map(|info| info.window_size.as_ref().map_or((24, 80), |size| (size.rows, size.columns)));
        // A later variable replaces earlier ones of the same name, as with other variables.
        let mut secrets = self.secrets_of(parent, outer_container);
        let own = launch_request.command.environment.iter().flat_map(|environment| &environment.variables);
        own.for_each(|variable| secrets.retain(|(name, _)| *name != variable.name));
        secrets.extend(references(Some(&launch_request.command)));
        let spec = ContainerSpec {
            executor: None,
            is_builtin_executor: false,
            secrets,
            sandbox: outer.to_owned(),
            latest: None,
            argv,
            program,
            environment: variables.finish(),
            user: self.user(&launch_request.command, outer_container),
            uris: Vec::new(),
            resources: Vec::new(),
            limits: Limits::default(),
            volumes: Vec::new(),
            container: self.rights_of(parent, outer_container),
            session: Some(Session { terminal: size }),
        };
        (spec, Nested { session: true, ..Nested::default() })
    }

    /// Returns the rights of a session, which are those of the container that it is in.
    fn rights_of(&self, container: &ContainerName, outer_container: &OuterContainer) -> Option<pb::ContainerInfo> {
        let linux = match (self.nested.get(container), outer_container) {
            (Some(nested), _) => nested.rights.clone(),
            (None, OuterContainer::Executor(executor)) => executor.info.container.as_ref().and_then(rights),
            (None, OuterContainer::Standalone) => None,
        };
        linux.map(|linux| pb::ContainerInfo {
            r#type: pb::container_info::Type::Mesos as i32,
            linux_info: Some(linux),
            ..pb::ContainerInfo::default()
        })
    }

    fn secrets_of(&self, container: &ContainerName, outer_container: &OuterContainer) -> Vec<(String, pb::Secret)> {
        match (self.nested.get(container), outer_container) {
            (Some(nested), _) => nested.secrets.clone(),
            (None, OuterContainer::Executor(executor)) => executor_references(executor.info.command.as_ref()),
            (None, OuterContainer::Standalone) => Vec::new(),
        }
    }

    fn environment_of(&self, container: &ContainerName, outer_container: &OuterContainer) -> Vec<(String, String)> {
        if let Some(nested) = self.nested.get(container) {
            return nested.environment.clone();
        }
        let OuterContainer::Executor(executor) = outer_container else { return Vec::new() };
        let checkpoints = self.frameworks.get(executor.framework_id.as_str()).is_some_and(|known| known.checkpoints());
        executor_environment(self, executor, checkpoints)
    }
}

/// Checks that a launch names a program. An image may have one, except for a shell command.
///
/// # Errors
/// The part of the command that is missing.
fn check_program(launch_request: &LaunchRequest) -> Result<(), &'static str> {
    if launch_request.command.value.is_some() {
        return Ok(());
    }
    let mesos = launch_request.container.as_ref().and_then(|container| container.mesos.as_ref());
    let has_image = mesos.is_some_and(|mesos| mesos.image.is_some()) && !launch_request.session;
    let says_nothing = launch_request.command == pb::CommandInfo::default();
    match launch_request.command.shell() {
        _ if has_image && says_nothing => Ok(()),
        true => Err("Shell command is not specified"),
        false if has_image => Ok(()),
        false => Err("Executable path is not specified"),
    }
}

/// Returns a container's description without the SANDBOX_PATH volumes, which become `VolumeLink`s.
fn without_sandbox_volumes(mut container: pb::ContainerInfo) -> pb::ContainerInfo {
    container.volumes.retain(|volume| shared_directory(volume, "", "").is_none());
    container
}

/// Returns the directories that a container shares with its parents through SANDBOX_PATH volumes.
fn sandbox_volumes(container: Option<&pb::ContainerInfo>, parent: &str, own: &str) -> Vec<VolumeLink> {
    let volumes = container.map(|container| container.volumes.as_slice()).unwrap_or_default();
    volumes.iter().filter_map(|volume| shared_directory(volume, parent, own)).collect()
}

/// Returns a SANDBOX_PATH volume within the sandboxes: its mount point, and its directory. `None` for other volumes.
fn shared_directory(volume: &pb::Volume, parent: &str, own: &str) -> Option<VolumeLink> {
    use pb::volume::source::sandbox_path::Type;
    let path = volume.source.as_ref()?.sandbox_path.as_ref()?;
    let clean = |path: &str| !path.starts_with('/') && path.split('/').all(|part| part != "..");
    if !clean(&path.path) || !clean(&volume.container_path) {
        return None;
    }
    let base = if path.r#type() == Type::Parent { parent } else { own };
    Some(VolumeLink {
        container_path: volume.container_path.clone(),
        directory: format!("{base}/{}", path.path),
        prepare: Prepare::Create { sandbox: base.to_owned() },
    })
}
