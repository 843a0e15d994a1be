//! Checks configurations of CNI networks, and results of their plugins.

use containerizer::{cni_addresses, cni_configurations, cni_resolver};
use protos::mesos::NetworkInfo;
use protos::mesos::network_info::PortMapping;
use serde_json::Value;

/// Rejects a network's configuration or makes one for each plugin, with the network's name. The name servers of a
/// result become lines of `resolv.conf`.
pub fn cni(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let mapping = PortMapping { host_port: 31_000, container_port: 80, protocol: None };
    for port_mappings in [Vec::new(), vec![mapping]] {
        let info = NetworkInfo { name: Some("net".to_owned()), port_mappings, ..NetworkInfo::default() };
        if let Ok(configurations) = cni_configurations(&value, &info, |name| name == "portmap") {
            for configuration in &configurations {
                assert!(configuration["type"].is_string() && configuration["name"] == value["name"]);
                assert!(configuration["args"]["org.apache.mesos"]["network_info"]["name"] == "net");
            }
            let mapped = |value: &&Value| value["runtimeConfig"]["portMappings"][0]["hostPort"] == 31_000;
            assert!(info.port_mappings.is_empty() || configurations.iter().any(|value| mapped(&value)));
        }
    }
    assert!(cni_addresses(&value).iter().all(|address| !address.contains('/')));
    for line in cni_resolver(&value).unwrap_or_default().lines() {
        let keyword = line.split(' ').next().unwrap_or_default();
        assert!(["domain", "search", "options", "nameserver"].contains(&keyword), "{line:?}");
    }
}
