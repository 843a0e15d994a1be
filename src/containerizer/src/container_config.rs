//! The files `config` and `launch_info` of a running container, in Mesos's formats (docs/mesos/disk.md), for
//! administrators' tools and for the next agent process.
//!
//! They are written and read in `runtime_dir.rs`. Neither file has the values of secrets that were resolved.

use std::ffi::OsString;
use std::path::PathBuf;

use agent::ContainerSpec;
use containers::isolation::Namespaces;
use containers::{Program, Spec};
use protos::mesos;

use crate::secrets;

/// Value of `ContainerClass.DEBUG`, which marks a session.
const DEBUG: i32 = 2;

/// The fields of `mesos.slave.ContainerConfig` that this agent sets. The full message would make the program larger.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerConfig {
    #[prost(string, required, tag = "3")]
    pub(crate) directory: String,
    #[prost(string, optional, tag = "4")]
    pub(crate) user: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub(crate) rootfs: Option<String>,
    /// Ids of the executor only: the rest is in the checkpoints.
    #[prost(message, optional, tag = "8")]
    pub(crate) executor_info: Option<mesos::ExecutorInfo>,
    #[prost(message, required, tag = "11")]
    pub(crate) command_info: mesos::CommandInfo,
    #[prost(message, optional, tag = "12")]
    pub(crate) container_info: Option<mesos::ContainerInfo>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) resources: Vec<mesos::Resource>,
    #[prost(int32, optional, tag = "14")]
    pub(crate) container_class: Option<i32>,
}

/// The fields of `mesos.slave.ContainerLaunchInfo` that this agent sets.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerLaunchInfo {
    #[prost(message, optional, tag = "2")]
    environment: Option<mesos::Environment>,
    #[prost(string, optional, tag = "3")]
    rootfs: Option<String>,
    #[prost(int32, repeated, packed = "false", tag = "4")]
    clone_namespaces: Vec<i32>,
    #[prost(message, optional, tag = "5")]
    command: Option<mesos::CommandInfo>,
    #[prost(string, optional, tag = "6")]
    working_directory: Option<String>,
    #[prost(message, optional, tag = "8")]
    rlimits: Option<mesos::RLimitInfo>,
    #[prost(int32, repeated, packed = "false", tag = "9")]
    enter_namespaces: Vec<i32>,
    #[prost(string, optional, tag = "10")]
    user: Option<String>,
    #[prost(bool, optional, tag = "23")]
    no_new_privileges: Option<bool>,
}

/// A started container with its description.
pub(crate) struct ContainerDescription {
    pub(crate) spec: Box<ContainerSpec>,
    pub(crate) launched: Started,
}

/// Attributes with which a process was started, without its open files.
pub(crate) struct Started {
    program: Program,
    environment: Vec<(OsString, OsString)>,
    working_dir: Option<PathBuf>,
    root: Option<PathBuf>,
    new: Namespaces,
    entered: Namespaces,
    no_new_privileges: bool,
    has_limits: bool,
}

impl From<Spec> for Started {
    fn from(process: Spec) -> Started {
        let Spec { program, environment, working_dir, rlimits, isolation, .. } = process;
        Started {
            program,
            environment,
            working_dir,
            root: isolation.root,
            new: isolation.namespaces,
            entered: isolation.enter_which,
            no_new_privileges: isolation.no_new_privileges,
            has_limits: !rlimits.is_empty(),
        }
    }
}

impl ContainerDescription {
    /// Returns whether the container is a session.
    pub(crate) fn is_session(&self) -> bool {
        self.spec.session.is_some()
    }

    /// Returns the content of the file `config`: the container as requested.
    pub(crate) fn config(&self) -> ContainerConfig {
        let spec = &self.spec;
        let variables = spec.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
        ContainerConfig {
            directory: spec.sandbox.clone(),
            user: spec.user.clone(),
            rootfs: self.launched.root.as_deref().map(text),
            executor_info: spec.latest.is_some().then(|| executor(&spec.sandbox)).flatten(),
            command_info: mesos::CommandInfo {
                environment: Some(self.environment(variables)),
                uris: spec.uris.clone(),
                user: spec.user.clone(),
                ..command(spec.program.clone(), spec.argv.clone())
            },
            container_info: spec.container.clone().map(|mut info| {
                secrets::in_container_mut(&mut info).for_each(|secret| secret.value = None);
                info
            }),
            resources: spec.resources.clone(),
            container_class: self.is_session().then_some(DEBUG),
        }
    }

    /// Returns the content of the file `launch_info`: how the first process was started.
    pub(crate) fn launch_info(&self) -> ContainerLaunchInfo {
        let launched = &self.launched;
        let lossy = |word: &OsString| word.to_string_lossy().into_owned();
        let (file, argv) = match &launched.program {
            Program::Argv { file, argv } => (file.to_string_lossy().into_owned(), argv),
            Program::Open { argv, .. } => (argv.first().map(lossy).unwrap_or_default(), argv),
            Program::Shell(_) => (String::new(), &Vec::new()),
        };
        let variables = launched.environment.iter().map(|(name, value)| (lossy(name), lossy(value)));
        let limits = self.spec.container.as_ref().and_then(|container| container.rlimit_info.clone());
        ContainerLaunchInfo {
            environment: Some(self.environment(variables)),
            rootfs: launched.root.as_deref().map(text),
            clone_namespaces: launched.new.each(),
            command: Some(command(file, argv.iter().map(lossy).collect())),
            working_directory: launched.working_dir.as_deref().map(text),
            rlimits: limits.filter(|_| launched.has_limits),
            enter_namespaces: launched.entered.each(),
            user: self.spec.user.clone(),
            no_new_privileges: launched.no_new_privileges.then_some(true),
        }
    }

    /// Returns variables as a message. A variable whose value is a resolved secret has the secret's reference in place
    /// of the value.
    fn environment(&self, variables: impl Iterator<Item = (String, String)>) -> mesos::Environment {
        use mesos::environment::{Variable, variable::Type};
        let variable = |(name, value): (String, String)| {
            let secret = self.spec.secrets.iter().find(|(secret, _)| *secret == name).map(|(_, secret)| secret.clone());
            let kind = if secret.is_some() { Type::Secret } else { Type::Value };
            let value = Some(value).filter(|_| secret.is_none());
            Variable { name, value, r#type: Some(kind as i32), secret }
        };
        mesos::Environment { variables: variables.map(variable).collect() }
    }
}

fn text(path: &std::path::Path) -> String {
    path.to_string_lossy().into_owned()
}

fn command(file: String, arguments: Vec<String>) -> mesos::CommandInfo {
    mesos::CommandInfo { shell: Some(false), value: Some(file), arguments, ..mesos::CommandInfo::default() }
}

/// Returns the ids of the executor with this sandbox.
fn executor(sandbox: &str) -> Option<mesos::ExecutorInfo> {
    let mut parts = sandbox.rsplit('/').skip(2);
    let (executor, _, framework) = (parts.next()?, parts.next()?, parts.next()?);
    Some(mesos::ExecutorInfo {
        executor_id: mesos::ExecutorId { value: executor.into() },
        framework_id: Some(mesos::FrameworkId { value: framework.into() }),
        ..mesos::ExecutorInfo::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;
    use protos::mesos::slave as full;

    fn described(latest: Option<String>) -> ContainerDescription {
        let secret = mesos::Secret {
            r#type: Some(mesos::secret::Type::Reference as i32),
            reference: Some(mesos::secret::Reference { name: "s".into(), key: None }),
            value: None,
        };
        let spec = ContainerSpec {
            sandbox: "/w/slaves/S/frameworks/F/executors/E/runs/C".into(),
            latest,
            program: "sh".into(),
            argv: vec!["sh".into(), "-c".into(), "true".into()],
            environment: vec![("A".into(), "b".into()), ("P".into(), "hidden".into())],
            secrets: vec![("P".into(), secret)],
            user: Some("u".into()),
            ..ContainerSpec::default()
        };
        let program = Program::Argv { file: "sh".into(), argv: vec!["sh".into()] };
        let mut process = Spec::new(program);
        process.environment = vec![("A".into(), "b".into()), ("P".into(), "hidden".into()), ("N".into(), "1".into())];
        process.isolation.namespaces = Namespaces { mount: true, pid: true, ..Namespaces::default() };
        process.isolation.no_new_privileges = true;
        process.working_dir = Some("/w".into());
        ContainerDescription { spec: Box::new(spec), launched: process.into() }
    }

    #[test]
    fn the_files_are_mesos_messages_and_hold_no_secret() {
        let described = described(Some("latest".into()));
        let (config, launch) = (described.config().encode_to_vec(), described.launch_info().encode_to_vec());
        for bytes in [&config, &launch] {
            assert!(!bytes.windows(6).any(|part| part == b"hidden"));
        }
        let config = full::ContainerConfig::decode(config.as_slice()).unwrap();
        assert_eq!((config.directory.as_str(), config.user.as_deref()), (described.spec.sandbox.as_str(), Some("u")));
        let executor = config.executor_info.unwrap();
        assert_eq!((executor.executor_id.value.as_str(), executor.framework_id.unwrap().value.as_str()), ("E", "F"));
        assert_eq!(config.command_info.arguments, ["sh", "-c", "true"]);
        assert_eq!(
            config.command_info.environment.unwrap().variables[1].secret,
            Some(described.spec.secrets[0].1.clone())
        );
        let launch = full::ContainerLaunchInfo::decode(launch.as_slice()).unwrap();
        assert_eq!(launch.clone_namespaces, [libc_flag("mnt"), libc_flag("pid")]);
        assert_eq!(launch.working_directory.as_deref(), Some("/w"));
        assert_eq!(launch.no_new_privileges, Some(true));
        assert_eq!(launch.environment.unwrap().variables[2].value.as_deref(), Some("1"));
    }

    /// Returns the value of a clone flag from linux/sched.h.
    fn libc_flag(name: &str) -> i32 {
        if name == "mnt" { 0x0002_0000 } else { 0x2000_0000 }
    }

    #[test]
    fn only_an_executors_names_one() {
        assert_eq!(described(None).config().executor_info, None);
    }
}
