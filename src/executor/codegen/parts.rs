//! The parts of Mesos's v1 messages that an executor reads or writes, by the name of the Rust type.
//!
//! It lists names only: numbers, types and defaults come from the descriptors.

/// A Rust type, the messages or the enum of `mesos.v1` that it reads and writes, and the fields or values that it has.
///
/// A field of a message or enum type is followed by the name of its part, or by `bytes`: a message that is passed on as
/// a whole is kept in its encoded form. An enum without a part is its number.
pub(crate) type Part = (&'static str, &'static str, &'static str);

/// Parts for `src/messages.rs`.
pub(crate) const EXECUTOR: &[Part] = &[
    ("Id", "ExecutorID FrameworkID TaskID", "value"),
    ("ContainerId", "ContainerID", "value parent:ContainerId"),
    (
        "EventType",
        "executor.Event.Type",
        "UNKNOWN SUBSCRIBED LAUNCH KILL ACKNOWLEDGED MESSAGE ERROR SHUTDOWN LAUNCH_GROUP HEARTBEAT",
    ),
    (
        "Event",
        "executor.Event",
        "type:EventType subscribed:Subscribed acknowledged:Acknowledged launch:Launch launch_group:LaunchGroup kill:Kill \
         error:ErrorText",
    ),
    ("Subscribed", "executor.Event.Subscribed", "framework_info:Framework container_id:ContainerId"),
    ("Framework", "FrameworkInfo", "capabilities:Capability"),
    ("Capability", "FrameworkInfo.Capability", "type"),
    ("CapabilityType", "FrameworkInfo.Capability.Type", "TASK_KILLING_STATE"),
    ("Acknowledged", "executor.Event.Acknowledged", "task_id:Id uuid"),
    ("Launch", "executor.Event.Launch", "task:bytes"),
    ("LaunchGroup", "executor.Event.LaunchGroup", "task_group:TaskGroup"),
    ("TaskGroup", "TaskGroupInfo", "tasks:bytes"),
    ("Kill", "executor.Event.Kill", "task_id:Id kill_policy:KillPolicy"),
    ("ErrorText", "executor.Event.Error", "message"),
    ("KillPolicy", "KillPolicy", "grace_period:Nanoseconds"),
    ("Nanoseconds", "DurationInfo", "nanoseconds"),
    (
        "Task",
        "TaskInfo",
        "task_id:Id resources:Resource command:bytes container:bytes health_check:HealthCheck check:CheckInfo \
         kill_policy:KillPolicy max_completion_time:Nanoseconds limits:bytes",
    ),
    ("TaskResources", "TaskInfo", "resources:bytes"),
    ("Resource", "Resource", "allocation_info:AllocationInfo"),
    ("AllocationInfo", "Resource.AllocationInfo", "role"),
    ("Command", "CommandInfo", "user environment:Environment shell value arguments"),
    ("Environment", "Environment", "variables:Variable"),
    ("Variable", "Environment.Variable", "name value"),
    ("CheckType", "CheckInfo.Type HealthCheck.Type", "UNKNOWN COMMAND HTTP TCP"),
    (
        "CheckInfo",
        "CheckInfo",
        "type:CheckType command:CheckCommand http:HttpCheck tcp:CheckTcp delay_seconds interval_seconds timeout_seconds",
    ),
    ("CheckCommand", "CheckInfo.Command", "command:bytes"),
    ("CheckTcp", "CheckInfo.Tcp", "port"),
    ("HttpCheck", "CheckInfo.Http HealthCheck.HTTPCheckInfo", "port path scheme protocol"),
    ("Protocol", "NetworkInfo.Protocol", "IPv6"),
    (
        "HealthCheck",
        "HealthCheck",
        "delay_seconds interval_seconds timeout_seconds consecutive_failures grace_period_seconds type:CheckType \
         command:bytes http:HttpCheck tcp:HealthTcp",
    ),
    ("HealthTcp", "HealthCheck.TCPCheckInfo", "protocol port"),
    ("TaskState", "TaskState", "TASK_STARTING TASK_RUNNING TASK_FINISHED TASK_FAILED TASK_KILLED TASK_KILLING"),
    (
        "Reason",
        "TaskStatus.Reason",
        "REASON_COMMAND_EXECUTOR_FAILED REASON_CONTAINER_LAUNCH_FAILED REASON_TASK_CHECK_STATUS_UPDATED \
         REASON_TASK_HEALTH_CHECK_STATUS_UPDATED REASON_MAX_COMPLETION_TIME_REACHED",
    ),
    ("Source", "TaskStatus.Source", "SOURCE_EXECUTOR"),
    (
        "TaskStatus",
        "TaskStatus",
        "task_id:Id state data message labels:Labels source reason executor_id:Id timestamp uuid healthy \
         check_status:CheckStatus container_status:ContainerStatus limitation:bytes",
    ),
    ("Labels", "Labels", "labels:Label"),
    ("Label", "Label", "key value"),
    ("ContainerStatus", "ContainerStatus", "container_id:ContainerId network_infos:NetworkInfo"),
    ("NetworkInfo", "NetworkInfo", "ip_addresses:IpAddress"),
    ("IpAddress", "NetworkInfo.IPAddress", "ip_address"),
    (
        "CheckStatus",
        "CheckStatusInfo",
        "type:CheckType command:CommandCheckStatus http:HttpCheckStatus tcp:TcpCheckStatus",
    ),
    ("CommandCheckStatus", "CheckStatusInfo.Command", "exit_code"),
    ("HttpCheckStatus", "CheckStatusInfo.Http", "status_code"),
    ("TcpCheckStatus", "CheckStatusInfo.Tcp", "succeeded"),
    ("CallType", "executor.Call.Type", "UNKNOWN SUBSCRIBE UPDATE MESSAGE HEARTBEAT"),
    ("Call", "executor.Call", "executor_id:Id framework_id:Id type:CallType subscribe:Subscribe update:Update"),
    ("Subscribe", "executor.Call.Subscribe", "unacknowledged_tasks:bytes unacknowledged_updates:Update"),
    ("Update", "executor.Call.Update", "status:TaskStatus"),
    (
        "AgentCallType",
        "agent.Call.Type",
        "UNKNOWN WAIT_NESTED_CONTAINER KILL_NESTED_CONTAINER LAUNCH_NESTED_CONTAINER_SESSION REMOVE_NESTED_CONTAINER \
         LAUNCH_CONTAINER",
    ),
    (
        "AgentCall",
        "agent.Call",
        "type:AgentCallType wait_nested_container:OfContainer kill_nested_container:OfContainer \
         launch_nested_container_session:LaunchSession remove_nested_container:OfContainer \
         launch_container:LaunchContainer",
    ),
    (
        "OfContainer",
        "agent.Call.WaitNestedContainer agent.Call.KillNestedContainer agent.Call.RemoveNestedContainer",
        "container_id:ContainerId signal",
    ),
    (
        "LaunchContainer",
        "agent.Call.LaunchContainer",
        "container_id:ContainerId command:bytes resources:bytes container:bytes limits:bytes",
    ),
    ("LaunchSession", "agent.Call.LaunchNestedContainerSession", "container_id:ContainerId command:bytes"),
    ("ProcessIo", "agent.ProcessIO", "data:ProcessData"),
    ("ProcessData", "agent.ProcessIO.Data", "data"),
    ("AgentResponse", "agent.Response", "wait_nested_container:Waited"),
    ("Waited", "agent.Response.WaitNestedContainer", "exit_status state reason limitation:bytes message"),
    ("DiskResource", "Resource", "disk:Disk"),
    ("Disk", "Resource.DiskInfo", "volume:Volume"),
    ("Container", "ContainerInfo", "type volumes:Volume linux_info:LinuxInfo"),
    ("ContainerType", "ContainerInfo.Type", "MESOS"),
    ("LinuxInfo", "LinuxInfo", "share_cgroups"),
    ("Volume", "Volume", "mode container_path source:VolumeSource"),
    ("VolumeSource", "Volume.Source", "type sandbox_path:SandboxPath"),
    ("VolumeSourceType", "Volume.Source.Type", "SANDBOX_PATH"),
    ("SandboxPath", "Volume.Source.SandboxPath", "type path"),
    ("SandboxPathType", "Volume.Source.SandboxPath.Type", "PARENT"),
];

/// Parts for `src/docker/messages.rs`.
pub(crate) const DOCKER: &[Part] = &[
    ("Task", "TaskInfo", "resources:Resource container:Container limits:Scalar"),
    ("Scalar", "Value.Scalar", "value"),
    ("Ranges", "Value.Ranges", "range:Range"),
    ("Range", "Value.Range", "begin end"),
    ("Resource", "Resource", "name scalar:Scalar ranges:Ranges disk:Disk"),
    ("Disk", "Resource.DiskInfo", "volume:Volume"),
    ("Container", "ContainerInfo", "type volumes:Volume docker:Docker hostname network_infos:Network"),
    ("ContainerType", "ContainerInfo.Type", "DOCKER"),
    ("Network", "NetworkInfo", "name"),
    ("Volume", "Volume", "mode container_path host_path source:Source"),
    ("Mode", "Volume.Mode", "RO"),
    ("Source", "Volume.Source", "docker_volume:DockerVolume host_path:HostPath sandbox_path:SandboxPath"),
    ("DockerVolume", "Volume.Source.DockerVolume", "driver name"),
    ("HostPath", "Volume.Source.HostPath", "path"),
    ("SandboxPath", "Volume.Source.SandboxPath", "path"),
    (
        "Docker",
        "ContainerInfo.DockerInfo",
        "image network port_mappings:PortMapping privileged parameters:Parameter force_pull_image",
    ),
    ("NetworkMode", "ContainerInfo.DockerInfo.Network", "HOST NONE USER"),
    ("PortMapping", "ContainerInfo.DockerInfo.PortMapping", "host_port container_port protocol"),
    ("Parameter", "Parameter", "key value"),
];
