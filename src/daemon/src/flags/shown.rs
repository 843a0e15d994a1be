//! Flags as they are shown by `/flags`, `/state`, GET_FLAGS and in the log: without secrets.
//!
//! Flags that name the file of a secret show its name.

use std::borrow::Cow;

use serde_json::Value;

/// The text that replaces a secret.
pub(crate) const HIDDEN: &str = "***";

/// Names of JSON fields whose text is a secret, in lower case.
const SECRETS: [&str; 8] =
    ["auth", "data", "identitytoken", "password", "registrytoken", "secret", "token", "authorization"];

/// Returns a flag's value without secrets.
pub(super) fn shown<'v>(name: &str, value: &'v str) -> Cow<'v, str> {
    match name {
        // The value contains log-ins for registries, in any of Docker's forms.
        "docker_config" if !value.is_empty() => Cow::Borrowed(HIDDEN),
        // Any variable may contain a password; only the names are shown.
        "executor_environment_variables" => {
            masked(value, |value| value.as_object_mut().map(|fields| fields.values_mut().for_each(hide)).is_some())
        }
        "default_container_info" => masked(value, mask),
        _ => detector::without_credential(value),
    }
}

/// Returns the JSON text after `change`, which returns whether it has changed a value. Invalid JSON is hidden as a
/// whole.
fn masked(text: &str, change: impl FnOnce(&mut Value) -> bool) -> Cow<'_, str> {
    if text.is_empty() {
        return Cow::Borrowed(text);
    }
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return Cow::Borrowed(HIDDEN) };
    if change(&mut value) { Cow::Owned(value.to_string()) } else { Cow::Borrowed(text) }
}

fn hide(value: &mut Value) {
    *value = Value::from(HIDDEN);
}

/// Hides the secrets of volumes and the variables of Docker's parameters. Returns whether there was one.
fn mask(value: &mut Value) -> bool {
    match value {
        // All items are visited: a hidden one does not end the search.
        Value::Array(items) => items.iter_mut().map(mask).filter(|hidden| *hidden).count() > 0,
        Value::Object(fields) => {
            let variable = fields.get("key").and_then(Value::as_str).is_some_and(|key| matches!(key, "env" | "e"));
            let each = fields.iter_mut().map(|(name, value)| {
                let secret = SECRETS.contains(&name.to_ascii_lowercase().as_str()) || (variable && name == "value");
                if secret && value.is_string() {
                    hide(value);
                    return true;
                }
                mask(value)
            });
            each.filter(|hidden| *hidden).count() > 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_all_else_is_shown() {
        for (name, value, expected) in [
            ("docker_config", r#"{"auths":{"r":{"auth":"czNjcmV0"}}}"#, HIDDEN),
            ("docker_config", "", ""),
            ("executor_environment_variables", r#"{"A":"s3cret","B":""}"#, r#"{"A":"***","B":"***"}"#),
            ("executor_environment_variables", "s3cret", HIDDEN),
            ("executor_environment_variables", "", ""),
            ("zk", "zk://u:s3cret@h:1/m", "zk://h:1/m"),
            ("master", "zk://u:s3cret@h:1/m", "zk://h:1/m"),
            ("credentials", "/etc/tepui/credentials", "/etc/tepui/credentials"),
            ("default_container_info", r#"{"type": "MESOS"}"#, r#"{"type": "MESOS"}"#),
            (
                "default_container_info",
                r#"{"docker":{"parameters":[{"key":"env","value":"P=s3cret"},{"key":"cpus","value":"1"}]},"volumes":[{"source":{"secret":{"value":{"data":"s3cret"}}}}]}"#,
                r#"{"docker":{"parameters":[{"key":"env","value":"***"},{"key":"cpus","value":"1"}]},"volumes":[{"source":{"secret":{"value":{"data":"***"}}}}]}"#,
            ),
            ("modules", r#"{"libraries":[]}"#, r#"{"libraries":[]}"#),
        ] {
            let text = shown(name, value);
            assert_eq!(text, expected, "{name}");
        }
    }
}
