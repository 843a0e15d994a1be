//! Carries a job from its submission to its driver: checks its data, reserves its name, and waits for its start time.
//!
//! Files are read on threads that may block. This module trains nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};

use super::common::{Common, DataDescription, report_end};
use super::error::Error;
use super::learner_driver::LearnerDriver;
use super::listener::{self, EVENTS_MAX, Event, JobDriver, JobDrivers};
use super::program::ProgramDriver;
use super::worker;
use crate::job::Job;
use crate::scheduler::{Answer, Outcome, Question, Restored, Submission};

/// State that all jobs share before they run.
#[derive(Clone, Debug)]
pub(super) struct JobRunner {
    pub(super) common: Common,
    pub(super) job_drivers: JobDrivers,
    /// Semaphore that allows reading one file at a time, as each may take gigabytes.
    reading: Arc<Semaphore>,
}

/// An accepted job, with what its driver needs.
#[derive(Debug)]
pub(super) struct AcceptedJob {
    job: Job,
    event_receiver: mpsc::Receiver<Event>,
    /// Shape of the job's data; `None` after a restart.
    description: Option<DataDescription>,
    /// Seconds since the job's submission; negative if its start time is in the future.
    age: f64,
}

/// A job's driver, by what trains it.
enum Driver {
    /// An algorithm of this framework.
    Learner(Box<LearnerDriver>),
    /// A user's program.
    Program(Box<ProgramDriver>),
}

impl JobRunner {
    pub(super) fn new(common: Common, job_drivers: JobDrivers) -> JobRunner {
        JobRunner { common, job_drivers, reading: Arc::new(Semaphore::new(1)) }
    }

    /// Examines a job's data. A user's program reads its data itself.
    async fn describe_data(&self, job: &Job) -> Result<DataDescription, Error> {
        if job.program().is_some() {
            return Ok(DataDescription::default());
        }
        let _turn = self.reading.acquire().await;
        let job = job.clone();
        let description = tokio::task::spawn_blocking(move || {
            let prepared = worker::prepare(&job, None)?;
            let (classes, schema) = (prepared.classes().to_vec(), prepared.schema().clone());
            Ok(DataDescription { shape: prepared.shape(), classes, schema })
        });
        description.await.map_err(|error| Error::Ended(error.to_string()))?
    }

    /// Checks jobs with their data and submits them to the scheduler, all or none. Workers find the drivers of their
    /// jobs at once; the drivers must be [run](JobRunner::run).
    pub(super) async fn submit(&self, jobs: Vec<Job>) -> Result<Vec<AcceptedJob>, Error> {
        for job in &jobs {
            job.check().map_err(|error| Error::Refused(error.to_string()))?;
        }
        let mut description = Vec::with_capacity(jobs.len());
        for job in &jobs {
            description.push(self.describe_data(job).await?);
        }
        let tokens = jobs.iter().map(|_| token()).collect::<Result<Vec<_>, _>>()?;
        let (mut accepted, mut submissions) = (Vec::new(), Vec::new());
        let mut result = Ok(());
        for ((job, description), token) in jobs.into_iter().zip(description).zip(tokens) {
            let Some(event_receiver) = self.open(&job.name, &token) else {
                result = Err(Error::Refused(format!("there is a job '{}' already", job.name)));
                break;
            };
            submissions.push(Submission { job: job.clone(), token });
            accepted.push(AcceptedJob { age: -job.after, job, event_receiver, description: Some(description) });
        }
        if result.is_ok() {
            result = match self.common.requester.ask(Question::Submit(submissions)).await {
                Ok(Answer::Submitted(answer)) => answer.map_err(|why| Error::Refused(why.to_string())),
                Ok(_) => Err(Error::Ended("the scheduler returned an unexpected answer".to_owned())),
                Err(error) => Err(error.into()),
            };
        }
        if result.is_err() {
            accepted.iter().for_each(|t| self.close(&t.job.name));
        }
        result.map(|()| accepted)
    }

    /// Continues a job from before a restart.
    pub(super) fn resume(&self, Restored { job, token, age }: Restored) -> Option<AcceptedJob> {
        self.open(&job.name, &token).map(|event_receiver| AcceptedJob { job, event_receiver, description: None, age })
    }

    /// Registers the driver of a job with the listener. Returns `None` if the job has one.
    fn open(&self, name: &str, token: &str) -> Option<mpsc::Receiver<Event>> {
        let mut job_drivers = listener::lock(&self.job_drivers);
        if job_drivers.contains_key(name) {
            return None;
        }
        let (events, event_receiver) = mpsc::channel(EVENTS_MAX);
        job_drivers.insert(name.to_owned(), JobDriver { token: token.to_owned(), events });
        Some(event_receiver)
    }

    fn close(&self, name: &str) {
        listener::lock(&self.job_drivers).remove(name);
    }

    /// Waits for a job's start time, drives it to its end, and removes its driver from the listener.
    pub(super) async fn run(self, accepted: AcceptedJob) {
        let name = accepted.job.name.clone();
        match self.start(accepted).await {
            Ok(Some((Driver::Learner(driver), first))) => driver.run(first).await,
            Ok(Some((Driver::Program(driver), first))) => driver.run(first).await,
            Ok(None) => self.ended(&name, Outcome::Stopped).await,
            Err(error) => self.ended(&name, Outcome::Failed(base::error_chain(&error))).await,
        }
        self.close(&name);
    }

    /// Creates the driver at the job's start time, and returns it with its first event; `None` if the job is stopped
    /// before.
    async fn start(&self, mut accepted: AcceptedJob) -> Result<Option<(Driver, Option<Event>)>, Error> {
        let mut first = None;
        if let Ok(wait) = Duration::try_from_secs_f64(-accepted.age) {
            first = tokio::time::timeout(wait, accepted.event_receiver.recv()).await.ok().flatten();
        }
        if matches!(first, Some(Event::Stop)) {
            return Ok(None);
        }
        let description = match accepted.description {
            Some(description) => description,
            None => self.describe_data(&accepted.job).await?,
        };
        let (common, job, event_receiver, age) =
            (self.common.clone(), accepted.job, accepted.event_receiver, accepted.age.max(0.0));
        // Creating a driver reads the checkpoint, if there is one.
        let made = tokio::task::spawn_blocking(move || {
            if let Some(options) = job.program().cloned() {
                return Ok(Driver::Program(Box::new(ProgramDriver::new(common, job, options, event_receiver, age))));
            }
            let name = job.name.clone();
            let driver = LearnerDriver::new(common, job, description, event_receiver, age);
            driver
                .map(|driver| Driver::Learner(Box::new(driver)))
                .map_err(|error| Error::Data { job: name, source: error.into() })
        });
        let driver = made.await.map_err(|error| Error::Ended(error.to_string()))??;
        Ok(Some((driver, first)))
    }

    async fn ended(&self, name: &str, outcome: Outcome) {
        if report_end(&self.common, name, outcome, Vec::new()).await.is_none() {
            tracing::debug!(job = name, "the scheduler has ended; the end of the job is not reported");
        }
    }
}

/// Draws 128 random bits, as text.
fn token() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Error::Token)?;
    Ok(base::hex(&bytes))
}
