//! Converts the flags of `tepui execute` to tasks.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use protos::json::{Dialect, FromJson};
use resources::{Quantities, Resources, Role, parse_text};
use sdk::task::{environment, from_v1, with_command};
use sdk::v1::{
    CapabilityInfo, CommandInfo, ContainerInfo, Image, LinuxInfo, NetworkInfo, RLimitInfo, TaskGroupInfo, TaskInfo,
    Volume, container_info, image,
};
use serde_json::Value;

use super::args::Args;
use super::scheduler::GROUP_EXECUTOR;

/// The work to launch.
#[derive(Clone, Debug)]
pub(super) enum Work {
    /// One task with an executor of its own.
    Task(Box<TaskInfo>),
    /// Tasks that share an executor, all or none.
    Group(TaskGroupInfo),
}

impl Work {
    /// Returns the tasks of the work.
    pub(super) fn tasks(&self) -> &[TaskInfo] {
        match self {
            Work::Task(task) => std::slice::from_ref(task),
            Work::Group(group) => &group.tasks,
        }
    }
}

/// Returns the work that the flags describe.
pub(super) fn work(args: &Args) -> Result<Work> {
    if let Some(text) = &args.task_group {
        let group: TaskGroupInfo = parse("--task_group", &filled(text, "--task_group", true)?)?;
        if group.tasks.is_empty() {
            bail!("--task_group has no tasks");
        }
        return Ok(Work::Group(group));
    }
    if let Some(text) = &args.task {
        return Ok(Work::Task(Box::new(parse("--task", &filled(text, "--task", false)?)?)));
    }
    let needs = needs(&args.resources)?;
    let mut task = with_command(&args.name, command(args)?, &needs);
    task.container = container(args)?.map(Box::new);
    Ok(Work::Task(Box::new(task)))
}

/// Returns the resources that an offer for the work must contain, in the text form of resources; only scalars.
pub(super) fn need_of(work: &Work) -> Result<String> {
    let mut all = Quantities::default();
    for task in work.tasks() {
        all += &from_v1(&task.resources).context("the resources of a task")?.quantities();
    }
    if let Work::Group(_) = work {
        all += &parse_text(GROUP_EXECUTOR, &Role::star())?.quantities();
    }
    Ok(all.iter().map(|(name, amount)| format!("{}:{amount}", name.as_str())).collect::<Vec<_>>().join(";"))
}

fn needs(text: &str) -> Result<Resources> {
    let needs = parse_text(text, &Role::star());
    needs.with_context(|| format!("--resources='{text}' cannot be read: must be such as cpus:1;mem:128"))
}

fn command(args: &Args) -> Result<CommandInfo> {
    let line = args.command.as_deref().unwrap_or_default();
    let mut command = CommandInfo { shell: Some(args.is_shell()), ..Default::default() };
    if args.is_shell() {
        command.value = args.command.clone();
    } else {
        command.arguments = line.split_whitespace().map(str::to_owned).collect();
        command.value = command.arguments.first().cloned();
    }
    if let Some(text) = &args.env {
        let text = text_of(text, "--env")?;
        let variables: BTreeMap<String, String> = serde_json::from_str(&text)
            .context("--env must be a JSON object of texts, such as {\"NAME\": \"value\"}")?;
        command.environment = Some(environment(variables.iter().map(|(n, v)| (n.as_str(), v.as_str()))));
    }
    Ok(command)
}

/// Returns the container if one of the flags requires other than the agent's default.
fn container(args: &Args) -> Result<Option<ContainerInfo>> {
    let docker = args.containerizer == "docker";
    let mut container = ContainerInfo {
        r#type: if docker { container_info::Type::Docker } else { container_info::Type::Mesos } as i32,
        ..Default::default()
    };
    match (&args.docker_image, docker) {
        (None, true) => bail!("--containerizer=docker needs --docker_image"),
        (None, false) => {}
        (Some(image), true) => {
            container.docker = Some(container_info::DockerInfo { image: image.clone(), ..Default::default() });
        }
        (Some(name), false) => {
            let image = Image {
                r#type: image::Type::Docker as i32,
                docker: Some(image::Docker { name: name.clone(), ..Default::default() }),
                ..Default::default()
            };
            container.mesos = Some(container_info::MesosInfo { image: Some(image) });
        }
    }
    for name in &args.networks {
        container.network_infos.push(NetworkInfo { name: Some(name.clone()), ..Default::default() });
    }
    if let Some(text) = &args.volumes {
        container.volumes = volumes(&text_of(text, "--volumes")?)?;
    }
    if let Some(text) = &args.rlimits {
        container.rlimit_info = Some(parse::<RLimitInfo>("--rlimits", &text_of(text, "--rlimits")?)?);
    }
    container.linux_info = linux(args)?;
    let plain = ContainerInfo { r#type: container.r#type, ..Default::default() };
    Ok((container != plain).then_some(container))
}

fn volumes(text: &str) -> Result<Vec<Volume>> {
    let list: Vec<Value> = serde_json::from_str(text).context("--volumes must be a JSON list of Volume")?;
    list.iter().map(|volume| parse("--volumes", &volume.to_string())).collect()
}

fn linux(args: &Args) -> Result<Option<LinuxInfo>> {
    let capabilities = |flag: &str, text: &Option<String>| -> Result<Option<CapabilityInfo>> {
        text.as_deref().map(|text| parse(flag, &text_of(text, flag)?)).transpose()
    };
    let linux = LinuxInfo {
        effective_capabilities: capabilities("--effective_capabilities", &args.effective_capabilities)?,
        bounding_capabilities: capabilities("--bounding_capabilities", &args.bounding_capabilities)?,
        ..Default::default()
    };
    Ok((linux != LinuxInfo::default()).then_some(linux))
}

/// Returns the value of a flag that is JSON: the value itself, or the content of the file that it names.
fn text_of(value: &str, flag: &str) -> Result<String> {
    if value.trim_start().starts_with(['{', '[']) {
        return Ok(value.to_owned());
    }
    let path = value.strip_prefix("file://").unwrap_or(value);
    std::fs::read_to_string(path).with_context(|| format!("{flag} is neither JSON nor a file that can be read: {path}"))
}

/// Returns a task's or a group's JSON with a placeholder for the agent, which every task must name and only the offer
/// determines.
fn filled(value: &str, flag: &str, group: bool) -> Result<String> {
    let mut value: Value =
        serde_json::from_str(&text_of(value, flag)?).with_context(|| format!("{flag} is not JSON"))?;
    let tasks: Vec<&mut Value> = match group {
        true => value.get_mut("tasks").and_then(Value::as_array_mut).into_iter().flatten().collect(),
        false => vec![&mut value],
    };
    for task in tasks {
        if let Some(task) = task.as_object_mut() {
            task.entry("agent_id").or_insert_with(|| serde_json::json!({ "value": "" }));
        }
    }
    Ok(value.to_string())
}

fn parse<T: FromJson>(flag: &str, text: &str) -> Result<T> {
    T::from_json(text.as_bytes(), Dialect::V1).with_context(|| format!("{flag} cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn of(flags: &[&str]) -> Result<TaskInfo> {
        match work(&Line::try_parse_from([&["execute"], flags].concat())?.args)? {
            Work::Task(task) => Ok(*task),
            Work::Group(group) => panic!("{group:?}"),
        }
    }

    #[test]
    fn a_shell_command_with_defaults() {
        let task = of(&["--command=echo hello"]).unwrap();
        assert_eq!((task.name.as_str(), task.task_id.value.as_str()), ("tepui-execute", "tepui-execute"));
        let command = task.command.unwrap();
        assert_eq!((command.shell, command.value.as_deref()), (Some(true), Some("echo hello")));
        assert_eq!(task.resources.len(), 2);
        assert_eq!(task.container, None);
    }

    #[test]
    fn a_program_with_an_environment() {
        for flag in ["--shell=false", "--no-shell"] {
            let task = of(&["--command=echo a b", flag, r#"--env={"A":"1"}"#]).unwrap();
            let command = task.command.unwrap();
            assert_eq!(command.arguments, ["echo", "a", "b"]);
            assert_eq!(command.environment.unwrap().variables[0].value(), "1");
        }
    }

    #[test]
    fn a_task_as_json_needs_no_agent() {
        let task = of(&[r#"--task={"name":"n","task_id":{"value":"t"},"command":{"value":"true"}}"#]).unwrap();
        assert_eq!(task.task_id.value, "t");
    }

    #[test]
    fn images_and_volumes() {
        let volume = r#"--volumes=[{"mode":"RW","container_path":"/x","host_path":"/tmp"}]"#;
        let container = of(&["--docker_image=alpine", "--command=true", volume]).unwrap().container.unwrap();
        assert_eq!(container.mesos.unwrap().image.unwrap().docker.unwrap().name, "alpine");
        assert_eq!(container.volumes[0].container_path, "/x");
        let docker = of(&["--docker_image=alpine", "--containerizer=docker"]).unwrap().container.unwrap();
        assert_eq!(docker.docker.unwrap().image, "alpine");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (flags, named) in [
            (&["--command=true", "--resources=cpus"][..], "--resources"),
            (&["--command=true", "--env=/no/such/file"], "/no/such/file"),
            (&["--task={]"], "--task"),
            (&["--task={}"], "--task"),
            (&[r#"--task_group={"tasks":[]}"#], "--task_group"),
            (&["--command=true", "--containerizer=docker"], "--docker_image"),
            (&[], "--command"),
        ] {
            let error = of(flags).unwrap_err();
            assert!(format!("{error:#}").contains(named), "{flags:?}: {error:#}");
        }
    }
}
