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

/// A number in as few characters as tell it apart.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// A mean with its 95 % confidence interval, if there is more than one repetition.
fn with_interval(spread: &::lab::report::Spread) -> String {
    match spread.half > 0.0 {
        true => format!("{} ± {}", number(spread.mean), number(spread.half)),
        false => number(spread.mean),
    }
}
