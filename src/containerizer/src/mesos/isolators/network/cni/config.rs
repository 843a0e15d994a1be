//! Configuration of a CNI network: its file, the additions for a container, and the results of its plugins.
//!
//! It reads configurations of one plugin and lists of plugins, of all versions of the CNI specification up to 1.0.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use protos::json::{Dialect, ToJson};
use protos::mesos::{NetworkInfo, Resource};
use serde_json::{Map, Value, json};

use super::plugin::Plugins;

/// CNI version of a list that states none.
const VERSION: &str = "0.4.0";
/// Name of the plugin for port mappings, for networks without one of their own.
const PORTMAP: &str = "portmap";

/// Name of Mesos's object among the arguments of a plugin.
const MESOS: &str = "org.apache.mesos";

/// Returns the configurations of a network's plugins for one container. The files are read each time.
///
/// # Errors
/// There is no such network, or it cannot map ports as requested.
pub(crate) fn find(directory: &Path, info: &NetworkInfo, plugins: &Plugins) -> anyhow::Result<Vec<Value>> {
    let name = info.name();
    let entries = fs::read_dir(directory).with_context(|| format!("'{}' cannot be read", directory.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| serde_json::from_slice::<Value>(&fs::read(path).ok()?).ok();
    let found = paths.iter().filter_map(read).find(|config| config["name"] == name);
    let found = found.with_context(|| format!("There is no network '{name}' in '{}'", directory.display()))?;
    configurations(&found, info, |plugin| plugins.has(plugin))
}

/// Returns the configurations of a network's plugins for one container, from the configuration of the network. `has`
/// returns whether a plugin is installed.
///
/// # Errors
/// The network has no plugin, or cannot map ports as requested.
pub fn configurations(network: &Value, info: &NetworkInfo, has: impl Fn(&str) -> bool) -> anyhow::Result<Vec<Value>> {
    let list = network["plugins"].as_array();
    let mut configs = list.cloned().unwrap_or_else(|| vec![network.clone()]);
    if !info.port_mappings.is_empty() {
        let maps = |config: &Value| config["capabilities"]["portMappings"] == true;
        if !configs.iter().any(maps) {
            ensure!(has(PORTMAP), "The network '{}' cannot map ports: it has no plugin '{PORTMAP}'", info.name());
            configs.push(json!({"type": PORTMAP, "capabilities": {"portMappings": true}}));
        }
        let mapping = |mapping: &protos::mesos::network_info::PortMapping| {
            let protocol = mapping.protocol.as_deref().unwrap_or("tcp").to_ascii_lowercase();
            json!({"hostPort": mapping.host_port, "containerPort": mapping.container_port, "protocol": protocol})
        };
        let mappings: Vec<Value> = info.port_mappings.iter().map(mapping).collect();
        for config in configs.iter_mut().filter(|config| maps(config)) {
            let runtime = part(config, "runtimeConfig").with_context(|| malformed(info, "runtimeConfig"))?;
            runtime.insert("portMappings".to_owned(), json!(mappings));
        }
    }
    let about: Value = serde_json::from_slice(&info.json(Dialect::V1)).unwrap_or_default();
    let is_chain = configs.len() > 1;
    ensure!(!configs.is_empty(), "The network '{}' has no plugin", info.name());
    for config in &mut configs {
        ensure!(config.is_object() && config["type"].is_string(), "The network '{}' has no plugin", info.name());
        config["name"] = network["name"].clone();
        if let Some(version) = network["cniVersion"].as_str().or(is_chain.then_some(VERSION)) {
            config["cniVersion"] = json!(version);
        }
        let args = part(config, "args").with_context(|| malformed(info, "args"))?;
        let own = object(args.entry(MESOS).or_insert(Value::Null)).with_context(|| malformed(info, MESOS))?;
        own.insert("network_info".to_owned(), about.clone());
    }
    Ok(configs)
}

/// Returns an object within a configuration, which is created if it is missing; `None` if its name has another value.
fn part<'a>(config: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    object(config.as_object_mut()?.entry(name).or_insert(Value::Null))
}

/// Returns a value as an object; a null value becomes one. `None` for other values.
fn object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut()
}

fn malformed(info: &NetworkInfo, name: &str) -> String {
    format!("The network '{}' is malformed: '{name}' is not an object", info.name())
}

/// Returns the addresses in a plugin's result, without the lengths of their prefixes.
pub fn addresses(result: &Value) -> Vec<String> {
    let new = result["ips"].as_array().into_iter().flatten().map(|ip| &ip["address"]);
    let old = [&result["ip4"]["ip"], &result["ip6"]["ip"]];
    let texts = new.chain(old).filter_map(Value::as_str);
    texts.map(|text| text.split('/').next().unwrap_or(text).to_owned()).collect()
}

/// Returns the text of `resolv.conf`; `None` if a result has no name servers.
pub fn resolver(result: &Value) -> Option<String> {
    let words = |dns: &Value, name: &str| -> Vec<String> {
        let list = dns[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        list.filter(|word| !word.contains(['\n', '\r'])).map(str::to_owned).collect()
    };
    let all = [&result["dns"], &result["ip4"]["dns"], &result["ip6"]["dns"]];
    let dns = all.into_iter().find(|dns| !words(dns, "nameservers").is_empty())?;
    let mut text = String::new();
    if let Some(domain) = dns["domain"].as_str().filter(|domain| !domain.is_empty() && !domain.contains(['\n', '\r'])) {
        text += &format!("domain {domain}\n");
    }
    for (name, keyword) in [("search", "search"), ("options", "options")] {
        let words = words(dns, name);
        if !words.is_empty() {
            text += &format!("{keyword} {}\n", words.join(" "));
        }
    }
    words(dns, "nameservers").iter().for_each(|server| text += &format!("nameserver {server}\n"));
    Some(text)
}

/// Checks that a container maps only ports of the host that it holds.
///
/// # Errors
/// The first port that it does not hold.
pub(crate) fn check_ports(info: &NetworkInfo, held: &[Resource]) -> anyhow::Result<()> {
    let ranges =
        held.iter().filter(|resource| resource.name == "ports").filter_map(|resource| resource.ranges.as_ref());
    let ranges: Vec<_> = ranges.flat_map(|ranges| &ranges.range).collect();
    for mapping in &info.port_mappings {
        let port = u64::from(mapping.host_port);
        if !ranges.iter().any(|range| (range.begin..=range.end).contains(&port)) {
            bail!("The port {port} that is to be mapped is not among the task's resources");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::network_info::PortMapping;
    use protos::mesos::value::{Range, Ranges};

    fn info(ports: &[u32]) -> NetworkInfo {
        let one = |&port: &u32| PortMapping { host_port: port, container_port: 80, protocol: None };
        NetworkInfo {
            name: Some("net".into()),
            port_mappings: ports.iter().map(one).collect(),
            ..NetworkInfo::default()
        }
    }

    #[test]
    fn one_plugin_and_lists() {
        let plain = json!({"name": "net", "type": "bridge"});
        let configs = configurations(&plain, &info(&[]), |_| false).unwrap();
        assert_eq!(configs.len(), 1);
        assert_eq!(configs[0]["args"]["org.apache.mesos"]["network_info"]["name"], "net");
        assert!(configs[0].get("cniVersion").is_none());
        let mapped = configurations(&plain, &info(&[31000]), |name| name == "portmap").unwrap();
        assert_eq!(mapped[1]["type"], "portmap");
        assert_eq!((&mapped[0]["cniVersion"], &mapped[1]["cniVersion"]), (&json!("0.4.0"), &json!("0.4.0")));
        let expected = json!([{"hostPort": 31000, "containerPort": 80, "protocol": "tcp"}]);
        assert_eq!(mapped[1]["runtimeConfig"]["portMappings"], expected);
        assert!(
            configurations(&plain, &info(&[31000]), |_| false).unwrap_err().to_string().contains("cannot map ports")
        );
        let own = json!({"type": "mapper", "capabilities": {"portMappings": true}});
        let list = json!({"name": "net", "cniVersion": "1.0.0", "plugins": [{"type": "ptp"}, own]});
        let configs = configurations(&list, &info(&[31000]), |_| false).unwrap();
        assert_eq!(
            (configs.len(), &configs[0]["name"], &configs[1]["cniVersion"]),
            (2, &json!("net"), &json!("1.0.0"))
        );
        assert_eq!(configs[1]["runtimeConfig"]["portMappings"], expected);
        for broken in [
            json!({"name": "net"}),
            json!({"name": "net", "plugins": [3]}),
            json!({"name": "net", "plugins": []}),
            json!({"name": "net", "type": "a", "args": "text"}),
            json!({"name": "net", "type": "a", "args": {"org.apache.mesos": [1]}}),
            json!({"name": "net", "type": "a", "capabilities": {"portMappings": true}, "runtimeConfig": []}),
        ] {
            let ports: &[u32] = if broken.get("runtimeConfig").is_some() { &[31000] } else { &[] };
            assert!(configurations(&broken, &info(ports), |_| true).is_err(), "{broken}");
        }
        let nulls = json!({"name": "net", "type": "a", "args": null});
        assert!(configurations(&nulls, &info(&[]), |_| true).is_ok());
    }

    #[test]
    fn results_of_all_versions() {
        let new = json!({"ips": [{"address": "10.0.0.2/24"}, {"address": "fd00::2/64"}],
            "dns": {"nameservers": ["10.0.0.1"], "search": ["a", "b"], "domain": "c"}});
        assert_eq!(addresses(&new), ["10.0.0.2", "fd00::2"]);
        assert_eq!(resolver(&new).unwrap(), "domain c\nsearch a b\nnameserver 10.0.0.1\n");
        let old = json!({"ip4": {"ip": "10.0.0.3/24"}, "dns": {"nameservers": ["x\nnameserver y"]}});
        assert_eq!((addresses(&old), resolver(&old)), (vec!["10.0.0.3".to_owned()], None));
        assert!(addresses(&json!("nonsense")).is_empty());
    }

    #[test]
    fn ports_are_the_tasks_own() {
        let range = Range { begin: 31000, end: 31001 };
        let held =
            Resource { name: "ports".into(), ranges: Some(Ranges { range: vec![range] }), ..Resource::default() };
        assert!(check_ports(&info(&[31001]), std::slice::from_ref(&held)).is_ok());
        let error = check_ports(&info(&[22]), &[held]).unwrap_err();
        assert_eq!(error.to_string(), "The port 22 that is to be mapped is not among the task's resources");
    }
}
