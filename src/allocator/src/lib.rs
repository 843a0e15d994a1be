//! The allocator: role tree, dominant resource fairness, refusals, the allocation run.
//!
//! The master reports frameworks, agents and the results of offers to [`Allocator`], and [`Allocator::allocate`]
//! returns the next offers. The rules are those of Mesos 1.11's hierarchical allocator:
//!
//! * Roles form a tree; at each level the child with the least dominant share (by its weight) comes first, among equals
//!   the one with fewer allocations so far, then by name. In a role, frameworks are ordered the same way.
//! * Offered resources count as allocated. Shares are parts of the whole cluster, and shared resources count once per
//!   agent.
//! * The whole rest of an agent goes to the first client that may have it: reservations go to their role and those
//!   below it; shared, revocable and refined resources, GPU agents and other regions go only to frameworks that can
//!   handle them; an offer below the minimum is not made, nor one that the framework has currently refused in full.
//!
//! Unlike Mesos, which offers freed resources at the next interval, the run after each batch of inputs offers them at
//! once. Only a client that declined waits for the interval (its refusal lasts at least that long), so that no
//! framework can keep the master busy.
//!
//! This crate does not know ids of offers, tasks, messages, or clocks. It is deterministic: [`Config::seed`] determines
//! the order in which agents are visited. Amounts are exact (thousandths); resources are stored without allocation
//! info, and are accepted with or without it.
#![forbid(unsafe_code)]

mod account;
mod agents;
mod allocations;
mod allocator;
mod bits;
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
mod maintenance;
mod offer_limits;
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
pub use explain::{AgentExplanation, Explanation, HeldBy, Inactivity, Level, Obstacle, OfferState, QuotaUsage};
pub use maintenance::{InverseAnswer, InverseAnswerView, InverseOffering, Unavailability};
pub use quota::{HeadroomView, Quota};
pub use returns::TransformError;
pub use sorters::SorterKind;
pub use views::{AgentView, ClientView, RefusalView, RoleView};
pub use weight::{Weight, WeightError};
