//! Converts a task to the request that creates its container, like the options of `docker run` (AGT-85).

use std::path::{Component, Path, PathBuf};

use prost::{DecodeError, Message};
use serde_json::{Map, Value, json};

use super::client::Client;
use super::error::{DockerError, InvalidTask};
use super::logins;
use super::messages::{Container, Docker, Mode, NetworkMode, Task, Volume};
use super::mounts;
use crate::messages::Command;

const MEGABYTE: f64 = 1_048_576.0;
const LEAST_MEMORY: f64 = 32.0;
const LEAST_SHARES: u64 = 2;
/// Period of the CPU quota, in microseconds.
const PERIOD: f64 = 100_000.0;
const HOST: i32 = NetworkMode::Host as i32;
const NONE: i32 = NetworkMode::None as i32;
const USER: i32 = NetworkMode::User as i32;

/// Description of a container that is to be created.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRequest {
    /// Name of the image, as people write it.
    pub image: String,
    /// Whether the image is pulled even if it exists.
    pub pull: bool,
    /// Credentials for the image's registry; empty for none.
    pub login: String,
    /// Body of the call that creates the container.
    pub create: Value,
}

impl CreateRequest {
    /// Creates the container under this name, after pulling the image if necessary. Blocks.
    ///
    /// # Errors
    /// The image cannot be pulled, or the daemon does not create the container.
    pub fn make(&self, client: &Client, name: &str) -> Result<(), DockerError> {
        client.make(name, &self.image, &self.login, self.pull, &self.create.to_string())
    }
}

/// Settings of a container that are not part of the task.
#[derive(Clone, Debug)]
pub struct ContainerSettings<'a> {
    /// Name of the container.
    pub name: &'a str,
    /// Path of the sandbox on the host.
    pub sandbox: &'a Path,
    /// Path of the sandbox in the container.
    pub sandbox_in_container: &'a str,
    /// Whether no more CPUs may be used than the resources contain.
    pub quota: bool,
    /// Name servers of the agent, if its operator has set some.
    pub dns: Option<Value>,
    /// The operator's login for the image's registry, as [`login`](super::login) returns it.
    pub login: Option<String>,
    /// Devices of the container, in the form of [`DEVICES`](super::DEVICES).
    pub devices: Option<Value>,
}

/// Returns the container of a task, which is given as the bytes of a `TaskInfo`.
///
/// # Errors
/// The rule that the task breaks.
pub fn create_request(bytes: &[u8], settings: &ContainerSettings<'_>) -> Result<CreateRequest, InvalidTask> {
    let task = Task::decode(bytes)?;
    let own = crate::messages::Task::decode(bytes)?;
    let container = task.container.clone().ok_or(InvalidTask::NoContainer)?;
    let docker = container.docker.clone().ok_or(InvalidTask::NoDocker)?;
    let command = match own.command.as_deref() {
        Some(bytes) => Command::decode(bytes)?,
        None => Command { shell: Some(false), ..Command::default() },
    };
    let mut env = vec![
        format!("MESOS_SANDBOX={}", settings.sandbox_in_container),
        format!("MESOS_CONTAINER_NAME={}", settings.name),
    ];
    env.extend(own.allocation_role().map(|role| format!("MESOS_ALLOCATION_ROLE={role}")));
    let variables = command.environment.iter().flat_map(|environment| &environment.variables);
    env.extend(variables.filter_map(|variable| Some(format!("{}={}", variable.name, variable.value.as_ref()?))));
    let mut create =
        json!({"Image": docker.image, "Env": env, "HostConfig": host(&task, &container, &docker, settings)?});
    if command.shell() {
        if let Some(script) = &command.value {
            create["Entrypoint"] = json!(["/bin/sh"]);
            create["Cmd"] = json!(["-c", script]);
        }
    } else {
        let words: Vec<&String> = command.value.iter().chain(&command.arguments).collect();
        if !words.is_empty() {
            create["Cmd"] = json!(words);
        }
    }
    if let Some(hostname) = &container.hostname {
        if docker.network() == HOST {
            return Err(InvalidTask::HostName);
        }
        create["Hostname"] = json!(hostname);
    }
    ports(&task, &docker, &mut create)?;
    for parameter in &docker.parameters {
        set(&mut create, &parameter.key, &parameter.value)?;
    }
    if let Some(dns) = &settings.dns {
        default_dns(&mut create["HostConfig"], dns);
    }
    if let Some(held) = &settings.devices {
        add_devices(&mut create, held);
    }
    // A login in the task's sandbox takes precedence.
    let login =
        logins::in_sandbox(settings.sandbox, &docker.image).or_else(|| settings.login.clone()).unwrap_or_default();
    Ok(CreateRequest { image: docker.image.clone(), pull: docker.force_pull_image(), login, create })
}

fn scalar(task: &Task, name: &str) -> f64 {
    let of_name = task.resources.iter().filter(|resource| resource.name == name);
    of_name.filter_map(|resource| resource.scalar).map(|scalar| scalar.value).sum()
}

/// Returns the limits of a running container whose resources have changed, as [`Client::resize`] takes them. Only
/// `resources` and `limits` of the task are read.
///
/// # Errors
/// The bytes are not a `TaskInfo`.
pub fn new_limits(bytes: &[u8], quota: bool) -> Result<Value, DecodeError> {
    let task = Task::decode(bytes)?;
    Ok(Value::Object(limits(&task, quota)))
}

fn limits(task: &Task, quota: bool) -> Map<String, Value> {
    let (cpus, mem) = (scalar(task, "cpus"), scalar(task, "mem"));
    let mut host = Map::new();
    host.insert("CpuShares".into(), json!(((cpus * 1024.0) as u64).max(LEAST_SHARES)));
    let limit = |name: &str| task.limits.get(name).map(|scalar| scalar.value);
    let most = limit("cpus").or(quota.then_some(cpus)).filter(|most| most.is_finite() && *most > 0.0);
    if let Some(most) = most {
        host.insert("CpuPeriod".into(), json!(PERIOD as u64));
        host.insert("CpuQuota".into(), json!((most * PERIOD).max(1000.0) as u64));
    }
    let bytes = |megabytes: f64| json!((megabytes.max(LEAST_MEMORY) * MEGABYTE) as u64);
    match limit("mem") {
        None if mem > 0.0 => drop(host.insert("Memory".into(), bytes(mem))),
        None => {}
        Some(most) => {
            host.insert("MemoryReservation".into(), bytes(mem));
            if most.is_finite() {
                host.insert("Memory".into(), bytes(most));
            }
        }
    }
    host
}

/// Returns the part of the request with limits, volumes and network.
fn host(
    task: &Task,
    container: &Container,
    docker: &Docker,
    settings: &ContainerSettings<'_>,
) -> Result<Value, InvalidTask> {
    let mut host = limits(task, settings.quota);
    let mut binds = Vec::new();
    let mut mounts = vec![mount(settings.sandbox, settings.sandbox_in_container, false)];
    for volume in &container.volumes {
        match source(volume, settings)? {
            Source::Bind(bind) => binds.push(bind),
            Source::Sandbox(directory) => {
                mounts.push(mount(&directory, &inside(volume, settings), mode(volume) == "ro"))
            }
        }
    }
    // Persistent volumes are links in the sandbox, whose targets do not exist in the container.
    for volume in task.resources.iter().filter_map(|resource| resource.disk.as_ref()?.volume.as_ref()) {
        if let Ok(directory) = std::fs::read_link(settings.sandbox.join(&volume.container_path)) {
            let target = format!("{}/{}", settings.sandbox_in_container, volume.container_path);
            mounts.push(mount(&directory, &target, mode(volume) == "ro"));
        }
    }
    host.insert("Binds".into(), json!(binds));
    host.insert("Mounts".into(), json!(mounts));
    if let Some(driver) = volume_driver(container)? {
        host.insert("VolumeDriver".into(), json!(driver));
    }
    host.insert("Privileged".into(), json!(docker.privileged()));
    let network = match docker.network() {
        HOST => "host",
        NONE => "none",
        USER => {
            let named = container.network_infos.first().and_then(|info| info.name.as_deref());
            named.ok_or(InvalidTask::UnnamedNetwork)?
        }
        _ => "bridge",
    };
    host.insert("NetworkMode".into(), json!(network));
    Ok(Value::Object(host))
}

fn mode(volume: &Volume) -> &'static str {
    if volume.mode == Mode::Ro as i32 { "ro" } else { "rw" }
}

/// Returns the driver of the container's volumes, by the daemon's name; all volumes must have the same.
fn volume_driver(container: &Container) -> Result<Option<&str>, InvalidTask> {
    let named = container.volumes.iter().filter_map(|volume| volume.source.as_ref()?.docker_volume.as_ref());
    let mut drivers = named.filter_map(|named| named.driver.as_deref()).filter(|driver| !driver.is_empty());
    let first = drivers.next();
    match drivers.find(|driver| Some(*driver) != first) {
        Some(other) => Err(InvalidTask::SecondDriver(other.to_owned())),
        None => Ok(first),
    }
}

/// Returns a mount of a path whose name may contain colons; such a path cannot be written as a bind.
fn mount(source: &Path, target: &str, read_only: bool) -> Value {
    json!({"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only})
}

/// Returns the path of a volume in the container.
fn inside(volume: &Volume, settings: &ContainerSettings<'_>) -> String {
    let shown = &volume.container_path;
    if shown.starts_with('/') { shown.clone() } else { format!("{}/{shown}", settings.sandbox_in_container) }
}

/// Source of a volume.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// A value of `docker run --volume`.
    Bind(String),
    /// An existing file or directory in the sandbox.
    Sandbox(PathBuf),
}

/// Returns the source of a volume. Unlike a bind, a mount does not create its source: a missing directory is created
/// here.
fn source(volume: &Volume, settings: &ContainerSettings<'_>) -> Result<Source, InvalidTask> {
    let (shown, inside) = (&volume.container_path, inside(volume, settings));
    let source = volume.source.as_ref();
    if let Some(named) = source.and_then(|source| source.docker_volume.as_ref()) {
        return Ok(Source::Bind(format!("{}:{inside}:{}", named.name, mode(volume))));
    }
    let within = source.and_then(|source| source.sandbox_path.as_ref()).map(|path| path.path.clone());
    let host = source.and_then(|source| source.host_path.as_ref()).map(|path| path.path.clone());
    let path = within.or(host).or_else(|| volume.host_path.clone());
    let path = path.ok_or_else(|| InvalidTask::NoSource(shown.clone()))?;
    if path.starts_with('/') {
        return Ok(Source::Bind(format!("{path}:{inside}:{}", mode(volume))));
    }
    let path = Path::new(&path);
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(InvalidTask::OutsideSandbox(shown.clone()));
    }
    let found = settings.sandbox.join(path);
    if !found.exists() {
        containers::make_inside(settings.sandbox, path)
            .map_err(|source| InvalidTask::Source { volume: shown.clone(), source })?;
    }
    Ok(Source::Sandbox(found))
}

fn ports(task: &Task, docker: &Docker, create: &mut Value) -> Result<(), InvalidTask> {
    if docker.port_mappings.is_empty() {
        return Ok(());
    }
    if matches!(docker.network(), HOST | NONE) {
        return Err(InvalidTask::PortMappings);
    }
    let held = |port: u64| {
        let ranges = task.resources.iter().filter(|resource| resource.name == "ports");
        let mut ranges = ranges.filter_map(|resource| resource.ranges.as_ref()).flat_map(|ranges| &ranges.range);
        ranges.any(|range| (range.begin..=range.end).contains(&port))
    };
    for mapping in &docker.port_mappings {
        if !held(u64::from(mapping.host_port)) {
            return Err(InvalidTask::Port { host: mapping.host_port, container: mapping.container_port });
        }
        let port =
            format!("{}/{}", mapping.container_port, mapping.protocol.as_deref().unwrap_or("tcp").to_lowercase());
        create["ExposedPorts"][&port] = json!({});
        create["HostConfig"]["PortBindings"][&port] = json!([{"HostPort": mapping.host_port.to_string()}]);
    }
    Ok(())
}

/// Sets a parameter, which stands for `--key=value` of `docker run`.
fn set(create: &mut Value, key: &str, value: &str) -> Result<(), InvalidTask> {
    let pair = || value.split_once('=').unwrap_or((value, ""));
    let on = || value.is_empty() || value == "true";
    let is_no = |kind| InvalidTask::Parameter { key: key.to_owned(), kind, value: value.to_owned() };
    let bytes = || amount(value).ok_or_else(|| is_no("amount of memory"));
    let number = || value.parse::<i64>().map_err(|_| is_no("number"));
    match key {
        "env" | "e" => push(&mut create["Env"], value),
        "label" | "l" => create["Labels"][pair().0] = json!(pair().1),
        "user" | "u" => create["User"] = json!(value),
        "workdir" | "w" => create["WorkingDir"] = json!(value),
        "hostname" | "h" => create["Hostname"] = json!(value),
        "entrypoint" => create["Entrypoint"] = json!([value]),
        "stop-signal" => create["StopSignal"] = json!(value),
        "init" => create["HostConfig"]["Init"] = json!(on()),
        "read-only" => create["HostConfig"]["ReadonlyRootfs"] = json!(on()),
        "net" | "network" => create["HostConfig"]["NetworkMode"] = json!(value),
        "ipc" => create["HostConfig"]["IpcMode"] = json!(value),
        "pid" => create["HostConfig"]["PidMode"] = json!(value),
        "uts" => create["HostConfig"]["UTSMode"] = json!(value),
        "cpuset-cpus" => create["HostConfig"]["CpusetCpus"] = json!(value),
        "shm-size" => create["HostConfig"]["ShmSize"] = json!(bytes()?),
        "memory" | "m" => create["HostConfig"]["Memory"] = json!(bytes()?),
        "memory-swap" if value == "-1" => create["HostConfig"]["MemorySwap"] = json!(-1),
        "memory-swap" => create["HostConfig"]["MemorySwap"] = json!(bytes()?),
        "pids-limit" => create["HostConfig"]["PidsLimit"] = json!(number()?),
        "oom-score-adj" => create["HostConfig"]["OomScoreAdj"] = json!(number()?),
        "volume" | "v" => push(&mut create["HostConfig"]["Binds"], value),
        "mount" => add(&mut create["HostConfig"]["Mounts"], mounts::read(value).ok_or_else(|| is_no("mount"))?),
        "cap-add" => push(&mut create["HostConfig"]["CapAdd"], value),
        "cap-drop" => push(&mut create["HostConfig"]["CapDrop"], value),
        "security-opt" => push(&mut create["HostConfig"]["SecurityOpt"], value),
        "group-add" => push(&mut create["HostConfig"]["GroupAdd"], value),
        "dns" => push(&mut create["HostConfig"]["Dns"], value),
        "dns-search" => push(&mut create["HostConfig"]["DnsSearch"], value),
        "add-host" => push(&mut create["HostConfig"]["ExtraHosts"], value),
        "runtime" => create["HostConfig"]["Runtime"] = json!(value),
        "sysctl" => create["HostConfig"]["Sysctls"][pair().0] = json!(pair().1),
        "tmpfs" => {
            let (path, options) = value.split_once(':').unwrap_or((value, ""));
            create["HostConfig"]["Tmpfs"][path] = json!(options);
        }
        "log-driver" => create["HostConfig"]["LogConfig"]["Type"] = json!(value),
        "log-opt" => create["HostConfig"]["LogConfig"]["Config"][pair().0] = json!(pair().1),
        "device" => {
            let mut parts = value.split(':');
            let host = parts.next().unwrap_or_default();
            add_device(create, host, parts.next().unwrap_or(host), parts.next().unwrap_or("rwm"));
        }
        "ulimit" => {
            let (name, limits) = pair();
            let (soft, hard) = limits.split_once(':').unwrap_or((limits, limits));
            let read = |text: &str| text.parse::<i64>().map_err(|_| InvalidTask::Ulimit(value.to_owned()));
            let limit = json!({"Name": name, "Soft": read(soft)?, "Hard": read(hard)?});
            add(&mut create["HostConfig"]["Ulimits"], limit);
        }
        _ => return Err(InvalidTask::Unsupported(key.to_owned())),
    }
    Ok(())
}

/// Adds the default name servers, unless the task has any setting of name servers.
fn default_dns(host: &mut Value, dns: &Value) {
    let parts = [("Dns", "nameservers"), ("DnsSearch", "search"), ("DnsOptions", "options")];
    if parts.iter().all(|(known, _)| host[*known].is_null()) {
        for (known, name) in parts {
            host[known] = dns[name].clone();
        }
    }
}

fn add_device(create: &mut Value, host: &str, inside: &str, rights: &str) {
    let device = json!({"PathOnHost": host, "PathInContainer": inside, "CgroupPermissions": rights});
    add(&mut create["HostConfig"]["Devices"], device);
}

/// Adds the agent's devices of the container, and their variables. Of two variables with one name the later one counts.
fn add_devices(create: &mut Value, held: &Value) {
    for path in held["devices"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        add_device(create, path, path, "rwm");
    }
    for pair in held["variables"].as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (pair[0].as_str(), pair[1].as_str()) {
            push(&mut create["Env"], &format!("{name}={value}"));
        }
    }
}

fn push(list: &mut Value, value: &str) {
    add(list, json!(value));
}

fn add(list: &mut Value, value: Value) {
    match list {
        Value::Array(list) => list.push(value),
        other => *other = json!([value]),
    }
}

/// Parses an amount of bytes such as `64m`.
fn amount(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches('b');
    let (digits, factor) = match digits.chars().last()? {
        'k' => (&digits[..digits.len() - 1], 1 << 10),
        'm' => (&digits[..digits.len() - 1], 1 << 20),
        'g' => (&digits[..digits.len() - 1], 1 << 30),
        _ => (digits, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::super::messages::{self, DockerVolume};
    use super::*;
    use protos::mesos::v1::{self, container_info::DockerInfo, container_info::docker_info::PortMapping};

    fn settings() -> ContainerSettings<'static> {
        let dns = Some(json!({"nameservers": ["10.0.0.1"], "search": ["x"], "options": []}));
        ContainerSettings {
            name: "mesos-c",
            sandbox: Path::new("/w/c"),
            sandbox_in_container: "/mnt/mesos/sandbox",
            quota: false,
            dns,
            login: None,
            devices: Some(json!({"devices": ["/dev/nvidia0"], "variables": [["NVIDIA_VISIBLE_DEVICES", "0"]]})),
        }
    }

    fn resource(name: &str, value: f64) -> v1::Resource {
        let scalar = Some(v1::value::Scalar { value });
        v1::Resource { name: name.into(), scalar, ..Default::default() }
    }

    fn of(docker: DockerInfo, command: Option<v1::CommandInfo>) -> Result<CreateRequest, InvalidTask> {
        let ports = v1::value::Ranges { range: vec![v1::value::Range { begin: 31000, end: 31001 }] };
        let ports = v1::Resource { name: "ports".into(), ranges: Some(ports), ..Default::default() };
        let volume = |container_path: &str, host_path: &str, mode| v1::Volume {
            container_path: container_path.into(),
            host_path: Some(host_path.into()),
            mode,
            ..Default::default()
        };
        let task = v1::TaskInfo {
            resources: vec![resource("cpus", 0.5), resource("mem", 64.0), ports],
            command,
            container: Some(Box::new(v1::ContainerInfo {
                r#type: 1,
                docker: Some(docker),
                volumes: vec![volume("/data", "/host", 2)],
                ..Default::default()
            })),
            ..Default::default()
        };
        create_request(&task.encode_to_vec(), &settings())
    }

    #[test]
    fn requests_to_docker() {
        let docker = DockerInfo {
            image: "app:1".into(),
            network: Some(2),
            port_mappings: vec![PortMapping { host_port: 31000, container_port: 80, protocol: None }],
            parameters: [("label", "a=b"), ("memory-swap", "1g"), ("ulimit", "nofile=64:128")]
                .map(|(key, value)| v1::Parameter { key: key.into(), value: value.into() })
                .into(),
            ..Default::default()
        };
        let command = v1::CommandInfo { value: Some("echo hi".into()), ..Default::default() };
        let create_request = of(docker, Some(command)).unwrap();
        let create = &create_request.create;
        assert_eq!((create["Entrypoint"][0].as_str(), create["Cmd"][1].as_str()), (Some("/bin/sh"), Some("echo hi")));
        let host = &create["HostConfig"];
        assert_eq!((host["CpuShares"].as_u64(), host["Memory"].as_u64()), (Some(512), Some(64 << 20)));
        assert_eq!(host["NetworkMode"], "bridge");
        assert_eq!(host["PortBindings"]["80/tcp"][0]["HostPort"], "31000");
        let binds = ["/host:/data:ro"];
        assert_eq!(host["Binds"], json!(binds));
        let sandbox = json!({"Type": "bind", "Source": "/w/c", "Target": "/mnt/mesos/sandbox", "ReadOnly": false});
        assert_eq!(host["Mounts"], json!([sandbox]));
        assert_eq!((host["MemorySwap"].as_u64(), host["Ulimits"][0]["Hard"].as_u64()), (Some(1 << 30), Some(128)));
        assert_eq!(create["Labels"]["a"], "b");
        assert_eq!(host["Devices"][0]["PathInContainer"], "/dev/nvidia0");
        assert!(create["Env"].as_array().unwrap().contains(&json!("NVIDIA_VISIBLE_DEVICES=0")));
        assert_eq!((&host["Dns"][0], &host["DnsSearch"][0]), (&json!("10.0.0.1"), &json!("x")));
    }

    #[test]
    fn a_task_names_its_own_servers() {
        let parameters = vec![v1::Parameter { key: "dns".into(), value: "10.0.0.9".into() }];
        let docker = DockerInfo { image: "app".into(), network: Some(2), parameters, ..Default::default() };
        let host = of(docker, None).unwrap().create["HostConfig"].clone();
        assert_eq!((&host["Dns"], &host["DnsSearch"]), (&json!(["10.0.0.9"]), &Value::Null));
    }

    #[test]
    fn one_driver_makes_the_volumes() {
        let volume = |driver: Option<&str>| {
            let named = DockerVolume { name: "v".into(), driver: driver.map(str::to_owned) };
            let source = Some(messages::Source { docker_volume: Some(named), ..messages::Source::default() });
            Volume { mode: 1, container_path: "/v".into(), host_path: None, source }
        };
        let of = |drivers: &[Option<&str>]| {
            let volumes = drivers.iter().map(|driver| volume(*driver)).collect();
            volume_driver(&Container { volumes, ..Container::default() }).map(|driver| driver.map(str::to_owned))
        };
        assert_eq!(of(&[None]).unwrap(), None);
        assert_eq!(of(&[Some("nfs"), None, Some("nfs")]).unwrap().as_deref(), Some("nfs"));
        assert!(of(&[Some("nfs"), Some("ceph")]).unwrap_err().to_string().contains("'ceph'"));
        assert_eq!(source(&volume(Some("nfs")), &settings()).unwrap(), Source::Bind("v:/v:rw".to_owned()));
    }

    #[test]
    fn a_volume_of_the_sandbox_has_a_type() {
        use v1::volume::{Source as Whole, source::SandboxPath, source::Type, source::sandbox_path};
        let sandbox_path = SandboxPath { r#type: Some(sandbox_path::Type::Self_ as i32), path: "/own".into() };
        let source =
            Whole { r#type: Some(Type::SandboxPath as i32), sandbox_path: Some(sandbox_path), ..Whole::default() };
        let volume =
            v1::Volume { source: Some(source), container_path: "/in".into(), mode: 2, host_path: None, image: None };
        let volume = Volume::decode(volume.encode_to_vec().as_slice()).unwrap();
        assert_eq!(super::source(&volume, &settings()).unwrap(), Source::Bind("/own:/in:ro".to_owned()));
    }

    #[test]
    fn volumes_in_the_sandbox() {
        let name = format!("tepui-volumes:{}", std::process::id());
        let sandbox = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&sandbox).unwrap();
        std::fs::write(sandbox.join("file"), "").unwrap();
        let settings = ContainerSettings { sandbox: &sandbox, ..settings() };
        let volume = |path: &str| Volume {
            mode: 1,
            container_path: "in".to_owned(),
            host_path: Some(path.to_owned()),
            source: None,
        };
        let container = Container { volumes: vec![volume("a/own"), volume("file")], ..Container::default() };
        let said = host(&Task::default(), &container, &Docker::default(), &settings).unwrap();
        let found =
            |number: usize| (said["Mounts"][number]["Source"].as_str(), said["Mounts"][number]["Target"].as_str());
        let at = |path: &str| sandbox.join(path).display().to_string();
        let target = Some("/mnt/mesos/sandbox/in");
        assert_eq!((found(1), found(2)), ((Some(at("a/own").as_str()), target), (Some(at("file").as_str()), target)));
        assert!(sandbox.join("a/own").is_dir() && said["Binds"] == json!([]), "{said}");
        assert!(source(&volume("a/../.."), &settings).unwrap_err().to_string().contains("out of the sandbox"));
        assert!(source(&volume("file/below"), &settings).unwrap_err().to_string().contains("has no source"));
        std::fs::remove_dir_all(&sandbox).unwrap();
    }

    #[test]
    fn what_cannot_be() {
        let plain = || DockerInfo { image: "app".into(), ..Default::default() };
        let mapping = |host_port| vec![PortMapping { host_port, container_port: 80, protocol: None }];
        let parameter = |key: &str, value: &str| vec![v1::Parameter { key: key.into(), value: value.into() }];
        for (docker, said) in [
            (DockerInfo { port_mappings: mapping(31000), ..plain() }, "need the network"),
            (DockerInfo { port_mappings: mapping(80), network: Some(2), ..plain() }, "not included"),
            (DockerInfo { network: Some(4), ..plain() }, "needs its name"),
            (DockerInfo { parameters: parameter("nonsense", ""), ..plain() }, "not supported"),
            (DockerInfo { parameters: parameter("memory", "x"), ..plain() }, "no amount"),
            (DockerInfo { parameters: parameter("mount", "x"), ..plain() }, "'mount' is no mount: 'x'"),
        ] {
            assert!(of(docker, None).unwrap_err().to_string().contains(said), "{said}");
        }
    }
}
