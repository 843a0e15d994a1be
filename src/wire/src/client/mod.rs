//! An HTTP client for Mesos's v1 APIs and read-only endpoints. It knows no calls and does not decode responses.

mod address;
mod connect;
mod records;

use std::io::Write;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use protos::recordio::RecordError;

pub use address::{Address, AddressError, Scheme};
pub use connect::{configure, connect, connect_buffered, is_tls, tls};
pub use records::Records;

use crate::http::last_value;
use crate::tls::Tls;

/// Reason why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The text is not an address.
    #[error("cannot use the address")]
    Address(#[from] AddressError),
    /// The server cannot be reached.
    #[error("cannot connect to {address}")]
    Connect {
        /// Address of the server.
        address: Address,
        /// Cause of the error.
        source: std::io::Error,
    },
    /// A header or a path has an invalid character.
    #[error("cannot form the request")]
    Request(#[from] http::Error),
    /// The connection broke, or the response is not HTTP.
    #[error("the exchange with {address} failed")]
    Exchange {
        /// Address of the server.
        address: Address,
        /// Cause of the error.
        source: hyper::Error,
    },
    /// The request took longer than its time limit.
    #[error("no answer from {address} within {after:?}")]
    Timeout {
        /// Address of the server.
        address: Address,
        /// Time limit of the request.
        after: Duration,
    },
    /// The writer that receives the response's body has failed.
    #[error("cannot store the answer")]
    Sink(#[source] std::io::Error),
    /// The response is longer than the client's limit in bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The stream is not RecordIO.
    #[error("the stream is broken")]
    Record(#[from] RecordError),
    /// The stream ended in the middle of a record.
    #[error("the stream from {0} ended within a record")]
    CutOff(Address),
}

impl ClientError {
    /// Returns whether the host was reached, but the TLS handshake failed, or this process's TLS settings are wrong.
    #[must_use]
    pub fn is_of_tls(&self) -> bool {
        use std::io::ErrorKind::{InvalidData, InvalidInput, Other};
        // Errors of the system, and of the look-up of a name, have other kinds.
        matches!(self, ClientError::Connect { source, .. } if matches!(source.kind(), InvalidData | InvalidInput | Other))
    }
}

/// Response of a server.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status of the response.
    pub status: StatusCode,
    /// Headers of the response.
    pub headers: HeaderMap,
    /// Body of the response.
    pub body: Bytes,
    /// Scheme of the request, which a redirect without a scheme keeps.
    scheme: Scheme,
}

impl Reply {
    /// Returns the last value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        last_value(&self.headers, name)
    }

    /// Returns the body as text, with invalid UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the target of a 307 redirect: the address, and the path with query. Without a scheme
    /// (`//host:port/path`) it has that of the request.
    pub fn redirect(&self) -> Option<(Address, String)> {
        if !self.status.is_redirection() {
            return None;
        }
        let (address, path) = Address::split_url(self.header(LOCATION.as_str())?).ok()?;
        let scheme = match address.scheme() {
            Scheme::Configured => self.scheme,
            scheme => scheme,
        };
        Some((address.with_scheme(scheme), path))
    }
}

/// Result of a request for a stream.
#[derive(Debug)]
pub enum Subscription {
    /// The status is 200: the stream, with the headers of its response.
    Stream(Records),
    /// The status is another one.
    Refused(Reply),
}

/// A client of one server. Calls share one connection that is kept open; each stream has a connection of its own.
#[derive(Debug)]
pub struct Client {
    address: Address,
    authorization: Option<String>,
    timeout: Duration,
    limit: usize,
    tls: Option<Tls>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// Creates a client of the server at `host:port`, `http://host:port` or `https://host:port`. It connects when it is
    /// first used.
    ///
    /// # Errors
    /// When the text is no such address.
    pub fn new(address: &str) -> Result<Client, ClientError> {
        Ok(Client::at(address.parse()?))
    }

    /// Creates a client of the server at an address. The time limit is 30 s, the length limit of responses 1 GiB.
    pub fn at(address: Address) -> Client {
        let timeout = Duration::from_secs(30);
        Client { address, authorization: None, timeout, limit: 1 << 30, tls: None, connection: None }
    }

    /// Sets credentials (HTTP Basic) that are sent with every request.
    #[must_use]
    pub fn with_basic(self, user: &str, password: &str) -> Client {
        let header = crate::auth::basic_header(user, password);
        self.with_authorization(header)
    }

    /// Sets the `Authorization` header of every request, such as `Bearer <token>`.
    #[must_use]
    pub fn with_authorization(mut self, header: String) -> Client {
        self.authorization = Some(header);
        self
    }

    /// Sets the TLS configuration, instead of [that of the process](configure).
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Client {
        self.tls = Some(tls);
        self
    }

    /// Sets the time limit of a request, from connecting to the last byte; for a stream, to its headers.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Client {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum number of bytes of a response, or of a record of a stream.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Client {
        self.limit = limit;
        self
    }

    /// Returns the address of the server.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a GET request for a path.
    ///
    /// # Errors
    /// There is no response; any status is a response.
    pub async fn get(&mut self, path: &str) -> Result<Reply, ClientError> {
        self.get_with(path, &[]).await
    }

    /// Sends a GET request for a path, with these headers.
    ///
    /// # Errors
    /// There is no response; any status is a response.
    pub async fn get_with(&mut self, path: &str, headers: &[(&str, &str)]) -> Result<Reply, ClientError> {
        self.request(Method::GET, path, headers, Bytes::new()).await
    }

    /// Posts a call with these media types of the body and of the response.
    ///
    /// # Errors
    /// There is no response; any status is a response.
    pub async fn post(
        &mut self,
        path: &str,
        content_type: &str,
        accept: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Reply, ClientError> {
        let mut all = vec![(CONTENT_TYPE.as_str(), content_type), (ACCEPT.as_str(), accept)];
        all.extend_from_slice(headers);
        self.request(Method::POST, path, &all, body).await
    }

    /// Sends any request over the kept connection.
    ///
    /// # Errors
    /// There is no response; any status is a response.
    pub async fn request(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Reply, ClientError> {
        let (after, address) = (self.timeout, self.address.clone());
        let exchange = self.exchange(method, path, headers, body);
        let result = tokio::time::timeout(after, exchange).await;
        let result = result.unwrap_or(Err(ClientError::Timeout { address, after }));
        if result.is_err() {
            self.connection = None;
        }
        result
    }

    /// Sends a GET request for a path, and writes the body of a 200 to `sink`, piece by piece, so that it may be longer
    /// than memory.
    ///
    /// The reply then has no body; that of any other status has its own. The time limit applies to each piece, the
    /// length limit to the whole.
    ///
    /// # Errors
    /// There is no response, or it is incomplete, or the first error of `sink`. A part may have been written by then.
    pub async fn download(&mut self, path: &str, sink: &mut (dyn Write + Send)) -> Result<Reply, ClientError> {
        let request = self.form(Method::GET, path, &[], Bytes::new())?;
        let timeout = self.timeout;
        let late = ClientError::Timeout { address: self.address.clone(), after: timeout };
        let sent = tokio::time::timeout(timeout, self.send(request)).await;
        let Ok(sent) = sent else { return Err(late) };
        let (connection, response) = sent?;
        if response.status() != StatusCode::OK {
            let read = tokio::time::timeout(timeout, self.read(response)).await;
            let Ok(reply) = read else { return Err(late) };
            self.connection = Some(connection);
            return reply;
        }
        let (head, mut incoming) = response.into_parts();
        let mut length = 0;
        loop {
            let Ok(frame) = tokio::time::timeout(timeout, incoming.frame()).await else { return Err(late) };
            let Some(frame) = frame else { break };
            let Ok(data) = frame.map_err(|source| self.failed(source))?.into_data() else { continue };
            length += data.len();
            if length > self.limit {
                return Err(ClientError::TooLong(self.limit));
            }
            sink.write_all(&data).map_err(ClientError::Sink)?;
        }
        self.connection = Some(connection);
        Ok(Reply { status: head.status, headers: head.headers, body: Bytes::new(), scheme: self.address.scheme() })
    }

    async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Reply, ClientError> {
        let request = self.form(method, path, headers, body)?;
        let (connection, response) = self.send(request).await?;
        let reply = self.read(response).await?;
        self.connection = Some(connection);
        Ok(reply)
    }

    /// Sends a request over the kept connection, or over a new one where that was closed.
    async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> Result<(SendRequest<Full<Bytes>>, http::Response<Incoming>), ClientError> {
        let mut connection = self.ready_connection().await?;
        let response = match connection.try_send_request(request).await {
            Ok(response) => response,
            // The server has closed the kept connection meanwhile, and has received nothing of the request.
            Err(mut error) => match error.take_message() {
                Some(request) => {
                    connection = self.connect().await?;
                    connection.send_request(request).await.map_err(|source| self.failed(source))?
                }
                None => return Err(self.failed(error.into_error())),
            },
        };
        Ok((connection, response))
    }

    /// Returns the kept connection, if it is still open, or a new one.
    async fn ready_connection(&mut self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        if let Some(mut kept) = self.connection.take()
            && kept.ready().await.is_ok()
        {
            return Ok(kept);
        }
        self.connect().await
    }

    /// Posts a call whose response is a stream of records, over a connection of its own.
    ///
    /// # Errors
    /// There is no response; any status is a response.
    pub async fn subscribe(
        &self,
        path: &str,
        content_type: &str,
        accept: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Subscription, ClientError> {
        let mut all = vec![(CONTENT_TYPE.as_str(), content_type), (ACCEPT.as_str(), accept)];
        all.extend_from_slice(headers);
        let open = async {
            let request = self.form(Method::POST, path, &all, body)?;
            let mut connection = self.connect().await?;
            let response = connection.send_request(request).await.map_err(|source| self.failed(source))?;
            if response.status() != StatusCode::OK {
                return Ok(Subscription::Refused(self.read(response).await?));
            }
            let (head, body) = response.into_parts();
            Ok(Subscription::Stream(Records::new(head.headers, body, connection, self.limit, self.address.clone())))
        };
        let timeout = || ClientError::Timeout { address: self.address.clone(), after: self.timeout };
        tokio::time::timeout(self.timeout, open).await.unwrap_or_else(|_| Err(timeout()))
    }

    fn form(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<http::Request<Full<Bytes>>, ClientError> {
        let mut request = http::Request::builder().method(method).uri(path).header(HOST, self.address.to_string());
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Ok(request.body(Full::new(body))?)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let connected = match &self.tls {
            Some(tls) => connect::by(Some(tls), &self.address, None).await,
            None => connect(&self.address).await,
        };
        let stream = connected.map_err(|source| ClientError::Connect { address: self.address.clone(), source })?;
        let handshake = http1::Builder::new().title_case_headers(true).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|source| self.failed(source))?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn read(&self, response: http::Response<Incoming>) -> Result<Reply, ClientError> {
        let (head, mut incoming) = response.into_parts();
        let mut body = BytesMut::new();
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|source| self.failed(source))?;
            let Ok(data) = frame.into_data() else { continue };
            if body.len() + data.len() > self.limit {
                return Err(ClientError::TooLong(self.limit));
            }
            body.extend_from_slice(&data);
        }
        Ok(Reply { status: head.status, headers: head.headers, body: body.freeze(), scheme: self.address.scheme() })
    }

    fn failed(&self, source: hyper::Error) -> ClientError {
        ClientError::Exchange { address: self.address.clone(), source }
    }
}

/// Sends a GET request for one URL: `http://host:port/path?query`, the same with `https`, or without the scheme.
/// Redirects are not followed.
///
/// # Errors
/// There is no response; any status is a response.
pub async fn get(url: &str) -> Result<Reply, ClientError> {
    let (address, path) = Address::split_url(url)?;
    Client::at(address).get(&path).await
}
