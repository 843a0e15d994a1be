//! Modelled users: jobs that are submitted to frameworks, and frameworks that follow their behaviour.
//!
//! A user is an `sdk::Scheduler`: it runs under virtual time and against a live master.

mod behaviour;
mod held;
mod manager;
mod script;
mod user;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use base::numbered;
pub use behaviour::{Behaviour, Place, Preset};
pub use held::Needs;
pub use manager::{Manager, Release};
pub use script::{Deed, Script, Step};
pub use user::User;

/// Some tasks of one kind that are submitted together.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The number of its first task among those of its framework; the others follow.
    pub first: u64,
    /// What each task needs.
    pub needs: Needs,
    /// For how long each task works; as many as there are tasks.
    pub spans: Vec<Duration>,
    /// All tasks start together, or none.
    pub gang: bool,
    /// How often a task that fails or is lost is tried again.
    pub retries: u32,
    /// Of which of its framework's kinds it is, from 0.
    pub kind: usize,
}

/// Where jobs are put for a user to find when it is nudged.
pub type Inbox = Rc<RefCell<VecDeque<Job>>>;

/// The id of a try to run the task of this number.
pub fn task_id(number: u64, attempt: u32) -> String {
    match attempt {
        0 => numbered("t", number, ""),
        _ => numbered(&numbered("t", number, "."), u64::from(attempt), ""),
    }
}

/// The number of the task with this id, and which try it is.
pub fn task_number(id: &str) -> Option<(u64, u32)> {
    let rest = id.strip_prefix('t')?;
    match rest.split_once('.') {
        Some((number, attempt)) => Some((number.parse().ok()?, attempt.parse().ok()?)),
        None => Some((rest.parse().ok()?, 0)),
    }
}

/// Whether a task that has ended so is tried again, if tries are left.
pub fn is_tried_again(state: sdk::v1::TaskState) -> bool {
    use sdk::v1::TaskState::{TaskFinished, TaskKilled};
    !matches!(state, TaskFinished | TaskKilled)
}
