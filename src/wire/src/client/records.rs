//! The stream of records of a subscription. It does not decode them.

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
    /// Sender that keeps the connection open.
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

    /// Returns the headers of the response.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the last value of a header of the response, such as `Mesos-Stream-Id`.
    pub fn header(&self, name: &str) -> Option<&str> {
        last_value(&self.headers, name)
    }

    /// Returns the next record's payload, or `None` when the server has ended the stream. Cancel safe: no record is
    /// lost.
    ///
    /// # Errors
    /// When the connection breaks, or the stream is not RecordIO, or a record is longer than the client's limit.
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

    /// Checks that the stream ends at the end of a record.
    fn end(&self) -> Result<Option<Bytes>, ClientError> {
        if self.decoder.at_boundary() { Ok(None) } else { Err(ClientError::CutOff(self.address.clone())) }
    }
}
