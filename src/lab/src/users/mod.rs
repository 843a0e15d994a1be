//! Modelled users: jobs that are submitted to frameworks, and frameworks with a configured behaviour.
//!
//! A user is an `sdk::Scheduler`: it runs under virtual time and against a live master.

mod behaviour;
mod held;
mod manager;
mod modelled;
mod script;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use base::numbered;
pub use behaviour::{Behaviour, Place, Preset};
pub use held::Needs;
pub use manager::{Manager, Release};
pub use modelled::ModelledScheduler;
pub use script::{Script, ScriptAction, Step};

/// Tasks of one kind that are submitted together.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Number of the job's first task among those of its framework; the others follow.
    pub first: u64,
    /// Resources that each task needs.
    pub needs: Needs,
    /// Duration of each task; as many as there are tasks.
    pub spans: Vec<Duration>,
    /// Whether all tasks start together or none does.
    pub gang: bool,
    /// Number of retries of a task that fails or is lost.
    pub retries: u32,
    /// Index of the job's kind among those of its framework, from 0.
    pub kind: usize,
}

/// A queue of submitted jobs, which a user reads when it is woken.
pub type Inbox = Rc<RefCell<VecDeque<Job>>>;

/// Returns the id of an attempt to run the task with this number.
pub fn task_id(number: u64, attempt: u32) -> String {
    match attempt {
        0 => numbered("t", number, ""),
        _ => numbered(&numbered("t", number, "."), u64::from(attempt), ""),
    }
}

/// Returns the number of the task with this id, and the number of the attempt.
pub fn task_number(id: &str) -> Option<(u64, u32)> {
    let rest = id.strip_prefix('t')?;
    match rest.split_once('.') {
        Some((number, attempt)) => Some((number.parse().ok()?, attempt.parse().ok()?)),
        None => Some((rest.parse().ok()?, 0)),
    }
}

/// Returns whether a task that ended in this state is launched again, if retries are left.
pub fn is_tried_again(state: sdk::v1::TaskState) -> bool {
    use sdk::v1::TaskState::{TaskFinished, TaskKilled};
    !matches!(state, TaskFinished | TaskKilled)
}
