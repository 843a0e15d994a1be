//! Checks of all parsers of external input: properties that must hold for any bytes.
//!
//! Each target is a function of bytes that panics if the code under test breaks a promise: invalid input returns an
//! error, accepted input is the same after writing and reading, nothing exceeds its limit. The programs in `fuzz/` run
//! a target with the bytes of a fuzzer, the test `replay` with the files of its corpus. It has no other users.
#![forbid(unsafe_code)]

mod certificates;
mod checkpoints;
mod cni;
mod cram_md5;
mod docker;
mod etcd;
mod files;
mod frames;
mod http_request;
mod http_response;
mod image;
mod jobs;
mod jwt;
mod layer;
mod libprocess;
mod media;
mod messages;
mod models;
mod peers;
mod pieces;
mod registry;
mod resource_text;
mod scenario;
mod seccomp;
mod trace;
mod workers;
mod zookeeper;

pub use certificates::certificates;
pub use checkpoints::checkpoints;
pub use cni::cni;
pub use cram_md5::cram_md5;
pub use docker::docker;
pub use etcd::etcd;
pub use frames::frames;
pub use http_request::http_request;
pub use http_response::http_response;
pub use image::image;
pub use jobs::jobs;
pub use jwt::jwt;
pub use layer::layer;
pub use libprocess::libprocess;
pub use media::media;
pub use messages::{binary, json, recordio};
pub use models::models;
pub use peers::peers;
pub use registry::registry;
pub use resource_text::resource_text;
pub use scenario::scenario;
pub use seccomp::seccomp;
pub use trace::trace;
pub use workers::workers;
pub use zookeeper::zookeeper;

/// Name and function of a target.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, by name. The program of a target is `fuzz/fuzz_targets/NAME.rs`, its corpus `fuzz/corpus/NAME`.
pub const TARGETS: [Target; 27] = [
    ("binary", binary),
    ("certificates", certificates),
    ("checkpoints", checkpoints),
    ("cni", cni),
    ("cram_md5", cram_md5),
    ("docker", docker),
    ("etcd", etcd),
    ("frames", frames),
    ("http_request", http_request),
    ("http_response", http_response),
    ("image", image),
    ("jobs", jobs),
    ("json", json),
    ("jwt", jwt),
    ("layer", layer),
    ("libprocess", libprocess),
    ("media", media),
    ("models", models),
    ("peers", peers),
    ("recordio", recordio),
    ("registry", registry),
    ("resource_text", resource_text),
    ("scenario", scenario),
    ("seccomp", seccomp),
    ("trace", trace),
    ("workers", workers),
    ("zookeeper", zookeeper),
];
