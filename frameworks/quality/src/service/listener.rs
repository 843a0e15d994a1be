//! Accepts the connections of workers, and passes each to the driver of its job.
//!
//! It reads and writes frames without interpreting them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sdk::driver::link::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::AbortHandle;

use super::error::Error;
use crate::frame::{self, HELLO_MAX, LENGTH_MAX, ToDriver, ToWorker, VERSION};

/// Maximum number of connected workers.
const CONNECTIONS_MAX: usize = 10_000;
/// Maximum number of frames in the queue for one worker.
const FRAMES_MAX: usize = 64;
/// Maximum number of events in the queue of a job's driver. While it is full, connections are not read.
pub(super) const EVENTS_MAX: usize = 256;
const HELLO: Duration = Duration::from_secs(10);
const PING: Duration = Duration::from_secs(5);

/// An event for a job's driver.
#[derive(Debug)]
pub(super) enum Event {
    /// A worker has connected.
    Joined { connection: u64, task: String, cores: u32, frames: mpsc::Sender<Arc<Vec<u8>>> },
    /// A partial result has arrived.
    Partial { connection: u64, round: u64, shard: u32, micros: u64, values: Vec<f64> },
    /// The program in a worker has written a line.
    Line { connection: u64, number: u64, text: String },
    /// The program in a worker has ended.
    Ended { connection: u64, code: Option<i32>, signal: Option<i32> },
    /// A worker reports that it cannot work.
    Failed { connection: u64, why: String },
    /// A connection has ended.
    Gone { connection: u64 },
    /// The user has requested that the job stops.
    Stop,
}

/// The event queue and the token of a job's driver.
#[derive(Clone, Debug)]
pub(super) struct JobDriver {
    pub(super) token: String,
    pub(super) events: mpsc::Sender<Event>,
}

/// The drivers of all jobs, by the jobs' names.
pub(super) type JobDrivers = Arc<Mutex<BTreeMap<String, JobDriver>>>;

pub(super) fn lock(job_drivers: &JobDrivers) -> MutexGuard<'_, BTreeMap<String, JobDriver>> {
    job_drivers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The listening socket. Dropping it closes the socket.
#[derive(Debug)]
pub(super) struct Listener {
    address: SocketAddr,
    driver: String,
    task: AbortHandle,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    /// Listens at an address; port 0 selects any free one. Workers are accepted when `ready` is set: before that a job
    /// from before a restart may not have its driver yet.
    pub(super) async fn start(
        address: SocketAddr,
        job_drivers: JobDrivers,
        ready: watch::Receiver<bool>,
    ) -> Result<Listener, Error> {
        let failed = || Error::io(format!("cannot listen for workers on {address}"));
        let acceptor = Acceptor::from_environment().map_err(failed())?;
        let listener = TcpListener::bind(address).await.map_err(failed())?;
        let address = listener.local_addr().map_err(failed())?;
        let driver = acceptor.address(address);
        let task = tokio::spawn(accept((listener, acceptor), job_drivers, ready)).abort_handle();
        Ok(Listener { address, driver, task })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address that workers receive to connect to the socket.
    pub(super) fn driver(&self) -> &str {
        &self.driver
    }
}

async fn accept((listener, acceptor): (TcpListener, Acceptor), job_drivers: JobDrivers, ready: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let numbers = AtomicU64::new(0);
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely there are no free file descriptors; some become free as connections end.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let connection = numbers.fetch_add(1, Ordering::Relaxed);
        let (acceptor, job_drivers, mut ready) = (acceptor.clone(), job_drivers.clone(), ready.clone());
        tokio::spawn(async move {
            let _place = place;
            if ready.wait_for(|ready| *ready).await.is_err() {
                return;
            }
            if let Err(error) = serve((stream, &acceptor), connection, &job_drivers).await {
                tracing::debug!(connection, error = %base::error_chain(&error), "a worker's connection ended");
            }
        });
    }
}

async fn serve(
    (stream, acceptor): (TcpStream, &Acceptor),
    connection: u64,
    job_drivers: &JobDrivers,
) -> Result<(), Error> {
    let lost = || Error::io("a worker's connection");
    let accepted = tokio::time::timeout(HELLO, acceptor.accept(stream)).await;
    let stream = accepted.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())).map_err(lost())?;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let hello = tokio::time::timeout(HELLO, receive(&mut reader, HELLO_MAX)).await;
    let Ok(Ok(ToDriver::Hello { version, job, token, task, cores })) = hello else {
        return Err(Error::Refused("no hello was received".to_owned()));
    };
    let job_driver = match find(job_drivers, version, &job, &token) {
        Ok(job_driver) => job_driver,
        Err(answer) => {
            writer.write_all(&frame::encode(&answer)?).await.map_err(lost())?;
            writer.flush().await.map_err(lost())?;
            return match answer {
                ToWorker::Refused { why } => Err(Error::Refused(why)),
                _ => Ok(()),
            };
        }
    };
    let (frames, waiting) = mpsc::channel(FRAMES_MAX);
    let writing = tokio::spawn(write(writer, waiting));
    let joined = Event::Joined { connection, task, cores: cores.clamp(1, 4096), frames };
    let mut open = job_driver.events.send(joined).await.is_ok();
    while open {
        let event = match receive(&mut reader, LENGTH_MAX).await {
            Ok(ToDriver::Partial { round, shard, micros, values }) => {
                Event::Partial { connection, round, shard, micros, values }
            }
            Ok(ToDriver::Line { number, text }) => Event::Line { connection, number, text },
            Ok(ToDriver::Ended { code, signal }) => Event::Ended { connection, code, signal },
            Ok(ToDriver::Failed { why }) => Event::Failed { connection, why },
            Ok(ToDriver::Hello { .. }) | Err(_) => break,
        };
        open = job_driver.events.send(event).await.is_ok();
    }
    writing.abort();
    if job_driver.events.send(Event::Gone { connection }).await.is_err() {
        tracing::debug!(connection, "the job has ended before its worker");
    }
    Ok(())
}

/// Finds the driver that a worker names. Returns the message that rejects the worker if there is none. A job that has
/// ended while its worker started, faster than the worker's kill, has not failed: the worker is released.
fn find(job_drivers: &JobDrivers, version: u32, job: &str, token: &str) -> Result<JobDriver, ToWorker> {
    if version != VERSION {
        let why = format!("the worker speaks version {version}, and the driver version {VERSION}");
        return Err(ToWorker::Refused { why });
    }
    match lock(job_drivers).get(job) {
        None => Err(ToWorker::Leave),
        Some(job_driver) if !same(&job_driver.token, token) => {
            Err(ToWorker::Refused { why: "the token is wrong".to_owned() })
        }
        Some(job_driver) => Ok(job_driver.clone()),
    }
}

/// Compares two texts in constant time.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |all, (x, y)| all | (x ^ y)) == 0
}

async fn receive(reader: &mut (impl AsyncRead + Unpin), most: usize) -> Result<ToDriver, Error> {
    let lost = || Error::io("the worker is gone");
    let mut prefix = [0; 4];
    reader.read_exact(&mut prefix).await.map_err(lost())?;
    let length = frame::length(prefix, most)?;
    let mut bytes = Vec::new();
    reader.take(length as u64).read_to_end(&mut bytes).await.map_err(lost())?;
    if bytes.len() < length {
        return Err(lost()(std::io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(frame::decode(&bytes)?)
}

/// Sends waiting frames, and a ping when there has been none for long. Ends when the channel closes.
async fn write(mut writer: impl AsyncWrite + Unpin, mut waiting: mpsc::Receiver<Arc<Vec<u8>>>) {
    let ping = frame::encode(&ToWorker::Ping).unwrap_or_default();
    loop {
        let sent = match tokio::time::timeout(PING, waiting.recv()).await {
            Ok(Some(frame)) => writer.write_all(&frame).await,
            Ok(None) => return,
            Err(_) => writer.write_all(&ping).await,
        };
        if sent.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_admitted_released_or_refused() {
        let (events, _heard) = mpsc::channel(1);
        let job_driver = JobDriver { token: "right".to_owned(), events };
        let job_drivers: JobDrivers = Arc::new(Mutex::new(BTreeMap::from([("a".to_owned(), job_driver)])));
        let refused = |why: &str| Some(ToWorker::Refused { why: why.to_owned() });
        assert_eq!(find(&job_drivers, VERSION, "a", "right").err(), None);
        assert_eq!(find(&job_drivers, VERSION, "over", "right").err(), Some(ToWorker::Leave));
        assert_eq!(find(&job_drivers, VERSION, "a", "wrong").err(), refused("the token is wrong"));
        assert_eq!(
            find(&job_drivers, 1, "a", "right").err(),
            refused("the worker speaks version 1, and the driver version 3")
        );
    }
}
