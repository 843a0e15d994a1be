//! Builds messages and calls from the words of a script.

use base::Pid;
use protos::mesos::internal::{
    ExecutorToFrameworkMessage, ExitedExecutorMessage, RegisterSlaveMessage, ReregisterSlaveMessage, StatusUpdate,
    StatusUpdateMessage, UnregisterSlaveMessage, UpdateOperationStatusMessage, UpdateSlaveMessage,
};
use protos::mesos::offer::{Operation, operation};
use protos::mesos::scheduler::{Call, call};
use protos::mesos::{self, executor_info, slave_info};
use resources::{Format, Resources, Role, parse_text};

use super::providers;
use super::script::Script;
use super::words::Words;
use crate::Message;

pub(super) fn master_info(number: u32) -> mesos::MasterInfo {
    mesos::MasterInfo {
        id: format!("m{number}"),
        ip: 0x0100_000a,
        port: 5050,
        pid: Some("master@10.0.0.1:5050".to_owned()),
        hostname: Some("master-host".to_owned()),
        version: Some("1.11.0".to_owned()),
        ..Default::default()
    }
}

pub(super) fn resources(text: &str) -> Vec<mesos::Resource> {
    let set: Resources = parse_text(text, &Role::star()).unwrap_or_default();
    set.to_proto(Format::PreRefinement)
}

pub(super) fn agent_id(script: &Script, name: &str) -> mesos::SlaveId {
    mesos::SlaveId { value: script.agent_ids.get(name).map_or(name, String::as_str).into() }
}

pub(super) fn framework_id(script: &Script, name: &str) -> mesos::FrameworkId {
    mesos::FrameworkId { value: script.framework_ids.get(name).map_or(name, String::as_str).into() }
}

fn task_id(value: &str) -> mesos::TaskId {
    mesos::TaskId { value: if value == "''" { "" } else { value }.into() }
}

fn executor_id(value: &str) -> mesos::ExecutorId {
    mesos::ExecutorId { value: value.into() }
}

fn uuid(words: &Words<'_>) -> Vec<u8> {
    match words.get("uuid") {
        Some("short") => vec![1; 3],
        Some("nil") => vec![0; 16],
        text => base::uuid_from([text.and_then(|text| text.parse().ok()).unwrap_or(1); 16]).to_vec(),
    }
}

// Frameworks

fn framework_info(script: &mut Script, words: &Words<'_>) -> mesos::FrameworkInfo {
    let name = words.at(1).to_owned();
    let mut kinds = vec!["MULTI_ROLE", "PARTITION_AWARE", "RESERVATION_REFINEMENT"];
    if words.get("caps").is_some() {
        kinds = words.list("caps");
    }
    let capability = |kind: &&str| mesos::framework_info::Capability {
        r#type: mesos::framework_info::capability::Type::from_str_name(kind).map(|kind| kind as i32),
    };
    let multi = kinds.contains(&"MULTI_ROLE");
    let mut roles: Vec<String> = words.list("roles").into_iter().map(str::to_owned).collect();
    if multi && words.get("roles").is_none() {
        roles.push("*".to_owned());
    }
    let info = mesos::FrameworkInfo {
        user: words.get("user").unwrap_or("root").to_owned(),
        name: words.get("name").unwrap_or(&name).to_owned(),
        id: None,
        failover_timeout: words.number("failover"),
        checkpoint: Some(words.has("checkpoint")),
        role: words.get("role").map(str::to_owned),
        roles,
        principal: words.get("principal").map(str::to_owned),
        capabilities: kinds.iter().map(capability).collect(),
        ..Default::default()
    };
    script.framework_infos.insert(name, info.clone());
    info
}

/// Builds a SUBSCRIBE from `subscribe f roles=a,b caps=... failover=10 id=known checkpoint force`; `id=f` stands for
/// the id of that name.
pub(super) fn subscribe(script: &mut Script, words: &Words<'_>) -> Call {
    let mut info = framework_info(script, words);
    info.id = words.get("id").map(|name| framework_id(script, name));
    Call {
        r#type: Some(call::Type::Subscribe as i32),
        framework_id: info.id.clone(),
        subscribe: Some(Box::new(call::Subscribe {
            framework_info: info,
            force: words.has("force").then_some(true),
            suppressed_roles: words.list("suppressed").into_iter().map(str::to_owned).collect(),
            offer_constraints: None,
        })),
        ..Call::default()
    }
}

/// Builds a scheduler call from `<call> <framework> ...`; see the match.
pub(super) fn call(script: &mut Script, words: &Words<'_>) -> Result<Call, String> {
    let name = words.at(1);
    let kind = match words.at(0) {
        "message" => call::Type::Message,
        "ack" => call::Type::Acknowledge,
        "ack-operation" => call::Type::AcknowledgeOperationStatus,
        "update-framework" => call::Type::UpdateFramework,
        "reconcile-operations" => call::Type::ReconcileOperations,
        "accept-inverse" => call::Type::AcceptInverseOffers,
        "decline-inverse" => call::Type::DeclineInverseOffers,
        text => call::Type::from_str_name(&text.to_uppercase()).ok_or_else(|| format!("what is '{text}'?"))?,
    };
    let mut call =
        Call { r#type: Some(kind as i32), framework_id: Some(framework_id(script, name)), ..Call::default() };
    let filters = words.number("refuse").map(|seconds| mesos::Filters { refuse_seconds: Some(seconds) });
    let offers = |text: &str| -> Vec<mesos::OfferId> {
        let ids = text.split(',').filter(|id| !id.is_empty());
        ids.map(|id| mesos::OfferId { value: id.into() }).collect()
    };
    let agent = words.get("agent").map(|name| agent_id(script, name));
    match kind {
        call::Type::Accept => {
            let operations = operations(script, words)?;
            call.accept = Some(call::Accept { offer_ids: offers(words.at(2)), operations, filters });
        }
        call::Type::Decline => call.decline = Some(call::Decline { offer_ids: offers(words.at(2)), filters }),
        call::Type::AcceptInverseOffers => {
            let inverse_offer_ids = offers(words.at(2));
            call.accept_inverse_offers = Some(Box::new(call::AcceptInverseOffers { inverse_offer_ids, filters }));
        }
        call::Type::DeclineInverseOffers => {
            let inverse_offer_ids = offers(words.at(2));
            call.decline_inverse_offers = Some(Box::new(call::DeclineInverseOffers { inverse_offer_ids, filters }));
        }
        call::Type::Revive => {
            call.revive = Some(call::Revive { roles: words.from(2).into_iter().map(str::to_owned).collect() });
        }
        call::Type::Suppress => {
            call.suppress = Some(call::Suppress { roles: words.from(2).into_iter().map(str::to_owned).collect() });
        }
        call::Type::Kill => {
            let nanoseconds = words.number("grace").map(|seconds| (seconds * 1e9) as i64);
            let grace = nanoseconds.map(|nanoseconds| mesos::DurationInfo { nanoseconds });
            let kill_policy = grace.map(|grace| mesos::KillPolicy { grace_period: Some(grace) });
            call.kill = Some(Box::new(call::Kill { task_id: task_id(words.at(2)), slave_id: agent, kill_policy }));
        }
        call::Type::Shutdown => {
            let slave_id = agent.unwrap_or_default();
            call.shutdown = Some(Box::new(call::Shutdown { executor_id: executor_id(words.at(2)), slave_id }));
        }
        call::Type::Acknowledge => {
            let slave_id = agent.unwrap_or_default();
            let task_id = task_id(words.at(2));
            call.acknowledge = Some(call::Acknowledge { slave_id, task_id, uuid: uuid(words) });
        }
        call::Type::AcknowledgeOperationStatus => {
            let operation_id = mesos::OperationId { value: words.at(2).to_owned() };
            call.acknowledge_operation_status = Some(Box::new(call::AcknowledgeOperationStatus {
                slave_id: agent,
                resource_provider_id: words.get("from").map(providers::id),
                uuid: uuid(words),
                operation_id,
            }));
        }
        call::Type::Reconcile => {
            let task = |text: &str| {
                let (id, agent) = text.split_once('@').map_or((text, None), |(id, agent)| (id, Some(agent)));
                call::reconcile::Task { task_id: task_id(id), slave_id: agent.map(|name| agent_id(script, name)) }
            };
            call.reconcile = Some(call::Reconcile { tasks: words.from(2).into_iter().map(task).collect() });
        }
        call::Type::ReconcileOperations => {
            let operation = |text: &str| {
                let (id, agent) = text.split_once('@').map_or((text, None), |(id, agent)| (id, Some(agent)));
                call::reconcile_operations::Operation {
                    operation_id: mesos::OperationId { value: id.to_owned() },
                    slave_id: agent.map(|name| agent_id(script, name)),
                    resource_provider_id: None,
                }
            };
            let operations = words.from(2).into_iter().map(operation).collect();
            call.reconcile_operations = Some(call::ReconcileOperations { operations });
        }
        call::Type::Message => {
            let slave_id = agent.unwrap_or_default();
            let (executor_id, data) = (executor_id(words.at(2)), words.at(3).as_bytes().to_vec());
            call.message = Some(Box::new(call::Message { slave_id, executor_id, data }));
        }
        call::Type::UpdateFramework => {
            let mut framework_info = framework_info(script, words);
            framework_info.id = call.framework_id.clone();
            let suppressed_roles = words.list("suppressed").into_iter().map(str::to_owned).collect();
            let body = call::UpdateFramework { framework_info, suppressed_roles, offer_constraints: None };
            call.update_framework = Some(Box::new(body));
        }
        call::Type::Request => call.request = Some(call::Request::default()),
        _ => {}
    }
    Ok(call)
}

/// Builds operations in the order of the line: `launch=t1:cpus:1;mem:32` (`+e1` after the id for a custom executor of
/// that id), several by `,`; `group=e1:t1,t2:cpus:1;mem:32`; `reserve=cpus:1`, `unreserve=`, `create=64`, `destroy=64`,
/// with `role=` and `op=`; `uses=64` gives the tasks a volume.
fn operations(script: &Script, words: &Words<'_>) -> Result<Vec<Operation>, String> {
    let agent = agent_id(script, words.get("on").unwrap_or("a"));
    let mut operations = Vec::new();
    for (kind, text) in words.options() {
        let mut operation = match kind {
            "launch" => launch(script, words, &agent, text),
            "group" => launch_group(script, words, &agent, text)?,
            "reserve" | "unreserve" | "create" | "destroy" | "grow" | "shrink" => on_resources(words, kind, text),
            _ => continue,
        };
        let launches = matches!(kind, "launch" | "group");
        let id = words.get(if launches { "launch_op" } else { "op" });
        operation.id = id.map(|id| mesos::OperationId { value: id.to_owned() });
        operations.push(operation);
    }
    Ok(operations)
}

fn launch(script: &Script, words: &Words<'_>, agent: &mesos::SlaveId, text: &str) -> Operation {
    let tasks = text.split(',').map(|text| task(script, words, agent, text)).collect();
    Operation {
        r#type: Some(operation::Type::Launch as i32),
        launch: Some(operation::Launch { task_infos: tasks }),
        ..Operation::default()
    }
}

fn launch_group(script: &Script, words: &Words<'_>, agent: &mesos::SlaveId, text: &str) -> Result<Operation, String> {
    let form = "group=executor:task,task:resources";
    let (executor, tasks) = text.split_once(':').ok_or(form)?;
    let (tasks, wanted) = tasks.split_once(':').ok_or(form)?;
    let tasks = tasks.split(',').map(|id| task(script, words, agent, &format!("{id}:{wanted}"))).collect();
    let executor = mesos::ExecutorInfo {
        r#type: Some(executor_info::Type::Default as i32),
        executor_id: executor_id(executor),
        framework_id: Some(framework_id(script, words.at(1))),
        resources: resources(words.get("executor").unwrap_or("cpus:0.1;mem:32;disk:32")),
        ..Default::default()
    };
    let task_group = mesos::TaskGroupInfo { tasks };
    Ok(Operation {
        r#type: Some(operation::Type::LaunchGroup as i32),
        launch_group: Some(Box::new(operation::LaunchGroup { executor, task_group })),
        ..Operation::default()
    })
}

fn on_resources(words: &Words<'_>, kind: &str, text: &str) -> Operation {
    let role = words.get("role").unwrap_or("r").to_owned();
    let mut operation = Operation::default();
    let volume = matches!(kind, "create" | "destroy" | "grow" | "shrink");
    let mut list = match volume {
        true => volumes(words, text),
        false => reserved(words, text),
    };
    let allocation = mesos::resource::AllocationInfo { role: Some(role.into()) };
    list.iter_mut().for_each(|resource| resource.allocation_info = Some(allocation.clone()));
    match kind {
        "reserve" => {
            operation.set_type(operation::Type::Reserve);
            operation.reserve = Some(operation::Reserve { source: Vec::new(), resources: list });
        }
        "unreserve" => {
            operation.set_type(operation::Type::Unreserve);
            operation.unreserve = Some(operation::Unreserve { resources: list });
        }
        "create" => {
            operation.set_type(operation::Type::Create);
            operation.create = Some(operation::Create { volumes: list });
        }
        "destroy" => {
            operation.set_type(operation::Type::Destroy);
            operation.destroy = Some(operation::Destroy { volumes: list });
        }
        "grow" => {
            let mut addition = reserved(words, &format!("disk:{}", words.get("by").unwrap_or("1")));
            addition.iter_mut().for_each(|resource| resource.allocation_info = Some(allocation.clone()));
            operation.set_type(operation::Type::GrowVolume);
            operation.grow_volume = Some(Box::new(operation::GrowVolume {
                volume: list.pop().unwrap_or_default(),
                addition: addition.pop().unwrap_or_default(),
            }));
        }
        _ => {
            operation.set_type(operation::Type::ShrinkVolume);
            let subtract = mesos::value::Scalar { value: words.number("by").unwrap_or(1.0) };
            operation.shrink_volume =
                Some(Box::new(operation::ShrinkVolume { volume: list.pop().unwrap_or_default(), subtract }));
        }
    }
    operation
}

/// Builds resources such as `cpus:1;mem:2`, reserved to `role=` (`a,a/b` is a stack; `static`, `none`), with
/// `principal=` and `label=`.
pub(super) fn reserved(words: &Words<'_>, text: &str) -> Vec<mesos::Resource> {
    let label = |value: &str| mesos::Label { key: "l".to_owned(), value: Some(value.to_owned()) };
    let reservation = |role: &str| mesos::resource::ReservationInfo {
        r#type: Some(match words.has("static") {
            true => mesos::resource::reservation_info::Type::Static as i32,
            false => mesos::resource::reservation_info::Type::Dynamic as i32,
        }),
        role: Some(role.to_owned()),
        principal: words.get("principal").map(str::to_owned),
        labels: words.get("label").map(|value| mesos::Labels { labels: vec![label(value)] }),
    };
    let mut list = resources(text);
    for resource in &mut list {
        resource.role = None;
        let stack = words.get("role").unwrap_or("r").split(',').filter(|role| *role != "none");
        resource.reservations = stack.map(reservation).collect();
        resource.provider_id = words.get("from").map(providers::id);
    }
    list
}

/// Builds a volume of this many megabytes with the id `volume=`.
pub(super) fn volumes(words: &Words<'_>, text: &str) -> Vec<mesos::Resource> {
    let mut list = reserved(words, &format!("disk:{text}"));
    for resource in &mut list {
        resource.shared = words.has("shared").then(mesos::resource::SharedInfo::default);
        resource.disk = Some(Box::new(mesos::resource::DiskInfo {
            persistence: Some(mesos::resource::disk_info::Persistence {
                id: words.get("volume").unwrap_or("v1").to_owned(),
                principal: words.get("principal").map(str::to_owned),
            }),
            volume: Some(mesos::Volume {
                mode: mesos::volume::Mode::Rw as i32,
                container_path: "data".to_owned(),
                ..Default::default()
            }),
            source: None,
        }));
    }
    list
}

fn task(script: &Script, words: &Words<'_>, agent: &mesos::SlaveId, text: &str) -> mesos::TaskInfo {
    let (id, wanted) = text.split_once(':').unwrap_or((text, ""));
    let (id, executor) = id.split_once('+').map_or((id, None), |(id, executor)| (id, Some(executor)));
    let command = mesos::CommandInfo { value: Some("true".to_owned()), ..Default::default() };
    let executor = executor.map(|id| mesos::ExecutorInfo {
        executor_id: executor_id(id),
        command: Some(command.clone()),
        resources: resources(words.get("executor").unwrap_or("cpus:0.5;mem:64")),
        framework_id: Some(framework_id(script, words.at(1))),
        ..Default::default()
    });
    let value = |amount: f64| mesos::value::Scalar { value: amount };
    let mut wanted = resources(wanted);
    if let Some(amount) = words.get("uses") {
        wanted.extend(volumes(words, amount));
    }
    mesos::TaskInfo {
        name: id.to_owned(),
        task_id: task_id(id),
        slave_id: agent.clone(),
        resources: wanted,
        command: executor.is_none().then_some(command),
        executor: executor.map(Box::new),
        limits: words.number("limit_cpus").map(|amount| ("cpus".to_owned(), value(amount))).into_iter().collect(),
        ..Default::default()
    }
}

// Agents

fn slave_info(script: &mut Script, words: &Words<'_>) -> mesos::SlaveInfo {
    let name = words.at(1);
    if !words.at(2).is_empty() {
        script.agent_resources.insert(name.to_owned(), words.at(2).to_owned());
    }
    let text = script.agent_resources.get(name).cloned().unwrap_or_default();
    mesos::SlaveInfo {
        hostname: words.get("host").unwrap_or(name).to_owned(),
        port: Some(5051),
        resources: resources(&text),
        checkpoint: Some(true),
        ..Default::default()
    }
}

pub(super) fn agent_pid(script: &mut Script, words: &Words<'_>) -> Pid {
    let name = words.at(1);
    let number = script.agents.len() + 1;
    let made = script.agents.get(name).cloned();
    let pid = match words.get("ip") {
        Some(ip) => Pid::parse_lenient(&format!("slave(1)@{ip}:5051")),
        None => made.unwrap_or_else(|| Pid::parse_lenient(&format!("slave(1)@10.0.2.{number}:5051"))),
    };
    script.agents.insert(name.to_owned(), pid.clone());
    pid
}

fn capabilities(words: &Words<'_>) -> Vec<slave_info::Capability> {
    let all = (1..=8).map(|number| slave_info::Capability { r#type: Some(number) });
    match words.get("caps") {
        None => all.collect(),
        Some(_) => {
            let of = |name: &str| slave_info::capability::Type::from_str_name(name).map(|kind| kind as i32);
            words.list("caps").into_iter().map(|name| slave_info::Capability { r#type: of(name) }).collect()
        }
    }
}

/// Builds the message of an agent's command, or returns `None` if the command is not an agent's.
pub(super) fn agent_message(script: &mut Script, words: &Words<'_>) -> Result<Option<(Pid, Message)>, String> {
    let name = words.at(1);
    let version = Some(words.get("version").unwrap_or("1.11.0").to_owned());
    let process = words.number("process").map_or(7, |number| number as u8);
    let resource_version = Some(mesos::Uuid { value: base::uuid_from([process; 16]).to_vec() });
    let message = match words.at(0) {
        "register" => Message::RegisterSlave(Box::new(RegisterSlaveMessage {
            slave: slave_info(script, words),
            checkpointed_resources: words.get("checkpointed").map(resources).unwrap_or_default(),
            version,
            agent_capabilities: capabilities(words),
            resource_version_uuid: resource_version,
        })),
        "reregister" => Message::ReregisterSlave(Box::new(reregister(script, words))),
        "unregister" => {
            let slave_id = agent_id(script, words.get("id").unwrap_or(name));
            Message::UnregisterSlave(Box::new(UnregisterSlaveMessage { slave_id }))
        }
        "update" => Message::StatusUpdate(Box::new(status_update(script, words)?)),
        "exited-executor" => Message::ExitedExecutor(Box::new(ExitedExecutorMessage {
            slave_id: agent_id(script, name),
            framework_id: framework_id(script, words.at(2)),
            executor_id: executor_id(words.at(3)),
            status: words.number("status").unwrap_or_default() as i32,
        })),
        "executor-message" => Message::ExecutorToFramework(Box::new(ExecutorToFrameworkMessage {
            slave_id: agent_id(script, name),
            framework_id: framework_id(script, words.at(2)),
            executor_id: executor_id(words.at(3)),
            data: words.at(4).as_bytes().to_vec(),
        })),
        "update-agent" => {
            let mut oversubscribed = resources(words.get("revocable").unwrap_or_default());
            let mark = |r: &mut mesos::Resource| r.revocable = Some(mesos::resource::RevocableInfo {});
            oversubscribed.iter_mut().for_each(mark);
            Message::UpdateSlave(Box::new(UpdateSlaveMessage {
                slave_id: agent_id(script, name),
                update_oversubscribed_resources: Some(words.get("revocable").is_some()),
                oversubscribed_resources: oversubscribed,
                operations: Some(Default::default()),
                resource_version_uuid: resource_version,
                resource_providers: (!words.has("silent")).then(|| providers::report(script, words)),
            }))
        }
        "operation-status" => Message::UpdateOperationStatus(Box::new(operation_status(script, words))),
        "pong" => {
            let observer = words.at(2).parse().map_err(|_| "which observer?")?;
            Message::PongSlave { observer }
        }
        _ => return Ok(None),
    };
    Ok(Some((agent_pid(script, words), message)))
}

/// Builds a message from `reregister a tasks=f/t:STATE,... frameworks=f executors=f/e`; `id=` sets another id than the
/// agent's own.
fn reregister(script: &mut Script, words: &Words<'_>) -> ReregisterSlaveMessage {
    let name = words.at(1);
    let own = agent_id(script, words.get("id").unwrap_or(name));
    let info = mesos::SlaveInfo { id: Some(own.clone()), ..slave_info(script, words) };
    script.agent_ids.insert(name.to_owned(), own.value.to_string());
    let wanted = words.get("each").unwrap_or("cpus:1;mem:64");
    let allocated = |text: &str| {
        let mut list = resources(text);
        let role = words.get("role").unwrap_or("*").to_owned();
        if words.get("unallocated").is_none() {
            for resource in &mut list {
                resource.allocation_info = Some(mesos::resource::AllocationInfo { role: Some((&role).into()) });
            }
        }
        list
    };
    let mut tasks = Vec::new();
    for text in words.list("tasks") {
        let (path, states) = text.split_once(':').unwrap_or((text, "TASK_RUNNING"));
        let (framework, task) = path.split_once('/').unwrap_or((path, "t"));
        // The newest state, and optionally the one last forwarded.
        let (state, forwarded) =
            states.split_once(':').map_or((states, None), |(state, forwarded)| (state, Some(forwarded)));
        tasks.push(mesos::Task {
            status_update_state: forwarded.and_then(mesos::TaskState::from_str_name).map(|forwarded| forwarded as i32),
            name: task.to_owned(),
            task_id: task_id(task),
            framework_id: framework_id(script, framework),
            slave_id: own.clone(),
            state: mesos::TaskState::from_str_name(state).unwrap_or(mesos::TaskState::TaskRunning) as i32,
            resources: allocated(wanted),
            ..Default::default()
        });
    }
    let mut executors = Vec::new();
    for text in words.list("executors") {
        let (framework, executor) = text.split_once('/').unwrap_or((text, "e"));
        executors.push(mesos::ExecutorInfo {
            executor_id: executor_id(executor),
            framework_id: Some(framework_id(script, framework)),
            resources: allocated("cpus:0.5;mem:64"),
            ..Default::default()
        });
    }
    let frameworks = words.list("frameworks").into_iter().map(|name| mesos::FrameworkInfo {
        id: Some(framework_id(script, name)),
        ..script.framework_infos.get(name).cloned().unwrap_or_default()
    });
    ReregisterSlaveMessage {
        slave: info,
        executor_infos: executors,
        tasks,
        frameworks: frameworks.collect(),
        version: Some(words.get("version").unwrap_or("1.11.0").to_owned()),
        agent_capabilities: capabilities(words),
        resource_version_uuid: Some(mesos::Uuid { value: base::uuid_from([7; 16]).to_vec() }),
        ..Default::default()
    }
}

/// Builds a message from `update a f/t TASK_RUNNING uuid=1 latest=TASK_FINISHED nopid nouuid executor=e`.
fn status_update(script: &mut Script, words: &Words<'_>) -> Result<StatusUpdateMessage, String> {
    let (framework, task) = words.at(2).split_once('/').ok_or("which task?")?;
    let state = |name: &str| mesos::TaskState::from_str_name(name).map(|state| state as i32);
    let uuid = (!words.has("nouuid")).then(|| uuid(words));
    let pid = agent_pid(script, words).to_string();
    let id = agent_id(script, words.at(1));
    let status = mesos::TaskStatus {
        task_id: task_id(task),
        state: state(words.at(3)).ok_or("which state?")?,
        source: Some(mesos::task_status::Source::Executor as i32),
        uuid: uuid.clone(),
        healthy: words.get("healthy").map(|text| text == "true"),
        ..Default::default()
    };
    let update = StatusUpdate {
        framework_id: framework_id(script, framework),
        executor_id: words.get("executor").map(executor_id),
        slave_id: Some(id),
        status,
        timestamp: 5.0,
        uuid,
        latest_state: words.get("latest").and_then(state),
    };
    Ok(StatusUpdateMessage { update, pid: (!words.has("nopid")).then_some(pid) })
}

/// Builds a message from `operation-status a f OPERATION_FINISHED uuid=1 operation=<hex> op=id`.
fn operation_status(script: &mut Script, words: &Words<'_>) -> UpdateOperationStatusMessage {
    let id = agent_id(script, words.at(1));
    let state = mesos::OperationState::from_str_name(words.at(3)).unwrap_or(mesos::OperationState::OperationFinished);
    let hex = words.get("operation").unwrap_or_default().as_bytes();
    let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|text| u8::from_str_radix(text, 16).ok());
    let status = mesos::OperationStatus {
        operation_id: words.get("op").map(|id| mesos::OperationId { value: id.to_owned() }),
        state: state as i32,
        uuid: Some(mesos::Uuid { value: uuid(words) }),
        slave_id: Some(id.clone()),
        ..Default::default()
    };
    UpdateOperationStatusMessage {
        framework_id: Some(framework_id(script, words.at(2))),
        slave_id: Some(id),
        latest_status: Some(status.clone()),
        status,
        operation_uuid: Some(mesos::Uuid { value: hex.chunks(2).filter_map(byte).collect() }),
    }
}
