//! Simulates open pages of a master without a browser: the event stream, and the calls of the overview, as often as the
//! page's store makes them.
//!
//! The data is discarded, so that the master is measured and not the pages.

use std::io::{self, Write};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::http::Connection;

/// Calls of the overview.
const CALLS: [&str; 2] = ["GET_OVERVIEW", "GET_FAIRNESS"];
/// Intervals as in `src/daemon/webui/store.js`: `CALL_EVERY`, `CALL_PART`, `CALL_LATEST`.
const EVERY: Duration = Duration::from_secs(2);
const PART: u32 = 500;
const LATEST: Duration = Duration::from_secs(30);

/// A number of simulated open pages.
pub struct Pages {
    closed: Arc<AtomicBool>,
    counts: Arc<Counts>,
    callers: Vec<JoinHandle<io::Result<()>>>,
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    bytes: AtomicU64,
}

impl Pages {
    /// Opens pages, and returns once each has read the state.
    ///
    /// # Errors
    /// Those of the sockets, or the master refuses.
    pub fn open(master: SocketAddrV4, count: usize) -> io::Result<Pages> {
        let (closed, counts) = (Arc::<AtomicBool>::default(), Arc::<Counts>::default());
        let mut callers = Vec::new();
        for _ in 0..count {
            let mut stream = post(master, "SUBSCRIBE")?;
            stream.head()?;
            let mut chunk = Vec::new();
            stream.chunk(&mut chunk)?;
            chunk.clear();
            let read = counts.clone();
            // The thread ends with the process, or with the master.
            std::thread::spawn(move || -> io::Result<()> {
                while stream.chunk(&mut chunk)? {
                    read.bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
                    chunk.clear();
                }
                Ok(())
            });
            for call in CALLS {
                let (closed, counts) = (closed.clone(), counts.clone());
                callers.push(std::thread::spawn(move || ask(master, call, &closed, &counts)));
            }
        }
        Ok(Pages { closed, counts, callers })
    }

    /// Stops the calls. Returns their number, and the number of bytes of the streams since they were opened.
    ///
    /// # Errors
    /// A call has failed.
    pub fn close(self) -> io::Result<(u64, u64)> {
        self.closed.store(true, Ordering::Relaxed);
        for caller in self.callers {
            caller.join().map_err(|_| io::Error::other("a caller has panicked"))??;
        }
        Ok((self.counts.calls.load(Ordering::Relaxed), self.counts.bytes.load(Ordering::Relaxed)))
    }
}

/// Makes a call as often as a page of a cluster that always changes.
fn ask(master: SocketAddrV4, call: &str, closed: &AtomicBool, counts: &Counts) -> io::Result<()> {
    while !closed.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let answer = post(master, call)?.answer()?;
        if answer.status != 200 {
            return Err(io::Error::other(format!("{call} was answered {}", answer.status)));
        }
        counts.calls.fetch_add(1, Ordering::Relaxed);
        let next = Instant::now() + (begin.elapsed() * PART).clamp(EVERY, LATEST);
        while Instant::now() < next && !closed.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

/// Sends a call as a browser does.
fn post(master: SocketAddrV4, call: &str) -> io::Result<Connection> {
    let connection = Connection::open(master)?;
    let body = format!("{{\"type\":\"{call}\"}}");
    let head = format!(
        "POST /api/v1 HTTP/1.1\r\nHost: {master}\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
         Accept-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.socket()?.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    Ok(connection)
}
