//! Tests a cluster whose agent has a disk of 64 MB: a tenant fills it repeatedly, a framework launches tasks all the
//! time, and the agent is killed at random moments and restarted.
//!
//! Invariants:
//! - Each task comes to exactly one terminal state. An agent that is killed before the framework's acknowledgement
//!   reports the drop of a task that it does not know again, with another UUID.
//! - A task that has run has run once, and it has finished: it is neither lost nor failed. The tenant's tasks may fail.
//! - A task that has not run was dropped, or its launch failed because the disk was full: its message says so.
//!
//! `TEPUI_DISK_SECONDS` sets how long tasks are launched (60), `TEPUI_DISK_SEED` the random moments. By hand, for half
//! an hour: `TEPUI_DISK_SECONDS=1800 cargo test --test end_to_end disk_long_run -- --nocapture`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::connection::Connection;
use crate::one_agent::OneAgent;
use crate::small_disk::SmallDisk;
use crate::support::PATIENCE;

/// Maximum number of tasks that have not ended at once.
const TASKS_MAX: usize = 12;
/// CPUs of a task.
const CPUS: f64 = 0.1;
const MEM: f64 = 32.0;
/// Text of a full disk in a refusal and in a failed launch.
const FULL: &str = "No space left on device";

/// Pseudorandom numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// The updates of a task that the framework has received.
#[derive(Default)]
struct Told {
    /// Terminal states of the task: an update may be repeated.
    ends: BTreeSet<String>,
    reason: String,
    message: String,
}

/// A framework that accepts all offers.
struct Framework {
    id: Value,
    calls: Connection,
    events: Receiver<Value>,
    random: Random,
    /// File to which tasks append their ids when they start.
    ran: String,
    tasks: BTreeMap<String, Told>,
    open: BTreeSet<String>,
}

impl Framework {
    fn subscribe(cluster: &OneAgent, random: Random) -> Framework {
        let mut scheduler = Connection::open(&cluster.address, "/api/v1/scheduler");
        let info = json!({"user": "root", "name": "long run", "roles": ["*"], "failover_timeout": 3600.0,
            "checkpoint": true, "capabilities": [{"type": "MULTI_ROLE"}, {"type": "PARTITION_AWARE"}]});
        scheduler.send(&json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}));
        assert_eq!(scheduler.status(), 200);
        let id = scheduler.event().unwrap()["subscribed"]["framework_id"].clone();
        let mut calls = Connection::open(&cluster.address, "/api/v1/scheduler");
        calls.stream_id.clone_from(&scheduler.stream_id);
        let (sender, events) = channel();
        std::thread::spawn(move || {
            while let Some(event) = scheduler.event() {
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let (ran, tasks) = (cluster.directory.join("ran"), BTreeMap::new());
        Framework { id, calls, events, random, ran, tasks, open: BTreeSet::new() }
    }

    fn call(&mut self, mut call: Value) {
        call["framework_id"] = self.id.clone();
        self.calls.send(&call);
        assert_eq!(self.calls.status(), 202, "{call}");
    }

    /// Handles the next event, if one arrives soon. Tasks are launched if it is `active`.
    fn step(&mut self, active: bool) {
        let Ok(event) = self.events.recv_timeout(Duration::from_millis(50)) else { return };
        match event["type"].as_str().unwrap() {
            "OFFERS" => {
                for offer in event["offers"]["offers"].as_array().unwrap() {
                    self.use_offer(offer, active);
                }
            }
            "UPDATE" => self.note(&event["update"]["status"]),
            "ERROR" => panic!("{event}"),
            _ => {}
        }
    }

    fn use_offer(&mut self, offer: &Value, active: bool) {
        let mut tasks = Vec::new();
        let amount = |name: &str| {
            let resources = offer["resources"].as_array().into_iter().flatten();
            let named = resources.filter(|resource| resource["name"] == name);
            named.filter_map(|resource| resource["scalar"]["value"].as_f64()).sum::<f64>()
        };
        // The rest of an agent may be offered in parts.
        let room = (amount("cpus") / CPUS).min(amount("mem") / MEM) as usize;
        while active && tasks.len() < room.min(3) && self.open.len() < TASKS_MAX {
            tasks.push(self.task(&offer["agent_id"]));
        }
        let refuse = if active { 0.1 } else { 3600.0 };
        let launch = json!({"type": "LAUNCH", "launch": {"task_infos": tasks}});
        self.call(json!({"type": "ACCEPT", "accept": {"offer_ids": [offer["id"]], "operations": [launch],
            "filters": {"refuse_seconds": refuse}}}));
    }

    /// Returns a task that sleeps for a while; or the tenant's, which fills the disk, if there is none of these.
    fn task(&mut self, agent: &Value) -> Value {
        let tenant = self.random.below(12) == 0 && !self.open.iter().any(|id| is_tenant(id));
        let id = format!("{}{}", if tenant { "tenant" } else { "t" }, self.tasks.len());
        let sleep = format!("sleep {}.{}", self.random.below(2), self.random.below(10));
        let work = match (tenant, self.random.below(2)) {
            (false, _) => sleep,
            // The file that it leaves in its sandbox has to be garbage collected.
            (true, 0) => format!("head -c 100M /dev/zero > fill; {sleep}"),
            (true, _) => format!("head -c 100M /dev/zero > fill; {sleep}; {sleep}; rm fill"),
        };
        let command = format!("echo {id} >> {}; echo started; {work}; exit 0", self.ran);
        self.tasks.insert(id.clone(), Told::default());
        self.open.insert(id.clone());
        let scalar = |name: &str, value: f64| json!({"name": name, "type": "SCALAR", "scalar": {"value": value}});
        json!({"name": id, "task_id": {"value": id}, "agent_id": agent, "command": {"value": command},
            "resources": [scalar("cpus", CPUS), scalar("mem", MEM)]})
    }

    fn note(&mut self, status: &Value) {
        let (state, id) = (status["state"].as_str().unwrap(), status["task_id"]["value"].as_str().unwrap());
        let is_end =
            !["TASK_STAGING", "TASK_STARTING", "TASK_RUNNING", "TASK_KILLING", "TASK_UNREACHABLE"].contains(&state);
        let uuid = status["uuid"].as_str().unwrap_or_default();
        if is_end {
            let told = self.tasks.get_mut(id).expect("a task of this framework");
            told.ends.insert(state.to_owned());
            [told.reason, told.message] =
                ["reason", "message"].map(|name| status[name].as_str().unwrap_or_default().to_owned());
            self.open.remove(id);
        }
        if !uuid.is_empty() {
            let acknowledge = json!({"agent_id": status["agent_id"], "task_id": status["task_id"], "uuid": uuid});
            self.call(json!({"type": "ACKNOWLEDGE", "acknowledge": acknowledge}));
        }
    }
}

fn is_tenant(id: &str) -> bool {
    id.starts_with("tenant")
}

/// Checks the invariants, and prints the figures.
fn judge(framework: &Framework, kills: u32) {
    let ran = fs::read_to_string(&framework.ran).unwrap_or_default();
    let mut runs: BTreeMap<&str, u32> = BTreeMap::new();
    ran.lines().for_each(|id| *runs.entry(id).or_default() += 1);
    let (mut finished, mut refused, mut tenants, mut wrong) = (0, BTreeMap::<String, u32>::new(), 0, Vec::new());
    for (id, told) in &framework.tasks {
        let state = told.ends.first().map_or("none", String::as_str);
        let is_known = told.ends.len() == 1;
        match runs.get(id.as_str()).copied().unwrap_or_default() {
            _ if is_known && is_tenant(id) => tenants += 1,
            1 if is_known && state == "TASK_FINISHED" => finished += 1,
            // An agent that is killed may not have received the launch.
            0 if is_known && (state == "TASK_DROPPED" || told.message.contains(FULL)) => {
                let full = if told.message.contains(FULL) { FULL } else { "" };
                *refused.entry(format!("{state} {} {full}", told.reason)).or_default() += 1;
            }
            times => wrong.push(format!("{id} ran {times} times and is {:?}: {}", told.ends, told.message)),
        }
    }
    println!(
        "{} tasks, {kills} kills of the agent: {finished} finished, {tenants} of the tenant",
        framework.tasks.len()
    );
    refused.iter().for_each(|(why, times)| println!("{times} not launched: {why}"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(finished > 0, "no task has finished");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it goes on for the time that is asked for")]
fn disk_long_run() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs(number("TEPUI_DISK_SECONDS").unwrap_or(60));
    let seed = number("TEPUI_DISK_SEED").unwrap_or(1);
    let Some(disk) = SmallDisk::ext4("long-run", 4096) else { return };
    let flags = ["--launcher=posix", "--registration_backoff_factor=10ms"].map(str::to_owned);
    let mut cluster = OneAgent::start_in("long-run", disk.path().join("a"), &flags);
    let mut random = Random(seed);
    let mut framework = Framework::subscribe(&cluster, Random(seed.wrapping_add(1)));
    let start = Instant::now();
    let life = |random: &mut Random| Instant::now() + Duration::from_millis(random.below(8000));
    let (mut end_of_agent, mut kills) = (life(&mut random), 0);
    while start.elapsed() < length {
        framework.step(true);
        if Instant::now() > end_of_agent {
            cluster.kill_agent_and_start_it_again();
            kills += 1;
            end_of_agent = life(&mut random);
        }
    }
    let end = Instant::now() + PATIENCE;
    while !framework.open.is_empty() && Instant::now() < end {
        framework.step(false);
    }
    judge(&framework, kills);
}
