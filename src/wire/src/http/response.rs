//! HTTP responses with the headers and texts of Mesos (docs/mesos/transport.md). It decides nothing.

use std::collections::VecDeque;
use std::fs::File;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::file::FileBody;
use super::stream::Source;

/// Content type of JSON bodies.
pub const JSON: &str = "application/json";
/// Content type of protobuf bodies.
pub const PROTOBUF: &str = "application/x-protobuf";
/// Content type of RecordIO bodies, on an agent's `/api/v1` only.
pub const RECORDIO: &str = "application/recordio";
/// Content type of errors.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// The body of a response.
#[derive(Debug)]
pub(crate) enum ResponseBody {
    Full(Bytes),
    /// A body in several parts, none of them empty: a document that shares text with others.
    Parts(VecDeque<Bytes>),
    File(FileBody),
    Stream(Source),
}

/// An HTTP response. `Date`, `Content-Length` and similar headers are added when it is sent.
#[derive(Debug)]
pub struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: ResponseBody,
    pub(crate) close: bool,
    pub(crate) keep: bool,
}

impl Response {
    /// Returns a response without body and content type: 200, 202.
    pub fn empty(status: StatusCode) -> Response {
        Response {
            status,
            headers: HeaderMap::new(),
            body: ResponseBody::Full(Bytes::new()),
            close: false,
            keep: false,
        }
    }

    /// Returns a 200 without body.
    pub fn ok() -> Response {
        Response::empty(StatusCode::OK)
    }

    /// Returns a 202 without body: the call was accepted.
    pub fn accepted() -> Response {
        Response::empty(StatusCode::ACCEPTED)
    }

    /// Returns a 200 with a body of this content type.
    pub fn ok_body(content_type: &'static str, body: impl Into<Bytes>) -> Response {
        let mut response = Response::ok();
        response.body = ResponseBody::Full(body.into());
        response.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
    }

    /// Returns a 200 with the first `length` bytes of a file. They are read while they are sent, and not compressed. If
    /// the file becomes shorter meanwhile, the connection closes early.
    pub fn ok_file(content_type: &'static str, file: File, length: u64) -> Response {
        let mut response = Response::ok_body(content_type, Bytes::new());
        response.body = ResponseBody::File(FileBody::new(file, length));
        response
    }

    /// Returns a 200 with JSON.
    pub fn ok_json(body: impl Into<Bytes>) -> Response {
        Response::ok_body(JSON, body)
    }

    /// Returns the same as [`Response::ok_jsonp`] for a text in parts.
    pub fn ok_jsonp_parts(parts: impl IntoIterator<Item = Bytes>, jsonp: Option<&str>) -> Response {
        let mut parts: VecDeque<Bytes> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let mut response = Response::ok_jsonp(Bytes::new(), jsonp);
        if let Some(callback) = jsonp {
            parts.push_front(format!("{callback}(").into());
            parts.push_back(Bytes::from_static(b")"));
        }
        response.body = ResponseBody::Parts(parts);
        response
    }

    /// Returns a 200 with JSON, or with `<jsonp>(<JSON>)` as `text/javascript` if a legacy endpoint was asked for that.
    pub fn ok_jsonp(body: impl Into<Bytes>, jsonp: Option<&str>) -> Response {
        let body = body.into();
        let Some(callback) = jsonp else { return Response::ok_json(body) };
        let mut wrapped = Vec::with_capacity(callback.len() + body.len() + 2);
        wrapped.extend_from_slice(callback.as_bytes());
        wrapped.push(b'(');
        wrapped.extend_from_slice(&body);
        wrapped.push(b')');
        Response::ok_body("text/javascript", wrapped)
    }

    /// Returns a response with a text as its whole body, which is the form of all errors.
    pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Response {
        let mut response = Response::ok_body(TEXT, text);
        response.status = status;
        response
    }

    /// Returns an error with the default body of its status, such as `404 Not Found.`.
    pub fn error(status: StatusCode) -> Response {
        Response::text(status, format!("{} {}.", status.as_str(), status.canonical_reason().unwrap_or_default()))
    }

    /// Returns a 400 with a text.
    pub fn bad_request(text: impl Into<Bytes>) -> Response {
        Response::text(StatusCode::BAD_REQUEST, text)
    }

    /// Returns a 404 with its default body.
    pub fn not_found() -> Response {
        Response::error(StatusCode::NOT_FOUND)
    }

    /// Returns a 403 with its default body.
    pub fn forbidden() -> Response {
        Response::error(StatusCode::FORBIDDEN)
    }

    /// Returns a 500 with the text of a failure.
    pub fn internal(text: impl Into<Bytes>) -> Response {
        Response::text(StatusCode::INTERNAL_SERVER_ERROR, text)
    }

    /// Returns a 503 with a text.
    pub fn unavailable(text: impl Into<Bytes>) -> Response {
        Response::text(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// Returns a 405 that names the allowed methods, and the one that was received.
    pub fn method_not_allowed(allowed: &[&str], received: &str) -> Response {
        let quoted: Vec<String> = allowed.iter().map(|method| format!("'{method}'")).collect();
        let quoted = quoted.join(", ");
        let text = format!("405 Method Not Allowed. Expecting one of {{ {quoted} }}, but received '{received}'.");
        Response::text(StatusCode::METHOD_NOT_ALLOWED, text).with_header(ALLOW, &allowed.join(", "))
    }

    /// Returns a 307 to `//<host>:<port><path and query>`, without a scheme.
    pub fn redirect(host: &str, port: u16, path_and_query: &str) -> Response {
        Response::empty(StatusCode::TEMPORARY_REDIRECT)
            .with_header(LOCATION, &format!("//{host}:{port}{path_and_query}"))
    }

    /// Returns a 401 with its default body and a challenge.
    pub fn unauthorized(challenge: &str) -> Response {
        Response::error(StatusCode::UNAUTHORIZED).with_header(WWW_AUTHENTICATE, challenge)
    }

    /// Sets a header. With a value that no header can have, such as one with a line break, the response becomes a 500
    /// that names the header: without the header it could mean something else.
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Response {
        match HeaderValue::from_str(value) {
            Ok(value) => {
                self.headers.insert(name, value);
                self
            }
            Err(_) => Response::internal(format!("The header '{name}' of the response has an invalid value")),
        }
    }

    /// Closes the connection after this response.
    pub fn closing(mut self) -> Response {
        self.close = true;
        self
    }

    /// Keeps the connection open after this response, however long it is idle: its end means to the client that a
    /// subscription has ended.
    #[must_use]
    pub fn keep_connection(mut self) -> Response {
        self.keep = true;
        self
    }

    /// Returns the response with another status.
    #[must_use]
    pub fn with_status(mut self, status: StatusCode) -> Response {
        self.status = status;
        self
    }

    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the headers that the handler set.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the body, if it is in one piece.
    pub fn body(&self) -> Option<&Bytes> {
        match &self.body {
            ResponseBody::Full(bytes) => Some(bytes),
            ResponseBody::Parts(_) | ResponseBody::File(_) | ResponseBody::Stream(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(response: &Response) -> &str {
        std::str::from_utf8(response.body().unwrap()).unwrap()
    }

    #[test]
    fn default_bodies() {
        for (status, text) in [
            (400, "400 Bad Request."),
            (401, "401 Unauthorized."),
            (403, "403 Forbidden."),
            (404, "404 Not Found."),
            (406, "406 Not Acceptable."),
            (409, "409 Conflict."),
            (415, "415 Unsupported Media Type."),
            (500, "500 Internal Server Error."),
            (501, "501 Not Implemented."),
            (503, "503 Service Unavailable."),
        ] {
            let response = Response::error(StatusCode::from_u16(status).unwrap());
            assert_eq!(text_of(&response), text);
            assert_eq!(response.headers()["content-type"], TEXT);
        }
    }

    #[test]
    fn method_not_allowed() {
        let one = Response::method_not_allowed(&["POST"], "GET");
        assert_eq!(text_of(&one), "405 Method Not Allowed. Expecting one of { 'POST' }, but received 'GET'.");
        assert_eq!(one.headers()["allow"], "POST");
        let two = Response::method_not_allowed(&["GET", "PUT"], "POST");
        assert_eq!(text_of(&two), "405 Method Not Allowed. Expecting one of { 'GET', 'PUT' }, but received 'POST'.");
        assert_eq!(two.headers()["allow"], "GET, PUT");
    }

    #[test]
    fn redirect_and_jsonp() {
        let response = Response::redirect("10.0.0.7", 5050, "/api/v1/scheduler");
        assert_eq!(response.headers()["location"], "//10.0.0.7:5050/api/v1/scheduler");
        assert_eq!(response.body().unwrap(), "");
        let response = Response::ok_jsonp("{}", Some("cb"));
        assert_eq!(text_of(&response), "cb({})");
        assert_eq!(response.headers()["content-type"], "text/javascript");
        assert_eq!(Response::ok_jsonp("{}", None).headers()["content-type"], JSON);
    }

    #[test]
    fn a_line_break_does_not_enter_a_header() {
        let response = Response::redirect("evil\r\nX: y", 1, "/");
        assert!(response.headers().get("location").is_none());
    }
}
