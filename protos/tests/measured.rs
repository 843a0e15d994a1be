//! Tests with JSON that a real Mesos 1.11 wrote, which is read and written again.
//!
//! `fixtures/measured.txt` has one document a line, after the message's name: events and responses of a master and an
//! agent, and the calls that clients sent them. Invariants: Mesos's documents are reproduced byte for byte; a client's
//! call, whatever its spacing, is reproduced with the same members; and the v1 types agree with the v0 types in the v1
//! dialect.

use protos::json::{Dialect, FromJson, ToJson, Value};
use protos::mesos;

/// Responses that Mesos composes by hand, with empty lists and an order of their own.
const BY_HAND: &[&str] =
    &["GET_STATE", "GET_AGENTS", "GET_FRAMEWORKS", "GET_EXECUTORS", "GET_TASKS", "GET_METRICS", "SUBSCRIBED"];

fn again<M: FromJson + ToJson>(json: &str) -> String {
    let message = M::from_json(json.as_bytes(), Dialect::V1).unwrap_or_else(|error| panic!("{error}: {json}"));
    String::from_utf8(message.json(Dialect::V1)).unwrap()
}

fn both<V0: FromJson + ToJson, V1: FromJson + ToJson>(json: &str) -> String {
    let v0 = again::<V0>(json);
    assert_eq!(v0, again::<V1>(json));
    v0
}

/// Returns whether `whole` has all members of `part`; it may have more, namely defaults.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            let unset = |value: &Value| value.as_array().is_some_and(<[Value]>::is_empty);
            let has = |key: &String, value| whole.get(key).map_or(unset(value), |other| contains(other, value));
            part.iter().all(|(key, value)| has(key, value))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(a, b)| contains(a, b))
        }
        (a, b) => a == b || (a.as_f64().is_some() && a.as_f64() == b.as_f64()),
    }
}

/// Writes each number with a fraction in its shortest form: Mesos writes up to 17 digits of the same value.
fn with_shortest_numbers(json: &str) -> String {
    let (mut out, mut rest) = (String::new(), json);
    while let Some(begin) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = rest[begin..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len() - begin);
        let (before, from) = rest.split_at(begin);
        let (number, after) = from.split_at(number);
        out.push_str(before);
        match number.parse::<f64>() {
            Ok(value) if number.contains('.') => out.push_str(&value.to_string()),
            _ => out.push_str(number),
        }
        rest = after;
    }
    out + rest
}

#[test]
fn what_mesos_wrote_is_what_we_write() {
    let mut compared = 0;
    for line in include_str!("fixtures/measured.txt").lines() {
        let (name, json) = line.split_once(' ').unwrap();
        let ours = match name {
            "scheduler.Event" => both::<mesos::scheduler::Event, mesos::v1::scheduler::Event>(json),
            "scheduler.Call" => both::<mesos::scheduler::Call, mesos::v1::scheduler::Call>(json),
            "master.Event" => both::<mesos::master::Event, mesos::v1::master::Event>(json),
            "master.Response" => both::<mesos::master::Response, mesos::v1::master::Response>(json),
            "agent.Response" => both::<mesos::agent::Response, mesos::v1::agent::Response>(json),
            other => panic!("{other}"),
        };
        let kind = Value::parse(json.as_bytes()).unwrap();
        let kind = kind.get("type").and_then(Value::as_str).unwrap().to_owned();
        let by_hand = !name.starts_with("scheduler") && BY_HAND.contains(&kind.as_str());
        if name == "scheduler.Call" {
            let (whole, part) = (Value::parse(ours.as_bytes()).unwrap(), Value::parse(json.as_bytes()).unwrap());
            assert!(contains(&whole, &part), "{json}\n{ours}");
        } else if kind == "GET_QUOTA" {
            // The order of a map's keys is not specified.
            assert_eq!(Value::parse(ours.as_bytes()), Value::parse(json.as_bytes()));
        } else if !by_hand {
            assert_eq!(with_shortest_numbers(&ours), with_shortest_numbers(json));
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}
