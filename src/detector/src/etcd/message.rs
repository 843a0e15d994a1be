//! Requests to etcd, and its answers: JSON in which bytes are base64 and 64-bit numbers are texts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyValue {
    pub(super) key: Vec<u8>,
    pub(super) value: Vec<u8>,
    /// Revision of the store at which the key was created; `changed` is that of its last change.
    pub(super) created: i64,
    pub(super) changed: i64,
    /// Id of the key's lease; 0 without one.
    pub(super) lease: i64,
}

impl KeyValue {
    fn of(value: &Value) -> Option<KeyValue> {
        Some(KeyValue {
            key: bytes(&value["key"])?,
            value: bytes(&value["value"])?,
            created: number(&value["create_revision"])?,
            changed: number(&value["mod_revision"])?,
            lease: number(&value["lease"])?,
        })
    }
}

/// Parses bytes; missing ones are empty.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Null => Some(Vec::new()),
        value => STANDARD.decode(value.as_str()?).ok(),
    }
}

/// Parses a number; a missing one is 0.
pub(super) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Null => Some(0),
        Value::String(text) => text.parse().ok(),
        value => value.as_i64(),
    }
}

fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Returns the revision of the store in an answer.
pub(super) fn revision(answer: &Value) -> Option<i64> {
    number(&answer["header"]["revision"]).filter(|revision| *revision > 0)
}

/// Returns the keys in the answer to a range request.
pub(super) fn found(range: &Value) -> Option<Vec<KeyValue>> {
    match &range["kvs"] {
        Value::Null => Some(Vec::new()),
        list => list.as_array()?.iter().map(KeyValue::of).collect(),
    }
}

/// Returns the request for one key.
pub(super) fn get(key: &str) -> Value {
    json!({ "key": encoded(key.as_bytes()) })
}

/// Returns the request for the first `limit` keys from `from` on, up to `end`.
pub(super) fn range(from: &[u8], end: &[u8], limit: usize) -> Value {
    json!({ "key": encoded(from), "range_end": encoded(end), "limit": limit.to_string() })
}

/// A transaction: changes that are made if all conditions hold, and reads that are done otherwise.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    conditions: Vec<Value>,
    changes: Vec<Value>,
    otherwise: Vec<Value>,
}

impl Transaction {
    /// Adds the condition that the key was created at this revision; 0 means that the key does not exist.
    pub(super) fn if_created(mut self, key: &str, revision: i64) -> Transaction {
        let key = encoded(key.as_bytes());
        let revision = revision.to_string();
        self.conditions.push(json!({ "key": key, "target": "CREATE", "result": "EQUAL", "create_revision": revision }));
        self
    }

    /// Adds the condition that the key was last changed at this revision.
    pub(super) fn if_changed(mut self, key: &str, revision: i64) -> Transaction {
        let key = encoded(key.as_bytes());
        let revision = revision.to_string();
        self.conditions.push(json!({ "key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision }));
        self
    }

    /// Adds a change that sets a key; a `lease` of 0 means none.
    pub(super) fn put(mut self, key: &str, value: &[u8], lease: i64) -> Transaction {
        let (key, value, lease) = (encoded(key.as_bytes()), encoded(value), lease.to_string());
        self.changes.push(json!({ "request_put": { "key": key, "value": value, "lease": lease } }));
        self
    }

    /// Adds a change that deletes a key.
    pub(super) fn delete(mut self, key: &str) -> Transaction {
        self.changes.push(json!({ "request_delete_range": { "key": encoded(key.as_bytes()) } }));
        self
    }

    /// Adds a read of a key for the case that a condition does not hold.
    pub(super) fn or_get(mut self, key: &str) -> Transaction {
        self.otherwise.push(json!({ "request_range": get(key) }));
        self
    }

    pub(super) fn request(self) -> Value {
        json!({ "compare": self.conditions, "success": self.changes, "failure": self.otherwise })
    }
}

/// Outcome of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The changes were made, at this revision.
    Made(i64),
    /// A condition does not hold; the result of each read, in order.
    Otherwise(Vec<Option<KeyValue>>),
}

impl Outcome {
    pub(super) fn of(answer: &Value) -> Option<Outcome> {
        if answer["succeeded"] == true {
            return revision(answer).map(Outcome::Made);
        }
        let responses = answer["responses"].as_array().map_or(&[][..], Vec::as_slice);
        let first = |response: &Value| Some(found(&response["response_range"])?.into_iter().next());
        responses.iter().map(first).collect::<Option<_>>().map(Outcome::Otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_transactions() {
        let made = json!({ "header": { "revision": "7" }, "succeeded": true, "responses": [{ "response_put": {} }] });
        assert_eq!(Outcome::of(&made), Some(Outcome::Made(7)));
        let kv = json!({ "key": "Zm9v", "create_revision": "2", "mod_revision": "3", "value": "YmFy", "lease": "9" });
        let refused = json!({ "header": {}, "responses": [{ "response_range": { "kvs": [kv], "count": "1" } }, { "response_range": {} }] });
        let Some(Outcome::Otherwise(keys)) = Outcome::of(&refused) else { panic!("{refused}") };
        let leader = KeyValue { key: b"foo".to_vec(), value: b"bar".to_vec(), created: 2, changed: 3, lease: 9 };
        assert_eq!(keys, [Some(leader), None]);
        for invalid in [json!({ "succeeded": true }), json!({ "responses": [{ "response_range": { "kvs": 1 } }] })] {
            assert_eq!(Outcome::of(&invalid), None, "{invalid}");
        }
    }

    #[test]
    fn numbers_are_text_and_zero_is_left_out() {
        assert_eq!(number(&json!("12")), Some(12));
        assert_eq!(number(&json!(12)), Some(12));
        assert_eq!(number(&Value::Null), Some(0));
        assert_eq!(number(&json!("x")), None);
        assert_eq!(revision(&json!({ "header": {} })), None);
    }
}
