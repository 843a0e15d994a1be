//! The port that workers connect to: requests and answers are lines of JSON. Clients without the token get no answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sdk::Requester;
use sdk::driver::link::Acceptor;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::identity::Identity;
use super::results::ResultsStore;
use super::{Error, io};
use crate::core::{Answer, Question};
use crate::picture_stream::{Picture, Views};
use crate::worker::{LINE_MAX, Reply, WorkerMessage};

/// Maximum number of concurrent connections of workers.
const CONNECTIONS_MAX: usize = 2048;
/// Time after which a silent connection is closed.
const SILENCE: Duration = Duration::from_secs(60);
/// Time within which a worker must authenticate, in a short line.
const HELLO: Duration = Duration::from_secs(10);
const HELLO_MAX: u64 = 4096;

/// The listening port for workers.
#[derive(Debug)]
pub(super) struct Control {
    address: SocketAddr,
    driver: String,
    task: JoinHandle<()>,
}

#[derive(Clone)]
struct Context {
    token: Arc<str>,
    requester: Requester<Question, Answer>,
    results: Arc<ResultsStore>,
    views: Arc<Views>,
}

impl Control {
    /// Listens at the address of the identity, or at another port of that host if it is in use.
    pub(super) fn serve(
        identity: &Identity,
        requester: Requester<Question, Answer>,
        results: Arc<ResultsStore>,
        views: Arc<Views>,
    ) -> Result<Control, Error> {
        let what = format!("cannot listen for workers at {}", identity.address);
        let elsewhere = SocketAddr::new(identity.address.ip(), 0);
        let acceptor = Acceptor::from_environment().map_err(io(what.clone()))?;
        let bound = bind(identity.address).or_else(|_| bind(elsewhere)).map_err(io(what.clone()))?;
        let address = bound.local_addr().map_err(io(what))?;
        let driver = acceptor.address(address);
        let context = Context { token: identity.token.as_str().into(), requester, results, views };
        let task = tokio::spawn(accept(bound, acceptor, context));
        Ok(Control { address, driver, task })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address that workers connect to.
    pub(super) fn driver(&self) -> &str {
        &self.driver
    }

    pub(super) fn stop(self) {
        self.task.abort();
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { tokio::net::TcpSocket::new_v4() } else { tokio::net::TcpSocket::new_v6() }?;
    // Connections of the previous process may still be closing on this port.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(1024)
}

async fn accept(listener: TcpListener, acceptor: Acceptor, context: Context) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // Connections end when their listener does.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (context, acceptor) = (context.clone(), acceptor.clone());
                connections.spawn(async move {
                    let _ = context.converse(stream, &acceptor).await;
                    drop(permit);
                });
            }
            // Most likely there are no free file descriptors: some will be closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

impl Context {
    async fn converse(&self, stream: TcpStream, acceptor: &Acceptor) -> std::io::Result<()> {
        let stream = tokio::time::timeout(HELLO, acceptor.accept(stream)).await??;
        let mut stream = BufReader::new(stream);
        let hello = tokio::time::timeout(HELLO, line(&mut stream, HELLO_MAX)).await??;
        let Ok(WorkerMessage::Hello { task, token, position }) = serde_json::from_slice(&hello) else { return Ok(()) };
        if !same(token.as_bytes(), self.token.as_bytes()) {
            return Ok(());
        }
        let mut answer = match self.requester.ask(Question::Hello { task: task.clone(), position }).await {
            Ok(Answer::Start(start)) => Reply::Start(start),
            Ok(Answer::QueryEnded) => Reply::Over,
            Ok(Answer::Unknown) => Reply::Unknown,
            // The scheduler is overloaded or about to end: the worker connects again.
            _ => return Ok(()),
        };
        let query = match &answer {
            Reply::Start(start) => {
                // After a restart the results are not open yet.
                let _ = self.results.open(&start.spec);
                start.spec.name.clone()
            }
            _ => String::new(),
        };
        loop {
            let mut bytes = serde_json::to_vec(&answer)?;
            bytes.push(b'\n');
            stream.get_mut().write_all(&bytes).await?;
            stream.get_mut().flush().await?;
            if matches!(answer, Reply::Over | Reply::Unknown) {
                return Ok(());
            }
            let message = tokio::time::timeout(SILENCE, line(&mut stream, LINE_MAX)).await??;
            let Ok(WorkerMessage::Report { report, findings, picture, shown }) = serde_json::from_slice(&message)
            else {
                return Ok(());
            };
            answer = match self.requester.ask(Question::Report { task: task.clone(), report }).await {
                Ok(Answer::Orders(orders)) => {
                    self.results.add(&query, findings);
                    if let Some(picture) = picture.and_then(|text| BASE64_STANDARD.decode(text).ok()) {
                        self.results.set_picture(&query, picture);
                    }
                    for shown in shown {
                        if let Ok(jpeg) = BASE64_STANDARD.decode(shown.jpeg) {
                            let picture = Picture { seconds: shown.seconds, jpeg, source_size: None };
                            self.views.add(&query, shown.rung, picture);
                        }
                    }
                    match (self.results.take_picture_request(&query), self.views.viewed_rungs(&query)) {
                        (true, rungs) if rungs.is_empty() => Reply::Draw(orders),
                        (false, rungs) if rungs.is_empty() => Reply::Orders(orders),
                        (draw, rungs) => Reply::Show { orders, draw, rungs },
                    }
                }
                Ok(Answer::QueryEnded) => Reply::Over,
                Ok(_) => Reply::Unknown,
                Err(_) => return Ok(()),
            };
        }
    }
}

/// Returns the next line of at most `most` bytes; an error at the end of the stream.
async fn line(stream: &mut BufReader<impl AsyncRead + Unpin>, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(most).read_until(b'\n', &mut bytes).await?;
    if bytes.last() != Some(&b'\n') {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// Compares two secrets in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
