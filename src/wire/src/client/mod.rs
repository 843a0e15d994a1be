//! An HTTP client for Mesos's v1 APIs and reading endpoints. It knows no calls and does not decode answers.

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

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The text is not an address.
    #[error("cannot use the address")]
    Address(#[from] AddressError),
    /// No process listens there.
    #[error("cannot connect to {address}")]
    Connect {
        /// The address of the server.
        address: Address,
        /// The cause.
        source: std::io::Error,
    },
    /// A header or a path holds what cannot stand there.
    #[error("cannot form the request")]
    Request(#[from] http::Error),
    /// The connection broke, or what came is not HTTP.
    #[error("the exchange with {address} failed")]
    Exchange {
        /// The peer.
        address: Address,
        /// The cause.
        source: hyper::Error,
    },
    /// The time ran out.
    #[error("no answer from {address} within {after:?}")]
    Timeout {
        /// The peer.
        address: Address,
        /// The time limit.
        after: Duration,
    },
    /// What was to take the body of the response failed.
    #[error("cannot store the answer")]
    Sink(#[source] std::io::Error),
    /// The response exceeds the client's limit.
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
    /// Whether the host was reached, and no TLS could be agreed on with it; or the own settings of TLS are wrong.
    #[must_use]
    pub fn is_of_tls(&self) -> bool {
        use std::io::ErrorKind::{InvalidData, InvalidInput, Other};
        // The system's errors, and those of looking up a name, are of other kinds.
        matches!(self, ClientError::Connect { source, .. } if matches!(source.kind(), InvalidData | InvalidInput | Other))
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// How it was asked for; a redirect without a scheme keeps it.
    scheme: Scheme,
}

impl Reply {
    /// The last value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        last_value(&self.headers, name)
    }

    /// The body as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Where a 307 leads: the address and the path with query. The scheme may be left out
    /// (`//host:port/path`): it is then that of the request.
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

/// What came of a request for a stream.
#[derive(Debug)]
pub enum Subscription {
    /// 200: the stream, with the headers of its response.
    Stream(Records),
    /// Anything else.
    Refused(Reply),
}

/// A client of one server. Calls go over one connection that is kept open; each stream has a connection of its own.
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
    /// A client of the server at `host:port`, `http://host:port` or `https://host:port`; it connects when it is first
    /// needed.
    ///
    /// # Errors
    /// When the text is no such address.
    pub fn new(address: &str) -> Result<Client, ClientError> {
        Ok(Client::at(address.parse()?))
    }

    /// A client of the server at an address. The time limit is 30 s, the length limit of answers 1 GiB.
    pub fn at(address: Address) -> Client {
        let timeout = Duration::from_secs(30);
        Client { address, authorization: None, timeout, limit: 1 << 30, tls: None, connection: None }
    }

    /// Sends these credentials with every request (HTTP Basic).
    #[must_use]
    pub fn with_basic(self, user: &str, password: &str) -> Client {
        let header = crate::auth::basic_header(user, password);
        self.with_authorization(header)
    }

    /// Sends this `Authorization` with every request, such as `Bearer <token>`.
    #[must_use]
    pub fn with_authorization(mut self, header: String) -> Client {
        self.authorization = Some(header);
        self
    }

    /// Uses this TLS instead of [that of the process](configure).
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Client {
        self.tls = Some(tls);
        self
    }

    /// How long a request may take from connecting to the last byte; for a stream, to its headers.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Client {
        self.timeout = timeout;
        self
    }

    /// How many bytes an answer, or a record of a stream, may have.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Client {
        self.limit = limit;
        self
    }

    /// The address of the server.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Reads a path.
    ///
    /// # Errors
    /// No answer arrives; any status is an answer.
    pub async fn get(&mut self, path: &str) -> Result<Reply, ClientError> {
        self.get_with(path, &[]).await
    }

    /// Reads a path, with these headers in the request.
    ///
    /// # Errors
    /// No answer comes; any status is an answer.
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

    /// Any request over the kept connection.
    ///
    /// # Errors
    /// When no answer comes; any status is an answer.
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

    /// Reads a path and writes the body of a 200 to `sink`, piece by piece, so that it may be longer than memory. The
    /// reply has no body then; that of any other status has its own. The time limit holds for each piece, the length
    /// limit for the whole.
    ///
    /// # Errors
    /// When no answer comes or it breaks off, or the first error of `sink`; a part may have been written by then.
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
            // The server closed the kept connection meanwhile, and has seen nothing of the request.
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

    /// The kept connection, if it still stands, or a new one.
    async fn ready_connection(&mut self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        if let Some(mut kept) = self.connection.take()
            && kept.ready().await.is_ok()
        {
            return Ok(kept);
        }
        self.connect().await
    }

    /// Posts a call that is answered by a stream of records, over a connection of its own.
    ///
    /// # Errors
    /// When no answer comes.
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

/// Reads one URL: `http://host:port/path?query`, the same with `https`, or without the scheme. Redirects are not
/// followed.
///
/// # Errors
/// When no answer comes; any status is an answer.
pub async fn get(url: &str) -> Result<Reply, ClientError> {
    let (address, path) = Address::split_url(url)?;
    Client::at(address).get(&path).await
}
