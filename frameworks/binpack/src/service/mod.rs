//! Runs the scheduler on a cluster with `sdk::driver`, with an HTTP API, and with its state on disk if configured.
//!
//! The [`Core`] makes the decisions.

mod api;
mod capacity;
mod measure;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jobs::follow::Followers;
use jobs::request_handler::RequestServer;
use jobs::service::Leave;
use sdk::driver::{self, api as serving};
use sdk::{AskError, Requester};

use crate::Knobs;
use crate::core::{Answer, Core, JobEvent, JobView, Reply, Request, RequestError, Status, Submitted};
use crate::job::{Job, Kind, TOKEN};

pub use jobs::follow::Lagged;

/// An event, shared by all followers.
pub type Event = Arc<JobEvent>;
/// Receiver of events.
pub type Follower = jobs::follow::Follower<JobEvent>;

/// Default interval between measurements of tasks.
pub const MEASURE_EVERY: Duration = Duration::from_secs(5);

/// Options of a run of the framework.
#[derive(Debug)]
pub struct Options {
    /// Masters, name, state and other options of the driver.
    pub driver: driver::Options,
    /// Address of the HTTP API; port 0 selects a free one.
    pub listen: SocketAddr,
    /// Settings of the behaviour towards the cluster.
    pub knobs: Knobs,
    /// Interval of measurements of tasks, with [`Knobs::active_sizing`].
    pub measure_every: Duration,
}

/// An error of starting the framework or of a request to it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the HTTP API cannot be used.
    #[error("cannot serve the API at {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The scheduler does not answer.
    #[error("no answer")]
    Ask(#[from] AskError),
    /// The scheduler refuses the request.
    #[error("refused")]
    Refused(#[from] RequestError),
    /// The scheduler sent the reply of another request.
    #[error("the scheduler returned an unexpected answer")]
    UnexpectedReply,
}

/// A running framework.
pub type Service = jobs::service::Service<Handle>;

/// A handle that sends requests to a running framework. It can be cloned.
#[derive(Clone, Debug)]
pub struct Handle {
    requester: Requester<Request, Answer>,
    followers: Followers<JobEvent>,
    metrics: sdk::Metrics,
    capacity: Arc<capacity::Source>,
}

/// Starts the framework in the current tokio runtime. Its API answers at once, also while there is no master.
///
/// # Errors
/// The address of the API cannot be used.
pub async fn start(options: Options) -> Result<Service, Error> {
    let Options { mut driver, listen, knobs, measure_every } = options;
    let is_measured = knobs.active_sizing.is_some();
    let followers = Followers::default();
    let event_sender = followers.clone();
    let send_events = move |core: &mut Core| core.take_events().into_iter().for_each(|event| event_sender.send(event));
    let (served, requester) = RequestServer::new(Core::new(knobs), send_events);
    driver.wake_signal = Some(requester.wake_signal());
    let capacity = Arc::new(capacity::Source::new(&driver));
    let cluster = driver.cluster();
    let metrics = driver.settings.metrics.clone();
    let handle = Handle { requester, followers, metrics, capacity: capacity.clone() };
    let serving = serving::serve(listen, Arc::new(api::JobsApi::new(handle.clone())))
        .map_err(|error| Error::Listen(listen, error))?;
    let capacity_handle = handle.clone();
    tokio::spawn(async move { capacity.follow(capacity_handle).await });
    if is_measured {
        tokio::spawn(measure::follow(cluster, measure_every, handle.clone()));
    }
    Ok(Service::start(served, driver, serving, handle))
}

/// Sets a secret for the ranks of a gang, unless the job sets one.
fn with_token(mut job: Job) -> Job {
    let mut secret = [0; 16];
    if job.kind == Kind::Gang && !job.env.contains_key(TOKEN) && getrandom::fill(&mut secret).is_ok() {
        job.env.insert(TOKEN.to_owned(), format!("{:032x}", u128::from_be_bytes(secret)));
    }
    job
}

/// Removes the secret of a gang, which is for its ranks only.
fn hide_token(job: &mut Arc<Job>) {
    if job.kind == Kind::Gang && job.env.contains_key(TOKEN) {
        Arc::make_mut(job).env.remove(TOKEN);
    }
}

impl Handle {
    /// Sends a request to the scheduler.
    ///
    /// # Errors
    /// The scheduler refuses the request, its queue is full, or it has ended.
    pub async fn ask(&self, request: Request) -> Result<Reply, Error> {
        if let Request::Submit(jobs) | Request::Resume(jobs) = &request {
            self.capacity.before(jobs, self).await;
        }
        let request = match request {
            Request::Submit(jobs) => Request::Submit(jobs.into_iter().map(with_token).collect()),
            Request::Resume(jobs) => Request::Resume(jobs.into_iter().map(with_token).collect()),
            other => other,
        };
        let mut reply = self.requester.ask(request).await??;
        if let Reply::Job(view) = &mut reply {
            view.versions.iter_mut().for_each(|version| hide_token(&mut version.job));
        }
        Ok(reply)
    }

    /// Sends a request without changing it or its reply.
    async fn ask_unchanged(&self, request: Request) -> Result<Reply, Error> {
        Ok(self.requester.ask(request).await??)
    }

    /// Returns one job with its tasks.
    ///
    /// # Errors
    /// The name is unknown, or the scheduler has ended.
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
        // The request fails if the scheduler has ended already.
        let _ = self.ask(Request::Leave { teardown }).await;
    }
}
