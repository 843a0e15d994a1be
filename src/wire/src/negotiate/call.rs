//! Checks that all v1 calls pass before they are handled: docs/mesos/scheduler-api.md, docs/mesos/executors.md.

use super::Encoding;
use crate::http::{Method, Request, Response, StatusCode, last_value};

/// Reason why a body is not a call; the parser's words are part of the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeFailure {
    /// The protobuf does not parse, or lacks a required field.
    Protobuf,
    /// The text is not JSON.
    JsonSyntax(String),
    /// The JSON does not convert to the call.
    JsonConvert(String),
}

/// Texts of errors that precede the parser's words.
#[derive(Clone, Copy, Debug)]
pub struct CallTexts {
    /// Whole text for a broken protobuf.
    pub protobuf: &'static str,
    /// Text before a syntax error.
    pub syntax: &'static str,
    /// Text before a conversion error.
    pub convert: &'static str,
}

/// Texts of errors of the scheduler, executor, resource provider and master operator APIs.
pub const CALL_TEXTS: CallTexts = CallTexts {
    protobuf: "Failed to parse body into Call protobuf",
    syntax: "Failed to parse body into JSON: ",
    convert: "Failed to convert JSON into Call protobuf: ",
};

impl CallTexts {
    /// Returns a 400 with the text for a failure.
    pub fn refuse(&self, failure: &DecodeFailure) -> Response {
        Response::bad_request(match failure {
            DecodeFailure::Protobuf => self.protobuf.to_owned(),
            DecodeFailure::JsonSyntax(why) => format!("{}{why}", self.syntax),
            DecodeFailure::JsonConvert(why) => format!("{}{why}", self.convert),
        })
    }
}

/// Decodes the call in a request's body, after checks of method and content type.
///
/// # Errors
/// The response to send instead: 405, 400 or 415.
pub fn decode_call<T>(
    request: &Request,
    decode: impl FnOnce(Encoding, &[u8]) -> Result<T, DecodeFailure>,
) -> Result<(T, Encoding), Box<Response>> {
    require_post(&request.method)?;
    let encoding = match last_value(&request.headers, "content-type") {
        None => return Err(Box::new(Response::bad_request("Expecting 'Content-Type' to be present"))),
        Some(text) => Encoding::of_content_type(text).ok_or_else(|| {
            let text = "Expecting 'Content-Type' of application/json or application/x-protobuf";
            Box::new(Response::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
        })?,
    };
    let call = decode(encoding, request.body.full()).map_err(|failure| Box::new(CALL_TEXTS.refuse(&failure)))?;
    Ok((call, encoding))
}

/// Returns the encoding of the response.
///
/// # Errors
/// 406, when `Accept` allows neither.
pub fn accepted_encoding(request: &Request) -> Result<Encoding, Box<Response>> {
    Encoding::of_accept(request.header("accept")).ok_or_else(|| {
        let text = "Expecting 'Accept' to allow 'application/x-protobuf' or 'application/json'";
        Box::new(Response::text(StatusCode::NOT_ACCEPTABLE, text))
    })
}

pub(super) fn require_post(method: &Method) -> Result<(), Box<Response>> {
    if method == Method::POST {
        return Ok(());
    }
    Err(Box::new(Response::method_not_allowed(&["POST"], method.as_str())))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::http::{Body, HeaderMap, Query};
    use crate::libprocess::ConnectionId;

    pub(crate) fn request(method: Method, headers: &[(&'static str, &'static str)], body: &'static str) -> Request {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Request {
            method,
            path: "/api/v1".into(),
            raw_query: None,
            query: Query::default(),
            headers: map,
            body: Body::Full(Bytes::from_static(body.as_bytes())),
            peer: "127.0.0.1:1".parse().unwrap(),
            connection: ConnectionId(1),
            principal: None,
        }
    }

    fn decode(encoding: Encoding, body: &[u8]) -> Result<Vec<u8>, DecodeFailure> {
        match (encoding, body) {
            (Encoding::Protobuf, b"bad") => Err(DecodeFailure::Protobuf),
            (Encoding::Json, b"{") => Err(DecodeFailure::JsonSyntax("syntax error at line 1 near: ".into())),
            (Encoding::Json, b"[]") => Err(DecodeFailure::JsonConvert("Expecting a JSON object".into())),
            _ => Ok(body.to_vec()),
        }
    }

    fn refused(method: Method, headers: &[(&'static str, &'static str)], body: &'static str) -> (u16, String) {
        let response = decode_call(&request(method, headers, body), decode).unwrap_err();
        (response.status().as_u16(), String::from_utf8(response.body().unwrap().to_vec()).unwrap())
    }

    #[test]
    fn in_order() {
        let text = "405 Method Not Allowed. Expecting one of { 'POST' }, but received 'GET'.";
        assert_eq!(refused(Method::GET, &[], ""), (405, text.into()));
        assert_eq!(refused(Method::POST, &[], "{"), (400, "Expecting 'Content-Type' to be present".into()));
        let text = "Expecting 'Content-Type' of application/json or application/x-protobuf";
        assert_eq!(refused(Method::POST, &[("content-type", "text/plain")], "{"), (415, text.into()));
        assert_eq!(refused(Method::POST, &[("content-type", "application/recordio")], "{"), (415, text.into()));
        let text = "Failed to parse body into Call protobuf";
        assert_eq!(refused(Method::POST, &[("content-type", "application/x-protobuf")], "bad"), (400, text.into()));
        let json = [("content-type", "application/json")];
        let text = "Failed to parse body into JSON: syntax error at line 1 near: ";
        assert_eq!(refused(Method::POST, &json, "{"), (400, text.into()));
        let text = "Failed to convert JSON into Call protobuf: Expecting a JSON object";
        assert_eq!(refused(Method::POST, &json, "[]"), (400, text.into()));
    }

    #[test]
    fn last_header_counts() {
        let headers = [("content-type", "text/plain"), ("content-type", "application/json")];
        let (call, encoding) = decode_call(&request(Method::POST, &headers, "{}"), decode).unwrap();
        assert_eq!((call.as_slice(), encoding), (b"{}".as_slice(), Encoding::Json));
    }

    #[test]
    fn accept() {
        assert_eq!(accepted_encoding(&request(Method::POST, &[], "")).unwrap(), Encoding::Json);
        let response = accepted_encoding(&request(Method::POST, &[("accept", "text/html")], "")).unwrap_err();
        assert_eq!(response.status(), 406);
        let text = "Expecting 'Accept' to allow 'application/x-protobuf' or 'application/json'";
        assert_eq!(response.body().unwrap(), text);
    }
}
