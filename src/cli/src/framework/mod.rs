//! `tepui framework`: runs the bundled frameworks, and shows their state. Each command is in a module.

mod binpack;
pub(crate) mod common;
mod dag;
mod job_framework;
#[cfg(feature = "quality")]
mod live;
mod mpi;
#[cfg(feature = "quality")]
mod quality;
mod screen;
mod state;
#[cfg(feature = "video")]
mod video;
#[cfg(feature = "quality")]
mod view;

use std::process::ExitCode;

#[cfg(feature = "lab")]
pub(crate) use dag::read_model;

use anyhow::Result;
use clap::Subcommand;

#[cfg(not(feature = "video"))]
use crate::absent;

/// One command for each framework that comes with tepui.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run jobs: batch tasks, arrays, services and gangs, packed onto the cluster by a policy (see: tepui job)
    Binpack(Box<binpack::Args>),
    /// Run jobs of stages: map and reduce over files, sweeps, pipelines (see: tepui dag)
    Dag(Box<dag::Args>),
    /// Run a task of a job of stages on an agent; started by the framework
    #[command(hide = true)]
    DagTask,
    /// Train models that share cores by predicted quality (SLAQ)
    #[cfg(feature = "quality")]
    Quality(Box<quality::Args>),
    #[cfg(not(feature = "quality"))]
    #[command(hide = true, disable_help_flag = true)]
    Quality(absent::Args),
    /// Run one rank of a gang as a part of an MPI program: the command of each of its tasks
    Mpi(mpi::Args),
    /// Start a daemon of mpirun on another rank; called by mpirun as its remote shell
    #[command(hide = true)]
    MpiShell(mpi::ShellArgs),
    /// Answer queries on videos that share cores by quality and lag (VideoStorm)
    #[cfg(feature = "video")]
    Video(Box<video::Args>),
    #[cfg(not(feature = "video"))]
    #[command(hide = true, disable_help_flag = true)]
    Video(absent::Args),
    /// Show the saved state of a stopped framework
    State(state::Args),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns what failed, and what to do about it.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Command::Binpack(args) => binpack::run(&args),
            Command::Dag(args) => dag::run(&args),
            Command::DagTask => dag::task(),
            #[cfg(feature = "quality")]
            Command::Quality(args) => quality::run(*args),
            #[cfg(not(feature = "quality"))]
            Command::Quality(_) => absent::run("framework quality", "quality"),
            Command::Mpi(args) => mpi::run(&args),
            Command::MpiShell(args) => mpi::shell(&args),
            Command::State(args) => state::run(&args),
            #[cfg(feature = "video")]
            Command::Video(args) => video::run(*args),
            #[cfg(not(feature = "video"))]
            Command::Video(_) => absent::run("framework video", "video"),
        }
    }
}
