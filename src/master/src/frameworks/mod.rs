//! How frameworks come, go away, come back and end.

mod add;
mod disconnect;
mod remove;
mod subscribe;
mod update;

pub(crate) use subscribe::Subscription;
