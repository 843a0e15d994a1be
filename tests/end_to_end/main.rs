//! Tests the program with real processes: clusters, the bundled frameworks, other projects' clients, containers.
//!
//! It is one test program, so that it is linked once: `cargo test --test end_to_end video` runs a part. `TEPUI` names
//! another binary to test, such as a release build. The behaviour of a core alone is tested beside it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "libtest shows what a failed test has printed")]
#![forbid(unsafe_code)]

mod access;
mod advise;
mod agent_faults;
mod audit;
mod authentication;
mod backends;
mod binpack;
mod binpack_docker;
mod browser;
mod cameras;
mod cleanup;
mod compose;
mod connection;
mod connections;
mod containers;
mod dag;
mod dag_isolated;
mod detection;
mod disk_long_run;
mod disks;
mod docker;
mod docker_checks;
mod documents;
mod etcd;
mod etcd_members;
mod etcd_server;
mod examples;
mod executor_tokens;
mod floods;
mod forged;
mod group;
mod inodes;
mod lab_bundled;
mod lab_live;
mod lab_reports;
mod leaders;
mod marathon;
mod master_list;
mod masters;
mod messages;
mod moves;
mod mpi;
mod networks;
mod one_agent;
mod operate;
mod origins;
mod package;
mod peers;
mod perf;
mod ports;
mod process;
mod prometheus;
mod pymesos;
mod python;
mod quality;
mod quality_own;
mod registry;
mod registry_import;
mod runtime_files;
mod secrecy;
mod sizes;
mod slices;
mod small_disk;
mod support;
mod task_settings;
mod tls;
mod tls_workers;
mod uuids;
mod video;
mod web;
mod web_others;
#[path = "../../src/detector/tests/zookeeper/mod.rs"]
mod zookeeper;
