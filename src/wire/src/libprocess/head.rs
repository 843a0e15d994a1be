//! Parser of request heads on a connection that has carried only messages so far. It recognizes messages and the
//! framing of their bodies; other requests, and malformed ones, are left to the HTTP server.

use base::Pid;
use bytes::Bytes;
use httparse::{EMPTY_HEADER, Status};

use super::chunked::{BodyDecoder, BodyError};
use super::{Message, Origin, Refusal, SenderToken};

/// Maximum number of headers, the same as hyper's.
const MAX_HEADERS: usize = 100;

/// Framing of a message's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Sized(usize),
    Chunked,
}

/// The head of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Process id, sender and name of the message; or why it will be refused once its body is read.
    pub(super) message: Result<(String, Pid, String), Refusal>,
    pub(super) framing: Framing,
    /// Whether the sender requests that the connection is closed after the response.
    pub(super) close: bool,
    /// Whether the sender is libprocess, which does not read responses.
    pub(super) is_libprocess: bool,
    /// Token that the message carries.
    pub(super) sender_token: Option<SenderToken>,
}

impl Head {
    pub(super) fn body(&self, limit: usize) -> Result<BodyDecoder, BodyError> {
        match self.framing {
            Framing::Sized(length) => BodyDecoder::sized(length, limit),
            Framing::Chunked => Ok(BodyDecoder::chunked(limit)),
        }
    }
}

/// Result of parsing the beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// The beginning of a head that may be a message's.
    Partial,
    /// A request that is not a message.
    Other,
    /// A message's head, and its length in bytes.
    Message(Head, usize),
}

/// Values of the relevant headers; of several values the last one counts.
#[derive(Default)]
struct Fields<'a> {
    from: Option<&'a str>,
    agent: Option<&'a str>,
    length: Option<&'a str>,
    transfer: Option<&'a str>,
    connection: Option<&'a str>,
    sender_token: Option<&'a str>,
    /// Whether there is a header that only the HTTP server supports.
    other: bool,
}

impl<'a> Fields<'a> {
    fn read(headers: &[httparse::Header<'a>]) -> Fields<'a> {
        let mut fields = Fields::default();
        for header in headers {
            let value = Some(std::str::from_utf8(header.value).unwrap_or("\u{fffd}"));
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            match header.name.len() {
                15 if is("libprocess-from") => fields.from = value,
                10 if is("user-agent") => fields.agent = value,
                14 if is("content-length") => fields.length = value,
                17 if is("transfer-encoding") => fields.transfer = value,
                10 if is("connection") => fields.connection = value,
                13 if is(SenderToken::HEADER) => fields.sender_token = value,
                16 if is("content-encoding") => fields.other = true,
                _ => {}
            }
        }
        fields
    }

    fn is_message(&self) -> bool {
        self.from.is_some() || self.is_libprocess()
    }

    fn is_libprocess(&self) -> bool {
        self.agent.is_some_and(|agent| agent.starts_with("libprocess/"))
    }

    /// Returns the framing of the body; `None` for a framing that is left to the HTTP server.
    fn framing(&self) -> Option<Framing> {
        match (self.transfer, self.length) {
            (Some(transfer), None) if transfer.eq_ignore_ascii_case("chunked") => Some(Framing::Chunked),
            (None, Some(length)) if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
                length.parse().ok().map(Framing::Sized)
            }
            (None, None) => Some(Framing::Sized(0)),
            _ => None,
        }
    }
}

/// Parses the head at the beginning of `input`, which came from `origin`.
pub(super) fn parse(input: &[u8], origin: Origin) -> Parsed {
    let start = input.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(input.len());
    let begin = &input[start..];
    if !begin.starts_with(b"POST /") && !b"POST /".starts_with(begin) {
        return Parsed::Other;
    }
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let used = match request.parse(input) {
        Ok(Status::Complete(used)) => used,
        Ok(Status::Partial) => return Parsed::Partial,
        Err(_) => return Parsed::Other,
    };
    let fields = Fields::read(request.headers);
    let (Some(path), true, false) = (request.path, fields.is_message(), fields.other) else { return Parsed::Other };
    let Some(framing) = fields.framing() else { return Parsed::Other };
    let has = |word: &str| {
        fields.connection.is_some_and(|value| value.split(',').any(|item| item.trim().eq_ignore_ascii_case(word)))
    };
    let close = has("close") || (request.version == Some(0) && !has("keep-alive"));
    let path = path.split('?').next().unwrap_or(path);
    let message = Message::from_request(path, fields.from, fields.agent, Bytes::new(), origin)
        .map(|message| (message.to, message.from, message.name));
    let (is_libprocess, sender_token) =
        (fields.is_libprocess(), fields.sender_token.and_then(|text| text.parse().ok()));
    Parsed::Message(Head { message, framing, close, is_libprocess, sender_token }, used)
}
