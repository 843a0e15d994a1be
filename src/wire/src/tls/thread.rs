//! The thread of handshakes. Public-key cryptography takes up to a millisecond, for which the thread that serves would
//! answer no one; certificates are read from files there, too.

use std::future::{Future, pending};
use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

/// The runtime of the thread, which lives as long as the process; none if the system has refused it.
fn runtime() -> Option<&'static Handle> {
    static RUNTIME: OnceLock<Option<Handle>> = OnceLock::new();
    let start = || {
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(4).build().ok()?;
        let handle = runtime.handle().clone();
        let run = move || runtime.block_on(pending::<()>());
        std::thread::Builder::new().name("tls".to_owned()).spawn(run).ok()?;
        Some(handle)
    };
    RUNTIME.get_or_init(start).as_ref()
}

/// Ends the work when its result is not waited for any more.
struct Work<T>(JoinHandle<T>);

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Does work on the thread and waits for the result. The work ends where this future is dropped.
///
/// # Errors
/// The work's error, or that there is no such thread.
pub(super) async fn run<T: Send + 'static>(
    work: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<T> {
    let runtime = runtime().ok_or_else(|| io::Error::other("cannot start the thread of TLS handshakes"))?;
    let mut work = Work(runtime.spawn(work));
    match (&mut work.0).await {
        Ok(result) => result,
        Err(ended) => Err(io::Error::other(ended)),
    }
}
