//! Replaces commands whose feature was left out of the build: they fail with the name of the feature.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

/// The arguments of a command that is not built in.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _all: Vec<OsString>,
}

/// Fails with the name of the feature.
///
/// # Errors
/// Always.
pub fn run(command: &str, feature: &str) -> Result<ExitCode> {
    bail!("this tepui is built without `tepui {command}`: build it with `cargo build --release --features {feature}`")
}
