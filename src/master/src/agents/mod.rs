//! Registration, disconnection, reregistration and removal of agents.

mod absent;
mod add;
mod adopt;
mod disconnect;
mod gone;
mod ping;
pub(crate) mod providers;
mod reconcile;
mod recover;
mod removals;
mod remove;
mod table;
mod total;
mod unreachable;

pub(crate) use absent::{AbsentAgents, AdminState};
pub(crate) use add::AgentRegistration;
pub(crate) use adopt::AgentLists;
pub(crate) use removals::Removals;
pub(crate) use remove::Removal;
pub(crate) use table::Agents;
pub(crate) use total::total_of;
