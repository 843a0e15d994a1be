//! The end of a connection whose last request is refused: the response is delayed and written without hyper, whose
//! buffers are freed by then. It does not decide what is refused.

use std::time::Duration;

use http::header::{CONNECTION, CONTENT_LENGTH, DATE};
use tokio::io::AsyncWriteExt;

use super::Response;
use crate::Socket;
use crate::libprocess::date_now;

/// How a refused request ends its connection.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Delay of the response.
    pub(super) delay: Duration,
    /// Response to the client; `None` if the connection just closes.
    pub(super) answer: Option<Response>,
}

impl Refusal {
    /// Waits for the delay and writes the response, which the client must accept within `limit`. Returns whether it has
    /// received one.
    pub(super) async fn send(&self, stream: &mut Socket, limit: Duration) -> bool {
        tokio::time::sleep(self.delay).await;
        let Some(answer) = &self.answer else { return false };
        let bytes = encode(answer);
        matches!(tokio::time::timeout(limit, stream.write_all(&bytes)).await, Ok(Ok(())))
    }
}

/// Encodes the response, with the headers that hyper adds to others.
fn encode(answer: &Response) -> Vec<u8> {
    let body = answer.body().map_or(&b""[..], |body| body);
    let reason = answer.status.canonical_reason().unwrap_or_default();
    let mut out = format!("HTTP/1.1 {} {reason}\r\n", answer.status.as_str()).into_bytes();
    let (date, length) = (date_now(), body.len().to_string());
    let added = [(&DATE, date.as_bytes()), (&CONNECTION, b"close"), (&CONTENT_LENGTH, length.as_bytes())];
    let set = answer.headers.iter().map(|(name, value)| (name, value.as_bytes()));
    for (name, value) in added.into_iter().chain(set) {
        push_title_case(&mut out, name.as_str());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
    out
}

/// Appends a header's name in the form of all responses: `Content-Length`.
fn push_title_case(out: &mut Vec<u8>, name: &str) {
    let mut upper = true;
    for byte in name.bytes() {
        out.push(if upper { byte.to_ascii_uppercase() } else { byte });
        upper = byte == b'-';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_looks_like_others() {
        let bytes = encode(&Response::unauthorized("Basic realm=\"x\""));
        let text = String::from_utf8(bytes).unwrap();
        let (first, rest) = text.split_once("\r\nDate: ").unwrap();
        let (_, rest) = rest.split_once("\r\n").unwrap();
        assert_eq!(first, "HTTP/1.1 401 Unauthorized");
        let expected = "Connection: close\r\nContent-Length: 17\r\nContent-Type: text/plain; charset=utf-8\r\n\
                        Www-Authenticate: Basic realm=\"x\"\r\n\r\n401 Unauthorized.";
        assert_eq!(rest, expected);
    }
}
