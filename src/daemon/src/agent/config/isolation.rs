//! Reads `--launcher`, `--isolation` and the flags that depend on them, and rejects values that contradict each other.

use std::path::PathBuf;

use containerizer::config::{Cgroups, Disk, Isolation};

use super::{isolators, refused};
use crate::flags::agent::IsolationFlags;
use crate::flags::{AgentFlags, FlagError, nearest};

/// Isolators that work with any launcher.
const PLAIN: [&str; 9] = [
    "posix/cpu",
    "posix/mem",
    "process",
    "filesystem/posix",
    "environment_secret",
    "volume/sandbox_path",
    "disk/du",
    "posix/disk",
    "posix/rlimits",
];

/// Isolators of Mesos that tepui does not have.
const ELSEWHERE: [&str; 9] = [
    "appc/runtime",
    "disk/xfs",
    "docker/volume",
    "filesystem/shared",
    "filesystem/windows",
    "network/port_mapping",
    "volume/csi",
    "windows/cpu",
    "windows/mem",
];

/// Returns the error for an unknown isolator, with the known name that is most similar.
fn unknown(name: &str) -> String {
    if ELSEWHERE.contains(&name) {
        return format!("the isolator '{name}' is not supported by this version of tepui");
    }
    let linux: Vec<&str> = containerizer::isolators().into_iter().filter(|name| !PLAIN.contains(name)).collect();
    match nearest(name, linux.iter().copied().chain(PLAIN)) {
        Some(nearest) => format!("there is no isolator '{name}', did you mean '{nearest}'?"),
        None => {
            let known = [&linux[..], &PLAIN].concat().join(", ");
            format!("there is no isolator '{name}': use some of {known}")
        }
    }
}

/// Reads the launcher, the isolators and their settings from the flags. Without `--launcher` the launcher is `linux` if
/// one of the isolators needs it, otherwise `posix`.
///
/// # Errors
/// The first flag that contradicts the others.
pub(super) fn read(flags: &AgentFlags) -> Result<Isolation, FlagError> {
    let mut own = Isolation::default();
    for name in flags.isolation.isolation.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !own.isolators.insert(name.to_owned()) {
            return Err(refused("isolation", format!("the isolator '{name}' is listed twice")));
        }
    }
    if own.isolators.iter().filter(|name| name.starts_with("filesystem/")).count() > 1 {
        return Err(refused("isolation", "only one isolator of filesystem/ can be enabled"));
    }
    let mut needs_linux = None;
    for name in own.isolators.iter().filter(|name| !PLAIN.contains(&name.as_str())) {
        if !containerizer::isolators().contains(name.as_str()) {
            return Err(refused("isolation", unknown(name)));
        }
        needs_linux = Some(name);
    }
    if own.has(&["gpu/nvidia"]) && !own.has(&["cgroups/devices", "cgroups/all"]) {
        return Err(refused("isolation", "the isolator 'gpu/nvidia' needs cgroups/devices"));
    }
    own.linux = match (flags.isolation.launcher.as_deref(), needs_linux) {
        (None, needs) => needs.is_some(),
        (Some("linux"), _) => true,
        (Some("posix"), None) => false,
        (Some("posix"), Some(name)) => {
            return Err(refused("launcher", format!("the isolator '{name}' needs the launcher linux")));
        }
        (Some(other), _) => {
            return Err(refused("launcher", format!("there is no launcher '{other}': use linux or posix")));
        }
    };
    read_settings(&mut own, flags)?;
    Ok(own)
}

fn read_settings(own: &mut Isolation, flags: &AgentFlags) -> Result<(), FlagError> {
    let (flags, network) = (&flags.isolation, &flags.container_network);
    let (devices, device_files) = match &flags.allowed_devices {
        Some(text) => isolators::devices(text).map_err(|why| refused("allowed_devices", why))?,
        None => (Vec::new(), Vec::new()),
    };
    if own.has(&["linux/devices"]) && device_files.len() < devices.len() {
        return Err(refused("allowed_devices", "the isolator 'linux/devices' creates devices below '/dev' only"));
    }
    own.cgroups = Cgroups {
        root: flags.cgroups_root.clone(),
        enable_cfs: flags.cgroups_enable_cfs,
        limit_swap: flags.cgroups_limit_swap,
        revocable_low: flags.revocable_cpu_low_priority,
        devices,
        device_files,
        net_cls: isolators::net_cls(network, own)?,
        perf: isolators::perf(flags, own)?,
    };
    own.no_agent_pid = flags.disallow_sharing_agent_pid_namespace;
    own.no_agent_ipc = flags.disallow_sharing_agent_ipc_namespace;
    own.shm_size = flags.default_container_shm_size.map(|size| size.0);
    let creation = flags.host_path_volume_force_creation.as_deref().unwrap_or_default();
    let creation = creation.split(':').filter(|path| !path.is_empty());
    own.force_creation = creation.map(PathBuf::from).collect();
    for (name, text, target) in [
        ("effective_capabilities", &flags.effective_capabilities, &mut own.effective),
        ("bounding_capabilities", &flags.bounding_capabilities, &mut own.bounding),
    ] {
        if let Some(text) = text {
            *target = Some(isolators::capabilities(text).map_err(|why| refused(name, why))?);
        }
    }
    if let (Some(effective), Some(bounding)) = (own.effective, own.bounding)
        && effective & !bounding != 0
    {
        return Err(refused("effective_capabilities", "must be within --bounding_capabilities"));
    }
    read_seccomp(own, flags)?;
    own.cni = isolators::cni(network, own)?;
    (own.gpus, own.shared_gpus) = isolators::gpus(flags, own)?;
    own.ports = isolators::ports(network, own)?;
    own.disk = Disk { interval: flags.container_disk_watch_interval, enforce: flags.enforce_container_disk_quota };
    Ok(())
}

fn read_seccomp(own: &mut Isolation, flags: &IsolationFlags) -> Result<(), FlagError> {
    own.seccomp_profiles = flags.seccomp_config_dir.clone();
    own.seccomp_default = flags.seccomp_profile_name.clone().filter(|name| !name.is_empty());
    for (name, is_set) in [
        ("seccomp_config_dir", own.seccomp_profiles.is_some()),
        ("seccomp_profile_name", own.seccomp_default.is_some()),
    ] {
        if is_set && !own.has(&["linux/seccomp"]) {
            return Err(refused(name, "needs the isolator linux/seccomp"));
        }
    }
    match own.seccomp_default.is_some() && own.seccomp_profiles.is_none() {
        true => Err(refused("seccomp_profile_name", "needs --seccomp_config_dir")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Flags, Part};

    fn read(words: &[&str]) -> Result<Isolation, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let flags = Flags::load(Part::Agent, &words, std::iter::empty()).map_err(|error| error.to_string())?;
        super::read(&AgentFlags::read(&flags).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_launcher_follows_the_isolators() {
        assert!(!read(&[]).unwrap().linux);
        assert!(!read(&["--isolation=posix/cpu,posix/rlimits"]).unwrap().linux);
        let own = read(&["--isolation=cgroups/cpu,cgroups/mem,namespaces/pid"]).unwrap();
        assert!(own.linux && own.has(&["namespaces/pid"]) && own.has(&["cgroups/mem"]) && !own.has(&["cgroups/pids"]));
        assert!(read(&["--launcher=linux"]).unwrap().linux);
    }

    /// A flag that names a device by a path that is not below `/dev`.
    const OUTSIDE: &str = r#"--allowed_devices={"allowed_devices":[{"device":{"path":"/dev/../dev/null"}}]}"#;

    #[test]
    fn what_does_not_fit() {
        for (words, said) in [
            (&["--isolation=cgroups/cpu,cgroups/cpu"][..], "twice"),
            (&["--isolation=filesystem/linux,filesystem/posix"], "only one"),
            (&["--isolation=network/port_mapping"], "not supported"),
            (&["--isolation=nonsense"], "there is no isolator 'nonsense': use some of cgroups, "),
            (&["--isolation=cgroups/memory"], "there is no isolator 'cgroups/memory', did you mean 'cgroups/mem'?"),
            (&["--isolation=posix/cpus"], "did you mean 'posix/cpu'?"),
            (&["--isolation=gpu/nvidia"], "needs cgroups/devices"),
            (&["--launcher=posix", "--isolation=cgroups/cpu"], "needs the launcher linux"),
            (&["--launcher=docker"], "no launcher 'docker'"),
            (&["--effective_capabilities={\"capabilities\":[\"NONSENSE\"]}"], "NONSENSE"),
            (&["--allowed_devices=x"], "JSON"),
            (&["--isolation=linux/devices", OUTSIDE], "below '/dev' only"),
            (&["--seccomp_config_dir=/x"], "linux/seccomp"),
            (&["--isolation=linux/seccomp", "--seccomp_profile_name=x"], "--seccomp_config_dir"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }
}
