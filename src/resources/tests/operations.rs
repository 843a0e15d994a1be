//! Tests offer operations: their conversions, the messages of their errors, and what an agent checkpoints.

use protos::mesos::offer::Operation;
use protos::mesos::offer::operation::{Create, Destroy, GrowVolume, Reserve, ShrinkVolume, Type, Unreserve};
use protos::mesos::resource::disk_info::Persistence;
use protos::mesos::resource::reservation_info::Type as Kind;
use protos::mesos::resource::{AllocationInfo, DiskInfo, ReservationInfo, RevocableInfo, SharedInfo};
use protos::mesos::value::Scalar;
use protos::mesos::{self, Resource as Message};
use resources::{
    AgentAbilities, Requester, RequestingFramework, Resources, Role, check_create, check_destroy, check_grow,
    check_reserve, check_shrink, check_unreserve, conversions, from_proto, parse_text,
};

fn amount(name: &str, value: f64) -> Message {
    Message { name: name.into(), scalar: Some(Scalar { value }), ..Default::default() }
}

fn info(role: &str) -> ReservationInfo {
    ReservationInfo {
        r#type: Some(Kind::Dynamic.into()),
        role: Some(role.into()),
        principal: Some("me".into()),
        labels: None,
    }
}

fn reserved(name: &str, value: f64, roles: &[&str]) -> Message {
    Message { reservations: roles.iter().map(|role| info(role)).collect(), ..amount(name, value) }
}

fn volume(id: &str, size: f64) -> Message {
    let volume =
        mesos::Volume { container_path: "data".into(), mode: mesos::volume::Mode::Rw.into(), ..Default::default() };
    let persistence = Persistence { id: id.into(), principal: Some("me".into()) };
    let disk = DiskInfo { persistence: Some(persistence), volume: Some(volume), source: None };
    Message { disk: Some(Box::new(disk)), ..reserved("disk", size, &["a"]) }
}

fn shared(message: Message) -> Message {
    Message { shared: Some(SharedInfo {}), ..message }
}

fn allocated(message: Message, role: &str) -> Message {
    Message { allocation_info: Some(AllocationInfo { role: Some(role.into()) }), ..message }
}

fn reserve(resources: Vec<Message>) -> Reserve {
    Reserve { resources, ..Default::default() }
}

fn operation(kind: Type, fill: impl FnOnce(&mut Operation)) -> Operation {
    let mut operation = Operation::default();
    operation.set_type(kind);
    fill(&mut operation);
    operation
}

fn create(volumes: Vec<Message>) -> Operation {
    operation(Type::Create, |o| o.create = Some(Create { volumes }))
}

fn destroy(volumes: Vec<Message>) -> Operation {
    operation(Type::Destroy, |o| o.destroy = Some(Destroy { volumes }))
}

fn apply(total: &Resources, operation: &Operation) -> Result<Resources, String> {
    let conversions = conversions(operation).map_err(|e| e.to_string())?;
    total.apply_conversions(&conversions).map_err(|e| e.to_string())
}

fn text(text: &str) -> Resources {
    parse_text(text, &Role::star()).unwrap()
}

const OPERATOR: Requester<'_> = Requester { principal: Some("me"), framework: None };

fn by_framework(roles: &[Role]) -> Requester<'_> {
    let framework = RequestingFramework { id: "f", roles, shared_resources: false };
    Requester { principal: Some("me"), framework: Some(framework) }
}

#[test]
fn a_volume_lives_and_ends() {
    let total = text("cpus:2;disk:256");
    let take = operation(Type::Reserve, |o| o.reserve = Some(reserve(vec![reserved("disk", 200.0, &["a"])])));
    let total = apply(&total, &take).unwrap();
    assert_eq!(total.to_string(), "cpus:2; disk:56; disk(reservations: [(DYNAMIC,a,me)]):200");
    let total = apply(&total, &create(vec![volume("v", 64.0)])).unwrap();
    let grow = GrowVolume { volume: volume("v", 64.0), addition: reserved("disk", 36.0, &["a"]) };
    let total = apply(&total, &operation(Type::GrowVolume, |o| o.grow_volume = Some(Box::new(grow)))).unwrap();
    assert!(total.to_string().ends_with(":100; disk(reservations: [(DYNAMIC,a,me)])[v:data]:100"), "{total}");
    let shrink = ShrinkVolume { volume: volume("v", 100.0), subtract: Scalar { value: 90.0 } };
    let total = apply(&total, &operation(Type::ShrinkVolume, |o| o.shrink_volume = Some(Box::new(shrink)))).unwrap();
    assert_eq!(
        apply(&total, &destroy(vec![volume("v", 11.0)])).unwrap_err(),
        format!("{total} does not contain disk(reservations: [(DYNAMIC,a,me)])[v:data]:11")
    );
    let total = apply(&total, &destroy(vec![volume("v", 10.0)])).unwrap();
    let give = Unreserve { resources: vec![reserved("disk", 200.0, &["a"])] };
    let total = apply(&total, &operation(Type::Unreserve, |o| o.unreserve = Some(give))).unwrap();
    assert_eq!(total, text("cpus:2;disk:256"));
}

#[test]
fn shared_copies_keep_a_volume_alive() {
    let one = shared(volume("v", 10.0));
    let two = from_proto(&[one.clone(), one.clone()]).unwrap();
    assert_eq!(
        apply(&two, &destroy(vec![one.clone()])).unwrap_err(),
        "Persistent volume disk(reservations: [(DYNAMIC,a,me)])[v:data]<SHARED>:10 cannot be removed due to additional \
         shared copies"
    );
    let left = apply(&from_proto(std::slice::from_ref(&one)).unwrap(), &destroy(vec![one])).unwrap();
    assert_eq!(left.to_string(), "disk(reservations: [(DYNAMIC,a,me)]):10");
}

#[test]
fn some_operations_convert_nothing() {
    for (operation, why) in [
        (Operation::default(), "Unknown operation"),
        (operation(Type::Launch, |_| ()), "Operation not supported"),
        (operation(Type::CreateDisk, |_| ()), "Operation not supported"),
        (operation(Type::Reserve, |_| ()), "Expecting 'reserve' to be present"),
        (
            create(vec![reserved("disk", -1.0, &["a"])]),
            "Resource 'disk:-1' is invalid: Invalid scalar resource: value < 0",
        ),
    ] {
        assert_eq!(apply(&text("disk:1"), &operation).unwrap_err(), why);
    }
}

#[test]
fn reservations_are_checked() {
    let roles = [Role::parse("a").unwrap()];
    let framework = by_framework(&roles);
    let plain = AgentAbilities { hierarchical_role: false, reservation_refinement: false, resize_volume: false };
    let check =
        |message: Message, who, agent| check_reserve(&reserve(vec![message]), who, agent).map_err(|e| e.to_string());
    let mine = || reserved("cpus", 1.0, &["a"]);
    assert_eq!(check(mine(), OPERATOR, plain), Ok(()));
    assert_eq!(check(allocated(mine(), "a"), framework, plain), Ok(()));
    let other = Message { reservations: vec![ReservationInfo { principal: None, ..info("a") }], ..amount("cpus", 1.0) };
    for (message, who, why) in [
        (amount("cpus", 1.0), OPERATOR, "Resource cpus:1 is not dynamically reserved"),
        (amount("cpus", 0.0), OPERATOR, "Operation contains no resources"),
        (
            allocated(mine(), "a"),
            OPERATOR,
            "A reserve operation was attempted with an allocated resource, but the operator API only allows reservations \
             to be made to unallocated resources",
        ),
        (
            mine(),
            framework,
            "A reserve operation was attempted on unallocated resource cpus(reservations: [(DYNAMIC,a,me)]):1, but \
             frameworks can only perform reservations on allocated resources",
        ),
        (
            allocated(mine(), "b"),
            framework,
            "A reserve operation was attempted for a resource with role 'a', but the resource was allocated to role 'b'",
        ),
        (
            allocated(reserved("cpus", 1.0, &["b"]), "b"),
            framework,
            "A reserve operation was attempted for a resource allocated to role 'b', but the framework only has roles \
             '{ a }'",
        ),
        (
            other,
            OPERATOR,
            "A reserve operation was attempted by principal 'me', but there is a reserved resource in the request with no \
             principal set",
        ),
        (
            reserved("cpus", 1.0, &["a/b"]),
            OPERATOR,
            "Resource cpus(reservations: [(DYNAMIC,a/b,me)]):1 with reservation for hierarchical role 'a/b' cannot be \
             reserved on an agent without HIERARCHICAL_ROLE capability",
        ),
        (
            Message { revocable: Some(RevocableInfo {}), ..mine() },
            OPERATOR,
            "Invalid resources: Invalid ReservationInfo: Dynamically reserved resource \
             cpus(reservations: [(DYNAMIC,a,me)]){REV}:1 cannot be created from revocable resources",
        ),
        (
            reserved("gpus", 0.5, &["a"]),
            OPERATOR,
            "Invalid resources: Invalid 'gpus' resource: The 'gpus' resource must be an unsigned integer",
        ),
    ] {
        assert_eq!(check(message, who, plain), Err(why.to_owned()));
    }
    let refining = AgentAbilities { hierarchical_role: true, ..plain };
    let why = check(reserved("cpus", 1.0, &["a", "a/b"]), OPERATOR, refining).unwrap_err();
    assert!(why.ends_with("on an agent without RESERVATION_REFINEMENT capability"), "{why}");
    let give = |message| check_unreserve(&Unreserve { resources: vec![message] }).map_err(|e| e.to_string());
    assert_eq!(give(mine()), Ok(()));
    assert!(give(volume("v", 1.0)).unwrap_err().contains("cannot be unreserved directly"));
}

#[test]
fn changed_reservations_keep_amounts() {
    let change = |source, resources| Reserve { source: vec![source], resources: vec![resources] };
    let (old, new) = (reserved("cpus", 1.0, &["a"]), reserved("cpus", 1.0, &["b"]));
    let good = change(old.clone(), new.clone());
    assert_eq!(check_reserve(&good, OPERATOR, AgentAbilities::ALL), Ok(()));
    let total = from_proto(&[old.clone(), amount("cpus", 5.0)]).unwrap();
    let total = apply(&total, &operation(Type::Reserve, |o| o.reserve = Some(good.clone()))).unwrap();
    assert_eq!(total, from_proto(&[new, amount("cpus", 5.0)]).unwrap());
    let more = change(old, reserved("cpus", 2.0, &["b"]));
    assert_eq!(
        check_reserve(&more, OPERATOR, AgentAbilities::ALL).unwrap_err().to_string(),
        "Source and target resources should refer to identical resource quantities: cpus:1 vs. cpus:2"
    );
    assert_eq!(
        check_reserve(&good, by_framework(&[]), AgentAbilities::ALL).unwrap_err().to_string(),
        "Reservation updates are not yet implemented for the scheduler API"
    );
}

#[test]
fn volumes_are_checked() {
    let roles = [Role::parse("a").unwrap()];
    let there = from_proto(&[volume("v", 10.0)]).unwrap();
    let check = |message: Message| {
        let create = Create { volumes: vec![message] };
        check_create(&create, &there, by_framework(&roles), AgentAbilities::ALL).map_err(|e| e.to_string())
    };
    assert_eq!(check(allocated(volume("w", 10.0), "a")), Ok(()));
    let free = Message { reservations: vec![], ..volume("w", 1.0) };
    let mut read_only = volume("w", 1.0);
    let info = read_only.disk.as_mut().and_then(|disk| disk.volume.as_mut()).unwrap();
    info.set_mode(mesos::volume::Mode::Ro);
    for (message, why) in [
        (volume("v", 10.0), "Persistence ID 'v' is not unique"),
        (free, "Invalid resources: Invalid DiskInfo: Persistent volumes cannot be created from unreserved resources"),
        (
            volume("a/b", 1.0),
            "Invalid resources: Invalid DiskInfo: Invalid persistence ID for persistent volume: 'a/b' contains invalid \
             characters",
        ),
        (
            reserved("disk", 1.0, &["a"]),
            "Not a persistent volume: Resource disk(reservations: [(DYNAMIC,a,me)]):1 does not have DiskInfo",
        ),
        (read_only, "Not a persistent volume: Read-only persistent volume not supported"),
        (volume("w", 0.0004), "Operation contains no resources"),
        (volume("w", 1.0), "Invalid volume resources: The resources are not allocated to a role"),
        (
            allocated(shared(volume("w", 1.0)), "a"),
            "Create volume operation for 'disk(allocated: a)(reservations: [(DYNAMIC,a,me)])[w:data]<SHARED>:1' has \
             been attempted by framework 'f' with no SHARED_RESOURCES capability",
        ),
    ] {
        assert_eq!(check(message), Err(why.to_owned()));
    }
    let both = Create { volumes: vec![allocated(volume("w", 1.0), "a"), allocated(volume("x", 1e-9), "a")] };
    assert_eq!(
        check_create(&both, &there, by_framework(&roles), AgentAbilities::ALL).unwrap_err().to_string(),
        "The size of each volume must be greater than zero"
    );
    let end = |id: &str, used: &[Resources]| {
        let volumes = vec![allocated(volume(id, 10.0), "a")];
        check_destroy(&Destroy { volumes }, &there, used).map_err(|e| e.to_string())
    };
    assert_eq!(end("v", &[]), Ok(()));
    assert_eq!(end("x", &[]).unwrap_err(), "Persistent volumes not found");
    assert_eq!(end("v", &[there.allocated(&roles[0])]).unwrap_err(), "Persistent volumes in use");
}

#[test]
fn resizing_is_checked() {
    let grow =
        |volume, addition| check_grow(&GrowVolume { volume, addition }, AgentAbilities::ALL).map_err(|e| e.to_string());
    let more = |size| reserved("disk", size, &["a"]);
    assert_eq!(grow(volume("v", 10.0), more(1.0)), Ok(()));
    for (volume, addition, why) in [
        (volume("v", 10.0), more(0.0), "The size of 'GrowVolume.addition' field must be greater than zero"),
        (volume("v", 10.0), more(1e-9), "The size of 'GrowVolume.addition' field must be greater than zero"),
        (volume("new", 0.0), more(1.0), "The size of 'GrowVolume.volume' field must be greater than zero"),
        (volume("new", 1e-9), more(1.0), "The size of 'GrowVolume.volume' field must be greater than zero"),
        (
            volume("v", 10.0),
            amount("disk", 1.0),
            "Incompatible resources in the 'GrowVolume.volume' and 'GrowVolume.addition' fields",
        ),
        (shared(volume("v", 10.0)), more(1.0), "Growing a shared persistent volume is not supported"),
        (
            volume("v", -1.0),
            more(1.0),
            "Invalid resource in the 'GrowVolume.volume' field: Invalid scalar resource: value < 0",
        ),
    ] {
        assert_eq!(grow(volume, addition), Err(why.to_owned()));
    }
    let shrink = |value| {
        let shrink = ShrinkVolume { volume: volume("v", 10.0), subtract: Scalar { value } };
        check_shrink(&shrink, AgentAbilities::ALL).map_err(|e| e.to_string())
    };
    assert_eq!(shrink(9.9), Ok(()));
    for value in [0.0, -1.0, 0.0001] {
        assert_eq!(shrink(value).unwrap_err(), "Value of 'ShrinkVolume.subtract' must be greater than zero");
    }
    assert!(shrink(10.0).unwrap_err().contains("must be smaller than the size"));
    assert!(shrink(f64::NAN).is_err() && shrink(f64::INFINITY).is_err());
}

#[test]
fn agents_remember_what_operations_made() {
    let flags = text("cpus:4;disk:100;disk(b):50");
    let on_static = Message {
        reservations: vec![ReservationInfo {
            r#type: Some(Kind::Static.into()),
            role: Some("b".into()),
            ..Default::default()
        }],
        ..volume("w", 20.0)
    };
    let refined = Message { reservations: vec![on_static.reservations[0].clone(), info("b/c")], ..amount("disk", 5.0) };
    let kept = from_proto(&[reserved("cpus", 1.0, &["a", "a/x"]), volume("v", 30.0), on_static, refined]).unwrap();
    let total = flags.with_checkpointed(&kept).unwrap();
    assert_eq!(total.quantities(), flags.quantities());
    assert_eq!(total.to_checkpoint(), kept);
    assert_eq!(total.get_scalar(&resources::Name::Disk).unwrap().to_string(), "150");
    assert_eq!(
        text("cpus:4;disk:10;disk(b):50").with_checkpointed(&kept).unwrap_err().to_string(),
        "Incompatible agent resources: cpus:3; disk:10; disk(reservations: [(STATIC,b)]):50; \
         cpus(reservations: [(DYNAMIC,a,me),(DYNAMIC,a/x,me)]):1 does not contain disk:30"
    );
    assert_eq!(
        flags.with_checkpointed(&text("cpus:1")).unwrap_err().to_string(),
        "Unexpected checkpointed resources cpus:1"
    );
}
