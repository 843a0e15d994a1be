//! Tests every message with random values.
//!
//! For each message and seed:
//! - decoding and encoding keeps every field (`decode` then `encode` equals the original);
//! - the JSON of each dialect is the one that a second writer makes from the descriptors;
//! - reading that JSON returns the message, also with sorted keys and with every key given twice;
//! - a message with missing fields is rejected, in binary and in JSON, with the same list of missing fields.

mod support;

use prost::Message as _;
use prost_reflect::{DynamicMessage, ReflectMessage as _};
use protos::json::{Dialect, FromJson, JsonError, ToJson, Value};
use protos::{DecodeError, Described};
use support::{Dice, Names, Shape};

const SEEDS: u64 = 3;

/// Fields by which messages differ in v0 and v1; reading such messages has tests of its own.
const DIFFERENT: &[&str] = &["\"checkpoint\":", "QUOTA_V2", "\"force\":", "\"max_grace_period\":"];

macro_rules! every {
    ($($name:literal $kind:ty, $twin:literal;)*) => {
        fn all() -> Vec<Probe> {
            vec![$(Probe { name: $name, twin: $twin, check: check::<$kind>, holes: holes::<$kind> }),*]
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/every.rs"));

struct Probe {
    name: &'static str,
    /// Name of the v1 message; empty without one.
    twin: &'static str,
    check: fn(&Probe, &DynamicMessage, Option<&DynamicMessage>),
    holes: fn(&Probe, &DynamicMessage),
}

fn check<M: Described + ToJson + FromJson + PartialEq>(
    probe: &Probe,
    dynamic: &DynamicMessage,
    twin: Option<&DynamicMessage>,
) {
    let name = probe.name;
    assert_eq!(M::full_name(), name);
    let bytes = dynamic.encode_to_vec();
    let message: M = protos::decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let again = DynamicMessage::decode(dynamic.descriptor(), &*message.encode_to_vec()).unwrap();
    let (again, whole) = (support::json(&again, Names::AsDeclared), support::json(dynamic, Names::AsDeclared));
    assert_eq!(again, whole, "{name} in binary");

    let plain = support::json(dynamic, Names::AsDeclared);
    assert_eq!(text(&message, Dialect::V0), plain, "{name}");
    assert_reads::<M>(name, &plain, Dialect::V0, &message);

    if name.starts_with("mesos.v1.") || name.starts_with("google.") {
        assert_eq!(text(&message, Dialect::V1), plain, "{name}");
        assert_eq!(text(&message, Dialect::Evolved), plain, "{name}");
        return;
    }
    assert_eq!(text(&message, Dialect::Evolved), support::json(dynamic, Names::Evolved), "{name}, evolved");
    if let Some(twin) = twin {
        let v1 = support::json(twin, Names::AsDeclared);
        if !DIFFERENT.iter().any(|mark| plain.contains(mark)) {
            assert_eq!(text(&message, Dialect::V1), v1, "{name}, v1");
            if !plain.contains("\"hostname\":") {
                assert_reads::<M>(name, &v1, Dialect::V1, &message);
            }
        }
    }
}

fn assert_reads<M: Described + ToJson + FromJson + PartialEq>(name: &str, json: &str, dialect: Dialect, want: &M) {
    // Defaults are written for unset fields, so the rewritten texts are compared.
    let want = text(want, dialect);
    let read = |json: &str| match M::from_json(json.as_bytes(), dialect) {
        Ok(message) => text(&message, dialect),
        Err(error) => panic!("{name}: {error}: {json}"),
    };
    assert_eq!(read(json), want, "{name} from JSON");
    let value = Value::parse(json.as_bytes()).unwrap();
    assert_eq!(read(&value.to_string()), want, "{name} from JSON with sorted keys");
    if let Some(members) = json.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))
        && !members.is_empty()
    {
        assert_eq!(read(&format!("{{{members},{members}}}")), want, "{name} from JSON with each key twice");
        assert_eq!(read(&format!("{{\"unknown\":[{json},-1.5e3,true],{members}}}")), want, "{name} and more");
    }
}

fn text(message: &impl ToJson, dialect: Dialect) -> String {
    String::from_utf8(message.json(dialect)).unwrap()
}

fn holes<M: Described + FromJson>(probe: &Probe, dynamic: &DynamicMessage) {
    let name = probe.name;
    let missing = protos::missing_fields::<M>(&dynamic.encode_to_vec()).join(", ");
    let from_binary = protos::decode::<M>(&dynamic.encode_to_vec());
    let from_json = M::from_json(support::json(dynamic, Names::AsDeclared).as_bytes(), Dialect::V0);
    if missing.is_empty() {
        assert!(from_binary.is_ok(), "{name}");
        assert!(from_json.is_ok(), "{name}");
        return;
    }
    assert_eq!(from_binary.err(), Some(DecodeError::Missing(missing.clone())), "{name}");
    // A required field with a default is written even when unset, so the JSON lacks fewer fields.
    let want = JsonError::Convert(format!("Missing required fields: {missing}"));
    if !missing.contains("port") && !missing.contains("promised") && !missing.contains("status") {
        assert_eq!(from_json.err(), Some(want), "{name}");
    }
}

#[test]
fn every_message_survives() {
    let pool = support::pool();
    let probes = all();
    assert_eq!(probes.len(), 920, "42 files hold 919 messages, and there is google.protobuf.Duration");
    for (i, probe) in probes.iter().enumerate() {
        let descriptor = pool.get_message_by_name(probe.name).unwrap();
        let twin = pool.get_message_by_name(probe.twin);
        for seed in 0..SEEDS {
            let mut dice = Dice::new(i as u64 * 1000 + seed);
            let dynamic = support::message(&mut dice, &descriptor, Shape::Whole, 0);
            let bytes = dynamic.encode_to_vec();
            let twin = twin.as_ref().and_then(|twin| DynamicMessage::decode(twin.clone(), &*bytes).ok());
            (probe.check)(probe, &dynamic, twin.as_ref());
        }
    }
}

#[test]
fn every_hole_is_named() {
    let pool = support::pool();
    for (i, probe) in all().iter().enumerate() {
        let descriptor = pool.get_message_by_name(probe.name).unwrap();
        for seed in 0..SEEDS {
            let mut dice = Dice::new(i as u64 * 1000 + seed + 500);
            (probe.holes)(probe, &support::message(&mut dice, &descriptor, Shape::Holes, 0));
        }
    }
}
