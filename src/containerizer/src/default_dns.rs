//! `--default_container_dns`: the name servers of containers on networks of their own, where neither task nor plugin
//! names any.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Servers by kind of container, mode and network. A network is in a list once.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultDns {
    /// Of networks that CNI plugins make.
    #[serde(default)]
    pub mesos: Vec<DnsEntry>,
    /// Of networks that Docker makes.
    #[serde(default)]
    pub docker: Vec<DnsEntry>,
}

/// The servers of one network, or of all of a mode.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DnsEntry {
    /// `CNI`, `BRIDGE` or `USER`.
    pub network_mode: String,
    /// The network; without it, all of the mode that have no entry of their own.
    pub network_name: Option<String>,
    /// What `resolv.conf` is to say.
    pub dns: Dns,
}

/// What `resolv.conf` is to say.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Dns {
    /// The servers' addresses.
    #[serde(default)]
    pub nameservers: Vec<String>,
    /// The domain.
    #[serde(default)]
    pub domain: Option<String>,
    /// Domains in which short names are looked up.
    #[serde(default)]
    pub search: Vec<String>,
    /// Options of the resolver.
    #[serde(default)]
    pub options: Vec<String>,
}

impl DefaultDns {
    /// What a CNI plugin would say of a network's servers: `{"dns": ...}`.
    pub(crate) fn of_cni(&self, network: &str) -> Option<Value> {
        Some(json!({"dns": of(&self.mesos, "CNI", Some(network))?}))
    }

    /// The servers of a network of Docker's, as JSON; `mode` is `BRIDGE` or `USER`.
    pub(crate) fn of_docker(&self, mode: &str, network: Option<&str>) -> Option<String> {
        serde_json::to_string(of(&self.docker, mode, network)?).ok()
    }
}

/// The entry for a network by its name, or else the one for all of its mode.
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
