//! Attacks a master and an agent with real processes, from outside and as a user without permissions.
//!
//! - `routes` sends every endpoint and every call of both daemons, without credentials and as a user without
//!   permissions, with the ids of another tenant. It takes the endpoints from the daemons' `/help` and the calls from
//!   the API, so that a new one without an expectation fails.
//! - `resources` exhausts the resources of a daemon: connections, memory, time; each kind of attackers alone, and all
//!   at once during the work of a framework with tasks.
//!
//! `ATTACK_SECONDS=600` sets the duration of each attack on resources and `ATTACK_CLIENTS=2000` its size; the defaults
//! are a few seconds and 400. `TEPUI` names the program that is attacked: figures are those of a release program.
//! Forged libprocess messages, pages of other origins and executors' tokens are in `tests/end_to_end/`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "libtest shows what a failed test has printed")]

#[path = "../end_to_end/support.rs"]
#[allow(dead_code, reason = "it is shared with the end-to-end tests, which use all of it")]
mod support;

mod beside;
mod client;
mod crowd;
mod kinds;
mod resources;
mod routes;
mod tenant;
