//! Renders outputs as words.

use agent::{Answer, ContainerSpec, Done, Outgoing, Output, Prepare, RemovedVolume, VolumeLink};
use protos::mesos::{self as pb, TaskState, executor, task_status};

use super::TestAgent;

fn state(number: i32) -> &'static str {
    TaskState::try_from(number).map_or("?", |state| state.as_str_name())
}

/// Renders tasks with their states, and with the reported state where it differs.
fn tasks(tasks: &[pb::Task]) -> String {
    let one = |task: &pb::Task| {
        let told = match task.status_update_state {
            Some(told) if told == task.state && task.status_update_uuid.is_some() => String::new(),
            None if task.state() == TaskState::TaskStaging => String::new(),
            Some(told) => format!(" told {}", state(told)),
            None => " told nothing".to_owned(),
        };
        format!("{}:{}{told}", task.task_id.value, state(task.state))
    };
    tasks.iter().map(one).collect::<Vec<_>>().join(",")
}

fn status(status: &pb::TaskStatus) -> String {
    let mut text = format!("{} {}", status.task_id.value, state(status.state));
    text.push_str(match status.source() {
        task_status::Source::Master => " by master",
        task_status::Source::Slave => " by agent",
        task_status::Source::Executor => " by executor",
    });
    if status.reason.is_some() {
        text.push_str(&format!(" {}", status.reason().as_str_name()));
    }
    if let Some(message) = &status.message {
        text.push_str(&format!(" '{message}'"));
    }
    text
}

impl TestAgent {
    pub(super) fn show_output(&self, output: &Output) -> String {
        match output {
            Output::Send { to, message } => format!("send {to}: {}", message_text(message)),
            Output::SendAs { attempt, to, message } => format!("send as {attempt} {to}: {}", message_text(message)),
            Output::Link { to } => format!("link {to}"),
            Output::ExecutorEvent { stream, event } => format!("event {}: {}", stream.0, event_text(event)),
            Output::CloseStream { stream } => format!("close {}", stream.0),
            Output::Respond { request, answer } => format!("answer {}: {}", request.0, answer_text(answer)),
            Output::Launch { container, spec } => format!("launch {container}: {}", spec_text(spec)),
            Output::Reattach { container, pid, .. } => format!("reattach {container} {pid}"),
            Output::Signal { container, signal } => format!("signal {container} {signal}"),
            Output::Destroy { container } => format!("destroy {container}"),
            Output::Delete { paths } => format!("delete {}", paths.join(" ")),
            Output::DeleteSandbox { path, request } => format!("delete {path}, then answer {}", request.0),
            Output::RecordTermination { container, termination } => {
                format!("note the end of {container}: {:?}", termination.status)
            }
            Output::Forget { container } => format!("forget {container}"),
            Output::ChangeVolumes { change, gone, new } => {
                let kind = |volume: &RemovedVolume| if volume.is_mount { "empty" } else { "destroy" };
                let gone = gone.iter().map(|volume| format!(", {} {}", kind(volume), volume.path));
                let new = new.iter().map(|path| format!(", create {path}"));
                format!("change volumes {change}{}", gone.chain(new).collect::<String>())
            }
            Output::LinkVolumes { container, added, removed, .. } => {
                let added = added.iter().map(|link| format!(", {}", link_text(link)));
                let removed = removed.iter().map(|link| format!(", no {}", link_text(link)));
                format!("link volumes of {container}{}", added.chain(removed).collect::<String>())
            }
            Output::Resize { container, .. } => format!("resize {container}"),
            Output::Measure => "measure".to_owned(),
            Output::RedetectMaster => "redetect the master".to_owned(),
            Output::Exit { code, message } => format!("exit {code}: {message}"),
        }
    }
}

fn message_text(message: &Outgoing) -> String {
    let name = message.full_name().trim_start_matches("mesos.internal.");
    let more = match message {
        Outgoing::RegisterSlave(m) => format!("{} resources, version {}", m.slave.resources.len(), m.version()),
        Outgoing::ReregisterSlave(m) => {
            let executors: Vec<_> = m.executor_infos.iter().map(|info| info.executor_id.value.as_str()).collect();
            let frameworks: Vec<_> =
                m.frameworks.iter().filter_map(|info| Some(info.id.as_ref()?.value.as_str())).collect();
            format!(
                "{} frameworks [{}] executors [{}] tasks [{}] checkpointed {} completed {}{}",
                m.slave.id.as_ref().map(|id| id.value.as_str()).unwrap_or_default(),
                frameworks.join(","),
                executors.join(","),
                tasks(&m.tasks),
                m.checkpointed_resources.len(),
                m.completed_frameworks.len(),
                if m.slave.attributes.iter().any(|attribute| attribute.name == agent::UNHEALTHY) {
                    " unhealthy"
                } else {
                    ""
                }
            )
        }
        Outgoing::StatusUpdate(m) => format!(
            "{}{}",
            status(&m.update.status),
            if m.update.latest_state == Some(m.update.status.state) {
                String::new()
            } else {
                format!(", latest {}", state(m.update.latest_state.unwrap_or(-1)))
            }
        ),
        Outgoing::UpdateOperationStatus(m) => format!("{:?} {:?}", m.status.state(), m.status.message()),
        Outgoing::UpdateSlave(m) => {
            let operations = m.operations.as_ref().map_or(0, |list| list.operations.len());
            let oversubscribed = match m.update_oversubscribed_resources() {
                true => format!(", oversubscribed {}", resources::from_proto(&m.oversubscribed_resources).unwrap()),
                false => String::new(),
            };
            format!("{operations} operations{oversubscribed}")
        }
        Outgoing::Authenticate(m) => m.pid.clone(),
        Outgoing::AuthenticationStart(m) => m.mechanism.clone(),
        Outgoing::AuthenticationStep(m) => String::from_utf8_lossy(&m.data).into_owned(),
        Outgoing::ExitedExecutor(m) => format!("{} status {}", m.executor_id.value, m.status),
        Outgoing::ExecutorToFramework(m) => String::from_utf8_lossy(&m.data).into_owned(),
        Outgoing::FrameworkToExecutor(m) => String::from_utf8_lossy(&m.data).into_owned(),
        Outgoing::ExecutorRegistered(m) => m.executor_info.executor_id.value.to_string(),
        Outgoing::RunTask(m) => format!("{} for {}", m.task.task_id.value, m.pid()),
        Outgoing::KillTask(m) => m.task_id.value.to_string(),
        Outgoing::StatusUpdateAcknowledgement(m) => m.task_id.value.to_string(),
        _ => String::new(),
    };
    format!("{name} {more}").trim_end().to_owned()
}

fn event_text(event: &executor::Event) -> String {
    let name = event.r#type().as_str_name();
    let more = if let Some(subscribed) = &event.subscribed {
        subscribed.executor_info.executor_id.value.to_string()
    } else if let Some(launch) = &event.launch {
        launch.task.task_id.value.to_string()
    } else if let Some(group) = &event.launch_group {
        group.task_group.tasks.iter().map(|task| task.task_id.value.as_str()).collect::<Vec<_>>().join(",")
    } else if let Some(kill) = &event.kill {
        let grace = kill.kill_policy.and_then(|policy| policy.grace_period);
        let grace = grace.map(|grace| format!(" within {}s", grace.nanoseconds / 1_000_000_000)).unwrap_or_default();
        format!("{}{grace}", kill.task_id.value)
    } else if let Some(acknowledged) = &event.acknowledged {
        acknowledged.task_id.value.to_string()
    } else if let Some(message) = &event.message {
        String::from_utf8_lossy(&message.data).into_owned()
    } else {
        String::new()
    };
    format!("{name} {more}").trim_end().to_owned()
}

fn answer_text(answer: &Answer) -> String {
    match answer {
        Ok(Done::Complete) => "200".to_owned(),
        Ok(Done::Accepted) => "202".to_owned(),
        Ok(Done::Stream) => "200 and a stream".to_owned(),
        Ok(Done::Response(response)) => {
            #[allow(deprecated)]
            let status = response.wait_nested_container.as_ref().and_then(|wait| wait.exit_status);
            format!("200 {} {status:?}", response.r#type().as_str_name())
        }
        Err(error) => format!("{:?} {error}", error.kind),
    }
}

fn link_text(link: &VolumeLink) -> String {
    let left = if link.prepare == Prepare::KeepOwner { " as it is" } else { "" };
    format!("volume {} -> {}{left}", link.container_path, link.directory)
}

fn spec_text(spec: &ContainerSpec) -> String {
    let volumes: Vec<_> = spec.volumes.iter().map(|link| format!(", {}", link_text(link))).collect();
    format!(
        "{} in {} as {}{}{}",
        spec.argv.join(" "),
        spec.sandbox,
        spec.user.as_deref().unwrap_or("the agent"),
        volumes.concat(),
        spec.secrets.iter().map(|(name, _)| format!(", secret {name}")).collect::<String>()
    )
}
