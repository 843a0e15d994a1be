//! Sends requests to an etcd cluster: one member after the other is asked until one answers.
//!
//! It repeats no request that may have been carried out: the callers decide what can be repeated.

use std::time::Duration;

use serde_json::{Value, json};
use wire::client::{Address, Client, ClientError};
use wire::http::StatusCode;
use wire::tls::Tls;

use super::url::EtcdUrl;

const JSON: &str = "application/json";
/// Maximum length of an answer in bytes: several times that of the largest entry.
const ANSWER_MAX: usize = 8 << 20;
/// Maximum number of characters of an unexpected answer that are reported.
const SHOWN_MAX: usize = 200;
/// gRPC codes of errors that another member, or a later request, may not have: cancelled, deadline exceeded, aborted,
/// unavailable.
const TRANSIENT: [i64; 4] = [1, 4, 10, 14];
/// gRPC code for a request that is too large, or a store that is full.
const EXHAUSTED: i64 = 8;
/// gRPC code for an invalid token.
const UNAUTHENTICATED: i64 = 16;

/// An error of a request to etcd.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// A member cannot be reached, or has not answered in time.
    #[error("etcd does not answer")]
    Silent(#[from] ClientError),
    /// A member returns an error.
    #[error("etcd returned an error: {message}")]
    Refused {
        /// gRPC code of the error.
        code: i64,
        /// Message of the member.
        message: String,
    },
    /// The address is not that of an etcd, or of one without the gateway.
    #[error(
        "{address} answers {path} with {answer}: it is not an etcd from version 3.4 on, or was started with \
         --enable-grpc-gateway=false"
    )]
    NoEtcd {
        /// Address of the member.
        address: String,
        /// Path of the request.
        path: &'static str,
        /// Status, and the beginning of the body.
        answer: String,
    },
    /// The answer lacks a required part.
    #[error("the answer of etcd to {0} is invalid")]
    Invalid(&'static str),
}

impl EtcdError {
    /// Returns whether another member, or the same one later, may answer.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            EtcdError::Silent(error) => !matches!(error, ClientError::TooLong(_)),
            EtcdError::Refused { code, .. } => TRANSIENT.contains(code) || *code == UNAUTHENTICATED,
            EtcdError::NoEtcd { .. } | EtcdError::Invalid(_) => false,
        }
    }

    /// Returns whether the answer is too large: for the gateway, for etcd, or for this client.
    pub(super) fn is_too_large(&self) -> bool {
        self.code() == Some(EXHAUSTED) || matches!(self, EtcdError::Silent(ClientError::TooLong(_)))
    }

    pub(super) fn code(&self) -> Option<i64> {
        match self {
            EtcdError::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// An etcd cluster, with credentials and TLS.
#[derive(Clone)]
pub struct Service {
    /// Addresses of the members, and the prefix of keys.
    pub url: EtcdUrl,
    /// User and password; `None` without authentication.
    pub credential: Option<(String, String)>,
    /// Authority and certificate of this process, for `https://`.
    pub tls: Option<Tls>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.url)
    }
}

/// A client of a cluster's members. It is connected with one of them at a time.
pub(super) struct Connection {
    service: Service,
    /// Index of the member that is asked.
    at: usize,
    client: Option<Client>,
    /// Time limit for an answer of a member.
    patience: Duration,
}

impl Connection {
    /// Creates a client; `seed` decides which member is asked first.
    pub(super) fn new(service: Service, patience: Duration, seed: u64) -> Connection {
        let at = usize::try_from(seed % service.url.servers().len().max(1) as u64).unwrap_or_default();
        Connection { service, at, client: None, patience }
    }

    /// Returns the number of members in the URL.
    pub(super) fn members(&self) -> usize {
        self.service.url.servers().len()
    }

    /// Returns the key of the group with this name.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}/{name}", self.service.url.prefix())
    }

    /// Asks one member once. After an error the next request goes to the next member.
    ///
    /// # Errors
    /// The member does not answer, or returns an error. The request may have been carried out.
    pub(super) async fn ask(&mut self, path: &'static str, request: &Value) -> Result<Value, EtcdError> {
        let answer = self.ask_this(path, request).await;
        if let Err(error) = &answer {
            self.client = None;
            // A member that rejects the token issues another one.
            if error.is_transient() && error.code() != Some(UNAUTHENTICATED) {
                self.at = (self.at + 1) % self.members().max(1);
            }
        }
        answer
    }

    async fn ask_this(&mut self, path: &'static str, request: &Value) -> Result<Value, EtcdError> {
        if self.client.is_none() {
            self.client = Some(self.connect().await?);
        }
        match &mut self.client {
            Some(client) => send(client, path, request).await,
            None => Err(EtcdError::Invalid(path)),
        }
    }

    /// Returns a client of the current member, with a token if there are user and password.
    async fn connect(&self) -> Result<Client, EtcdError> {
        let servers = self.service.url.servers();
        let address = servers.get(self.at).or(servers.first()).ok_or(EtcdError::Invalid("no request"))?;
        let client = Client::at(address.clone()).with_timeout(self.patience).with_limit(ANSWER_MAX);
        let mut client = match &self.service.tls {
            Some(tls) => client.with_tls(tls.clone()),
            None => client,
        };
        let Some((name, password)) = &self.service.credential else { return Ok(client) };
        const PATH: &str = "/v3/auth/authenticate";
        let answer = send(&mut client, PATH, &json!({ "name": name, "password": password })).await?;
        let token = answer["token"].as_str().ok_or(EtcdError::Invalid(PATH))?.to_owned();
        Ok(client.with_authorization(token))
    }
}

async fn send(client: &mut Client, path: &'static str, request: &Value) -> Result<Value, EtcdError> {
    let reply = client.post(path, JSON, JSON, &[], request.to_string().into()).await?;
    answer(client.address(), path, reply.status, &reply.body)
}

/// Parses the JSON of an answer, unless it is an error.
pub(super) fn answer(
    address: &Address,
    path: &'static str,
    status: StatusCode,
    body: &[u8],
) -> Result<Value, EtcdError> {
    let no_etcd = || {
        let text: String = String::from_utf8_lossy(body).trim().chars().take(SHOWN_MAX).collect();
        let answer = format!("{status} ('{}')", text.escape_debug());
        EtcdError::NoEtcd { address: address.to_string(), path, answer }
    };
    let answer: Value = serde_json::from_slice(body).map_err(|_| no_etcd())?;
    // Errors of streams have the status 200.
    let error = answer.get("error").filter(|error| error.is_object()).unwrap_or(&answer);
    let code = error.get("code").or(error.get("grpc_code")).and_then(Value::as_i64);
    match (status, code) {
        (_, Some(code)) if code != 0 => {
            let message = error["message"].as_str().or(error["error"].as_str()).unwrap_or_default();
            Err(EtcdError::Refused { code, message: message.chars().take(SHOWN_MAX).collect() })
        }
        (StatusCode::OK, _) => Ok(answer),
        _ => Err(no_etcd()),
    }
}
