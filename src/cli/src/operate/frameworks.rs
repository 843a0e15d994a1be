//! `tepui frameworks teardown`.

use std::process::ExitCode;

use anyhow::{Context, Result};
use serde_json::json;

use super::find;
use crate::connect::MasterArgs;
use crate::read::model::Frameworks;
use crate::say::say;

/// What to do with frameworks.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// End a framework and all its tasks for good
    Teardown {
        /// The framework: its id, or its name if no other has it
        framework: String,
        #[command(flatten)]
        master: MasterArgs,
    },
}

impl Action {
    /// Carries the action out.
    ///
    /// # Errors
    /// No such framework, or the master rejects the call.
    pub fn run(self) -> Result<ExitCode> {
        let Action::Teardown { framework, master } = self;
        crate::block_on(async {
            let all: Frameworks = master.read("/frameworks").await?;
            let found = find::framework(&all.frameworks, &framework)?;
            let body = json!({ "framework_id": { "value": found.id } });
            master.order("TEARDOWN", &body).await.with_context(|| format!("framework {}", found.id))?;
            let tasks = if found.tasks.len() == 1 { "task ends" } else { "tasks end" };
            say!("{} ({}) is torn down: {} {tasks}", found.id, found.name, found.tasks.len());
            Ok(())
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
