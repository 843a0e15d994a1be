//! Parses the agent's `--resources`: `cpus:4;mem(role):1024;ports:[31000-32000]`, or a JSON array of messages.
//!
//! The caller reads the file of a `file://` value.

use std::collections::BTreeMap;

use protos::json::{Dialect, FromJson, JsonError, Value as Json};
use protos::mesos;

use crate::value_text::{Written, read, tight};
use crate::{
    Amount, Fault, Kind, Name, Ranges, Reservation, Resource, Resources, Role, RoleError, SourceKind, Value,
    ValueTextError, resource_from_proto,
};

/// An error of parsing the resource flag. The messages are Mesos's where it has some.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResourceTextError {
    /// The JSON form is not a list of resources.
    #[error("Some JSON resources were not formatted properly: {0}")]
    Json(JsonError),
    /// An entry does not have exactly one `:`.
    #[error("Bad value for resources, missing or extra ':' in {0}")]
    Colon(String),
    /// The parentheses of a role are not closed, as in `name(role`, or text follows them.
    #[error("Bad value for resources, mismatched parentheses in {0}")]
    Parentheses(String),
    /// The value of a resource is malformed.
    #[error("Failed to parse resource {name} value {value} error {why}")]
    Value {
        /// Name of the resource.
        name: String,
        /// Value as given.
        value: String,
        /// Error of the value.
        why: ValueTextError,
    },
    /// The value of a resource is a word.
    #[error("Bad type for resource {name} value {value} type TEXT")]
    Word {
        /// Name of the resource.
        name: String,
        /// Value as given.
        value: String,
    },
    /// A resource breaks a rule for all resources.
    #[error("{0}")]
    Fault(Fault),
    /// A resource is a persistent volume, which only operations create.
    #[error("Persistent volumes cannot be specified at the command line")]
    PersistentVolume,
    /// A resource is revocable; only an estimator creates those.
    #[error(
        "Revocable resources cannot be specified at the command line; do not include a 'revocable' key in the resources \
         JSON"
    )]
    Revocable,
    /// A reservation is dynamic; only operations make those.
    #[error(
        "Dynamic reservations cannot be specified at the command line; do not include a reservation with DYNAMIC type in \
         the resources JSON"
    )]
    DynamicReservation,
    /// A disk is BLOCK or RAW; only resource providers have those.
    #[error("Disks with a {0} source cannot be specified at the command line; they come from resource providers")]
    Source(&'static str),
    /// A name has values of two types.
    #[error("Resources with the same name ('{0}') but different types are not allowed")]
    Types(Name),
    /// The number of GPUs is not a whole number.
    #[error("The `gpus` resource must be an unsigned integer")]
    Gpus,
}

impl From<Fault> for ResourceTextError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<RoleError> for ResourceTextError {
    fn from(error: RoleError) -> Self {
        Self::Fault(error.into())
    }
}

/// Parses the flag in either form: a value that starts with `[` is a JSON array of `mesos.Resource`, all else is the
/// text form.
///
/// # Errors
/// See [`ResourceTextError`]; it names the first invalid entry.
pub fn parse_flag(text: &str, default_role: &Role) -> Result<Resources, ResourceTextError> {
    if !text.trim_start().starts_with('[') {
        return parse_text(text, default_role);
    }
    // The text must be JSON by itself, since it is placed within an object, as the list of a message.
    Json::parse(text.as_bytes()).map_err(ResourceTextError::Json)?;
    let object = format!("{{\"resources\":{text}}}");
    let list = mesos::offer::operation::Unreserve::from_json(object.as_bytes(), Dialect::V0);
    from_flag_messages(list.map_err(ResourceTextError::Json)?.resources, default_role)
}

/// Parses the text form. A resource without a role is reserved statically for `default_role`, unless that is `*`.
///
/// # Errors
/// See [`ResourceTextError`]; it names the first invalid entry.
pub fn parse_text(text: &str, default_role: &Role) -> Result<Resources, ResourceTextError> {
    let mut all = Resources::new();
    for entry in text.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        all.add(parse_entry(entry, default_role)?);
    }
    check_command_line(&all)?;
    Ok(all)
}

/// Converts the messages of the JSON form of the flag. A resource without a role is reserved for `default_role`.
///
/// # Errors
/// See [`ResourceTextError`].
#[allow(deprecated)]
pub fn from_flag_messages(messages: Vec<mesos::Resource>, default_role: &Role) -> Result<Resources, ResourceTextError> {
    let mut all = Resources::new();
    for mut message in messages {
        message.scalar.as_ref().map_or(Ok(()), |scalar| crate::validate::check_written(scalar.value))?;
        if message.role.is_none() && message.reservations.is_empty() {
            message.role = Some(default_role.into());
        }
        all.add(resource_from_proto(&message)?);
    }
    check_command_line(&all)?;
    Ok(all)
}

fn parse_entry(entry: &str, default_role: &Role) -> Result<Resource, ResourceTextError> {
    let mut parts = entry.split(':').filter(|part| !part.is_empty());
    let (Some(left), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(ResourceTextError::Colon(entry.to_owned()));
    };
    let (name, role) = match left.split_once('(') {
        None if left.contains(')') => return Err(ResourceTextError::Parentheses(entry.to_owned())),
        None => (left.trim(), default_role.clone()),
        Some((name, rest)) => match rest.split_once(')') {
            Some((role, after)) if after.trim().is_empty() => (name.trim(), Role::parse(role.trim())?),
            _ => return Err(ResourceTextError::Parentheses(entry.to_owned())),
        },
    };
    if name.is_empty() {
        return Err(Fault::EmptyName.into());
    }
    let resource = Resource::new(name, parse_value(name, value)?);
    Ok(if role.is_star() { resource } else { resource.with_reservations(&[Reservation::fixed(role)]) })
}

fn parse_value(name: &str, value: &str) -> Result<Value, ResourceTextError> {
    let written =
        read(value).map_err(|why| ResourceTextError::Value { name: name.to_owned(), value: value.to_owned(), why })?;
    match written {
        Written::Number(number) => {
            crate::validate::check_written(number)?;
            Ok(Value::Scalar(Amount::from_f64(number)))
        }
        Written::Ranges(pairs) if pairs.iter().any(|(begin, end)| begin > end) => Err(Fault::InvertedRange.into()),
        Written::Ranges(pairs) => Ok(Value::Ranges(Ranges::new(pairs))),
        Written::Set(items) => Ok(Value::Set(items)),
        Written::Text(_) => Err(ResourceTextError::Word { name: name.to_owned(), value: value.to_owned() }),
    }
}

/// Rejects resources that only operations, estimators and resource providers may create.
fn check_command_line(resources: &Resources) -> Result<(), ResourceTextError> {
    let mut kinds: BTreeMap<&Name, Kind> = BTreeMap::new();
    for resource in resources {
        if resource.is_persistent_volume() {
            return Err(ResourceTextError::PersistentVolume);
        }
        if resource.is_revocable() {
            return Err(ResourceTextError::Revocable);
        }
        if resource.is_dynamically_reserved() {
            return Err(ResourceTextError::DynamicReservation);
        }
        match resource.disk().and_then(crate::Disk::source) {
            Some(SourceKind::Block) => return Err(ResourceTextError::Source("BLOCK")),
            Some(SourceKind::Raw) => return Err(ResourceTextError::Source("RAW")),
            _ => {}
        }
        if *kinds.entry(resource.name()).or_insert(resource.kind()) != resource.kind() {
            return Err(ResourceTextError::Types(resource.name().clone()));
        }
    }
    if resources.gpus().is_whole() { Ok(()) } else { Err(ResourceTextError::Gpus) }
}

impl Resources {
    /// Formats the resources in the text form that [`parse_text`] parses: `cpus:4;mem(role):1024;ports:[1-2,5-9]`.
    ///
    /// Returns `None` if the form cannot express them: dynamic or refined reservations, allocations, disks, and so on,
    /// or a name or item with a special character.
    #[must_use]
    pub fn to_flag_text(&self) -> Option<String> {
        let entries: Option<Vec<String>> = self.iter().map(entry_text).collect();
        entries.map(|entries| entries.join(";"))
    }
}

fn entry_text(resource: &Resource) -> Option<String> {
    let plain = resource.allocation().is_none()
        && resource.disk().is_none()
        && resource.provider().is_none()
        && !resource.is_revocable()
        && !resource.is_shared();
    let role = match resource.reservations() {
        [] => String::new(),
        [only] if *only == Reservation::fixed(only.role.clone()) => format!("({})", writable(only.role.as_str())?),
        _ => return None,
    };
    let value = match resource.value() {
        Value::Scalar(amount) => amount.to_string(),
        Value::Ranges(ranges) => tight(ranges),
        Value::Set(items) => {
            let items: Option<Vec<&str>> = items.iter().map(writable).collect();
            format!("{{{}}}", items?.join(","))
        }
    };
    plain.then_some(format!("{}{role}:{value}", writable(resource.name().as_str())?))
}

/// Returns the word, or `None` if it contains a character of the text form's syntax.
fn writable(word: &str) -> Option<&str> {
    let taken = |c: char| c.is_whitespace() || ";:()[]{},".contains(c);
    (!word.is_empty() && !word.contains(taken)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Resources, ResourceTextError> {
        parse_text(text, &Role::star())
    }

    #[test]
    fn reads_the_flag() {
        for (text, shown) in [
            ("cpus:4;mem:1024", "cpus:4; mem:1024"),
            (" cpus : 4 ; mem:1 024;; \n", "cpus:4; mem:1024"),
            ("", "{}"),
            ("cpus:0;mem:0", "{}"),
            ("cpus:1;cpus:1.5", "cpus:2.5"),
            ("cpus(*):1;cpus(a/b):2", "cpus:1; cpus(reservations: [(STATIC,a/b)]):2"),
            ("disk( role ):10", "disk(reservations: [(STATIC,role)]):10"),
            ("ports:[31000-31005,32000-32000,31006-31010]", "ports:[31000-31010, 32000-32000]"),
            ("fish:{cod,eel}", "fish:{cod, eel}"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), shown, "{text}");
        }
        let role = Role::parse("b").unwrap();
        assert_eq!(
            parse_text("cpus:2;cpus(*):1", &role).unwrap().to_string(),
            "cpus(reservations: [(STATIC,b)]):2; cpus:1"
        );
    }

    #[test]
    fn refuses_with_a_reason() {
        for (text, why) in [
            ("cpus", "Bad value for resources, missing or extra ':' in cpus"),
            ("cpus:1:2", "Bad value for resources, missing or extra ':' in cpus:1:2"),
            ("cpus:", "Bad value for resources, missing or extra ':' in cpus:"),
            ("cpus(a:1", "Bad value for resources, mismatched parentheses in cpus(a:1"),
            ("cpus)a(:1", "Bad value for resources, mismatched parentheses in cpus)a(:1"),
            ("cpus(a)b:1", "Bad value for resources, mismatched parentheses in cpus(a)b:1"),
            ("cpus():1", "Role names cannot be the empty string"),
            ("cpus(/a):1", "Role '/a' cannot start with a slash"),
            ("(a):1", "Empty resource name"),
            ("cpus:1;mem:0.0004", "Invalid scalar resource: value rounds to 0"),
            ("cpus:four", "Bad type for resource cpus value four type TEXT"),
            ("cpus:nan", "Bad type for resource cpus value nan type TEXT"),
            ("ports:[1-", "Failed to parse resource ports value [1- error Mismatched brackets"),
            ("ports:[5-1]", "Invalid ranges resource: begin > end"),
            ("cpus:-1", "Invalid scalar resource: value < 0"),
            ("cpus:1e999", "Invalid scalar resource: value is not a normal number"),
            ("a:1;a(r):[1-2]", "Resources with the same name ('a') but different types are not allowed"),
            ("gpus:1.5", "The `gpus` resource must be an unsigned integer"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), why, "{text}");
        }
    }

    #[test]
    fn reads_json() {
        let flag = |text: &str| parse_flag(text, &Role::parse("b").unwrap()).map_err(|e| e.to_string());
        let cpus = r#"{"name":"cpus","type":"SCALAR","scalar":{"value":2}}"#;
        let of_role = r#"{"name":"cpus","type":"SCALAR","scalar":{"value":1},"role":"chefs"}"#;
        let disk = r#"{"name":"disk","type":"SCALAR","role":"*","scalar":{"value":9},
            "disk":{"source":{"type":"PATH","path":{"root":"/mnt/a"}}}}"#;
        assert_eq!(
            flag(&format!(" [{cpus},{of_role},{disk}]")).unwrap().to_string(),
            "cpus(reservations: [(STATIC,b)]):2; cpus(reservations: [(STATIC,chefs)]):1; disk[PATH:/mnt/a]:9"
        );
        assert_eq!(flag("cpus(*):1").unwrap().to_string(), "cpus:1");
        assert_eq!(flag("[]").unwrap(), Resources::new());
        let tiny = r#"[{"name":"cpus","type":"SCALAR","scalar":{"value":1e-9}}]"#;
        assert_eq!(flag(tiny).unwrap_err(), "Invalid scalar resource: value rounds to 0");
        let missing = "Some JSON resources were not formatted properly: Missing required fields: resources[0].type";
        assert_eq!(flag(r#"[{"name":"cpus"}]"#).unwrap_err(), missing);
        for bad in ["[", "[{}", r#"[],"resources":[]"#, "[1]", &format!("[{cpus}] x")] {
            assert!(flag(bad).unwrap_err().starts_with("Some JSON resources were not formatted properly: "), "{bad}");
        }
        let raw = r#"[{"name":"disk","type":"SCALAR","scalar":{"value":9},"disk":{"source":{"type":"RAW"}}}]"#;
        assert!(flag(raw).unwrap_err().starts_with("Disks with a RAW source cannot be specified"));
    }

    #[test]
    #[allow(deprecated)]
    fn messages_get_the_default_role() {
        let message = |role: Option<&str>| mesos::Resource {
            name: "cpus".into(),
            scalar: Some(mesos::value::Scalar { value: 2.0 }),
            role: role.map(Into::into),
            ..Default::default()
        };
        let given = vec![message(None), message(Some("*")), message(Some("b"))];
        let all = from_flag_messages(given, &Role::parse("a").unwrap()).unwrap();
        assert_eq!(all.to_flag_text().unwrap(), "cpus(a):2;cpus:2;cpus(b):2");
        let dynamic = mesos::Resource { reservation: Some(Default::default()), ..message(Some("a")) };
        assert_eq!(from_flag_messages(vec![dynamic], &Role::star()), Err(ResourceTextError::DynamicReservation));
    }
}
