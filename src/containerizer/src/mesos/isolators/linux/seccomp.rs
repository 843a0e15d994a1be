//! Isolator `linux/seccomp`, which compiles seccomp profiles in Docker's JSON to the kernel's filters (AGT-106).
//!
//! A profile gives each system call an action. The compiler supports filters with one action besides the default, so a
//! profile becomes several of them: the kernel runs all of them and takes the strictest action, of equals the newest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use agent::ContainerSpec;
use anyhow::Context;
use containers::isolation::FilterStep;
use protos::mesos::LinuxInfo;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use serde::Deserialize;
use syscalls::Sysno;

use crate::config::{ConfigError, Isolation};
use crate::mesos::isolators::{Container, Isolator, Launch};

/// Maximum size of a profile in bytes. A profile has a few thousand bytes; Docker's own has 15 KB.
const PROFILE_MAX: u64 = 1 << 20;
const EPERM: u32 = 1;
/// Maximum number of rules for a system call. The kernel accepts filters of as many steps, and a rule takes more than
/// one.
const RULES_MAX: usize = 4096;

/// Filters of a process, in the order in which they are installed.
pub type Filters = Vec<Arc<[FilterStep]>>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    default_action: String,
    default_errno_ret: Option<u32>,
    #[serde(default)]
    syscalls: Vec<Group>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default)]
    names: Vec<String>,
    /// Name of a single system call, in older profiles.
    name: Option<String>,
    action: String,
    errno_ret: Option<u32>,
    args: Option<Vec<Argument>>,
    #[serde(default)]
    includes: Conditions,
    #[serde(default)]
    excludes: Conditions,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    index: u8,
    value: u64,
    #[serde(default)]
    value_two: u64,
    op: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Conditions {
    caps: Option<Vec<String>>,
    arches: Option<Vec<String>>,
    min_kernel: Option<String>,
}

/// The isolator `linux/seccomp`.
#[derive(Default)]
pub(crate) struct Seccomp {
    /// Directory of profiles (`--seccomp_config_dir`).
    profiles: Option<PathBuf>,
    /// Name of the default profile (`--seccomp_profile_name`).
    default: Option<String>,
}

impl Isolator for Seccomp {
    /// Adds the filters of a container. It runs after `linux/capabilities`, because what a profile permits may depend
    /// on the container's capabilities.
    fn prepare(&self, container: Container<'_>, launch: &mut Launch) -> anyhow::Result<()> {
        let linux = container.spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
        let capabilities = launch.isolation.capabilities.as_ref();
        let most = capabilities.map_or(u64::MAX, |capabilities| capabilities.bounding);
        launch.isolation.seccomp = self.filters(linux, most)?;
        Ok(())
    }
}

/// Returns whether a container has seccomp settings.
pub(crate) fn asks(spec: &ContainerSpec) -> bool {
    let linux = spec.container.as_ref().and_then(|container| container.linux_info.as_ref());
    linux.is_some_and(|linux| linux.seccomp.is_some())
}

impl Seccomp {
    /// Creates the isolator. A default profile that cannot be used stops the agent, not each task.
    ///
    /// # Errors
    /// The default profile cannot be used.
    pub(crate) fn new(config: &Isolation) -> Result<Seccomp, ConfigError> {
        let (profiles, default) = (config.seccomp_profiles.clone(), config.seccomp_default.clone());
        if let (Some(directory), Some(name)) = (&profiles, &default) {
            read(directory, name, u64::MAX).map_err(|error| {
                ConfigError::new("seccomp_profile_name", format!("'{name}' cannot be used: {error:#}"))
            })?;
        }
        Ok(Seccomp { profiles, default })
    }

    /// Returns the filters of a container, from the profile that it names, or from the agent's default one.
    /// `capabilities` are those that it can have at most.
    ///
    /// # Errors
    /// A profile that is missing or invalid.
    fn filters(&self, linux: Option<&LinuxInfo>, capabilities: u64) -> anyhow::Result<Filters> {
        let wish = linux.and_then(|linux| linux.seccomp.as_ref());
        let named = wish.and_then(|wish| wish.profile_name.as_deref());
        if wish.is_some_and(|wish| wish.unconfined()) {
            anyhow::ensure!(named.is_none(), "A container with a seccomp profile cannot be unconfined");
            return Ok(Filters::new());
        }
        let Some(name) = named.or(self.default.as_deref()) else { return Ok(Filters::new()) };
        let directory = self.profiles.as_deref().context("Seccomp profiles need --seccomp_config_dir")?;
        read(directory, name, capabilities).with_context(|| format!("The seccomp profile '{name}' cannot be used"))
    }
}

/// Compiles the profile of this name in the directory of profiles.
fn read(directory: &Path, name: &str, capabilities: u64) -> anyhow::Result<Filters> {
    let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    anyhow::ensure!(inside && !name.is_empty(), "it is not a name of a file below '{}'", directory.display());
    let path = directory.join(name);
    let size = std::fs::metadata(&path).with_context(|| format!("'{}'", path.display()))?.len();
    anyhow::ensure!(size <= PROFILE_MAX, "it has {size} bytes; at most {PROFILE_MAX} are read");
    let text = std::fs::read(&path).with_context(|| format!("'{}'", path.display()))?;
    compile(&text, capabilities)
}

/// Compiles the text of a profile to filters, for a container that can have these capabilities at most.
///
/// # Errors
/// The text is not a profile, or one that the kernel's filters cannot express.
pub fn compile(text: &[u8], capabilities: u64) -> anyhow::Result<Filters> {
    let profile: Profile = serde_json::from_slice(text).context("it is not a profile in Docker's JSON")?;
    let default = action(&profile.default_action, profile.default_errno_ret)?;
    let mut by_action: Vec<(SeccompAction, BTreeMap<i64, Vec<SeccompRule>>)> = Vec::new();
    for version in profile.syscalls.iter().flat_map(|group| [&group.includes, &group.excludes]) {
        version.min_kernel.as_deref().map_or(Ok(()), check_version)?;
    }
    for group in profile.syscalls.iter().filter(|group| group.applies(capabilities)) {
        let action = action(&group.action, group.errno_ret)?;
        let rules = rules(group.args.as_deref().unwrap_or_default())?;
        let index = by_action.iter().position(|(known, _)| *known == action).unwrap_or_else(|| {
            by_action.push((action, BTreeMap::new()));
            by_action.len() - 1
        });
        for number in group.numbers() {
            add(&mut by_action[index].1, number, &rules)?;
        }
    }
    let mut programs = Vec::new();
    let mut passing = BTreeMap::new();
    for (action, rules) in by_action.into_iter().filter(|(action, _)| *action != default) {
        // The filter with the default action must allow what another filter decides.
        for (number, rules) in &rules {
            add(&mut passing, *number, rules)?;
        }
        if action != SeccompAction::Allow {
            programs.push(program(rules, SeccompAction::Allow, action)?);
        }
    }
    if default != SeccompAction::Allow {
        // This filter is the last one, because it may deny the system call that installs filters.
        programs.push(program(passing, default, SeccompAction::Allow)?);
    }
    Ok(programs)
}

/// Adds rules for a system call. An empty list of rules matches all arguments, and makes others unnecessary.
///
/// # Errors
/// The call has more rules than fit in a filter.
fn add(all: &mut BTreeMap<i64, Vec<SeccompRule>>, number: i64, rules: &[SeccompRule]) -> anyhow::Result<()> {
    let known = all.get(&number).map_or(0, Vec::len);
    anyhow::ensure!(known + rules.len() <= RULES_MAX, "a system call has more than {RULES_MAX} rules");
    match all.get_mut(&number) {
        None => {
            all.insert(number, rules.to_vec());
        }
        Some(known) if known.is_empty() || rules.is_empty() => known.clear(),
        Some(known) => known.extend_from_slice(rules),
    }
    Ok(())
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    default: SeccompAction,
    action: SeccompAction,
) -> anyhow::Result<Arc<[FilterStep]>> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).context("filters are not known for this processor")?;
    let filter = SeccompFilter::new(rules, default, action, arch)?;
    let program: BpfProgram = filter.try_into()?;
    let step = |step: &seccompiler::sock_filter| FilterStep {
        code: step.code,
        if_true: step.jt,
        if_false: step.jf,
        value: step.k,
    };
    Ok(program.iter().map(step).collect())
}

fn action(name: &str, errno: Option<u32>) -> anyhow::Result<SeccompAction> {
    Ok(match name {
        "SCMP_ACT_ALLOW" => SeccompAction::Allow,
        "SCMP_ACT_LOG" => SeccompAction::Log,
        "SCMP_ACT_ERRNO" => SeccompAction::Errno(errno.unwrap_or(EPERM)),
        "SCMP_ACT_TRAP" => SeccompAction::Trap,
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => SeccompAction::KillThread,
        "SCMP_ACT_KILL_PROCESS" => SeccompAction::KillProcess,
        "SCMP_ACT_TRACE" => SeccompAction::Trace(errno.unwrap_or(EPERM)),
        other => anyhow::bail!("there is no action '{other}'"),
    })
}

/// Returns the rules for some conditions on arguments. All of them must hold; but several conditions on the same
/// argument are alternatives, because libseccomp cannot combine them.
fn rules(arguments: &[Argument]) -> anyhow::Result<Vec<SeccompRule>> {
    if arguments.is_empty() {
        return Ok(Vec::new());
    }
    let different: BTreeSet<u8> = arguments.iter().map(|argument| argument.index).collect();
    let conditions: Vec<SeccompCondition> = arguments.iter().map(condition).collect::<anyhow::Result<_>>()?;
    let sets = match different.len() == arguments.len() {
        true => vec![conditions],
        false => conditions.into_iter().map(|condition| vec![condition]).collect(),
    };
    Ok(sets.into_iter().map(SeccompRule::new).collect::<Result<_, _>>()?)
}

fn condition(argument: &Argument) -> anyhow::Result<SeccompCondition> {
    let (operator, value) = match argument.op.as_str() {
        "SCMP_CMP_NE" => (SeccompCmpOp::Ne, argument.value),
        "SCMP_CMP_LT" => (SeccompCmpOp::Lt, argument.value),
        "SCMP_CMP_LE" => (SeccompCmpOp::Le, argument.value),
        "SCMP_CMP_EQ" => (SeccompCmpOp::Eq, argument.value),
        "SCMP_CMP_GE" => (SeccompCmpOp::Ge, argument.value),
        "SCMP_CMP_GT" => (SeccompCmpOp::Gt, argument.value),
        "SCMP_CMP_MASKED_EQ" => (SeccompCmpOp::MaskedEq(argument.value), argument.value_two),
        other => anyhow::bail!("there is no comparison '{other}'"),
    };
    Ok(SeccompCondition::new(argument.index, SeccompCmpArgLen::Qword, operator, value)?)
}

impl Group {
    /// Returns the numbers of the system calls; names that this processor does not have are ignored.
    fn numbers(&self) -> impl Iterator<Item = i64> {
        let names = self.names.iter().chain(&self.name);
        names.filter_map(|name| Some(i64::from(Sysno::from_str(name).ok()?.id())))
    }

    fn applies(&self, capabilities: u64) -> bool {
        let has = |name: &String| {
            let short = name.strip_prefix("CAP_").unwrap_or(name);
            super::capabilities::number(short).is_some_and(|number| capabilities >> number & 1 == 1)
        };
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let is_here = |name: &String| name == arch;
        let includes = &self.includes;
        includes.caps.as_ref().is_none_or(|caps| caps.iter().all(has))
            && includes.arches.as_ref().is_none_or(|arches| arches.is_empty() || arches.iter().any(is_here))
            && includes.min_kernel.as_deref().is_none_or(kernel_is_at_least)
            && !self.excludes.caps.as_ref().is_some_and(|caps| caps.iter().any(has))
            && !self.excludes.arches.as_ref().is_some_and(|arches| arches.iter().any(is_here))
            && !self.excludes.min_kernel.as_deref().is_some_and(kernel_is_at_least)
    }
}

/// Checks that a kernel version has Docker's format: `4.8`.
fn check_version(version: &str) -> anyhow::Result<()> {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u32>().is_ok();
    let is_version = version.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor));
    anyhow::ensure!(is_version, "'{}' is not a version of a kernel such as 4.8", version.escape_debug());
    Ok(())
}

fn kernel_is_at_least(version: &str) -> bool {
    let parts =
        |text: &str| -> Vec<u32> { text.split(['.', '-']).take(2).filter_map(|part| part.parse().ok()).collect() };
    std::fs::read_to_string("/proc/sys/kernel/osrelease").is_ok_and(|own| parts(&own) >= parts(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETURN: u16 = 0x06;
    const ALL: u64 = u64::MAX;

    /// Returns the actions that a filter can return.
    fn answers(filter: &[FilterStep]) -> BTreeSet<u32> {
        filter.iter().filter(|step| step.code == RETURN).map(|step| step.value).collect()
    }

    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;

    #[test]
    fn a_profile_becomes_filters() {
        let text = br#"{"defaultAction": "SCMP_ACT_ERRNO", "archMap": [], "syscalls": [
            {"names": ["read", "write", "no_such_call"], "action": "SCMP_ACT_ALLOW"},
            {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [
                {"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}, {"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]},
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "excludes": {"caps": ["CAP_SYS_ADMIN"]}}]}"#;
        let filters = compile(text, 0).unwrap();
        assert_eq!(filters.len(), 2);
        assert!(answers(&filters[0]).is_superset(&BTreeSet::from([ALLOW, ERRNO | 38])));
        assert!(answers(&filters[1]).is_superset(&BTreeSet::from([ALLOW, ERRNO | 1])));
        assert_eq!(compile(text, ALL).unwrap().len(), 1);
    }

    #[test]
    fn what_is_not_a_profile() {
        for (text, said) in [
            ("{", "is not a profile"),
            (r#"{"defaultAction": "NONSENSE"}"#, "NONSENSE"),
            (r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"], "action": "X"}]}"#, "'X'"),
            (
                r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
                    {"names": ["read"], "action": "SCMP_ACT_LOG", "includes": {"minKernel": "new"}}]}"#,
                "'new' is not a version",
            ),
        ] {
            let error = format!("{:#}", compile(text.as_bytes(), 0).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
        for name in ["../x", "/etc/passwd", ""] {
            assert!(read(Path::new("/tmp"), name, 0).unwrap_err().to_string().contains("is not a name"), "{name}");
        }
        assert!(compile(br#"{"defaultAction": "SCMP_ACT_ALLOW"}"#, 0).unwrap().is_empty());
        // Names and arguments multiply: a file of the largest size would take terabytes.
        let many = |what: &str, count| vec![what; count].join(",");
        let arguments = many(r#"{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}"#, 2000);
        let text = format!(
            r#"{{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
                {{"names": [{}], "action": "SCMP_ACT_LOG", "args": [{arguments}]}}]}}"#,
            many("\"read\"", 10_000)
        );
        assert!(format!("{:#}", compile(text.as_bytes(), 0).unwrap_err()).contains("more than 4096 rules"));
    }

    #[test]
    fn wishes() {
        let linux = |profile_name: Option<&str>, unconfined| LinuxInfo {
            seccomp: Some(protos::mesos::SeccompInfo { profile_name: profile_name.map(str::to_owned), unconfined }),
            ..LinuxInfo::default()
        };
        let with = Seccomp { profiles: None, default: Some("d".into()) };
        assert!(with.filters(Some(&linux(None, Some(true))), 0).unwrap().is_empty());
        assert!(with.filters(Some(&linux(Some("x"), Some(true))), 0).is_err());
        assert!(with.filters(None, 0).unwrap_err().to_string().contains("--seccomp_config_dir"));
        let config = Isolation {
            seccomp_profiles: Some("/x".into()),
            seccomp_default: Some("x".into()),
            ..Isolation::default()
        };
        assert!(Seccomp::new(&config).err().unwrap().to_string().contains("'x' cannot be used"));
    }
}
