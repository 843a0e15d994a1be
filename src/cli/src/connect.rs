//! Requests to the leading master: finds it, follows a standby's redirect, and explains errors.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wire::client::{Address, Client, ClientError, Records, Reply, Subscription};
use wire::http::StatusCode;
use wire::tls::{Role, Settings, Tls};

use crate::read::model::Agents;

const JSON: &str = "application/json";
/// Time limit for the detection of the leading master in ZooKeeper.
const ZOOKEEPER: Duration = Duration::from_secs(10);

/// A request to a master: a path to read, or a call of the operator API.
struct MasterRequest<'a> {
    path: &'a str,
    call: Option<String>,
}

impl MasterRequest<'static> {
    /// Creates a call of the operator API; `body` is in the field of the call's name, and null for a call without one.
    fn call(name: &str, body: &Value) -> MasterRequest<'static> {
        let mut call = json!({ "type": name });
        if !body.is_null() {
            call[name.to_lowercase()] = body.clone();
        }
        MasterRequest { path: "/api/v1", call: Some(call.to_string()) }
    }
}

/// Flags of every command that talks to a master.
#[derive(Clone, Debug, clap::Args)]
pub struct MasterArgs {
    /// The master: host[:port], a list of masters separated by commas, or zk://[user:password@]host:port,.../path
    #[arg(long, short, env = "TEPUI_MASTER", default_value = "127.0.0.1:5050", value_name = "MASTER")]
    pub master: String,
    /// Principal, if the master authenticates clients
    #[arg(long, requires = "secret")]
    pub principal: Option<String>,
    /// The principal's secret
    #[arg(long, requires = "principal", env = "TEPUI_SECRET", hide_env_values = true)]
    pub secret: Option<String>,
}

impl MasterArgs {
    /// Returns the principal with its secret.
    pub fn credential(&self) -> Option<(String, String)> {
        Some((self.principal.clone()?, self.secret.clone()?))
    }

    /// Reads a JSON document from the leading master.
    ///
    /// # Errors
    /// No master answers, or its answer is not this document.
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.ask(&MasterRequest { path, call: None }).await
    }

    /// Makes a call of the operator API to the leading master, and returns the answer's field of the call's name.
    ///
    /// # Errors
    /// No master answers, or it rejects the call.
    pub async fn call(&self, name: &str, body: &Value) -> Result<Value> {
        let mut answer: Value = self.ask(&MasterRequest::call(name, body)).await?;
        Ok(answer[name.to_lowercase()].take())
    }

    /// Makes a call of the operator API whose answer has no body.
    ///
    /// # Errors
    /// As [`call`](MasterArgs::call).
    pub async fn send_call(&self, name: &str, body: &Value) -> Result<()> {
        self.reply(&MasterRequest::call(name, body)).await.map(|_| ())
    }

    /// Subscribes to the events of the leading master.
    ///
    /// # Errors
    /// No master answers, or it rejects the subscription.
    pub async fn subscribe(&self) -> Result<Records> {
        let address = self.address().await?;
        let request = MasterRequest::call("SUBSCRIBE", &Value::Null);
        let body = || request.call.clone().unwrap_or_default().into();
        let open = async |address: &Address, path: &str| {
            let opened = self.client(address).subscribe(path, JSON, JSON, &[], body()).await;
            opened.map_err(|error| explain(error, address))
        };
        let reply = match open(&address, request.path).await? {
            Subscription::Stream(records) => return Ok(records),
            Subscription::Refused(reply) => reply,
        };
        let Some((leader, path)) = reply.redirect() else { return Err(self.rejected(&address, &request, &reply)) };
        match open(&leader, &path).await? {
            Subscription::Stream(records) => Ok(records),
            Subscription::Refused(reply) => Err(self.rejected(&leader, &request, &reply)),
        }
    }

    /// Waits until this many agents are registered.
    ///
    /// # Errors
    /// There are fewer of them after `patience`, or there is no master.
    pub async fn wait_for_agents(&self, wanted: usize, patience: Duration) -> Result<()> {
        let began = now();
        loop {
            let problem = match self.read::<Agents>("/slaves").await {
                Ok(agents) if agents.slaves.iter().filter(|a| a.active).count() >= wanted => return Ok(()),
                Ok(agents) => anyhow!("{} of {wanted} agents registered", agents.slaves.len()),
                Err(error) => error,
            };
            if began.elapsed() > patience {
                return Err(problem.context(format!("no cluster within {} s", patience.as_secs())));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Makes TLS the default of this process if the master's address starts with https://. Its agents have TLS then,
    /// and are verified like the master.
    ///
    /// # Errors
    /// The settings or the files of TLS are invalid.
    pub(crate) fn prepare_tls(&self) -> Result<()> {
        if !self.master.split(',').any(|address| address.trim().starts_with("https:")) {
            return Ok(());
        }
        let settings = Settings::from_environment().context("invalid TLS settings")?;
        let verify_server_cert = Some(settings.verify_server_cert.unwrap_or(true));
        let settings = Settings { enabled: true, verify_server_cert, support_downgrade: false, ..settings };
        wire::client::configure(Tls::load(settings, Role::Client)?);
        Ok(())
    }

    async fn ask<T: DeserializeOwned>(&self, request: &MasterRequest<'_>) -> Result<T> {
        let (address, reply) = self.reply(request).await?;
        serde_json::from_slice(&reply.body).with_context(|| {
            format!("{address} sent an unexpected answer to {}: is it a Mesos or tepui master?", request.path)
        })
    }

    /// Returns the address of the master, or of the leader of several masters.
    async fn address(&self) -> Result<Address> {
        self.prepare_tls()?;
        sdk::driver::address(&self.master, ZOOKEEPER).await.context("--master")
    }

    /// Returns the answer of the leading master, and the address that answered.
    async fn reply(&self, request: &MasterRequest<'_>) -> Result<(Address, Reply)> {
        let address = self.address().await?;
        let mut reply = self.send(address.clone(), request).await?;
        if let Some((leader, path)) = reply.redirect() {
            reply = self.send(leader, &MasterRequest { path: &path, call: request.call.clone() }).await?;
        }
        match reply.status {
            StatusCode::OK | StatusCode::ACCEPTED => Ok((address, reply)),
            _ => Err(self.rejected(&address, request, &reply)),
        }
    }

    /// Returns an error with the reason why a daemon rejected a request.
    fn rejected(&self, address: &Address, request: &MasterRequest<'_>, reply: &Reply) -> anyhow::Error {
        let (path, text) = (request.path, reply.text().trim().to_owned());
        match reply.status {
            StatusCode::BAD_REQUEST if request.call.is_some() => anyhow!("{text}"),
            StatusCode::UNAUTHORIZED if self.principal.is_some() => {
                anyhow!("{address} rejects --principal and --secret: the principal is unknown, or the secret is wrong")
            }
            StatusCode::UNAUTHORIZED => anyhow!("{address} authenticates clients: give --principal and --secret"),
            StatusCode::NOT_FOUND if request.call.is_some() => NotFound(text).into(),
            StatusCode::NOT_FOUND => {
                anyhow!("{address} has no {path}: is it an agent? Name the master with --master or TEPUI_MASTER")
            }
            status => anyhow!("{address} answered {path} with {status}: {text}"),
        }
    }

    fn client(&self, address: &Address) -> Client {
        let client = Client::at(address.clone());
        match self.credential() {
            Some((principal, secret)) => client.with_basic(&principal, &secret),
            None => client,
        }
    }

    async fn send(&self, address: Address, request: &MasterRequest<'_>) -> Result<Reply> {
        let mut client = self.client(&address);
        let reply = match &request.call {
            None => client.get(request.path).await,
            Some(call) => client.post(request.path, JSON, JSON, &[], call.clone().into()).await,
        };
        reply.map_err(|error| explain(error, &address))
    }
}

/// An error for a call that names something that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not found: {0}")]
pub(crate) struct NotFound(String);

#[expect(clippy::disallowed_methods, reason = "how long to wait for processes is real time")]
fn now() -> Instant {
    Instant::now()
}

/// Adds a hint to an error that says what to do about it.
fn explain(error: ClientError, address: &Address) -> anyhow::Error {
    let hint = match &error {
        _ if error.is_of_tls() => {
            format!("no TLS with the master at {address}: see docs/security.md for its authority and certificates")
        }
        ClientError::Connect { .. } => format!(
            "no master at {address}: start a cluster with `tepui local`, or name its master with --master or TEPUI_MASTER"
        ),
        _ => format!("the master at {address} does not answer"),
    };
    anyhow::Error::new(error).context(hint)
}
