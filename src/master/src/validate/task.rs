//! Validation of tasks: the rules of docs/mesos/tasks.md, in their order.

use std::borrow::Cow;

use base::{ExecutorId, TaskId};
use protos::mesos::TaskInfo;
use resources::{Name, Resources, validate_list};

use super::{checks, command, container, executor, sizes};
use crate::state::{Agent, Framework, FrameworkKey};

/// Framework, agent and offers for which a task is checked.
pub(crate) struct Launch<'a> {
    pub framework: &'a Framework,
    pub key: FrameworkKey,
    pub agent: &'a Agent,
    /// State that makes the task's id unavailable: `active` or `unreachable`; `None` if the id is free.
    pub in_use: Option<&'static str>,
    /// Resources that are left of the offers.
    pub available: &'a Resources,
    /// Resources of the framework's last task. Most often the next task has the same.
    pub last: Option<&'a Resources>,
}

/// Resources of a valid task.
#[derive(Debug)]
pub(crate) struct Needs {
    pub resources: Resources,
    /// Id and resources of its executor, if the task names one.
    pub executor: Option<(ExecutorId, Resources)>,
    /// Whether the agent must start a new executor for the task, either the named one or one that it generates.
    pub launch_executor: bool,
}

/// Checks a task of a LAUNCH with optional fields filled in.
///
/// # Errors
/// The first rule that the task breaks, worded as in the TASK_ERROR.
pub(crate) fn task(launch: &Launch<'_>, task: &TaskInfo) -> Result<Needs, String> {
    identity(task, launch.in_use)?;
    let resources = own(launch.agent, task, launch.last)?;
    match (&task.command, &task.executor) {
        (Some(_), None) | (None, Some(_)) => {}
        _ => {
            let words = "Task should have at least one (but not both) of CommandInfo or ExecutorInfo present";
            return Err(words.to_owned());
        }
    }
    let needs = match &task.executor {
        None => Needs { resources, executor: None, launch_executor: true },
        Some(info) => {
            let checked = executor::executor(info, launch.framework, launch.key, launch.agent)?;
            if info.r#type() == protos::mesos::executor_info::Type::Default {
                return Err("'ExecutorInfo.type' must be 'CUSTOM'".to_owned());
            }
            Needs { resources, executor: Some((checked.id, checked.resources)), launch_executor: !checked.known }
        }
    };
    let executor = needs.executor.as_ref().map(|(_, resources)| resources);
    if let Some(executor) = executor {
        one_kind(&(&needs.resources + executor))
            .map_err(|why| format!("Task and its executor use invalid resources: {why}"))?;
    }
    let total = match executor.filter(|_| needs.launch_executor) {
        Some(executor) => Cow::Owned(&needs.resources + executor),
        None => Cow::Borrowed(&needs.resources),
    };
    match launch.available.contains(&total) {
        true => Ok(needs),
        false => Err(format!(
            "Total resources {total} required by task and its executor is more than available {}",
            launch.available
        )),
    }
}

/// Checks the rules that apply to tasks of groups as well: all but those about executors and offers. Returns the task's
/// resources. `last` are the resources of a task that were checked before.
pub(crate) fn own(agent: &Agent, task: &TaskInfo, last: Option<&Resources>) -> Result<Resources, String> {
    sizes::task(task)?;
    if task.slave_id.value != agent.id.as_str() {
        return Err(format!("Task uses invalid agent {} while agent {} is expected", task.slave_id.value, agent.id));
    }
    let grace = task.kill_policy.as_ref().and_then(|policy| policy.grace_period);
    if grace.is_some_and(|grace| grace.nanoseconds < 0) {
        return Err("Task's 'kill_policy.grace_period' must be non-negative".to_owned());
    }
    if task.max_completion_time.is_some_and(|time| time.nanoseconds < 0) {
        return Err("Task's 'max_completion_time' must be non-negative".to_owned());
    }
    if let Some(check) = &task.check {
        checks::check(check).map_err(|why| format!("Task uses invalid check: {why}"))?;
    }
    if let Some(check) = &task.health_check {
        checks::health_check(check).map_err(|why| format!("Task uses invalid health check: {why}"))?;
    }
    if task.resources.is_empty() {
        return Err("Task uses no resources".to_owned());
    }
    let resources = match last.filter(|last| last.is_written_as(&task.resources)) {
        Some(last) => last.clone(),
        None => listed(task).map_err(|why| format!("Task uses invalid resources: {why}"))?,
    };
    if resources.is_empty() {
        // All listed amounts are 0, or round to it.
        return Err("Task uses no resources".to_owned());
    }
    if let Some(info) = &task.command {
        command::command(info).map_err(|why| format!("Task's `CommandInfo` is invalid: {why}"))?;
    }
    if let Some(info) = &task.container {
        container::container(info).map_err(|why| format!("Task's `ContainerInfo` is invalid: {why}"))?;
    }
    limits(agent, task, &resources)?;
    Ok(resources)
}

/// Checks the list of a task's resources, and returns them.
fn listed(task: &TaskInfo) -> Result<Resources, String> {
    let resources = validate_list(&task.resources).map_err(|why| why.to_string())?;
    one_kind(&resources)?;
    Ok(resources)
}

/// Checks that the task's id is well-formed and not in use.
pub(crate) fn identity(task: &TaskInfo, in_use: Option<&'static str>) -> Result<(), String> {
    let id = &task.task_id.value;
    TaskId::check(id).map_err(|why| why.to_string())?;
    match in_use {
        None => Ok(()),
        Some("unreachable") => Err(format!("Task reuses the ID of unreachable task '{id}'")),
        Some(_) => Err(format!("Task has duplicate ID: {id}")),
    }
}

/// Checks that resources have one allocation role, no name both revocable and not, and no volume twice (RES-24).
pub(crate) fn one_kind(resources: &Resources) -> Result<(), String> {
    resources.single_allocation_role().map_err(|why| why.to_string())?;
    resources.check_revocable_mix().map_err(|why| why.to_string())?;
    resources.check_unique_persistence_ids().map_err(|why| why.to_string())
}

/// Checks resource limits: only for cpus and mem, only for requested resources, and not below the request (TSK-18).
fn limits(agent: &Agent, task: &TaskInfo, resources: &Resources) -> Result<(), String> {
    if task.limits.is_empty() {
        return Ok(());
    }
    if !agent.capabilities.task_resource_limits {
        return Err("Agent is not capable of handling task resource limits".to_owned());
    }
    for (name, limit) in &task.limits {
        let known = Name::from(name.as_str());
        if !matches!(known, Name::Cpus | Name::Mem) {
            return Err(format!("Resource limits may only be set for 'cpus' and 'mem', not for '{name}'"));
        }
        let Some(request) = resources.get_scalar(&known) else {
            return Err(format!("Resource limit for '{name}' is set, but no such resource is requested"));
        };
        if limit.value.is_nan() || limit.value < request.to_f64() {
            return Err(format!("The limit of '{name}' ({}) is below the request ({request})", limit.value));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::{self, CommandInfo, DurationInfo, KillPolicy, environment};

    fn scalar(name: &str, amount: f64) -> mesos::Resource {
        let mut resource = mesos::Resource { name: name.into(), ..Default::default() };
        resource.set_type(mesos::value::Type::Scalar);
        resource.scalar = Some(mesos::value::Scalar { value: amount });
        resource.allocation_info = Some(mesos::resource::AllocationInfo { role: Some("*".into()) });
        resource
    }

    fn good() -> TaskInfo {
        TaskInfo {
            task_id: mesos::TaskId { value: "t".into() },
            slave_id: mesos::SlaveId { value: "a".into() },
            resources: vec![scalar("cpus", 1.0)],
            command: Some(CommandInfo { value: Some("true".to_owned()), ..Default::default() }),
            ..Default::default()
        }
    }

    /// Checks a task on an agent and in a framework of a script.
    fn checked(task: &TaskInfo) -> Result<(), String> {
        let mut script = crate::testing::Script::new();
        script.line("reregister x id=a cpus:4;mem:4096");
        script.line("subscribe f");
        let snapshot = script.master().snapshot();
        let (Some(agent), Some(framework)) = (snapshot.agents.values().next(), snapshot.frameworks.values().next())
        else {
            panic!("the script has made both");
        };
        let available = agent.total.allocated(&resources::Role::star());
        let launch = Launch { framework, key: FrameworkKey(0), agent, in_use: None, available: &available, last: None };
        super::task(&launch, task).map(|_| ())
    }

    #[test]
    fn the_rules_in_their_order() {
        assert_eq!(checked(&good()), Ok(()));
        let negative = DurationInfo { nanoseconds: -1 };
        let unset = environment::Variable { name: "A".to_owned(), ..Default::default() };
        let environment = Some(mesos::Environment { variables: vec![unset] });
        let custom = mesos::ExecutorInfo { executor_id: mesos::ExecutorId { value: "e".into() }, ..Default::default() };
        let http = mesos::HealthCheck { r#type: Some(mesos::health_check::Type::Http as i32), ..Default::default() };
        let volume = mesos::Volume { container_path: "v".to_owned(), ..Default::default() };
        let container = mesos::ContainerInfo { volumes: vec![volume], ..Default::default() };
        let limit = |name: &str, value| [(name.to_owned(), mesos::value::Scalar { value })].into();
        let slave_id = mesos::SlaveId { value: "b".into() };
        let policy = KillPolicy { grace_period: Some(negative) };
        for (task, words) in [
            (TaskInfo { task_id: mesos::TaskId::default(), ..good() }, "ID must not be empty"),
            (TaskInfo { slave_id, ..good() }, "Task uses invalid agent b while agent a is expected"),
            (TaskInfo { name: "x".repeat(8193), ..good() }, "'TaskInfo.name' has 8193 bytes, and the limit is 8192"),
            (
                TaskInfo { kill_policy: Some(policy), ..good() },
                "Task's 'kill_policy.grace_period' must be non-negative",
            ),
            (
                TaskInfo { max_completion_time: Some(negative), ..good() },
                "Task's 'max_completion_time' must be non-negative",
            ),
            (
                TaskInfo { health_check: Some(Box::new(http)), ..good() },
                "Task uses invalid health check: Expecting 'http' to be set for http health check",
            ),
            (TaskInfo { resources: vec![], ..good() }, "Task uses no resources"),
            (TaskInfo { resources: vec![scalar("cpus", 0.0)], ..good() }, "Task uses no resources"),
            (
                TaskInfo { resources: vec![scalar("cpus", 1e-9), scalar("mem", 0.000_499)], ..good() },
                "Task uses no resources",
            ),
            (
                TaskInfo { command: Some(CommandInfo { environment, ..Default::default() }), ..good() },
                "Task's `CommandInfo` is invalid: Environment variable 'A' of type 'VALUE' must have a value set",
            ),
            (
                TaskInfo { container: Some(Box::new(container)), ..good() },
                "Task's `ContainerInfo` is invalid: Invalid volume: Exactly one of 'host_path', 'image' and 'source' \
                 must be set",
            ),
            (
                TaskInfo { limits: limit("disk", 1.0), ..good() },
                "Resource limits may only be set for 'cpus' and 'mem', not for 'disk'",
            ),
            (
                TaskInfo { limits: limit("mem", 1.0), ..good() },
                "Resource limit for 'mem' is set, but no such resource is requested",
            ),
            (
                TaskInfo { limits: limit("cpus", f64::NAN), ..good() },
                "The limit of 'cpus' (NaN) is below the request (1)",
            ),
            (
                TaskInfo { executor: Some(Box::new(custom.clone())), ..good() },
                "Task should have at least one (but not both) of CommandInfo or ExecutorInfo present",
            ),
            (
                TaskInfo { command: None, executor: Some(Box::new(custom)), ..good() },
                "'ExecutorInfo.command' must be set for 'CUSTOM' executor",
            ),
            (
                TaskInfo { resources: vec![scalar("cpus", 5.0)], ..good() },
                "Total resources cpus(allocated: *):5 required by task and its executor is more than available \
                 cpus(allocated: *):4; mem(allocated: *):4096",
            ),
        ] {
            assert_eq!(checked(&task), Err(words.to_owned()));
        }
        assert_eq!(checked(&TaskInfo { limits: limit("cpus", f64::INFINITY), ..good() }), Ok(()));
        // As in Mesos, an amount that rounds to 0 is ignored beside other resources.
        assert_eq!(
            checked(&TaskInfo { resources: vec![scalar("cpus", 0.0), scalar("mem", 0.0005)], ..good() }),
            Ok(())
        );
    }

    #[test]
    fn ids_in_use() {
        assert_eq!(identity(&good(), Some("active")), Err("Task has duplicate ID: t".to_owned()));
        assert_eq!(
            identity(&good(), Some("unreachable")),
            Err("Task reuses the ID of unreachable task 't'".to_owned())
        );
    }
}
