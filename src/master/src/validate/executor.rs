//! Validation of executors (TSK-20).

use base::ExecutorId;
use protos::mesos::ExecutorInfo;
use protos::mesos::executor_info::Type;
use resources::{Resources, validate_list};

use super::{command, container, sizes, task};
use crate::state::{Agent, Framework, FrameworkKey};

/// A valid executor, with its id and resources.
pub(crate) struct Checked {
    pub id: ExecutorId,
    pub resources: Resources,
    /// Whether the executor runs on the agent already.
    pub known: bool,
}

/// Checks an executor with its allocation filled in.
///
/// # Errors
/// The first rule that the executor breaks.
pub(crate) fn executor(
    info: &ExecutorInfo,
    framework: &Framework,
    key: FrameworkKey,
    agent: &Agent,
) -> Result<Checked, String> {
    let id = ExecutorId::new(&info.executor_id.value).map_err(|why| format!("Executor's id is invalid: {why}"))?;
    sizes::executor(info)?;
    kind(info)?;
    let owner = info.framework_id.as_ref().map(|id| id.value.as_str());
    if owner != Some(framework.id.as_str()) {
        return Err(format!(
            "ExecutorInfo has an invalid FrameworkID (Actual: {} vs Expected: {})",
            owner.unwrap_or_default(),
            framework.id
        ));
    }
    if info.shutdown_grace_period.is_some_and(|period| period.nanoseconds < 0) {
        return Err("ExecutorInfo's 'shutdown_grace_period' must be non-negative".to_owned());
    }
    let resources = validate_list(&info.resources).map_err(|why| format!("Executor uses invalid resources: {why}"))?;
    if resources.is_empty() && !info.resources.is_empty() {
        // It may list no resources, but those that it lists must not all round to 0.
        return Err("Executor uses no resources".to_owned());
    }
    task::one_kind(&resources).map_err(|why| format!("Executor uses invalid resources: {why}"))?;
    if !resources.shared().is_empty() {
        return Err("Executor resources must not contain shared resources".to_owned());
    }
    if let Some(info) = &info.command {
        command::command(info).map_err(|why| format!("Executor's `CommandInfo` is invalid: {why}"))?;
    }
    if let Some(info) = &info.container {
        container::container(info).map_err(|why| format!("Executor's `ContainerInfo` is invalid: {why}"))?;
        if info.linux_info.as_ref().is_some_and(|linux| linux.share_cgroups == Some(true)) {
            return Err("The 'share_cgroups' field cannot be set on executor containers".to_owned());
        }
    }
    let known = agent.executor(key, id.as_str());
    if let Some(known) = known
        && !same(&known.info, &known.resources, info, &resources)
    {
        return Err(format!("ExecutorInfo is not compatible with existing ExecutorInfo with same ExecutorID '{id}'"));
    }
    Ok(Checked { known: known.is_some(), id, resources })
}

fn kind(info: &ExecutorInfo) -> Result<(), String> {
    match info.r#type.map(|number| Type::try_from(number).unwrap_or(Type::Unknown)) {
        Some(Type::Unknown) => Err("Unknown executor type".to_owned()),
        Some(Type::Default) => match (&info.command, &info.container) {
            (Some(_), _) => Err("'ExecutorInfo.command' must not be set for 'DEFAULT' executor".to_owned()),
            (None, Some(container)) if container.r#type() != protos::mesos::container_info::Type::Mesos => {
                Err("'ExecutorInfo.container.type' must be 'MESOS' for 'DEFAULT' executor".to_owned())
            }
            (None, Some(container)) if container.mesos.as_ref().is_some_and(|mesos| mesos.image.is_some()) => {
                Err("'ExecutorInfo.container.mesos.image' must not be set for 'DEFAULT' executor".to_owned())
            }
            _ => Ok(()),
        },
        Some(Type::Custom) | None => match &info.command {
            Some(_) => Ok(()),
            None => Err("'ExecutorInfo.command' must be set for 'CUSTOM' executor".to_owned()),
        },
    }
}

/// Returns whether two executors are equal, apart from the order of their resources.
fn same(one: &ExecutorInfo, its: &Resources, other: &ExecutorInfo, theirs: &Resources) -> bool {
    let bare = |info: &ExecutorInfo| ExecutorInfo { resources: Vec::new(), ..info.clone() };
    its == theirs && bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::container_info::{self, MesosInfo};
    use protos::mesos::{CommandInfo, ContainerInfo, Image};

    #[test]
    fn kinds_have_what_they_need_and_no_more() {
        let of = |kind: Option<Type>, command: bool, container: Option<ContainerInfo>| {
            let command = command.then(CommandInfo::default);
            let r#type = kind.map(|kind| kind as i32);
            super::kind(&ExecutorInfo { r#type, command, container, ..ExecutorInfo::default() })
        };
        let container = |kind: container_info::Type, mesos| {
            Some(ContainerInfo { r#type: kind as i32, mesos, ..ContainerInfo::default() })
        };
        let image = Some(MesosInfo { image: Some(Image::default()) });
        let plain = container(container_info::Type::Mesos, None);
        for good in [of(None, true, None), of(Some(Type::Custom), true, None), of(Some(Type::Default), false, plain)] {
            assert_eq!(good, Ok(()));
        }
        for (given, words) in [
            (of(Some(Type::Unknown), true, None), "Unknown executor type"),
            (of(None, false, None), "'ExecutorInfo.command' must be set for 'CUSTOM' executor"),
            (of(Some(Type::Default), true, None), "'ExecutorInfo.command' must not be set for 'DEFAULT' executor"),
            (
                of(Some(Type::Default), false, container(container_info::Type::Docker, None)),
                "'ExecutorInfo.container.type' must be 'MESOS' for 'DEFAULT' executor",
            ),
            (
                of(Some(Type::Default), false, container(container_info::Type::Mesos, image)),
                "'ExecutorInfo.container.mesos.image' must not be set for 'DEFAULT' executor",
            ),
        ] {
            assert_eq!(given, Err(words.to_owned()));
        }
    }
}
