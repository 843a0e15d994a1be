//! Starts, watches and ends processes on Linux.
//!
//! [`Launcher::spawn`] starts a process from a [`Spec`] and returns its [`Child`]: a pid and a pidfd that becomes
//! readable when the process has ended, for any event loop. [`Attached`] is the same for a process that an earlier run
//! of the agent started. [`fn@destroy`] ends a whole tree, [`ProcessTable::usage`] measures one.
//!
//! This crate does not depend on tasks, frameworks, protobuf or an async runtime, and has no state of its own. It is
//! the only crate with unsafe code: clone and execve in `spawn/`, the user database in `user.rs`, a thread's network in
//! `network.rs`, signal descriptors in `signals.rs`, the end of a process in `child.rs`, memory advice in `trim.rs`,
//! `large_pages.rs` and `template/hand_down.rs`, pidfd ioctls in `exit_info.rs`, BPF programs in
//! `cgroups/device_filter.rs`, the allocator in `memory.rs`.
//!
//! All functions may block for short times (a fork, a scan of `/proc`), [`fn@destroy`] for longer.

mod attach;
pub mod cgroups;
mod child;
mod children;
mod destroy;
mod directories;
mod exit_info;
mod host;
pub mod isolation;
mod large_pages;
mod lookup;
mod mappings;
#[cfg(feature = "memory")]
mod memory;
mod network;
mod procfs;
mod program_file;
mod rotate;
mod sandbox;
mod signals;
mod sockets;
mod spawn;
mod spec;
mod status;
mod table;
mod template;
mod terminal;
mod trim;
mod user;

pub use attach::{AttachError, Attached, Guard};
pub use child::{Child, WaitError, end_now, group_is_empty, has_children, signal_group, wait};
pub use children::{ChildSignals, adopt_orphans, reap};
pub use destroy::{DestroyError, destroy, destroy_marked, kill_children, signal_tree};
pub use directories::{
    DirectoryError, chown_directory, disk_usage, find_beneath, link_inside, make_file_inside, make_inside, open_found,
    remove, unlink_inside,
};
pub use exit_info::exit_status;
pub use host::{HostMemory, file_system_use, host_memory};
pub use large_pages::use_large_pages;
#[cfg(feature = "memory")]
pub use memory::Memory;
pub use network::{in_network, make_network, remove_network};
pub use procfs::{StartTime, start_time};
pub use program_file::ProgramFile;
pub use rotate::rotate;
pub use sandbox::{SandboxError, create_sandbox};
pub use signals::{EndSignal, EndSignals, hold_signals, ignore_file_size_signal};
pub use sockets::Listeners;
pub use spawn::{Launcher, SpawnError, Step, open_for_output};
pub use spec::{Directory, Output, Program, Rlimit, RlimitKind, Spec};
pub use status::{WaitStatus, signal_text};
pub use table::{Process, ProcessTable, Usage};
pub use template::{Copy, CopyError, Template, TemplateError, become_copy, line};
pub use terminal::{Terminal, pipe, read_some, resize_terminal, set_nonblocking, write_some};
pub use trim::trim_program;
pub use user::{User, UserError};
