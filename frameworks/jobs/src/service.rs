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
    /// Ends the framework, with all its tasks if `teardown`. Does nothing if it has ended.
    fn leave(&self, teardown: bool) -> impl Future<Output = ()> + Send;
}

/// The handle of a framework of jobs: sends requests to its scheduler, and follows its events.
pub trait Handle: Leave {
    /// Type of the jobs.
    type Job;
    /// Result of the submission of a job.
    type Submitted;
    /// Summary of the scheduler and its jobs.
    type Status;
    /// Type of the events.
    type Event: Clone;
    /// Reason why a request failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Returns a follower of all events from now on.
    fn follow(&self) -> Follower<Self::Event>;

    /// Returns a summary of the scheduler and its jobs.
    ///
    /// # Errors
    /// Returns an error if the scheduler has ended.
    fn status(&self) -> impl Future<Output = Result<Self::Status, Self::Error>> + Send;

    /// Submits jobs, all or none.
    ///
    /// # Errors
    /// Returns an error if the scheduler refuses them, or has ended.
    fn submit(&self, jobs: Vec<Self::Job>) -> impl Future<Output = Result<Vec<Self::Submitted>, Self::Error>> + Send;

    /// Submits jobs, all or none. Jobs that exist with exactly the same definition stay as they are, even if they have
    /// ended.
    ///
    /// # Errors
    /// Returns an error if the scheduler refuses them, or has ended.
    fn resume(&self, jobs: Vec<Self::Job>) -> impl Future<Output = Result<Vec<Self::Submitted>, Self::Error>> + Send;

    /// Returns whether the error means that the scheduler has ended.
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
    /// Starts a scheduler whose API is already served. The URL of the API becomes the framework's `webui_url`, where
    /// operator commands find it, unless another one is given.
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

    /// Returns the listening address of the API.
    pub fn address(&self) -> SocketAddr {
        self.serving.address()
    }

    /// Returns the URL of the API for other hosts, with the scheme that it serves.
    pub fn url(&self) -> String {
        self.serving.url()
    }

    /// Returns the handle for requests.
    pub fn handle(&self) -> &H {
        &self.handle
    }

    /// Waits until the framework ends on its own, because the master rejected it or its state cannot be written.
    pub async fn wait(&mut self) -> Ending {
        match (&mut self.driving).await {
            Ok(ending) => ending,
            Err(error) => Ending::Error(format!("the scheduler has failed: {error}")),
        }
    }

    /// Ends the framework. With `teardown` all its tasks end, too; otherwise the next start with the same state
    /// continues with them.
    pub async fn stop(mut self, teardown: bool) -> Ending {
        self.handle.leave(teardown).await;
        let ending = self.wait().await;
        self.serving.stop().await;
        ending
    }
}
