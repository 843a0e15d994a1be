//! Reads a picture stream from a connection. Decodes no pictures.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::Socket;
use wire::client::{Address, connect_buffered};

use super::{Link, PictureHeader};
use crate::bitrate::Trace;

/// Size of the kernel's receive buffer in bytes where a link is simulated.
const LINK_BUFFER: u32 = 16 << 10;
/// Number of bytes that are read at once.
const PIECE: usize = 4 << 10;
/// Maximum size of a header.
const HEAD_MAX: usize = 8 << 10;
/// Maximum number of bytes of a refusal's text that are read; the longest wait for them follows.
const REFUSAL_MAX: usize = 200;
const REFUSAL_WAIT: Duration = Duration::from_secs(1);

/// Reason why a picture stream cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server refused the request, with this status code, and with this status and first line of text.
    #[error("the server answered: {1}")]
    Refused(u16, String),
    /// The response is not a picture stream; the text names the rule that it breaks.
    #[error("the response is not a stream of pictures: {0}")]
    Malformed(&'static str),
}

/// A connection from which pictures are read. A read that is cancelled loses nothing, except with a simulated link.
pub(crate) struct PictureReader {
    stream: Socket,
    link: Option<Link>,
    kept: Vec<u8>,
}

impl PictureReader {
    /// Connects, requests a path, and reads the response's head. With a trace the connection is read no faster than the
    /// link of the trace carries, with a small receive buffer in the kernel, so that the sender's connection accepts no
    /// more either. TLS is used as by any other client of this process for that address.
    pub(crate) async fn open(
        address: &Address,
        path: &str,
        authorization: Option<&str>,
        link: Option<Arc<Trace>>,
    ) -> Result<PictureReader, StreamError> {
        let mut stream = connect_buffered(address, link.is_some().then_some(LINK_BUFFER)).await?;
        let authorization = authorization.map_or_else(String::new, |value| format!("Authorization: {value}\r\n"));
        // In HTTP/1.0 a stream is not chunked.
        let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{authorization}\r\n");
        stream.write_all(request.as_bytes()).await?;
        stream.flush().await?;
        let mut reader = PictureReader { stream, link: link.map(Link::new), kept: Vec::new() };
        let end = reader.head_end().await?.ok_or(io::ErrorKind::UnexpectedEof).map_err(io::Error::from)?;
        let head = String::from_utf8_lossy(&reader.kept[..end]).into_owned();
        reader.kept.drain(..end + 4);
        let status = head.lines().next().and_then(|line| line.split_once(' ')).map_or("", |(_, status)| status);
        match status.split(' ').next().and_then(|code| code.parse().ok()) {
            Some(200) => Ok(reader),
            Some(code) => Err(reader.refusal(code, status).await),
            None => Err(StreamError::Malformed("the response of a server begins with HTTP and a status")),
        }
    }

    /// Returns the error for a refused request, with the first line of the response's body.
    async fn refusal(mut self, code: u16, status: &str) -> StreamError {
        let body = async { while self.kept.len() < REFUSAL_MAX && self.more().await.unwrap_or(false) {} };
        // A server may keep the connection open.
        let _ = tokio::time::timeout(REFUSAL_WAIT, body).await;
        let body = String::from_utf8_lossy(&self.kept[..self.kept.len().min(REFUSAL_MAX)]).into_owned();
        let line = body.lines().next().unwrap_or_default().trim();
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        let separator = if line.is_empty() { "" } else { ": " };
        StreamError::Refused(code, format!("{status}{separator}{line}"))
    }

    /// Reads the next picture, a JPEG file; `None` at the end.
    pub(crate) async fn picture(&mut self) -> Result<Option<(PictureHeader, Vec<u8>)>, StreamError> {
        let Some(end) = self.head_end().await? else { return Ok(None) };
        let head = String::from_utf8_lossy(&self.kept[..end]).into_owned();
        let header = PictureHeader::parse(&head).map_err(StreamError::Malformed)?;
        // The line end after the picture belongs to it. The header is kept until the picture is complete.
        let (from, to) = (end + 4, end + 4 + header.bytes);
        while self.kept.len() < to + 2 {
            if !self.more().await? {
                return Ok(None);
            }
        }
        let jpeg = self.kept[from..to].to_vec();
        if jpeg[..2] != [0xff, 0xd8] {
            return Err(StreamError::Malformed("a picture must be a JPEG file"));
        }
        self.kept.drain(..to + 2);
        Ok(Some((header, jpeg)))
    }

    /// Reads up to the next empty line and returns its position; `None` if the stream ends before.
    async fn head_end(&mut self) -> Result<Option<usize>, StreamError> {
        loop {
            if let Some(end) = self.kept.windows(4).take(HEAD_MAX).position(|four| four == b"\r\n\r\n") {
                return Ok(Some(end));
            }
            if self.kept.len() > HEAD_MAX {
                return Err(StreamError::Malformed("a header has at most 8192 bytes"));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// Reads more bytes. Returns whether there are any.
    async fn more(&mut self) -> io::Result<bool> {
        let mut piece = [0; PIECE];
        let read = self.stream.read(&mut piece).await?;
        if let Some(link) = &mut self.link {
            link.carry(read).await;
        }
        self.kept.extend_from_slice(&piece[..read]);
        Ok(read > 0)
    }
}
