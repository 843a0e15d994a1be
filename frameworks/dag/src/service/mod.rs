//! The scheduler on a cluster: driven by `sdk::driver`, with an HTTP API, and with its state on disk if configured.
//!
//! The [`Core`] makes the decisions. This module reads input files and removes outputs for it.

mod api;
mod remove;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jobs::follow::Followers;
use jobs::request_handler::RequestServer;
use jobs::service::Leave;
use sdk::driver::{self, api as serving};
use sdk::{AskError, Requester};
use tokio::sync::{Semaphore, mpsc};

use crate::core::{
    Answer, Core, JobEvent, JobView, Removal, Reply, Request, RequestError, Settings, Status, Submitted, WorkItem,
};
use crate::job::{FilesInput, Input, Job};
use crate::split::scan;

pub use jobs::follow::Lagged;

/// An event, shared by all followers.
pub type Event = Arc<JobEvent>;
/// A receiver of events.
pub type Follower = jobs::follow::Follower<JobEvent>;

/// Number of inputs that are examined at the same time: each is read completely.
const SCANS_MAX: usize = 2;
/// Wait before a request to a busy scheduler is sent again.
const BUSY: Duration = Duration::from_millis(100);
/// Number of jobs whose outputs are removed at the same time.
const REMOVALS_MAX: usize = 2;

/// Options of the framework.
#[derive(Debug)]
pub struct Options {
    /// Masters, name, state and other options of the driver.
    pub driver: driver::Options,
    /// Address at which the HTTP API is served; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Settings of the scheduler. An empty address of the API is filled in.
    pub settings: Settings,
}

/// The reason why the framework could not be started, or does not fulfil a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API cannot be served at this address.
    #[error("cannot serve the API at {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The scheduler did not answer.
    #[error("no answer")]
    Ask(#[from] AskError),
    /// The scheduler refuses the request.
    #[error("refused")]
    Refused(#[from] RequestError),
    /// Input files of a stage that would run at once cannot be used.
    #[error("job '{job}', stage '{stage}'")]
    Input {
        /// Name of the job.
        job: String,
        /// Name of the stage.
        stage: String,
        /// Fault of the input files.
        #[source]
        source: scan::ScanError,
    },
    /// The scheduler has answered another request.
    #[error("the scheduler returned an unexpected answer")]
    UnexpectedReply,
}

/// A running framework.
pub type Service = jobs::service::Service<Handle>;

/// Sends requests to a running framework. It can be cloned.
#[derive(Clone, Debug)]
pub struct Handle {
    requester: Requester<Request, Answer>,
    followers: Followers<JobEvent>,
    metrics: sdk::Metrics,
}

/// Starts the framework in the current tokio runtime. Its API answers at once, even while there is no master.
///
/// # Errors
/// The address of the API cannot be used.
pub async fn start(options: Options) -> Result<Service, Error> {
    let Options { mut driver, listen, mut settings } = options;
    let followers = Followers::default();
    let metrics = driver.settings.metrics.clone();
    // Tasks contain the API's address, and the API needs the scheduler.
    let late_api = Arc::new(api::LateApi::default());
    let serving = serving::serve(listen, late_api.clone()).map_err(|error| Error::Listen(listen, error))?;
    if settings.api.is_empty() {
        settings.api = serving.url();
    }
    let (event_sender, (work_sender, work_items)) = (followers.clone(), mpsc::unbounded_channel());
    let after = move |core: &mut Core| {
        core.take_events().into_iter().for_each(|event| event_sender.send(event));
        // Work without a receiver belongs to a scheduler that is stopping.
        core.take_work_items().into_iter().for_each(|item| drop(work_sender.send(item)));
    };
    let (served, requester) = RequestServer::new(Core::new(settings), after);
    driver.wake_signal = Some(requester.wake_signal());
    let handle = Handle { requester, followers, metrics };
    late_api.set_handle(handle.clone());
    tokio::spawn(do_work_items(work_items, handle.clone()));
    Ok(Service::start(served, driver, serving, handle))
}

/// Reads input files and removes outputs at the request of the scheduler, until it stops.
async fn do_work_items(mut work_items: mpsc::UnboundedReceiver<WorkItem>, handle: Handle) {
    let scans = Arc::new(Semaphore::new(SCANS_MAX));
    let removals = Arc::new(Semaphore::new(REMOVALS_MAX));
    while let Some(item) = work_items.recv().await {
        let handle = handle.clone();
        match item {
            WorkItem::Scan { serial, stage, input } => scan(serial, stage, input, handle, scans.clone()),
            WorkItem::Remove { serial, removal } => remove(serial, removal, handle, removals.clone()),
        }
    }
}

/// Reads the input files of a stage in a tokio task of its own.
fn scan(serial: u64, stage: usize, input: FilesInput, handle: Handle, permits: Arc<Semaphore>) {
    tokio::spawn(async move {
        let Ok(_permit) = permits.acquire().await else { return };
        let scanned = tokio::task::spawn_blocking(move || scan::scan(&input)).await;
        let found = match scanned {
            Ok(Ok(pieces)) => Ok(pieces),
            Ok(Err(error)) => Err(base::error_chain(&error)),
            Err(error) => Err(format!("its files could not be scanned: {error}")),
        };
        // If the scheduler has stopped, it examines the input again at its next start.
        send_until_accepted(&handle, Request::Scanned { serial, stage, found }).await;
    });
}

/// Removes a job's outputs in a tokio task of its own.
fn remove(serial: u64, removal: Removal, handle: Handle, permits: Arc<Semaphore>) {
    tokio::spawn(async move {
        let Ok(_permit) = permits.acquire().await else { return };
        let failed = match tokio::task::spawn_blocking(move || remove::remove(&removal)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(base::error_chain(&error)),
            Err(error) => Some(error.to_string()),
        };
        // If the scheduler has stopped, it resumes the removal at its next start.
        send_until_accepted(&handle, Request::Removed { serial, failed }).await;
    });
}

/// Sends a request until the scheduler accepts it or has stopped.
async fn send_until_accepted(handle: &Handle, request: Request) {
    while let Err(Error::Ask(AskError::Busy)) = handle.ask(request.clone()).await {
        tokio::time::sleep(BUSY).await;
    }
}

/// Checks that the input files of stages that would run at once exist.
async fn check_inputs(jobs: &[Job]) -> Result<(), Error> {
    for job in jobs {
        for stage in job.stages.iter().filter(|stage| stage.after.is_empty()) {
            let Input::Files(input) = &stage.input else { continue };
            let patterns = input.files.clone();
            let expanded = tokio::task::spawn_blocking(move || scan::expand(&patterns)).await;
            if let Ok(Err(source)) = expanded {
                return Err(Error::Input { job: job.name.clone(), stage: stage.name.clone(), source });
            }
        }
    }
    Ok(())
}

impl Handle {
    /// Sends a request to the scheduler.
    ///
    /// # Errors
    /// The scheduler refuses, is too busy, or has stopped.
    pub async fn ask(&self, request: Request) -> Result<Reply, Error> {
        Ok(self.requester.ask(request).await??)
    }

    /// Returns one job with its stages.
    ///
    /// # Errors
    /// The name is unknown, or the scheduler has stopped.
    pub async fn show(&self, name: &str) -> Result<JobView, Error> {
        match self.ask(Request::Show { name: name.to_owned() }).await? {
            Reply::Job(view) => Ok(*view),
            _ => Err(Error::UnexpectedReply),
        }
    }

    /// Returns counters and gauges in Prometheus's text format.
    pub fn metrics(&self) -> String {
        self.metrics.text()
    }
}

impl jobs::service::Handle for Handle {
    type Job = Job;
    type Submitted = Submitted;
    type Status = Status;
    type Event = JobEvent;
    type Error = Error;

    fn follow(&self) -> Follower {
        self.followers.follow()
    }

    async fn status(&self) -> Result<Status, Error> {
        match self.ask(Request::Status).await? {
            Reply::Status(status) => Ok(*status),
            _ => Err(Error::UnexpectedReply),
        }
    }

    async fn submit(&self, jobs: Vec<Job>) -> Result<Vec<Submitted>, Error> {
        check_inputs(&jobs).await?;
        match self.ask(Request::Submit(jobs)).await? {
            Reply::Submitted(submitted) => Ok(submitted),
            _ => Err(Error::UnexpectedReply),
        }
    }

    async fn resume(&self, jobs: Vec<Job>) -> Result<Vec<Submitted>, Error> {
        match self.ask(Request::Resume(jobs)).await? {
            Reply::Submitted(submitted) => Ok(submitted),
            _ => Err(Error::UnexpectedReply),
        }
    }

    fn is_gone(error: &Error) -> bool {
        matches!(error, Error::Ask(AskError::Gone))
    }
}

impl Leave for Handle {
    async fn leave(&self, teardown: bool) {
        // The request fails if the scheduler has stopped already.
        let _ = self.ask(Request::Leave { teardown }).await;
    }
}
