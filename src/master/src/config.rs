//! Settings of the core: the master's flags that change its decisions.
//!
//! It does not parse flags; the daemon does, and checks their ranges.

use std::collections::BTreeSet;
use std::time::Duration;

use allocator::SorterKind;
use allocator::policies::Policies;
use authorizer::Authorizer;

use resources::{Amount, Name, Quantities};

use crate::throttle::RateLimits;

/// Settings of a master core. The defaults are Mesos's (docs/mesos/flags.md).
#[derive(Clone, Debug)]
pub struct Config {
    /// Time that an agent has to answer a ping, and the interval of pings: `--agent_ping_timeout`.
    pub agent_ping_timeout: Duration,
    /// Number of pings in a row that may go unanswered before an agent is unreachable: `--max_agent_ping_timeouts`.
    pub max_agent_ping_timeouts: u32,
    /// Time that a disconnected or recovered agent has to reregister: `--agent_reregister_timeout`.
    pub agent_reregister_timeout: Duration,
    /// Rate limit of removals: at most this many agents become unreachable in that time; `None` for no limit.
    /// `--agent_removal_rate_limit`.
    pub agent_removal_rate_limit: Option<(u32, Duration)>,
    /// Rate limits of drivers' messages: `--rate_limits`.
    pub rate_limits: Option<RateLimits>,
    /// Largest share (0 to 1) of recovered agents that may be lost: `--recovery_agent_removal_limit`.
    pub recovery_agent_removal_limit: f64,
    /// Policies about how long offers and refusals last and how finely agents are offered: `--policies`,
    /// `--offer_timeout`, `--offer_granularity`.
    pub policies: Policies,
    /// Number of completed frameworks that are kept: `--max_completed_frameworks`.
    pub max_completed_frameworks: usize,
    /// Number of completed tasks of a framework that are kept: `--max_completed_tasks_per_framework`.
    pub max_completed_tasks_per_framework: usize,
    /// Number of unreachable tasks of a framework that are kept: `--max_unreachable_tasks_per_framework`.
    pub max_unreachable_tasks_per_framework: usize,
    /// Limit of subscribers of the operator API's event stream: `--max_operator_event_stream_subscribers`.
    pub max_operator_event_stream_subscribers: usize,
    /// The only roles that may be used; `None` allows all. `--roles`.
    pub roles: Option<BTreeSet<String>>,
    /// Whether frameworks of user root are allowed: `--root_submissions`.
    pub root_submissions: bool,
    /// Whether agents without a fault domain are ignored: `--require_agent_domain`.
    pub require_agent_domain: bool,
    /// Whether agents that have not authenticated are ignored: `--authenticate_agents`.
    pub authenticate_agents: bool,
    /// Whether drivers that have not authenticated are refused: `--authenticate_frameworks`.
    pub authenticate_frameworks: bool,
    /// Access control lists: `--acls`.
    pub authorizer: Authorizer,
    /// Interval at which old unreachable and gone agents are removed from the registry: `--registry_gc_interval`.
    pub registry_gc_interval: Duration,
    /// Age from which unreachable and gone agents are removed from the registry: `--registry_max_agent_age`.
    pub registry_max_agent_age: Duration,
    /// Number of unreachable agents, and of gone agents, that the registry keeps: `--registry_max_agent_count`.
    pub registry_max_agent_count: usize,
    /// Interval of allocation runs over all agents, whether their state has changed or not: `--allocation_interval`.
    pub allocation_interval: Duration,
    /// Minima of which an offer contains at least one; if empty, an offer only must not be empty.
    /// `--min_allocatable_resources`.
    pub min_allocatable_resources: Vec<Quantities>,
    /// Whether agents with GPUs are offered only to frameworks with the capability GPU_RESOURCES:
    /// `--filter_gpu_resources`.
    pub filter_gpu_resources: bool,
    /// Names of resources that are left out of dominant shares: `--fair_sharing_excluded_resource_names`.
    pub fair_sharing_excluded_resource_names: Vec<String>,
    /// Limits of regular expressions in offer constraints: `--offer_constraints_re2_max_mem` and
    /// `--offer_constraints_re2_max_program_size`.
    pub offer_constraints_limits: allocator::RegexLimits,
    /// Share (0 to 1) of agents that must have reregistered before offers start, after a failover of a master with
    /// quotas: `--allocator_agent_recovery_factor`.
    pub allocator_agent_recovery_factor: f64,
    /// Longest time that offers wait for these agents: `--allocator_recovery_timeout`.
    pub allocator_recovery_timeout: Duration,
    /// Order of roles in an allocation run: `--role_sorter`.
    pub role_sorter: SorterKind,
    /// Order of the frameworks of a role in an allocation run: `--framework_sorter`.
    pub framework_sorter: SorterKind,
    /// Weights of roles, used if the registry has none. Each is positive. `--weights`.
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
    /// Returns the time that an agent waits for a ping before it detects the master again.
    pub fn total_ping_timeout(&self) -> Duration {
        self.agent_ping_timeout * self.max_agent_ping_timeouts
    }
}
