//! The flags by which the bin-packing framework is found.

use std::process::ExitCode;

use anyhow::Result;

use crate::connect::MasterArgs;
pub(super) use crate::service::{Service, path};

/// Flags of every command that talks to the bin-packing framework.
#[derive(Clone, Debug, clap::Args)]
pub struct ServiceArgs {
    #[command(flatten)]
    pub(super) master: MasterArgs,
    /// The framework's API, as host:port; if not given, the master is asked
    #[arg(long, short, env = "TEPUI_BINPACK", value_name = "ADDRESS")]
    service: Option<String>,
    /// The framework's name, where there are several
    #[arg(long, short, default_value = "binpack", value_name = "NAME")]
    framework: String,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl ServiceArgs {
    /// Finds the framework's API.
    ///
    /// # Errors
    /// An invalid address, a master that does not answer, or a missing framework.
    pub(super) async fn find(&self) -> Result<Service> {
        let service = self.service.as_deref();
        Service::find(&self.master, service, &self.framework, "tepui framework binpack").await
    }

    /// Tells what was done, unless a program reads.
    pub(super) fn say(&self, text: &str) -> Result<ExitCode> {
        crate::service::say(self.json, text)
    }
}
