//! Pipelines calls on one connection: a call does not wait for the responses to earlier ones, which arrive in the same
//! order.
//!
//! A scheduler calls often, since each update needs an acknowledgement. Waiting for each response would limit it to one
//! call in a round trip. Mesos's own library pipelines as well. This module does not interpret the calls.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use httparse::Status;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::Socket;
use wire::client::Address;
use wire::http::StatusCode;

/// Maximum time for connecting to a master.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Maximum length of a response in bytes: it is a status and a sentence.
const ANSWER_MAX: usize = 1 << 20;
/// Maximum number of headers of a response.
const HEADERS_MAX: usize = 64;

/// Response to a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) text: String,
}

/// Reason why a connection delivers no more responses.
#[derive(Debug, thiserror::Error)]
pub(super) enum PipelineError {
    #[error("cannot connect to {0}")]
    Connect(Address, #[source] io::Error),
    #[error("the connection to the master broke")]
    Io(#[from] io::Error),
    #[error("the master closed the connection")]
    Closed,
    #[error("the master's answer is not HTTP")]
    Malformed,
    #[error("the master has not answered a call for {} s", .0.as_secs())]
    Late(Duration),
}

/// An open connection with pipelined requests.
#[derive(Debug)]
pub(super) struct Pipeline {
    stream: Socket,
    out: Vec<u8>,
    input: BytesMut,
}

impl Pipeline {
    pub(super) async fn open(address: &Address) -> Result<Pipeline, PipelineError> {
        let connecting = wire::client::connect(address);
        let connected = tokio::time::timeout(CONNECT_WITHIN, connecting).await.unwrap_or_else(|late| Err(late.into()));
        let stream = connected.map_err(|error| PipelineError::Connect(address.clone(), error))?;
        Ok(Pipeline { stream, out: Vec::new(), input: BytesMut::new() })
    }

    /// Adds a request to the output buffer: `head` is its head up to the length of the body.
    pub(super) fn put(&mut self, head: &str, body: &[u8]) {
        for part in [head.as_bytes(), body.len().to_string().as_bytes(), b"\r\n\r\n", body] {
            self.out.extend_from_slice(part);
        }
    }

    /// Sends the requests in the output buffer.
    pub(super) async fn flush(&mut self) -> Result<(), PipelineError> {
        self.stream.write_all(&self.out).await?;
        self.stream.flush().await?;
        self.out.clear();
        Ok(())
    }

    /// Waits for the next response and returns it. Cancelling the future loses nothing.
    pub(super) async fn answer(&mut self) -> Result<Answer, PipelineError> {
        loop {
            if let Some((answer, length)) = parse(&self.input)? {
                let _ = self.input.split_to(length);
                return Ok(answer);
            }
            if self.input.len() > ANSWER_MAX {
                return Err(PipelineError::Malformed);
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(PipelineError::Closed);
            }
        }
    }
}

/// Parses the response at the start of `input` and returns it with its length; `None` if it is incomplete.
fn parse(input: &[u8]) -> Result<Option<(Answer, usize)>, PipelineError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let Status::Complete(head) = response.parse(input).map_err(|_| PipelineError::Malformed)? else { return Ok(None) };
    let code = response.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(PipelineError::Malformed)?;
    let body = &input[head..];
    if code.is_informational() {
        // An informational response (1xx): the final one follows.
        return Ok(parse(body)?.map(|(answer, length)| (answer, head + length)));
    }
    let header = |name: &str| {
        let found = response.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok().map(str::trim)
    };
    let found = if header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        chunks(body)?
    } else {
        let length = header("content-length").map_or(Ok(0), str::parse).map_err(|_| PipelineError::Malformed)?;
        body.get(..length).map(|body| (body.to_vec(), length))
    };
    let answer = |(text, length): (Vec<u8>, usize)| {
        (Answer { status: code, text: String::from_utf8_lossy(&text).into_owned() }, head + length)
    };
    Ok(found.map(answer))
}

/// Decodes a chunked body and returns it with its encoded length; `None` if it is incomplete. Trailers are not
/// supported.
fn chunks(input: &[u8]) -> Result<Option<(Vec<u8>, usize)>, PipelineError> {
    let (mut text, mut at) = (Vec::new(), 0);
    loop {
        let size = httparse::parse_chunk_size(&input[at..]).map_err(|_| PipelineError::Malformed)?;
        let Status::Complete((start, size)) = size else { return Ok(None) };
        let start = at + start;
        let size = usize::try_from(size).ok().filter(|size| *size <= ANSWER_MAX).ok_or(PipelineError::Malformed)?;
        let end = start + size;
        let Some(chunk) = input.get(start..end).filter(|_| input.len() >= end + 2) else { return Ok(None) };
        text.extend_from_slice(chunk);
        at = end + 2;
        if size == 0 {
            return Ok(Some((text, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\nHTTP/1.1 400 Bad Request\r\n\
                         Transfer-Encoding: chunked\r\n\r\n3\r\nno \r\n4;x=y\r\ngood\r\n0\r\n\r\n";

    #[test]
    fn answers_are_taken_one_by_one() {
        let (first, length) = parse(TWO).unwrap().unwrap();
        assert_eq!(first, Answer { status: StatusCode::ACCEPTED, text: String::new() });
        let (second, rest) = parse(&TWO[length..]).unwrap().unwrap();
        assert_eq!(second, Answer { status: StatusCode::BAD_REQUEST, text: "no good".to_owned() });
        assert_eq!(length + rest, TWO.len());
        for end in 0..length {
            assert!(parse(&TWO[..end]).unwrap().is_none(), "{end}");
        }
        for end in length..TWO.len() {
            assert!(parse(&TWO[length..end]).unwrap().is_none(), "{end}");
        }
        let early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more";
        let length = early.len() - " and more".len();
        assert_eq!(parse(early).unwrap().unwrap(), (Answer { status: StatusCode::OK, text: "ok".into() }, length));
        assert!(parse(b"SSH-2.0-OpenSSH\r\n").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n").is_err());
    }

    #[tokio::test]
    async fn the_second_request_does_not_wait_for_the_first_answer() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: Address = listener.local_addr().unwrap().to_string().parse().unwrap();
        let mut pipeline = Pipeline::open(&address).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        pipeline.put("POST / HTTP/1.1\r\nContent-Length: ", b"one");
        pipeline.put("POST / HTTP/1.1\r\nContent-Length: ", b"two");
        pipeline.flush().await.unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"two") {
            server.read_buf(&mut heard).await.unwrap();
        }
        server.write_all(TWO).await.unwrap();
        assert_eq!(pipeline.answer().await.unwrap().status, StatusCode::ACCEPTED);
        assert_eq!(pipeline.answer().await.unwrap().text, "no good");
        drop(server);
        assert!(matches!(pipeline.answer().await, Err(PipelineError::Closed | PipelineError::Io(_))));
    }
}
