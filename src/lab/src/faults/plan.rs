//! The plan that is drawn from a seed: the cluster, its work, and the faults.

use std::time::Duration;

use master::Config;
use resources::{Role, parse_text};
use sdk::v1::FrameworkInfo;
use sdk::v1::framework_info::{Capability, capability};

use super::fault::{Fault, Kind};
use super::refusals;
use super::rng::FaultRng;
use crate::dist::Dist;
use crate::seeds::Seed;
use crate::world::{AgentSpec, Defect, Model};

/// The roles from which those of frameworks are drawn.
const ROLES: [&str; 4] = ["a", "b", "b/c", "*"];
/// The longest period in which faults happen.
const HORIZON: Duration = Duration::from_secs(180);
/// Failover timeout of frameworks that disconnect without a call.
const WEEK: Duration = Duration::from_secs(7 * 86_400);

/// The plan of a run, drawn from a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The seed of the plan. All other random decisions of the run depend on it, too.
    pub seed: u64,
    /// The agents of the cluster.
    pub agents: Vec<AgentPlan>,
    /// The frameworks of the cluster.
    pub frameworks: Vec<FrameworkPlan>,
    /// Limit of role `a` in CPUs; `None` if it has none.
    pub limit: Option<u64>,
    /// Guarantee of role `b` and its children in CPUs; `None` if it has none.
    pub guarantee: Option<u64>,
    /// Distribution of the network's one-way latency.
    pub latency: Dist,
    /// Time by which the clocks of the master, the agents and the schedulers are ahead.
    pub ahead: Vec<Duration>,
    /// Faults of the run, in the order of time.
    pub faults: Vec<Fault>,
    /// Whether the master's timeouts are short.
    pub impatient: bool,
    /// A deliberate defect, which the rules must detect; `None` in a normal run.
    pub defect: Option<Defect>,
}

/// An agent of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentPlan {
    /// The agent's resources, in the form of `--resources`.
    pub resources: String,
    /// Number of the agent's CPUs that are not reserved.
    pub cpus: u64,
}

/// A framework of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameworkPlan {
    /// The framework's role.
    pub role: &'static str,
    /// Whether the framework checkpoints: its executors survive a restart of their agent.
    pub checkpoint: bool,
    /// Whether the framework has the capability PARTITION_AWARE.
    pub aware: bool,
    /// Failover timeout of the framework.
    pub failover: Duration,
    /// Time after the beginning at which the scheduler starts.
    pub start: Duration,
    /// Number of tasks that end by themselves.
    pub tasks: u32,
    /// Number of tasks that run until they are killed.
    pub services: u32,
    /// The longest duration of a task.
    pub longest: Duration,
    /// The most tasks that are launched at once.
    pub at_once: usize,
    /// Time for which the scheduler holds offers.
    pub hold: Duration,
    /// Duration of the offer filters (`refuse_seconds`).
    pub refuse: Duration,
    /// Whether the scheduler suppresses offers when it needs none.
    pub suppress: bool,
    /// Percentage of tasks that the scheduler kills once they run.
    pub kills: u64,
    /// Percentage of updates that the scheduler acknowledges late.
    pub late: u64,
    /// Probability, in percent, that the scheduler launches two tasks as a group, if it has two to launch.
    pub groups: u64,
    /// Percentage of tasks whose first launch is invalid.
    pub wrong: u64,
    /// Number of slots for persistent volumes, which some of the tasks use.
    pub volumes: u32,
    /// Whether several of the framework's tasks may use a volume at once.
    pub shared: bool,
    /// Percentage of tasks after whose end their volume is replaced by another one.
    pub changes: u64,
    /// Time after its start at which the scheduler tears its framework down, whatever still runs.
    pub quits: Option<Duration>,
    /// Whether the scheduler tears its framework down when all work is done.
    pub tears_down: bool,
}

/// Reduces the number of services, which hold their resources forever, so that some CPU is left for the tasks that end.
fn leave_room(frameworks: &mut [FrameworkPlan], cpus: u64, limited: bool) {
    let mut room = u32::try_from(cpus).unwrap_or(0).saturating_sub(1);
    for framework in frameworks {
        let most = if limited && framework.role == "a" { 0 } else { room };
        framework.services = framework.services.min(most);
        room -= framework.services;
    }
}

impl Plan {
    /// Draws the plan of a seed.
    pub fn draw(seed: u64) -> Plan {
        let root = Seed::root(seed).child("faults");
        let mut rng = FaultRng::new(root.child("cluster"));
        let agents: Vec<AgentPlan> = (0..rng.within(1, 4)).map(|_| AgentPlan::draw(&mut rng)).collect();
        let count = rng.within(1, 4) as usize;
        let mut frameworks: Vec<FrameworkPlan> =
            (0..count).map(|n| FrameworkPlan::draw(&mut FaultRng::new(root.nth("framework", n)))).collect();
        let cpus: u64 = agents.iter().map(|agent| agent.cpus).sum();
        let limit = rng.chance(40).then(|| rng.within(1, 4));
        let guarantee = rng.chance(30).then(|| rng.within(1, cpus / 2));
        leave_room(&mut frameworks, cpus - guarantee.unwrap_or(0), limit.is_some());
        let horizon = Duration::from_secs(rng.within(20, HORIZON.as_secs()));
        let faults = rng.within(1, 14) as usize;
        let mut faults: Vec<Fault> =
            (0..faults).map(|n| Fault::draw(root.nth("fault", n), horizon, agents.len(), frameworks.len())).collect();
        let starts: Vec<Duration> = frameworks.iter().map(|framework| framework.start).collect();
        faults.extend(refusals::draw(root.child("refusals"), agents.len(), &starts));
        faults.sort_by_key(|fault| fault.at);
        let latency = match rng.below(3) {
            0 => Dist::Constant(Duration::from_micros(300)),
            1 => Dist::Exponential(Duration::from_millis(rng.within(1, 40))),
            _ => Dist::LogNormal(Duration::from_millis(rng.within(1, 10)), 2.0),
        };
        let clocks = 1 + agents.len() + frameworks.len();
        Plan {
            seed,
            ahead: (0..clocks).map(|_| rng.span(Duration::from_secs(600))).collect(),
            limit,
            guarantee,
            impatient: rng.chance(40),
            agents,
            frameworks,
            latency,
            faults,
            defect: None,
        }
    }

    /// Returns the plan with a deliberate defect.
    pub fn with_defect(self, defect: Option<Defect>) -> Plan {
        Plan { defect, ..self }
    }

    /// Returns whether a disk refuses writes in the plan.
    pub fn refuses_writes(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault.kind, Kind::RefuseWrites { .. }))
    }

    /// Returns the root of the seeds for all random decisions in the plan's world.
    pub fn root(&self) -> Seed {
        Seed::root(self.seed).child("world")
    }

    /// Returns the configuration of the master.
    pub fn config(&self) -> Config {
        let default = Config::default();
        let weights = vec![("a".to_owned(), 2.0)];
        if !self.impatient {
            return Config { weights, ..default };
        }
        Config {
            weights,
            agent_ping_timeout: Duration::from_secs(3),
            max_agent_ping_timeouts: 3,
            agent_reregister_timeout: Duration::from_secs(40),
            ..default
        }
    }

    /// Returns the parameters of the modelled networks, disks and containers.
    pub fn model(&self) -> Model {
        Model {
            latency: self.latency.clone(),
            registry_write: Dist::Exponential(Duration::from_millis(3)),
            agent_write: Dist::Exponential(Duration::from_millis(2)),
            container_start: Dist::Exponential(Duration::from_millis(30)),
            failures: 0.1,
            ..Model::default()
        }
    }

    /// Returns the agents of the plan's world.
    pub fn specs(&self) -> Vec<AgentSpec> {
        let resources = self.agents.iter().map(|agent| parse_text(&agent.resources, &Role::star()).unwrap_or_default());
        resources.enumerate().map(|(n, resources)| AgentSpec::new(&format!("agent{n}"), resources)).collect()
    }
}

impl AgentPlan {
    fn draw(rng: &mut FaultRng) -> AgentPlan {
        let cpus = rng.within(2, 6);
        let reserved = match rng.below(4) {
            0 => ";cpus(a):1;mem(a):256",
            1 => ";cpus(b):1;mem(b):256",
            _ => "",
        };
        AgentPlan { resources: format!("cpus:{cpus};mem:2048;disk:1000{reserved}"), cpus }
    }
}

impl FrameworkPlan {
    fn draw(rng: &mut FaultRng) -> FrameworkPlan {
        let plan = FrameworkPlan::draw_any(rng);
        // A framework that waits for a volume receives offers for minutes; short filters would cause millions of
        // events.
        let refuse = if plan.volumes > 0 { plan.refuse.max(Duration::from_millis(300)) } else { plan.refuse };
        FrameworkPlan { refuse, ..plan }
    }

    fn draw_any(rng: &mut FaultRng) -> FrameworkPlan {
        let seconds = Duration::from_secs;
        let role = rng.pick(&ROLES);
        FrameworkPlan {
            role,
            checkpoint: rng.chance(75),
            aware: rng.chance(60),
            failover: if rng.chance(15) { seconds(rng.within(5, 300)) } else { WEEK },
            start: rng.span(seconds(30)),
            tasks: rng.within(1, 12) as u32,
            services: if rng.chance(40) { rng.within(1, 2) as u32 } else { 0 },
            longest: rng.span(seconds(90)),
            at_once: rng.within(1, 4) as usize,
            hold: if rng.chance(40) { rng.span(seconds(5)) } else { Duration::ZERO },
            refuse: rng.span(seconds(20)),
            suppress: rng.chance(40),
            kills: if rng.chance(50) { 15 } else { 0 },
            late: if rng.chance(50) { 25 } else { 0 },
            wrong: if rng.chance(30) { 10 } else { 0 },
            quits: rng.chance(12).then(|| seconds(rng.within(5, 200))),
            tears_down: rng.chance(70),
            groups: if rng.chance(35) { 60 } else { 0 },
            // Resources cannot be reserved to the role `*`.
            volumes: if rng.chance(40) && role != "*" { rng.within(1, 2) as u32 } else { 0 },
            shared: rng.chance(40),
            changes: if rng.chance(60) { 40 } else { 0 },
        }
    }

    /// Returns the `FrameworkInfo` of the framework with number `n`.
    pub fn info(&self, n: usize) -> FrameworkInfo {
        let mut kinds = vec![capability::Type::MultiRole, capability::Type::ReservationRefinement];
        if self.aware {
            kinds.push(capability::Type::PartitionAware);
        }
        if self.shared {
            kinds.push(capability::Type::SharedResources);
        }
        let capability = |kind: capability::Type| Capability { r#type: Some(kind as i32) };
        FrameworkInfo {
            user: "lab".to_owned(),
            name: format!("f{n}"),
            roles: vec![self.role.to_owned()],
            capabilities: kinds.into_iter().map(capability).collect(),
            checkpoint: Some(self.checkpoint),
            failover_timeout: Some(self.failover.as_secs_f64()),
            ..FrameworkInfo::default()
        }
    }
}
