//! `tepui framework state`: shows a framework's state directory. It changes nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use sdk::state::{File, State};

/// Flags of `tepui framework state`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The framework's --state-dir
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Prints the framework's id, its tasks, and its own entries.
///
/// # Errors
/// The directory has no state, or a running framework uses it.
pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let directory = args.directory.display();
    let file = File::open_existing(&args.directory).context("is the framework running? Stop it first")?;
    let Some(mut file) = file else {
        bail!("{directory} holds no framework's state: name a directory given as --state-dir")
    };
    let report = sdk::StoreContents::read(file.load()?).with_context(|| format!("the state in {directory}"))?;
    crate::read::print(report.to_string().trim_end())?;
    Ok(ExitCode::SUCCESS)
}
