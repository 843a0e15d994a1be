//! The framework live: the scheduler on a master, a driver for each job, workers that connect, files and an HTTP API.
//!
//! It decides nothing about cores or models; it carries what others decide.

mod api;
mod clock;
mod drive;
mod error;
mod files;
mod hands;
mod hub;
pub mod plot;
#[cfg(test)]
mod tests;
pub mod worker;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sdk::Ending;
use sdk::driver::api::Serving;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::allocate::Policy;
use crate::job::Job;
use crate::scheduler::{Answer, Quality, Question, Restored, Settings, State, Status, Worker};
use drive::{Common, Drive};
use files::Record;
use hub::{Desk, Desks, EVENTS_MAX, Event, Hub};

pub use error::Error;
pub use files::SavedModel;

/// How long the scheduler may take to say farewell to the master.
const FAREWELL: Duration = Duration::from_secs(15);

/// How to run the service.
#[derive(Debug)]
pub struct Options {
    /// How the scheduler library is driven; its `nudge` is set here.
    pub driver: sdk::driver::Options,
    /// How cores are shared.
    pub policy: Policy,
    /// For how long a decision holds.
    pub epoch: Duration,
    /// The most workers at once.
    pub workers_max: u32,
    /// The command of a worker: a program, and arguments before those that are added.
    pub worker_command: Vec<String>,
    /// Cores of a worker.
    pub worker_cores: u32,
    /// Memory of a worker, in MB.
    pub worker_mem: u32,
    /// How many numbers of the data a core of a worker may look at in a second; as many as it can without.
    pub pace: Option<f64>,
    /// The address at which workers reach this process.
    pub worker_address: IpAddr,
    /// Where the HTTP API listens.
    pub listen: SocketAddr,
    /// Where checkpoints are kept, and the port that workers know; nothing survives without.
    pub state_dir: Option<PathBuf>,
    /// Where models are kept.
    pub models: Option<PathBuf>,
    /// A CSV file for every iteration of every job.
    pub record: Option<PathBuf>,
    /// Jobs to submit at the start; those that are known from before a restart go on.
    pub jobs: Vec<Job>,
}

impl Options {
    /// The defaults, for a library set up like this: workers of one core and 64 MB, made from this very program.
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

/// The running service.
#[derive(Debug)]
pub struct Service {
    inner: Arc<Inner>,
    api: Serving,
    ended: watch::Receiver<Option<Result<(), String>>>,
    scheduler: Task,
}

/// A task that ends with its owner.
#[derive(Debug)]
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What service and API share.
#[derive(Debug)]
pub(crate) struct Inner {
    common: Common,
    desks: Desks,
    _hub: Hub,
    /// Jobs that wait for their time, and drivers.
    tasks: Mutex<Vec<Task>>,
    /// How many jobs wait for their time.
    waiting: std::sync::atomic::AtomicUsize,
}

impl Service {
    /// Starts: the scheduler subscribes, jobs from before go on, new jobs are submitted. Needs a tokio runtime.
    ///
    /// # Errors
    /// An address or a file cannot be used, or a job is not taken. Nothing runs then.
    pub async fn start(mut options: Options) -> Result<Service, Error> {
        let desks = Desks::default();
        let port = options.state_dir.as_ref().map(|folder| folder.join("driver-port"));
        let (ready, is_ready) = watch::channel(false);
        let hub = listen(options.worker_address, port.as_deref(), &desks, &is_ready).await?;
        let (requester, requests) = sdk::requests();
        options.driver.nudge = Some(requester.nudge());
        let settings = Settings {
            policy: options.policy,
            epoch: options.epoch.max(Duration::from_millis(20)),
            workers_max: options.workers_max,
            worker: Worker {
                command: options.worker_command,
                driver: hub.address().to_string(),
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
            checkpoints: options.state_dir.as_ref().map(|folder| folder.join("jobs")),
            models: options.models.or_else(|| options.state_dir.map(|folder| folder.join("models"))),
            record: record.map(|r| Arc::new(Mutex::new(r))),
        };
        let (tell, ended) = watch::channel(None);
        let inner = Arc::new(Inner {
            common,
            desks,
            _hub: hub,
            tasks: Mutex::default(),
            waiting: std::sync::atomic::AtomicUsize::new(0),
        });
        let api = sdk::driver::api::serve(options.listen, Arc::new(api::Front(inner.clone())))
            .map_err(Error::io(format!("cannot listen on {}", options.listen)))?;
        let scheduler = Quality::new(settings, requests);
        let mut driver = options.driver;
        driver.settings.framework.webui_url.get_or_insert_with(|| api.url());
        let scheduler = tokio::spawn(async move {
            let finished = sdk::driver::run(scheduler, driver).await;
            tell.send_replace(Some(match finished.ending {
                Ending::Stopped => Ok(()),
                Ending::Error(why) => Err(format!("the master refused: {why}")),
                Ending::Unreachable(why) => Err(format!("no master could be reached: {why}")),
                Ending::State(why) => Err(why),
            }));
        });
        let scheduler = Task(scheduler.abort_handle());
        let service = Service { inner, api, ended, scheduler };
        service.take_up(options.jobs).await?;
        ready.send_replace(true);
        Ok(service)
    }

    /// Lets jobs of before go on, and submits the others.
    async fn take_up(&self, jobs: Vec<Job>) -> Result<(), Error> {
        let answer = match self.inner.ask(Question::Restored).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.ended.borrow().clone().and_then(Result::err).map_or(error, Error::Ended)),
        };
        let Answer::Restored(restored) = answer else { return Ok(()) };
        let known = self.inner.status().await?;
        for Restored { job, token } in restored {
            let name = job.name.clone();
            if let Err(error) = self.inner.clone().drive(job, token) {
                let outcome = crate::scheduler::Outcome::Failed(worker::chain(&error));
                self.inner.ask(Question::Ended { job: name, outcome, free: Vec::new() }).await?;
            }
        }
        let new = jobs.into_iter().filter(|j| known.jobs.iter().all(|k| k.name != j.name)).collect();
        self.inner.clone().submit(new).await
    }

    /// Where the HTTP API listens.
    pub fn address(&self) -> SocketAddr {
        self.api.address()
    }

    /// How things are.
    ///
    /// # Errors
    /// The scheduler has ended.
    pub async fn status(&self) -> Result<Status, Error> {
        self.inner.status().await
    }

    /// Submits jobs, all or none; those with `after` when their time has come.
    ///
    /// # Errors
    /// A job breaks a rule, or its data cannot be had.
    pub async fn submit(&self, jobs: Vec<Job>) -> Result<(), Error> {
        self.inner.clone().submit(jobs).await
    }

    /// Ends a job; its model is kept as it is.
    ///
    /// # Errors
    /// There is no such job that runs.
    pub async fn stop_job(&self, name: &str) -> Result<(), Error> {
        self.inner.stop_job(name).await
    }

    /// How things are after so long, and whether all jobs have ended and their workers are gone.
    ///
    /// # Errors
    /// The scheduler has ended before, and why.
    pub async fn next(&self, after: Duration) -> Result<(Status, bool), Error> {
        tokio::time::sleep(after).await;
        if let Some(Err(why)) = self.ended.borrow().clone() {
            return Err(Error::Ended(why));
        }
        let status = self.status().await?;
        let ended = |state| !matches!(state, State::Waiting | State::Running);
        let waiting = self.inner.waiting.load(std::sync::atomic::Ordering::Relaxed);
        let over = waiting == 0 && status.workers == 0 && status.jobs.iter().all(|j| ended(j.state));
        Ok((status, over))
    }

    /// Ends. With `teardown` the framework is gone, and its tasks with it; without, another service with the same state
    /// can take over.
    ///
    /// # Errors
    /// The scheduler did not end in time.
    pub async fn stop(mut self, teardown: bool) -> Result<(), Error> {
        self.inner.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
        let asked = self.inner.ask(Question::Stop { teardown }).await;
        let waited = tokio::time::timeout(FAREWELL, self.ended.wait_for(Option::is_some)).await;
        drop(self.scheduler);
        self.api.stop().await;
        if asked.is_ok() && waited.is_err() {
            return Err(Error::Ended("the scheduler did not end in time".to_owned()));
        }
        Ok(())
    }
}

/// Listens for workers: at the port that they know from before a restart, if it is free.
async fn listen(
    address: IpAddr,
    kept: Option<&Path>,
    desks: &Desks,
    ready: &watch::Receiver<bool>,
) -> Result<Hub, Error> {
    let known = kept.and_then(|path| std::fs::read_to_string(path).ok()).and_then(|t| t.trim().parse::<u16>().ok());
    if let Some(port) = known {
        match Hub::start(SocketAddr::new(address, port), desks.clone(), ready.clone()).await {
            Ok(hub) => return Ok(hub),
            Err(error) => {
                tracing::warn!(error = %worker::chain(&error), "workers of before will not find their driver")
            }
        }
    }
    let hub = Hub::start(SocketAddr::new(address, 0), desks.clone(), ready.clone()).await?;
    if let Some(path) = kept {
        files::replace(path, hub.address().port().to_string().as_bytes())?;
    }
    Ok(hub)
}

impl Inner {
    async fn ask(&self, question: Question) -> Result<Answer, Error> {
        Ok(self.common.requester.ask(question).await?)
    }

    pub(crate) async fn status(&self) -> Result<Status, Error> {
        match self.ask(Question::Status).await? {
            Answer::Status(status) => Ok(*status),
            _ => Err(Error::Ended("the scheduler answers nonsense".to_owned())),
        }
    }

    pub(crate) fn models(&self) -> Option<&Path> {
        self.common.models.as_deref()
    }

    fn hold(&self, task: AbortHandle) {
        let mut tasks = self.tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tasks.retain(|t| !t.0.is_finished());
        tasks.push(Task(task));
    }

    /// Checks all jobs with their data, then submits them.
    pub(crate) async fn submit(self: &Arc<Inner>, jobs: Vec<Job>) -> Result<(), Error> {
        for job in &jobs {
            job.check().map_err(|error| Error::Refused(error.to_string()))?;
        }
        let looked_at = jobs.clone();
        let looked_at =
            tokio::task::spawn_blocking(move || looked_at.iter().try_for_each(|j| worker::prepare(j).map(drop)));
        looked_at.await.map_err(|error| Error::Ended(error.to_string()))??;
        for job in jobs {
            if job.after > 0.0 {
                self.waiting.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let inner = self.clone();
                self.hold(tokio::spawn(inner.submit_later(job)).abort_handle());
            } else {
                self.submit_one(job).await?;
            }
        }
        Ok(())
    }

    async fn submit_later(self: Arc<Inner>, job: Job) {
        tokio::time::sleep(Duration::try_from_secs_f64(job.after).unwrap_or_default()).await;
        let name = job.name.clone();
        if let Err(error) = self.submit_one(job).await {
            tracing::warn!(job = name, error = %worker::chain(&error), "the job is not taken");
        }
        self.waiting.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }

    async fn submit_one(self: &Arc<Inner>, job: Job) -> Result<(), Error> {
        let token = token()?;
        let question = Question::Submit { job: Box::new(job.clone()), token: token.clone() };
        match self.ask(question).await? {
            Answer::Submitted(Ok(())) => self.drive(job, token),
            Answer::Submitted(Err(why)) => Err(Error::Refused(why)),
            _ => Err(Error::Ended("the scheduler answers nonsense".to_owned())),
        }
    }

    /// Starts a job's driver.
    fn drive(self: &Arc<Inner>, job: Job, token: String) -> Result<(), Error> {
        let prepared = worker::prepare(&job)?;
        let (events, heard) = mpsc::channel(EVENTS_MAX);
        let name = job.name.clone();
        let classes = prepared.classes().to_vec();
        let drive = Drive::new(self.common.clone(), job, prepared.shape(), classes, heard)
            .map_err(|error| Error::Data { job: name.clone(), source: error.into() })?;
        hub::lock(&self.desks).insert(name.clone(), Desk { token, events });
        let desks = self.desks.clone();
        let driving = tokio::spawn(async move {
            drive.run().await;
            hub::lock(&desks).remove(&name);
        });
        self.hold(driving.abort_handle());
        Ok(())
    }

    pub(crate) async fn stop_job(&self, name: &str) -> Result<(), Error> {
        let desk = hub::lock(&self.desks).get(name).cloned();
        let told = match desk {
            Some(desk) => desk.events.send(Event::Stop).await.is_ok(),
            None => false,
        };
        if told { Ok(()) } else { Err(Error::Refused(format!("there is no job '{name}' that runs"))) }
    }

    pub(crate) async fn forget(&self, name: &str) -> Result<(), Error> {
        match self.ask(Question::Forget(name.to_owned())).await? {
            Answer::Submitted(Err(why)) => Err(Error::Refused(why)),
            _ => Ok(()),
        }
    }
}

/// 128 bits of chance, as text.
fn token() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Error::Token)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
