//! What an operator can set about the core: the master's flags that change what it decides.
//!
//! It does not read flags; the daemon does, and checks their ranges.

use std::collections::BTreeSet;
use std::time::Duration;

use allocator::SorterKind;
use allocator::policies::Policies;
use authorizer::Authorizer;

use resources::{Amount, Name, Quantities};

use crate::throttle::RateLimits;

/// The settings of a master core. The defaults are Mesos's (docs/mesos/flags.md).
#[derive(Clone, Debug)]
pub struct Config {
    /// `--agent_ping_timeout`: how long a pong may take, and the interval of pings.
    pub agent_ping_timeout: Duration,
    /// `--max_agent_ping_timeouts`: pings in a row that may go unanswered before an agent is unreachable.
    pub max_agent_ping_timeouts: u32,
    /// `--agent_reregister_timeout`: how long a disconnected or recovered agent may stay away.
    pub agent_reregister_timeout: Duration,
    /// `--agent_removal_rate_limit`: at most this many agents become unreachable in that time.
    pub agent_removal_rate_limit: Option<(u32, Duration)>,
    /// `--rate_limits`: how many messages of drivers are dealt with.
    pub rate_limits: Option<RateLimits>,
    /// `--recovery_agent_removal_limit`: the largest share (0 to 1) of recovered agents that may be lost.
    pub recovery_agent_removal_limit: f64,
    /// `--policies`, `--offer_timeout`, `--offer_granularity`: how long offers and refusals last, how finely agents are
    /// offered.
    pub policies: Policies,
    /// `--max_completed_frameworks`.
    pub max_completed_frameworks: usize,
    /// `--max_completed_tasks_per_framework`.
    pub max_completed_tasks_per_framework: usize,
    /// `--max_unreachable_tasks_per_framework`.
    pub max_unreachable_tasks_per_framework: usize,
    /// `--max_operator_event_stream_subscribers`.
    pub max_operator_event_stream_subscribers: usize,
    /// `--roles`: the only roles that may be used, if set.
    pub roles: Option<BTreeSet<String>>,
    /// `--root_submissions`: whether frameworks of user root are allowed.
    pub root_submissions: bool,
    /// `--require_agent_domain`: whether agents without a fault domain are ignored.
    pub require_agent_domain: bool,
    /// `--authenticate_agents`: whether agents that have not authenticated are ignored.
    pub authenticate_agents: bool,
    /// `--authenticate_frameworks`: whether drivers that have not authenticated are refused.
    pub authenticate_frameworks: bool,
    /// `--acls`: the access control lists.
    pub authorizer: Authorizer,
    /// `--registry_gc_interval`: how often old unreachable and gone agents are forgotten.
    pub registry_gc_interval: Duration,
    /// `--registry_max_agent_age`.
    pub registry_max_agent_age: Duration,
    /// `--registry_max_agent_count`.
    pub registry_max_agent_count: usize,
    /// `--allocation_interval`: how often all agents are examined, whatever happened.
    pub allocation_interval: Duration,
    /// `--min_allocatable_resources`: an offer holds at least one of these; none: it only must not be empty.
    pub min_allocatable_resources: Vec<Quantities>,
    /// `--filter_gpu_resources`: whether agents with GPUs are hidden from frameworks without that capability.
    pub filter_gpu_resources: bool,
    /// `--fair_sharing_excluded_resource_names`.
    pub fair_sharing_excluded_resource_names: Vec<String>,
    /// `--offer_constraints_re2_max_mem` and `--offer_constraints_re2_max_program_size`.
    pub offer_constraints_limits: allocator::RegexLimits,
    /// `--allocator_agent_recovery_factor`: after a failover of a master with quotas, the share (0 to 1) of agents that
    /// must be back before anything is offered.
    pub allocator_agent_recovery_factor: f64,
    /// `--allocator_recovery_timeout`: how long that may take at most.
    pub allocator_recovery_timeout: Duration,
    /// `--role_sorter`: the order of roles.
    pub role_sorter: SorterKind,
    /// `--framework_sorter`: the order of the frameworks of a role.
    pub framework_sorter: SorterKind,
    /// `--weights`: used if the registry has none. Each is positive.
    pub weights: Vec<(String, f64)>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            agent_ping_timeout: Duration::from_secs(15),
            max_agent_ping_timeouts: 5,
            agent_reregister_timeout: Duration::from_secs(600),
            agent_removal_rate_limit: None,
            rate_limits: None,
            recovery_agent_removal_limit: 1.0,
            policies: Policies::default(),
            max_completed_frameworks: 50,
            max_completed_tasks_per_framework: 1000,
            max_unreachable_tasks_per_framework: 1000,
            max_operator_event_stream_subscribers: 1000,
            roles: None,
            root_submissions: true,
            require_agent_domain: false,
            authenticate_agents: false,
            authenticate_frameworks: false,
            authorizer: Authorizer::default(),
            registry_gc_interval: Duration::from_secs(900),
            registry_max_agent_age: Duration::from_secs(14 * 24 * 3600),
            registry_max_agent_count: 102_400,
            allocation_interval: Duration::from_secs(1),
            min_allocatable_resources: vec![
                Quantities::from_iter([(Name::Cpus, Amount::from_thousandths(10))]),
                Quantities::from_iter([(Name::Mem, Amount::from_units(32))]),
            ],
            filter_gpu_resources: true,
            fair_sharing_excluded_resource_names: Vec::new(),
            offer_constraints_limits: allocator::RegexLimits::default(),
            allocator_agent_recovery_factor: 0.8,
            allocator_recovery_timeout: Duration::from_secs(600),
            role_sorter: SorterKind::Drf,
            framework_sorter: SorterKind::Drf,
            weights: Vec::new(),
        }
    }
}

impl Config {
    /// How long an agent waits for a ping before it looks for the master again.
    pub fn total_ping_timeout(&self) -> Duration {
        self.agent_ping_timeout * self.max_agent_ping_timeouts
    }
}
