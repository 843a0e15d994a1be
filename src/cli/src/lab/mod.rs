//! `tepui lab`: runs in the laboratory, and what came out of them.

mod compare;
mod faults;
mod replay;
mod run;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Run a scenario under virtual time, with all its seeds and the points of its sweep, and write a report
    #[command(visible_alias = "sweep")]
    Run(run::Args),
    /// Put the results of two runs side by side
    Compare(compare::Args),
    /// Let much go wrong in random small clusters, and check that the rules hold all the same
    Faults(faults::Args),
    /// Play a recorded master once more (`tepui master --record`), under the same or other policies
    Replay(replay::Args),
}

impl LabCommand {
    pub fn run(self) -> Result<ExitCode> {
        match self {
            LabCommand::Run(args) => run::run(&args),
            LabCommand::Compare(args) => compare::run(&args),
            LabCommand::Faults(args) => faults::run(&args),
            LabCommand::Replay(args) => replay::run(&args),
        }
    }
}
