//! A camera's uplink: sends the pictures of a source on this machine to workers elsewhere, to each in the size, quality
//! and rate that its connection carries. Detects nothing in them.
//!
//! Workers read an uplink as `uplink://host:port`; browsers and `ffmpeg` as `http://host:port/`.

mod api;
mod capture;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sdk::driver::api::{Serving, serve_prompt};
use tokio::sync::oneshot;

use crate::media::{MediaError, Source};
use crate::picture_stream::Views;
use api::UplinkApi;
use capture::Capture;

/// Name of the only stream of an uplink.
const STREAM: &str = "camera";

/// Options of an uplink.
#[derive(Debug)]
pub struct UplinkOptions {
    /// Source of the pictures.
    pub source: Source,
    /// Whether a file begins again at its end.
    pub repeat: bool,
    /// Listening address.
    pub listen: SocketAddr,
    /// User and password that readers must have (HTTP Basic); `None` for no authentication.
    pub credential: Option<(String, String)>,
}

/// Reason why an uplink does not run.
#[derive(Debug, thiserror::Error)]
pub enum UplinkError {
    /// The process cannot listen at this address.
    #[error("cannot listen at {0}")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// The source cannot be read.
    #[error("the source cannot be read")]
    Source(#[from] MediaError),
}

/// A running uplink; dropping it stops it.
#[derive(Debug)]
pub struct Uplink {
    serving: Serving,
    stop: Arc<AtomicBool>,
    ended: oneshot::Receiver<Result<(), MediaError>>,
}

impl Uplink {
    /// Starts to read the source and to listen.
    ///
    /// # Errors
    /// Returns an error if the process cannot listen at the address, or the file cannot be opened. A camera that does
    /// not answer is not an error: it is tried again.
    pub async fn start(options: UplinkOptions) -> Result<Uplink, UplinkError> {
        let views = Arc::new(Views::default());
        let stop = Arc::new(AtomicBool::new(false));
        let capture = Capture::open(&options.source, options.repeat, views.clone(), stop.clone())?;
        let api = UplinkApi { views: views.clone(), status: capture.status(), credential: options.credential };
        let serving =
            serve_prompt(options.listen, Arc::new(api)).map_err(|error| UplinkError::Listen(options.listen, error))?;
        let (sender, ended) = oneshot::channel();
        std::thread::spawn(move || {
            let result = capture.run();
            views.close(STREAM);
            // Without a receiver the uplink was dropped.
            let _ = sender.send(result);
        });
        Ok(Uplink { serving, stop, ended })
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.serving.address()
    }

    /// Returns the URL for browsers.
    pub fn url(&self) -> String {
        self.serving.url()
    }

    /// Waits until the source ends.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read to its end, or a lost camera was given up.
    pub async fn wait(&mut self) -> Result<(), UplinkError> {
        // A thread that ended without a result has panicked, which has been reported.
        Ok((&mut self.ended).await.unwrap_or(Ok(()))?)
    }
}

impl Drop for Uplink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
