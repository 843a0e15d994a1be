//! The thread of handshakes. Public-key cryptography takes up to a millisecond, in which the serving thread could
//! answer no requests. Certificates are read from files there, too.

use std::future::{Future, pending};
use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;

/// Returns the runtime of the thread, which lives as long as the process; `None` if the system has refused to start the
/// thread.
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

/// A task that is aborted when its result is not awaited any more.
struct Work<T>(JoinHandle<T>);

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs a future on the thread and waits for its result. It is aborted when this future is dropped.
///
/// # Errors
/// The error of the future, or that there is no such thread.
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
