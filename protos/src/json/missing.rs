//! Finds the required fields that a JSON document lacks, as the paths that Mesos reports.
//!
//! It is only called when a reader has detected that something is missing; it creates no message.

use std::collections::BTreeMap;

use super::Value;
use super::generated::MESSAGES;
use crate::schema::{FieldInfo, Kind, Label, MessageInfo};

/// Returns the paths of all required fields that are missing in `object` as message `index`: a message's own in
/// declaration order, then those of its sub-messages in number order. With `v1` the names and types are those of the v1
/// message.
pub(crate) fn paths(index: u16, v1: bool, object: &BTreeMap<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    Walk { v1, found: &mut found }.message(index, object, "");
    found
}

struct Walk<'f> {
    v1: bool,
    found: &'f mut Vec<String>,
}

impl Walk<'_> {
    fn message(&mut self, index: u16, object: &BTreeMap<String, Value>, prefix: &str) {
        let mut info = &MESSAGES[usize::from(index)];
        if self.v1 {
            info = &MESSAGES[usize::from(info.twin)];
        }
        let mut required: Vec<&FieldInfo> = info.fields.iter().filter(|f| f.label == Label::Required).collect();
        required.sort_by_key(|f| f.order);
        for field in required {
            let name = info.field_name(field);
            if value_of(object, name).is_none() {
                self.found.push(format!("{prefix}{name}"));
            }
        }
        for field in info.fields.iter().filter(|f| f.kind == Kind::Message) {
            if let Some(value) = value_of(object, info.field_name(field))
                && !overridden(info, field, object)
            {
                self.field(field, value, &format!("{prefix}{}", info.field_name(field)));
            }
        }
    }

    fn field(&mut self, field: &FieldInfo, value: &Value, path: &str) {
        match field.label {
            Label::Required | Label::Optional => {
                if let Value::Object(object) = value {
                    self.message(field.child, object, &format!("{path}."));
                }
            }
            Label::Repeated => {
                for (i, item) in elements(value).into_iter().enumerate() {
                    if let Value::Object(object) = item {
                        self.message(field.child, object, &format!("{path}[{i}]."));
                    }
                }
            }
            Label::Map => {
                let entries = elements(value).into_iter().filter_map(Value::as_object).flat_map(BTreeMap::values);
                for (i, entry) in entries.enumerate() {
                    let empty = BTreeMap::new();
                    let object = entry.as_object().unwrap_or(&empty);
                    self.message(field.child, object, &format!("{path}[{i}].value."));
                }
            }
        }
    }
}

fn value_of<'v>(object: &'v BTreeMap<String, Value>, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// Returns whether a member of the field's oneof has a later key, and so replaced the field.
fn overridden(info: &MessageInfo, field: &FieldInfo, object: &BTreeMap<String, Value>) -> bool {
    let name = info.field_name(field);
    let later = |other: &FieldInfo| {
        let other = info.field_name(other);
        other > name && value_of(object, other).is_some()
    };
    field.oneof != 0 && info.fields.iter().filter(|other| other.oneof == field.oneof).any(later)
}

/// Returns the elements of a list and of the lists in it, without `null`s; a single value is a list of one.
fn elements(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().flat_map(elements).collect(),
        single => vec![single],
    }
}
