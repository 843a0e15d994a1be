//! Text of outputs in a script: one line each, with their relevant parts.

use protos::mesos::internal::StatusUpdate;
use protos::mesos::{self, Resource};
use resources::from_proto;

use super::events;
use crate::record::code;
use crate::{CallError, Done, Outgoing, Output, RegistryOp, Snapshot};

/// Formats resources. Those in the format before reservation refinement are preceded by `old:`.
pub(super) fn amounts(list: &[Resource]) -> String {
    match from_proto(list) {
        Ok(resources) if list.iter().any(|resource| resource.role.is_some()) => {
            format!("old:{}", resources.to_string().replace(' ', ""))
        }
        Ok(resources) => resources.to_string().replace(' ', ""),
        Err(why) => format!("<{why}>"),
    }
}

/// Formats a registry operation.
pub fn describe_op(op: &RegistryOp) -> String {
    let id = |info: &mesos::SlaveInfo| info.id.clone().unwrap_or_default().value;
    match op {
        RegistryOp::Recover(info) => format!("persist Recover {}", info.id),
        RegistryOp::AdmitAgent(info) => format!("persist AdmitAgent {}", id(info)),
        RegistryOp::UpdateAgent(info) => format!("persist UpdateAgent {}", id(info)),
        RegistryOp::MarkAgentReachable(info) => format!("persist MarkAgentReachable {}", id(info)),
        RegistryOp::MarkAgentUnreachable { id, .. } => format!("persist MarkAgentUnreachable {}", id.value),
        RegistryOp::MarkAgentGone { id, .. } => format!("persist MarkAgentGone {}", id.value),
        RegistryOp::RemoveAgent(id) => format!("persist RemoveAgent {}", id.value),
        RegistryOp::Prune { unreachable, gone } => {
            let text = |ids: &[mesos::SlaveId]| ids.iter().map(|id| id.value.to_string()).collect::<Vec<_>>().join(",");
            format!("persist Prune unreachable=[{}] gone=[{}]", text(unreachable), text(gone))
        }
        RegistryOp::DrainAgent { id, config } => {
            format!("persist DrainAgent {} mark_gone={}", id.value, config.mark_gone())
        }
        RegistryOp::MarkAgentDrained(id) => format!("persist MarkAgentDrained {}", id.value),
        RegistryOp::DeactivateAgent(id) => format!("persist DeactivateAgent {}", id.value),
        RegistryOp::ReactivateAgent(id) => format!("persist ReactivateAgent {}", id.value),
        RegistryOp::UpdateQuota(configs) => {
            let amounts = |map: &std::collections::BTreeMap<String, mesos::value::Scalar>| {
                let list: Vec<String> = map.iter().map(|(name, scalar)| format!("{name}:{}", scalar.value)).collect();
                list.join(";")
            };
            let one =
                |c: &mesos::quota::QuotaConfig| format!("{}/{}/{}", c.role, amounts(&c.guarantees), amounts(&c.limits));
            format!("persist UpdateQuota {}", configs.iter().map(one).collect::<Vec<_>>().join(" "))
        }
        RegistryOp::UpdateMaintenanceSchedule(schedule) => {
            let windows: Vec<String> = schedule.windows.iter().map(|window| machines(&window.machine_ids)).collect();
            format!("persist UpdateMaintenanceSchedule {}", windows.join(" ")).trim_end().to_owned()
        }
        RegistryOp::StartMaintenance(ids) => format!("persist StartMaintenance {}", machines(ids)),
        RegistryOp::StopMaintenance(ids) => format!("persist StopMaintenance {}", machines(ids)),
        RegistryOp::UpdateWeights(list) => {
            let list: Vec<String> = list.iter().map(|w| format!("{}:{}", w.role(), w.weight)).collect();
            format!("persist UpdateWeights {}", list.join(" "))
        }
    }
}

fn machines(ids: &[mesos::MachineId]) -> String {
    ids.iter().map(|id| format!("{}@{}", id.hostname(), id.ip())).collect::<Vec<_>>().join(",")
}

/// Formats an output. Processes and streams are in angle brackets, which a script replaces by names.
pub fn describe_output(output: &Output) -> String {
    match output {
        Output::Send { to, from, message } => match from {
            crate::Sender::Master => format!("send <{to}> {}", outgoing(message)),
            crate::Sender::Observer(_) => format!("send <{to}> {} from {from}", outgoing(message)),
        },
        Output::Link { pid } => format!("link <{pid}>"),
        Output::Unlink { pid } => format!("unlink <{pid}>"),
        Output::OpenStream { stream, .. } => format!("open <stream {}>", stream.0),
        Output::SchedulerEvent { stream, event } => format!("event <stream {}> {}", stream.0, events::scheduler(event)),
        Output::OperatorSubscribed { stream, snapshot, .. } => format!(
            "event <stream {}> SUBSCRIBED agents={} frameworks={}",
            stream.0,
            snapshot.agents.len(),
            snapshot.frameworks.len()
        ),
        Output::OperatorEvent { stream, event } => format!("event <stream {}> {}", stream.0, events::operator(event)),
        Output::CloseStream { stream } => format!("close <stream {}>", stream.0),
        Output::Respond { answer, .. } => describe_answer(answer.as_ref()),
        Output::Refuse { error, .. } => describe_answer(Err(error)),
        Output::Exit { reason } => format!("exit {reason}"),
    }
}

fn describe_answer(answer: Result<&Done, &CallError>) -> String {
    let text = answer.err().map(ToString::to_string).unwrap_or_default();
    format!("answer {} {text}", code(answer)).trim_end().to_owned()
}

fn outgoing(message: &Outgoing) -> String {
    let name = message.full_name();
    let name = name.rsplit('.').next().unwrap_or_default().trim_end_matches("Message").to_owned();
    format!("{name} {}", details(message)).trim_end().to_owned()
}

fn details(message: &Outgoing) -> String {
    match message {
        Outgoing::SlaveRegistered(m) => m.slave_id.value.to_string(),
        Outgoing::SlaveReregistered(m) => {
            let asked = m.reconciliations.iter().flat_map(|r| {
                r.statuses.iter().map(move |s| format!(" ask={}/{}", r.framework_id.value, s.task_id.value))
            });
            format!("{}{}", m.slave_id.value, asked.collect::<String>())
        }
        Outgoing::PingSlave(m) => format!("connected={}", m.connected),
        Outgoing::Shutdown(m) => m.message().to_owned(),
        Outgoing::RunTask(m) => format!(
            "{} {} launch_executor={}{}",
            m.task.task_id.value,
            amounts(&m.task.resources),
            m.launch_executor(),
            m.task.executor.as_ref().map(|e| format!(" executor={}", e.executor_id.value)).unwrap_or_default()
        ),
        Outgoing::RunTaskGroup(m) => {
            let tasks: Vec<&str> = m.task_group.tasks.iter().map(|task| task.task_id.value.as_str()).collect();
            let (id, launch) = (&m.executor.executor_id.value, m.launch_executor());
            format!("{} executor={id} {} launch_executor={launch}", tasks.join(","), amounts(&m.executor.resources))
        }
        Outgoing::KillTask(m) => {
            let grace = m.kill_policy.and_then(|policy| policy.grace_period);
            let grace = grace.map(|grace| format!(" grace={}ns", grace.nanoseconds)).unwrap_or_default();
            format!("{}{grace}", m.task_id.value)
        }
        Outgoing::StatusUpdateAcknowledgement(m) => format!("{} uuid={}", m.task_id.value, short(&m.uuid)),
        Outgoing::ShutdownExecutor(m) => m.executor_id.clone().unwrap_or_default().value.into(),
        Outgoing::ShutdownFramework(m) => m.framework_id.value.to_string(),
        Outgoing::UpdateFramework(m) => format!("{} pid={}", m.framework_id.value, m.pid()),
        Outgoing::CheckpointResources(m) => amounts(&m.resources),
        Outgoing::ApplyOperation(m) => {
            let version = &m.resource_version_uuid;
            let provider = version.resource_provider_id.as_ref().map(|id| {
                let version = version.uuid.value.first().copied().unwrap_or_default();
                format!(" provider={} version={version}", id.value)
            });
            let uuid = base::hex(&m.operation_uuid.value);
            format!("{}{} uuid={uuid}", operation(&m.operation_info), provider.unwrap_or_default())
        }
        Outgoing::AcknowledgeOperationStatus(m) => {
            let provider = m.resource_provider_id.as_ref().map(|id| format!(" provider={}", id.value));
            format!("status={}{}", short(&m.status_uuid.value), provider.unwrap_or_default())
        }
        Outgoing::ReconcileOperations(m) => {
            let provider = m.operations.first().and_then(|operation| operation.resource_provider_id.as_ref());
            let provider = provider.map(|id| format!(" provider={}", id.value)).unwrap_or_default();
            format!("{} operations{provider}", m.operations.len())
        }
        Outgoing::DrainSlave(m) => format!("mark_gone={}", m.config.mark_gone()),
        Outgoing::FrameworkToExecutor(m) => {
            format!("{} '{}'", m.executor_id.value, String::from_utf8_lossy(&m.data))
        }
        Outgoing::FrameworkRegistered(m) => m.framework_id.value.to_string(),
        Outgoing::FrameworkReregistered(m) => m.framework_id.value.to_string(),
        Outgoing::ResourceOffers(m) => {
            let offers: Vec<String> = m.offers.iter().map(events::offer).collect();
            format!("{} pids={}", offers.join(" "), m.pids.join(","))
        }
        Outgoing::RescindResourceOffer(m) => m.offer_id.value.to_string(),
        Outgoing::InverseOffers(m) => {
            let ids: Vec<&str> = m.inverse_offers.iter().map(|offer| &*offer.id.value).collect();
            format!("{} pids={}", ids.join(" "), m.pids.join(","))
        }
        Outgoing::RescindInverseOffer(m) => m.inverse_offer_id.value.to_string(),
        Outgoing::StatusUpdate(m) => format!("{} pid={}", update(&m.update), m.pid()),
        Outgoing::LostSlave(m) => m.slave_id.value.to_string(),
        Outgoing::ExitedExecutor(m) => format!("{} status={}", m.executor_id.value, m.status),
        Outgoing::ExecutorToFramework(m) => {
            format!("{} '{}'", m.executor_id.value, String::from_utf8_lossy(&m.data))
        }
        Outgoing::FrameworkError(m) => m.message.clone(),
        Outgoing::SubmitScheduler(m) => format!("okay={}", m.okay),
    }
}

/// Formats an operation: its type and its resources.
fn operation(operation: &mesos::offer::Operation) -> String {
    let kind = operation.r#type().as_str_name();
    let about = if let Some(body) = &operation.reserve {
        amounts(&body.resources)
    } else if let Some(body) = &operation.unreserve {
        amounts(&body.resources)
    } else if let Some(body) = &operation.create {
        amounts(&body.volumes)
    } else if let Some(body) = &operation.destroy {
        amounts(&body.volumes)
    } else if let Some(body) = &operation.grow_volume {
        format!("{} by {}", amounts(std::slice::from_ref(&body.volume)), amounts(std::slice::from_ref(&body.addition)))
    } else if let Some(body) = &operation.shrink_volume {
        format!("{} by {}", amounts(std::slice::from_ref(&body.volume)), body.subtract.value)
    } else {
        String::new()
    };
    format!("{kind} {about}")
}

fn update(update: &StatusUpdate) -> String {
    status(&update.status)
}

/// Formats a UUID as its first byte: those of scripts consist of equal bytes.
fn short(uuid: &[u8]) -> String {
    uuid.first().map(u8::to_string).unwrap_or_default()
}

/// Formats a status: task, state, and its other fields.
pub(super) fn status(status: &mesos::TaskStatus) -> String {
    let mut text = format!("{} {}", status.task_id.value, status.state().as_str_name());
    if let Some(uuid) = &status.uuid {
        text.push_str(&format!(" uuid={}", short(uuid)));
    }
    if let Some(reason) = status.reason.and_then(|number| mesos::task_status::Reason::try_from(number).ok()) {
        text.push_str(&format!(" {}", reason.as_str_name()));
    }
    if let Some(time) = status.unreachable_time {
        text.push_str(&format!(" unreachable={}s", time.nanoseconds / 1_000_000_000));
    }
    if let Some(message) = status.message.as_ref().filter(|_| status.uuid.is_none()) {
        text.push_str(&format!(" '{message}'"));
    }
    text
}

/// Formats the whole state: one line for each agent, framework, task and offer.
pub(super) fn describe_state(snapshot: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    for agent in snapshot.agents.values() {
        let executors: usize = agent.executors.values().map(|mine| mine.len()).sum();
        let drain = agent.drain.as_ref().map(|drain| format!(" {}", drain.state().as_str_name())).unwrap_or_default();
        let text = |set: &resources::Resources| format!("[{}]", set.to_string().replace(' ', ""));
        lines.push(format!(
            "agent {} active={} connected={}{drain} total={} used={} offered={} executors={executors}",
            agent.id,
            agent.active(),
            agent.connected,
            text(&agent.total),
            text(&agent.used),
            text(&agent.offered),
        ));
    }
    for agent in snapshot.agents.values() {
        for (id, provider) in &agent.providers {
            let total = provider.total.to_string().replace(' ', "");
            lines.push(format!("provider {id} of {} total=[{total}]", agent.id));
        }
    }
    for (role, quota) in &*snapshot.quotas {
        let limits: Vec<String> = quota.limits.iter().map(|(name, limit)| format!("{name}:{limit}")).collect();
        let guarantees = quota.guarantees.to_string().replace(' ', "");
        lines.push(format!("quota {role} guarantees={guarantees} limits={}", limits.join(";")));
    }
    for machine in snapshot.maintenance.machines.values() {
        let ids = machines(std::slice::from_ref(&machine.id));
        lines.push(format!("machine {ids} {}", machine.mode.as_str_name()));
    }
    for agent in snapshot.agents.values() {
        let answers = agent.inverse_answers.values().map(|answer| {
            format!("answer {} {} {}", agent.id, answer.framework_id.value, answer.status().as_str_name())
        });
        lines.extend(answers);
    }
    lines.extend(snapshot.recovered.keys().map(|id| format!("recovered {id}")));
    if snapshot.unreachable > 0 {
        lines.push(format!("unreachable {}", snapshot.unreachable));
    }
    for framework in snapshot.frameworks.values() {
        lines.push(format!(
            "framework {} active={} connected={} recovered={}",
            framework.id,
            framework.active,
            framework.connected(),
            framework.recovered()
        ));
        let lists = [
            ("task", &framework.tasks),
            ("unreachable", &framework.unreachable_tasks),
            ("completed", &framework.completed_tasks),
        ];
        for (what, list) in lists {
            lines.extend(list.values().map(|task| format!("  {what} {} {}", task.id, task.state().as_str_name())));
        }
    }
    for framework in snapshot.completed.values() {
        lines.push(format!("completed {}", framework.id));
        let tasks = framework.completed_tasks.values();
        lines.extend(tasks.map(|task| format!("  completed {} {}", task.id, task.state().as_str_name())));
    }
    lines.extend(snapshot.offers.iter().map(|(key, _)| format!("offer {}-O{key}", snapshot.info.id)));
    lines
}
