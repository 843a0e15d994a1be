//! Video queries on a cluster: reading videos, finding and following what moves in them, and deciding what each query
//! may cost.
//!
//! From the bottom up:
//!
//! - [`frame`] is a picture, [`media`] reads and writes video files and reads cameras, [`scene`] makes traffic whose
//!   truth is known;
//! - [`scope`] is where a query counts, [`vision`] sees, [`pipeline`] makes a query of it, in one of many
//!   configurations;
//! - [`truth`] measures it against true boxes, [`profile`] tries configurations, [`schedule`] shares cores, all without
//!   a clock;
//! - [`core`] is the framework's scheduler without I/O, [`service`] runs it, [`worker`] is the process beside a task,
//!   [`modelled`] what stands for such processes in laboratories;
//! - [`bitrate`] is video on demand over networks whose bandwidth varies, for comparisons of policies; [`abr`] has
//!   policies;
//! - [`local`] runs one query here, [`output`] draws what it found, [`spec`] reads what users ask for, [`viewer`]
//!   watches the live view of a running query.
#![forbid(unsafe_code)]

pub mod abr;
pub mod bitrate;
mod chance;
mod clock;
pub mod core;
pub mod frame;
mod glyphs;
pub mod local;
pub mod media;
pub mod modelled;
pub mod output;
pub mod pipeline;
pub mod profile;
pub mod scene;
pub mod schedule;
pub mod scope;
pub mod service;
pub mod spec;
pub mod truth;
pub mod viewer;
pub mod vision;
pub mod worker;
