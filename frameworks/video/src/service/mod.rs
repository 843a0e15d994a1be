//! The running framework: the scheduler on its driver, a port for workers, an HTTP API, results and profiles.
//!
//! It decides nothing about queries; see [`crate::core`].

mod alert;
mod api;
mod control;
mod identity;
mod page;
mod profiles;
mod results;
mod results_file;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sdk::driver::{Finished, api::Serving};
use sdk::{AskError, Ending, Requester};
use tokio::task::JoinHandle;

use crate::core::{Answer, Question, Status, Submission, VideoScheduler, WorkerCommand};
use crate::picture_stream::Views;
use crate::pipeline::{Finding, Knobs};
use crate::profile::ProfileError;
use crate::schedule::{Horizon, Objective, Policy};
use crate::spec::{QuerySpec, SpecError};
use alert::Alerts;
pub use alert::{Call as HookCall, Hook, HookError};
use identity::Identity;
use results::ResultsStore;

/// Longest wait for a picture from a worker.
const PICTURE: Duration = Duration::from_secs(5);

/// Options of the framework.
#[derive(Debug)]
pub struct Options {
    /// Options of the driver: the master, the framework, and the state that survives a restart.
    pub driver: sdk::driver::Options,
    /// Initial queries; those that are known from before a restart continue.
    pub queries: Vec<QuerySpec>,
    /// Listening address of the HTTP API.
    pub listen: SocketAddr,
    /// Listening address for workers, which must be reachable from other machines. Port 0 takes any free one.
    pub control: SocketAddr,
    /// Directory of `driver.state`, which also contains port and token of the control address.
    pub state_dir: Option<PathBuf>,
    /// Directory of results, with a file of JSON lines for each query; with `None` only the last findings are kept, in
    /// memory.
    pub results: Option<PathBuf>,
    /// Alert hook that is called for findings.
    pub hook: Option<Hook>,
    /// Directory of profiles.
    pub profiles: PathBuf,
    /// Values that the profiler chooses from.
    pub knobs: Knobs,
    /// Interval between samples of a query's quality; zero for no samples.
    pub sample_every: Duration,
    /// Length of the clip that is profiled, in seconds.
    pub profile_seconds: f64,
    /// Policy that divides cores among the queries.
    pub policy: Policy,
    /// Objective that the policy maximizes.
    pub objective: Objective,
    /// Time that decisions look ahead, in seconds.
    pub horizon: f64,
    /// Interval between decisions of the scheduler.
    pub epoch: Duration,
    /// Largest number of cores that tasks hold together; `None` for all that are offered.
    pub cores_max: Option<f64>,
    /// Program that agents run as a worker; `None` for this program.
    pub worker_program: Option<PathBuf>,
    /// Arguments of the program before the worker's own.
    pub worker_arguments: Vec<String>,
    /// URI from which agents fetch the program; `None` if they have it.
    pub worker_uri: Option<String>,
}

impl Options {
    /// Returns the default options, without queries.
    pub fn new(driver: sdk::driver::Options) -> Options {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        Options {
            driver,
            queries: Vec::new(),
            listen: local,
            control: local,
            state_dir: None,
            results: None,
            hook: None,
            profiles: std::env::temp_dir().join("tepui-profiles"),
            knobs: Knobs::default(),
            sample_every: Duration::from_secs(300),
            profile_seconds: 12.0,
            policy: Policy::Videostorm,
            objective: Objective::MaxSum,
            horizon: Horizon::default().seconds,
            epoch: Duration::from_secs(1),
            cores_max: None,
            worker_program: None,
            worker_arguments: ["framework", "video", "worker"].map(str::to_owned).to_vec(),
            worker_uri: None,
        }
    }
}

/// Reason why the framework does not run, or a query is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{what}")]
    Io {
        /// Description of the operation.
        what: String,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// The query is invalid.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The video of a query cannot be read, or its profile cannot be made.
    #[error("query {query:?} has no profile")]
    Profile {
        /// Name of the query.
        query: String,
        /// Error of the profiler.
        source: ProfileError,
    },
    /// No query has this name.
    #[error("there is no query {0:?}")]
    NoQuery(String),
    /// The scheduler refuses the request, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The scheduler does not answer the request.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The scheduler has ended, for this reason.
    #[error("{0}")]
    Ended(String),
}

pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.into();
    move |source| Error::Io { what, source }
}

/// The running framework.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Inner>,
    serving: Serving,
    control: control::Control,
    driver: JoinHandle<Finished<VideoScheduler>>,
    watcher: JoinHandle<()>,
}

/// State that the service and its API share.
#[derive(Debug)]
pub(crate) struct Inner {
    requester: Requester<Question, Answer>,
    results: Arc<ResultsStore>,
    views: Arc<Views>,
    profiles: PathBuf,
    knobs: Knobs,
    profile_seconds: f64,
}

impl Service {
    /// Starts the framework: profiles its queries, connects to the master, serves workers and the API.
    ///
    /// # Errors
    /// Returns an error if the process cannot listen at an address, a query is invalid, or its video cannot be
    /// profiled.
    pub async fn start(options: Options) -> Result<Service, Error> {
        let identity = Identity::of(options.state_dir.as_deref(), options.control)?;
        let (requester, requests) = sdk::requests();
        let results = Arc::new(ResultsStore::new(options.results.clone(), options.hook.clone().map(Alerts::start))?);
        let views = Arc::new(Views::default());
        let control = control::Control::serve(&identity, requester.clone(), results.clone(), views.clone())?;
        if let Some(directory) = &options.state_dir {
            identity.keep(directory, control.address())?;
        }
        let core = core_options(&options, &identity, control.driver())?;
        let shared = Arc::new(Inner {
            requester: requester.clone(),
            results,
            views,
            profiles: options.profiles,
            knobs: options.knobs,
            profile_seconds: options.profile_seconds,
        });
        let kept = options.state_dir.is_some();
        // Without persisted state, invalid queries are rejected before anything is started.
        let (prepared, later) = match kept {
            false => (shared.prepare(options.queries).await?, Vec::new()),
            true => (Vec::new(), options.queries),
        };
        let serving = sdk::driver::api::serve_prompt(options.listen, Arc::new(api::VideoApi(shared.clone())));
        let serving = serving.map_err(io(format!("cannot listen at {}", options.listen)))?;
        let mut driver = options.driver;
        driver.wake_signal = Some(requester.wake_signal());
        driver.settings.framework.webui_url.get_or_insert_with(|| serving.url());
        let driver = tokio::spawn(sdk::driver::run(VideoScheduler::new(core, requests), driver));
        let watcher = tokio::spawn(profiles::watch(shared.clone()));
        let mut service = Service { shared, serving, control, driver, watcher };
        let begun = if kept { service.shared.begin(later).await } else { service.shared.put(prepared).await };
        let Err(error) = begun else { return Ok(service) };
        let why = if is_gone(&error) { service.ending().await.why() } else { None };
        service.stop(false).await;
        Err(why.map_or(error, Error::Ended))
    }

    /// Returns the listening address of the API.
    pub fn address(&self) -> SocketAddr {
        self.serving.address()
    }

    /// Returns the URL of the API for other hosts, with the scheme that it serves.
    pub fn url(&self) -> String {
        self.serving.url()
    }

    /// Returns the status of the framework.
    ///
    /// # Errors
    /// Returns an error if the scheduler has ended.
    pub async fn status(&self) -> Result<Status, Error> {
        self.shared.status().await
    }

    /// Submits queries: makes their profiles, or finds stored ones that match. All queries are accepted or none.
    ///
    /// # Errors
    /// Returns an error if a query is invalid, its video cannot be profiled, or its name is in use.
    pub async fn submit(&self, queries: Vec<QuerySpec>) -> Result<(), Error> {
        self.shared.submit(queries).await
    }

    /// Returns the last findings of a query, the oldest first.
    pub fn findings(&self, query: &str) -> Vec<Finding> {
        self.shared.results.recent(query)
    }

    /// Waits for this time and returns the status, and the ending if the framework has ended.
    pub async fn next(&mut self, after: Duration) -> (Option<Status>, Option<Ending>) {
        tokio::select! {
            ending = self.ending() => return (None, Some(ending)),
            () = tokio::time::sleep(after) => {}
        }
        match self.shared.status().await {
            Err(error) if is_gone(&error) => (None, Some(self.ending().await)),
            status => (status.ok(), None),
        }
    }

    /// Waits for the end of the scheduler. Must be called once only.
    async fn ending(&mut self) -> Ending {
        (&mut self.driver).await.map_or_else(|error| Ending::Error(error.to_string()), |finished| finished.ending)
    }

    /// Waits until all queries or the framework have ended. Returns the last status and, if the framework has ended,
    /// the reason.
    pub async fn wait(&mut self) -> (Option<Status>, Option<Ending>) {
        let mut last = None;
        loop {
            let (status, ending) = self.next(Duration::from_millis(200)).await;
            last = status.or(last);
            if ending.is_some() || last.as_ref().is_some_and(Status::all_ended) {
                return (last, ending);
            }
        }
    }

    /// Ends the framework with all of its tasks if `teardown`, otherwise only this process; tasks keep running for the
    /// failover timeout.
    pub async fn stop(self, teardown: bool) {
        self.watcher.abort();
        let _ = self.shared.requester.ask(Question::Stop { teardown }).await;
        if !self.driver.is_finished() {
            let _ = tokio::time::timeout(Duration::from_secs(15), self.driver).await;
        }
        self.control.stop();
        self.serving.stop().await;
    }
}

/// Returns whether the scheduler does not answer because it has ended, or is about to.
fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Ask(AskError::Gone))
}

fn core_options(options: &Options, identity: &Identity, driver: &str) -> Result<crate::core::Options, Error> {
    let (program, uri) = match (&options.worker_program, &options.worker_uri) {
        (None, None) => (std::env::current_exe().map_err(io("cannot find this program's own file"))?, None),
        (Some(program), None) => (program.clone(), None),
        (program, Some(uri)) => {
            let named = program.as_ref().and_then(|p| p.file_name()).map(PathBuf::from);
            (named.unwrap_or_else(|| "tepui".into()), Some(uri.clone()))
        }
    };
    let worker = WorkerCommand {
        program: program.to_string_lossy().into_owned(),
        arguments: options.worker_arguments.clone(),
        uri,
        driver: driver.to_owned(),
        token: identity.token.clone(),
    };
    Ok(crate::core::Options {
        policy: options.policy,
        objective: options.objective,
        horizon: Horizon { seconds: options.horizon.max(0.5) },
        epoch: options.epoch.max(Duration::from_millis(100)),
        cores_max: options.cores_max,
        sample_every: options.sample_every,
        ..crate::core::Options::new(worker)
    })
}

impl Inner {
    pub(crate) async fn status(&self) -> Result<Status, Error> {
        match self.requester.ask(Question::Status).await? {
            Answer::Status(mut status) => {
                for query in &mut status.queries {
                    query.measured_quality = self.results.measured(&query.name, query.position);
                }
                Ok(*status)
            }
            _ => Err(Error::Ask(AskError::Gone)),
        }
    }

    /// Submits the queries that are not known from before a restart; the videos of the others are not opened.
    async fn begin(&self, mut queries: Vec<QuerySpec>) -> Result<(), Error> {
        let known: BTreeSet<String> = self.status().await?.queries.into_iter().map(|q| q.name).collect();
        queries.retain(|spec| !known.contains(&spec.name));
        self.submit(queries).await
    }

    async fn put(&self, submissions: Vec<Submission>) -> Result<(), Error> {
        for submission in &submissions {
            self.results.check(&submission.spec)?;
        }
        let specs: Vec<QuerySpec> = submissions.iter().map(|s| s.spec.clone()).collect();
        match self.requester.ask(Question::Submit(submissions)).await? {
            Answer::Refused(why) => Err(Error::Refused(why)),
            _ => specs.iter().try_for_each(|spec| self.results.open_new(spec)),
        }
    }

    pub(crate) async fn submit(&self, queries: Vec<QuerySpec>) -> Result<(), Error> {
        let prepared = self.prepare(queries).await?;
        self.put(prepared).await
    }

    pub(crate) async fn remove(&self, name: &str) -> Result<(), Error> {
        match self.requester.ask(Question::Remove(name.to_owned())).await? {
            Answer::NoQuery(name) => Err(Error::NoQuery(name)),
            _ => {
                self.results.close(name);
                self.views.close(name);
                Ok(())
            }
        }
    }

    /// Returns a picture that the query's worker draws now; `None` if it does not arrive in time.
    pub(crate) async fn picture(&self, query: &str) -> Result<Option<Vec<u8>>, Error> {
        if !self.results.request_picture(query) {
            return Err(Error::NoQuery(query.to_owned()));
        }
        let look = async {
            loop {
                if let Some(picture) = self.results.picture(query) {
                    return picture;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        Ok(tokio::time::timeout(PICTURE, look).await.ok())
    }

    pub(crate) fn findings(&self, query: &str) -> Vec<Finding> {
        self.results.recent(query)
    }
}
