//! A framework that runs on a cluster: its driver, its HTTP API, and the handle for requests.
//!
//! Each framework defines its requests and its API.

use std::net::SocketAddr;

use sdk::driver::{self, api::Serving};
use sdk::{Ending, Scheduler};
use tokio::task::JoinHandle;

use crate::follow::Follower;

/// A handle that can end its framework.
pub trait Leave {
    /// Ends the framework: with `teardown` all its tasks, too. Does nothing if it has ended.
    fn leave(&self, teardown: bool) -> impl Future<Output = ()> + Send;
}

/// The handle of a framework of jobs: asks its scheduler, and follows what happens.
pub trait Handle: Leave {
    /// What it runs.
    type Job;
    /// What became of a job that was submitted.
    type Submitted;
    /// The scheduler and its jobs in short.
    type Status;
    /// What happens.
    type Event: Clone;
    /// Why a request is not fulfilled.
    type Error: std::error::Error + Send + Sync + 'static;

    /// What happens from now on.
    fn follow(&self) -> Follower<Self::Event>;

    /// The scheduler and its jobs in short.
    ///
    /// # Errors
    /// The scheduler has ended.
    fn status(&self) -> impl Future<Output = Result<Self::Status, Self::Error>> + Send;

    /// Runs jobs, all or none.
    ///
    /// # Errors
    /// The scheduler refuses them, or has ended.
    fn submit(&self, jobs: Vec<Self::Job>) -> impl Future<Output = Result<Vec<Self::Submitted>, Self::Error>> + Send;

    /// Runs jobs, all or none; those that are there already, exactly so, stay as they are, also if they have ended.
    ///
    /// # Errors
    /// The scheduler refuses them, or has ended.
    fn resume(&self, jobs: Vec<Self::Job>) -> impl Future<Output = Result<Vec<Self::Submitted>, Self::Error>> + Send;

    /// Whether the scheduler does not answer because it has ended.
    fn is_gone(error: &Self::Error) -> bool;
}

/// A running framework. Dropping it ends it at once; its tasks keep running for the failover timeout.
#[derive(Debug)]
pub struct Service<H> {
    handle: H,
    serving: Serving,
    driving: JoinHandle<Ending>,
}

impl<H: Leave> Service<H> {
    /// Runs a scheduler whose API is served already. The URL of the API becomes the framework's `webui_url`, where the
    /// commands of operators find it, unless another one is given.
    pub fn start(
        scheduler: impl Scheduler + Send + 'static,
        mut driver: driver::Options,
        serving: Serving,
        handle: H,
    ) -> Service<H> {
        driver.settings.framework.webui_url.get_or_insert_with(|| serving.url());
        let driving = tokio::spawn(async move { driver::run(scheduler, driver).await.ending });
        Service { handle, serving, driving }
    }

    /// Where the API is.
    pub fn address(&self) -> SocketAddr {
        self.serving.address()
    }

    /// Where others reach the API: its URL, with the scheme that it serves.
    pub fn url(&self) -> String {
        self.serving.url()
    }

    /// The handle for requests.
    pub fn handle(&self) -> &H {
        &self.handle
    }

    /// Returns when the framework ends on its own: the master rejected it, or its state cannot be written.
    pub async fn wait(&mut self) -> Ending {
        match (&mut self.driving).await {
            Ok(ending) => ending,
            Err(error) => Ending::Error(format!("the scheduler has failed: {error}")),
        }
    }

    /// Ends the framework: with `teardown` all its tasks, too; without, the next start with the same state has them.
    pub async fn stop(mut self, teardown: bool) -> Ending {
        self.handle.leave(teardown).await;
        let ending = self.wait().await;
        self.serving.stop().await;
        ending
    }
}
