//! Logs calls of an unknown type: Mesos's answer, which clients compare, does not name it.

use serde::Deserialize;
use wire::http::Request;

use crate::flags::nearest;

/// Maximum length of a name in bytes; longer ones are not logged.
const NAME_MAX: usize = 64;

/// A number above those of all types of calls.
const NUMBERS: i32 = 256;

/// Logs the type of a JSON call if it is unknown; `name_of` has the names of the known types.
pub(crate) fn log(request: &Request, name_of: impl Fn(i32) -> Option<&'static str>) {
    if let Some(text) = message(request.body.full(), (0..NUMBERS).filter_map(name_of)) {
        tracing::warn!("{text}");
    }
}

fn message(body: &[u8], known: impl Iterator<Item = &'static str>) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        r#type: String,
    }
    let Named { r#type: name } = serde_json::from_slice(body).ok()?;
    let known: Vec<&str> = known.collect();
    if name.len() > NAME_MAX || known.contains(&name.as_str()) {
        return None;
    }
    let meant = nearest(&name, known.into_iter()).map(|meant| format!("; did you mean {meant}?"));
    Some(format!("Rejected a call of the unknown type {name:?}{}", meant.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_types_are_named_with_what_is_near() {
        let of = |body: &str| message(body.as_bytes(), ["DRAIN_AGENT", "GET_STATE"].into_iter());
        let drain = of(r#"{"type": "DRAIN_AGNT"}"#).unwrap();
        assert_eq!(drain, "Rejected a call of the unknown type \"DRAIN_AGNT\"; did you mean DRAIN_AGENT?");
        assert_eq!(of(r#"{"type": "XYZ"}"#).unwrap(), "Rejected a call of the unknown type \"XYZ\"");
        assert_eq!(of(r#"{"type": "GET_STATE"}"#), None);
        assert_eq!([of("{}"), of("no JSON"), of(&format!("{{\"type\": \"{}\"}}", "x".repeat(99)))], [None, None, None]);
    }
}
