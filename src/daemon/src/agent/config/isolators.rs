//! Reads the flags of single isolators: devices, network classes, events, networks, GPUs, ports.
//!
//! A flag whose isolator is not enabled is rejected: it would have no effect.

use std::path::{Component, Path, PathBuf};

use containerizer::config::{Cni, DeviceFile, Isolation, NetCls, Perf, PortRange, Ports};
use containerizer::{capability_bits, is_perf_event};
use containers::cgroups::Device;
use protos::json::Value;
use protos::mesos::CapabilityInfo;
use protos::mesos::capability_info::Capability;
use resources::Role;

use super::refused;
use crate::flags::agent::{ContainerNetworkFlags, IsolationFlags};
use crate::flags::{FlagError, json};

/// Parses `--allowed_devices`: JSON of the message `DeviceWhitelist`. Returns the devices, and those below `/dev` as
/// files.
pub(super) fn devices(text: &str) -> Result<(Vec<Device>, Vec<DeviceFile>), String> {
    let value = Value::parse(text.as_bytes()).map_err(|error| format!("is not JSON: {error}"))?;
    let list = value.get("allowed_devices").and_then(Value::as_array).ok_or("has no list 'allowed_devices'")?;
    let (mut devices, mut files) = (Vec::new(), Vec::new());
    for item in list {
        let (device, file) = device(item)?;
        devices.push(device);
        files.extend(file);
    }
    Ok((devices, files))
}

fn device(item: &Value) -> Result<(Device, Option<DeviceFile>), String> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let path = item.get("device").and_then(|device| device.get("path")).and_then(Value::as_str);
    let path = path.ok_or("has an entry without 'device.path'")?;
    let found = std::fs::metadata(path).map_err(|error| format!("names '{path}', which cannot be used: {error}"))?;
    let is_block = found.file_type().is_block_device();
    let kind = match is_block {
        true => 'b',
        false if found.file_type().is_char_device() => 'c',
        false => return Err(format!("names '{path}', which is not a device")),
    };
    let access = item.get("access");
    let may = |name: &str| access.and_then(|access| access.get(name)).and_then(Value::as_bool).unwrap_or(false);
    let (read, write, mknod) = (may("read"), may("write"), may("mknod"));
    let number = found.rdev();
    let (major, minor) = (nix::sys::stat::major(number), nix::sys::stat::minor(number));
    let rights: String =
        [(read, 'r'), (write, 'w'), (mknod, 'm')].iter().filter(|(set, _)| *set).map(|r| r.1).collect();
    let mode = if read { 0o444 } else { 0 } | if write { 0o222 } else { 0 };
    let inside = Path::new(path).strip_prefix("/dev").ok().filter(|inside| {
        inside.iter().next().is_some() && inside.components().all(|part| matches!(part, Component::Normal(_)))
    });
    let file = inside.map(|inside| DeviceFile { path: inside.to_owned(), is_block, number, mode });
    Ok((Device(format!("{kind} {major}:{minor} {rights}")), file))
}

/// Parses `--effective_capabilities` or `--bounding_capabilities`: JSON of the message `CapabilityInfo`. Returns a set
/// of bits.
pub(super) fn capabilities(text: &str) -> Result<u64, String> {
    let value = Value::parse(text.as_bytes()).map_err(|error| format!("is not JSON: {error}"))?;
    json::only(&value, "", &["capabilities"])?;
    let names = value.get("capabilities").and_then(Value::as_array).ok_or("has no list 'capabilities'")?;
    let mut info = CapabilityInfo::default();
    for name in names {
        let name = name.as_str().unwrap_or_default();
        let known =
            Capability::from_str_name(name).ok_or_else(|| format!("names '{name}', which is not a capability"))?;
        info.capabilities.push(known as i32);
    }
    Ok(capability_bits(&info))
}

const PRIMARY: &str = "cgroups_net_cls_primary_handle";
const SECONDARY: &str = "cgroups_net_cls_secondary_handles";

/// Reads the flags of the isolator `cgroups/net_cls`: handles of network classes.
///
/// # Errors
/// A text that is not a handle, or a flag that would have no effect.
pub(super) fn net_cls(flags: &ContainerNetworkFlags, own: &Isolation) -> Result<Option<NetCls>, FlagError> {
    let (primary, secondary) = (&flags.cgroups_net_cls_primary_handle, &flags.cgroups_net_cls_secondary_handles);
    let (primary, secondary) = (given(primary), given(secondary));
    let (first, last) = match secondary {
        Some(_) if primary.is_none() => {
            return Err(refused(SECONDARY, "needs --cgroups_net_cls_primary_handle"));
        }
        Some(text) => range(text).ok_or_else(|| refused(SECONDARY, "must be two handles such as 0x0001,0xffff"))?,
        None => (1, u16::MAX),
    };
    let Some(text) = primary else { return Ok(None) };
    let primary = handle(text).ok_or_else(|| refused(PRIMARY, "must be a handle such as 0x0012"))?;
    match own.has(&["cgroups/net_cls", "cgroups/all"]) {
        true => Ok(Some(NetCls { primary, first, last })),
        false => Err(refused(PRIMARY, "needs the isolator cgroups/net_cls")),
    }
}

/// Returns the text of a flag, if it is set and not empty.
fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

/// Parses a handle of a network class: 16 bits in hexadecimal digits, not zero.
fn handle(text: &str) -> Option<u16> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    u16::from_str_radix(digits, 16).ok().filter(|handle| *handle != 0)
}

fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once(',')?;
    let (first, last) = (handle(first)?, handle(last)?);
    (first <= last).then_some((first, last))
}

/// Reads the flags of the isolator `cgroups/perf_event`: the events to count; `None` without events.
///
/// # Errors
/// Flags that contradict each other, or an event that the statistics have no field for.
pub(super) fn perf(flags: &IsolationFlags, own: &Isolation) -> Result<Option<Perf>, FlagError> {
    let events =
        given(&flags.perf_events).unwrap_or_default().split(',').map(str::trim).filter(|event| !event.is_empty());
    let events: Vec<String> = events.map(str::to_owned).collect();
    if events.is_empty() {
        return Ok(None);
    }
    if !own.has(&["cgroups/perf_event", "cgroups/all"]) {
        return Err(refused("perf_events", "needs the isolator cgroups/perf_event"));
    }
    let (interval, duration) = (flags.perf_interval, flags.perf_duration);
    if duration > interval || duration.is_zero() {
        return Err(refused("perf_duration", "must be greater than zero and at most --perf_interval"));
    }
    match events.iter().find(|event| !is_perf_event(event)) {
        Some(event) => Err(refused("perf_events", format!("the statistics have no field for the event '{event}'"))),
        None => Ok(Some(Perf { events, interval, duration })),
    }
}

/// Reads the flags of the isolator `network/cni`.
///
/// # Errors
/// One of the two directories is missing, or would have no effect.
pub(super) fn cni(flags: &ContainerNetworkFlags, own: &Isolation) -> Result<Option<Cni>, FlagError> {
    let enabled = own.has(&["network/cni"]);
    let directory = |name: &'static str, given: &Option<PathBuf>| match (given, enabled) {
        (Some(path), true) => Ok(path.clone()),
        (None, false) => Ok(PathBuf::new()),
        (Some(_), false) => Err(refused(name, "needs the isolator network/cni")),
        (None, true) => Err(refused(name, "is needed by the isolator network/cni")),
    };
    let configs = directory("network_cni_config_dir", &flags.network_cni_config_dir)?;
    let plugins = directory("network_cni_plugins_dir", &flags.network_cni_plugins_dir)?;
    Ok(enabled.then(|| Cni { configs, plugins: plugins.to_string_lossy().into_owned() }))
}

/// Reads the indexes of the GPUs that are allocated as a whole, and of those that are shared.
///
/// # Errors
/// A text that is not a list of numbers, or a flag that would have no effect.
pub(super) fn gpus(flags: &IsolationFlags, own: &Isolation) -> Result<(Vec<u32>, Vec<u32>), FlagError> {
    let list = |name: &'static str, text: &Option<String>| {
        indexes(text.as_deref().unwrap_or_default()).map_err(|why| refused(name, why))
    };
    let whole = list("nvidia_gpu_devices", &flags.nvidia_gpu_devices)?;
    let shared = list("gpu_share_devices", &flags.gpu_share_devices)?;
    if !own.has(&["gpu/nvidia"]) {
        for (name, list) in [("nvidia_gpu_devices", &whole), ("gpu_share_devices", &shared)] {
            if !list.is_empty() {
                return Err(refused(name, "needs the isolator gpu/nvidia"));
            }
        }
    }
    Ok((whole, shared))
}

fn indexes(text: &str) -> Result<Vec<u32>, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    let mut list = Vec::new();
    for word in words {
        let index = word.parse().map_err(|_| format!("'{word}' is not a number of a device"))?;
        if list.contains(&index) {
            return Err(format!("the device {index} is listed twice"));
        }
        list.push(index);
    }
    Ok(list)
}

/// Reads the flags of the isolator `network/ports`.
///
/// # Errors
/// Flags that contradict each other, flags that need the isolator, or an invalid range.
pub(super) fn ports(flags: &ContainerNetworkFlags, own: &Isolation) -> Result<Ports, FlagError> {
    const NAME: &str = "network/ports";
    const RANGE: &str = "container_ports_isolated_range";
    let range = given(&flags.container_ports_isolated_range);
    let own_only = flags.check_agent_port_range_only;
    if !own.has(&[NAME]) {
        let set = [(RANGE, range.is_some()), ("check_agent_port_range_only", own_only)];
        let set = set.into_iter().chain([("enforce_container_ports", flags.enforce_container_ports)]);
        return match set.into_iter().find(|(_, set)| *set) {
            Some((name, _)) => Err(refused(name, format!("needs the isolator {NAME}"))),
            None => Ok(Ports::default()),
        };
    }
    let within = match (range, own_only) {
        (Some(_), true) => return Err(refused(RANGE, "excludes --check_agent_port_range_only")),
        (Some(text), false) => {
            let parsed = resources::parse_text(&format!("ports:{text}"), &Role::star());
            let ranges = parsed.map_err(|error| refused(RANGE, error.to_string()))?.ports();
            let fits = ranges.iter().all(|range| range.end <= u64::from(u16::MAX));
            if ranges.is_empty() || !fits {
                return Err(refused(RANGE, format!("'{text}' is not a range of ports like '[1024-65535]'")));
            }
            PortRange::Only(ranges)
        }
        (None, true) => PortRange::Agents,
        (None, false) => PortRange::All,
    };
    Ok(Ports { interval: flags.container_ports_watch_interval, enforce: flags.enforce_container_ports, within })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::flags::{AgentFlags, Flags, Part};

    fn read(words: &[&str]) -> Result<Isolation, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let flags = Flags::load(Part::Agent, &words, std::iter::empty()).map_err(|error| error.to_string())?;
        super::super::isolation::read(&AgentFlags::read(&flags).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_read() {
        let own = read(&["--isolation=network/ports"]).unwrap();
        assert_eq!((own.ports.interval, own.ports.within), (Duration::from_secs(30), PortRange::All));
        let classes = ["--isolation=cgroups/net_cls", "--cgroups_net_cls_primary_handle=0x0012"];
        let own = read(&[classes[0], classes[1], "--cgroups_net_cls_secondary_handles=0x0005,0x0006"]).unwrap();
        assert_eq!(own.cgroups.net_cls, Some(NetCls { primary: 0x12, first: 5, last: 6 }));
        assert_eq!(capabilities(r#"{"capabilities":["CHOWN","KILL"]}"#), Ok(0b10_0001));
        assert!(capabilities("{").is_err());
        assert_eq!(indexes("0, 2"), Ok(vec![0, 2]));
        assert!(indexes("0,x").unwrap_err().contains("'x'") && indexes("1,1").is_err());
    }

    #[test]
    fn what_does_not_fit() {
        const PORTS: &str = "--isolation=network/ports";
        const PERF: &str = "--isolation=cgroups/perf_event";
        for (words, said) in [
            (&["--enforce_container_ports"][..], "'--enforce_container_ports': needs the isolator network/ports"),
            (&["--check_agent_port_range_only"], "needs the isolator"),
            (&["--container_ports_isolated_range=[1-2]"], "needs the isolator"),
            (&[PORTS, "--check_agent_port_range_only", "--container_ports_isolated_range=[1-2]"], "excludes"),
            (&[PORTS, "--container_ports_isolated_range=1-2"], "'--container_ports_isolated_range'"),
            (&[PORTS, "--container_ports_isolated_range=[1-70000]"], "is not a range of ports"),
            (&["--cgroups_net_cls_primary_handle=0x1"], "needs the isolator"),
            (&["--isolation=cgroups/net_cls", "--cgroups_net_cls_primary_handle=1"], "must be a handle"),
            (&["--isolation=cgroups/net_cls", "--cgroups_net_cls_primary_handle=0x0"], "must be a handle"),
            (&["--cgroups_net_cls_secondary_handles=0x1,0x2"], "needs --cgroups_net_cls_primary_handle"),
            (
                &["--cgroups_net_cls_primary_handle=0x1", "--cgroups_net_cls_secondary_handles=0x2,0x1"],
                "must be two handles",
            ),
            (&["--perf_events=cycles"], "needs the isolator"),
            (&[PERF, "--perf_events=cycles", "--perf_duration=2mins"], "at most --perf_interval"),
            (&[PERF, "--perf_events=cycles,nonsense"], "'nonsense'"),
        ] {
            let error = read(words).unwrap_err();
            assert!(error.contains(said), "{words:?}: {error}");
        }
    }

    #[test]
    fn devices_by_path() {
        let text = r#"{"allowed_devices":[{"device":{"path":"/dev/null"},"access":{"read":true,"mknod":true}}]}"#;
        let number = nix::sys::stat::makedev(1, 3);
        let file = DeviceFile { path: "null".into(), is_block: false, number, mode: 0o444 };
        assert_eq!(devices(text), Ok((vec![Device("c 1:3 rm".into())], vec![file])));
        for (text, said) in [
            ("{}", "no list"),
            (r#"{"allowed_devices":[{}]}"#, "without"),
            (r#"{"allowed_devices":[{"device":{"path":"/"}}]}"#, "not a device"),
        ] {
            assert!(devices(text).unwrap_err().contains(said), "{text}");
        }
    }
}
