//! Runs of the laboratory on a real cluster: one that is started for the run, or an existing one.
//!
//! The crate `lab` decides what is run and measured (`lab::live`); this module has the processes, the sockets and the
//! clock.

mod cluster;
mod play;

use std::path::Path;

use ::lab::campaign::CampaignError;
use ::lab::live::{Pace, check};
use ::lab::measure::Outcome;
use ::lab::scenario::{Scenario, ScenarioError};
use anyhow::{Context, Result};

use super::bundled::CATALOG;
use crate::connect::MasterArgs;
pub(super) use play::{Played, RunState};

/// Where a live run takes place, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct ClusterArgs {
    /// Use the cluster of this master (host:port, a list h1:port,h2:port, or zk://...) instead of starting one
    #[arg(long, short, value_name = "MASTER")]
    pub master: Option<String>,
    /// Principal, if the master authenticates clients
    #[arg(long, requires_all = ["secret", "master"])]
    pub principal: Option<String>,
    /// The principal's secret
    #[arg(long, env = "TEPUI_SECRET", hide_env_values = true)]
    pub secret: Option<String>,
    /// Make every task use a processor all the time instead of sleeping
    #[arg(long)]
    pub burn: bool,
}

/// Range of practical speeds: at higher ones, starting a task takes longer than the task.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.01..=1000.0;

/// Parses the number of seconds of a scenario that pass in a real second.
pub(super) fn speed(text: &str) -> Result<f64, String> {
    let read = text.parse().ok().filter(|speed| SPEEDS.contains(speed));
    read.ok_or_else(|| format!("'{text}' is not a speed: a number from {} to {}", SPEEDS.start(), SPEEDS.end()))
}

impl ClusterArgs {
    /// Checks a scenario before anything runs, and prints warnings about parts that are left out.
    ///
    /// # Errors
    /// Returns the parts that a real cluster cannot run.
    pub(super) fn check(&self, text: &str, file: &Path, speed: f64) -> Result<(), ScenarioError> {
        for warning in check(text, file, self.pace(speed), self.master.is_none(), CATALOG)? {
            stdio::err!("tepui: {}: {warning}", file.display());
        }
        Ok(())
    }

    pub(super) fn pace(&self, speed: f64) -> Pace {
        Pace { speed, burn: self.burn }
    }

    /// Describes how runs are made, so that their results are not mistaken for others.
    pub(super) fn mode(&self, speed: f64) -> String {
        let cluster = self.master.as_deref().unwrap_or("a new cluster");
        format!("run live on {cluster}, speed {speed}{}", if self.burn { ", burning" } else { "" })
    }

    fn master(&self, address: String) -> MasterArgs {
        MasterArgs { master: address, principal: self.principal.clone(), secret: self.secret.clone() }
    }

    /// Runs a scenario once. `look` is called from time to time with the state, and ends the run by returning `false`.
    ///
    /// # Errors
    /// There is no cluster, or it fails.
    pub(super) fn play(
        &self,
        scenario: &Scenario,
        seed: u64,
        directory: &Path,
        speed: f64,
        look: &mut dyn FnMut(&RunState<'_>) -> bool,
    ) -> Result<Played> {
        // Every agent of a started cluster, and every framework, needs open files.
        if let Err(error) = wire::raise_open_files_limit() {
            tracing::warn!("the limit of open files cannot be raised: {error}");
        }
        let pace = self.pace(speed);
        match &self.master {
            Some(address) => crate::block_on(async {
                let cluster = cluster::join(self.master(address.clone())).await?;
                play::play(scenario, seed, directory, &cluster, pace, look).await
            }),
            None => {
                let own = cluster::start(scenario, pace).context("cannot start a cluster")?;
                let result = crate::block_on(async {
                    let cluster = cluster::ready(scenario, self.master(own.master())).await?;
                    play::play(scenario, seed, directory, &cluster, pace, look).await
                });
                own.stop(false)?;
                result
            }
        }
    }

    /// Runs a scenario once, as a run of a campaign.
    pub(super) fn run(
        &self,
        scenario: &Scenario,
        seed: u64,
        directory: &Path,
        speed: f64,
        progress: &mut dyn FnMut(f64) -> bool,
    ) -> Result<Outcome, CampaignError> {
        let all = scenario.duration.0.as_secs_f64();
        let played = self
            .play(scenario, seed, directory, speed, &mut |run_state| progress(run_state.now.as_secs_f64() / all))
            .map_err(|error| CampaignError::Run(error.into()))?;
        played.warn();
        Ok(played.outcome)
    }
}
