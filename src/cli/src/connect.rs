//! Reading from a master: where it is, following a follower's redirect, and errors that say what to do.

use anyhow::{Context, Result, anyhow, bail};
use serde::de::DeserializeOwned;
use wire::client::{Address, Client, ClientError, Reply};
use wire::http::StatusCode;

/// Flags of every command that talks to a master.
#[derive(Clone, Debug, clap::Args)]
pub struct MasterArgs {
    /// The master, as host:port, or several separated by commas
    #[arg(long, short, env = "TEPUI_MASTER", default_value = "127.0.0.1:5050", value_name = "MASTER")]
    pub master: String,
    /// Who calls, if the master wants to know
    #[arg(long, requires = "secret")]
    pub principal: Option<String>,
    /// The principal's secret
    #[arg(long, requires = "principal", env = "TEPUI_SECRET", hide_env_values = true)]
    pub secret: Option<String>,
}

impl MasterArgs {
    /// The principal with its secret.
    pub fn credential(&self) -> Option<(String, String)> {
        Some((self.principal.clone()?, self.secret.clone()?))
    }

    /// Reads a JSON document from the leading master.
    ///
    /// # Errors
    /// No master answers, or not with this document.
    pub async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let mut last = anyhow!("--master names no master");
        for part in self.master.split(',') {
            let address: Address = match part.trim().parse() {
                Ok(address) => address,
                Err(_) => bail!("'{part}' is not a master; write it as for example --master=127.0.0.1:5050"),
            };
            match self.read_from(address, path).await {
                Ok(document) => return Ok(document),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn read_from<T: DeserializeOwned>(&self, address: Address, path: &str) -> Result<T> {
        let mut reply = self.get(address.clone(), path).await?;
        if let Some((leader, path)) = reply.redirect() {
            reply = self.get(leader, &path).await?;
        }
        match reply.status {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED => bail!("{address} wants to know who asks: give --principal and --secret"),
            status => bail!("{address} answered {path} with {status}: {}", reply.text().trim()),
        }
        serde_json::from_slice(&reply.body)
            .with_context(|| format!("{address} answered {path} with something else: is it a Mesos or tepui master?"))
    }

    async fn get(&self, address: Address, path: &str) -> Result<Reply> {
        let mut client = Client::at(address.clone());
        if let Some((principal, secret)) = self.credential() {
            client = client.with_basic(&principal, &secret);
        }
        client.get(path).await.map_err(|error| explain(error, &address))
    }
}

/// An error with what to do about it.
fn explain(error: ClientError, address: &Address) -> anyhow::Error {
    let hint = match &error {
        ClientError::Connect { .. } => format!(
            "no master at {address}: start a cluster with `tepui local`, or name its master with --master or TEPUI_MASTER"
        ),
        _ => format!("the master at {address} gave no answer"),
    };
    anyhow::Error::new(error).context(hint)
}
