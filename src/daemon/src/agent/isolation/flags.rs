//! `--launcher`, `--isolation` and what belongs to them: read, and refused where they do not fit.

use std::path::PathBuf;

use containers::cgroups::{Controller, Device};

use crate::flags::{FlagError, Flags, nearest};

/// Which isolators are in force, with their settings.
#[derive(Clone, Debug, Default)]
pub(in crate::agent) struct Isolators {
    /// The launcher.
    pub(super) linux: bool,
    /// `--cgroups_root`
    pub(super) root: String,
    pub(super) controllers: Vec<Controller>,
    /// `cgroups/all`: those that the host has, too.
    pub(super) all_controllers: bool,
    pub(super) pid: bool,
    pub(super) ipc: bool,
    /// `filesystem/linux`
    pub(super) mounts: bool,
    pub(super) rlimits: bool,
    pub(super) capabilities: bool,
    pub(super) no_new_privileges: bool,
    pub(super) seccomp: bool,
    /// `network/cni`
    pub(super) networks: bool,
    /// `network/ports`, which only looks (see `ports.rs`).
    pub(super) ports: bool,
    /// `gpu/nvidia`
    pub(super) gpus: bool,
    /// `linux/resctrl`
    pub(super) resctrl: bool,
    /// `--seccomp_config_dir`
    pub(super) seccomp_profiles: Option<PathBuf>,
    /// `--seccomp_profile_name`
    pub(super) seccomp_default: Option<String>,
    pub(super) no_agent_pid: bool,
    pub(super) no_agent_ipc: bool,
    /// `--cgroups_enable_cfs`
    pub(super) quotas: bool,
    /// `--cgroups_limit_swap`
    pub(super) swap: bool,
    /// `--revocable_cpu_low_priority`
    pub(super) revocable_low: bool,
    /// `--allowed_devices`
    pub(super) devices: Vec<Device>,
    /// `--effective_capabilities` and `--bounding_capabilities`, as sets of bits.
    pub(super) effective: Option<u64>,
    pub(super) bounding: Option<u64>,
    /// `--default_container_shm_size`, in bytes.
    pub(super) shared_memory: Option<u64>,
    /// Where secrets are written for containers to read: below `--runtime_dir`.
    pub(super) secrets: PathBuf,
    /// `--host_path_volume_force_creation`
    pub(super) force_creation: Vec<PathBuf>,
}

/// Isolators that any launcher has.
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

/// Isolators that need the launcher linux: what [`Isolators::turn_on`] knows.
const LINUX: [&str; 26] = [
    "cgroups",
    "cgroups/all",
    "cgroups/blkio",
    "cgroups/cpu",
    "cgroups/cpuset",
    "cgroups/devices",
    "cgroups/hugetlb",
    "cgroups/mem",
    "cgroups/net_cls",
    "cgroups/net_prio",
    "cgroups/perf_event",
    "cgroups/pids",
    "docker/runtime",
    "filesystem/linux",
    "gpu/nvidia",
    "linux/capabilities",
    "linux/nnp",
    "linux/resctrl",
    "linux/seccomp",
    "namespaces/ipc",
    "namespaces/pid",
    "network/cni",
    "network/ports",
    "volume/host_path",
    "volume/image",
    "volume/secret",
];

/// Isolators that Mesos has besides.
const ELSEWHERE: [&str; 10] = [
    "appc/runtime",
    "disk/xfs",
    "docker/volume",
    "filesystem/shared",
    "filesystem/windows",
    "linux/devices",
    "network/port_mapping",
    "volume/csi",
    "windows/cpu",
    "windows/mem",
];

fn refused(name: &'static str, why: impl Into<String>) -> FlagError {
    FlagError::Refused { name, why: why.into() }
}

/// Why there is no such isolator, and which may be meant.
fn unknown(name: &str) -> String {
    if ELSEWHERE.contains(&name) {
        return format!("the isolator '{name}' is not supported by this version of tepui");
    }
    match nearest(name, LINUX.into_iter().chain(PLAIN)) {
        Some(nearest) => format!("there is no isolator '{name}', did you mean '{nearest}'?"),
        None => {
            let known = LINUX.into_iter().chain(PLAIN).collect::<Vec<_>>().join(", ");
            format!("there is no isolator '{name}': use some of {known}")
        }
    }
}

impl Isolators {
    /// Reads the flags. Without `--launcher` the isolators decide: as soon as one of them needs it, it is `linux`.
    ///
    /// # Errors
    /// The first flag that does not fit.
    pub(in crate::agent) fn read(flags: &Flags) -> Result<Isolators, FlagError> {
        let mut own = Isolators { root: flags.text("cgroups_root").to_owned(), ..Isolators::default() };
        let mut names: Vec<&str> = Vec::new();
        for name in flags.text("isolation").split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if names.contains(&name) {
                return Err(refused("isolation", format!("the isolator '{name}' is there twice")));
            }
            names.push(name);
        }
        if names.iter().filter(|name| name.starts_with("filesystem/")).count() > 1 {
            return Err(refused("isolation", "only one isolator of filesystem/ can be in force"));
        }
        let mut needs_linux = None;
        for name in &names {
            if !PLAIN.contains(name) {
                own.turn_on(name)?;
                needs_linux = Some(*name);
            }
        }
        if own.gpus && !names.contains(&"cgroups/devices") && !own.all_controllers {
            return Err(refused("isolation", "the isolator 'gpu/nvidia' needs cgroups/devices"));
        }
        own.rlimits = names.contains(&"posix/rlimits");
        own.linux = match (flags.get("launcher"), needs_linux) {
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
        own.read_settings(flags)?;
        Ok(own)
    }

    fn turn_on(&mut self, name: &str) -> Result<(), FlagError> {
        use Controller::{
            Blkio, Cpu, Cpuacct, Cpuset, Devices, Hugetlb, Memory, NetClass, NetPriority, PerfEvent, Pids,
        };
        let controllers: &[Controller] = match name {
            "cgroups" => &[Cpu, Cpuacct, Memory],
            "cgroups/cpu" => &[Cpu, Cpuacct],
            "cgroups/mem" => &[Memory],
            "cgroups/pids" => &[Pids],
            "cgroups/blkio" => &[Blkio],
            "cgroups/cpuset" => &[Cpuset],
            "cgroups/devices" => &[Devices],
            "cgroups/hugetlb" => &[Hugetlb],
            "cgroups/net_cls" => &[NetClass],
            "cgroups/net_prio" => &[NetPriority],
            "cgroups/perf_event" => &[PerfEvent],
            _ => &[],
        };
        if controllers.is_empty() {
            let switch = match name {
                "cgroups/all" => &mut self.all_controllers,
                "namespaces/pid" => &mut self.pid,
                "namespaces/ipc" => &mut self.ipc,
                "filesystem/linux" => &mut self.mounts,
                // They come with filesystem/linux, as with Mesos.
                "volume/host_path" | "volume/image" | "volume/secret" | "docker/runtime" => &mut self.mounts,
                "linux/capabilities" => &mut self.capabilities,
                "linux/nnp" => &mut self.no_new_privileges,
                "linux/seccomp" => &mut self.seccomp,
                "network/cni" => &mut self.networks,
                "network/ports" => &mut self.ports,
                "gpu/nvidia" => &mut self.gpus,
                "linux/resctrl" => &mut self.resctrl,
                _ => return Err(refused("isolation", unknown(name))),
            };
            *switch = true;
        }
        for controller in controllers {
            if !self.controllers.contains(controller) {
                self.controllers.push(*controller);
            }
        }
        Ok(())
    }

    fn read_settings(&mut self, flags: &Flags) -> Result<(), FlagError> {
        self.quotas = flags.on("cgroups_enable_cfs");
        self.swap = flags.on("cgroups_limit_swap");
        self.revocable_low = flags.on("revocable_cpu_low_priority");
        self.no_agent_pid = flags.on("disallow_sharing_agent_pid_namespace");
        self.no_agent_ipc = flags.on("disallow_sharing_agent_ipc_namespace");
        self.shared_memory = flags.bytes("default_container_shm_size");
        let creation = flags.text("host_path_volume_force_creation").split(':').filter(|path| !path.is_empty());
        self.force_creation = creation.map(PathBuf::from).collect();
        for (name, target) in
            [("effective_capabilities", &mut self.effective), ("bounding_capabilities", &mut self.bounding)]
        {
            if let Some(text) = flags.get(name) {
                *target = Some(super::rights::of_flag(text).map_err(|why| refused(name, why))?);
            }
        }
        if let Some(text) = flags.get("allowed_devices") {
            self.devices = super::group::devices(text).map_err(|why| refused("allowed_devices", why))?;
        }
        self.read_seccomp(flags)?;
        self.secrets = crate::agent::runtime_dir(flags).join("secrets");
        if let (Some(effective), Some(bounding)) = (self.effective, self.bounding)
            && effective & !bounding != 0
        {
            return Err(refused("effective_capabilities", "must be within --bounding_capabilities"));
        }
        Ok(())
    }

    /// A default profile that cannot be used stops the agent, not each task.
    fn read_seccomp(&mut self, flags: &Flags) -> Result<(), FlagError> {
        let given = |name| flags.get(name).filter(|text| !text.is_empty());
        self.seccomp_profiles = given("seccomp_config_dir").map(PathBuf::from);
        self.seccomp_default = given("seccomp_profile_name").map(str::to_owned);
        for name in ["seccomp_config_dir", "seccomp_profile_name"] {
            if given(name).is_some() && !self.seccomp {
                return Err(refused(name, "needs the isolator linux/seccomp"));
            }
        }
        let Some(name) = &self.seccomp_default else { return Ok(()) };
        let Some(folder) = &self.seccomp_profiles else {
            return Err(refused("seccomp_profile_name", "needs --seccomp_config_dir"));
        };
        let read = super::seccomp::read(folder, name, u64::MAX);
        read.map(drop).map_err(|error| refused("seccomp_profile_name", format!("'{name}' cannot be used: {error:#}")))
    }

    /// Whether volumes are mounts, not links.
    pub(in crate::agent) fn mounts(&self) -> bool {
        self.mounts
    }

    pub(super) fn has(&self, controller: Controller) -> bool {
        self.controllers.contains(&controller)
    }

    /// The freezer, by which containers are ended, and then those of isolators.
    pub(super) fn with_freezer(&self) -> Vec<Controller> {
        [Controller::Freezer].into_iter().chain(self.controllers.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    fn read(words: &[&str]) -> Result<Isolators, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let flags = Flags::load(Part::Agent, &words, std::iter::empty()).map_err(|error| error.to_string())?;
        Isolators::read(&flags).map_err(|error| error.to_string())
    }

    #[test]
    fn the_launcher_follows_the_isolators() {
        assert!(!read(&[]).unwrap().linux);
        assert!(!read(&["--isolation=posix/cpu,posix/rlimits"]).unwrap().linux);
        let own = read(&["--isolation=cgroups/cpu,cgroups/mem,namespaces/pid"]).unwrap();
        assert!(own.linux && own.pid && own.has(Controller::Memory) && !own.has(Controller::Pids));
        assert!(read(&["--launcher=linux"]).unwrap().linux);
    }

    #[test]
    fn every_isolator_that_is_named_is_known() {
        for name in LINUX {
            assert!(Isolators::default().turn_on(name).is_ok(), "{name}");
        }
    }

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
            (&["--seccomp_config_dir=/x"], "linux/seccomp"),
            (&["--isolation=linux/seccomp", "--seccomp_profile_name=x"], "--seccomp_config_dir"),
            (&["--isolation=linux/seccomp", "--seccomp_config_dir=/x", "--seccomp_profile_name=x"], "cannot be used"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }
}
