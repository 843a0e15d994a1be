//! Checks of an agent's registration (docs/mesos/libprocess.md). An invalid one is ignored, not answered.

use base::{AgentId, ExecutorId, FrameworkId, TaskId};
use protos::mesos::internal::{RegisterSlaveMessage, ReregisterSlaveMessage};
use protos::mesos::{MasterInfo, Resource, SlaveInfo, Uuid};
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::sizes;
use crate::config::Config;

/// Checks the registration of a new agent: its resources are valid, and it has no id.
pub(crate) fn registration(message: &RegisterSlaveMessage) -> Result<(), String> {
    resource_version(message.resource_version_uuid.as_ref())?;
    agent_info(&message.slave, &message.checkpointed_resources)
}

/// Checks a reregistration: the agent's info as above, and that its lists are consistent. Returns the agent's id.
pub(crate) fn reregistration(message: &ReregisterSlaveMessage) -> Result<AgentId, String> {
    let id = message.slave.id.as_ref().ok_or("it names no agent id")?;
    let agent = AgentId::of(&id.value).map_err(|why| format!("agent id: {why}"))?;
    resource_version(message.resource_version_uuid.as_ref())?;
    agent_info(&message.slave, &message.checkpointed_resources)?;
    let mut frameworks = with_room(message.frameworks.len());
    for info in &message.frameworks {
        let id = info.id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
        FrameworkId::check(id).map_err(|why| format!("framework id: {why}"))?;
        if !frameworks.insert(id) {
            return Err(format!("Framework has a duplicate FrameworkID: '{id}'"));
        }
    }
    let mut executors = with_room(message.executor_infos.len());
    for info in &message.executor_infos {
        let framework = info.framework_id.as_ref().map(|id| id.value.as_str()).unwrap_or_default();
        let id = info.executor_id.value.as_str();
        ExecutorId::check(id).map_err(|why| format!("executor id: {why}"))?;
        if !frameworks.contains(framework) {
            return Err(format!("Executor has an invalid FrameworkID '{framework}'"));
        }
        if !executors.insert((framework, id)) {
            return Err(format!("Framework '{framework}' has a duplicate ExecutorID: '{id}'"));
        }
        valid(&info.resources)?;
    }
    let mut tasks = with_room(message.tasks.len());
    // Most tasks of an agent have the same resources as the task before them.
    let mut last: &[Resource] = &[];
    for task in &message.tasks {
        let (framework, id) = (task.framework_id.value.as_str(), task.task_id.value.as_str());
        TaskId::check(id).map_err(|why| format!("task id: {why}"))?;
        if !frameworks.contains(framework) {
            return Err(format!("Task has an invalid FrameworkID '{framework}'"));
        }
        if task.slave_id.value != *agent.as_str() {
            return Err(format!("Task has an invalid SlaveID '{}'", task.slave_id.value));
        }
        if !tasks.insert((framework, id)) {
            return Err(format!("Framework '{framework}' has a duplicate TaskID: '{id}'"));
        }
        if task.resources != last {
            valid(&task.resources)?;
            last = &task.resources;
        }
    }
    Ok(agent)
}

fn with_room<T>(count: usize) -> FxHashSet<T> {
    FxHashSet::with_capacity_and_hasher(count, FxBuildHasher)
}

/// Checks that a resource version is a UUID. An agent receives its version with each operation, and Mesos's decoder
/// crashes on an invalid one.
pub(crate) fn resource_version(version: Option<&Uuid>) -> Result<(), String> {
    let checked = version.map_or(Ok(()), |version| base::valid_uuid(&version.value).map(drop));
    checked.map_err(|why| format!("its resource version: {why}"))
}

fn agent_info(info: &SlaveInfo, checkpointed: &[Resource]) -> Result<(), String> {
    if let Some(id) = &info.id {
        AgentId::check(&id.value).map_err(|why| format!("agent id: {why}"))?;
    }
    sizes::agent(info)?;
    valid(&info.resources)?;
    if !info.checkpoint() && !checkpointed.is_empty() {
        return Err("Checkpointed resources provided when checkpointing is not enabled".to_owned());
    }
    valid(checkpointed)
}

fn valid(list: &[Resource]) -> Result<(), String> {
    resources::validate(list).map_err(|why| why.to_string())
}

/// Checks the version and the fault domain of an agent.
pub(crate) fn agent_fits(
    info: &SlaveInfo,
    version: Option<&str>,
    master: &MasterInfo,
    config: &Config,
) -> Result<(), String> {
    let version = version.ok_or("it has no version")?;
    let old = is_before_1_0(version).ok_or_else(|| format!("version '{version}' is not a semantic version"))?;
    if old {
        return Err(format!("version {version} is older than 1.0.0"));
    }
    if info.domain.is_some() && master.domain.is_none() {
        return Err("it has a fault domain, and this master has none".to_owned());
    }
    if info.domain.is_none() && config.require_agent_domain {
        return Err("it has no fault domain, and --require_agent_domain is set".to_owned());
    }
    Ok(())
}

/// Returns whether a version is before 1.0.0, as `1.0.0-dev` is. Missing components are 0 (docs/mesos/json.md). Returns
/// `None` if the text is not a version.
fn is_before_1_0(version: &str) -> Option<bool> {
    let (core, build) = version.split_once('+').unwrap_or((version, "x"));
    let (core, prerelease) = core.split_once('-').map_or((core, None), |(core, rest)| (core, Some(rest)));
    if build.is_empty() || prerelease.is_some_and(str::is_empty) {
        return None;
    }
    let mut numbers = [0u64; 3];
    for (at, part) in core.split('.').enumerate() {
        let is_decimal = part.bytes().all(|byte| byte.is_ascii_digit());
        *numbers.get_mut(at)? = part.parse().ok().filter(|_| is_decimal)?;
    }
    Some(numbers[0] == 0 || (numbers == [1, 0, 0] && prerelease.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos;

    #[test]
    fn versions() {
        for (text, old) in [
            ("1.11.0", Some(false)),
            ("1.0.0", Some(false)),
            ("1.0.0-dev", Some(true)),
            ("0.28.2", Some(true)),
            ("1.12.0-rc1+git.5", Some(false)),
            ("1.11", Some(false)),
            ("1", Some(false)),
            ("0.9", Some(true)),
            ("01.0.0", Some(false)),
            ("1.0.0.0", None),
            ("+1.0.0", None),
            ("v1.0", None),
            ("1..0", None),
            ("abc", None),
            ("1.0.0-", None),
            ("", None),
        ] {
            assert_eq!(is_before_1_0(text), old, "{text}");
        }
    }

    #[test]
    fn a_task_listed_twice_is_refused() {
        let id = |value: &str| mesos::FrameworkId { value: value.into() };
        let task = mesos::Task {
            framework_id: id("f"),
            task_id: mesos::TaskId { value: "t".into() },
            slave_id: mesos::SlaveId { value: "a".into() },
            ..Default::default()
        };
        let mut message = ReregisterSlaveMessage {
            slave: SlaveInfo { id: Some(mesos::SlaveId { value: "a".into() }), ..Default::default() },
            frameworks: vec![mesos::FrameworkInfo { id: Some(id("f")), ..Default::default() }],
            tasks: vec![task.clone()],
            ..Default::default()
        };
        assert!(reregistration(&message).is_ok());
        message.tasks.push(task);
        assert_eq!(reregistration(&message).unwrap_err(), "Framework 'f' has a duplicate TaskID: 't'");
        message.frameworks.clear();
        assert_eq!(reregistration(&message).unwrap_err(), "Task has an invalid FrameworkID 'f'");
    }
}
