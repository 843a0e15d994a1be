//! `tepui registry`: shows, exports and imports registries on disk, those of tepui and those of Mesos masters. No
//! master needs to run; registries in ZooKeeper and in etcd are not read.

pub(crate) mod backup;
mod import;
mod show;
mod source;
mod summary;

use std::process::ExitCode;

use anyhow::Result;

/// What to do with registries.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make the registry of a master from the replicated logs of Mesos masters, which are not changed
    Import(import::Args),
    /// Show a registry: of a tepui master, or of Mesos masters
    Show(show::ShowArgs),
    /// Print a registry as JSON, as a master's /registrar(1)/registry does
    Export(source::Args),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// A registry cannot be read, or cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self {
            Command::Import(args) => import::run(&args),
            Command::Show(args) => show::run(&args),
            Command::Export(args) => show::export(&args),
        }
    }
}
