//! Reads the registered agents of a cluster and their resources from the leading master's operator API.
//!
//! Offers contain free resources only; this answer also contains those that are in use. It needs no subscription.

use std::time::Duration;

use prost::Message;
use protos::mesos::v1::master::response::get_agents::Agent;
use protos::mesos::v1::master::{Call, Response, call};
use serde::Deserialize;
use wire::client::{Address, Client, ClientError};
use wire::http::{PROTOBUF, StatusCode};

use super::masters::{AddressError, address};

/// Maximum length of an answer in bytes: that of 10,000 agents has some 10 MB.
const ANSWER_MAX: usize = 256 << 20;
/// Maximum length of the answer with an agent's flags, in bytes.
const FLAGS_MAX: usize = 1 << 20;
/// Maximum length of an agent's statistics in bytes: those of 10,000 containers have some 10 MB.
const STATISTICS_MAX: usize = 64 << 20;

/// An error of a request for agents or for what they report.
#[derive(Debug, thiserror::Error)]
pub enum AgentsError {
    /// No master was found.
    #[error("the leading master is not known")]
    Address(#[from] AddressError),
    /// The request failed without an answer.
    #[error("there is no answer")]
    Client(#[from] ClientError),
    /// The request was refused: the principal is not authorized to see this, or there is no credential.
    #[error("the request is refused with {0}: {1}")]
    Refused(StatusCode, String),
    /// The master that another one names as the leader does not lead either.
    #[error("no master leads at this moment")]
    NoLeader,
    /// The answer is invalid.
    #[error("the answer to GET_AGENTS is invalid")]
    Invalid(#[from] prost::DecodeError),
    /// The answer of an agent is not JSON.
    #[error("the answer of an agent is invalid")]
    Json(#[from] serde_json::Error),
}

/// Resource usage of an executor's container, as an agent's `/monitor/statistics` reports it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ContainerUse {
    /// Id of the executor; for a task that runs without an executor of its own, the id of the task.
    pub executor_id: String,
    /// Id of the executor's framework.
    pub framework_id: String,
    /// Measurements of the container.
    pub statistics: Statistics,
}

/// Measurements of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Statistics {
    /// Time of the measurement, in seconds since the Unix epoch.
    pub timestamp: f64,
    /// CPU time in user mode so far, in seconds.
    pub cpus_user_time_secs: f64,
    /// CPU time in the kernel so far, in seconds.
    pub cpus_system_time_secs: f64,
    /// Time for which the container was throttled by its CPU limit so far, in seconds.
    pub cpus_throttled_time_secs: f64,
    /// Memory that is in use now, in bytes.
    pub mem_rss_bytes: f64,
}

/// A client of a cluster's operator API: the masters, as the driver was given them, and the framework's credential.
#[derive(Clone)]
pub struct Cluster {
    pub(super) masters: String,
    pub(super) credential: Option<(String, String)>,
}

impl Cluster {
    /// Returns the active agents that the leading master knows. Each request takes at most `within`.
    ///
    /// # Errors
    /// There is no leader, or it does not answer or refuses.
    pub async fn agents(&self, within: Duration) -> Result<Vec<Agent>, AgentsError> {
        let mut client = self.client(address(&self.masters, within).await?, within);
        let mut path = "/api/v1".to_owned();
        let call = Call { r#type: Some(call::Type::GetAgents as i32), ..Call::default() };
        // A single address may be that of a master that does not lead; it names the leader.
        for _ in 0..2 {
            let reply = client.post(&path, PROTOBUF, PROTOBUF, &[], call.encode_to_vec().into()).await?;
            match reply.redirect() {
                Some((leader, there)) => {
                    client = self.client(leader, within);
                    path = there;
                }
                None if reply.status == StatusCode::OK => {
                    let response = Response::decode(reply.body)?;
                    let agents = response.get_agents.map(|get| get.agents).unwrap_or_default();
                    return Ok(agents.into_iter().filter(|a| a.active && a.deactivated != Some(true)).collect());
                }
                None => return Err(AgentsError::Refused(reply.status, reply.text())),
            }
        }
        Err(AgentsError::NoLeader)
    }

    /// Returns the value of one of an agent's flags, from its `/flags`; `None` if it has no such flag. The credential
    /// is for masters and is not sent.
    ///
    /// # Errors
    /// The agent does not answer or refuses.
    pub async fn agent_flag(&self, agent: &Agent, flag: &str, within: Duration) -> Result<Option<String>, AgentsError> {
        let pid = agent.pid.as_deref().unwrap_or_default();
        let address = pid.rsplit_once('@').map_or(pid, |(_, address)| address);
        let address = address.parse().map_err(ClientError::Address)?;
        let reply = Client::at(address).with_timeout(within).with_limit(FLAGS_MAX).get("/flags").await?;
        if reply.status != StatusCode::OK {
            return Err(AgentsError::Refused(reply.status, reply.text()));
        }
        let flags: serde_json::Value = serde_json::from_slice(&reply.body)?;
        Ok(flags["flags"][flag].as_str().map(str::to_owned))
    }

    /// Returns what the containers of an agent have used, from the `/monitor/statistics` of its `host:port`. The
    /// credential is for masters and is not sent.
    ///
    /// # Errors
    /// The agent does not answer or refuses.
    pub async fn agent_statistics(&self, agent: &str, within: Duration) -> Result<Vec<ContainerUse>, AgentsError> {
        let address = agent.parse().map_err(ClientError::Address)?;
        let mut client = Client::at(address).with_timeout(within).with_limit(STATISTICS_MAX);
        let reply = client.get("/monitor/statistics").await?;
        if reply.status != StatusCode::OK {
            return Err(AgentsError::Refused(reply.status, reply.text()));
        }
        Ok(serde_json::from_slice(&reply.body)?)
    }

    fn client(&self, address: Address, within: Duration) -> Client {
        let client = Client::at(address).with_timeout(within).with_limit(ANSWER_MAX);
        match &self.credential {
            Some((principal, secret)) => client.with_basic(principal, secret),
            None => client,
        }
    }
}

/// Formats the cluster without the secret.
impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}
