//! A viewer of a live view: reads it through a link of limited bandwidth, and reports what was received. It shows
//! nothing.
//!
//! The link is simulated by reading no faster than it carries, with a small receive buffer in the kernel. The sender's
//! connection then accepts no more either, as with a slow network.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;
use wire::client::Address;

use crate::abr::live::RUNGS;
use crate::bitrate::Trace;
use crate::picture_stream::{PictureHeader, PictureReader, StreamError};

/// Time without a new picture after which the view is stalled, in seconds.
const STANDS: f64 = 1.0;
/// Longest wait for the connection and for the response.
const PATIENCE: Duration = Duration::from_secs(20);

/// Statistics of a live view.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewStatistics {
    /// Seconds from the first picture to the end.
    pub seconds: f64,
    /// Number of pictures.
    pub pictures: u64,
    /// Number of pictures that were skipped for this viewer, according to the last one.
    pub left_out: u64,
    /// Mean received bitrate in Mbit/s.
    pub megabits: f64,
    /// Mean rung over time.
    pub rung: f64,
    /// Mean over time of the nominal bitrate of its rungs, in Mbit/s.
    pub meant: f64,
    /// Time for which the view was stalled, in seconds: the excess over one second without a new picture.
    pub stands: f64,
    /// Mean delay of pictures in seconds, relative to the picture that was earliest.
    pub delay: f64,
    /// 95th percentile of the delay in seconds.
    pub delay_95: f64,
    /// Number of changes of the rung.
    pub changes: u64,
    /// Rung of the last picture.
    pub last_rung: usize,
}

/// Reason why a live view cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The connection to this address failed.
    #[error("the live view at {0} cannot be read")]
    Io(Address, #[source] std::io::Error),
    /// The framework refused the request, with this answer.
    #[error("the framework answered: {0}")]
    Refused(String),
    /// The response is not a live view; the text names the rule that it breaks.
    #[error("the response is not a live view: {0}")]
    Malformed(&'static str),
}

impl ViewError {
    fn of(error: StreamError, address: &Address) -> ViewError {
        match error {
            StreamError::Io(error) => ViewError::Io(address.clone(), error),
            StreamError::Refused(_, text) => ViewError::Refused(text),
            StreamError::Malformed(rule) => ViewError::Malformed(rule),
        }
    }
}

/// Watches a live view for this many seconds after the first picture. `path` is the path of the view with its query.
/// Without a trace the link is not limited. TLS is used as by any other client of this process for that address.
///
/// # Errors
/// Returns an error if there is no connection, the request is refused, or the response is not a live view.
pub async fn watch(
    address: &Address,
    path: &str,
    link: Option<Arc<Trace>>,
    seconds: f64,
    mut each: impl FnMut(&ViewStatistics),
) -> Result<ViewStatistics, ViewError> {
    let failed = |error| ViewError::of(error, address);
    let opened = PictureReader::open(address, path, None, link);
    let late = |_| failed(std::io::Error::from(std::io::ErrorKind::TimedOut).into());
    let mut reader = tokio::time::timeout(PATIENCE, opened).await.map_err(late)?.map_err(failed)?;
    let (mut recorder, mut began): (ViewRecorder, Option<Instant>) = (ViewRecorder::default(), None);
    loop {
        let end = began.map(|began| began + Duration::from_secs_f64(seconds));
        let next = reader.picture();
        let picture = match end {
            None => next.await,
            Some(end) => match tokio::time::timeout_at(end, next).await {
                Ok(next) => next,
                Err(_) => return Ok(recorder.statistics(seconds)),
            },
        };
        let Some((picture, _)) = picture.map_err(failed)? else {
            return Ok(recorder.statistics(began.map_or(0.0, |began| began.elapsed().as_secs_f64())));
        };
        let began = *began.get_or_insert_with(Instant::now);
        recorder.record_picture(began.elapsed().as_secs_f64(), &picture);
        each(&recorder.statistics(began.elapsed().as_secs_f64()));
    }
}

/// Statistics of what was received so far.
#[derive(Debug, Default)]
struct ViewRecorder {
    last: Option<(f64, PictureHeader)>,
    pictures: u64,
    bytes: usize,
    /// Integral of the rung over time in seconds; that of the bitrate follows.
    rung: f64,
    meant: f64,
    stands: f64,
    changes: u64,
    /// Arrival time less stream time of each of the last pictures, in seconds.
    delays: Vec<f64>,
}

/// Maximum number of delays that are kept.
const DELAYS_MAX: usize = 100_000;

impl ViewRecorder {
    fn record_picture(&mut self, at: f64, came: &PictureHeader) {
        self.shown_until(at);
        if self.last.as_ref().is_some_and(|(_, last)| last.rung != came.rung) {
            self.changes += 1;
        }
        self.last = Some((at, *came));
        self.pictures += 1;
        self.bytes += came.bytes;
        if self.delays.len() < DELAYS_MAX {
            self.delays.push(at - came.seconds);
        }
    }

    /// Counts the last picture as shown until this time.
    fn shown_until(&mut self, at: f64) {
        let Some((since, last)) = self.last else { return };
        self.rung += last.rung as f64 * (at - since);
        self.meant += f64::from(RUNGS[last.rung].kilobits) / 1e3 * (at - since);
        self.stands += (at - since - STANDS).max(0.0);
    }

    fn statistics(&self, seconds: f64) -> ViewStatistics {
        let mut now = ViewRecorder { delays: Vec::new(), ..*self };
        now.shown_until(seconds);
        let mut delays = self.delays.clone();
        delays.sort_by(f64::total_cmp);
        let earliest = delays.first().copied().unwrap_or(0.0);
        let mean = delays.iter().sum::<f64>() / delays.len().max(1) as f64;
        let (time, last) = (seconds.max(1e-9), self.last.unwrap_or_default().1);
        ViewStatistics {
            seconds,
            pictures: self.pictures,
            left_out: last.left_out,
            megabits: self.bytes as f64 * 8e-6 / time,
            rung: now.rung / time,
            meant: now.meant / time,
            stands: now.stands,
            delay: mean - earliest,
            delay_95: delays.get(delays.len() * 95 / 100).map_or(0.0, |delay| delay - earliest),
            changes: self.changes,
            last_rung: last.rung,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn picture(rung: usize, seconds: f64) -> Vec<u8> {
        let mut jpeg = vec![7; 1000];
        jpeg[..2].copy_from_slice(&[0xff, 0xd8]);
        PictureHeader { bytes: 1000, seconds, rung, left_out: 3, source_size: None }.part(&jpeg)
    }

    /// Starts a server that sends this answer and closes the connection.
    async fn server(answer: Vec<u8>) -> Address {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string().parse().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(&answer).await.unwrap();
        });
        address
    }

    #[tokio::test]
    async fn pictures_are_read_one_after_the_other() {
        let mut answer = b"HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace\r\n\r\n".to_vec();
        for n in 0..3 {
            answer.extend(picture(n, n as f64));
        }
        let address = server(answer).await;
        let mut seen = Vec::new();
        let statistics =
            watch(&address, "/queries/a/live", None, 60.0, |statistics| seen.push(statistics.last_rung)).await.unwrap();
        assert_eq!((statistics.pictures, statistics.left_out, statistics.changes, statistics.last_rung), (3, 3, 2, 2));
        assert_eq!(seen, [0, 1, 2]);
    }

    #[tokio::test]
    async fn refusals_and_other_streams_are_told() {
        for (answer, text) in [
            ("HTTP/1.0 404 Not Found\r\n\r\n", "404 Not Found"),
            ("HTTP/1.1 400 Bad Request\r\na: b\r\n\r\nuse https://\r\nmore", "400 Bad Request: use https://"),
        ] {
            let refused = server(answer.into()).await;
            let error = watch(&refused, "/", None, 1.0, |_| {}).await.unwrap_err().to_string();
            assert_eq!(error, format!("the framework answered: {text}"));
        }
        let unknown = server(b"RTSP\r\n\r\n".to_vec()).await;
        assert!(matches!(watch(&unknown, "/", None, 1.0, |_| {}).await, Err(ViewError::Malformed(_))));
        let other = server(b"HTTP/1.0 200 OK\r\n\r\n--x\r\nContent-Length: 5\r\n\r\nabc".to_vec()).await;
        assert!(matches!(watch(&other, "/", None, 1.0, |_| {}).await, Err(ViewError::Malformed(_))));
    }

    #[test]
    fn standing_is_what_is_beyond_a_second() {
        let mut recorder = ViewRecorder::default();
        let came = |rung, seconds| PictureHeader { bytes: 1000, seconds, rung, ..PictureHeader::default() };
        recorder.record_picture(0.0, &came(1, 10.0));
        recorder.record_picture(0.5, &came(1, 10.5));
        recorder.record_picture(4.5, &came(3, 11.0));
        let statistics = recorder.statistics(5.0);
        assert!((statistics.stands - 3.0).abs() < 1e-9, "{statistics:?}");
        assert!((statistics.rung - (4.5 + 1.5) / 5.0).abs() < 1e-9 && statistics.changes == 1, "{statistics:?}");
        assert!((statistics.delay_95 - 3.5).abs() < 1e-9, "{statistics:?}");
    }
}
