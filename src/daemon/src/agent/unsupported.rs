//! Flags of Mesos's agent that this one has not: refused where somebody would rely on them, and named in the log where they
//! make no difference. None is passed over in silence.

use crate::flags::{FlagError, Flags};

/// What tasks get, who may do what, or what others see would not be as the flag says.
const MISSING: [&str; 33] = [
    "agent_subsystems",
    "authenticate_http_executors",
    "authenticatee",
    "csi_plugin_config_dir",
    "disk_profile_adaptor",
    "docker_volume_checkpoint_dir",
    "docker_volume_chown",
    "domain_socket_location",
    "egress_flow_classifier_parent",
    "egress_rate_limit_per_container",
    "egress_unique_flow_per_container",
    "ephemeral_ports_per_container",
    "eth0_name",
    "hooks",
    "http_authenticators",
    "http_executor_domain_sockets",
    "ip6",
    "ip6_discovery_command",
    "jwt_secret_key",
    "lo_name",
    "master_detector",
    "memory_profiling",
    "modules_dir",
    "network_cni_root_dir_persist",
    "network_enable_snmp_statistics",
    "network_enable_socket_statistics_details",
    "network_enable_socket_statistics_summary",
    "resource_provider_config_dir",
    "volume_gid_range",
    "xfs_kill_containers",
    "xfs_project_range",
    "appc_simple_discovery_uri_prefix",
    "appc_store_dir",
];

/// What is so, or done, without them.
const NEEDLESS: [(&str, &str); 6] = [
    ("cgroups_cpu_enable_pids_and_tids_count", "processes and threads are always counted"),
    ("cgroups_destroy_timeout", "containers are ended until nothing of them is left"),
    ("cgroups_hierarchy", "the kernel says where control groups are mounted"),
    ("docker", "Docker is asked through its socket (--docker_socket)"),
    ("launcher_dir", "all programs are in this one"),
    ("network_cni_metrics", "networks of containers are not measured"),
];

/// What `--help` says of such a flag.
pub(crate) fn note(name: &str) -> Option<&'static str> {
    if MISSING.contains(&name) {
        return Some("not supported");
    }
    NEEDLESS.iter().any(|(other, _)| *other == name).then_some("makes no difference")
}

/// Refuses flags that this agent would have to ignore, and warns of those that it may.
///
/// # Errors
/// The first flag of the former kind with another value than its default.
pub(super) fn check(flags: &Flags) -> Result<(), FlagError> {
    if let Some(name) = MISSING.into_iter().find(|name| flags.is_changed(name)) {
        return Err(FlagError::Refused { name, why: "is not supported by this version of tepui".to_owned() });
    }
    for (name, why) in NEEDLESS.into_iter().filter(|(name, _)| flags.is_changed(name)) {
        tracing::warn!("'--{name}' makes no difference: {why}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    fn checked(words: &[&str]) -> Result<(), String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let flags = Flags::load(Part::Agent, &words, std::iter::empty()).map_err(|error| error.to_string())?;
        check(&flags).map_err(|error| error.to_string())
    }

    #[test]
    fn only_other_values_than_the_defaults_matter() {
        assert_eq!(checked(&[]), Ok(()));
        assert_eq!(checked(&["--authorizer=local", "--no-memory_profiling", "--perf_interval=1mins"]), Ok(()));
        assert_eq!(checked(&["--launcher_dir=/usr/libexec/mesos"]), Ok(()));
        for word in ["--domain_socket_location=/x", "--memory_profiling", "--volume_gid_range=[1-2]"] {
            let error = checked(&[word]).unwrap_err();
            assert!(error.contains("is not supported"), "{word}: {error}");
        }
    }

    #[test]
    fn every_name_is_a_flag() {
        let known: Vec<&str> = Part::Agent.flags().map(|flag| flag.name).collect();
        for name in MISSING.into_iter().chain(NEEDLESS.map(|(name, _)| name)) {
            assert!(known.contains(&name), "{name}");
        }
    }
}
