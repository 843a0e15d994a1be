//! `tepui frameworks teardown`: ends a framework.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap_complete::ArgValueCompleter;
use serde_json::json;

use super::confirm::confirm;
use super::find;
use crate::complete;
use crate::connect::MasterArgs;
use crate::read::model::Frameworks;
use crate::say::say;

/// What to do with frameworks.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// End a framework and all its tasks for good
    Teardown {
        /// The framework: its id, or its name if no other has it
        #[arg(add = ArgValueCompleter::new(complete::frameworks))]
        framework: String,
        /// Do not ask for confirmation at a terminal
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        master: MasterArgs,
    },
}

impl Action {
    /// Runs the action.
    ///
    /// # Errors
    /// There is no such framework, or the master rejects the call.
    pub fn run(self) -> Result<ExitCode> {
        let Action::Teardown { framework, yes, master } = self;
        crate::block_on(async {
            let all: Frameworks = master.read("/frameworks").await?;
            let found = find::framework(&all.frameworks, &framework)?;
            let tasks = found.tasks.len();
            confirm(yes, &format!("end framework {} ({}) and its {tasks} tasks", found.id, found.name))?;
            let body = json!({ "framework_id": { "value": found.id } });
            master.send_call("TEARDOWN", &body).await.with_context(|| format!("framework {}", found.id))?;
            let end = if tasks == 1 { "task ends" } else { "tasks end" };
            say!("{} ({}) is torn down: {tasks} {end}", found.id, found.name);
            Ok(())
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
