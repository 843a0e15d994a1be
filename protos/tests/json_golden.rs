//! Tests with texts that Mesos 1.11 itself wrote or refused: each case was measured, none was invented.

use protos::json::{Dialect, FromJson, JsonError, ToJson, Value, Writer};
use protos::mesos::{self, scheduler};

fn text(message: &impl ToJson, dialect: Dialect) -> String {
    String::from_utf8(message.json(dialect)).unwrap()
}

fn double(value: f64) -> String {
    String::from_utf8(Writer::document(|w| {
        w.double(value);
    }))
    .unwrap()
}

#[test]
fn unset_fields_with_a_default_are_written() {
    let info = mesos::FrameworkInfo { user: "u".into(), name: "x".into(), ..Default::default() };
    let want = r#"{"user":"u","name":"x","failover_timeout":0.0,"checkpoint":false}"#;
    assert_eq!(text(&info, Dialect::V0), want);
    assert_eq!(text(&protos::evolve::evolve(&info), Dialect::V1), want);
    assert_eq!(text(&mesos::Filters::default(), Dialect::V0), r#"{"refuse_seconds":5.0}"#);
    assert_eq!(text(&mesos::CommandInfo::default(), Dialect::V0), r#"{"shell":true}"#);
    assert!(text(&mesos::MasterInfo::default(), Dialect::V0).contains(r#""port":5050"#));
}

/// Values of Mesos. Where its text is not the shortest, or in another notation, tepui writes the shortest one: readers
/// compare values.
#[test]
fn doubles() {
    let cases = [
        (1.0, "1.0"),
        (5.0, "5.0"),
        (0.1, "0.1"),
        (1_234_567.891, "1234567.891"),
        (0.1 + 0.2, "0.30000000000000004"),
        (0.000_001, "1e-6"),
        (1e20, "1e20"),
        (1e21, "1e21"),
        (1e-7, "1e-7"),
        (1.234_567_890_123_456_8e23, "1.2345678901234569e23"),
        (-0.0, "-0.0"),
        (0.0, "0.0"),
        (-2.5, "-2.5"),
        (f64::INFINITY, "\"Infinity\""),
        (f64::NEG_INFINITY, "\"-Infinity\""),
        (f64::NAN, "NaN"),
        (f64::MAX, "1.7976931348623157e308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (5e-324, "5e-324"),
        (9_007_199_254_740_993.0, "9007199254740992.0"),
    ];
    for (value, want) in cases {
        assert_eq!(double(value), want);
    }
}

#[test]
fn strings() {
    let text = String::from_utf8(Writer::document(|w| {
        w.string("a\"\\\u{8}\u{c}\n\r\t/\u{7f}\u{1}\u{1f}\u{e9}");
    }));
    assert_eq!(text.unwrap(), "\"a\\\"\\\\\\b\\f\\n\\r\\t/\u{7f}\\u0001\\u001F\u{e9}\"");
}

/// Returns the body of a refused scheduler call, with the prefix of the HTTP response.
fn refusal(body: &str) -> String {
    match scheduler::Call::from_json(body.as_bytes(), Dialect::V1) {
        Err(JsonError::Syntax(why)) => format!("Failed to parse body into JSON: {why}"),
        Err(error) => format!("Failed to convert JSON into Call protobuf: {error}"),
        Ok(call) => format!("{call:?}"),
    }
}

#[test]
fn refusals() {
    let cases = [
        (r#"{"type":"SUBSCRIBE""#, "Failed to parse body into JSON: syntax error at line 1 near: "),
        ("[]", "Failed to convert JSON into Call protobuf: Expecting a JSON object"),
        (r#"{"type":1}"#, "Failed to convert JSON into Call protobuf: Not expecting a JSON number for field 'type'"),
        (
            r#"{"type":"SUBSCRIBE","subscribe":{}}"#,
            "Failed to convert JSON into Call protobuf: Missing required fields: subscribe.framework_info",
        ),
    ];
    for (body, want) in cases {
        assert_eq!(refusal(body), want);
    }
    assert_eq!(scheduler::Call::from_json(b"{}", Dialect::V1).unwrap().r#type, None);
}

#[test]
fn unknown_enum_names_are_dropped_where_the_field_is_optional() {
    let call = scheduler::Call::from_json(br#"{"type":"BOGUS"}"#, Dialect::V1).unwrap();
    assert_eq!(call.r#type, None);
    let info = br#"{"user":"","name":"","capabilities":[{"type":"BOGUS"},null,{"type":"MULTI_ROLE"}]}"#;
    let info = mesos::FrameworkInfo::from_json(info, Dialect::V1).unwrap();
    assert_eq!(info.capabilities.len(), 2);
    assert_eq!(info.capabilities[0].r#type, None);
    let value = mesos::Value::from_json(br#"{"type":"BOGUS"}"#, Dialect::V0);
    assert_eq!(value.unwrap_err().to_string(), "Failed to find enum for 'BOGUS'");
}

#[test]
fn missing_fields_have_paths() {
    let info = br#"{"agent_id":{},"resources":[null,{"name":"cpus"},{"type":"SCALAR"}],"limits":{"mem":{}}}"#;
    let error = mesos::TaskInfo::from_json(info, Dialect::V1).unwrap_err().to_string();
    let want = "Missing required fields: name, task_id, agent_id.value, resources[0].type, resources[1].name, \
                limits[0].value.value";
    assert_eq!(error, want);
}

#[test]
fn names_follow_the_dialect() {
    let status = mesos::TaskStatus {
        task_id: mesos::TaskId { value: "t".into() },
        state: mesos::TaskState::TaskLost as i32,
        slave_id: Some(mesos::SlaveId { value: "s".into() }),
        source: Some(mesos::task_status::Source::Slave as i32),
        reason: Some(mesos::task_status::Reason::SlaveRemoved as i32),
        ..Default::default()
    };
    let v0 = text(&status, Dialect::V0);
    assert!(v0.contains(r#""source":"SOURCE_SLAVE","reason":"REASON_SLAVE_REMOVED""#), "{v0}");
    assert!(v0.contains(r#""slave_id":{"value":"s"}"#), "{v0}");
    let v1 = text(&status, Dialect::V1);
    assert_eq!(v1, v0.replace("SLAVE", "AGENT").replace("slave", "agent"));
    assert_eq!(mesos::TaskStatus::from_json(v1.as_bytes(), Dialect::V1).unwrap(), status);
    assert_eq!(mesos::TaskStatus::from_json(v1.as_bytes(), Dialect::V0).unwrap().slave_id, None);
}

#[test]
fn what_v1_lacks_is_left_out() {
    let agent = mesos::SlaveInfo { hostname: "h".into(), checkpoint: Some(true), ..Default::default() };
    assert_eq!(text(&agent, Dialect::V0), r#"{"hostname":"h","port":5051,"checkpoint":true}"#);
    assert_eq!(text(&agent, Dialect::V1), r#"{"hostname":"h","port":5051}"#);
    assert_eq!(text(&agent, Dialect::Evolved), r#"{"hostname":"h","port":5051,"checkpoint":true}"#);
    let capability = mesos::master_info::Capability { r#type: Some(3) };
    assert_eq!(text(&capability, Dialect::V0), r#"{"type":"QUOTA_V2"}"#);
    assert_eq!(text(&capability, Dialect::V1), "{}");
    let subscribe =
        scheduler::call::Subscribe { force: Some(true), suppressed_roles: vec!["r".into()], ..Default::default() };
    let v1 = text(&subscribe, Dialect::V1);
    assert!(v1.ends_with(r#","suppressed_roles":["r"]}"#), "{v1}");
}

#[test]
fn drain_agent_has_another_duration_in_v1() {
    let json = br#"{"agent_id":{"value":"a"},"max_grace_period":{"seconds":600,"nanos":5},"mark_gone":true}"#;
    let drain = mesos::master::call::DrainAgent::from_json(json, Dialect::V1).unwrap();
    assert_eq!(drain.max_grace_period.unwrap().nanoseconds, 600_000_000_005);
    assert_eq!(text(&drain, Dialect::V1).as_bytes(), json);
    assert!(text(&drain, Dialect::V0).contains(r#""max_grace_period":{"nanoseconds":600000000005}"#));
    let json = br#"{"agent_id":{"value":"a"},"max_grace_period":{"seconds":1},"mark_gone":"true"}"#;
    assert!(mesos::master::call::DrainAgent::from_json(json, Dialect::V1).is_ok());
}

#[test]
fn parser_texts() {
    let cases = [
        ("", "syntax error at line 1 near: "),
        ("{", "syntax error at line 1 near: "),
        ("{\n \"a\": x y\n}", "syntax error at line 2 near: x y"),
        ("{} x", "Parsed JSON included non-whitespace trailing characters: x"),
        ("1e400", "Value out of range"),
        ("+1", "syntax error at line 1 near: +1"),
        ("NaN", "syntax error at line 1 near: NaN"),
        ("Infinity", "syntax error at line 1 near: Infinity"),
        ("[1,]", "syntax error at line 1 near: ]"),
        ("\"a\\x\"", "syntax error at line 1 near: \""),
        ("{\"a\" 1}", "syntax error at line 1 near: 1}"),
        ("nul", "syntax error at line 1 near: "),
        ("1-2", "syntax error at line 1 near: "),
        ("\n\n", "syntax error at line 2 near: "),
    ];
    for (json, want) in cases {
        assert_eq!(Value::parse(json.as_bytes()).unwrap_err().to_string(), want, "{json:?}");
    }
    assert_eq!(Value::parse(b" 01 ").unwrap(), Value::Int(1));
    assert_eq!(Value::parse(b"9223372036854775808").unwrap(), Value::Double(9_223_372_036_854_775_808.0));
    let deep = |n: usize| Value::parse(format!("{}{}", "[".repeat(n), "]".repeat(n)).as_bytes());
    assert!(deep(200).is_ok());
    assert!(deep(201).is_err());
}
