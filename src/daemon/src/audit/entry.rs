//! A line of the audit log: its fields, their limits, its JSON form.
//!
//! No field has a request's body, a header or a password. Texts of clients are shortened, and serde_json escapes them:
//! a client cannot start a line of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::SystemTime;

use serde_json::{Map, Value, json};
use wire::http::StatusCode;

/// Maximum length of a client's text in a line, in bytes.
const TEXT_MAX: usize = 256;
/// Maximum number of ids of one kind in a line; the others are counted.
const IDS_MAX: usize = 16;

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Decision {
    /// The request was carried out, or its execution has started.
    Allowed,
    /// A message was passed to the core. Messages have no answer: a refusal is another line.
    Received,
    /// The sender is not authorized, or has not authenticated.
    Denied,
    /// The request breaks a rule.
    Invalid,
    /// The request could not be carried out.
    Failed,
}

impl Decision {
    /// Returns the decision that a status of an HTTP response stands for.
    pub(super) fn of(status: StatusCode) -> Decision {
        match status.as_u16() {
            401 | 403 => Decision::Denied,
            400..500 => Decision::Invalid,
            500.. => Decision::Failed,
            _ => Decision::Allowed,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Decision::Allowed => "allowed",
            Decision::Received => "received",
            Decision::Denied => "denied",
            Decision::Invalid => "invalid",
            Decision::Failed => "failed",
        }
    }
}

/// The ids of the objects of a request, by their kind: `agent`, `framework`, `task`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target(BTreeMap<&'static str, Ids>);

/// The ids of one kind in a target, and their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ids {
    shown: Vec<String>,
    count: usize,
}

impl Target {
    /// Adds an id. Empty ones are left out.
    pub(crate) fn add(&mut self, kind: &'static str, id: &str) {
        if id.is_empty() {
            return;
        }
        let ids = self.0.entry(kind).or_default();
        ids.count += 1;
        if ids.shown.len() < IDS_MAX {
            ids.shown.push(bounded(id));
        }
    }

    /// Adds an id, and returns the target.
    #[must_use]
    pub(crate) fn with(mut self, kind: &'static str, id: &str) -> Target {
        self.add(kind, id);
        self
    }

    /// Adds several ids of one kind, and returns the target.
    #[must_use]
    pub(crate) fn with_all<'a>(mut self, kind: &'static str, ids: impl IntoIterator<Item = &'a str>) -> Target {
        ids.into_iter().for_each(|id| self.add(kind, id));
        self
    }

    fn json(&self) -> Value {
        let mut fields = Map::new();
        for (kind, ids) in &self.0 {
            let value = match (&*ids.shown, ids.count) {
                ([id], 1) => json!(id),
                (shown, count) if shown.len() == count => json!(shown),
                (shown, count) => json!({ "count": count, "first": shown }),
            };
            fields.insert((*kind).to_owned(), value);
        }
        Value::Object(fields)
    }
}

/// A line of the audit log about a request or a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(super) time: SystemTime,
    /// Authenticated principal of the sender.
    pub(super) principal: Option<String>,
    /// Address of the sender; `None` if the core reports a refusal later.
    pub(super) address: Option<SocketAddr>,
    /// libprocess pid that a message names as its sender; `None` for HTTP.
    pub(super) pid: Option<String>,
    pub(super) call: String,
    pub(super) target: Target,
    pub(super) decision: Decision,
    pub(super) status: Option<u16>,
    /// Rule that decided: an action of the access control lists, a realm, or the rule that the request breaks.
    pub(super) rule: Option<String>,
}

impl Entry {
    /// Returns the line as JSON, without a line feed.
    pub(super) fn json(&self, daemon: &str) -> String {
        let mut fields = head(self.time, daemon);
        let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        set("principal", json!(self.principal.as_deref().map(bounded)));
        set("address", json!(self.address.map(|address| address.to_string())));
        if let Some(pid) = &self.pid {
            set("pid", json!(bounded(pid)));
        }
        set("transport", json!(if self.pid.is_some() { "libprocess" } else { "http" }));
        set("call", json!(bounded(&self.call)));
        set("target", self.target.json());
        set("decision", json!(self.decision.name()));
        if let Some(status) = self.status {
            set("status", json!(status));
        }
        if let Some(rule) = &self.rule {
            set("rule", json!(bounded(rule)));
        }
        Value::Object(fields).to_string()
    }
}

/// Returns a line that reports missing lines, without a line feed. `reason` is `dropped` or `left_out`.
pub(super) fn missing(daemon: &str, reason: &str, count: u64, decision: Option<Decision>) -> String {
    let mut fields = head(now(), daemon);
    fields.insert(reason.to_owned(), json!(count));
    if let Some(decision) = decision {
        fields.insert("decision".to_owned(), json!(decision.name()));
    }
    Value::Object(fields).to_string()
}

fn head(time: SystemTime, daemon: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("time".to_owned(), json!(humantime::format_rfc3339_millis(time).to_string()));
    fields.insert("daemon".to_owned(), json!(daemon));
    fields
}

/// Returns the current time of the wall clock: auditors compare it with the clocks of other programs.
#[allow(clippy::disallowed_methods, reason = "the time of a line is not a decision of a core")]
pub(super) fn now() -> SystemTime {
    SystemTime::now()
}

/// Shortens a text to its limit, and makes it one line. Characters that could mislead a terminal are replaced.
pub(super) fn bounded(text: &str) -> String {
    let is_misleading = |c: char| {
        c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}')
    };
    let clean = |c: char| if is_misleading(c) { char::REPLACEMENT_CHARACTER } else { c };
    let mut shown = String::new();
    for c in text.chars().map(clean) {
        if shown.len() + c.len_utf8() > TEXT_MAX {
            shown.push('…');
            break;
        }
        shown.push(c);
    }
    shown
}

/// Creates an entry for tests.
#[cfg(test)]
pub(super) fn entry(call: &str) -> Entry {
    Entry {
        time: SystemTime::UNIX_EPOCH,
        principal: None,
        address: None,
        pid: None,
        call: call.to_owned(),
        target: Target::default(),
        decision: Decision::Allowed,
        status: None,
        rule: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_all_fields() {
        let entry = Entry {
            principal: Some("ann".to_owned()),
            address: Some(SocketAddr::from(([10, 0, 0, 1], 4711))),
            target: Target::default().with("agent", "S1"),
            decision: Decision::Denied,
            status: Some(403),
            rule: Some("drain_agents".to_owned()),
            ..entry("DRAIN_AGENT")
        };
        let line: Value = serde_json::from_str(&entry.json("master")).unwrap();
        let expected = json!({"time": "1970-01-01T00:00:00.000Z", "daemon": "master", "principal": "ann",
            "address": "10.0.0.1:4711", "transport": "http", "call": "DRAIN_AGENT", "target": {"agent": "S1"},
            "decision": "denied", "status": 403, "rule": "drain_agents"});
        assert_eq!(line, expected);
        let message = Entry { pid: Some("s@1.2.3.4:5".to_owned()), ..super::entry("KillTaskMessage") };
        let line: Value = serde_json::from_str(&message.json("master")).unwrap();
        assert_eq!((&line["transport"], &line["principal"]), (&json!("libprocess"), &Value::Null));
    }

    #[test]
    fn a_client_cannot_forge_a_line_nor_make_a_long_one() {
        let forged = "x\"}\n{\"time\":\"now\",\"decision\":\"allowed\"\u{85}\u{2028}\u{202e}";
        let long = "é".repeat(10_000);
        let target = Target::default().with("framework", forged).with_all("task", std::iter::repeat_n(&*long, 5000));
        let (principal, pid) = (Some(forged.to_owned()), Some(long.clone()));
        let entry = Entry { principal, pid, target, rule: Some(long), ..entry(forged) };
        let text = entry.json("agent");
        assert!(!text.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{202e}']), "{text}");
        assert!(text.len() < 8 << 10, "{}", text.len());
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["decision"], &line["target"]["task"]["count"]), (&json!("allowed"), &json!(5000)));
        assert_eq!(line["target"]["task"]["first"].as_array().unwrap().len(), IDS_MAX);
        assert!(line["rule"].as_str().unwrap().len() <= TEXT_MAX + '…'.len_utf8());
    }

    #[test]
    fn decisions_by_status() {
        let of = |status: StatusCode| Decision::of(status).name();
        let some = [StatusCode::OK, StatusCode::ACCEPTED, StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
        assert_eq!(some.map(of), ["allowed", "allowed", "denied", "denied"]);
        let some = [StatusCode::BAD_REQUEST, StatusCode::CONFLICT, StatusCode::INTERNAL_SERVER_ERROR];
        assert_eq!(some.map(of), ["invalid", "invalid", "failed"]);
    }
}
