//! Who is offered what: role tree, dominant resource fairness, refusals, the allocation run.
//!
//! [`Allocator`] is told by the master of frameworks, agents and what becomes of offers, and says in [`Allocator::allocate`]
//! what is to be offered to whom. The rules are Mesos 1.11's hierarchical allocator's:
//!
//! * Roles form a tree; at each level the child with the least dominant share (by its weight) comes first, among equals
//!   the one with fewer allocations so far, then by name. In a role, frameworks are ordered the same way.
//! * Offered resources count as held. Shares are parts of the whole cluster, and shared resources count once per agent.
//! * The whole rest of an agent goes to the first who may have it: reservations go to their role and those below it; shared,
//!   revocable and refined resources, GPU agents and other regions go only to frameworks that can handle them; an
//!   offer below the minimum is not made; nor one that the framework has refused in full for the time being.
//!
//! Where it differs: Mesos offers freed resources at the next interval; here, the run after each batch of inputs
//! offers them at once. Only who declined waits for the interval (its refusal lasts at least that long), so nobody can make the
//! master spin.
//!
//! This crate knows nothing of offers' ids, tasks, messages, or clocks. It is deterministic: the order in which agents are
//! visited comes from [`Config::seed`]. Amounts are exact (thousandths); resources are kept without allocation info, and are
//! taken in with or without it.
#![forbid(unsafe_code)]

mod account;
mod agents;
mod allocator;
mod bits;
mod booking;
mod clients;
mod cluster;
mod config;
mod constraints;
mod cycle;
mod explain;
pub mod fairness;
mod frameworks;
mod guarantees;
mod headroom;
mod holding;
mod maintenance;
pub mod policies;
mod portion;
mod quota;
mod refusals;
mod rescinds;
mod returns;
mod rng;
mod roles;
mod sorters;
mod tree;
mod views;
mod visits;
mod weight;

pub use allocator::Allocator;
pub use cluster::UpdateAvailableError;
pub use config::{
    AgentCapabilities, AgentOptions, Config, Filter, FrameworkCapabilities, FrameworkOptions, Held, Holder, Offering,
};
pub use constraints::{
    Attribute, Constraint, ConstraintsError, OfferConstraints, PatternError, Predicate, RegexLimits, Selector,
};
pub use explain::{Explanation, HeldBy, Level, Obstacle, QuotaStanding, Standing, Verdict};
pub use maintenance::{InverseAnswer, InverseAnswerView, InverseOffering, Unavailability};
pub use quota::{HeadroomView, Quota};
pub use returns::TransformError;
pub use sorters::SorterKind;
pub use views::{AgentView, ClientView, RefusalView, RoleView};
pub use weight::{Weight, WeightError};
