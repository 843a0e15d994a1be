//! `GET /redirect`: asks a master which master leads.
//!
//! Every master answers it without authentication, Mesos's too: with 307 to the leader, itself included, or with 503
//! while no master leads. Masters of tepui add headers with their own PID and the leader's, and hold the answer for a
//! caller that waits for a leader.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use base::Pid;
use wire::client::{Address, Client, ClientError, Reply};
use wire::http::StatusCode;

use crate::Leader;
use crate::list::is_same;

/// Header of the answer to `/redirect`: the PID of the master that answers.
pub const MASTER_HEADER: &str = "tepui-master";
/// Header of the answer to `/redirect`: the PID of the leading master.
pub const LEADER_HEADER: &str = "tepui-leader";

/// Header of a request to `/redirect`, in milliseconds: the time for which a master that does not lead holds its answer
/// while it knows no leader but the previous one. Mesos's masters, and older ones of tepui, answer at once.
pub const WAIT_HEADER: &str = "tepui-wait";
/// Header of a request to `/redirect`: the PID of the leader that the caller knows, and which does not answer it.
pub const PREVIOUS_HEADER: &str = "tepui-previous-leader";

const PATH: &str = "/redirect";
/// Maximum time for which a master holds its answer: somewhat less than the time limit for the answer.
const WAIT: Duration = Duration::from_secs(2);
/// Time limit for an answer of a master.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);
/// Maximum length of an answer in bytes.
const ANSWER_MAX: usize = 64 << 10;
/// Maximum number of characters of an unexpected answer that are reported.
const SHOWN_MAX: usize = 120;
/// Body of a master's answer while no master leads.
const NO_LEADER: &str = "No leader elected";

/// Answer of a master that knows the leader.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The master leads itself.
    Leads(Box<Leader>),
    /// Another master leads, at this address. Masters of tepui add its PID.
    Names(Address, Option<Pid>),
}

/// Reason why asking an address did not find the leader.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The address did not answer.
    #[error("{}", base::error_chain(.0))]
    Silent(#[from] ClientError),
    /// One side uses TLS and the other does not, or a certificate is invalid.
    #[error("TLS: {0}; see docs/security.md for https:// addresses, authorities and certificates")]
    Tls(String),
    /// The master knows no leader.
    #[error("it knows no leader")]
    NoLeader,
    /// The master names another one, which has not confirmed that it leads.
    #[error("it names {0}")]
    Names(Address),
    /// The address is not that of a master.
    #[error("it is not a master: it answers {PATH} with {0}")]
    NoMaster(String),
    /// The leader's host name has no IPv4 address on this host.
    #[error("it leads under the host name '{0}', which has no IPv4 address here")]
    Unresolved(String),
    /// The master had not answered when the others had.
    #[error("it has not answered yet")]
    Unfinished,
}

impl Problem {
    /// Returns whether a master has answered.
    pub(crate) fn is_of_a_master(&self) -> bool {
        matches!(self, Problem::NoLeader | Problem::Names(_) | Problem::Unresolved(_))
    }
}

/// Creates a client for the request.
pub(crate) fn client(address: Address) -> Client {
    Client::at(address).with_timeout(PATIENCE).with_limit(ANSWER_MAX)
}

/// Asks a master, which answers at once.
///
/// # Errors
/// It does not answer, knows no leader, or is not a master.
pub(crate) async fn ask(client: &mut Client) -> Result<Answer, Problem> {
    let reply = client.get(PATH).await.map_err(failed)?;
    read(client.address(), &reply).await
}

/// Asks a master, which answers when it knows a leader other than the previous one, or when its wait is over.
///
/// # Errors
/// It does not answer, knows no leader, or is not a master.
pub(crate) async fn wait(client: &mut Client, previous: Option<&Pid>) -> Result<Answer, Problem> {
    let (wait, previous) = (WAIT.as_millis().to_string(), previous.map(Pid::to_string));
    let mut headers = vec![(WAIT_HEADER, wait.as_str())];
    headers.extend(previous.as_deref().map(|previous| (PREVIOUS_HEADER, previous)));
    let reply = client.get_with(PATH, &headers).await.map_err(failed)?;
    read(client.address(), &reply).await
}

async fn read(asked: &Address, reply: &Reply) -> Result<Answer, Problem> {
    if reply.status == StatusCode::SERVICE_UNAVAILABLE && reply.text().contains(NO_LEADER) {
        return Err(Problem::NoLeader);
    }
    let named = reply.redirect().filter(|(_, path)| reply.status == StatusCode::TEMPORARY_REDIRECT && path == "/");
    let Some((named, _)) = named else { return Err(Problem::NoMaster(shown(reply))) };
    let pid = |header: &str| reply.header(header).and_then(|text| text.parse::<Pid>().ok());
    let (own, leader) = (pid(MASTER_HEADER), pid(LEADER_HEADER));
    let leads = match (&own, &leader) {
        (Some(own), Some(leader)) => own == leader,
        _ => is_same(asked, &named),
    };
    if !leads {
        return Ok(Answer::Names(named, leader));
    }
    let pid = match leader {
        Some(pid) => pid,
        None => pid_at(&named).await.ok_or_else(|| Problem::Unresolved(named.host().to_owned()))?,
    };
    let (host, port) = (named.host().to_owned(), named.port());
    let member = String::new();
    Ok(Answer::Leads(Box::new(Leader { member, pid, address: asked.clone(), host, port, region: None, is_own: false })))
}

/// Returns the status, and the beginning of the body: a master with TLS reports in it that it accepts no plain
/// requests.
fn shown(reply: &Reply) -> String {
    let text = reply.text();
    let text: String = text.lines().next().unwrap_or_default().chars().take(SHOWN_MAX).collect();
    match text.trim() {
        "" => reply.status.to_string(),
        text => format!("{} ('{}')", reply.status, text.escape_debug()),
    }
}

/// Returns the PID of a Mesos master, which the answer does not have, from its host name.
async fn pid_at(address: &Address) -> Option<Pid> {
    let found = tokio::net::lookup_host((address.host(), address.port())).await.ok()?;
    let ip: Ipv4Addr = found.into_iter().find_map(|found| match found.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    })?;
    Some(Pid::new("master", SocketAddrV4::new(ip, address.port())))
}

/// Converts the error of an exchange. A TLS server closes a plain connection or answers with something that is not
/// HTTP.
fn failed(error: ClientError) -> Problem {
    match &error {
        ClientError::Connect { source, .. } if error.is_of_tls() => Problem::Tls(source.to_string()),
        ClientError::Exchange { source, .. } if source.is_parse() => {
            Problem::Tls(format!("the answer is not HTTP: {source}"))
        }
        _ => Problem::Silent(error),
    }
}
