//! A subscription's stream of records. It does not decode them.

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use protos::recordio::Decoder;

use super::{Address, ClientError};
use crate::http::last_value;

/// The records of an open stream. Dropping it closes the connection.
#[derive(Debug)]
pub struct Records {
    headers: HeaderMap,
    body: Incoming,
    decoder: Decoder,
    address: Address,
    /// The connection lives as long as there is a sender for it.
    _connection: SendRequest<Full<Bytes>>,
}

impl Records {
    pub(super) fn new(
        headers: HeaderMap,
        body: Incoming,
        connection: SendRequest<Full<Bytes>>,
        limit: usize,
        address: Address,
    ) -> Records {
        Records { headers, body, decoder: Decoder::new(limit), address, _connection: connection }
    }

    /// The headers of the response.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The last value of a header of the response, such as `Mesos-Stream-Id`.
    pub fn header(&self, name: &str) -> Option<&str> {
        last_value(&self.headers, name)
    }

    /// The next record's payload, or `None` when the server has ended the stream. May be cancelled without loss.
    ///
    /// # Errors
    /// When the connection breaks, or what comes is not RecordIO or longer than the client's limit.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            if let Some(record) = self.decoder.pull()? {
                return Ok(Some(record.into()));
            }
            let Some(frame) = self.body.frame().await else { return self.end() };
            let frame = frame.map_err(|source| ClientError::Exchange { address: self.address.clone(), source })?;
            if let Ok(data) = frame.into_data() {
                self.decoder.push(&data);
            }
        }
    }

    /// The stream may only end where a record does.
    fn end(&self) -> Result<Option<Bytes>, ClientError> {
        if self.decoder.at_boundary() { Ok(None) } else { Err(ClientError::CutOff(self.address.clone())) }
    }
}
