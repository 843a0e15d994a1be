//! Reads `--resource_estimator` and `--qos_controller`: which of the agent's policies are used, and with what settings.
//!
//! The policies themselves are in the crate `agent`. As with Mesos they are named as modules, with parameters in
//! `--modules`; modules in files cannot be loaded.

use std::collections::BTreeMap;

use agent::oversubscription::{FixedEstimator, LoadController, Policy};
use protos::json::Value;
use resources::{Resources, Role};

use crate::flags::agent::OversubscriptionFlags;
use crate::flags::{FlagError, Json, json};

/// Name of the estimator that always estimates the same resources; its parameter is `resources`.
const FIXED: &str = "org_apache_mesos_FixedResourceEstimator";
/// Name of the QoS controller that limits the load; its parameters are `load_threshold_5min` and
/// `load_threshold_15min`.
const LOAD: &str = "org_apache_mesos_LoadQoSController";

pub(super) type Parameters = BTreeMap<String, String>;

fn refused(name: &'static str, why: impl Into<String>) -> FlagError {
    FlagError::Refused { name, why: why.into() }
}

/// Reads the flags of oversubscription.
///
/// # Errors
/// A module that is not built in, or invalid parameters.
pub(super) fn policy(flags: &OversubscriptionFlags) -> Result<Policy, FlagError> {
    let modules = modules(flags.modules.as_ref())?;
    let mut policy = Policy {
        estimate_interval: flags.oversubscribed_resources_interval,
        correction_interval: flags.qos_correction_interval_min,
        ..Policy::default()
    };
    if let Some(name) = flags.resource_estimator.as_deref().filter(|name| !name.is_empty()) {
        let parameters = parameters("resource_estimator", name, FIXED, &modules)?;
        policy.estimator = Some(Box::new(FixedEstimator::new(&fixed(parameters)?)));
    }
    if let Some(name) = flags.qos_controller.as_deref().filter(|name| !name.is_empty()) {
        let parameters = parameters("qos_controller", name, LOAD, &modules)?;
        policy.controller = Some(Box::new(load(parameters)?));
    }
    Ok(policy)
}

/// Parses the parameters of the modules in `--modules`: `{"libraries": [{"modules": [{"name": _, "parameters": [{"key":
/// _, "value": _}]}]}]}`.
pub(super) fn modules(given: Option<&Json>) -> Result<BTreeMap<String, Parameters>, FlagError> {
    let Some(text) = given else { return Ok(BTreeMap::new()) };
    let value = Value::parse(text.as_bytes()).map_err(|error| refused("modules", error.to_string()))?;
    known_keys(&value).map_err(|why| refused("modules", why))?;
    let mut found = BTreeMap::new();
    for module in list(&value, "libraries").iter().flat_map(|library| list(library, "modules")) {
        let name = text_of(module, "name");
        if ![FIXED, LOAD, super::config::containerizer::LOGROTATE].contains(&name.as_str()) {
            return Err(refused("modules", format!("the module '{name}' is not built in, and none can be loaded")));
        }
        let parameters = list(module, "parameters").iter();
        let parameters = parameters.map(|one| (text_of(one, "key"), text_of(one, "value"))).collect();
        if found.insert(name.clone(), parameters).is_some() {
            return Err(refused("modules", format!("the module '{name}' is listed twice")));
        }
    }
    Ok(found)
}

/// Checks that all keys are those of Mesos's `Modules`.
///
/// # Errors
/// The first key that is not.
fn known_keys(value: &Value) -> Result<(), String> {
    json::only(value, "", &["libraries"])?;
    for library in list(value, "libraries") {
        json::only(library, "libraries", &["file", "name", "modules"])?;
        for module in list(library, "modules") {
            json::only(module, "modules", &["name", "parameters"])?;
            for parameter in list(module, "parameters") {
                json::only(parameter, "parameters", &["key", "value"])?;
            }
        }
    }
    Ok(())
}

/// Returns the items of a field that is an array; none if the field is missing or has another type.
fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).unwrap_or_default()
}

fn text_of(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn parameters<'a>(
    flag: &'static str,
    name: &str,
    known: &str,
    modules: &'a BTreeMap<String, Parameters>,
) -> Result<&'a Parameters, FlagError> {
    if name != known {
        return Err(refused(flag, format!("'{name}' is not supported: only {known} is built in")));
    }
    modules.get(name).ok_or_else(|| refused(flag, format!("--modules has no parameters of '{name}'")))
}

fn fixed(parameters: &Parameters) -> Result<Resources, FlagError> {
    let text = parameters.get("resources").map(String::as_str).unwrap_or_default();
    let resources = resources::parse_text(text, &Role::star());
    let resources = resources.map_err(|error| refused("modules", format!("'resources' of {FIXED}: {error}")))?;
    if resources.is_empty() {
        return Err(refused("modules", format!("{FIXED} needs the parameter 'resources'")));
    }
    Ok(resources)
}

fn load(parameters: &Parameters) -> Result<LoadController, FlagError> {
    let limit = |key: &str| match parameters.get(key).map(|text| text.parse::<f64>()) {
        None => Ok(None),
        Some(Ok(limit)) if limit.is_finite() && limit >= 0.0 => Ok(Some(limit)),
        Some(_) => Err(refused("modules", format!("'{key}' of {LOAD} is not a number of at least 0"))),
    };
    let controller =
        LoadController { five_minutes: limit("load_threshold_5min")?, fifteen_minutes: limit("load_threshold_15min")? };
    if controller == LoadController::default() {
        return Err(refused("modules", format!("{LOAD} needs 'load_threshold_5min' or 'load_threshold_15min'")));
    }
    Ok(controller)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::AgentFlags;

    fn read(estimator: &str, controller: &str, name: &str, key: &str, value: &str) -> Result<Policy, String> {
        let modules = format!(
            r#"{{"libraries":[{{"modules":[{{"name":"{name}","parameters":[{{"key":"{key}","value":"{value}"}}]}}]}}]}}"#
        );
        let flags = AgentFlags::with(&[
            ("modules", modules.as_str()),
            ("resource_estimator", estimator),
            ("qos_controller", controller),
        ]);
        policy(&flags.oversubscription).map_err(|error| error.to_string())
    }

    #[test]
    fn modules_of_ours_have_parameters() {
        assert!(policy(&AgentFlags::with(&[]).oversubscription).unwrap().estimator.is_none());
        assert!(read(FIXED, "", FIXED, "resources", "cpus:4").unwrap().estimator.is_some());
        assert!(read("", LOAD, LOAD, "load_threshold_5min", "3.5").unwrap().controller.is_some());
        assert!(read("", "", FIXED, "resources", "cpus:4").unwrap().estimator.is_none());
    }

    #[test]
    fn others_are_refused_by_name() {
        for (estimator, controller, name, key, value, said) in [
            ("mine", "", FIXED, "resources", "cpus:4", "'mine' is not supported"),
            (FIXED, "", "mine", "resources", "cpus:4", "'mine' is not built in"),
            (FIXED, "", FIXED, "resource", "cpus:4", "needs the parameter 'resources'"),
            (FIXED, "", FIXED, "resources", "cpus:x", "'resources'"),
            (FIXED, "", LOAD, "load_threshold_5min", "1", "has no parameters of"),
            ("", LOAD, LOAD, "load_threshold_5min", "NaN", "'load_threshold_5min'"),
            ("", LOAD, LOAD, "limit", "1", "needs 'load_threshold_5min'"),
        ] {
            let error = read(estimator, controller, name, key, value).err().unwrap();
            assert!(error.contains(said), "{error}");
        }
    }
}
