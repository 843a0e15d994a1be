//! A worker, which is the process of a task. It connects to its job's driver and computes the shards that it is
//! assigned.
//!
//! Without its driver it waits for some time, and then ends.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sdk::driver::link::{self, BlockingStream};

use super::child::Program;
use super::clock::now;
use super::dataset_cache::{DatasetCache, File};
use super::error::Error;
use crate::frame::{self, LENGTH_MAX, ToDriver, ToWorker, VERSION};
use crate::input::{self, Format};
use crate::job::{Job, Prepared, Source, SourceError, Validation};
use crate::learn::{Data, ProgramOptions, Shape, ShardCache, partial, partial_of_critical, score, score_of_critical};

/// Time of silence after which a driver counts as gone; it sends a ping every five seconds.
const SILENCE: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_millis(200);
const CONNECT: Duration = Duration::from_secs(5);

/// The options of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Address of the driver, as `host:port`, or `tls://host:port`.
    pub driver: String,
    /// Name of the job for which the worker works at first.
    pub job: String,
    /// Id of the worker's task.
    pub task: String,
    /// Secret with which the worker authenticates at first.
    pub token: String,
    /// Number of cores that the worker uses.
    pub cores: u32,
    /// Maximum number of values of the data that a core processes in a second; `None` for no limit.
    pub pace: Option<f64>,
    /// Time that the worker waits for a driver that is gone.
    pub grace: Duration,
    /// Number of bytes of data files that the worker keeps in case it returns to a job.
    pub keep: u64,
}

/// Works until the driver releases the worker, or is gone for too long. Calls `report` with the name of each job.
///
/// # Errors
/// The driver was gone, or rejected the worker; or the data is not available.
pub fn run(options: &WorkerOptions, mut report: impl FnMut(&str)) -> Result<(), Error> {
    let mut options = options.clone();
    let (mut job_data, mut cache) = (None, DatasetCache::new(options.keep));
    let mut last_received = now();
    report(&options.job);
    loop {
        let failure = match connect(&options.driver) {
            Ok(stream) => match serve(&options, &stream, (&mut job_data, &mut cache), &mut last_received) {
                Ok(Next::End) => return Ok(()),
                Ok(Next::Job { job, token }) => {
                    // The state of the old job is dropped before that of the new one is created, except for its file,
                    // if that is small enough to be kept.
                    job_data = None;
                    (options.job, options.token) = (job, token);
                    report(&options.job);
                    continue;
                }
                Err(Error::Io { source, .. }) => source,
                Err(other) => {
                    tell(&Mutex::new(&stream), &ToDriver::Failed { why: base::error_chain(&other) });
                    return Err(other);
                }
            },
            Err(error) => error,
        };
        if last_received.elapsed() > options.grace {
            let what = format!("the driver at {} is gone for {} s", options.driver, options.grace.as_secs());
            return Err(Error::Io { what, source: failure });
        }
        pause(RETRY);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a worker without a driver has nothing else to wait for; and a paced core rests"
)]
pub(super) fn pause(time: Duration) {
    std::thread::sleep(time);
}

fn connect(driver: &str) -> std::io::Result<BlockingStream> {
    let stream = link::connect(driver, CONNECT)?;
    stream.set_read_timeout(Some(SILENCE))?;
    Ok(stream)
}

/// The data of a worker's job, with the shards that the worker has computed so far.
struct JobData {
    text: String,
    job: Job,
    shape: Shape,
    prepared: Prepared,
    shards: Mutex<BTreeMap<u32, (Data, ShardCache)>>,
}

/// The next step of a worker that its driver has released.
enum Next {
    End,
    /// Work for another job.
    Job {
        job: String,
        token: String,
    },
}

/// Works over one connection. Returns `Ok` when the driver releases the worker.
fn serve(
    options: &WorkerOptions,
    stream: &BlockingStream,
    (job_data, cache): (&mut Option<JobData>, &mut DatasetCache),
    last_received: &mut Instant,
) -> Result<Next, Error> {
    let hello = ToDriver::Hello {
        version: VERSION,
        job: options.job.clone(),
        token: options.token.clone(),
        task: options.task.clone(),
        cores: options.cores,
    };
    let writer = Mutex::new(stream);
    send(&writer, &hello)?;
    let mut reader = stream;
    let mut program: Option<(ProgramOptions, Option<Program>)> = None;
    loop {
        let frame = receive(&mut reader)?;
        *last_received = now();
        match frame {
            ToWorker::Ping => {}
            ToWorker::Leave => return Ok(Next::End),
            ToWorker::Move { job, token } => return Ok(Next::Job { job, token }),
            ToWorker::Refused { why } => return Err(Error::Refused(why)),
            ToWorker::Run { line } => {
                let Some((options, program)) = &mut program else {
                    return Err(Error::Refused("a program was received before its job".into()));
                };
                *program = None;
                *program = Some(Program::start(options, &line, stream)?);
            }
            ToWorker::Say { line } => {
                if let Some((_, Some(program))) = &mut program {
                    program.send(&line);
                }
            }
            ToWorker::Setup { job, shape } => {
                program = program_of(&job).map(|options| (options, None));
                if program.is_some() {
                    *job_data = None;
                } else if job_data.as_ref().is_none_or(|b| b.text != job || b.shape != shape) {
                    *job_data = Some(JobData::new(job, shape, cache)?);
                }
            }
            ToWorker::Compute { round, shards, parameters } => {
                let Some(job_data) = &*job_data else {
                    return Err(Error::Refused("work was received before its job".into()));
                };
                job_data.compute(options, round, &shards, &parameters, &writer)?;
                *last_received = now();
            }
        }
    }
}

/// Returns the program of a job in JSON, if it has one.
fn program_of(job: &str) -> Option<ProgramOptions> {
    serde_json::from_str::<Job>(job).ok()?.program().cloned()
}

fn receive(reader: &mut impl Read) -> Result<ToWorker, Error> {
    let lost = |source| Error::Io { what: "the driver is gone".into(), source };
    let mut prefix = [0; 4];
    reader.read_exact(&mut prefix).map_err(lost)?;
    let length = frame::length(prefix, LENGTH_MAX)?;
    let mut bytes = Vec::new();
    // The buffer grows as bytes arrive, so a false length costs nothing.
    reader.take(length as u64).read_to_end(&mut bytes).map_err(lost)?;
    if bytes.len() < length {
        return Err(lost(std::io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(frame::decode(&bytes)?)
}

fn send(writer: &Mutex<&BlockingStream>, frame: &ToDriver) -> Result<(), Error> {
    let bytes = frame::encode(frame)?;
    let lost = |source| Error::Io { what: "the driver is gone".into(), source };
    lock(writer).write_all(&bytes).map_err(lost)
}

/// Sends a report to the driver, and ignores errors.
fn tell(writer: &Mutex<&BlockingStream>, frame: &ToDriver) {
    if let Err(error) = send(writer, frame) {
        tracing::debug!(error = %base::error_chain(&error), "the reason of this end cannot be sent to the driver");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl JobData {
    fn new(text: String, shape: Shape, cache: &mut DatasetCache) -> Result<JobData, Error> {
        let job: Job =
            serde_json::from_str(&text).map_err(|e| Error::Refused(format!("the job cannot be read: {e}")))?;
        let prepared = prepare(&job, Some(cache))?;
        if prepared.shape() != shape {
            return Err(Error::Refused("the data file is not the one that the scheduler has read".to_owned()));
        }
        Ok(JobData { text, job, shape, prepared, shards: Mutex::default() })
    }

    /// Computes shards on all cores, and sends each result as soon as it is computed.
    fn compute(
        &self,
        options: &WorkerOptions,
        round: u64,
        shards: &[u32],
        parameters: &[f64],
        writer: &Mutex<&BlockingStream>,
    ) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        let core = || -> Result<(), Error> {
            while let Some(&shard) = shards.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (values, micros) = self.shard(options.pace, shard, parameters)?;
                send(writer, &ToDriver::Partial { round, shard, micros, values })?;
            }
            Ok(())
        };
        if options.cores <= 1 {
            return core();
        }
        std::thread::scope(|scope| {
            let cores: Vec<_> = (0..options.cores).map(|_| scope.spawn(core)).collect();
            cores.into_iter().try_for_each(|c| c.join().unwrap_or_else(|_| Err(Error::Ended("a core failed".into()))))
        })
    }

    /// Computes one shard, and returns its result and the time that it took, in microseconds.
    fn shard(&self, pace: Option<f64>, shard: u32, parameters: &[f64]) -> Result<(Vec<f64>, u64), Error> {
        let failed =
            |source: crate::learn::LearnError| Error::Data { job: self.job.name.clone(), source: source.into() };
        let kept = lock(&self.shards).remove(&shard);
        let (data, mut memory) = match kept {
            Some(kept) => kept,
            None => {
                // Shards after the training shards are those of the validation data.
                let data = match (shard as usize).checked_sub(self.job.shards) {
                    None => self.prepared.shard(&self.job.algorithm, shard as usize, self.job.shards),
                    Some(held) => {
                        self.prepared.validation_shard(&self.job.algorithm, held, self.job.validation_shards())
                    }
                };
                (data.map_err(failed)?, ShardCache::default())
            }
        };
        let began = now();
        let (algorithm, critical) = (&self.job.algorithm, self.job.critical_rows.is_some());
        memory.worked = data.len();
        let compute = match ((shard as usize) < self.job.shards, critical) {
            (true, false) => partial,
            (false, false) => score,
            (true, true) => partial_of_critical,
            (false, true) => score_of_critical,
        };
        let values = compute(algorithm, &self.shape, parameters, &data, &mut memory).map_err(failed)?;
        if let Some(pace) = pace {
            let cells = (memory.worked * data.width()) as f64;
            let wanted = Duration::try_from_secs_f64(cells / pace).unwrap_or_default();
            pause(wanted.saturating_sub(began.elapsed()));
        }
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        lock(&self.shards).insert(shard, (data, memory));
        Ok((values, micros))
    }
}

/// Examines a job's data. Takes its file, if it has one, from the cache, or reads it. A validation file is always read.
pub(super) fn prepare(job: &Job, cache: Option<&mut DatasetCache>) -> Result<Prepared, Error> {
    let prepared = prepare_all(job, cache)?;
    let failed = |source| Error::Data { job: job.name.clone(), source };
    let Some(validation) = &job.validation else { return Ok(prepared) };
    let text = match validation {
        Validation::Share { .. } => None,
        Validation::File(path) => {
            let bytes = std::fs::read(path);
            let bytes = bytes.map_err(|source| failed(SourceError::Read { path: path.clone(), source }))?;
            Some(input::text_of(path, Format::of(path), bytes).map_err(|error| failed(error.into()))?)
        }
    };
    prepared.hold_out(&job.algorithm, validation, text.as_deref()).map_err(failed)
}

/// Examines the data without regard to validation.
fn prepare_all(job: &Job, cache: Option<&mut DatasetCache>) -> Result<Prepared, Error> {
    let failed = |source| Error::Data { job: job.name.clone(), source };
    let Source::File { path, .. } = &job.data else {
        return job.data.prepare(&job.algorithm, None).map_err(failed);
    };
    let file = File::new(path, job.data.reading(&job.algorithm));
    let input = match cache {
        Some(cache) => cache.get(file),
        None => file.read().map(Arc::new),
    };
    job.data.prepare_read(&job.algorithm, input.map_err(failed)?).map_err(|error| failed(error.into()))
}
