//! `tepui framework`: the bundled frameworks, and their state. Each command is in a module.

mod binpack;
pub(crate) mod common;
mod live;
mod mpi;
mod quality;
mod screen;
mod state;
mod video;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

/// One command for each framework that comes with tepui.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run jobs: batch tasks, arrays, services and gangs, packed onto the cluster by a policy (see: tepui job)
    Binpack(Box<binpack::Args>),
    /// Train models that share cores by the quality which these bring (SLAQ)
    Quality(Box<quality::Args>),
    /// Run one rank of a gang as a part of an MPI program: the command of each of its tasks
    Mpi(mpi::Args),
    /// What mpirun starts its daemons on other ranks by
    #[command(hide = true)]
    MpiShell(mpi::ShellArgs),
    /// Answer queries on videos that share cores by quality and lag (VideoStorm)
    Video(Box<video::Args>),
    /// Show what a stopped framework has kept for its next start
    State(state::Args),
}

impl Command {
    /// Carries the command out.
    ///
    /// # Errors
    /// What went wrong, and what to do about it.
    pub fn run(self) -> Result<ExitCode> {
        match self {
            Command::Binpack(args) => binpack::run(&args),
            Command::Quality(args) => quality::run(*args),
            Command::Mpi(args) => mpi::run(&args),
            Command::MpiShell(args) => mpi::shell(&args),
            Command::State(args) => state::run(&args),
            Command::Video(args) => video::run(*args),
        }
    }
}
