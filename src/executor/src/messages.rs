//! The parts of the v1 executor and agent APIs' messages that an executor reads or writes, and no more.
//!
//! An executor runs beside every task, so it must be small: the full types of crate `protos` would bring the code and
//! memory of every field of every message along. A reader skips fields that are not named here. Where a whole message
//! must be handed on (a task, a command, a container), it is kept as its bytes. Numbers are those of
//! `protos/proto/mesos/v1`; the tests hold the two together.

use prost::Message;

/// A message with one `value`: every id of the wire.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Id {
    #[prost(string, required, tag = "1")]
    pub(crate) value: String,
}

impl Id {
    pub(crate) fn new(value: &str) -> Id {
        Id { value: value.to_owned() }
    }
}

/// `ContainerID`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ContainerId {
    #[prost(string, required, tag = "1")]
    pub(crate) value: String,
    #[prost(message, optional, boxed, tag = "2")]
    pub(crate) parent: Option<Box<ContainerId>>,
}

/// `executor.Event.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum EventType {
    Unknown = 0,
    Subscribed = 1,
    Launch = 2,
    Kill = 3,
    Acknowledged = 4,
    Message = 5,
    Error = 6,
    Shutdown = 7,
    LaunchGroup = 8,
    Heartbeat = 9,
}

/// `executor.Event`. LAUNCH and LAUNCH_GROUP hold tasks as bytes: see [`Task`].
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Event {
    #[prost(enumeration = "EventType", optional, tag = "1")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) subscribed: Option<Subscribed>,
    #[prost(message, optional, tag = "3")]
    pub(crate) acknowledged: Option<Acknowledged>,
    #[prost(message, optional, tag = "4")]
    pub(crate) launch: Option<Launch>,
    #[prost(message, optional, tag = "8")]
    pub(crate) launch_group: Option<LaunchGroup>,
    #[prost(message, optional, tag = "5")]
    pub(crate) kill: Option<Kill>,
    #[prost(message, optional, tag = "7")]
    pub(crate) error: Option<ErrorText>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Subscribed {
    #[prost(message, optional, tag = "2")]
    pub(crate) framework_info: Option<Framework>,
    #[prost(message, optional, tag = "4")]
    pub(crate) container_id: Option<ContainerId>,
}

/// Of `FrameworkInfo`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Framework {
    #[prost(message, repeated, tag = "10")]
    pub(crate) capabilities: Vec<Capability>,
}

impl Framework {
    /// Whether the framework has the capability for TASK_KILLING.
    pub(crate) fn knows_killing(&self) -> bool {
        /// `FrameworkInfo.Capability.TASK_KILLING_STATE`
        const TASK_KILLING_STATE: i32 = 2;
        self.capabilities.iter().any(|capability| capability.r#type == Some(TASK_KILLING_STATE))
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Capability {
    #[prost(int32, optional, tag = "1")]
    pub(crate) r#type: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Acknowledged {
    #[prost(message, required, tag = "1")]
    pub(crate) task_id: Id,
    #[prost(bytes = "vec", required, tag = "2")]
    pub(crate) uuid: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Launch {
    /// A [`Task`].
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) task: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LaunchGroup {
    #[prost(message, required, tag = "1")]
    pub(crate) task_group: TaskGroup,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskGroup {
    /// Each a [`Task`].
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) tasks: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Kill {
    #[prost(message, required, tag = "1")]
    pub(crate) task_id: Id,
    #[prost(message, optional, tag = "2")]
    pub(crate) kill_policy: Option<KillPolicy>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ErrorText {
    #[prost(string, required, tag = "1")]
    pub(crate) message: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct KillPolicy {
    #[prost(message, optional, tag = "1")]
    pub(crate) grace_period: Option<Nanoseconds>,
}

/// `DurationInfo`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct Nanoseconds {
    #[prost(int64, required, tag = "1")]
    pub(crate) nanoseconds: i64,
}

impl Nanoseconds {
    /// Negative ones, which the master refuses, are zero here.
    pub(crate) fn duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(u64::try_from(self.nanoseconds).unwrap_or(0))
    }
}

/// Of `TaskInfo`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Task {
    #[prost(message, required, tag = "2")]
    pub(crate) task_id: Id,
    #[prost(message, repeated, tag = "4")]
    pub(crate) resources: Vec<Resource>,
    /// A [`Command`].
    #[prost(bytes = "vec", optional, tag = "7")]
    pub(crate) command: Option<Vec<u8>>,
    /// A `ContainerInfo`.
    #[prost(bytes = "vec", optional, tag = "9")]
    pub(crate) container: Option<Vec<u8>>,
    #[prost(message, optional, tag = "8")]
    pub(crate) health_check: Option<HealthCheck>,
    #[prost(message, optional, tag = "13")]
    pub(crate) check: Option<CheckInfo>,
    #[prost(message, optional, tag = "12")]
    pub(crate) kill_policy: Option<KillPolicy>,
    #[prost(message, optional, tag = "14")]
    pub(crate) max_completion_time: Option<Nanoseconds>,
    /// Entries of the map, each as its bytes.
    #[prost(bytes = "vec", repeated, tag = "15")]
    pub(crate) limits: Vec<Vec<u8>>,
}

/// The role of a `Resource`; the default executor passes the whole on as bytes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Resource {
    #[prost(message, optional, tag = "11")]
    pub(crate) allocation_info: Option<AllocationInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AllocationInfo {
    #[prost(string, optional, tag = "1")]
    pub(crate) role: Option<String>,
}

impl Task {
    /// The role that the task's resources are allocated to.
    pub(crate) fn allocation_role(&self) -> Option<&str> {
        self.resources.iter().find_map(|r| r.allocation_info.as_ref()?.role.as_deref())
    }
}

/// Of `CommandInfo`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Command {
    #[prost(string, optional, tag = "5")]
    pub(crate) user: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub(crate) environment: Option<Environment>,
    #[prost(bool, optional, tag = "6", default = "true")]
    pub(crate) shell: Option<bool>,
    #[prost(string, optional, tag = "3")]
    pub(crate) value: Option<String>,
    #[prost(string, repeated, tag = "7")]
    pub(crate) arguments: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Environment {
    #[prost(message, repeated, tag = "1")]
    pub(crate) variables: Vec<Variable>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Variable {
    #[prost(string, required, tag = "1")]
    pub(crate) name: String,
    /// A secret, which this executor cannot resolve, has none.
    #[prost(string, optional, tag = "2")]
    pub(crate) value: Option<String>,
}

/// `CheckInfo.Type` and `HealthCheck.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum CheckType {
    Unknown = 0,
    Command = 1,
    Http = 2,
    Tcp = 3,
}

/// `CheckInfo`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CheckInfo {
    #[prost(enumeration = "CheckType", optional, tag = "1")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) command: Option<CheckCommand>,
    #[prost(message, optional, tag = "3")]
    pub(crate) http: Option<HttpCheck>,
    #[prost(message, optional, tag = "7")]
    pub(crate) tcp: Option<CheckTcp>,
    #[prost(double, optional, tag = "4", default = "15")]
    pub(crate) delay_seconds: Option<f64>,
    #[prost(double, optional, tag = "5", default = "10")]
    pub(crate) interval_seconds: Option<f64>,
    #[prost(double, optional, tag = "6", default = "20")]
    pub(crate) timeout_seconds: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CheckCommand {
    /// A [`Command`].
    #[prost(bytes = "vec", required, tag = "1")]
    pub(crate) command: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CheckTcp {
    #[prost(uint32, required, tag = "1")]
    pub(crate) port: u32,
}

/// `CheckInfo.Http` and `HealthCheck.HTTPCheckInfo`: the latter has more fields.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpCheck {
    #[prost(uint32, required, tag = "1")]
    pub(crate) port: u32,
    #[prost(string, optional, tag = "2")]
    pub(crate) path: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(crate) scheme: Option<String>,
    /// `NetworkInfo.Protocol`: 1 is IPv4, 2 is IPv6.
    #[prost(int32, optional, tag = "5")]
    pub(crate) protocol: Option<i32>,
}

/// `HealthCheck`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HealthCheck {
    #[prost(double, optional, tag = "2", default = "15")]
    pub(crate) delay_seconds: Option<f64>,
    #[prost(double, optional, tag = "3", default = "10")]
    pub(crate) interval_seconds: Option<f64>,
    #[prost(double, optional, tag = "4", default = "20")]
    pub(crate) timeout_seconds: Option<f64>,
    #[prost(uint32, optional, tag = "5", default = "3")]
    pub(crate) consecutive_failures: Option<u32>,
    #[prost(double, optional, tag = "6", default = "10")]
    pub(crate) grace_period_seconds: Option<f64>,
    #[prost(enumeration = "CheckType", optional, tag = "8")]
    pub(crate) r#type: Option<i32>,
    /// A [`Command`].
    #[prost(bytes = "vec", optional, tag = "7")]
    pub(crate) command: Option<Vec<u8>>,
    #[prost(message, optional, tag = "1")]
    pub(crate) http: Option<HttpCheck>,
    #[prost(message, optional, tag = "9")]
    pub(crate) tcp: Option<HealthTcp>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HealthTcp {
    #[prost(int32, optional, tag = "2")]
    pub(crate) protocol: Option<i32>,
    #[prost(uint32, required, tag = "1")]
    pub(crate) port: u32,
}

/// `TaskState`, as far as executors report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum TaskState {
    Starting = 0,
    Running = 1,
    Finished = 2,
    Failed = 3,
    Killed = 4,
    Killing = 8,
}

/// `TaskStatus.Reason`, as far as executors give one themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum Reason {
    CommandExecutorFailed = 0,
    ContainerLaunchFailed = 21,
    TaskCheckStatusUpdated = 28,
    TaskHealthCheckStatusUpdated = 29,
    MaxCompletionTimeReached = 33,
}

/// Of `TaskStatus`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskStatus {
    #[prost(message, required, tag = "1")]
    pub(crate) task_id: Id,
    #[prost(int32, required, tag = "2")]
    pub(crate) state: i32,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) data: Option<Vec<u8>>,
    #[prost(string, optional, tag = "4")]
    pub(crate) message: Option<String>,
    #[prost(message, optional, tag = "12")]
    pub(crate) labels: Option<Labels>,
    #[prost(int32, optional, tag = "9")]
    pub(crate) source: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    pub(crate) reason: Option<i32>,
    #[prost(message, optional, tag = "7")]
    pub(crate) executor_id: Option<Id>,
    #[prost(double, optional, tag = "6")]
    pub(crate) timestamp: Option<f64>,
    #[prost(bytes = "vec", optional, tag = "11")]
    pub(crate) uuid: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "8")]
    pub(crate) healthy: Option<bool>,
    #[prost(message, optional, tag = "15")]
    pub(crate) check_status: Option<CheckStatus>,
    #[prost(message, optional, tag = "13")]
    pub(crate) container_status: Option<ContainerStatus>,
    /// A `TaskResourceLimitation`.
    #[prost(bytes = "vec", optional, tag = "16")]
    pub(crate) limitation: Option<Vec<u8>>,
}

/// `Labels`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Labels {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<Label>,
}

/// `Label`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Label {
    #[prost(string, required, tag = "1")]
    pub(crate) key: String,
    #[prost(string, optional, tag = "2")]
    pub(crate) value: Option<String>,
}

/// `TaskStatus.SOURCE_EXECUTOR`: the only source an executor may name.
pub(crate) const SOURCE_EXECUTOR: i32 = 2;

/// Of `ContainerStatus`; the agent adds the rest.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerStatus {
    #[prost(message, optional, tag = "4")]
    pub(crate) container_id: Option<ContainerId>,
    #[prost(message, repeated, tag = "1")]
    pub(crate) network_infos: Vec<NetworkInfo>,
}

/// The addresses of a container.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct NetworkInfo {
    #[prost(message, repeated, tag = "5")]
    pub(crate) ip_addresses: Vec<IpAddress>,
}

/// Of `NetworkInfo`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct IpAddress {
    #[prost(string, optional, tag = "2")]
    pub(crate) ip_address: Option<String>,
}

/// `CheckStatusInfo`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct CheckStatus {
    #[prost(enumeration = "CheckType", optional, tag = "1")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, optional, tag = "2")]
    pub(crate) command: Option<CommandCheckStatus>,
    #[prost(message, optional, tag = "3")]
    pub(crate) http: Option<HttpCheckStatus>,
    #[prost(message, optional, tag = "4")]
    pub(crate) tcp: Option<TcpCheckStatus>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct CommandCheckStatus {
    #[prost(int32, optional, tag = "1")]
    pub(crate) exit_code: Option<i32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct HttpCheckStatus {
    #[prost(uint32, optional, tag = "1")]
    pub(crate) status_code: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct TcpCheckStatus {
    #[prost(bool, optional, tag = "1")]
    pub(crate) succeeded: Option<bool>,
}

/// `executor.Call.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum CallType {
    Unknown = 0,
    Subscribe = 1,
    Update = 2,
    Message = 3,
    Heartbeat = 4,
}

/// `executor.Call`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Call {
    #[prost(message, required, tag = "1")]
    pub(crate) executor_id: Id,
    #[prost(message, required, tag = "2")]
    pub(crate) framework_id: Id,
    #[prost(enumeration = "CallType", optional, tag = "3")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, optional, tag = "4")]
    pub(crate) subscribe: Option<Subscribe>,
    #[prost(message, optional, tag = "5")]
    pub(crate) update: Option<Update>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Subscribe {
    /// Each a [`Task`], whole.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(crate) unacknowledged_tasks: Vec<Vec<u8>>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) unacknowledged_updates: Vec<Update>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Update {
    #[prost(message, required, tag = "1")]
    pub(crate) status: TaskStatus,
}

/// `agent.Call.Type`, as far as executors make calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum AgentCallType {
    Unknown = 0,
    WaitNestedContainer = 15,
    KillNestedContainer = 16,
    LaunchNestedContainerSession = 17,
    RemoveNestedContainer = 21,
    LaunchContainer = 22,
}

/// Of `agent.Call`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AgentCall {
    #[prost(enumeration = "AgentCallType", optional, tag = "1")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, optional, tag = "7")]
    pub(crate) wait_nested_container: Option<OfContainer>,
    #[prost(message, optional, tag = "8")]
    pub(crate) kill_nested_container: Option<OfContainer>,
    #[prost(message, optional, tag = "9")]
    pub(crate) launch_nested_container_session: Option<LaunchSession>,
    #[prost(message, optional, tag = "12")]
    pub(crate) remove_nested_container: Option<OfContainer>,
    #[prost(message, optional, tag = "13")]
    pub(crate) launch_container: Option<LaunchContainer>,
}

/// `agent.Call.WaitNestedContainer`, `.RemoveNestedContainer` and, with a signal, `.KillNestedContainer`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OfContainer {
    #[prost(message, required, tag = "1")]
    pub(crate) container_id: ContainerId,
    #[prost(int32, optional, tag = "2")]
    pub(crate) signal: Option<i32>,
}

/// `agent.Call.LaunchContainer`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LaunchContainer {
    #[prost(message, required, tag = "1")]
    pub(crate) container_id: ContainerId,
    /// A `CommandInfo`.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) command: Option<Vec<u8>>,
    /// Each a `Resource`.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub(crate) resources: Vec<Vec<u8>>,
    /// A `ContainerInfo`.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(crate) container: Option<Vec<u8>>,
    /// Entries of the map, each as its bytes.
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub(crate) limits: Vec<Vec<u8>>,
}

/// Of `agent.Call.LaunchNestedContainerSession`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LaunchSession {
    #[prost(message, required, tag = "1")]
    pub(crate) container_id: ContainerId,
    /// A [`Command`].
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) command: Option<Vec<u8>>,
}

/// Of `agent.ProcessIO`: what a session writes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessIo {
    #[prost(message, optional, tag = "2")]
    pub(crate) data: Option<ProcessData>,
}

/// Of `agent.ProcessIO.Data`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessData {
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) data: Option<Vec<u8>>,
}

/// Of `agent.Response`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AgentResponse {
    #[prost(message, optional, tag = "14")]
    pub(crate) wait_nested_container: Option<Waited>,
}

/// `agent.Response.WaitNestedContainer`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Waited {
    #[prost(int32, optional, tag = "1")]
    pub(crate) exit_status: Option<i32>,
    /// A `TaskState` that the agent knows better.
    #[prost(int32, optional, tag = "2")]
    pub(crate) state: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) reason: Option<i32>,
    /// A `TaskResourceLimitation`.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(crate) limitation: Option<Vec<u8>>,
    #[prost(string, optional, tag = "5")]
    pub(crate) message: Option<String>,
}

/// `TaskInfo.resources` as bytes, to hand on; see [`Task`] for the rest.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TaskResources {
    #[prost(bytes = "vec", repeated, tag = "4")]
    pub(crate) resources: Vec<Vec<u8>>,
}

/// Of `Resource`: the volume that a disk is mounted as.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct DiskResource {
    #[prost(message, optional, tag = "7")]
    pub(crate) disk: Option<Disk>,
}

/// Of `Resource.DiskInfo`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Disk {
    #[prost(message, optional, tag = "2")]
    pub(crate) volume: Option<Volume>,
}

/// The parts of `ContainerInfo` that the default executor reads and changes.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Container {
    #[prost(int32, optional, tag = "1")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) volumes: Vec<Volume>,
    #[prost(message, optional, tag = "8")]
    pub(crate) linux_info: Option<LinuxInfo>,
}

/// `ContainerInfo.MESOS`.
pub(crate) const CONTAINER_MESOS: i32 = 2;

/// Of `LinuxInfo`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LinuxInfo {
    #[prost(bool, optional, tag = "8", default = "true")]
    pub(crate) share_cgroups: Option<bool>,
}

/// Of `Volume`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Volume {
    /// 1 is RW, 2 is RO.
    #[prost(int32, required, tag = "3")]
    pub(crate) mode: i32,
    #[prost(string, required, tag = "1")]
    pub(crate) container_path: String,
    #[prost(message, optional, tag = "5")]
    pub(crate) source: Option<VolumeSource>,
}

/// Of `Volume.Source`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct VolumeSource {
    #[prost(int32, optional, tag = "1")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, optional, tag = "3")]
    pub(crate) sandbox_path: Option<SandboxPath>,
}

/// `Volume.Source.SandboxPath`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SandboxPath {
    #[prost(int32, optional, tag = "1")]
    pub(crate) r#type: Option<i32>,
    #[prost(string, required, tag = "2")]
    pub(crate) path: String,
}

impl Volume {
    /// A volume at `path` that is what the executor's sandbox has at `path`.
    pub(crate) fn of_parent(path: &str, mode: i32) -> Volume {
        /// `Volume.Source.SANDBOX_PATH` and `Volume.Source.SandboxPath.PARENT`: both have the number 2.
        const NUMBER: i32 = 2;
        let sandbox_path = SandboxPath { r#type: Some(NUMBER), path: path.to_owned() };
        let source = VolumeSource { r#type: Some(NUMBER), sandbox_path: Some(sandbox_path) };
        Volume { mode, container_path: path.to_owned(), source: Some(source) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use protos::mesos::v1;

    use super::*;

    /// What a reader of the parts sees of a whole message.
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
            state: TaskState::Killing as i32,
            data: Some(vec![1]),
            labels: Some(Labels { labels: vec![Label { key: "k".into(), value: None }] }),
            message: Some("m".into()),
            source: Some(SOURCE_EXECUTOR),
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
