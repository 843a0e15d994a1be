//! Video queries on a cluster: reads videos, detects and tracks what moves in them, and decides how many cores each
//! query uses.
//!
//! From the bottom up:
//!
//! - [`frame`] is a picture, [`media`] reads and writes video files and reads cameras, [`scene`] generates traffic with
//!   a known ground truth;
//! - [`scope`] is the region in which a query counts, [`vision`] detects and tracks, [`pipeline`] makes a query of it,
//!   in one of many configurations;
//! - [`truth`] measures detection against true boxes, [`profile`] tries configurations, [`schedule`] divides cores, all
//!   without a clock;
//! - [`core`] is the framework's scheduler without I/O, [`service`] runs it, [`worker`] is the process of a task, and
//!   [`modelled`] models such processes in laboratories;
//! - [`bitrate`] models video on demand over networks whose bandwidth varies, to compare policies; [`abr`] has the
//!   policies;
//! - [`local`] runs one query without a cluster, [`output`] draws its findings, [`spec`] parses query files of users,
//!   [`viewer`] watches the live view of a running query, [`uplink`] sends a camera's pictures to workers elsewhere.
#![forbid(unsafe_code)]

pub mod abr;
pub mod bitrate;
mod clock;
pub mod core;
pub mod frame;
mod glyphs;
pub mod local;
pub mod media;
pub mod modelled;
pub mod output;
mod picture_stream;
pub mod pipeline;
pub mod profile;
mod random;
pub mod scene;
pub mod schedule;
pub mod scope;
pub mod service;
pub mod spec;
pub mod truth;
pub mod uplink;
pub mod viewer;
pub mod vision;
pub mod worker;
