//! Tests strict decoding and the five differences between v0 and v1 in binary.

use prost::Message;
use protos::evolve::{devolve, encode_master_call, encode_scheduler_call, evolve, master_call, scheduler_call};
use protos::mesos::{self, master, scheduler, v1};
use protos::{DecodeError, decode, missing_fields};

#[test]
fn missing_required_fields_are_named() {
    // TaskInfo{name: "n", slave_id: {}}
    let bytes = [0x0a, 1, b'n', 0x1a, 0];
    let want = "task_id, slave_id.value";
    assert_eq!(decode::<mesos::TaskInfo>(&bytes), Err(DecodeError::Missing(want.into())));
    assert_eq!(missing_fields::<mesos::TaskInfo>(&bytes), ["task_id", "slave_id.value"]);
    assert_eq!(decode::<mesos::TaskId>(&[]).unwrap_err().to_string(), "Missing required fields: value");
}

#[test]
fn malformed_bytes_are_refused() {
    let cases: [&[u8]; 7] = [
        &[0x0a],
        &[0x0a, 5, b'x'],
        &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
        &[0x07],
        &[0x00, 0x00],
        &[0x0b],
        &[0x0c],
    ];
    for bytes in cases {
        assert_eq!(decode::<mesos::TaskId>(bytes), Err(DecodeError::Malformed("mesos.TaskID")), "{bytes:?}");
    }
    // Nested containers, 150 levels deep.
    let mut bytes = vec![0x0a, 1, b'c'];
    for _ in 0..150 {
        let mut outer = vec![0x0a, 1, b'c', 0x12];
        prost::encoding::encode_varint(bytes.len() as u64, &mut outer);
        outer.append(&mut bytes);
        bytes = outer;
    }
    assert_eq!(decode::<mesos::ContainerId>(&bytes), Err(DecodeError::Malformed("mesos.ContainerID")));
}

#[test]
fn enum_numbers_without_a_name_are_unset() {
    // Call.type = 99, and an unknown field 100.
    let call: scheduler::Call = decode(&[0x10, 99, 0xa0, 0x06, 1]).unwrap();
    assert_eq!(call, scheduler::Call::default());
    // An unknown number in a required enum field: Value.type = 99.
    assert_eq!(decode::<mesos::Value>(&[0x08, 99]), Err(DecodeError::Missing("type".into())));
    // In a list, packed or not, unknown numbers are dropped.
    let capabilities: mesos::CapabilityInfo = decode(&[0x0a, 4, 0xe8, 0x07, 1, 0x63]).unwrap_or_default();
    assert!(capabilities.capabilities.iter().all(|c| mesos::capability_info::Capability::try_from(*c).is_ok()));
}

#[test]
fn halves_are_joined_and_wrong_types_are_unknown() {
    // A message in two parts: a TaskInfo whose task_id occurs twice, the first time empty.
    let bytes = [0x0a, 1, b'n', 0x12, 0, 0x1a, 3, 0x0a, 1, b's', 0x12, 3, 0x0a, 1, b't'];
    let task: mesos::TaskInfo = decode(&bytes).unwrap();
    assert_eq!(task.task_id.value, "t");
    // A `value` that is a number is an unknown field, so the required one is missing.
    assert_eq!(decode::<mesos::TaskId>(&[0x08, 1]), Err(DecodeError::Missing("value".into())));
    // Text need not be UTF-8.
    assert_eq!(decode::<mesos::TaskId>(&[0x0a, 2, b'x', 0xff]).unwrap().value, "x\u{fffd}");
}

#[test]
fn lengths_of_any_size_are_written() {
    use prost::encoding::{message, string};
    for length in [0, 1, 127, 128, 300, 20_000] {
        let (mut inner, mut outer) = (Vec::new(), Vec::new());
        string::encode(1, &"n".repeat(length), &mut inner);
        let task_id = mesos::TaskId { value: "n".repeat(length).into() };
        assert_eq!(task_id.encode_to_vec(), inner);
        message::encode(1, &task_id, &mut outer);
        let kill = scheduler::call::Kill { task_id, ..scheduler::call::Kill::default() };
        assert_eq!(kill.encode_to_vec(), outer);
    }
}

#[test]
fn a_zero_in_a_map_is_written() {
    let mut task = mesos::TaskInfo { name: "n".into(), ..Default::default() };
    task.limits.insert("mem".into(), mesos::value::Scalar { value: 0.0 });
    let bytes = task.encode_to_vec();
    let entry = [0x7a, 16, 0x0a, 3, b'm', b'e', b'm', 0x12, 9, 0x09, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(bytes.ends_with(&entry), "{bytes:?}");
    assert_eq!(decode::<mesos::TaskInfo>(&bytes).unwrap(), task);
}

fn v1_subscribe() -> v1::scheduler::Call {
    v1::scheduler::Call {
        r#type: Some(v1::scheduler::call::Type::Subscribe as i32),
        subscribe: Some(Box::new(v1::scheduler::call::Subscribe {
            framework_info: v1::FrameworkInfo { user: "u".into(), name: "n".into(), ..Default::default() },
            suppressed_roles: vec!["a".into(), "b".into()],
            offer_constraints: Some(v1::scheduler::OfferConstraints::default()),
        })),
        framework_id: Some(v1::FrameworkId { value: "f".into() }),
        ..Default::default()
    }
}

#[test]
fn subscribe_has_other_numbers_in_v1() {
    let v1 = v1_subscribe();
    let call = scheduler_call(&v1.encode_to_vec()).unwrap();
    let subscribe = call.subscribe.as_ref().unwrap();
    assert_eq!(subscribe.suppressed_roles, ["a", "b"]);
    assert!(subscribe.offer_constraints.is_some());
    assert_eq!(subscribe.force, None);
    assert_eq!(call.framework_id.as_ref().unwrap().value, "f");
    let mut bytes = Vec::new();
    let forced = scheduler::Call {
        subscribe: Some(Box::new(scheduler::call::Subscribe { force: Some(true), ..*subscribe.clone() })),
        ..call.clone()
    };
    encode_scheduler_call(&forced, &mut bytes);
    assert_eq!(v1::scheduler::Call::decode(&*bytes).unwrap(), v1);
    assert_eq!(evolve(&forced), v1);
    assert_eq!(devolve::<scheduler::Call>(&v1), call);
    let error = scheduler_call(&[0x1a, 0]).unwrap_err();
    assert_eq!(error.to_string(), "Missing required fields: subscribe.framework_info");
}

#[test]
fn other_calls_pass_as_they_are() {
    let revive = scheduler::Call { r#type: Some(scheduler::call::Type::Revive as i32), ..Default::default() };
    assert_eq!(scheduler_call(&revive.encode_to_vec()).unwrap(), revive);
}

#[test]
fn drain_agent_has_another_duration_in_v1() {
    let v1 = v1::master::Call {
        r#type: Some(v1::master::call::Type::DrainAgent as i32),
        drain_agent: Some(v1::master::call::DrainAgent {
            agent_id: v1::AgentId { value: "a".into() },
            max_grace_period: Some(protos::google::protobuf::Duration { seconds: 600, nanos: 7 }),
            mark_gone: Some(true),
        }),
        ..Default::default()
    };
    let call: master::Call = master_call(&v1.encode_to_vec()).unwrap();
    assert_eq!(call.drain_agent.as_ref().unwrap().max_grace_period.unwrap().nanoseconds, 600_000_000_007);
    let mut bytes = Vec::new();
    encode_master_call(&call, &mut bytes);
    assert_eq!(v1::master::Call::decode(&*bytes).unwrap(), v1);
    assert_eq!(evolve(&call), v1);
}

#[test]
fn an_agent_of_v1_checkpoints() {
    let agent: mesos::SlaveInfo = devolve(&v1::AgentInfo { hostname: "h".into(), ..Default::default() });
    assert_eq!((agent.hostname.as_str(), agent.checkpoint), ("h", Some(true)));
    assert_eq!(evolve(&agent).hostname, "h");
}
