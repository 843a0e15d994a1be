//! A viewer of a live view: reads it through a link of limited bandwidth, and reports what was received. It shows
//! nothing.
//!
//! The link is simulated by reading no faster than it carries, with a small receive buffer in the kernel. The sender's
//! connection then accepts no more either, as with a slow network.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;
use wire::Socket;
use wire::client::{Address, connect_buffered};

use crate::abr::live::RUNGS;
use crate::bitrate::Trace;

/// Size of the kernel's receive buffer in bytes.
const RECEIVE_BUFFER: u32 = 16 << 10;
/// Number of bytes that are read at once.
const PIECE: usize = 4 << 10;
/// Maximum size of the header of a picture; that of the picture follows.
const HEAD_MAX: usize = 8 << 10;
const PICTURE_MAX: usize = 16 << 20;
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
    let io = |why| ViewError::Io(address.clone(), why);
    let late = || io(std::io::ErrorKind::TimedOut.into());
    let connected =
        tokio::time::timeout(PATIENCE, connect_buffered(address, Some(RECEIVE_BUFFER))).await.map_err(|_| late())?;
    let mut stream = connected.map_err(io)?;
    // In HTTP/1.0 a stream is not chunked.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(io)?;
    stream.flush().await.map_err(io)?;
    let mut reader = Reader { stream, link: link.map(Link::new), kept: Vec::new() };
    let answer = tokio::time::timeout(PATIENCE, reader.head()).await.map_err(|_| late())?.map_err(io)?;
    if !answer.lines().next().is_some_and(|line| line.contains(" 200")) {
        return Err(ViewError::Refused(answer.lines().next().unwrap_or_default().to_owned()));
    }
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
        let Some(picture) = picture.map_err(io)?? else {
            return Ok(recorder.statistics(began.map_or(0.0, |began| began.elapsed().as_secs_f64())));
        };
        let began = *began.get_or_insert_with(Instant::now);
        recorder.record_picture(began.elapsed().as_secs_f64(), &picture);
        each(&recorder.statistics(began.elapsed().as_secs_f64()));
    }
}

/// A received picture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ReceivedPicture {
    bytes: usize,
    seconds: f64,
    rung: usize,
    left_out: u64,
}

/// Reads a connection at the bandwidth of a link.
struct Reader {
    stream: Socket,
    link: Option<Link>,
    kept: Vec<u8>,
}

/// The transfer times of a simulated link.
struct Link {
    trace: Arc<Trace>,
    began: Instant,
    /// Time in seconds since the start at which all bytes are transferred.
    through: f64,
}

impl Link {
    fn new(trace: Arc<Trace>) -> Link {
        Link { trace, began: Instant::now(), through: 0.0 }
    }

    /// Waits until this many further bytes are transferred.
    async fn carry(&mut self, bytes: usize) {
        let due = self.due(self.began.elapsed().as_secs_f64(), bytes);
        tokio::time::sleep_until(self.began + Duration::from_secs_f64(due)).await;
    }

    /// Returns the time at which bytes that are available now are transferred.
    fn due(&mut self, now: f64, bytes: usize) -> f64 {
        let from = self.through.max(now);
        self.through = from + self.trace.transfer(from, bytes as f64, 1.0);
        self.through
    }
}

impl Reader {
    /// Reads more bytes. Returns whether there are any.
    async fn more(&mut self) -> std::io::Result<bool> {
        let mut piece = [0; PIECE];
        let read = self.stream.read(&mut piece).await?;
        if let Some(link) = &mut self.link {
            link.carry(read).await;
        }
        self.kept.extend_from_slice(&piece[..read]);
        Ok(read > 0)
    }

    /// Reads the lines up to the next empty one.
    async fn head(&mut self) -> std::io::Result<String> {
        loop {
            if let Some(end) = self.kept.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.kept[..end]).into_owned();
                self.kept.drain(..end + 4);
                return Ok(head);
            }
            if self.kept.len() > HEAD_MAX {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            if !self.more().await? {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads the next picture; `None` at the end.
    async fn picture(&mut self) -> std::io::Result<Result<Option<ReceivedPicture>, ViewError>> {
        let head = match self.head().await {
            Err(why) if why.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(Ok(None)),
            head => head?,
        };
        let came = match parse_header(&head) {
            Ok(came) => came,
            Err(why) => return Ok(Err(why)),
        };
        // The line end after the picture belongs to it.
        while self.kept.len() < came.bytes + 2 {
            if !self.more().await? {
                return Ok(Ok(None));
            }
        }
        if self.kept[..2] != [0xff, 0xd8] {
            return Ok(Err(ViewError::Malformed("a picture must be a JPEG file")));
        }
        self.kept.drain(..came.bytes + 2);
        Ok(Ok(Some(came)))
    }
}

/// Parses the header of a picture.
fn parse_header(head: &str) -> Result<ReceivedPicture, ViewError> {
    let value = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    };
    fn number<T: std::str::FromStr>(text: Option<String>) -> Option<T> {
        text.and_then(|text| text.parse().ok())
    }
    let missing = ViewError::Malformed("a picture must have its length, seconds and rung");
    let (Some(bytes), Some(seconds), Some(rung)) = (
        number::<usize>(value("Content-Length")).filter(|bytes| (2..=PICTURE_MAX).contains(bytes)),
        number::<f64>(value("X-Tepui-Seconds")),
        number::<usize>(value("X-Tepui-Rung")).filter(|rung| *rung < RUNGS.len()),
    ) else {
        return Err(missing);
    };
    Ok(ReceivedPicture { bytes, seconds, rung, left_out: number(value("X-Tepui-Left-Out")).unwrap_or(0) })
}

/// Statistics of what was received so far.
#[derive(Debug, Default)]
struct ViewRecorder {
    last: Option<(f64, ReceivedPicture)>,
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
    fn record_picture(&mut self, at: f64, came: &ReceivedPicture) {
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
    use super::*;

    fn picture(rung: usize, seconds: f64) -> Vec<u8> {
        let mut bytes = format!(
            "--x\r\nContent-Type: image/jpeg\r\nContent-Length: 1000\r\nX-Tepui-Seconds: {seconds}\r\nX-Tepui-Rung: \
             {rung}\r\nX-Tepui-Left-Out: 3\r\n\r\n"
        )
        .into_bytes();
        bytes.extend([0xff, 0xd8]);
        bytes.extend([7; 998]);
        bytes.extend(b"\r\n");
        bytes
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
        let refused = server(b"HTTP/1.0 404 Not Found\r\n\r\n".to_vec()).await;
        let error = watch(&refused, "/", None, 1.0, |_| {}).await.unwrap_err().to_string();
        assert_eq!(error, "the framework answered: HTTP/1.0 404 Not Found");
        let other = server(b"HTTP/1.0 200 OK\r\n\r\n--x\r\nContent-Length: 5\r\n\r\nabc".to_vec()).await;
        assert!(matches!(watch(&other, "/", None, 1.0, |_| {}).await, Err(ViewError::Malformed(_))));
    }

    #[test]
    fn a_link_carries_what_its_trace_says() {
        let mut link = Link::new(Arc::new(Trace::new(&[(1.0, 0.8), (1.0, 1.6)]).unwrap()));
        let first = link.due(0.0, 100_000);
        let second = link.due(0.2, 100_000);
        let third = link.due(3.0, 100_000);
        assert!((first - 1.0).abs() < 1e-9 && (second - 1.5).abs() < 1e-9 && (third - 3.5).abs() < 1e-9);
    }

    #[test]
    fn standing_is_what_is_beyond_a_second() {
        let mut recorder = ViewRecorder::default();
        let came = |rung, seconds| ReceivedPicture { bytes: 1000, seconds, rung, left_out: 0 };
        recorder.record_picture(0.0, &came(1, 10.0));
        recorder.record_picture(0.5, &came(1, 10.5));
        recorder.record_picture(4.5, &came(3, 11.0));
        let statistics = recorder.statistics(5.0);
        assert!((statistics.stands - 3.0).abs() < 1e-9, "{statistics:?}");
        assert!((statistics.rung - (4.5 + 1.5) / 5.0).abs() < 1e-9 && statistics.changes == 1, "{statistics:?}");
        assert!((statistics.delay_95 - 3.5).abs() < 1e-9, "{statistics:?}");
    }
}
