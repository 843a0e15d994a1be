//! Reads the pictures of a camera's uplink. Does not reconnect.

use std::pin::pin;
use std::time::Duration;

use tokio::runtime::Runtime;

use super::process::{Arrival, LOOK, NoPicture};
use crate::clock;
use crate::media::codec;
use crate::media::source::{Camera, UplinkAddress};
use crate::picture_stream::{PictureReader, StreamError};
use crate::profile::core_seconds;
use crate::vision::enlarge;

/// A connection to an uplink.
pub(super) struct UplinkConnection {
    runtime: Runtime,
    reader: PictureReader,
    /// Core-seconds of this thread at the start.
    before: f64,
}

impl UplinkConnection {
    /// Connects, until `deadline`, or until `stop` returns `true`. `most` is the highest rung to request if the address
    /// names none.
    ///
    /// # Errors
    /// Returns the reason why there is no connection.
    pub(super) fn start(
        camera: &Camera,
        most: Option<usize>,
        deadline: f64,
        stop: &dyn Fn() -> bool,
    ) -> Result<UplinkConnection, NoPicture> {
        let before = core_seconds();
        let not_an_uplink = || NoPicture::Unreadable("the address is not that of an uplink".to_owned());
        let UplinkAddress { address, path, authorization } = camera.uplink(most).ok_or_else(not_an_uplink)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| NoPicture::Ended(Some(error.to_string())))?;
        let opened = PictureReader::open(&address, &path, authorization.as_deref(), None);
        let reader = wait(&runtime, opened, deadline, stop)?;
        Ok(UplinkConnection { runtime, reader, before })
    }

    /// Returns the next picture in the size of the source, if it arrives before `deadline`.
    ///
    /// # Errors
    /// Returns the reason why there is no picture.
    pub(super) fn next(&mut self, deadline: f64, stop: &dyn Fn() -> bool) -> Result<Arrival, NoPicture> {
        let picture = wait(&self.runtime, self.reader.picture(), deadline, stop)?;
        let Some((header, jpeg)) = picture else { return Err(NoPicture::Ended(None)) };
        let at = clock::monotonic();
        let frame = codec::jpeg(&jpeg).map_err(|error| NoPicture::Ended(Some(base::error_chain(&error))))?;
        // Rungs differ in size. A query learns the background again if the size of pictures changes.
        let frame = match header.source_size {
            Some((width, height)) => enlarge(frame, width, height),
            None => frame,
        };
        Ok(Arrival { stamp: Some(header.seconds), at, frame })
    }

    /// Returns the core-seconds that this thread has used for the connection.
    pub(super) fn used(&self) -> f64 {
        core_seconds() - self.before
    }
}

/// Waits for a result until `deadline` (of the monotonic clock), or until `stop` returns `true`.
fn wait<T>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T, StreamError>>,
    deadline: f64,
    stop: &dyn Fn() -> bool,
) -> Result<T, NoPicture> {
    runtime.block_on(async {
        let mut work = pin!(work);
        loop {
            if stop() {
                return Err(NoPicture::Stopped);
            }
            if clock::monotonic() >= deadline {
                return Err(NoPicture::Silent);
            }
            if let Ok(result) = tokio::time::timeout(Duration::from_secs_f64(LOOK), work.as_mut()).await {
                return result.map_err(reason);
            }
        }
    })
}

fn reason(error: StreamError) -> NoPicture {
    let text = base::error_chain(&error);
    match error {
        StreamError::Refused(401, _) => NoPicture::Unreadable(format!(
            "{text}; its address needs a user and a password: uplink://USER:PASSWORD@..."
        )),
        // Another attempt would get the same answer.
        StreamError::Refused(400..500, _) | StreamError::Malformed(_) => NoPicture::Unreadable(text),
        StreamError::Io(_) | StreamError::Refused(..) => NoPicture::Ended(Some(text)),
    }
}
