//! The live framework: the scheduler on a master, a driver for each job, connected workers, files and an HTTP API.
//!
//! It carries out decisions, and makes none about cores or models.

mod api;
mod child;
mod clock;
mod common;
mod dataset_cache;
mod error;
mod files;
mod job_runner;
mod learner_driver;
mod listener;
pub mod plot;
mod program;
#[cfg(test)]
mod program_tests;
mod saved_model;
mod stop;
#[cfg(test)]
mod stop_tests;
#[cfg(test)]
mod tests;
pub mod worker;
mod worker_pool;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sdk::driver::api::Serving;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::allocate::Policy;
use crate::job::Job;
use crate::scheduler::{Answer, JobRefused, Quality, Question, Settings, State, Status, Worker};
use common::Common;
use files::Record;
use job_runner::{AcceptedJob, JobRunner};
use listener::{Event, JobDrivers, Listener};

pub use error::Error;
pub use saved_model::{SavedModel, Training};

/// Time limit for the scheduler's end.
const END_LIMIT: Duration = Duration::from_secs(15);

/// The options of the service.
#[derive(Debug)]
pub struct Options {
    /// Options of the scheduler library's driver; [`Service::start`] sets its `wake_signal`.
    pub driver: sdk::driver::Options,
    /// Policy that shares cores among jobs.
    pub policy: Policy,
    /// Interval of decisions.
    pub epoch: Duration,
    /// Maximum number of workers at a time.
    pub workers_max: u32,
    /// Command of a worker: a program with its first arguments; the scheduler adds further ones.
    pub worker_command: Vec<String>,
    /// Number of cores of a worker.
    pub worker_cores: u32,
    /// Memory of a worker, in MB.
    pub worker_mem: u32,
    /// Maximum number of values of the data that a core of a worker processes in a second; `None` for no limit.
    pub pace: Option<f64>,
    /// Address at which workers reach this process.
    pub worker_address: IpAddr,
    /// Address of the HTTP API.
    pub listen: SocketAddr,
    /// Directory of checkpoints, and of the port that workers know; without it nothing survives a restart.
    pub state_dir: Option<PathBuf>,
    /// Directory of models.
    pub models: Option<PathBuf>,
    /// Path of a CSV file with every iteration of every job.
    pub record: Option<PathBuf>,
    /// Jobs to submit at the start; jobs from before a restart continue.
    pub jobs: Vec<Job>,
}

impl Options {
    /// Returns default options for a library with these options: workers of one core and 64 MB, which run the current
    /// executable.
    pub fn new(driver: sdk::driver::Options) -> Options {
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("tepui"));
        let words = [program.to_string_lossy().into_owned(), "framework".into(), "quality".into(), "worker".into()];
        Options {
            driver,
            policy: Policy::Slaq,
            epoch: Duration::from_secs(3),
            workers_max: 100_000,
            worker_command: words.to_vec(),
            worker_cores: 1,
            worker_mem: 64,
            pace: None,
            worker_address: IpAddr::from([127, 0, 0, 1]),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            state_dir: None,
            models: None,
            record: None,
            jobs: Vec::new(),
        }
    }
}

/// A running instance of the live framework.
#[derive(Debug)]
pub struct Service {
    inner: Arc<Inner>,
    api: Serving,
    ended: watch::Receiver<Option<Result<(), String>>>,
    scheduler: Task,
}

/// A tokio task. Dropping it aborts the task.
#[derive(Debug)]
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// State that the service and the API share.
#[derive(Debug)]
pub(crate) struct Inner {
    job_runner: JobRunner,
    _listener: Listener,
    /// Tasks of drivers, and of jobs that wait for their start time.
    tasks: Mutex<Vec<Task>>,
}

impl Service {
    /// Starts the service: the scheduler subscribes, earlier jobs continue, new jobs are submitted. Needs a tokio
    /// runtime.
    ///
    /// # Errors
    /// An address or a file cannot be used, or a job is rejected. Nothing runs then.
    pub async fn start(mut options: Options) -> Result<Service, Error> {
        let job_drivers = JobDrivers::default();
        let port = options.state_dir.as_ref().map(|directory| directory.join("driver-port"));
        let (ready, is_ready) = watch::channel(false);
        let listener = listen(options.worker_address, port.as_deref(), &job_drivers, &is_ready).await?;
        let (requester, requests) = sdk::requests();
        options.driver.wake_signal = Some(requester.wake_signal());
        let settings = Settings {
            policy: options.policy,
            epoch: options.epoch.max(Duration::from_millis(20)),
            workers_max: options.workers_max,
            worker: Worker {
                command: options.worker_command,
                driver: listener.driver().to_owned(),
                cores: options.worker_cores.max(1),
                mem: options.worker_mem.max(1),
                pace: options.pace,
            },
        };
        let record = options.record.as_deref().map(Record::create).transpose()?;
        let common = Common {
            requester: requester.clone(),
            started: clock::now(),
            cores: settings.worker.cores,
            checkpoints: options.state_dir.as_ref().map(|directory| directory.join("jobs")),
            models: options.models.or_else(|| options.state_dir.map(|directory| directory.join("models"))),
            record: record.map(|r| Arc::new(Mutex::new(r))),
        };
        let (tell, ended) = watch::channel(None);
        let inner = Arc::new(Inner {
            job_runner: JobRunner::new(common, job_drivers),
            _listener: listener,
            tasks: Mutex::default(),
        });
        let api = sdk::driver::api::serve(options.listen, Arc::new(api::ApiHandler(inner.clone())))
            .map_err(Error::io(format!("cannot listen on {}", options.listen)))?;
        let scheduler = Quality::new(settings, requests);
        let mut driver = options.driver;
        driver.settings.framework.webui_url.get_or_insert_with(|| api.url());
        let scheduler = tokio::spawn(async move {
            let finished = sdk::driver::run(scheduler, driver).await;
            tell.send_replace(Some(finished.ending.why().map_or(Ok(()), Err)));
        });
        let scheduler = Task(scheduler.abort_handle());
        let service = Service { inner, api, ended, scheduler };
        service.start_jobs(options.jobs, &ready).await?;
        Ok(service)
    }

    /// Continues earlier jobs, and submits the others. Workers are accepted as soon as their jobs have drivers.
    async fn start_jobs(&self, jobs: Vec<Job>, ready: &watch::Sender<bool>) -> Result<(), Error> {
        let answer = match self.inner.ask(Question::Restored).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.ended.borrow().clone().and_then(Result::err).map_or(error, Error::Ended)),
        };
        let Answer::Restored { jobs: restored, lost } = answer else { return Ok(()) };
        for what in lost {
            tracing::warn!("saved state: {what}");
        }
        let known = self.inner.status().await?;
        restored
            .into_iter()
            .filter_map(|r| self.inner.job_runner.resume(r))
            .for_each(|accepted| self.inner.run(accepted));
        ready.send_replace(true);
        let new = jobs.into_iter().filter(|j| known.jobs.iter().all(|k| k.name != j.name)).collect();
        self.inner.clone().submit(new).await
    }

    /// Returns the address of the HTTP API.
    pub fn address(&self) -> SocketAddr {
        self.api.address()
    }

    /// Returns the URL of the API, with the scheme that it serves.
    pub fn url(&self) -> String {
        self.api.url()
    }

    /// Returns the status of all jobs.
    ///
    /// # Errors
    /// The scheduler has ended.
    pub async fn status(&self) -> Result<Status, Error> {
        self.inner.status().await
    }

    /// Submits jobs, all or none; those with `after` start later.
    ///
    /// # Errors
    /// A job breaks a rule, its data is not available, or its name is taken.
    pub async fn submit(&self, jobs: Vec<Job>) -> Result<(), Error> {
        self.inner.clone().submit(jobs).await
    }

    /// Stops a job; its model is saved in its current state.
    ///
    /// # Errors
    /// No job of this name runs.
    pub async fn stop_job(&self, name: &str) -> Result<(), Error> {
        self.inner.stop_job(name).await
    }

    /// Waits for `after`, and returns the status and whether all jobs have ended and their workers are gone.
    ///
    /// # Errors
    /// The scheduler has ended; the error contains the reason.
    pub async fn next(&self, after: Duration) -> Result<(Status, bool), Error> {
        tokio::time::sleep(after).await;
        if let Some(Err(why)) = self.ended.borrow().clone() {
            return Err(Error::Ended(why));
        }
        let status = self.status().await?;
        let ended = |state| !matches!(state, State::Waiting | State::Running);
        let over = status.workers == 0 && status.jobs.iter().all(|j| ended(j.state));
        Ok((status, over))
    }

    /// Stops the service. With `teardown` the framework is removed, and its tasks with it; without, another service
    /// with the same state can continue.
    ///
    /// # Errors
    /// The scheduler did not end in time.
    pub async fn stop(mut self, teardown: bool) -> Result<(), Error> {
        self.inner.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
        let asked = self.inner.ask(Question::Stop { teardown }).await;
        let waited = tokio::time::timeout(END_LIMIT, self.ended.wait_for(Option::is_some)).await;
        drop(self.scheduler);
        self.api.stop().await;
        if asked.is_ok() && waited.is_err() {
            return Err(Error::Ended("the scheduler did not end in time".to_owned()));
        }
        Ok(())
    }
}

/// Listens for workers: on the port that they know from before a restart, if it is free.
async fn listen(
    address: IpAddr,
    kept: Option<&Path>,
    job_drivers: &JobDrivers,
    ready: &watch::Receiver<bool>,
) -> Result<Listener, Error> {
    let known = kept.and_then(|path| std::fs::read_to_string(path).ok()).and_then(|t| t.trim().parse::<u16>().ok());
    if let Some(port) = known {
        match Listener::start(SocketAddr::new(address, port), job_drivers.clone(), ready.clone()).await {
            Ok(listener) => return Ok(listener),
            Err(error) => {
                tracing::warn!(error = %base::error_chain(&error), "earlier workers cannot find their driver")
            }
        }
    }
    let listener = Listener::start(SocketAddr::new(address, 0), job_drivers.clone(), ready.clone()).await?;
    if let Some(path) = kept {
        files::replace(path, listener.address().port().to_string().as_bytes())?;
    }
    Ok(listener)
}

impl Inner {
    async fn ask(&self, question: Question) -> Result<Answer, Error> {
        Ok(self.job_runner.common.requester.ask(question).await?)
    }

    pub(crate) async fn status(&self) -> Result<Status, Error> {
        match self.ask(Question::Status).await? {
            Answer::Status(status) => Ok(*status),
            _ => Err(Error::Ended("the scheduler returned an unexpected answer".to_owned())),
        }
    }

    pub(crate) fn models(&self) -> Option<&Path> {
        self.job_runner.common.models.as_deref()
    }

    fn hold(&self, task: AbortHandle) {
        let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tasks.retain(|t| !t.0.is_finished());
        tasks.push(Task(task));
    }

    /// Submits jobs and starts their drivers. It completes even if the caller does not wait: an HTTP client may have
    /// disconnected.
    pub(crate) async fn submit(self: Arc<Inner>, jobs: Vec<Job>) -> Result<(), Error> {
        let submitting = tokio::spawn(async move {
            let accepted = self.job_runner.submit(jobs).await?;
            accepted.into_iter().for_each(|accepted| self.run(accepted));
            Ok(())
        });
        submitting.await.map_err(|error| Error::Ended(error.to_string()))?
    }

    /// Starts a job's driver.
    fn run(&self, accepted: AcceptedJob) {
        self.hold(tokio::spawn(self.job_runner.clone().run(accepted)).abort_handle());
    }

    pub(crate) async fn stop_job(&self, name: &str) -> Result<(), Error> {
        let job_driver = listener::lock(&self.job_runner.job_drivers).get(name).cloned();
        let is_sent = match job_driver {
            Some(job_driver) => job_driver.events.send(Event::Stop).await.is_ok(),
            None => false,
        };
        if is_sent { Ok(()) } else { Err(Error::NotRunning(name.to_owned())) }
    }

    pub(crate) async fn forget(&self, name: &str) -> Result<(), Error> {
        match self.ask(Question::Forget(name.to_owned())).await? {
            Answer::Submitted(Err(JobRefused::Unknown(name))) => Err(Error::NoJob(name)),
            Answer::Submitted(Err(why)) => Err(Error::Refused(why.to_string())),
            _ => Ok(()),
        }
    }
}
