//! Checks of the requests to an agent's `/api/v1` (docs/mesos/agent-api.md), the only endpoint that supports
//! `application/recordio`.

use super::call::require_post;
use super::{CallTexts, DecodeFailure, Encoding, accepts};
use crate::http::{HeaderMap, Method, RECORDIO, Response, StatusCode, last_value};

/// Texts of errors of the agent operator API.
pub const AGENT_TEXTS: CallTexts = CallTexts {
    protobuf: "Failed to parse body into a protobuf object",
    syntax: "Failed to parse body into JSON: ",
    convert: "",
};

/// Encodings of a request and its response, and whether they are streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaTypes {
    /// Encoding of the request's messages.
    pub request: Encoding,
    /// Whether the request's body is a RecordIO stream.
    pub request_streams: bool,
    /// Encoding of the response's messages.
    pub response: Encoding,
    /// Whether the client has asked for `application/recordio`.
    pub response_streams: bool,
}

fn refuse<T>(status: StatusCode, text: &str) -> Result<T, Box<Response>> {
    Err(Box::new(Response::text(status, text.to_owned())))
}

impl MediaTypes {
    /// Determines the encodings of a request and its response: rows 3 to 11 of docs/mesos/agent-api.md.
    ///
    /// # Errors
    /// The response to send instead: 405, 400, 415 or 406.
    pub fn negotiate(method: &Method, headers: &HeaderMap) -> Result<MediaTypes, Box<Response>> {
        require_post(method)?;
        let (request, request_streams) = request_side(headers)?;
        let (response, response_streams) = response_side(headers)?;
        Ok(MediaTypes { request, request_streams, response, response_streams })
    }

    /// Decodes a message of the request (row 13).
    ///
    /// # Errors
    /// 400 with the parser's words.
    pub fn decode<T>(
        &self,
        message: &[u8],
        decode: impl FnOnce(Encoding, &[u8]) -> Result<T, DecodeFailure>,
    ) -> Result<T, Box<Response>> {
        decode(self.request, message).map_err(|failure| Box::new(AGENT_TEXTS.refuse(&failure)))
    }

    /// Returns the response to a stream that ends before its first record (row 12).
    pub fn refuse_no_record() -> Response {
        Response::bad_request("Received EOF while reading request body")
    }

    /// Checks whether streams are allowed with a call of type `name` (rows 15 to 17). The call `takes` a stream of
    /// records or none, and may answer with a stream if it `gives` one.
    ///
    /// # Errors
    /// 415 or 406.
    pub fn check_streams(&self, name: &str, takes: bool, gives: bool) -> Result<(), Box<Response>> {
        match (self.request_streams, takes) {
            (true, false) => {
                let text = format!("Streaming 'Content-Type' application/recordio is not supported for {name} call");
                return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, &text);
            }
            (false, true) => {
                let text = format!("Expecting 'Content-Type' to be application/recordio for {name} call");
                return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, &text);
            }
            _ => {}
        }
        if self.response_streams && !gives {
            let text = format!("Streaming response is not supported for {name} call");
            return refuse(StatusCode::NOT_ACCEPTABLE, &text);
        }
        Ok(())
    }
}

/// Determines the encoding of the request, and whether it is a stream (rows 4 to 8).
fn request_side(headers: &HeaderMap) -> Result<(Encoding, bool), Box<Response>> {
    let Some(content_type) = last_value(headers, "content-type") else {
        return refuse(StatusCode::BAD_REQUEST, "Expecting 'Content-Type' to be present");
    };
    let message_type = last_value(headers, "message-content-type");
    if content_type == RECORDIO {
        let Some(message_type) = message_type else {
            let text = "Expecting 'Message-Content-Type' to be set for streaming requests";
            return refuse(StatusCode::BAD_REQUEST, text);
        };
        let Some(encoding) = Encoding::of_content_type(message_type) else {
            let text = "Expecting 'Message-Content-Type' of application/json or application/x-protobuf";
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
        };
        return Ok((encoding, true));
    }
    let Some(encoding) = Encoding::of_content_type(content_type) else {
        let text = "Expecting 'Content-Type' of application/json or application/x-protobuf or application/recordio";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
    };
    if message_type.is_some() {
        let text = "Expecting 'Message-Content-Type' to be not set for non-streaming requests";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, text);
    }
    Ok((encoding, false))
}

/// Determines the encoding of the response, and whether it is a stream (rows 9 to 11).
fn response_side(headers: &HeaderMap) -> Result<(Encoding, bool), Box<Response>> {
    let accept = last_value(headers, "accept");
    let message_accept = last_value(headers, "message-accept");
    if let Some(encoding) = Encoding::of_accept(accept) {
        if message_accept.is_some() {
            let text = "Expecting 'Message-Accept' to be not set for non-streaming responses";
            return refuse(StatusCode::NOT_ACCEPTABLE, text);
        }
        return Ok((encoding, false));
    }
    if !accepts(accept, RECORDIO) {
        let text = "Expecting 'Accept' to allow application/json or application/x-protobuf or application/recordio";
        return refuse(StatusCode::NOT_ACCEPTABLE, text);
    }
    let Some(encoding) = Encoding::of_accept(message_accept) else {
        let text = "Expecting 'Message-Accept' to allow application/json or application/x-protobuf";
        return refuse(StatusCode::NOT_ACCEPTABLE, text);
    };
    Ok((encoding, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn negotiate(headers: &[(&'static str, &'static str)]) -> Result<MediaTypes, (u16, String)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        MediaTypes::negotiate(&Method::POST, &map).map_err(|response| {
            (response.status().as_u16(), String::from_utf8(response.body().unwrap().to_vec()).unwrap())
        })
    }

    fn text_of(headers: &[(&'static str, &'static str)]) -> (u16, String) {
        negotiate(headers).unwrap_err()
    }

    const JSON_IN: (&str, &str) = ("content-type", "application/json");
    const RECORDS_IN: (&str, &str) = ("content-type", "application/recordio");

    #[test]
    fn request_side() {
        assert_eq!(text_of(&[]), (400, "Expecting 'Content-Type' to be present".into()));
        let text = "Expecting 'Content-Type' of application/json or application/x-protobuf or application/recordio";
        assert_eq!(text_of(&[("content-type", "text/plain")]), (415, text.into()));
        let text = "Expecting 'Message-Content-Type' to be set for streaming requests";
        assert_eq!(text_of(&[RECORDS_IN]), (400, text.into()));
        let text = "Expecting 'Message-Content-Type' of application/json or application/x-protobuf";
        assert_eq!(text_of(&[RECORDS_IN, ("message-content-type", "text/plain")]), (415, text.into()));
        let text = "Expecting 'Message-Content-Type' to be not set for non-streaming requests";
        assert_eq!(text_of(&[JSON_IN, ("message-content-type", "application/json")]), (415, text.into()));
        let media = negotiate(&[RECORDS_IN, ("message-content-type", "application/x-protobuf")]).unwrap();
        assert_eq!((media.request, media.request_streams), (Encoding::Protobuf, true));
    }

    #[test]
    fn response_side() {
        let text = "Expecting 'Accept' to allow application/json or application/x-protobuf or application/recordio";
        assert_eq!(text_of(&[JSON_IN, ("accept", "text/html")]), (406, text.into()));
        let text = "Expecting 'Message-Accept' to allow application/json or application/x-protobuf";
        let records = ("accept", "application/recordio");
        assert_eq!(text_of(&[JSON_IN, records, ("message-accept", "text/html")]), (406, text.into()));
        let text = "Expecting 'Message-Accept' to be not set for non-streaming responses";
        assert_eq!(text_of(&[JSON_IN, ("message-accept", "application/json")]), (406, text.into()));
        let media = negotiate(&[JSON_IN, records]).unwrap();
        assert_eq!((media.response, media.response_streams), (Encoding::Json, true));
        let media = negotiate(&[JSON_IN, records, ("message-accept", "application/x-protobuf")]).unwrap();
        assert_eq!((media.response, media.response_streams), (Encoding::Protobuf, true));
        let media = negotiate(&[JSON_IN, ("accept", "application/recordio, application/x-protobuf")]).unwrap();
        assert_eq!((media.response, media.response_streams), (Encoding::Protobuf, false));
    }

    #[test]
    fn streams_per_call() {
        let media = |request_streams, response_streams| MediaTypes {
            request: Encoding::Json,
            request_streams,
            response: Encoding::Json,
            response_streams,
        };
        let text = |result: Result<(), Box<Response>>| {
            let response = result.unwrap_err();
            (response.status().as_u16(), String::from_utf8(response.body().unwrap().to_vec()).unwrap())
        };
        assert_eq!(
            text(media(true, false).check_streams("GET_FLAGS", false, false)),
            (415, "Streaming 'Content-Type' application/recordio is not supported for GET_FLAGS call".into())
        );
        assert_eq!(
            text(media(false, false).check_streams("ATTACH_CONTAINER_INPUT", true, false)),
            (415, "Expecting 'Content-Type' to be application/recordio for ATTACH_CONTAINER_INPUT call".into())
        );
        assert_eq!(
            text(media(false, true).check_streams("GET_FLAGS", false, false)),
            (406, "Streaming response is not supported for GET_FLAGS call".into())
        );
        assert!(media(false, true).check_streams("ATTACH_CONTAINER_OUTPUT", false, true).is_ok());
    }
}
