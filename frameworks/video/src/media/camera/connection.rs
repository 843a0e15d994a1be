//! A connection to a live source: the `ffmpeg` program, or an uplink of this project.

use super::messages;
use super::process::{Arrival, NoPicture, Process};
use super::uplink::UplinkConnection;
use crate::media::source::{Camera, CameraKind};

/// A connection to a live source.
pub(super) enum Connection {
    Program(Process),
    Uplink(UplinkConnection),
}

impl Connection {
    /// Connects, until `deadline`, or until `stop` returns `true`. `most` is that of
    /// [`FeedOptions`](super::FeedOptions).
    ///
    /// # Errors
    /// Returns the reason why there is no connection.
    pub(super) fn start(
        camera: &Camera,
        most: Option<usize>,
        deadline: f64,
        stop: &dyn Fn() -> bool,
    ) -> Result<Connection, NoPicture> {
        match camera.kind() {
            CameraKind::Uplink => UplinkConnection::start(camera, most, deadline, stop).map(Connection::Uplink),
            _ => Process::start(camera, deadline, stop).map(Connection::Program),
        }
    }

    /// Returns the next picture, if it arrives before `deadline` (of the monotonic clock). It has a timestamp if the
    /// format of the source does.
    ///
    /// # Errors
    /// Returns the reason why there is no picture.
    pub(super) fn next(&mut self, deadline: f64, stop: &dyn Fn() -> bool) -> Result<Arrival, NoPicture> {
        match self {
            Connection::Program(process) => {
                let arrival = process.next(deadline, stop)?;
                let has_stamps = process.format.as_deref().is_none_or(messages::has_stamps);
                Ok(Arrival { stamp: arrival.stamp.filter(|_| has_stamps), ..arrival })
            }
            Connection::Uplink(uplink) => uplink.next(deadline, stop),
        }
    }

    /// Returns the core-seconds that the connection has used.
    pub(super) fn used(&self) -> f64 {
        match self {
            Connection::Program(process) => process.used(),
            Connection::Uplink(uplink) => uplink.used(),
        }
    }
}
