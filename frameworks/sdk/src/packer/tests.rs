//! Tests the packing of constructed offers.

use resources::{Name, Resource, Value};

use super::*;
use crate::task;
use crate::v1::scheduler::{Call, call};

fn scalar(name: &str, amount: f64) -> Resource {
    Resource::new(Name::from(name), Value::Scalar(resources::Amount::from_f64(amount)))
}

fn need(cpus: f64, mem: f64) -> Resources {
    [scalar("cpus", cpus), scalar("mem", mem)].into_iter().collect()
}

fn offer(id: &str, agent: &str, resources: &Resources) -> Offer {
    Offer {
        id: OfferId { value: id.into() },
        agent_id: AgentId { value: agent.into() },
        hostname: agent.into(),
        resources: task::to_v1(&resources.allocated(&Role::parse("dev").unwrap())),
        allocation_info: Some(crate::v1::resource::AllocationInfo { role: Some("dev".into()) }),
        ..Default::default()
    }
}

fn calls_of(packer: Packer) -> Vec<Call> {
    let mut calls = Calls::default();
    packer.finish(&mut calls, Duration::from_secs(2));
    calls.queue
}

#[test]
fn first_fit_and_the_rest_goes_back() {
    let offers =
        [offer("O1", "A", &need(1.0, 100.0)), offer("O2", "B", &need(2.0, 200.0)), offer("O3", "C", &need(9.0, 9.0))];
    let mut packer = Packer::new(offers);
    let place =
        |packer: &mut Packer, id: &str| packer.place(task::shell(id, "true", &need(1.0, 64.0))).map(|a| a.value);
    assert_eq!(place(&mut packer, "t1").as_deref(), Ok("A"));
    assert_eq!(place(&mut packer, "t2").as_deref(), Ok("B"));
    assert_eq!(place(&mut packer, "t3").as_deref(), Ok("B"));
    assert_eq!(place(&mut packer, "t4").unwrap_err().task_id.value, "t4");
    let calls = calls_of(packer);
    let kinds: Vec<_> = calls.iter().map(Call::r#type).collect();
    assert_eq!(kinds, [call::Type::Accept, call::Type::Accept, call::Type::Decline]);
    assert_eq!(calls[2].decline.as_ref().unwrap().offer_ids[0].value, "O3");
    let accept = calls[1].accept.as_ref().unwrap();
    assert_eq!(accept.filters.unwrap().refuse_seconds, Some(2.0));
    let tasks = &accept.operations[0].launch.as_ref().unwrap().task_infos;
    assert_eq!(tasks.len(), 2);
    assert_eq!(tasks[0].resources[0].allocation_info.as_ref().unwrap().role.as_deref(), Some("dev"));
}

#[test]
fn by_score() {
    let offers = [offer("O1", "A", &need(1.0, 100.0)), offer("O2", "B", &need(2.0, 200.0))];
    let mut packer = Packer::new(offers);
    let most_left = |bin: &Bin| Some(bin.left().cpus().to_f64());
    assert_eq!(packer.place_by(task::shell("t", "true", &need(1.0, 1.0)), most_left).unwrap().value, "B");
    let not_b = |bin: &Bin| (bin.hostname() != "B").then_some(1.0);
    assert_eq!(packer.place_by(task::shell("u", "true", &need(0.5, 1.0)), not_b).unwrap().value, "A");
}

#[test]
fn offers_of_one_agent_count_as_one() {
    let mut packer = Packer::new([offer("O1", "A", &need(1.0, 100.0)), offer("O2", "A", &need(1.0, 100.0))]);
    assert_eq!(packer.bins().len(), 1);
    packer.place(task::shell("t", "true", &need(2.0, 200.0))).unwrap();
    let calls = calls_of(packer);
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].accept.as_ref().unwrap().offer_ids.len(), 2);
}

#[test]
fn reserved_resources_go_first_and_revocable_ones_stay() {
    let dev = Role::parse("dev").unwrap();
    let reserved = scalar("cpus", 1.0).with_reservations(&[Reservation::fixed(dev)]);
    let revocable = scalar("cpus", 8.0).with_revocable(true);
    let all: Resources = [scalar("cpus", 1.0), reserved, revocable].into_iter().collect();
    let mut packer = Packer::new([offer("O1", "A", &all)]);
    let cpus = |amount| [scalar("cpus", amount)].into_iter().collect::<Resources>();
    packer.place(task::shell("t", "true", &cpus(1.0))).unwrap();
    assert_eq!(packer.bins()[0].tasks()[0].resources[0].reservations.len(), 1);
    packer.place(task::shell("u", "true", &cpus(1.0))).unwrap();
    assert!(packer.bins()[0].tasks()[1].resources[0].reservations.is_empty());
    assert!(packer.place(task::shell("v", "true", &cpus(0.1))).is_err());
}

#[test]
fn the_older_format_is_answered_in_kind() {
    let mut offered = offer("O1", "A", &need(1.0, 100.0));
    offered.allocation_info = None;
    for resource in &mut offered.resources {
        resource.allocation_info = None;
        let role = &mut resource.role;
        *role = Some("*".into());
    }
    let mut packer = Packer::new([offered]);
    packer.place(task::shell("t", "true", &need(1.0, 1.0))).unwrap();
    let resource = &packer.bins()[0].tasks()[0].resources[0];
    let role = &resource.role;
    assert_eq!((role.as_deref(), &resource.allocation_info), (Some("*"), &None));
}

#[test]
fn an_offer_that_cannot_be_read_goes_back() {
    let mut bad = offer("O1", "A", &need(1.0, 100.0));
    bad.resources[0].scalar = None;
    let mut packer = Packer::new([bad]);
    assert!(packer.place(task::shell("t", "true", &need(0.1, 1.0))).is_err());
    assert_eq!(calls_of(packer)[0].r#type(), call::Type::Decline);
}

#[test]
fn an_executor_is_paid_for_once_on_each_agent() {
    let mut packer = Packer::new([offer("O1", "A", &need(1.0, 100.0))]);
    let executor = task::executor("e", Default::default(), &need(0.5, 32.0));
    let custom = |id: &str| task::custom(id, executor.clone(), &need(0.25, 32.0));
    assert!(packer.place(custom("t1")).is_ok());
    assert!(packer.place(custom("t2")).is_ok());
    assert!(packer.place(custom("t3")).is_err(), "all is used");
    let tasks = packer.bins()[0].tasks();
    assert_eq!(tasks[0].executor, tasks[1].executor);
    let role = tasks[0].executor.as_ref().unwrap().resources[0].allocation_info.as_ref().unwrap().role.as_deref();
    assert_eq!(role, Some("dev"));
}
