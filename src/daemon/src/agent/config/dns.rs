//! `--default_container_dns`: the name servers of containers on networks of their own, unless another setting names
//! some.

use std::collections::BTreeSet;

use containerizer::config::DefaultDns;
use serde_json::Value;

use crate::flags::{FlagError, Json};

const NAME: &str = "default_container_dns";

/// Reads `--default_container_dns`.
///
/// # Errors
/// Invalid JSON, an unknown mode, the host's mode, or two entries for one network.
pub(super) fn read(given: Option<&Json>) -> Result<DefaultDns, FlagError> {
    let refused = |why: String| FlagError::Refused { name: NAME, why };
    let Some(text) = given else { return Ok(DefaultDns::default()) };
    let value: Value = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
    if !value.is_object() {
        return Err(refused("is not a JSON object".to_owned()));
    }
    let given: DefaultDns = serde_json::from_value(value).map_err(|error| refused(error.to_string()))?;
    for (kind, entries, modes) in
        [("mesos", &given.mesos, &["CNI"][..]), ("docker", &given.docker, &["BRIDGE", "USER"])]
    {
        let mut seen = BTreeSet::new();
        for entry in entries {
            let mode = entry.network_mode.as_str();
            if mode == "HOST" {
                return Err(refused(format!("{kind}: containers on the host network use the host's DNS servers")));
            }
            if !modes.contains(&mode) {
                return Err(refused(format!("{kind}: unknown network mode '{mode}': use {}", modes.join(" or "))));
            }
            if !seen.insert((mode, &entry.network_name)) {
                let name = entry.network_name.as_deref().unwrap_or_default();
                return Err(refused(format!("{kind}: the network '{name}' of the mode {mode} is listed twice")));
            }
        }
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::flags::AgentFlags;

    fn read(value: &Value) -> Result<DefaultDns, String> {
        let flags = AgentFlags::with(&[(NAME, &value.to_string())]);
        super::read(flags.container_network.default_container_dns.as_ref()).map_err(|error| error.to_string())
    }

    fn entry(mode: &str, name: Option<&str>, server: &str) -> Value {
        let mut entry = json!({"network_mode": mode, "dns": {"nameservers": [server]}});
        if let Some(name) = name {
            entry["network_name"] = json!(name);
        }
        entry
    }

    #[test]
    fn what_does_not_fit() {
        for (value, said) in [
            (json!([]), "not a JSON object"),
            (json!({"mesos": [{"network_mode": "CNI"}]}), "dns"),
            (json!({"mesos": [entry("HOST", None, "1.1.1.1")]}), "the host's DNS servers"),
            (json!({"mesos": [entry("BRIDGE", None, "1.1.1.1")]}), "use CNI"),
            (json!({"docker": [entry("CNI", None, "1.1.1.1")]}), "use BRIDGE or USER"),
            (json!({"docker": [entry("USER", Some("a"), "1"), entry("USER", Some("a"), "2")]}), "'a'"),
        ] {
            let error = read(&value).unwrap_err();
            assert!(error.contains(said), "{value}: {error}");
        }
    }
}
