//! Launches tasks: their environment and their `TaskInfo`.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Time;
use jobs::launch::{command, duration, launch};
use sdk::v1::{self, CommandInfo, TaskId, TaskInfo};
use sdk::{Calls, task};

use super::record::{LiveState, LiveTask, Phase, Record};
use super::round::{Placed, Plan, keep_unused_offers};
use super::{Core, container};
use crate::constraint::{self, HOSTNAME};
use crate::job::{Health, Job, Kind, Probe};
use jobs::Place;

/// Host and ports of each rank of a gang, in the order of ranks.
type Ranks = Vec<(String, Vec<u64>)>;

impl Core {
    /// Launches the placed tasks. Returns, for each of the remaining rooms, the time until which a gang keeps it.
    pub(super) fn launch(&mut self, mut plan: Plan, now: Time, calls: &mut Calls) -> Vec<Option<Time>> {
        let placed = std::mem::take(&mut plan.placed);
        let gangs = self.gangs(&plan, &placed);
        let mut tasks: BTreeMap<usize, Vec<TaskInfo>> = BTreeMap::new();
        for one in placed {
            let room = one.room;
            if let Some(task) = self.launch_one(&plan, &one, gangs.get(&one.serial), now) {
                tasks.entry(room).or_default().push(task);
            }
        }
        for (room, tasks) in tasks {
            // The rest of an offer that a gang keeps and that a short task was placed on is to be offered again at
            // once.
            let refuse = if plan.kept[room].is_some() { Duration::ZERO } else { self.knobs.refuse_rest };
            let room = &plan.rooms[room];
            self.known_agents.left(&room.identity.agent_id, room.free());
            self.offer_state.refused |= !refuse.is_zero();
            self.totals.launched += tasks.len() as u64;
            calls.accept(room.offers.clone(), vec![launch(tasks)], refuse);
        }
        keep_unused_offers(&mut self.offers, plan)
    }

    fn gangs(&self, plan: &Plan, placed: &[Placed]) -> BTreeMap<u64, Ranks> {
        let mut gangs: BTreeMap<u64, Ranks> = BTreeMap::new();
        let is_gang = |serial: &u64| self.records.get(serial).is_some_and(|r| r.kind() == Kind::Gang);
        for one in placed.iter().filter(|one| is_gang(&one.serial)) {
            let host = plan.rooms[one.room].identity.host.clone();
            gangs.entry(one.serial).or_default().push((host, one.taken.ports.clone()));
        }
        gangs
    }

    fn launch_one(&mut self, plan: &Plan, one: &Placed, gang: Option<&Ranks>, now: Time) -> Option<TaskInfo> {
        let room = &plan.rooms[one.room];
        let record = self.records.get_mut(&one.serial)?;
        let task_id = record.task_id(one.number);
        let place = Place {
            task_id,
            agent_id: room.identity.agent_id.clone(),
            host: room.identity.host.clone(),
            agent: room.identity.address.clone(),
            ports: one.taken.ports.clone(),
        };
        let job = record.sized_job().clone();
        let mut info = task_info(record, one.number, &job, &place, gang);
        info.resources = room.messages(&one.taken);
        let fields = job.constraints.iter().map(|c| c.field.as_str()).chain([HOSTNAME]);
        let value =
            |field: &str| Some((field.to_owned(), constraint::Place::value(&*room.identity, field)?.to_owned()));
        let live = LiveTask {
            place: place.clone(),
            need: job.need,
            stage: LiveState::Staging,
            healthy: None,
            launched: now,
            running: None,
            stopping: None,
            values: fields.filter_map(value).collect(),
        };
        record.change(one.number, |instance| {
            instance.attempts += 1;
            instance.last = Some(place);
            instance.phase = Phase::Live(Box::new(live));
        });
        let usage = self.usage.entry(room.identity.agent_id.clone()).or_default();
        *usage = usage.plus(&job.need);
        self.changed.instances.insert((one.serial, one.number));
        Some(info)
    }
}

fn task_info(record: &Record, number: u32, job: &Job, place: &Place, gang: Option<&Ranks>) -> TaskInfo {
    TaskInfo {
        name: if job.count == 1 { job.name.clone() } else { format!("{}.{number}", job.name) },
        task_id: TaskId { value: (&place.task_id).into() },
        agent_id: v1::AgentId { value: (&place.agent_id).into() },
        command: Some(job.container.containerizer.command(command(
            &job.run,
            &job.uris,
            job.user.clone(),
            environment(record, number, job, place, gang),
        ))),
        container: container::container(job, place).map(Box::new),
        health_check: job
            .health
            .as_ref()
            .map(|health| Box::new(health_check(health, &container::inner_ports(&job.container, place)))),
        kill_policy: job.kill_grace.map(|grace| v1::KillPolicy { grace_period: Some(duration(grace)) }),
        labels: labels(job),
        max_completion_time: job.time_limit.map(duration),
        ..Default::default()
    }
}

/// Returns the environment of a task: the job's own variables, and the task's number and place among the job's tasks.
fn environment(record: &Record, number: u32, job: &Job, place: &Place, gang: Option<&Ranks>) -> v1::Environment {
    let instance = record.get(number);
    let index = instance.map_or(number, |i| i.slot).to_string();
    let mut all: Vec<(String, String)> = vec![
        ("TEPUI_JOB".into(), job.name.clone()),
        ("TEPUI_KIND".into(), job.kind.name().into()),
        ("TEPUI_INDEX".into(), index),
        ("TEPUI_COUNT".into(), job.count.to_string()),
        ("TEPUI_ATTEMPT".into(), instance.map_or(0, |i| i.attempts).to_string()),
        ("TEPUI_VERSION".into(), instance.map_or(0, |i| i.version).to_string()),
        ("HOST".into(), place.host.clone()),
    ];
    if let Some(first) = place.ports.first() {
        all.push(("PORT".into(), first.to_string()));
        all.push(("PORTS".into(), list(place.ports.iter())));
        all.extend((0..).zip(&place.ports).map(|(n, port): (u32, &u64)| (format!("PORT{n}"), port.to_string())));
    }
    if let Some(ranks) = gang {
        all.push(("TEPUI_RANK".into(), number.to_string()));
        all.push(("TEPUI_SIZE".into(), ranks.len().to_string()));
        all.push(("TEPUI_HOSTS".into(), list(ranks.iter().map(|(host, _)| host))));
        let addresses: Vec<String> =
            ranks.iter().filter_map(|(host, ports)| Some(format!("{host}:{}", ports.first()?))).collect();
        if addresses.len() == ranks.len() {
            all.push(("TEPUI_ADDRESSES".into(), list(addresses.iter())));
        }
    }
    // The job's own variables come last, and override the others.
    all.extend(job.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    task::environment(all.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

fn list(items: impl Iterator<Item = impl ToString>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}

/// Converts a health check. It runs in the network of the task, where its ports are those inside the container.
fn health_check(health: &Health, ports: &[u64]) -> v1::HealthCheck {
    use v1::health_check::{HttpCheckInfo, TcpCheckInfo, Type};
    let port = |which: &u32| ports.get(*which as usize).and_then(|p| u32::try_from(*p).ok()).unwrap_or_default();
    let mut check = v1::HealthCheck {
        delay_seconds: Some(0.0),
        interval_seconds: Some(health.interval.as_secs_f64()),
        timeout_seconds: Some(health.timeout.as_secs_f64()),
        consecutive_failures: Some(health.failures),
        grace_period_seconds: Some(health.grace.as_secs_f64()),
        ..Default::default()
    };
    match &health.probe {
        Probe::Command(command) => {
            check.r#type = Some(Type::Command as i32);
            check.command = Some(CommandInfo { shell: Some(true), value: Some(command.clone()), ..Default::default() });
        }
        Probe::Http { path, port: which } => {
            check.r#type = Some(Type::Http as i32);
            check.http = Some(HttpCheckInfo { port: port(which), path: Some(path.clone()), ..Default::default() });
        }
        Probe::Tcp { port: which } => {
            check.r#type = Some(Type::Tcp as i32);
            check.tcp = Some(TcpCheckInfo { port: port(which), ..Default::default() });
        }
    }
    check
}

fn labels(job: &Job) -> Option<v1::Labels> {
    let labels = job.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    (!job.labels.is_empty()).then(|| task::labels(labels))
}
