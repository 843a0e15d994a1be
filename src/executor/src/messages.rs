//! The parts of the v1 executor and agent APIs' messages that an executor reads or writes.
//!
//! `build.rs` generates the types from the descriptors of `protos/proto`; `codegen/parts.rs` lists them. A reader skips
//! fields that are not listed. A message that must be passed on as a whole (a task, a command, a container) is kept as
//! its bytes.

include!(concat!(env!("OUT_DIR"), "/messages.rs"));

impl Id {
    pub(crate) fn new(value: &str) -> Id {
        Id { value: value.to_owned() }
    }
}

impl Framework {
    /// Returns whether the framework has the capability TASK_KILLING_STATE.
    pub(crate) fn knows_killing(&self) -> bool {
        let killing = Some(CapabilityType::TaskKillingState as i32);
        self.capabilities.iter().any(|capability| capability.r#type == killing)
    }
}

impl Nanoseconds {
    /// Converts to a duration; zero if it is negative, which the master rejects.
    pub(crate) fn duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(u64::try_from(self.nanoseconds).unwrap_or(0))
    }
}

impl Task {
    /// Returns the role to which the task's resources are allocated.
    pub(crate) fn allocation_role(&self) -> Option<&str> {
        self.resources.iter().find_map(|r| r.allocation_info.as_ref()?.role.as_deref())
    }
}

impl Volume {
    /// Returns a volume at `path` with the content of `path` in the executor's sandbox.
    pub(crate) fn of_parent(path: &str, mode: i32) -> Volume {
        let sandbox_path = SandboxPath { r#type: Some(SandboxPathType::Parent as i32), path: path.to_owned() };
        let r#type = Some(VolumeSourceType::SandboxPath as i32);
        let source = VolumeSource { r#type, sandbox_path: Some(sandbox_path) };
        Volume { mode, container_path: path.to_owned(), source: Some(source) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prost::Message;
    use protos::mesos::v1;

    use super::*;

    /// Converts a whole message to the part that an executor reads.
    fn part<M: Message + Default>(whole: &impl Message) -> M {
        M::decode(whole.encode_to_vec().as_slice()).unwrap()
    }

    #[test]
    fn tasks() {
        let command = v1::CommandInfo { value: Some("true".into()), ..Default::default() };
        let container = v1::ContainerInfo { r#type: 2, ..Default::default() };
        let whole = v1::TaskInfo {
            task_id: v1::TaskId { value: "t".into() },
            command: Some(command.clone()),
            container: Some(Box::new(container.clone())),
            kill_policy: Some(v1::KillPolicy { grace_period: Some(v1::DurationInfo { nanoseconds: 7 }) }),
            max_completion_time: Some(v1::DurationInfo { nanoseconds: 8 }),
            limits: BTreeMap::from([("cpus".into(), v1::value::Scalar { value: 1.0 })]),
            ..Default::default()
        };
        let task: Task = part(&whole);
        assert_eq!((task.task_id, task.command), (Id::new("t"), Some(command.encode_to_vec())));
        assert_eq!(task.container, Some(container.encode_to_vec()));
        assert_eq!(task.kill_policy.and_then(|p| p.grace_period), Some(Nanoseconds { nanoseconds: 7 }));
        assert_eq!((task.max_completion_time, task.limits.len()), (Some(Nanoseconds { nanoseconds: 8 }), 1));
        assert!(part::<Command>(&command).shell());
    }

    #[test]
    fn checks() {
        let command = v1::CommandInfo { value: Some("true".into()), ..Default::default() };
        let whole = v1::HealthCheck {
            delay_seconds: Some(1.0),
            interval_seconds: Some(2.0),
            timeout_seconds: Some(3.0),
            consecutive_failures: Some(4),
            grace_period_seconds: Some(5.0),
            r#type: Some(v1::health_check::Type::Tcp as i32),
            command: Some(command.clone()),
            http: Some(v1::health_check::HttpCheckInfo {
                protocol: Some(v1::network_info::Protocol::IPv6 as i32),
                scheme: Some("https".into()),
                port: 6,
                path: Some("/p".into()),
                ..Default::default()
            }),
            tcp: Some(v1::health_check::TcpCheckInfo { protocol: Some(2), port: 7 }),
        };
        let check: HealthCheck = part(&whole);
        assert_eq!(HealthCheck::decode(check.encode_to_vec().as_slice()).unwrap(), check);
        assert_eq!(v1::HealthCheck::decode(check.encode_to_vec().as_slice()).unwrap(), whole);
        let defaults = (HealthCheck::default(), v1::HealthCheck::default());
        assert_eq!(defaults.0.delay_seconds(), defaults.1.delay_seconds());
        assert_eq!(defaults.0.interval_seconds(), defaults.1.interval_seconds());
        assert_eq!(defaults.0.timeout_seconds(), defaults.1.timeout_seconds());
        assert_eq!(defaults.0.grace_period_seconds(), defaults.1.grace_period_seconds());
        assert_eq!(defaults.0.consecutive_failures(), defaults.1.consecutive_failures());
        let whole = v1::CheckInfo {
            r#type: Some(v1::check_info::Type::Http as i32),
            command: Some(v1::check_info::Command { command }),
            http: Some(v1::check_info::Http { port: 1, path: Some("/".into()) }),
            tcp: Some(v1::check_info::Tcp { port: 2 }),
            delay_seconds: Some(1.0),
            interval_seconds: Some(2.0),
            timeout_seconds: Some(3.0),
        };
        let check: CheckInfo = part(&whole);
        assert_eq!(v1::CheckInfo::decode(check.encode_to_vec().as_slice()).unwrap(), whole);
    }

    #[test]
    fn calls() {
        let container_id =
            ContainerId { value: "c".into(), parent: Some(Box::new(ContainerId { value: "p".into(), parent: None })) };
        let status = TaskStatus {
            task_id: Id::new("t"),
            state: TaskState::TaskKilling as i32,
            data: Some(vec![1]),
            labels: Some(Labels { labels: vec![Label { key: "k".into(), value: None }] }),
            message: Some("m".into()),
            source: Some(Source::Executor as i32),
            reason: Some(Reason::MaxCompletionTimeReached as i32),
            executor_id: Some(Id::new("e")),
            timestamp: Some(1.5),
            uuid: Some(vec![1; 16]),
            healthy: Some(false),
            check_status: Some(CheckStatus {
                r#type: Some(CheckType::Tcp as i32),
                command: Some(CommandCheckStatus { exit_code: Some(1) }),
                http: Some(HttpCheckStatus { status_code: Some(200) }),
                tcp: Some(TcpCheckStatus { succeeded: Some(true) }),
            }),
            container_status: Some(ContainerStatus { container_id: Some(container_id), network_infos: Vec::new() }),
            limitation: None,
        };
        let call = Call {
            executor_id: Id::new("e"),
            framework_id: Id::new("f"),
            r#type: Some(CallType::Update as i32),
            subscribe: None,
            update: Some(Update { status }),
        };
        let whole: v1::executor::Call = protos::decode(&call.encode_to_vec()).unwrap();
        assert_eq!(whole.r#type(), v1::executor::call::Type::Update);
        let status = &whole.update.as_ref().unwrap().status;
        assert_eq!((status.state(), status.source()), (v1::TaskState::TaskKilling, v1::task_status::Source::Executor));
        assert_eq!(status.reason(), v1::task_status::Reason::MaxCompletionTimeReached);
        assert_eq!(status.check_status.as_ref().unwrap().r#type(), v1::check_info::Type::Tcp);
        assert_eq!(part::<Call>(&whole), call);
    }
}
