//! Subscription, disconnection, reconnection and removal of frameworks.

mod add;
mod disconnect;
mod remove;
mod subscribe;
mod table;
mod update;

pub(crate) use subscribe::Subscription;
pub(crate) use table::{Frameworks, TaskChange};
