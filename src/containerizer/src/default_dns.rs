//! Default name servers of containers on container networks, where neither the task nor the plugin names any
//! (`--default_container_dns`).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Default name servers by containerizer, network mode and network. Each network is in a list only once.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultDns {
    /// Entries for networks of CNI plugins.
    #[serde(default)]
    pub mesos: Vec<DnsEntry>,
    /// Entries for Docker's networks.
    #[serde(default)]
    pub docker: Vec<DnsEntry>,
}

/// Name servers of one network, or of all networks of a mode.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DnsEntry {
    /// Network mode: `CNI`, `BRIDGE` or `USER`.
    pub network_mode: String,
    /// Name of the network; `None`: all networks of the mode without an entry of their own.
    pub network_name: Option<String>,
    /// Content of `resolv.conf`.
    pub dns: Dns,
}

/// Content of `resolv.conf`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Dns {
    /// Addresses of the name servers.
    #[serde(default)]
    pub nameservers: Vec<String>,
    /// Local domain name.
    #[serde(default)]
    pub domain: Option<String>,
    /// Search domains for short names.
    #[serde(default)]
    pub search: Vec<String>,
    /// Options of the resolver.
    #[serde(default)]
    pub options: Vec<String>,
}

impl DefaultDns {
    /// Returns the name servers of a CNI network in the form of a plugin's result: `{"dns": ...}`.
    pub(crate) fn of_cni(&self, network: &str) -> Option<Value> {
        Some(json!({"dns": of(&self.mesos, "CNI", Some(network))?}))
    }

    /// Returns the name servers of a Docker network as JSON; `mode` is `BRIDGE` or `USER`.
    pub(crate) fn of_docker(&self, mode: &str, network: Option<&str>) -> Option<String> {
        serde_json::to_string(of(&self.docker, mode, network)?).ok()
    }
}

/// Returns the entry for a network by its name, or else the one for its mode.
fn of<'a>(entries: &'a [DnsEntry], mode: &str, network: Option<&str>) -> Option<&'a Dns> {
    let find = |name: Option<&str>| {
        let mut entries = entries.iter().filter(|entry| entry.network_mode == mode);
        entries.find(|entry| entry.network_name.as_deref() == name).map(|entry| &entry.dns)
    };
    find(network).or_else(|| find(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_entry() {
        let entry = |mode: &str, name: Option<&str>, server: &str| DnsEntry {
            network_mode: mode.to_owned(),
            network_name: name.map(str::to_owned),
            dns: Dns { nameservers: vec![server.to_owned()], ..Dns::default() },
        };
        let mesos = vec![entry("CNI", None, "1.1.1.1"), entry("CNI", Some("line"), "2.2.2.2")];
        let dns = DefaultDns { mesos, docker: vec![entry("USER", Some("a"), "3.3.3.3")] };
        assert_eq!(dns.of_cni("line").unwrap()["dns"]["nameservers"], json!(["2.2.2.2"]));
        assert_eq!(dns.of_cni("other").unwrap()["dns"]["nameservers"], json!(["1.1.1.1"]));
        assert!(dns.of_docker("USER", Some("a")).unwrap().contains("3.3.3.3"));
        assert_eq!((dns.of_docker("USER", Some("b")), dns.of_docker("BRIDGE", None)), (None, None));
        assert!(DefaultDns::default().of_cni("line").is_none());
    }
}
