//! Tests volumes and crashes: random histories of operations, with the agent killed between any two of its steps.
//!
//! After every step, also one that a crash has interrupted and a restart has completed:
//! - the directories on the disk are those of the volumes that the agent says it has, no more and no fewer;
//! - a volume that the step was not about has kept its data.

use std::collections::BTreeMap;

use agent::{Agent, Config, Incoming, Input, Outbox, Output, Recovered, Tree};
use base::{Pid, Time};
use cores::Core;
use proptest::prelude::*;
use protos::mesos::internal::{ApplyOperationMessage, ResourceVersionUuid};
use protos::mesos::offer::operation::{Create, Destroy, Type};
use protos::mesos::{self as pb, resource};
use resources::{Format, Role, parse_text};

const MASTER: &str = "master@10.0.0.1:5050";

/// Point at which the agent is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    Never,
    BeforeWriting,
    BeforeActing,
    BeforeHearing,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Create(u8, Death),
    Destroy(u8, Death),
    /// The agent receives the result of a change of volumes.
    Hear(Death),
}

fn deaths() -> impl Strategy<Value = Death> {
    let some = [Death::BeforeWriting, Death::BeforeActing, Death::BeforeHearing];
    prop_oneof![3 => Just(Death::Never), 2 => proptest::sample::select(some.to_vec())]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..4_u8, deaths()).prop_map(|(id, death)| Step::Create(id, death)),
        (0..4_u8, deaths()).prop_map(|(id, death)| Step::Destroy(id, death)),
        deaths().prop_map(Step::Hear),
    ];
    prop::collection::vec(step, 1..60)
}

fn volume(id: u8) -> pb::Resource {
    use resource::{DiskInfo, ReservationInfo, disk_info::Persistence, reservation_info};
    let reservation = ReservationInfo {
        r#type: Some(reservation_info::Type::Static as i32),
        role: Some("dev".to_owned()),
        ..ReservationInfo::default()
    };
    let seen =
        pb::Volume { mode: pb::volume::Mode::Rw as i32, container_path: "data".to_owned(), ..pb::Volume::default() };
    pb::Resource {
        name: "disk".into(),
        r#type: pb::value::Type::Scalar as i32,
        scalar: Some(pb::value::Scalar { value: 10.0 }),
        reservations: vec![reservation],
        disk: Some(Box::new(DiskInfo {
            persistence: Some(Persistence { id: format!("v{id}"), principal: None }),
            volume: Some(seen),
            source: None,
        })),
        ..pb::Resource::default()
    }
}

fn path(id: u8) -> String {
    format!("/w/volumes/roles/dev/v{id}")
}

struct World {
    agent: Agent,
    meta: Tree,
    /// Existing directories, each with the number of its creation.
    directories: BTreeMap<String, u32>,
    made: u32,
    operations: u32,
    starts: u64,
    /// Numbers of changes whose result the agent has not received yet.
    done: Vec<u64>,
}

fn start(meta: &Tree, seed: u64) -> (Agent, Outbox) {
    let pid: Pid = "slave(1)@10.0.0.2:5051".parse().unwrap();
    let resources = parse_text("cpus:4;disk(dev):1000", &Role::star()).unwrap().to_proto(Format::PostRefinement);
    let info = pb::SlaveInfo { hostname: "host".into(), resources, ..pb::SlaveInfo::default() };
    let mut out = Outbox::default();
    let recovered = Recovered::read(meta, true).unwrap();
    let mut agent = Agent::new(Config::new(pid, "/w"), info, recovered, seed, Time::from_secs(1), &mut out).unwrap();
    agent.handle(Input::Detected { master: Some(MASTER.parse().unwrap()) }, Time::from_secs(1), &mut out);
    (agent, out)
}

impl World {
    fn new() -> World {
        let (agent, out) = start(&Tree::default(), 1);
        let mut world = World {
            agent,
            meta: Tree::default(),
            directories: BTreeMap::new(),
            made: 0,
            operations: 0,
            starts: 1,
            done: Vec::new(),
        };
        world.carry_out(out, Death::Never);
        world
    }

    /// Carries out an outbox as the shell does, up to the point at which the agent is killed.
    fn carry_out(&mut self, out: Outbox, death: Death) {
        if death == Death::BeforeWriting {
            return self.restart();
        }
        out.persist.iter().for_each(|entry| self.meta.apply(entry));
        if death == Death::BeforeActing {
            return self.restart();
        }
        for output in out.outputs {
            if let Output::ChangeVolumes { change, gone, new } = output {
                for volume in gone {
                    self.directories.remove(&volume.path);
                }
                for path in new {
                    self.made += 1;
                    self.directories.entry(path).or_insert(self.made);
                }
                self.done.push(change);
            }
        }
        if death == Death::BeforeHearing {
            self.restart();
        }
    }

    fn restart(&mut self) {
        self.starts += 1;
        self.done.clear();
        let (agent, out) = start(&self.meta, self.starts);
        self.agent = agent;
        self.carry_out(out, Death::Never);
    }

    fn feed(&mut self, input: Input, death: Death) {
        let mut out = Outbox::default();
        self.agent.handle(input, Time::from_secs(1), &mut out);
        self.agent.end_batch(Time::from_secs(1), &mut out);
        self.carry_out(out, death);
    }

    fn operate(&mut self, info: pb::offer::Operation, death: Death) {
        self.operations += 1;
        let mut uuid = [0; 16];
        uuid[..4].copy_from_slice(&self.operations.to_be_bytes());
        let message = ApplyOperationMessage {
            operation_info: info,
            operation_uuid: pb::Uuid { value: base::uuid_from(uuid).to_vec() },
            resource_version_uuid: ResourceVersionUuid {
                resource_provider_id: None,
                uuid: pb::Uuid { value: base::uuid_from([0; 16]).to_vec() },
            },
            ..ApplyOperationMessage::default()
        };
        let message = Box::new(Incoming::ApplyOperation(message));
        self.feed(Input::Message { from: MASTER.parse().unwrap(), message }, death);
    }

    fn step(&mut self, step: Step) {
        let mut info = pb::offer::Operation::default();
        match step {
            Step::Create(id, death) => {
                info.set_type(Type::Create);
                info.create = Some(Create { volumes: vec![volume(id)] });
                self.operate(info, death);
            }
            Step::Destroy(id, death) => {
                info.set_type(Type::Destroy);
                info.destroy = Some(Destroy { volumes: vec![volume(id)] });
                self.operate(info, death);
            }
            Step::Hear(death) => {
                for change in std::mem::take(&mut self.done) {
                    self.feed(Input::VolumesChanged { change }, death);
                }
            }
        }
    }

    /// Returns the directories of the volumes that the agent has according to its state.
    fn promised(&mut self) -> Vec<String> {
        let resources = self.agent.snapshot().resources.clone();
        let volumes = resources.iter().filter_map(|resource| resource.disk()?.persistence_id().map(str::to_owned));
        let mut paths: Vec<String> = volumes.map(|id| format!("/w/volumes/roles/dev/{id}")).collect();
        paths.sort();
        paths
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn directories_are_what_the_agent_promises(steps in steps()) {
        let mut world = World::new();
        for step in steps {
            let before = world.directories.clone();
            world.step(step);
            let directories: Vec<String> = world.directories.keys().cloned().collect();
            prop_assert_eq!(world.promised(), directories, "after {:?}", step);
            let own = match step {
                Step::Create(id, _) | Step::Destroy(id, _) => Some(path(id)),
                Step::Hear(_) => None,
            };
            for (path, number) in before.iter().filter(|(path, _)| Some(*path) != own.as_ref()) {
                prop_assert_eq!(world.directories.get(path), Some(number), "{} after {:?}", path, step);
            }
        }
    }
}
