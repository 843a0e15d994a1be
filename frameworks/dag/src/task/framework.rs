//! Client of the framework's API for a runner: locations of outputs, and reports.

use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use wire::client::{Address, Client};
use wire::http::{Method, StatusCode};

use super::failed::TaskFailure;
use super::{Fault, Report, SandboxSource};

/// Time that the framework may take to answer; it may be restarting.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of attempts of a request.
const ATTEMPTS_MAX: u32 = 6;
/// Time between two attempts.
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// A client of the framework's API for one task.
pub(super) struct FrameworkClient {
    pub(super) api: String,
    /// Id of the task.
    pub(super) task: String,
}

impl FrameworkClient {
    /// Returns the locations of the outputs that this task reads.
    pub(super) async fn sources(&mut self) -> Result<Vec<SandboxSource>, TaskFailure> {
        let path = format!("/v1/tasks/{}/sources", utf8_percent_encode(&self.task, NON_ALPHANUMERIC));
        let body = self.ask(Method::GET, &path, Vec::new()).await?;
        let unclear = |error| TaskFailure::new(Fault::Framework, format!("the framework's answer: {error}"));
        serde_json::from_slice(&body).map_err(unclear)
    }

    /// Reports to the framework what the exit code cannot express.
    pub(super) async fn report(&mut self, report: &Report) -> Result<(), TaskFailure> {
        let path = format!("/v1/tasks/{}/report", utf8_percent_encode(&self.task, NON_ALPHANUMERIC));
        self.ask(Method::POST, &path, serde_json::to_vec(report).unwrap_or_default()).await.map(drop)
    }

    async fn ask(&mut self, method: Method, path: &str, body: Vec<u8>) -> Result<Vec<u8>, TaskFailure> {
        let failed = |why: String| TaskFailure::new(Fault::Framework, format!("the framework at {}: {why}", self.api));
        let (address, _) = Address::split_url(&self.api).map_err(|error| failed(error.to_string()))?;
        let mut last = String::new();
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 0 {
                tokio::time::sleep(RETRY_WAIT).await;
            }
            let mut client = Client::at(address.clone()).with_timeout(REQUEST_TIMEOUT);
            let headers = [("Content-Type", "application/json")];
            match client.request(method.clone(), path, &headers, body.clone().into()).await {
                Ok(reply) if reply.status == StatusCode::OK => return Ok(reply.body.to_vec()),
                Ok(reply) => return Err(failed(format!("{}: {}", reply.status, reply.text()))),
                Err(error) => last = base::error_chain(&error),
            }
        }
        Err(failed(last))
    }
}
