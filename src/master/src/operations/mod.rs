//! Operations on an agent's resources, requested by a framework or an operator: their rules, and their effects.
//!
//! `calls/operations.rs` and `operator/resources.rs` handle offers and answers.

mod apply;
mod check;
mod forms;
mod table;

pub(crate) use check::{check, well_formed};
pub(crate) use forms::{fill_allocations, provider_of, without_allocations};
pub(crate) use table::Operations;

use protos::mesos::OperationState;

use crate::state::Agent;

/// Returns an agent as answers name it: `S0 at slave(1)@10.0.0.1:5051 (host)`.
pub(crate) fn agent_text(agent: &Agent) -> String {
    format!("{} at {} ({})", agent.id, agent.pid, agent.info.hostname)
}

/// Returns whether an operation in that state has ended (TSK-60).
pub(crate) fn is_final(state: OperationState) -> bool {
    use OperationState as S;
    matches!(
        state,
        S::OperationFinished
            | S::OperationFailed
            | S::OperationError
            | S::OperationDropped
            | S::OperationGoneByOperator
    )
}
