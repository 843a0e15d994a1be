//! Converts the agent's flags to the core's settings and to the `SlaveInfo` of the agent. `containerizer.rs` converts
//! those for the containerizer.
//!
//! It starts nothing.

pub(super) mod containerizer;
mod disks;
mod dns;
mod isolation;
mod isolators;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use agent::{Config, Reconfiguration, RecoverMode};
use base::Pid;
use protos::json::Value;
use protos::mesos;
use protos::mesos::internal;
use protos::mesos::slave_info::capability::Type;
use resources::{Amount, Format, Name, Reservation, Resource, Resources, Role};

use crate::address::Identity;
use crate::common::MESOS_VERSION;
use crate::credentials;
use crate::flags::agent::NodeFlags;
use crate::flags::{AgentFlags, FlagError, Json, json};
use crate::host;

/// Interval of heartbeats on executors' streams (EXE-07).
const EXECUTOR_HEARTBEAT: Duration = Duration::from_secs(30 * 60);
/// Shortest delay between attempts to register.
const LEAST_BACKOFF: Duration = Duration::from_millis(1);

/// Reads the settings of the core from flags.
///
/// # Errors
/// The first flag whose value cannot be used.
pub(super) fn config(flags: &AgentFlags, pid: Pid, work_dir: &str) -> Result<Config, FlagError> {
    let AgentFlags { registration, executors, gc, .. } = flags;
    let mut config = Config::new(pid, work_dir);
    config.registration_backoff_factor = registration.registration_backoff_factor;
    config.authentication_timeout_min = registration.authentication_timeout_min;
    config.authentication_timeout_max = registration.authentication_timeout_max;
    config.authentication_backoff_factor = registration.authentication_backoff_factor;
    config.executor_registration_timeout = executors.executor_registration_timeout;
    config.executor_reregistration_timeout = executors.executor_reregistration_timeout;
    config.executor_shutdown_grace_period = executors.executor_shutdown_grace_period;
    config.recovery_timeout = executors.recovery_timeout;
    config.gc_delay = gc.gc_delay;
    config.executor_heartbeat = Some(EXECUTOR_HEARTBEAT);
    if config.authentication_timeout_min > config.authentication_timeout_max {
        return Err(refused("authentication_timeout_max", "must not be less than --authentication_timeout_min"));
    }
    // Without a delay the agent would send requests to an unreachable master in a loop.
    config.authentication_timeout_min = config.authentication_timeout_min.max(LEAST_BACKOFF);
    config.credential = credentials::of_agent(registration.credential.as_deref())?;
    config.authorizer = crate::acls::read(flags.access.acls.as_ref(), ("authorizer", &flags.access.authorizer))?;
    if config.executor_reregistration_timeout > Duration::from_secs(15) {
        return Err(refused("executor_reregistration_timeout", "must be at most 15secs"));
    }
    // Without a delay the agent would send requests to an unreachable master in a loop.
    config.registration_backoff_factor = config.registration_backoff_factor.max(LEAST_BACKOFF);
    config.first_registration_wait = config.registration_backoff_factor;
    config.executor_reregistration_retry_interval = executors.executor_reregistration_retry_interval;
    config.program = program();
    config.boot_id = host::boot_id();
    config.version = MESOS_VERSION.to_owned();
    config.cpu_quotas = flags.isolation.cgroups_enable_cfs;
    config.gc_sandboxes_inside = gc.gc_non_executor_container_sandboxes;
    config.switch_user = executors.switch_user;
    config.http_command_executor = executors.http_command_executor;
    config.libprocess_ip = std::env::var("LIBPROCESS_IP").ok();
    config.executor_environment = executor_environment(executors.executor_environment_variables.as_ref())?;
    config.capabilities = features(flags.node.agent_features.as_ref(), config.capabilities)?;
    config.default_container_info = default_container_info(executors.default_container_info.as_ref())?;
    config.reconfiguration_policy = match flags.node.reconfiguration_policy.as_str() {
        "equal" => Reconfiguration::Equal,
        "additive" => Reconfiguration::Additive,
        other => {
            let why = format!("there is no policy '{other}': use equal or additive");
            return Err(refused("reconfiguration_policy", why));
        }
    };
    config.recover = match executors.recover.as_str() {
        "reconnect" => RecoverMode::Reconnect,
        "cleanup" => RecoverMode::Cleanup,
        other => return Err(refused("recover", format!("unknown mode '{other}': use reconnect or cleanup"))),
    };
    if !(0.0..=1.0).contains(&gc.gc_disk_headroom) {
        return Err(refused("gc_disk_headroom", "must be between 0 and 1"));
    }
    config.gc_disk_headroom = gc.gc_disk_headroom;
    config.max_completed_executors_per_framework =
        usize::try_from(executors.max_completed_executors_per_framework).unwrap_or(usize::MAX);
    Ok(config)
}

fn refused(name: &'static str, why: impl Into<String>) -> FlagError {
    FlagError::Refused { name, why: why.into() }
}

/// Returns the path of the running program, which is also the executors' program.
fn program() -> String {
    std::env::current_exe().map_or_else(|_| "/proc/self/exe".to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Parses `--executor_environment_variables`: a JSON object of strings.
fn executor_environment(given: Option<&Json>) -> Result<Vec<(String, String)>, FlagError> {
    const NAME: &str = "executor_environment_variables";
    let Some(text) = given else { return Ok(Vec::new()) };
    let value = Value::parse(text.as_bytes()).map_err(|error| refused(NAME, error.to_string()))?;
    let object = value.as_object().ok_or_else(|| refused(NAME, "is not a JSON object"))?;
    object
        .iter()
        .map(|(name, value)| match value.as_str() {
            Some(text) => Ok((name.clone(), text.to_owned())),
            None => Err(refused(NAME, format!("the value of '{name}' is not a string"))),
        })
        .collect()
}

/// Returns the agent's capabilities, reduced to those that `--agent_features` names.
fn features(given: Option<&Json>, all: Vec<Type>) -> Result<Vec<Type>, FlagError> {
    const NAME: &str = "agent_features";
    let Some(text) = given else { return Ok(all) };
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| refused(NAME, error.to_string()))?;
    let list = value["capabilities"].as_array().ok_or_else(|| refused(NAME, "has no list 'capabilities'"))?;
    json::message::<internal::SlaveCapabilities>(NAME, text)?;
    let names: Vec<&str> = list.iter().map(|one| one["type"].as_str().unwrap_or_default()).collect();
    if let Some(other) = names.iter().find(|name| !all.iter().any(|kind| kind.as_str_name() == **name)) {
        return Err(refused(NAME, format!("there is no capability '{other}'")));
    }
    let (named, others): (Vec<Type>, Vec<Type>) = all.into_iter().partition(|kind| names.contains(&kind.as_str_name()));
    let needed: Vec<&str> =
        others.iter().filter(|kind| **kind != Type::ResizeVolume).map(|kind| kind.as_str_name()).collect();
    if !needed.is_empty() {
        return Err(refused(NAME, format!("must name these, too: {}", needed.join(", "))));
    }
    Ok(named)
}

fn default_container_info(given: Option<&Json>) -> Result<Option<mesos::ContainerInfo>, FlagError> {
    given.map(|text| json::message("default_container_info", text)).transpose()
}

/// Creates the `SlaveInfo` with which the agent registers.
///
/// # Errors
/// Invalid resources, attributes or domain.
pub(super) fn info(
    flags: &NodeFlags,
    identity: &Identity,
    work_dir: &Path,
    gpus: Option<(usize, usize)>,
) -> Result<mesos::SlaveInfo, FlagError> {
    let attributes = match &flags.attributes {
        Some(text) => resources::parse_attributes(text).map_err(|error| refused("attributes", error.to_string()))?,
        None => Vec::new(),
    };
    let domain = match &flags.domain {
        Some(text) => {
            let domain: mesos::DomainInfo = json::message("domain", text)?;
            if domain.fault_domain.is_none() {
                return Err(refused("domain", "`domain` must define `fault_domain`"));
            }
            Some(domain)
        }
        None => None,
    };
    let resources = own_resources(flags, work_dir, gpus)?;
    disks::prepare(&resources, work_dir)?;
    Ok(mesos::SlaveInfo {
        hostname: identity.hostname.clone(),
        port: Some(i32::from(identity.advertise.port())),
        resources: resources.to_proto(Format::PostRefinement),
        attributes,
        id: None,
        checkpoint: Some(true),
        domain,
    })
}

/// Returns the resources of `--resources`, and the common ones of the host that it does not name (RES-14).
fn own_resources(flags: &NodeFlags, work_dir: &Path, gpus: Option<(usize, usize)>) -> Result<Resources, FlagError> {
    let role = Role::parse(&flags.default_role).map_err(|error| refused("default_role", error.to_string()))?;
    let text = flags.resources.as_deref().unwrap_or_default().trim();
    let given = if text.starts_with('[') {
        let messages = messages(text).map_err(|why| refused("resources", why))?;
        resources::from_flag_messages(messages, &role)
    } else {
        resources::parse_text(text, &role)
    };
    let mut all = given.map_err(|error| refused("resources", error.to_string()))?;
    let names = named(text, &all);
    warn_of_near_names(&names);
    let reserved = static_reservation(&role);
    if let Some((whole, shared)) = gpus {
        check_devices(&all, &names, &Name::Gpus, whole)?;
        check_devices(&all, &names, &Name::from(GPU_SHARE), shared)?;
    }
    for (name, detected) in detected(work_dir).into_iter().chain(devices(gpus)) {
        if !names.contains(&name) {
            all.add(detected.with_reservations(&reserved));
        }
    }
    Ok(all)
}

/// Logs names of resources that look like a misspelt common one.
fn warn_of_near_names(names: &BTreeSet<Name>) {
    for name in names {
        if let Some(meant) = misspelt(name.as_str()) {
            tracing::warn!(
                "--resources: '{}' is not a resource that frameworks request by default; did you mean '{meant}'?",
                name.as_str()
            );
        }
    }
}

/// Returns the common resource that a similar name probably means.
fn misspelt(name: &str) -> Option<&'static str> {
    const COMMON: [&str; 5] = ["cpus", "mem", "disk", "gpus", "ports"];
    const OTHERS: [(&str, &str); 4] = [("cores", "cpus"), ("memory", "mem"), ("ram", "mem"), ("gpu", "gpus")];
    if COMMON.contains(&name) {
        return None;
    }
    let lower = name.to_lowercase();
    let other = OTHERS.iter().find(|(other, _)| *other == lower).map(|(_, meant)| *meant);
    other.or_else(|| COMMON.into_iter().find(|common| strsim::osa_distance(common, &lower) <= 1))
}

fn messages(text: &str) -> Result<Vec<mesos::Resource>, String> {
    let value = Value::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let items = value.as_array().ok_or("is not a JSON array")?;
    let read = |item: &Value| json::read::<mesos::Resource>(&item.to_string());
    items.iter().map(read).collect()
}

/// Name of the resource for shared GPUs.
const GPU_SHARE: &str = "gpu_share";

/// Returns the resources for GPUs that are allocated as a whole and for shared ones, if there are any.
fn devices(counts: Option<(usize, usize)>) -> Vec<(Name, Resource)> {
    let (whole, shared) = counts.unwrap_or_default();
    let all = [(Name::Gpus, whole), (Name::from(GPU_SHARE), shared)].into_iter().filter(|(_, count)| *count > 0);
    let one = |(name, count): (Name, usize)| (name.clone(), Resource::scalar(name, Amount::from_f64(count as f64)));
    all.map(one).collect()
}

/// Checks that `--resources`, if it names the devices, has as many as were found.
fn check_devices(given: &Resources, names: &BTreeSet<Name>, name: &Name, count: usize) -> Result<(), FlagError> {
    let amount = given.get_scalar(name).unwrap_or_default().to_f64();
    if names.contains(name) && amount != count as f64 {
        let why = format!("'{}' is {amount}, but there are {count} such devices", name.as_str());
        return Err(refused("resources", why));
    }
    Ok(())
}

/// Returns the names in `--resources`, those with an amount of zero included: they are not detected.
fn named(text: &str, given: &Resources) -> BTreeSet<Name> {
    let mut names = given.names();
    for part in text.split(';') {
        let name = part.split([':', '(']).next().unwrap_or_default().trim();
        if !name.is_empty() && !name.starts_with('[') {
            names.insert(Name::from(name));
        }
    }
    names
}

/// Returns the reservation that `--default_role` adds to resources without a role.
fn static_reservation(role: &Role) -> Vec<Reservation> {
    if role.is_star() {
        return Vec::new();
    }
    vec![Reservation::fixed(role.clone())]
}

/// Returns the host's resources: processors, memory and disk (in MB, less a part for the system), and the default
/// ports.
fn detected(work_dir: &Path) -> Vec<(Name, Resource)> {
    const MEGABYTE: u64 = 1 << 20;
    const GIGABYTE: u64 = 1 << 30;
    let left = |all: u64, kept: u64, enough: u64| if all < enough { all / 2 } else { all - kept };
    let memory = left(containers::host_memory().total, GIGABYTE, 2 * GIGABYTE);
    let disk =
        containers::file_system_use(work_dir).map_or(10 * GIGABYTE, |(all, _)| left(all, 5 * GIGABYTE, 10 * GIGABYTE));
    let scalar = |name: Name, amount: u64| (name.clone(), Resource::scalar(name, Amount::from_f64(amount as f64)));
    vec![
        scalar(Name::Cpus, host::processors()),
        scalar(Name::Mem, memory / MEGABYTE),
        scalar(Name::Disk, disk / MEGABYTE),
        (Name::Ports, Resource::ranges(Name::Ports, resources::Ranges::single(31000, 32000))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_meant_otherwise_are_found() {
        for (name, meant) in [("cpu", "cpus"), ("CPUS", "cpus"), ("memory", "mem"), ("disks", "disk"), ("gpu", "gpus")]
        {
            assert_eq!(misspelt(name), Some(meant), "{name}");
        }
        assert_eq!(["cpus", "mem", "licences", "gpu_share", "bandwidth"].map(misspelt), [None; 5]);
    }

    #[test]
    fn features_that_may_be_left_out() {
        let all = vec![Type::MultiRole, Type::ResizeVolume, Type::AgentDraining];
        let read = |names: &[&str]| {
            let list: Vec<_> = names.iter().map(|name| serde_json::json!({"type": name})).collect();
            let list = serde_json::json!({"capabilities": list}).to_string();
            let flags = AgentFlags::with(&[("agent_features", &list)]).node;
            features(flags.agent_features.as_ref(), all.clone()).map_err(|error| error.to_string())
        };
        assert_eq!(features(None, all.clone()).unwrap(), all);
        assert_eq!(read(&["AGENT_DRAINING", "MULTI_ROLE"]).unwrap(), [Type::MultiRole, Type::AgentDraining]);
        assert!(read(&["MULTI_ROLE"]).unwrap_err().contains("AGENT_DRAINING"));
        assert!(read(&["MULTI_ROLE", "AGENT_DRAINING", "X"]).unwrap_err().contains("'X'"));
    }
}
