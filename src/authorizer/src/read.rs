//! Parses the JSON of access control lists, strictly: an invalid rule is rejected, with its key and its number
//! (SEC-23).
//!
//! Mesos ignores unknown keys (SEC-24); here they are rejected, because a misspelt key restricts nothing, unnoticed.
//! All keys of Mesos 1.11 are known.

use std::collections::BTreeMap;

use protos::json::Value;

use crate::action::{KNOWN, Kind, Known, PATHS};
use crate::entity::{Entity, Objects};
use crate::{Acls, Rule};

/// An error in the JSON of access control lists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AclError {
    /// The text is not JSON, or not an object.
    #[error("it is not a JSON object of lists of rules: {0}")]
    Json(String),
    /// The value of a key has the wrong type.
    #[error("'{key}' must be {form}")]
    Form {
        /// Key of the lists.
        key: String,
        /// The required type, such as `true or false`.
        form: &'static str,
    },
    /// A key of the lists or of a rule is unknown.
    #[error("the key '{key}'{place} is not known{}", nearest.map(|name| format!(", did you mean '{name}'?")).unwrap_or_default())]
    Unknown {
        /// The unknown key.
        key: String,
        /// The rule that has the key, as the end of the sentence; empty for a key of the lists themselves.
        place: String,
        /// The known key with the most similar spelling, if one is similar enough.
        nearest: Option<&'static str>,
    },
    /// A rule of the lists is invalid.
    #[error("rule {number} of '{key}': {why}")]
    Rule {
        /// Key of the lists that has the rule.
        key: &'static str,
        /// Number of the rule among those of its key, from 1.
        number: usize,
        /// The reason why the rule is invalid.
        why: String,
    },
}

impl Acls {
    /// Parses the JSON of access control lists.
    ///
    /// # Errors
    /// The text is not JSON, has an unknown key, or has an invalid rule. The first such error is returned.
    pub fn parse(text: &str) -> Result<Acls, AclError> {
        let value = Value::parse(text.as_bytes()).map_err(|error| AclError::Json(error.to_string()))?;
        let keys = value.as_object().ok_or_else(|| AclError::Json("it is not an object".to_owned()))?;
        known_only(keys, || KNOWN.iter().map(|known| known.key).chain(["permissive"]), "")?;
        let form = |key: &str, form| AclError::Form { key: key.to_owned(), form };
        let permissive = match given(keys, "permissive") {
            None => true,
            Some(value) => value.as_bool().ok_or_else(|| form("permissive", "true or false"))?,
        };
        let mut rules = Vec::with_capacity(KNOWN.len());
        for known in KNOWN {
            let Some(list) = given(keys, known.key) else {
                rules.push(Box::default());
                continue;
            };
            let list = list.as_array().ok_or_else(|| form(known.key, "a list of rules"))?;
            let mut own = Vec::with_capacity(list.len());
            for (index, value) in list.iter().enumerate() {
                let number = index + 1;
                own.push(rule(known, number, value)?);
            }
            rules.push(own.into_boxed_slice());
        }
        Ok(Acls { permissive, rules: rules.into_boxed_slice() })
    }
}

type Fields = BTreeMap<String, Value>;

/// Returns the value of a field; `null` counts as none.
fn given<'v>(fields: &'v Fields, name: &str) -> Option<&'v Value> {
    fields.get(name).filter(|value| !value.is_null())
}

/// Rejects fields that are not among `names`.
fn known_only<I: Iterator<Item = &'static str>>(
    fields: &Fields,
    names: impl Fn() -> I,
    place: &str,
) -> Result<(), AclError> {
    let Some(field) = fields.keys().find(|field| !names().any(|name| name == *field)) else { return Ok(()) };
    let nearest = names().map(|name| (strsim::osa_distance(name, field), name)).min();
    let nearest = nearest.filter(|(distance, name)| *distance <= 1 + name.len() / 4).map(|(_, name)| name);
    Err(AclError::Unknown { key: field.clone(), place: place.to_owned(), nearest })
}

fn rule(known: &Known, number: usize, value: &Value) -> Result<Rule, AclError> {
    let broken = |why: String| AclError::Rule { key: known.key, number, why };
    let fields = value.as_object().ok_or_else(|| broken("it is not an object".to_owned()))?;
    let place = format!(" in rule {number} of '{}'", known.key);
    known_only(fields, || ["principals", known.object].into_iter(), &place)?;
    for name in ["principals", known.object] {
        if let Some(fields) = given(fields, name).and_then(Value::as_object) {
            known_only(fields, || ["type", "values"].into_iter(), &format!(" of '{name}'{place}"))?;
        }
    }
    let principals = entity(fields, "principals").map_err(broken)?;
    let names = entity(fields, known.object).map_err(broken)?;
    Ok(Rule { principals: sorted(principals), objects: objects(known, names).map_err(broken)? })
}

fn entity(fields: &Fields, name: &str) -> Result<Entity, String> {
    let value = given(fields, name).ok_or_else(|| format!("'{name}' is missing"))?;
    let fields = value.as_object().ok_or_else(|| format!("'{name}' is not an object"))?;
    let texts = || format!("'{name}.values' is not a list of texts");
    let mut values: Vec<Box<str>> = Vec::new();
    if let Some(list) = given(fields, "values") {
        for value in list.as_array().ok_or_else(texts)? {
            values.push(value.as_str().ok_or_else(texts)?.into());
        }
    }
    let kind = given(fields, "type").map(|kind| kind.as_str().unwrap_or_default());
    match kind {
        None | Some("SOME") => Ok(Entity::Some(values.into_boxed_slice())),
        Some("ANY") => Ok(Entity::Any),
        Some("NONE") => Ok(Entity::None),
        Some(_) => Err(format!("'{name}.type' must be SOME, ANY or NONE")),
    }
}

fn sorted(entity: Entity) -> Entity {
    match entity {
        Entity::Some(mut names) => {
            names.sort_unstable();
            Entity::Some(names)
        }
        other => other,
    }
}

fn objects(known: &Known, names: Entity) -> Result<Objects, String> {
    let Entity::Some(values) = names else { return Ok(Objects { names, above: Box::default() }) };
    let values = values.into_vec();
    let (below, values): (Vec<Box<str>>, Vec<Box<str>>) = match known.kind {
        Kind::AnyOrNone => return Err(format!("'{}' can only have the type ANY or NONE", known.object)),
        Kind::Roles => values.into_iter().partition(|value| value.ends_with("/%")),
        Kind::Names | Kind::Paths => (Vec::new(), values),
    };
    if let Some(path) = values.iter().find(|path| known.kind == Kind::Paths && !PATHS.contains(&&***path)) {
        return Err(format!("'{path}' is not an endpoint with authorization; these are: {}", PATHS.join(", ")));
    }
    let above = below.iter().filter_map(|value| value.strip_suffix('%')).map(Box::from).collect();
    Ok(Objects { names: sorted(Entity::Some(values.into_boxed_slice())), above })
}
