//! Tests the conversion of messages in both directions, and the messages of errors.

use protos::mesos;
use protos::mesos::Resource as Message;
use protos::mesos::resource::disk_info::source::Type as SourceType;
use protos::mesos::resource::disk_info::{Persistence, Source};
use protos::mesos::resource::reservation_info::Type as Kind;
use protos::mesos::resource::{AllocationInfo, DiskInfo, ReservationInfo, RevocableInfo, SharedInfo};
use protos::mesos::value::{Range, Ranges, Scalar, Set, Type};
use resources::{Format, Resources, Role, from_proto, validate};

fn scalar(name: &str, value: f64) -> Message {
    Message { name: name.into(), scalar: Some(Scalar { value }), ..Default::default() }
}

fn ranges(pairs: &[(u64, u64)]) -> Message {
    let range = pairs.iter().map(|&(begin, end)| Range { begin, end }).collect();
    let mut message = Message { name: "ports".into(), ranges: Some(Ranges { range }), ..Default::default() };
    message.set_type(Type::Ranges);
    message
}

fn set(items: &[&str]) -> Message {
    let item = items.iter().map(|&item| item.to_owned()).collect();
    let mut message = Message { name: "zones".into(), set: Some(Set { item }), ..Default::default() };
    message.set_type(Type::Set);
    message
}

fn newer(kind: Kind, role: &str, principal: Option<&str>) -> ReservationInfo {
    ReservationInfo {
        r#type: Some(kind.into()),
        role: Some(role.into()),
        principal: principal.map(str::to_owned),
        labels: None,
    }
}

fn older(principal: &str) -> ReservationInfo {
    ReservationInfo { principal: Some(principal.into()), ..Default::default() }
}

#[allow(deprecated)]
fn with_role(message: Message, role: &str) -> Message {
    Message { role: Some(role.into()), ..message }
}

fn stack(message: Message, reservations: &[ReservationInfo]) -> Message {
    Message { reservations: reservations.to_vec(), ..message }
}

fn disk(info: DiskInfo) -> Message {
    Message { disk: Some(Box::new(info)), ..scalar("disk", 64.0) }
}

fn source(kind: SourceType) -> Source {
    Source { r#type: kind.into(), ..Default::default() }
}

fn take(messages: &[Message]) -> Resources {
    from_proto(messages).unwrap()
}

#[test]
#[allow(deprecated)]
fn both_formats_mean_the_same() {
    let cpus = || scalar("cpus", 1.0);
    let dynamic = newer(Kind::Dynamic, "dev", Some("me"));
    for (old, new) in [
        (with_role(cpus(), "*"), cpus()),
        (cpus(), cpus()),
        (with_role(cpus(), "dev"), stack(cpus(), &[newer(Kind::Static, "dev", None)])),
        (
            Message { reservation: Some(Box::new(older("me"))), ..with_role(cpus(), "dev") },
            stack(cpus(), std::slice::from_ref(&dynamic)),
        ),
    ] {
        assert_eq!(take(std::slice::from_ref(&old)), take(std::slice::from_ref(&new)));
        assert_eq!(take(&[old]).to_proto(Format::PostRefinement), [new]);
    }
    let both = Message { reservation: Some(Box::new(older("me"))), ..stack(with_role(cpus(), "dev"), &[dynamic]) };
    assert_eq!(take(std::slice::from_ref(&both)).to_proto(Format::Endpoint), [both]);
}

#[test]
#[allow(deprecated)]
fn older_readers_get_what_they_understand() {
    let refined = [newer(Kind::Static, "a", None), newer(Kind::Dynamic, "a/b", Some("me"))];
    let messages = [
        scalar("cpus", 1.0),
        stack(scalar("mem", 2.0), &[newer(Kind::Static, "a", None)]),
        stack(scalar("disk", 3.0), &[newer(Kind::Dynamic, "a", None)]),
        stack(scalar("gpus", 4.0), &refined),
    ];
    let out = take(&messages).to_proto(Format::PreRefinement);
    let shown: Vec<_> =
        out.iter().map(|m| (m.role.as_deref(), m.reservation.is_some(), m.reservations.len())).collect();
    assert_eq!(shown, [(Some("*"), false, 0), (Some("a"), false, 0), (Some("a"), true, 0), (None, false, 2)]);
}

#[test]
fn sets_merge_and_drop_what_is_empty() {
    let all = take(&[
        scalar("cpus", 0.1),
        scalar("cpus", 0.2),
        scalar("mem", 0.0004),
        ranges(&[(1, 5), (6, 9)]),
        ranges(&[(20, 20)]),
        ranges(&[]),
        set(&["b", "a"]),
    ]);
    assert_eq!(all.to_string(), "cpus:0.3; ports:[1-9, 20-20]; zones:{a, b}");
    assert_eq!(all.to_proto(Format::PostRefinement)[0].scalar.as_ref().map(|s| s.value), Some(0.3));
}

#[test]
fn shared_volumes_are_counted() {
    let persistence = Persistence { id: "v".into(), principal: None };
    let info = DiskInfo { persistence: Some(persistence), ..Default::default() };
    let volume = Message { shared: Some(SharedInfo {}), ..stack(disk(info), &[newer(Kind::Static, "a", None)]) };
    let mut all = take(&[volume.clone(), volume.clone()]);
    assert_eq!(all.to_string(), "disk(reservations: [(STATIC,a)])[v]<SHARED>:64<2>");
    assert_eq!((all.len(), all.disk().to_string().as_str()), (1, "64"));
    assert_eq!(all.to_proto(Format::PostRefinement).len(), 1);
    let one = take(&[volume]);
    all -= &one;
    assert!(all == one && one.contains(&all));
    all -= &one;
    assert!(all.is_empty());
}

#[test]
fn text_is_that_of_mesos() {
    let dev =
        |message: Message| Message { allocation_info: Some(AllocationInfo { role: Some("dev".into()) }), ..message };
    let label = mesos::Label { key: "x".into(), value: Some("y".into()) };
    let labelled = ReservationInfo {
        labels: Some(mesos::Labels { labels: vec![label] }),
        ..newer(Kind::Dynamic, "dev", Some("samp"))
    };
    let mount = Source {
        mount: Some(mesos::resource::disk_info::source::Mount { root: Some("/mnt/a".into()) }),
        ..source(SourceType::Mount)
    };
    let volume =
        mesos::Volume { container_path: "data".into(), mode: mesos::volume::Mode::Rw.into(), ..Default::default() };
    let info = DiskInfo {
        persistence: Some(Persistence { id: "vol1".into(), principal: None }),
        volume: Some(volume),
        source: Some(mount),
    };
    for (messages, text) in [
        (vec![], "{}"),
        (
            vec![dev(ranges(&[(31000, 32000)])), dev(scalar("cpus", 2.5)), dev(scalar("mem", 3904.0))],
            "ports(allocated: dev):[31000-32000]; cpus(allocated: dev):2.5; mem(allocated: dev):3904",
        ),
        (
            vec![dev(stack(scalar("cpus", 1.0), &[labelled]))],
            "cpus(allocated: dev)(reservations: [(DYNAMIC,dev,samp,{x: y})]):1",
        ),
        (
            vec![stack(disk(info), &[newer(Kind::Static, "a", None), newer(Kind::Dynamic, "a/b", None)])],
            "disk(reservations: [(STATIC,a),(DYNAMIC,a/b)])[MOUNT:/mnt/a,vol1:data]:64",
        ),
        (vec![Message { revocable: Some(RevocableInfo {}), ..scalar("cpus", 1.0) }], "cpus{REV}:1"),
    ] {
        assert_eq!(take(&messages).to_string(), text);
    }
}

/// Returns invalid messages with the texts of their errors.
#[allow(deprecated)]
fn refused() -> Vec<(Message, &'static str)> {
    let cpus = || scalar("cpus", 1.0);
    let (fixed, dynamic) = (newer(Kind::Static, "a", None), newer(Kind::Dynamic, "a", Some("me")));
    let mut text = cpus();
    text.set_type(Type::Text);
    let with_path = Source { path: Some(Default::default()), ..source(SourceType::Raw) };
    vec![
        (scalar("", 1.0), "Empty resource name"),
        (Message { r#type: 9, ..cpus() }, "Invalid resource type"),
        (text, "Unsupported resource type"),
        (Message { scalar: None, ..cpus() }, "Invalid scalar resource"),
        (Message { set: Some(Set::default()), ..cpus() }, "Invalid scalar resource"),
        (scalar("cpus", -0.5), "Invalid scalar resource: value < 0"),
        (scalar("cpus", f64::NAN), "Invalid scalar resource: value is not a normal number"),
        (scalar("cpus", f64::INFINITY), "Invalid scalar resource: value is not a normal number"),
        (scalar("cpus", f64::MIN_POSITIVE / 2.0), "Invalid scalar resource: value is not a normal number"),
        (Message { ranges: None, ..ranges(&[]) }, "Invalid ranges resource"),
        (ranges(&[(2, 1)]), "Invalid ranges resource: begin > end"),
        (ranges(&[(5, 9), (1, 5)]), "Invalid ranges resource: overlapping ranges"),
        (Message { scalar: Some(Scalar { value: 1.0 }), ..set(&["a"]) }, "Invalid set resource"),
        (set(&["a", "b", "a"]), "Invalid set resource: duplicated elements"),
        (Message { disk: Some(Box::default()), ..cpus() }, "DiskInfo should not be set for cpus resource"),
        (
            disk(DiskInfo { source: Some(source(SourceType::Unknown)), ..Default::default() }),
            "Unsupported 'DiskInfo.Source.Type' in 'UNKNOWN'",
        ),
        (
            disk(DiskInfo { source: Some(with_path), ..Default::default() }),
            "Path should not be set for RAW disk source",
        ),
        (with_role(cpus(), "a b"), "Role component 'a b' is invalid because it contains backspace or whitespace"),
        (
            Message { reservation: Some(Box::new(older("me"))), ..with_role(cpus(), "*") },
            "Invalid reservation: role \"*\" cannot be dynamically reserved",
        ),
        (
            Message { reservation: Some(Box::new(dynamic.clone())), ..with_role(cpus(), "a") },
            "'Resource.ReservationInfo.type' must not be set for the 'Resource.reservation' field",
        ),
        (
            Message {
                reservation: Some(Box::new(ReservationInfo { r#type: None, ..dynamic.clone() })),
                ..with_role(cpus(), "a")
            },
            "'Resource.ReservationInfo.role' must not be set for the 'Resource.reservation' field",
        ),
        (
            stack(cpus(), &[ReservationInfo { r#type: None, ..fixed.clone() }]),
            "Invalid reservation: 'Resource.ReservationInfo.type' field must be set.",
        ),
        (
            stack(cpus(), &[ReservationInfo { role: None, ..fixed.clone() }]),
            "Invalid reservation: 'Resource.ReservationInfo.role' field must be set.",
        ),
        (stack(cpus(), &[newer(Kind::Unknown, "a", None)]), "Unsupported 'Resource.ReservationInfo.Type'"),
        (stack(cpus(), &[newer(Kind::Dynamic, "*", None)]), "Invalid reservation: role \"*\" cannot be reserved"),
        (
            stack(cpus(), &[fixed.clone(), newer(Kind::Static, "a/b", None)]),
            "Invalid refined reservation: A refined reservation cannot be STATIC",
        ),
        (
            stack(cpus(), &[fixed.clone(), newer(Kind::Dynamic, "ab", None)]),
            "Invalid refined reservation: role 'ab' is not a refinement of 'a'",
        ),
        (
            stack(with_role(cpus(), "b"), std::slice::from_ref(&fixed)),
            "Invalid resource format: 'Resource.role' field with 'b' does not match the role 'a' in \
             'Resource.reservations'",
        ),
        (
            stack(with_role(cpus(), "a"), std::slice::from_ref(&dynamic)),
            "Invalid resource format: 'Resource.role' and 'Resource.reservation' must either be both set or both not set \
             if the single reservation in 'Resource.reservations' is DYNAMIC",
        ),
        (
            Message { reservation: Some(Box::new(older("you"))), ..stack(with_role(cpus(), "a"), &[dynamic]) },
            "Invalid resource format: 'Resource.reservation.principal' field with 'you' does not match the principal \
             'me' in 'Resource.reservations'",
        ),
        (
            stack(with_role(cpus(), "a/b"), &[fixed, newer(Kind::Dynamic, "a/b", None)]),
            "Invalid resource format: 'Resource.role' must not be set if there is more than one reservation in \
             'Resource.reservations'",
        ),
        (
            Message { allocation_info: Some(AllocationInfo::default()), ..cpus() },
            "'Resource.AllocationInfo.role' must be set",
        ),
        (Message { shared: Some(SharedInfo {}), ..cpus() }, "Resource cpus cannot be shared"),
        (Message { shared: Some(SharedInfo {}), ..scalar("disk", 1.0) }, "Only persistent volumes can be shared"),
    ]
}

#[test]
fn bad_messages_are_refused_in_words() {
    for (message, why) in refused() {
        let error = validate(&[scalar("mem", 1.0), message.clone()]).unwrap_err();
        assert_eq!(error.fault.to_string(), why, "{message:?}");
        assert_eq!(from_proto(&[message]).unwrap_err().fault, error.fault);
        assert!(error.to_string().starts_with("Resource '") && error.to_string().ends_with(why), "{error}");
    }
    let shown = validate(&[scalar("cpus", -0.5)]).unwrap_err().to_string();
    assert_eq!(shown, "Resource 'cpus:-0.5' is invalid: Invalid scalar resource: value < 0");
}

#[test]
fn lists_have_limits() {
    let many: Vec<Message> = (0..=resources::MAX_RESOURCES).map(|i| scalar(&format!("r{i}"), 1.0)).collect();
    assert_eq!(from_proto(&many[1..]).unwrap().len(), resources::MAX_RESOURCES);
    let why = "Resource 'r4096' is invalid: More than 4096 resources in one list";
    assert_eq!(from_proto(&many).unwrap_err().to_string(), why);
    assert_eq!(validate(&many).unwrap_err().to_string(), why);
    let every_other: Vec<(u64, u64)> = (0..65_536).step_by(2).map(|port| (port, port)).collect();
    assert_eq!(take(&[ranges(&every_other)]).ports().count(), 32_768);
    let one_more = [ranges(&every_other), set(&["a"])];
    assert_eq!(
        from_proto(&one_more).unwrap_err().to_string(),
        "Resource 'zones' is invalid: More than 32768 ranges and set items in one list"
    );
}

#[test]
fn exclusive_disks_stay_apart() {
    let mount = |root: &str| {
        let mount = mesos::resource::disk_info::source::Mount { root: Some(root.into()) };
        let source = Source { mount: Some(mount), ..source(SourceType::Mount) };
        disk(DiskInfo { source: Some(source), ..Default::default() })
    };
    let path = disk(DiskInfo { source: Some(source(SourceType::Path)), ..Default::default() });
    let raw = |id: Option<&str>| {
        let source = Source { id: id.map(str::to_owned), ..source(SourceType::Raw) };
        disk(DiskInfo { source: Some(source), ..Default::default() })
    };
    let count = |messages: &[Message]| take(messages).len();
    assert_eq!(count(&[mount("/a"), mount("/b")]), 2);
    assert_eq!(count(&[mount("/a"), mount("/a")]), 2);
    assert_eq!(count(&[path.clone(), path]), 1);
    assert_eq!(count(&[raw(None), raw(None)]), 1);
    assert_eq!(count(&[raw(Some("x")), raw(Some("x"))]), 2);
    let whole = take(&[mount("/a")]);
    let part = take(&[Message { scalar: Some(Scalar { value: 1.0 }), ..mount("/a") }]);
    assert!(!whole.contains(&part) && (&whole - &part) == whole);
    assert!(whole.contains(&whole) && !whole.contains(&take(&[mount("/a"), mount("/a")])));
    assert!(!whole.as_slice()[0].clone().shrink(resources::Amount::MILLI));
}

#[test]
fn finding_prefers_own_then_unreserved_then_others() {
    let text = |text: &str| resources::parse_text(text, &Role::star()).unwrap();
    for (have, want, found) in [
        ("cpus:4;cpus(a):2;cpus(b):9", "cpus(a):3", Some("cpus(a):2;cpus:1")),
        ("cpus:1;cpus(b):9", "cpus(a):3", Some("cpus:1;cpus(b):2")),
        ("cpus(b):9;cpus:4", "cpus:3", Some("cpus:3")),
        ("cpus:3", "cpus(a):2;cpus:2", None),
        ("cpus:3;cpus(b):1", "cpus(a):2;cpus:2", Some("cpus:3;cpus(b):1")),
        ("cpus:3", "cpus:2;mem:1", None),
        ("ports:[1-9];ports(a):[20-29]", "ports(a):[3-4]", Some("ports:[3-4]")),
    ] {
        assert_eq!(text(have).find(&text(want)), found.map(text), "{want} of {have}");
    }
}

#[test]
fn roles_decide_what_is_allocatable() {
    let text = "cpus:1;cpus(a):2;cpus(a/b):4;cpus(a/b/c):8";
    let all = resources::parse_text(text, &Role::star()).unwrap();
    for (role, cpus) in
        [("*", "1"), ("a", "3"), ("a/b", "7"), ("a/b/c", "15"), ("a/b/c/d", "15"), ("a/x", "3"), ("ab", "1")]
    {
        assert_eq!(all.allocatable_to(&Role::parse(role).unwrap()).cpus().to_string(), cpus, "{role}");
    }
}
