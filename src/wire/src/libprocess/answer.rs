//! HTTP responses to libprocess messages. They do not tell whether a message was handled.

use std::cell::RefCell;
use std::time::SystemTime;

use super::Refusal;

/// Returns the value of a `Date` header with the current time (RFC 1123, GMT).
pub(crate) fn date_now() -> String {
    httpdate::fmt_http_date(now())
}

#[allow(clippy::disallowed_methods, reason = "the Date header is where this crate touches the world's clock")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Appends the current date. The text of the last second is kept, because it is the same for thousands of responses.
fn push_date(out: &mut Vec<u8>) {
    thread_local!(static LAST: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) });
    let now = now();
    let second = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    LAST.with_borrow_mut(|(last, text)| {
        if *last != second || text.is_empty() {
            *last = second;
            *text = httpdate::fmt_http_date(now);
        }
        out.extend_from_slice(text.as_bytes());
    });
}

/// Appends the response to a message.
pub(super) fn push(out: &mut Vec<u8>, outcome: &Result<(), Refusal>, close: bool) {
    let status: &[u8] = match outcome {
        Ok(()) => b"202 Accepted",
        Err(Refusal::NoProcess) => b"404 Not Found",
        Err(Refusal::AddressMismatch { .. } | Refusal::Forged { .. }) => b"400 Bad Request",
        Err(Refusal::NoSender | Refusal::BadPath) => b"500 Internal Server Error",
        Err(Refusal::TooLong { .. }) => b"413 Payload Too Large",
        Err(Refusal::TooMany) => b"503 Service Unavailable",
    };
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status);
    out.extend_from_slice(b"\r\nDate: ");
    push_date(out);
    if close {
        out.extend_from_slice(b"\r\nConnection: close");
    }
    match outcome {
        Ok(()) => out.extend_from_slice(b"\r\nContent-Length: 0\r\n\r\n"),
        Err(refusal) => {
            let text = refusal.to_string();
            out.extend_from_slice(b"\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ");
            out.extend_from_slice(text.len().to_string().as_bytes());
            out.extend_from_slice(b"\r\n\r\n");
            out.extend_from_slice(text.as_bytes());
        }
    }
}
