//! Finds the API of a framework that runs jobs, and sends requests to it.
//!
//! The framework registers its address with the master as its `webui_url`.

use std::marker::PhantomData;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;
use wire::client::{Address, Client};
use wire::http::Method;

use crate::connect::MasterArgs;
use crate::read::print;

const JSON: &str = "application/json";
/// Number of characters of an unexpected answer that are shown.
const TEXT_SHOWN: usize = 120;

/// The fields of `/frameworks` that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Frameworks {
    frameworks: Vec<Framework>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Framework {
    name: String,
    active: bool,
    webui_url: String,
}

/// The API of a framework.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    address: Address,
    /// Command that runs the framework.
    command: &'static str,
}

/// Encodes a text as a part of a URL.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Returns the path of a job, followed by `rest`.
pub(crate) fn path(job: &str, rest: &str) -> String {
    // An encoded slash does not lead to another path; no job has a slash in its name.
    format!("/v1/jobs/{}{rest}", encode(job))
}

impl Service {
    /// Finds the API: at `service` if it is given, otherwise that of the framework with this name, whose address the
    /// master has.
    ///
    /// # Errors
    /// The address is invalid, the master does not answer, or no such framework is registered.
    pub(crate) async fn find(
        master: &MasterArgs,
        service: Option<&str>,
        framework: &str,
        command: &'static str,
    ) -> Result<Service> {
        if let Some(text) = service {
            let text = text.trim_end_matches('/');
            let address = text.parse();
            let address =
                address.with_context(|| format!("--service={text}: write it as for example 127.0.0.1:8080"))?;
            return Ok(Service { address, command });
        }
        let all: Frameworks = master.read("/frameworks").await?;
        let wanted = |f: &&Framework| f.name == framework && f.active && !f.webui_url.is_empty();
        let Some(found) = all.frameworks.iter().rev().find(wanted) else {
            bail!(
                "no framework '{framework}' is running on this cluster; start it with `{command} --master={}`",
                master.master
            );
        };
        let (address, _) = Address::split_url(&found.webui_url)
            .with_context(|| format!("invalid address '{}' of the framework", found.webui_url))?;
        Ok(Service { address, command })
    }

    /// Returns the address of the API.
    #[cfg(feature = "video")]
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the URL of the API, without a path.
    #[cfg(feature = "video")]
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", if wire::client::is_tls(&self.address) { "https" } else { "http" }, self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.ask(Method::GET, path, JSON, Vec::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask(Method::POST, path, JSON, body.to_string().into_bytes()).await
    }

    pub(crate) async fn post_text(&self, path: &str, content_type: &'static str, body: &str) -> Result<Value> {
        self.ask(Method::POST, path, content_type, body.as_bytes().to_vec()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<Value> {
        self.ask(Method::DELETE, path, JSON, Vec::new()).await
    }

    async fn ask(&self, method: Method, path: &str, content_type: &'static str, body: Vec<u8>) -> Result<Value> {
        let mut client = Client::at(self.address.clone());
        let headers = [("Content-Type", content_type)];
        let reply = client.request(method, path, &headers, body.into()).await;
        let reply = reply.with_context(|| {
            let hint = if self.address.host().starts_with("127.") {
                "; other machines can reach it only if it was started with --listen=0.0.0.0:PORT"
            } else {
                ""
            };
            format!("the framework at {} does not answer{hint}", self.address)
        })?;
        let body = serde_json::from_slice::<Value>(&reply.body);
        if reply.status.is_success() {
            return body.with_context(|| {
                format!("{} sent an unexpected answer to {path}: is it `{}`?", self.address, self.command)
            });
        }
        if let Some(error) = body.as_ref().ok().and_then(|body| body["error"].as_str()) {
            bail!("{error}");
        }
        // A server with TLS answers a plain request with a hint.
        let text: String = reply.text().lines().next().unwrap_or_default().chars().take(TEXT_SHOWN).collect();
        bail!("{} answered {path} with {} ('{text}'): is it `{}`?", self.address, reply.status, self.command)
    }
}

/// A framework of jobs to which commands send requests.
pub trait Kind: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// Default name of the framework.
    const NAME: &'static str;
    /// Environment variable with the address of the framework's API.
    const VARIABLE: &'static str;
    /// Command that runs the framework.
    const COMMAND: &'static str;
}

/// Flags of every command that talks to a framework of jobs.
#[derive(Clone, Debug, clap::Args)]
pub struct ServiceArgs<K: Kind> {
    #[command(flatten)]
    pub(crate) master: MasterArgs,
    /// The framework's API, as host:port; if not given, the master is asked
    #[arg(long, short, env = K::VARIABLE, value_name = "ADDRESS")]
    service: Option<String>,
    /// Name of the framework, if there are several
    #[arg(long, short, default_value = K::NAME, value_name = "NAME")]
    framework: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[arg(skip)]
    kind: PhantomData<K>,
}

impl<K: Kind> ServiceArgs<K> {
    /// Finds the framework's API.
    ///
    /// # Errors
    /// The address is invalid, the master does not answer, or no such framework is registered.
    pub(crate) async fn find(&self) -> Result<Service> {
        Service::find(&self.master, self.service.as_deref(), &self.framework, K::COMMAND).await
    }

    /// Prints what was done; with `--json` only that it was done.
    pub(crate) fn say(&self, text: &str) -> Result<ExitCode> {
        print(if self.json { r#"{"done":true}"# } else { text })
    }
}

/// Flags of commands that end jobs.
#[derive(Debug, clap::Args)]
pub struct EndArgs<K: Kind> {
    #[command(flatten)]
    service: ServiceArgs<K>,
    /// The jobs' names
    #[arg(required = true, value_name = "JOB")]
    jobs: Vec<String>,
}

impl<K: Kind> EndArgs<K> {
    /// Ends the jobs, one after the other; `verb` is the word for that in messages.
    ///
    /// # Errors
    /// The framework is not found, or does not have a job.
    pub(crate) async fn end(&self, verb: &str) -> Result<ExitCode> {
        let service = self.service.find().await?;
        for job in &self.jobs {
            service.delete(&path(job, "")).await?;
            self.service.say(&format!("{job} is being {verb}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
