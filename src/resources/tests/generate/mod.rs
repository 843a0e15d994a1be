//! Random resources for property tests: every kind of value, reservation, disk and flag that may occur in messages.
#![allow(dead_code, reason = "each test file uses a part")]

use proptest::collection::vec;
use proptest::prelude::*;
use protos::mesos;
use protos::mesos::resource::DiskInfo;
use protos::mesos::resource::disk_info::source::{Mount, Path, Type};
use protos::mesos::resource::disk_info::{Persistence, Source};
use resources::{Amount, Disk, ItemSet, Labels, ProviderId, Ranges, Reservation, Resource, Resources, Role, Value};

/// Returns a role of a valid name.
pub fn role(text: &str) -> Role {
    Role::parse(text).expect("a valid role")
}

fn labels(value: &str) -> Labels {
    mesos::Labels { labels: vec![mesos::Label { key: "k".into(), value: Some(value.into()) }] }.into()
}

/// Generates a stack of reservations, possibly an empty one.
pub fn reservations() -> impl Strategy<Value = Vec<Reservation>> {
    let dynamic = |text: &str| Reservation::dynamic(role(text), Some("me".into()), None);
    prop_oneof![
        4 => Just(vec![]),
        2 => Just(vec![Reservation::fixed(role("a"))]),
        1 => Just(vec![Reservation::fixed(role("b/c"))]),
        2 => Just(vec![dynamic("a")]),
        1 => Just(vec![Reservation::dynamic(role("a"), None, Some(labels("x")))]),
        1 => Just(vec![Reservation::dynamic(role("a"), None, Some(labels("y")))]),
        1 => Just(vec![Reservation::fixed(role("a")), dynamic("a/b")]),
        1 => Just(vec![dynamic("a"), dynamic("a/b"), dynamic("a/b/c")]),
    ]
}

fn allocation() -> impl Strategy<Value = Option<Role>> {
    prop_oneof![3 => Just(None), 2 => Just(Some(role("a"))), 1 => Just(Some(role("a/b")))]
}

/// Generates a named value. Numbers and words are of a band, so that sets of different bands have none in common.
fn named_value(band: u64) -> impl Strategy<Value = (&'static str, Value)> {
    let amount = (1_i64..2_000_000).prop_map(|t| Value::Scalar(Amount::from_thousandths(t)));
    let scalar = (prop::sample::select(vec!["cpus", "mem", "gas", "water"]), amount);
    let start = band * 1000;
    let ranges = vec((start..start + 900, 0_u64..40), 1..4)
        .prop_map(|all| Value::Ranges(Ranges::new(all.into_iter().map(|(begin, more)| (begin, begin + more)))));
    let items = vec(0_u8..9, 1..4)
        .prop_map(move |all| Value::Set(ItemSet::new(all.into_iter().map(|i| format!("w{band}-{i}")))));
    prop_oneof![
        4 => scalar,
        2 => (Just("ports"), ranges),
        1 => (Just("zones"), items),
    ]
}

fn disk_info(kind: Option<Type>, root: &str, volume: Option<&str>) -> Disk {
    let source = kind.map(|kind| Source {
        r#type: kind.into(),
        path: (kind == Type::Path).then(|| Path { root: Some(root.into()) }),
        mount: (kind == Type::Mount).then(|| Mount { root: Some(root.into()) }),
        id: (kind == Type::Block).then(|| root.to_owned()),
        ..Default::default()
    });
    let persistence = volume.map(|id| Persistence { id: id.into(), principal: Some("me".into()) });
    let volume = volume.map(|_| mesos::Volume {
        container_path: "data".into(),
        mode: mesos::volume::Mode::Rw.into(),
        ..Default::default()
    });
    DiskInfo { persistence, volume, source }.into()
}

/// Generates disk of any source, some of it persistent or shared volumes.
fn disk() -> impl Strategy<Value = Resource> {
    let source = prop::sample::select(vec![None, Some(Type::Path), Some(Type::Mount), Some(Type::Block)]);
    let root = prop::sample::select(vec!["/m1", "/m2"]);
    let volume = prop::sample::select(vec![None, None, Some("v1"), Some("v2")]);
    (source, root, volume, reservations(), 1_i64..5, 0_u32..3).prop_map(
        |(source, root, volume, stack, size, copies)| {
            let resource = Resource::scalar("disk", Amount::from_units(size)).with_reservations(&stack);
            let volume = volume.filter(|_| !stack.is_empty());
            if source.is_none() && volume.is_none() {
                return resource;
            }
            let resource = resource.with_disk(Some(disk_info(source, root, volume)));
            if volume.is_some() { resource.with_copies(copies) } else { resource }
        },
    )
}

/// Generates one resource that may occur in messages.
pub fn resource(band: u64) -> impl Strategy<Value = Resource> {
    let plain = (named_value(band), reservations(), any::<bool>()).prop_map(|((name, value), stack, revocable)| {
        let revocable = revocable && stack.is_empty();
        Resource::new(name, value).with_reservations(&stack).with_revocable(revocable)
    });
    let provider = prop_oneof![4 => Just(None), 1 => Just(Some(ProviderId::new("rp")))];
    (prop_oneof![4 => plain.boxed(), 1 => disk().boxed()], allocation(), provider)
        .prop_map(|(resource, role, provider)| resource.with_allocation(role).with_provider(provider))
}

/// Generates a set of resources.
pub fn resources(band: u64) -> impl Strategy<Value = Resources> {
    vec(resource(band), 0..7).prop_map(|all| all.into_iter().collect())
}

/// Generates a set that the text of `--resources` can express.
pub fn flag_resources() -> impl Strategy<Value = Resources> {
    let stack = prop_oneof![
        2 => Just(vec![]),
        1 => Just(vec![Reservation::fixed(role("a"))]),
        1 => Just(vec![Reservation::fixed(role("b/c"))]),
    ];
    let one =
        (named_value(0), stack).prop_map(|((name, value), stack)| Resource::new(name, value).with_reservations(&stack));
    vec(one, 0..7).prop_map(|all| all.into_iter().collect())
}
