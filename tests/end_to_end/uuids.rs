//! Tests the UUIDs of real processes, on the wire and on disk: each is of version 4 and of the variant of RFC 9562, as
//! readers of Mesos require.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use prost::Message;
use protos::mesos::internal::StatusUpdateRecord;
use serde_json::{Value, json};

use crate::one_agent::OneAgent;
use crate::support::{request, until};

/// UUIDs that were found: texts, and the number of those in 16 bytes.
#[derive(Default)]
struct Found {
    texts: BTreeSet<String>,
    bytes: usize,
}

impl Found {
    /// Adds all UUIDs in a text.
    fn text(&mut self, text: &str) {
        let is = |part: &&str| {
            let form =
                |(at, c): (usize, char)| if [8, 13, 18, 23].contains(&at) { c == '-' } else { c.is_ascii_hexdigit() };
            part.is_ascii() && part.char_indices().all(form)
        };
        for at in 0..text.len().saturating_sub(35) {
            let Some(uuid) = text.get(at..at + 36).filter(is) else { continue };
            assert!(&uuid[14..15] == "4" && "89ab".contains(&uuid[19..20]), "{uuid} in {text}");
            self.texts.insert(uuid.to_owned());
        }
    }

    fn bytes(&mut self, uuid: &[u8]) {
        assert!(uuid.len() == 16 && uuid[6] >> 4 == 4 && uuid[8] >> 6 == 2, "{uuid:02x?}");
        self.bytes += 1;
    }

    /// Adds all UUIDs in a document; bytes are in base64.
    fn document(&mut self, document: &Value) {
        match document {
            Value::String(text) => self.text(text),
            Value::Array(list) => list.iter().for_each(|value| self.document(value)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    let bytes = value.as_str().or_else(|| value["value"].as_str()).filter(|_| key.ends_with("uuid"));
                    match bytes {
                        Some(text) => self.base64(text),
                        None => self.document(value),
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds a UUID in base64. Its ninth and eleventh digits contain version and variant.
    fn base64(&mut self, text: &str) {
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digit = |at: usize| digits.iter().position(|digit| *digit == text.as_bytes()[at]).unwrap();
        assert!(text.len() == 24 && digit(8) >> 2 == 4 && digit(10) & 3 == 2, "{text}");
        self.bytes += 1;
    }
}

fn answer(address: &str, path: &str, body: &Value) -> String {
    request(address, "POST", path, &body.to_string()).expect("it answers")
}

fn document(address: &str, kind: &str) -> Value {
    let answer = answer(address, "/api/v1", &json!({ "type": kind }));
    serde_json::from_str(&answer[answer.find('{').unwrap()..=answer.rfind('}').unwrap()]).unwrap()
}

/// Adds all files below a directory to `found`.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        found.push(path.clone());
        if path.is_dir() && !path.is_symlink() {
            files(&path, found);
        }
    }
}

#[test]
fn every_uuid_is_of_version_4() {
    let cluster = OneAgent::start("uuids", &["--launcher=posix".to_owned()]);
    let task = cluster.start_task("long", json!({"value": "echo up; exec sleep 1000"}), json!({"type": "MESOS"}));
    let mut found = Found::default();
    for address in [&cluster.address, &cluster.agent_address()] {
        found.document(&document(address, "GET_STATE"));
    }
    // The texts are those of the master, the agent's run and so on; the bytes are those of the task's updates.
    assert!(found.texts.len() >= 2 && found.bytes >= 2, "{:?} {}", found.texts, found.bytes);

    let meta = cluster.directory.path().join("a/meta");
    let (mut texts, mut updates) = (Found::default(), Found::default());
    until("two updates and their acknowledgements are on disk", || {
        let mut all = Vec::new();
        files(&meta, &mut all);
        updates = Found::default();
        for path in all {
            texts.text(&path.to_string_lossy());
            if path.file_name().is_some_and(|name| name == "task.updates") {
                let bytes = fs::read(&path).unwrap();
                let mut rest = &bytes[..];
                while let Some((length, body)) = rest.split_first_chunk::<4>() {
                    let Some((body, others)) = body.split_at_checked(u32::from_le_bytes(*length) as usize) else {
                        break;
                    };
                    let record = StatusUpdateRecord::decode(body).unwrap();
                    let uuid = record.update.and_then(|update| update.uuid).or(record.uuid);
                    updates.bytes(&uuid.expect("a record has one"));
                    rest = others;
                }
            }
        }
        updates.bytes >= 4
    });
    assert!(texts.texts.len() >= 2, "{:?}", texts.texts);
    drop(task);
}

#[test]
fn what_is_no_uuid_is_refused_in_mesoss_words() {
    let cluster = OneAgent::start("no-uuids", &["--launcher=posix".to_owned()]);
    let id = json!({"value": "x"});
    for (uuid, refused) in [
        ("AAAAAAAAAAAAAAAAAAAAAA==", true),
        ("AAAAAAAAAAAAAAAA", true),
        // This one is of version 4.
        ("AAAAAAAAQACAAAAAAAAAAA==", false),
    ] {
        let acknowledge = json!({"type": "ACKNOWLEDGE", "framework_id": id,
            "acknowledge": {"agent_id": id, "task_id": id, "uuid": uuid}});
        let told = answer(&cluster.address, "/api/v1/scheduler", &acknowledge);
        let words = "Failed to validate scheduler::Call: Not a valid UUID";
        assert_eq!(told.ends_with(words) && told.starts_with("HTTP/1.1 400 "), refused, "{uuid}: {told}");

        let status = json!({"task_id": id, "state": "TASK_RUNNING", "source": "SOURCE_EXECUTOR", "uuid": uuid});
        let update = json!({"type": "UPDATE", "framework_id": id, "executor_id": id, "update": {"status": status}});
        let told = answer(&cluster.agent_address(), "/api/v1/executor", &update);
        let words = "Failed to validate Executor::Call: Not a valid UUID";
        assert_eq!(told.ends_with(words) && told.starts_with("HTTP/1.1 400 "), refused, "{uuid}: {told}");
    }
}
