//! Tests the JSON of random values. Invariants:
//! - a double's text parses to the same double, has at most 17 digits, and a point or an exponent without `+`;
//! - a value that is written and read is the same value, for any strings;
//! - no text makes a reader panic, and a message that is read twice from its own text does not change;
//! - a message's reader and the general reader agree about a text's syntax.

use proptest::prelude::*;
use protos::json::{Dialect, FromJson, JsonError, ToJson, Value, Writer};
use protos::mesos::{self, scheduler};

fn text(value: f64) -> String {
    let json = Writer::document(|w| {
        w.double(value);
    });
    String::from_utf8(json).unwrap()
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        prop::num::f64::NORMAL.prop_map(Value::Double),
        ".*".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(".{0,8}", inner, 0..6).prop_map(Value::Object),
        ]
    })
}

/// Generates texts that are nearly JSON of a call.
fn nearly_json() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"type\"",
        "\"LAUNCH\"",
        "\"accept\"",
        "\"offer_ids\"",
        "\"operations\"",
        "\"launch\"",
        "\"task_infos\"",
        "\"value\"",
        "\"filters\"",
        "\"refuse_seconds\"",
        "1",
        "-0.5e3",
        "null",
        "true",
        "\"\\u00e9\"",
        "\"\\",
        " ",
        "\n",
        "1e999",
        "\"Infinity\"",
        "\"12\"",
        "\u{e9}",
        "\u{0}",
    ]);
    prop::collection::vec(word, 0..24).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn doubles_read_back(bits in any::<u64>()) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let text = text(value);
        prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{}", text);
        prop_assert!(text.contains(['.', 'e']), "{}", text);
        let digits = text.split('e').next().unwrap().replace(['-', '.'], "");
        prop_assert!(digits.trim_matches('0').len() <= 17, "{}", text);
        prop_assert!(!text.contains('+'));
    }

    #[test]
    fn decimals_of_three_places_are_short(thousandths in -1_000_000_000i64..1_000_000_000) {
        let value = thousandths as f64 / 1000.0;
        prop_assert_eq!(text(value), format!("{value:?}"));
    }

    #[test]
    fn values_survive(value in any_value()) {
        let json = value.to_string();
        prop_assert_eq!(Value::parse(json.as_bytes()).unwrap(), value);
    }

    #[test]
    fn any_text_is_safe(text in nearly_json()) {
        let general = Value::parse(text.as_bytes());
        match scheduler::Call::from_json(text.as_bytes(), Dialect::V1) {
            Ok(call) => {
                prop_assert!(general.is_ok());
                let json = call.json(Dialect::V1);
                let again = scheduler::Call::from_json(&json, Dialect::V1).unwrap();
                prop_assert_eq!(again.json(Dialect::V1), json);
            }
            Err(error @ JsonError::Syntax(_)) => prop_assert_eq!(general.unwrap_err(), error),
            Err(_) => prop_assert!(general.is_ok()),
        }
    }

    #[test]
    fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Value::parse(&bytes);
        let _ = scheduler::Call::from_json(&bytes, Dialect::V0);
        let _ = protos::decode::<scheduler::Call>(&bytes);
        let _ = protos::decode::<mesos::internal::RegisterSlaveMessage>(&bytes);
        let _ = protos::missing_fields::<mesos::TaskInfo>(&bytes);
    }
}

fn duration(json: &str) -> Result<mesos::DurationInfo, String> {
    mesos::DurationInfo::from_json(json.as_bytes(), Dialect::V0).map_err(|error| error.to_string())
}

#[test]
fn integers_bend_as_in_cpp() {
    let cases = [
        ("1.7", 1),
        ("-1.7", -1),
        ("\"12\"", 12),
        ("\" 12 \"", 12),
        ("01", 1),
        ("9223372036854775808", i64::MIN),
        ("1e300", i64::MIN),
    ];
    for (number, want) in cases {
        assert_eq!(duration(&format!("{{\"nanoseconds\":{number}}}")).unwrap().nanoseconds, want, "{number}");
    }
    let metric =
        |n: &str| mesos::value::Range::from_json(format!("{{\"begin\":{n},\"end\":0}}").as_bytes(), Dialect::V0);
    assert_eq!(metric("-1").unwrap().begin, u64::MAX);
    assert_eq!(metric("18446744073709551615").unwrap().begin, 0);
    assert_eq!(metric("9223372036854775808").unwrap().begin, 1 << 63);
}

#[test]
fn refusals_by_type() {
    let call = |json: &str| scheduler::Call::from_json(json.as_bytes(), Dialect::V1).unwrap_err().to_string();
    let cases = [
        (r#"{"framework_id":7}"#, "Not expecting a JSON number for field 'framework_id'"),
        (r#"{"framework_id":"f"}"#, "Not expecting a JSON string for field 'framework_id'"),
        (r#"{"framework_id":true}"#, "Not expecting a JSON boolean for field 'framework_id'"),
        (r#"{"framework_id":[]}"#, "Not expecting a JSON array for field 'framework_id'"),
        (r#"{"framework_id":{"value":{}}}"#, "Not expecting a JSON object for field 'value'"),
        (r#"{"framework_id":{"value":1.5}}"#, "Not expecting a JSON number for field 'value'"),
        (r#"{"message":{"data":"a_b="}}"#, "Failed to base64 decode bytes field 'data': Invalid character '_'"),
        // The first error in sorted order counts, not the first in the text; and only the last of two equal keys.
        (r#"{"type":1,"accept":[]}"#, "Not expecting a JSON array for field 'accept'"),
        (r#"{"accept":7,"type":1,"accept":null}"#, "Not expecting a JSON number for field 'type'"),
        (
            r#"{"decline":{"filters":{"refuse_seconds":"NaN"}}}"#,
            "Failed to parse 'NaN' as a JSON number for field 'refuse_seconds': syntax error at line 1 near: NaN",
        ),
        (
            r#"{"decline":{"filters":{"refuse_seconds":"true"}}}"#,
            "Failed to parse 'true' as a JSON number for field 'refuse_seconds': Unexpected JSON type parsed",
        ),
    ];
    for (json, want) in cases {
        assert_eq!(call(json), want, "{json}");
    }
    let shell = |json: &str| mesos::CommandInfo::from_json(json.as_bytes(), Dialect::V0);
    assert_eq!(shell(r#"{"shell":"false"}"#).unwrap().shell, Some(false));
    assert_eq!(
        shell(r#"{"shell":"no"}"#).unwrap_err().to_string(),
        "Failed to parse 'no' as a JSON boolean for field 'shell': syntax error at line 1 near: o"
    );
    assert_eq!(shell(r#"{"shell":1}"#).unwrap_err().to_string(), "Not expecting a JSON number for field 'shell'");
}

#[test]
fn leniency() {
    let read = |json: &str| mesos::CommandInfo::from_json(json.as_bytes(), Dialect::V0).unwrap();
    assert_eq!(read(r#"{"arguments":"one","Shell":7,"value":null}"#).arguments, ["one"]);
    assert_eq!(read(r#"{"arguments":["a",null,["b",["c"]]]}"#).arguments, ["a", "b", "c"]);
    assert_eq!(read(r#"{"arguments":["a"],"arguments":["b"]}"#).arguments, ["b"]);
    let predicate = br#"{"text_equals":{"value":"x"},"exists":{}}"#;
    let predicate = scheduler::attribute_constraint::Predicate::from_json(predicate, Dialect::V1).unwrap();
    assert!(matches!(predicate.predicate, Some(scheduler::attribute_constraint::predicate::Predicate::TextEquals(_))));
    // A member of a oneof that was replaced need not be complete.
    let predicate = br#"{"exists":{},"not_exists":{},"text_equals":{},"text_matches":{"regex":"r"}}"#;
    assert!(scheduler::attribute_constraint::Predicate::from_json(predicate, Dialect::V1).is_ok());
    let data = |text: &str| {
        let json = format!("{{\"value\":\"{text}\"}}");
        mesos::Uuid::from_json(json.as_bytes(), Dialect::V0).map(|uuid| uuid.value)
    };
    assert_eq!(data("YQ==").unwrap(), b"a");
    assert_eq!(data("YQ").unwrap(), b"a");
    assert_eq!(data(" Y Q=ignored").unwrap(), b"a");
    assert_eq!(data("YWJjZ").unwrap(), b"abc");
}

#[test]
fn lists_cannot_take_far_more_memory_than_their_text() {
    let json = format!(r#"{{"tasks":[{}{{}}]}}"#, "{},".repeat(100_000));
    let result = mesos::master::response::GetTasks::from_json(json.as_bytes(), Dialect::V0);
    assert!(matches!(result.err(), Some(JsonError::TooLarge(_))));
}
