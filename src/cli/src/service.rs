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
/// How much of an unexpected answer is shown, in characters.
const TEXT_SHOWN: usize = 120;

/// What is read of `/frameworks`.
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
    /// The command that runs the framework.
    command: &'static str,
}

/// A text as a part of a URL.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The path of a job, with what follows it.
pub(crate) fn path(job: &str, rest: &str) -> String {
    // A name with a slash would be another path; no job has one.
    format!("/v1/jobs/{}{rest}", encode(job))
}

impl Service {
    /// Finds the API: at `service` if it is given, else of the framework with this name, whose address the master has.
    ///
    /// # Errors
    /// An invalid address, a master that does not answer, or a missing framework.
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
            .with_context(|| format!("the framework says that it is at '{}'", found.webui_url))?;
        Ok(Service { address, command })
    }

    /// Where it is.
    #[cfg(feature = "video")]
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Where it is, as a URL without a path.
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
                "; from another machine it can be reached when it is started with --listen=0.0.0.0:PORT"
            } else {
                ""
            };
            format!("the framework at {} gave no answer{hint}", self.address)
        })?;
        let body = serde_json::from_slice::<Value>(&reply.body);
        if reply.status.is_success() {
            return body.with_context(|| {
                format!("{} answered {path} with something else: is it `{}`?", self.address, self.command)
            });
        }
        if let Some(error) = body.as_ref().ok().and_then(|body| body["error"].as_str()) {
            bail!("{error}");
        }
        // A server with TLS says in its answer to a plain request what to write.
        let text: String = reply.text().lines().next().unwrap_or_default().chars().take(TEXT_SHOWN).collect();
        bail!("{} answered {path} with {} ('{text}'): is it `{}`?", self.address, reply.status, self.command)
    }
}

/// A framework of jobs that commands talk to.
pub trait Kind: Clone + std::fmt::Debug + Send + Sync + 'static {
    /// The name that it has unless another one is given.
    const NAME: &'static str;
    /// The environment variable with the address of its API.
    const VARIABLE: &'static str;
    /// The command that runs it.
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
    /// The framework's name, where there are several
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
    /// An invalid address, a master that does not answer, or a missing framework.
    pub(crate) async fn find(&self) -> Result<Service> {
        Service::find(&self.master, self.service.as_deref(), &self.framework, K::COMMAND).await
    }

    /// Tells what was done, unless a program reads.
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
    /// Ends the jobs, one after the other; `verb` says what happens to each.
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
