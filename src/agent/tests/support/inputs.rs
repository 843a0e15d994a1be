//! Parser of the lines of a scenario, which become inputs.

use agent::oversubscription::{Load, Measurement};
use agent::{AuthMessage, Claims, Incoming, Input, Proof, RequestId, StreamId};
use base::Pid;
use protos::mesos::internal::*;
use protos::mesos::{self as pb, TaskState, agent as operator, executor, framework_info::capability};

use super::{MASTER, TestAgent};

/// Returns the value of an option of a line, a word of the form `name=value`.
fn option<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn framework_id(text: &str) -> pb::FrameworkId {
    pb::FrameworkId { value: text.into() }
}

fn executor_id(text: &str) -> pb::ExecutorId {
    pb::ExecutorId { value: text.into() }
}

fn task_id(text: &str) -> pb::TaskId {
    pb::TaskId { value: text.into() }
}

fn slave_id() -> pb::SlaveId {
    pb::SlaveId { value: "S0".into() }
}

/// Returns the message of the master's authenticator that some words stand for.
fn authenticator_says(words: &[&str]) -> AuthMessage {
    match words {
        ["offers", mechanisms, ..] => AuthMessage::Mechanisms(AuthenticationMechanismsMessage {
            mechanisms: mechanisms.split(',').map(str::to_owned).collect(),
        }),
        ["challenges", data, ..] => AuthMessage::Step(AuthenticationStepMessage { data: data.as_bytes().to_vec() }),
        ["completes", ..] => AuthMessage::Completed(AuthenticationCompletedMessage {}),
        ["refuses", ..] => AuthMessage::Failed(AuthenticationFailedMessage {}),
        words => AuthMessage::Error(AuthenticationErrorMessage { error: Some(words.join(" ")) }),
    }
}

fn scalar(name: &str, value: f64) -> pb::Resource {
    pb::Resource {
        name: name.into(),
        r#type: pb::value::Type::Scalar as i32,
        scalar: Some(pb::value::Scalar { value }),
        allocation_info: Some(pb::resource::AllocationInfo { role: Some("*".into()) }),
        ..pb::Resource::default()
    }
}

fn framework(id: &str, words: &[&str]) -> pb::FrameworkInfo {
    let mut capabilities = vec![capability::Type::MultiRole];
    if words.contains(&"aware") {
        capabilities.push(capability::Type::PartitionAware);
    }
    pb::FrameworkInfo {
        user: "root".to_owned(),
        name: option(words, "name").unwrap_or("test").to_owned(),
        id: Some(framework_id(id)),
        checkpoint: Some(words.contains(&"checkpoint")),
        roles: vec!["*".to_owned()],
        capabilities: capabilities
            .into_iter()
            .map(|capability| pb::framework_info::Capability { r#type: Some(capability as i32) })
            .collect(),
        ..pb::FrameworkInfo::default()
    }
}

fn executor_info(framework: &str, id: &str, default: bool) -> pb::ExecutorInfo {
    use pb::executor_info::Type;
    let command = pb::CommandInfo { value: Some("run-executor".to_owned()), ..pb::CommandInfo::default() };
    pb::ExecutorInfo {
        r#type: Some(if default { Type::Default } else { Type::Custom } as i32),
        executor_id: executor_id(id),
        framework_id: Some(framework_id(framework)),
        command: (!default).then_some(command),
        resources: vec![scalar("cpus", 0.1), scalar("mem", 32.0)],
        ..pb::ExecutorInfo::default()
    }
}

fn task(id: &str, words: &[&str]) -> pb::TaskInfo {
    pb::TaskInfo {
        name: id.to_owned(),
        task_id: task_id(id),
        slave_id: slave_id(),
        resources: vec![scalar("cpus", 0.5), scalar("mem", 64.0)],
        command: Some(pb::CommandInfo {
            value: Some(option(words, "command").unwrap_or("sleep").to_owned()),
            user: option(words, "user").map(str::to_owned),
            ..pb::CommandInfo::default()
        }),
        ..pb::TaskInfo::default()
    }
}

/// Returns a variable whose value is a secret to be resolved.
fn by_reference() -> pb::environment::Variable {
    use pb::{environment::variable, secret};
    let reference = secret::Reference { name: "safe".to_owned(), key: None };
    pb::environment::Variable {
        name: "WORD".to_owned(),
        r#type: Some(variable::Type::Secret as i32),
        value: None,
        secret: Some(pb::Secret {
            r#type: Some(secret::Type::Reference as i32),
            reference: Some(reference),
            value: None,
        }),
    }
}

fn reserved() -> pb::Resource {
    use pb::resource::{ReservationInfo, reservation_info::Type};
    let reservation =
        ReservationInfo { r#type: Some(Type::Dynamic as i32), role: Some("dev".to_owned()), ..Default::default() };
    pb::Resource { allocation_info: None, reservations: vec![reservation], ..scalar("disk", 64.0) }
}

fn volume() -> pb::Resource {
    use pb::resource::{DiskInfo, disk_info::Persistence};
    let disk = DiskInfo {
        persistence: Some(Persistence { id: "v1".to_owned(), principal: None }),
        volume: Some(pb::Volume {
            mode: pb::volume::Mode::Rw as i32,
            container_path: "data".to_owned(),
            ..pb::Volume::default()
        }),
        source: None,
    };
    pb::Resource { disk: Some(Box::new(disk)), ..reserved() }
}

impl TestAgent {
    /// Returns the inputs that a line stands for.
    pub(super) fn inputs(&mut self, words: &[&str]) -> Vec<Input> {
        let input = match words {
            ["detected", "none"] => Input::Detected { master: None },
            ["detected"] => Input::Detected { master: Some(MASTER.parse().unwrap()) },
            ["detected", pid] => Input::Detected { master: Some(pid.parse().unwrap()) },
            ["authenticator", attempt, words @ ..] => Input::Authentication {
                attempt: attempt.parse().unwrap(),
                from: option(words, "from")
                    .unwrap_or("crammd5-authenticator-session(7)@10.0.0.1:5050")
                    .parse()
                    .unwrap(),
                message: authenticator_says(words),
            },
            ["exited", pid] if pid.contains('@') => Input::Exited { pid: pid.parse().unwrap() },
            ["signal", "USR1"] => Input::Shutdown { unregister: true },
            ["signal", "TERM"] => Input::Shutdown { unregister: false },
            ["checkpoints", "work"] => Input::CheckpointsWork,
            ["checkpoints", "fail", why @ ..] => {
                Input::CheckpointsFailing { why: why.join(" "), lacks_space: why.contains(&"space") }
            }
            ["volumes-changed", change] => Input::VolumesChanged { change: change.parse().unwrap() },
            ["update-failed", name, why @ ..] => {
                Input::ContainerUpdateFailed { container: self.container(name), why: why.join(" ") }
            }
            ["load", load] => {
                let load = Load { five_minutes: load.parse().unwrap(), ..Load::default() };
                Input::Measured { measurement: Box::new(Measurement { load, containers: Vec::new() }) }
            }
            ["usage", fraction] => Input::DiskUsage { fraction: fraction.parse().unwrap() },
            ["started", name, pid] => {
                Input::ContainerStarted { container: self.container(name), pid: pid.parse().unwrap() }
            }
            ["start-failed", name, why @ ..] => {
                Input::ContainerStartFailed { container: self.container(name), why: why.join(" ") }
            }
            ["ended", name, status] => {
                Input::ContainerExited { container: self.container(name), status: status.parse().ok() }
            }
            ["limited", name, message @ ..] => Input::ContainerLimited {
                container: self.container(name),
                reason: pb::task_status::Reason::ContainerLimitationMemory,
                message: message.join(" "),
                resources: Vec::new(),
            },
            ["subscribe", name, stream, options @ ..] => self.subscribe(name, stream, options),
            ["closed", stream] => Input::ExecutorStreamClosed { stream: StreamId(stream.parse().unwrap()) },
            ["update", name, task, state, options @ ..] => self.call_update(name, task, state, options),
            ["message", name, text] => {
                let mut call = executor_call(name, executor::call::Type::Message);
                call.message = Some(executor::call::Message { data: text.as_bytes().to_vec() });
                Input::ExecutorCall { request: self.request(), call: Box::new(call), proof: Proof::Connection }
            }
            ["operator", words @ ..] => self.operator(words),
            ["from", pid, words @ ..] => {
                let message = Box::new(self.message(words));
                Input::Message { from: pid.parse::<Pid>().unwrap(), message }
            }
            words => {
                let message = Box::new(self.message(words));
                Input::Message { from: MASTER.parse().unwrap(), message }
            }
        };
        vec![input]
    }

    fn request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId(self.requests)
    }

    fn uuid(&mut self) -> Vec<u8> {
        self.updates += 1;
        base::uuid_from(u128::from(self.updates).to_be_bytes()).to_vec()
    }

    fn status(&mut self, task: &str, state: &str) -> pb::TaskStatus {
        let uuid = self.uuid();
        pb::TaskStatus {
            task_id: task_id(task),
            state: TaskState::from_str_name(state).unwrap() as i32,
            source: Some(pb::task_status::Source::Executor as i32),
            uuid: Some(uuid),
            timestamp: Some(self.now.as_secs_f64()),
            ..pb::TaskStatus::default()
        }
    }

    fn subscribe(&mut self, name: &str, stream: &str, options: &[&str]) -> Input {
        let mut call = executor_call(name, executor::call::Type::Subscribe);
        let mut subscribe = executor::call::Subscribe::default();
        if let Some(task) = option(options, "unacknowledged") {
            subscribe.unacknowledged_tasks.push(self::task(task, &[]));
        }
        if let Some((task, state)) = option(options, "update").and_then(|text| text.split_once(':')) {
            let status = self.status(task, state);
            subscribe.unacknowledged_updates.push(executor::call::Update { status });
        }
        call.subscribe = Some(subscribe);
        Input::ExecutorSubscribe {
            stream: StreamId(stream.parse().unwrap()),
            request: self.request(),
            call: Box::new(call),
            proof: self.proof(options),
        }
    }

    fn call_update(&mut self, name: &str, task: &str, state: &str, options: &[&str]) -> Input {
        let mut call = executor_call(name, executor::call::Type::Update);
        // `again` repeats the update before this one.
        let status = if state == "again" {
            self.updates -= 1;
            self.status(task, "TASK_RUNNING")
        } else {
            self.status(task, state)
        };
        call.update = Some(executor::call::Update { status });
        Input::ExecutorCall { request: self.request(), call: Box::new(call), proof: self.proof(options) }
    }

    /// Returns the evidence of a call: `proof=none`, or the claims of a token as `proof=FRAMEWORK:EXECUTOR:CONTAINER`.
    /// Without the option the call comes over the executor's own connection.
    fn proof(&self, options: &[&str]) -> Proof {
        match option(options, "proof").map(|text| text.split(':').collect::<Vec<_>>()).as_deref() {
            None => Proof::Connection,
            Some([framework, executor, container]) => Proof::Token(Claims {
                framework: (*framework).to_owned(),
                executor: (*executor).to_owned(),
                container: self.container(container).as_str().to_owned(),
            }),
            Some(_) => Proof::None,
        }
    }

    #[allow(deprecated)]
    fn operator(&mut self, words: &[&str]) -> Input {
        use operator::call::Type;
        let id = |name: &str| self.container(name).to_proto();
        let mut call = operator::Call::default();
        match words {
            ["launch", name, what @ ..] => {
                let shell = pb::CommandInfo { value: Some("sleep".to_owned()), ..pb::CommandInfo::default() };
                let image = pb::ContainerInfo {
                    mesos: Some(pb::container_info::MesosInfo { image: Some(pb::Image::default()) }),
                    ..pb::ContainerInfo::default()
                };
                let (command, container) = match what {
                    [] => (Some(shell), None),
                    ["nothing"] => (None, None),
                    ["no-program"] => (Some(pb::CommandInfo { shell: Some(false), ..Default::default() }), None),
                    ["image"] => (None, Some(image)),
                    ["image", "shell"] => {
                        (Some(pb::CommandInfo { shell: Some(true), ..Default::default() }), Some(image))
                    }
                    what => panic!("unknown command {what:?}"),
                };
                let container_id = id(name);
                match container_id.parent.is_some() {
                    true => {
                        call.set_type(Type::LaunchNestedContainer);
                        let launch = operator::call::LaunchNestedContainer { container_id, command, container };
                        call.launch_nested_container = Some(launch);
                    }
                    false => {
                        call.set_type(Type::LaunchContainer);
                        call.launch_container = Some(operator::call::LaunchContainer {
                            container_id,
                            command,
                            container,
                            ..operator::call::LaunchContainer::default()
                        });
                    }
                }
            }
            ["wait", name] => {
                call.set_type(Type::WaitNestedContainer);
                call.wait_nested_container = Some(operator::call::WaitNestedContainer { container_id: id(name) });
            }
            ["kill", name] => {
                call.set_type(Type::KillNestedContainer);
                call.kill_nested_container =
                    Some(operator::call::KillNestedContainer { container_id: id(name), signal: Some(15) });
            }
            ["remove", name] => {
                call.set_type(Type::RemoveNestedContainer);
                call.remove_nested_container = Some(operator::call::RemoveNestedContainer { container_id: id(name) });
            }
            words => panic!("unknown operator call {words:?}"),
        }
        Input::OperatorCall { request: self.request(), call: Box::new(call) }
    }

    /// Returns the message that some words stand for.
    fn message(&mut self, words: &[&str]) -> Incoming {
        match words {
            ["registered"] => Incoming::SlaveRegistered(SlaveRegisteredMessage {
                slave_id: slave_id(),
                connection: Some(MasterSlaveConnection { total_ping_timeout_seconds: Some(75.0) }),
            }),
            ["registered", id] => Incoming::SlaveRegistered(SlaveRegisteredMessage {
                slave_id: pb::SlaveId { value: (*id).into() },
                connection: None,
            }),
            ["reregistered", lost @ ..] => Incoming::SlaveReregistered(SlaveReregisteredMessage {
                slave_id: slave_id(),
                connection: None,
                reconciliations: lost.chunks(2).map(|lost| reconciliation(lost[0], lost[1])).collect(),
            }),
            ["ping", connected] => Incoming::PingSlave(PingSlaveMessage { connected: connected.parse().unwrap() }),
            ["run", framework, id, options @ ..] => self.run(framework, id, options),
            ["group", framework, executor, ids, options @ ..] => {
                let tasks = ids.split(',').map(|id| self::task(id, options)).collect();
                // An executor of the framework's own has a command, and may have a user.
                let user = option(options, "executor-user");
                let mut executor = executor_info(framework, executor, user.is_none());
                if let Some(command) = &mut executor.command {
                    command.user = user.map(str::to_owned);
                }
                Incoming::RunTaskGroup(RunTaskGroupMessage {
                    framework: self::framework(framework, options).into(),
                    executor,
                    task_group: pb::TaskGroupInfo { tasks },
                    launch_executor: option(options, "new").map(|new| new.parse().unwrap()),
                    ..RunTaskGroupMessage::default()
                })
            }
            ["kill-task", framework, id] => Incoming::KillTask(KillTaskMessage {
                framework_id: framework_id(framework),
                task_id: task_id(id),
                kill_policy: None,
            }),
            ["acknowledge", framework, id] => {
                let uuid = self.sent.get(*id).and_then(|update| update.uuid.clone()).unwrap_or_default();
                Incoming::StatusUpdateAcknowledgement(StatusUpdateAcknowledgementMessage {
                    slave_id: slave_id(),
                    framework_id: framework_id(framework),
                    task_id: task_id(id),
                    uuid,
                })
            }
            ["shutdown-executor", framework, id] => Incoming::ShutdownExecutor(ShutdownExecutorMessage {
                executor_id: Some(executor_id(id)),
                framework_id: Some(framework_id(framework)),
            }),
            ["shutdown-framework", id] => {
                Incoming::ShutdownFramework(ShutdownFrameworkMessage { framework_id: framework_id(id) })
            }
            ["update-framework", id, options @ ..] => Incoming::UpdateFramework(UpdateFrameworkMessage {
                framework_id: framework_id(id),
                pid: option(options, "pid").map(str::to_owned),
                framework_info: Some(self::framework(id, options)),
            }),
            ["to-executor", framework, id, text] => Incoming::FrameworkToExecutor(FrameworkToExecutorMessage {
                slave_id: slave_id(),
                framework_id: framework_id(framework),
                executor_id: executor_id(id),
                data: text.as_bytes().to_vec(),
            }),
            ["shutdown", message @ ..] => Incoming::Shutdown(ShutdownMessage { message: Some(message.join(" ")) }),
            ["drain", options @ ..] => Incoming::DrainSlave(DrainSlaveMessage {
                config: pb::DrainConfig {
                    max_grace_period: Some(pb::DurationInfo { nanoseconds: 1_000_000_000 }),
                    mark_gone: Some(options.contains(&"mark_gone")),
                },
            }),
            ["register-executor", framework, id] => Incoming::RegisterExecutor(RegisterExecutorMessage {
                framework_id: framework_id(framework),
                executor_id: executor_id(id),
            }),
            ["reregister-executor", framework, id] => Incoming::ReregisterExecutor(ReregisterExecutorMessage {
                framework_id: framework_id(framework),
                executor_id: executor_id(id),
                ..ReregisterExecutorMessage::default()
            }),
            ["status", framework, executor, task, state] => self.status_message(framework, executor, task, state),
            ["operation", kind] => self.operation(kind, kind),
            ["operation", kind, name] => self.operation(kind, name),
            ["acknowledge-operation"] => {
                let status = self.operation.clone().unwrap();
                Incoming::AcknowledgeOperationStatus(AcknowledgeOperationStatusMessage {
                    status_uuid: status.uuid.unwrap(),
                    operation_uuid: operation_uuid(status.operation_id.unwrap().value.as_str()),
                    resource_provider_id: None,
                })
            }
            words => panic!("unknown words {words:?}"),
        }
    }

    fn run(&mut self, framework: &str, id: &str, options: &[&str]) -> Incoming {
        let mut task = self::task(id, options);
        if let Some(executor) = option(options, "executor") {
            task.executor = Some(Box::new(executor_info(framework, executor, false)));
            task.command = None;
        }
        if options.contains(&"volume") {
            let role = Some(pb::resource::AllocationInfo { role: Some("dev".into()) });
            task.resources.push(pb::Resource { allocation_info: role, ..volume() });
        }
        if options.contains(&"revocable") {
            task.resources[0].revocable = Some(pb::resource::RevocableInfo::default());
        }
        if let Some(name) = option(options, "limit") {
            task.limits.insert(name.to_owned(), pb::value::Scalar { value: 1000.0 });
        }
        if options.contains(&"secret") {
            task.command.get_or_insert_default().environment =
                Some(pb::Environment { variables: vec![by_reference()] });
        }
        if options.contains(&"unallocated") {
            task.resources[0].allocation_info = None;
        }
        let mut info = self::framework(framework, options);
        if options.contains(&"unallocated") {
            info.roles.push("other".to_owned());
        }
        let version =
            ResourceVersionUuid { resource_provider_id: None, uuid: pb::Uuid { value: b"an older version".to_vec() } };
        Incoming::RunTask(RunTaskMessage {
            framework: info.into(),
            task,
            pid: option(options, "pid").map(str::to_owned),
            launch_executor: option(options, "new").map(|new| new.parse().unwrap()),
            resource_version_uuids: if options.contains(&"outdated") { vec![version] } else { Vec::new() },
            ..RunTaskMessage::default()
        })
    }

    fn status_message(&mut self, framework: &str, executor: &str, task: &str, state: &str) -> Incoming {
        let mut status = self.status(task, state.trim_end_matches('!'));
        let uuid = status.uuid.clone().filter(|_| !state.ends_with('!'));
        status.uuid.clone_from(&uuid);
        Incoming::StatusUpdate(StatusUpdateMessage {
            update: StatusUpdate {
                framework_id: framework_id(framework),
                executor_id: Some(executor_id(executor)),
                slave_id: Some(slave_id()),
                timestamp: self.now.as_secs_f64(),
                uuid,
                status,
                latest_state: None,
            },
            pid: None,
        })
    }

    fn operation(&mut self, kind: &str, name: &str) -> Incoming {
        use pb::offer::operation::{Create, Destroy, Reserve, Type};
        let mut info = pb::offer::Operation {
            id: Some(pb::OperationId { value: name.to_owned() }),
            ..pb::offer::Operation::default()
        };
        match kind {
            "reserve" => {
                info.set_type(Type::Reserve);
                info.reserve = Some(Reserve { resources: vec![reserved()], ..Reserve::default() });
            }
            "create" => {
                info.set_type(Type::Create);
                // The resources are allocated to a role, as in the master's offer.
                let role = Some(pb::resource::AllocationInfo { role: Some("dev".into()) });
                info.create = Some(Create { volumes: vec![pb::Resource { allocation_info: role, ..volume() }] });
            }
            "destroy" => {
                info.set_type(Type::Destroy);
                info.destroy = Some(Destroy { volumes: vec![volume()] });
            }
            kind => panic!("unknown operation {kind}"),
        }
        Incoming::ApplyOperation(ApplyOperationMessage {
            framework_id: Some(framework_id("f")),
            operation_info: info,
            operation_uuid: operation_uuid(name),
            resource_version_uuid: ResourceVersionUuid {
                resource_provider_id: None,
                uuid: pb::Uuid { value: base::uuid_from([0; 16]).to_vec() },
            },
        })
    }
}

fn operation_uuid(kind: &str) -> pb::Uuid {
    let mut bytes = [0; 16];
    bytes[..kind.len()].copy_from_slice(kind.as_bytes());
    pb::Uuid { value: base::uuid_from(bytes).to_vec() }
}

fn executor_call(name: &str, kind: executor::call::Type) -> executor::Call {
    let (framework, id) = name.split_once('/').unwrap();
    executor::Call {
        executor_id: executor_id(id),
        framework_id: framework_id(framework),
        r#type: Some(kind as i32),
        ..executor::Call::default()
    }
}

fn reconciliation(framework: &str, task: &str) -> ReconcileTasksMessage {
    ReconcileTasksMessage {
        framework_id: framework_id(framework),
        statuses: vec![pb::TaskStatus {
            task_id: task_id(task),
            state: TaskState::TaskRunning as i32,
            ..pb::TaskStatus::default()
        }],
        framework: Some(self::framework(framework, &["aware"])),
    }
}
