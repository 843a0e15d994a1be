//! Converts the agent's flags to the settings of its containerizer.
//!
//! It checks files that flags name; the containerizer checks the host.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use containerizer::config::{Config, Docker, Fetcher, FetcherTls, ImageGc, Logger, Provisioner, SecretResolver};
use protos::mesos::internal::ImageGcConfig;

use super::super::oversubscription::{Parameters, modules};
use super::{dns, isolation, refused};
use crate::flags::agent::{ContainerizerFlags, ImageFlags};
use crate::flags::{AgentFlags, FlagError, Json, json};

/// Mesos's name of the container logger that rotates output files.
pub(in crate::agent) const LOGROTATE: &str = "org_apache_mesos_LogrotateContainerLogger";
/// Mesos's name of the container logger that does not rotate output files.
const SANDBOX: &str = "org_apache_mesos_SandboxContainerLogger";
/// Default prefix of the environment variables that configure the logger of one container.
const PREFIX: &str = "CONTAINER_LOGGER_";
/// Shortest interval between checks of the disk with container images.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Reads the settings of the containerizer.
///
/// # Errors
/// The first flag whose value cannot be used.
pub(in crate::agent) fn containerizer(
    flags: &AgentFlags,
    work_dir: &Path,
    runtime_dir: &Path,
) -> Result<Config, FlagError> {
    let isolation = isolation::read(flags)?;
    let mounts = isolation.mounts();
    Ok(Config {
        work_dir: work_dir.to_owned(),
        runtime_dir: runtime_dir.to_owned(),
        isolation,
        logger: logger(flags.containerizer.container_logger.as_deref(), flags.oversubscription.modules.as_ref())?,
        secrets: secrets(flags.containerizer.secret_resolver.as_deref())?,
        docker: docker(&flags.containerizer, flags.isolation.cgroups_enable_cfs)?,
        systemd: systemd(&flags.containerizer),
        provisioner: provisioner(&flags.images, &flags.containerizer.sandbox_directory, mounts)?,
        fetcher: Fetcher {
            cache_dir: flags.fetcher.fetcher_cache_dir.clone(),
            cache_size: flags.fetcher.fetcher_cache_size.0,
            frameworks_home: flags.fetcher.frameworks_home.clone(),
            hadoop_home: flags.fetcher.hadoop_home.clone().unwrap_or_default(),
            stall: flags.fetcher.fetcher_stall_timeout,
            // The files are set after the TLS flags were read.
            tls: FetcherTls {
                hosts: flags.fetcher.fetcher_tls_hosts.clone().unwrap_or_default(),
                ..FetcherTls::default()
            },
        },
        dns: dns::read(flags.container_network.default_container_dns.as_ref())?,
        docker_config: flags.images.docker_config.as_deref().unwrap_or_default().to_owned(),
    })
}

/// Reads `--container_logger` and its parameters.
fn logger(name: Option<&str>, given: Option<&Json>) -> Result<Option<Logger>, FlagError> {
    match name {
        None | Some("" | SANDBOX) => return Ok(None),
        Some(LOGROTATE) => {}
        Some(other) => {
            let why = format!("'{other}' is not supported: {LOGROTATE} and {SANDBOX} are built in");
            return Err(refused("container_logger", why));
        }
    }
    let modules = modules(given)?;
    let nothing = Parameters::new();
    let parameters = modules.get(LOGROTATE).unwrap_or(&nothing);
    let given = |name: &str| parameters.get(name).map(String::as_str);
    let rules =
        containerizer::rotation_rules(given).map_err(|error| refused("modules", format!("{LOGROTATE}: {error}")))?;
    let prefix = given("environment_variable_prefix").unwrap_or(PREFIX).to_owned();
    Ok(Some(Logger { rules, prefix }))
}

/// Reads `--secret_resolver`: a directory, or a program.
fn secrets(given: Option<&str>) -> Result<SecretResolver, FlagError> {
    let Some(path) = given.filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return Ok(SecretResolver::None);
    };
    let found = std::fs::metadata(&path).ok().filter(|_| path.is_absolute());
    match found {
        Some(found) if found.is_dir() => Ok(SecretResolver::Directory(path)),
        Some(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => Ok(SecretResolver::Program(path)),
        _ => {
            let why = format!("'{}' is not the absolute path of a directory or a program", path.display());
            Err(refused("secret_resolver", why))
        }
    }
}

/// Reads the settings of the Docker containerizer; `None` unless `--containerizers` names it.
fn docker(flags: &ContainerizerFlags, enable_cfs: bool) -> Result<Option<Docker>, FlagError> {
    let names: Vec<&str> = flags.containerizers.split(',').map(str::trim).collect();
    if let Some(other) = names.iter().find(|name| !["mesos", "docker"].contains(name)) {
        let why = format!("there is no containerizer '{other}': use mesos, docker, or both");
        return Err(refused("containerizers", why));
    }
    if !names.contains(&"docker") {
        return Ok(None);
    }
    let stop = Some(flags.docker_stop_timeout).filter(|time| !time.is_zero());
    Ok(Some(Docker {
        socket: flags.docker_socket.trim_start_matches("unix://").to_owned(),
        sandbox: flags.sandbox_directory.to_string_lossy().into_owned(),
        enable_cfs,
        stop_timeout: stop.map(base::format_duration),
        remove_delay: flags.docker_remove_delay,
        kill_orphans: flags.docker_kill_orphans,
        mesos_image: flags.docker_mesos_image.clone().filter(|name| !name.is_empty()),
        alone: names == ["docker"],
    }))
}

/// Returns the directory in which this host's systemd looks for units; `None` if executors get no slice.
fn systemd(flags: &ContainerizerFlags) -> Option<PathBuf> {
    let runtime = &flags.systemd_runtime_directory;
    // The directory exists only if systemd is the init (sd_booted(3)).
    if !flags.systemd_enable_support || !runtime.is_dir() {
        return None;
    }
    if !nix::unistd::geteuid().is_root() {
        tracing::info!("executors run in the agent's systemd unit, if any: only root can create a slice for them");
        return None;
    }
    Some(runtime.clone())
}

/// Reads the settings for container images, which need the isolator `filesystem/linux` (`mounts`).
fn provisioner(flags: &ImageFlags, sandbox: &Path, mounts: bool) -> Result<Provisioner, FlagError> {
    let enabled = match flags.image_providers.as_deref() {
        None | Some("") => false,
        Some("docker") => true,
        Some(_) => return Err(refused("image_providers", "only 'docker' is supported, which takes OCI images too")),
    };
    if enabled && !mounts {
        return Err(refused("image_providers", "needs the isolator filesystem/linux"));
    }
    let gc = match &flags.image_gc_config {
        Some(_) if !enabled => return Err(refused("image_gc_config", "needs --image_providers=docker")),
        Some(text) => Some(image_gc(text).map_err(|why| refused("image_gc_config", why))?),
        None => None,
    };
    Ok(Provisioner {
        enabled,
        registry: flags.docker_registry.trim_start_matches("file://").to_owned(),
        store: flags.docker_store_dir.clone(),
        backend: flags.image_provisioner_backend.clone(),
        ignore_runtime: flags.docker_ignore_runtime,
        sandbox: sandbox.to_string_lossy().into_owned(),
        gc,
    })
}

/// Parses `--image_gc_config`: JSON of the message `ImageGcConfig`.
fn image_gc(text: &str) -> Result<ImageGc, String> {
    let config = json::read::<ImageGcConfig>(text)?;
    let headroom = config.image_disk_headroom;
    if !(0.0..=1.0).contains(&headroom) {
        return Err("'image_disk_headroom' must be between 0 and 1".to_owned());
    }
    let nanoseconds = u64::try_from(config.image_disk_watch_interval.nanoseconds);
    let interval = Duration::from_nanos(nanoseconds.map_err(|_| "'image_disk_watch_interval' is negative")?);
    let names = config.excluded_images.into_iter().filter_map(|image| Some(image.docker?.name));
    Ok(ImageGc { headroom, interval: interval.max(INTERVAL_MIN), excluded: names.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loggers() {
        let read = |name: &str, parameters: &str| {
            let modules =
                format!(r#"{{"libraries":[{{"modules":[{{"name":"{LOGROTATE}","parameters":[{parameters}]}}]}}]}}"#);
            let flags = AgentFlags::with(&[("container_logger", name), ("modules", &modules)]);
            let modules = flags.oversubscription.modules.as_ref();
            logger(flags.containerizer.container_logger.as_deref(), modules).map_err(|error| error.to_string())
        };
        let size = r#"{"key":"max_stdout_size","value":"1MB"},{"key":"logrotate_stdout_options","value":"rotate 3\n"}"#;
        let [stdout, stderr] = read(LOGROTATE, size).unwrap().unwrap().rules;
        assert_eq!((stdout.most, stdout.keep, stderr.most, stderr.keep), (1 << 20, 3, 10 << 20, 9));
        assert_eq!(read(SANDBOX, ""), Ok(None));
        let other = r#"{"key":"environment_variable_prefix","value":"LOG_"}"#;
        assert_eq!(read(LOGROTATE, other).unwrap().unwrap().prefix, "LOG_");
        for (logger, parameters, said) in [
            ("other", "", "not supported"),
            (LOGROTATE, r#"{"key":"max_stderr_size","value":"x"}"#, "is not a size"),
            (LOGROTATE, r#"{"key":"logrotate_stderr_options","value":"compress"}"#, "'compress'"),
        ] {
            assert!(read(logger, parameters).unwrap_err().contains(said), "{said}");
        }
    }

    #[test]
    fn resolvers_of_secrets() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "").unwrap();
        let read = |value: &str| secrets(Some(value)).map_err(|error| error.to_string());
        assert_eq!(read(""), Ok(SecretResolver::None));
        for bad in ["kept", "/no/such/directory", &file.to_string_lossy()] {
            assert!(read(bad).unwrap_err().contains("not the absolute path"), "{bad}");
        }
        let directory = place.path().to_string_lossy().into_owned();
        assert_eq!(read(&directory), Ok(SecretResolver::Directory(place.path().to_owned())));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(read(&file.to_string_lossy()), Ok(SecretResolver::Program(file)));
    }

    #[test]
    fn garbage_collection_of_images() {
        let text = r#"{"image_disk_headroom": 0.1, "image_disk_watch_interval": {"nanoseconds": 3600000000000},
            "excluded_images": [{"type": "DOCKER", "docker": {"name": "base:1"}}]}"#;
        let read = image_gc(text).unwrap();
        assert_eq!((read.interval, read.excluded.as_slice()), (Duration::from_secs(3600), &["base:1".to_owned()][..]));
        for (text, said) in [
            ("nonsense", ""),
            (r#"{"image_disk_headroom": 2, "image_disk_watch_interval": {"nanoseconds": 1}}"#, "between 0 and 1"),
            (r#"{"image_disk_headroom": 0.1, "image_disk_watch_interval": {"nanoseconds": -1}}"#, "negative"),
        ] {
            assert!(image_gc(text).unwrap_err().contains(said), "{text}");
        }
    }

    #[test]
    fn hosts_without_systemd_are_left_alone() {
        assert_eq!(systemd(&AgentFlags::with(&[("systemd_runtime_directory", "/nowhere/at/all")]).containerizer), None);
    }
}
