//! The reserved resources of agents, as the master lists them, and resources of calls that are made from them.
//!
//! They stay JSON: a resource in a call must be equal to the agent's, field by field.

use anyhow::{Context, Result, anyhow, bail};
use protos::json::{Dialect, ToJson};
use resources::{Role, parse_text};
use serde::Deserialize;
use serde_json::{Value, json};

use super::find;
use crate::connect::MasterArgs;
use crate::read::model::Agent;
use crate::read::table::number;

/// An agent with its reserved resources.
pub(super) struct AgentResources {
    pub(super) agent: Agent,
    pub(super) reserved: Vec<Value>,
}

impl AgentResources {
    /// Returns all registered agents with their reserved resources.
    ///
    /// # Errors
    /// The master does not answer.
    pub(super) async fn all(master: &MasterArgs) -> Result<Vec<AgentResources>> {
        let document: Value = master.read("/slaves").await?;
        let agents = document["slaves"].as_array().into_iter().flatten();
        let one = |document: &Value| {
            let agent = Agent::deserialize(document).context("the master's list of agents")?;
            let roles = document["reserved_resources_full"].as_object().into_iter().flatten();
            let reserved = roles.flat_map(|(_, list)| list.as_array().cloned().unwrap_or_default());
            Ok(AgentResources { agent, reserved: reserved.map(for_calls).collect() })
        };
        agents.map(one).collect()
    }

    /// Finds the agent that `text` names.
    ///
    /// # Errors
    /// No agent has such a name, or several have.
    pub(super) async fn find(master: &MasterArgs, text: &str) -> Result<AgentResources> {
        let all = AgentResources::all(master).await?;
        let id = find::agent(all.iter().map(|one| &one.agent), text)?.id.clone();
        all.into_iter().find(|one| one.agent.id == id).ok_or_else(|| anyhow!("agent {id} is gone"))
    }
}

/// Removes the fields of the old format from a resource, which contradict the new one in a call.
fn for_calls(mut resource: Value) -> Value {
    if let Some(fields) = resource.as_object_mut() {
        fields.remove("role");
        fields.remove("reservation");
    }
    resource
}

/// Returns the role of a resource's last reservation.
pub(super) fn role(resource: &Value) -> &str {
    last_reservation(resource)["role"].as_str().unwrap_or("*")
}

/// Returns the last reservation of a resource, which refines the others.
pub(super) fn last_reservation(resource: &Value) -> &Value {
    resource["reservations"].as_array().and_then(|all| all.last()).unwrap_or(&Value::Null)
}

/// Returns whether the resource is reserved by a call, and not by the agent's flags.
pub(super) fn is_dynamic(resource: &Value) -> bool {
    last_reservation(resource)["type"] == "DYNAMIC"
}

/// Returns the id of a persistent volume; `None` for other resources.
pub(super) fn volume(resource: &Value) -> Option<&str> {
    resource["disk"]["persistence"]["id"].as_str()
}

/// Returns the amount of a scalar resource.
pub(super) fn amount(resource: &Value) -> f64 {
    resource["scalar"]["value"].as_f64().unwrap_or(0.0)
}

/// Formats a resource in the text form: `cpus:4`, `ports:[31000-31005]`.
pub(super) fn text(resource: &Value) -> String {
    let name = resource["name"].as_str().unwrap_or_default();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let joined = |texts: Vec<String>| texts.join(", ");
    match resource["type"].as_str() {
        Some("RANGES") => {
            let one = |range: &Value| format!("{}-{}", range["begin"], range["end"]);
            format!("{name}:[{}]", joined(list(&resource["ranges"]["range"]).iter().map(one).collect()))
        }
        Some("SET") => {
            let one = |item: &Value| item.as_str().unwrap_or_default().to_owned();
            format!("{name}:{{{}}}", joined(list(&resource["set"]["item"]).iter().map(one).collect()))
        }
        _ => format!("{name}:{}", number(amount(resource))),
    }
}

/// Parses resources of a call from their text form, and adds these reservations.
///
/// # Errors
/// The text cannot be parsed.
pub(super) fn parse(text: &str, reservations: &Value) -> Result<Vec<Value>> {
    let parsed = parse_text(text, &Role::star());
    let parsed = parsed.with_context(|| format!("'{text}' cannot be read: must be such as cpus:1;mem:128"))?;
    let one = |resource: &sdk::v1::Resource| -> Result<Value> {
        let mut resource: Value = serde_json::from_slice(&resource.json(Dialect::V1))?;
        resource["reservations"] = reservations.clone();
        Ok(for_calls(resource))
    };
    let all = sdk::task::to_v1(&parsed).iter().map(one).collect::<Result<Vec<Value>>>()?;
    match all.is_empty() {
        true => bail!("'{text}' names no resource"),
        false => Ok(all),
    }
}

/// Returns the parts of the agent's dynamically reserved resources of a role, without volumes, that add up to the
/// wanted resources.
///
/// # Errors
/// Less is reserved.
pub(super) fn take(reserved: &[Value], role_wanted: &str, wanted: &str) -> Result<Vec<Value>> {
    let mut taken = Vec::new();
    for mut wanted in parse(wanted, &json!([]))? {
        let is_like = |one: &&Value| {
            one["name"] == wanted["name"]
                && one["type"] == wanted["type"]
                && role(one) == role_wanted
                && is_dynamic(one)
                && volume(one).is_none()
        };
        let candidates: Vec<&Value> = reserved.iter().filter(is_like).collect();
        if wanted["type"] != "SCALAR" {
            // The master checks that the ranges or items are within the reservation.
            let [only] = candidates[..] else { bail!(nothing(reserved, role_wanted, &wanted)) };
            wanted["reservations"] = only["reservations"].clone();
            taken.push(wanted);
            continue;
        }
        let mut missing = amount(&wanted);
        for candidate in candidates {
            let part = amount(candidate).min(missing);
            if part > 0.0 {
                let mut resource = candidate.clone();
                resource["scalar"]["value"] = json!(part);
                taken.push(resource);
                missing -= part;
            }
        }
        if missing > 5e-4 {
            bail!(nothing(reserved, role_wanted, &wanted));
        }
    }
    Ok(taken)
}

fn nothing(reserved: &[Value], role_wanted: &str, wanted: &Value) -> String {
    let own = reserved.iter().filter(|one| role(one) == role_wanted && is_dynamic(one) && volume(one).is_none());
    let own: Vec<String> = own.map(text).collect();
    let has = if own.is_empty() { "nothing".to_owned() } else { own.join(";") };
    format!("{} is more than the dynamic reservations of role {role_wanted}: {has}", text(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(amount: f64, reservations: Value) -> Value {
        json!({"name": "disk", "type": "SCALAR", "scalar": {"value": amount}, "reservations": reservations})
    }

    #[test]
    fn resources_are_taken_from_equal_reservations() {
        let own = json!([{"type": "DYNAMIC", "role": "r", "principal": "p"}]);
        let other = json!([{"type": "DYNAMIC", "role": "r"}]);
        let mut volume = disk(500.0, own.clone());
        volume["disk"] = json!({"persistence": {"id": "v"}});
        let reserved = [
            volume,
            disk(20.0, own.clone()),
            disk(30.0, other.clone()),
            disk(900.0, json!([{"type": "STATIC", "role": "r"}])),
            json!({"name": "ports", "type": "RANGES", "ranges": {"range": [{"begin": 5, "end": 9}]}, "reservations": own}),
        ];
        let taken = take(&reserved, "r", "disk:25").unwrap();
        assert_eq!(taken, [disk(20.0, own.clone()), disk(5.0, other)]);
        let error = take(&reserved, "r", "disk:51").unwrap_err().to_string();
        assert_eq!(error, "disk:51 is more than the dynamic reservations of role r: disk:20;disk:30;ports:[5-9]");
        assert!(take(&reserved, "q", "disk:1").unwrap_err().to_string().ends_with("role q: nothing"));
        let ports = take(&reserved, "r", "ports:[6-7]").unwrap();
        assert_eq!((text(&ports[0]), &ports[0]["reservations"]), ("ports:[6-7]".to_owned(), &own));
        assert!(take(&reserved, "r", "cpus").is_err() && take(&reserved, "r", "").is_err());
    }
}
