//! `--default_container_dns`: the name servers of containers on networks of their own, where nobody else names any.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::flags::{FlagError, Flags};

const NAME: &str = "default_container_dns";

/// The flag's value.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    #[serde(default)]
    mesos: Vec<Entry>,
    #[serde(default)]
    docker: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    network_mode: String,
    network_name: Option<String>,
    dns: Dns,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Dns {
    #[serde(default)]
    nameservers: Vec<String>,
    #[serde(default)]
    domain: Option<String>,
    #[serde(default)]
    search: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
}

/// See the module. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct DefaultDns(Arc<Given>);

impl DefaultDns {
    /// Reads the flag.
    ///
    /// # Errors
    /// What is no JSON of this form, a mode that is unknown or the host's, or a network that is there twice.
    pub(super) fn read(flags: &Flags) -> Result<DefaultDns, FlagError> {
        let refused = |why: String| FlagError::Refused { name: NAME, why };
        let Some(text) = flags.get(NAME).filter(|text| !text.is_empty()) else { return Ok(DefaultDns::default()) };
        let value: Value = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
        if !value.is_object() {
            return Err(refused("is not a JSON object".to_owned()));
        }
        let given: Given = serde_json::from_value(value).map_err(|error| refused(error.to_string()))?;
        for (kind, entries, modes) in
            [("mesos", &given.mesos, &["CNI"][..]), ("docker", &given.docker, &["BRIDGE", "USER"])]
        {
            let mut seen = BTreeSet::new();
            for entry in entries {
                let mode = entry.network_mode.as_str();
                if mode == "HOST" {
                    return Err(refused(format!("{kind}: containers on the host's network have the host's servers")));
                }
                if !modes.contains(&mode) {
                    return Err(refused(format!("{kind}: there is no mode '{mode}': use {}", modes.join(" or "))));
                }
                if !seen.insert((mode, &entry.network_name)) {
                    let name = entry.network_name.as_deref().unwrap_or_default();
                    return Err(refused(format!("{kind}: the network '{name}' of the mode {mode} is there twice")));
                }
            }
        }
        Ok(DefaultDns(Arc::new(given)))
    }

    /// What a CNI plugin would say of a network's servers: `{"dns": ...}`.
    pub(super) fn of_cni(&self, network: &str) -> Option<Value> {
        Some(json!({"dns": of(&self.0.mesos, "CNI", Some(network))?}))
    }

    /// The servers of a network of Docker's, as JSON; `mode` is `BRIDGE` or `USER`.
    pub(super) fn of_docker(&self, mode: &str, network: Option<&str>) -> Option<String> {
        serde_json::to_string(of(&self.0.docker, mode, network)?).ok()
    }
}

/// The entry for a network by its name, or else the one for all of its mode.
fn of<'a>(entries: &'a [Entry], mode: &str, network: Option<&str>) -> Option<&'a Dns> {
    let find = |name: Option<&str>| {
        let mut entries = entries.iter().filter(|entry| entry.network_mode == mode);
        entries.find(|entry| entry.network_name.as_deref() == name).map(|entry| &entry.dns)
    };
    find(network).or_else(|| find(None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    fn read(value: &Value) -> Result<DefaultDns, String> {
        let words = [format!("--{NAME}={value}")];
        let flags = Flags::load(Part::Agent, &words, std::iter::empty()).map_err(|error| error.to_string())?;
        DefaultDns::read(&flags).map_err(|error| error.to_string())
    }

    fn entry(mode: &str, name: Option<&str>, server: &str) -> Value {
        let mut entry = json!({"network_mode": mode, "dns": {"nameservers": [server]}});
        if let Some(name) = name {
            entry["network_name"] = json!(name);
        }
        entry
    }

    #[test]
    fn the_nearest_entry() {
        let cni = [entry("CNI", None, "1.1.1.1"), entry("CNI", Some("line"), "2.2.2.2")];
        let dns = read(&json!({"mesos": cni, "docker": [entry("USER", Some("a"), "3.3.3.3")]})).unwrap();
        assert_eq!(dns.of_cni("line").unwrap()["dns"]["nameservers"], json!(["2.2.2.2"]));
        assert_eq!(dns.of_cni("other").unwrap()["dns"]["nameservers"], json!(["1.1.1.1"]));
        assert!(dns.of_docker("USER", Some("a")).unwrap().contains("3.3.3.3"));
        assert_eq!((dns.of_docker("USER", Some("b")), dns.of_docker("BRIDGE", None)), (None, None));
        assert!(DefaultDns::default().of_cni("line").is_none());
    }

    #[test]
    fn what_does_not_fit() {
        for (value, said) in [
            (json!([]), "not a JSON object"),
            (json!({"mesos": [{"network_mode": "CNI"}]}), "dns"),
            (json!({"mesos": [entry("HOST", None, "1.1.1.1")]}), "the host's servers"),
            (json!({"mesos": [entry("BRIDGE", None, "1.1.1.1")]}), "use CNI"),
            (json!({"docker": [entry("CNI", None, "1.1.1.1")]}), "use BRIDGE or USER"),
            (json!({"docker": [entry("USER", Some("a"), "1"), entry("USER", Some("a"), "2")]}), "'a'"),
        ] {
            let error = read(&value).unwrap_err();
            assert!(error.contains(said), "{value}: {error}");
        }
    }
}
