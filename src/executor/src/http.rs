//! A minimal HTTP/1.1 for an executor: the text of a POST, and an incremental reader of responses.
//!
//! It has no sockets. The agent is the only server, so redirects, contents of trailers and responses to other methods
//! are not handled.

use std::fmt::Write;

/// Content type of every request and response.
const PROTOBUF: &str = "application/x-protobuf";
/// Maximum length of a response's head; an agent's have a few hundred bytes.
const HEAD_LIMIT: usize = 64 * 1024;
/// Maximum number of headers of a response.
const HEADERS_LIMIT: usize = 64;

/// Returns a whole request: head and body.
pub(crate) fn post(path: &str, host: &str, token: Option<&str>, body: &[u8]) -> Vec<u8> {
    let mut head = String::with_capacity(256 + body.len());
    // Writing to a String cannot fail.
    let _ = write!(
        head,
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nAccept: {PROTOBUF}\r\nContent-Type: {PROTOBUF}\r\nContent-Length: {}\r\n",
        body.len()
    );
    if let Some(token) = token {
        let _ = write!(head, "Authorization: Bearer {token}\r\n");
    }
    head.push_str("\r\n");
    let mut request = head.into_bytes();
    request.extend_from_slice(body);
    request
}

/// One part of a response.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The head was read; the number is its status.
    Head(u16),
    /// A piece of the body.
    Data(&'a [u8]),
    /// The response is complete; the next one may follow.
    End,
}

/// An error of bytes that are not a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The status line or a header is malformed.
    #[error("The agent's answer has a malformed head")]
    Head,
    /// The head exceeds the limit.
    #[error("The head of the agent's answer is longer than {HEAD_LIMIT} bytes")]
    HeadTooLong,
    /// A chunk has no size or no end.
    #[error("The agent's answer is malformed between two chunks")]
    Chunk,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    /// The rest of the body has this many bytes.
    Length(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
    /// The body ends at the end of the connection.
    Rest,
}

/// A reader of responses from a stream of bytes.
#[derive(Debug, Default)]
pub struct AnswerReader {
    /// Bytes of an incomplete step; never more than a head.
    pending: Vec<u8>,
    state: State,
}

impl AnswerReader {
    /// Creates a reader that expects the start of a response.
    pub fn new() -> AnswerReader {
        AnswerReader::default()
    }

    /// Reads the next bytes, and passes the parts that they complete to `sink`.
    ///
    /// # Errors
    /// The bytes are not a response; the stream cannot be read further.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Part<'_>)) -> Result<(), HttpError> {
        if self.pending.is_empty() {
            let used = self.steps(bytes, sink)?;
            self.pending.extend_from_slice(&bytes[used..]);
        } else {
            let mut all = std::mem::take(&mut self.pending);
            all.extend_from_slice(bytes);
            let used = self.steps(&all, sink)?;
            all.drain(..used);
            self.pending = all;
        }
        if self.pending.len() > HEAD_LIMIT { Err(HttpError::HeadTooLong) } else { Ok(()) }
    }

    /// Reads as many steps as the bytes contain, and returns the number of bytes that were read.
    fn steps(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Part<'_>)) -> Result<usize, HttpError> {
        let mut used = 0;
        while let Some(step) = self.step(&bytes[used..], sink)? {
            used += step;
        }
        Ok(used)
    }

    /// Reads one step and returns its length; `None` if it needs more bytes.
    fn step(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Part<'_>)) -> Result<Option<usize>, HttpError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        match self.state {
            State::Head => self.head(bytes, sink),
            State::Length(left) => {
                let (taken, left) = data(bytes, left, sink);
                self.state = State::Length(left);
                self.end_if(left == 0, sink);
                Ok(Some(taken))
            }
            State::ChunkSize => match httparse::parse_chunk_size(bytes) {
                Ok(httparse::Status::Complete((used, size))) => {
                    self.state = if size == 0 { State::Trailers } else { State::Chunk(size) };
                    Ok(Some(used))
                }
                Ok(httparse::Status::Partial) => Ok(None),
                Err(_) => Err(HttpError::Chunk),
            },
            State::Chunk(left) => {
                let (taken, left) = data(bytes, left, sink);
                self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                Ok(Some(taken))
            }
            State::ChunkEnd | State::Trailers => self.line(bytes, sink),
            State::Rest => {
                sink(Part::Data(bytes));
                Ok(Some(bytes.len()))
            }
        }
    }

    /// Reads the line end of a chunk, or a line after the last chunk.
    fn line(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Part<'_>)) -> Result<Option<usize>, HttpError> {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        match (self.state, end) {
            (State::ChunkEnd, 0) => self.state = State::ChunkSize,
            (State::ChunkEnd, _) => return Err(HttpError::Chunk),
            (_, end) => self.end_if(end == 0, sink),
        }
        Ok(Some(end + 2))
    }

    fn end_if(&mut self, ended: bool, sink: &mut dyn FnMut(Part<'_>)) {
        if ended {
            self.state = State::Head;
            sink(Part::End);
        }
    }

    fn head(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Part<'_>)) -> Result<Option<usize>, HttpError> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
        let mut response = httparse::Response::new(&mut headers);
        let used = match response.parse(bytes) {
            Ok(httparse::Status::Complete(used)) => used,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(HttpError::Head),
        };
        let status = response.code.ok_or(HttpError::Head)?;
        if (100..200).contains(&status) {
            return Ok(Some(used));
        }
        self.state = body_state(status, response.headers)?;
        sink(Part::Head(status));
        self.end_if(self.state == State::Length(0), sink);
        Ok(Some(used))
    }
}

/// Returns how the body of a response with these headers is framed.
fn body_state(status: u16, headers: &[httparse::Header<'_>]) -> Result<State, HttpError> {
    let find = |name: &str| headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value);
    if status == 204 || status == 304 {
        return Ok(State::Length(0));
    }
    if find("Transfer-Encoding").is_some_and(|value| value.eq_ignore_ascii_case(b"chunked")) {
        return Ok(State::ChunkSize);
    }
    let Some(length) = find("Content-Length") else { return Ok(State::Rest) };
    let length = std::str::from_utf8(length).ok().map(str::trim);
    let length =
        length.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit())).and_then(|text| text.parse().ok());
    length.map(State::Length).ok_or(HttpError::Head)
}

/// Passes at most `left` bytes to `sink`. Returns their number, and the rest of `left`.
fn data(bytes: &[u8], left: u64, sink: &mut dyn FnMut(Part<'_>)) -> (usize, u64) {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    sink(Part::Data(&bytes[..taken]));
    (taken, left - taken as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what the reader passes on for `text` in pieces of `size`: heads as numbers, data joined, ends as `.`.
    fn read(text: &str, size: usize) -> Result<String, HttpError> {
        let mut reader = AnswerReader::new();
        let mut seen = String::new();
        for piece in text.as_bytes().chunks(size) {
            reader.feed(piece, &mut |part| match part {
                Part::Head(status) => seen.push_str(&format!("[{status}]")),
                Part::Data(data) => seen.push_str(std::str::from_utf8(data).unwrap()),
                Part::End => seen.push('.'),
            })?;
        }
        Ok(seen)
    }

    #[test]
    fn answers_in_pieces_of_every_size() {
        let text = "HTTP/1.1 100 Continue\r\n\r\n\
                    HTTP/1.1 202 Accepted\r\nDate: x\r\ncontent-length: 0\r\n\r\n\
                    HTTP/1.1 400 Bad Request\r\nContent-Length: 5\r\n\r\nwrong\
                    HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0A;x=y\r\n0123456789\r\n0\r\nT: t\r\n\r\n\
                    HTTP/1.1 204 No Content\r\n\r\n\
                    HTTP/1.0 200 OK\r\n\r\nto the end";
        for size in 1..=text.len() {
            assert_eq!(
                read(text, size).unwrap(),
                "[202].[400]wrong.[200]abc0123456789.[204].[200]to the end",
                "{size}"
            );
        }
    }

    #[test]
    fn malformed_answers() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(HEAD_LIMIT));
        for (text, error) in [
            ("nonsense\r\n\r\n", HttpError::Head),
            ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", HttpError::Head),
            ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na", HttpError::Head),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", HttpError::Chunk),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", HttpError::Chunk),
            (&long, HttpError::HeadTooLong),
        ] {
            assert_eq!(read(text, 1024), Err(error), "{text:.60}");
        }
    }

    #[test]
    fn request() {
        let text = String::from_utf8(post("/p", "h:1", Some("t"), b"body")).unwrap();
        assert!(text.starts_with("POST /p HTTP/1.1\r\nHost: h:1\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 4\r\nAuthorization: Bearer t\r\n\r\nbody"), "{text}");
    }
}
