//! Finds the leading master through ZooKeeper, as Mesos does (wire facts zookeeper.md): who has the smallest number
//! among the members of a group leads. It only looks; it is no candidate.

use std::str::FromStr;
use std::time::Duration;

use prost::Message;
use tokio::sync::watch;
use wire::client::Address;
use zookeeper_client::{Client, Error};

use super::Task;
use super::masters::{AddressesError, MastersError};
use super::reader::chain;
use crate::Backoff;

/// What Mesos's own clients ask for.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);
/// The first and the longest wait after a failure.
const WAITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// `zk://[user:password@]host:port,.../path`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Url {
    servers: String,
    credential: Option<String>,
    path: String,
}

impl std::fmt::Debug for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password is a secret.
        write!(f, "zk://{}{}", self.servers, self.path)
    }
}

impl FromStr for Url {
    type Err = MastersError;

    fn from_str(text: &str) -> Result<Url, MastersError> {
        let error = || MastersError::ZooKeeperUrl;
        let rest = text.strip_prefix("zk://").ok_or_else(error)?;
        let (credential, rest) = match rest.rsplit_once('@') {
            Some((credential, rest)) => (Some(credential.to_owned()), rest),
            None => (None, rest),
        };
        let (servers, path) = rest.split_once('/').ok_or_else(error)?;
        let path = path.trim_end_matches('/');
        let well_formed = servers.split(',').all(|s| s.parse::<Address>().is_ok());
        if !well_formed || path.is_empty() || credential.as_ref().is_some_and(|c| !c.contains(':')) {
            return Err(error());
        }
        Ok(Url { servers: servers.to_owned(), credential, path: format!("/{path}") })
    }
}

/// A task that watches the group, and what it knows.
pub(super) struct Detector {
    leader: watch::Receiver<Option<Address>>,
    _task: Task,
}

impl std::fmt::Debug for Detector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Detector").field(&*self.leader.borrow()).finish()
    }
}

impl Detector {
    /// Watches from now on. Needs a runtime.
    pub(super) fn start(url: Url, seed: u64) -> Detector {
        let (sender, leader) = watch::channel(None);
        let task = tokio::spawn(async move {
            let mut backoff = Backoff::new(WAITS.0, WAITS.1, seed);
            loop {
                let error = follow(&url, &sender, &mut backoff).await;
                tracing::warn!(url = ?url, error = %chain(&error), "cannot find the leading master");
                tokio::time::sleep(backoff.next_wait()).await;
            }
        });
        Detector { leader, _task: Task(task.abort_handle()) }
    }

    /// Who leads, as far as is known.
    pub(super) fn leader(&self) -> Option<Address> {
        self.leader.borrow().clone()
    }

    /// Returns when another master leads, or none.
    pub(super) async fn changed(&mut self) {
        if self.leader.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Why nothing is known of the leader.
#[derive(Debug, thiserror::Error)]
enum DetectError {
    #[error("ZooKeeper")]
    ZooKeeper(#[from] Error),
    #[error("'{0}' does not say where the master is")]
    Member(String),
}

/// Tells `sender` of every change, until something fails. While ZooKeeper is away, the last leader stands.
async fn follow(url: &Url, sender: &watch::Sender<Option<Address>>, backoff: &mut Backoff) -> DetectError {
    match follow_in_session(url, sender, backoff).await {
        Err(error) => error,
        Ok(never) => match never {},
    }
}

async fn follow_in_session(
    url: &Url,
    sender: &watch::Sender<Option<Address>>,
    backoff: &mut Backoff,
) -> Result<std::convert::Infallible, DetectError> {
    let client = connect(url).await?;
    loop {
        let (members, watcher) = match client.list_and_watch_children(&url.path).await {
            Ok(found) => found,
            Err(Error::NoNode) => {
                let (stat, watcher) = client.check_and_watch_stat(&url.path).await?;
                if stat.is_none() {
                    tell(sender, None);
                    watcher.changed().await;
                }
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        backoff.reset();
        match leader(&client, &url.path, &members).await {
            // It left just now: the watch says so.
            Err(DetectError::ZooKeeper(Error::NoNode)) => {}
            found => tell(sender, found?),
        }
        watcher.changed().await;
    }
}

async fn connect(url: &Url) -> Result<Client, Error> {
    let mut connector = Client::connector().with_session_timeout(SESSION_TIMEOUT);
    if let Some(credential) = &url.credential {
        connector = connector.with_auth("digest", credential.as_bytes());
    }
    connector.connect(&url.servers).await
}

/// Who leads now.
pub(super) async fn ask(url: &Url, within: Duration) -> Result<Address, AddressesError> {
    let asked = async {
        let client = connect(url).await?;
        match client.list_children(&url.path).await {
            Ok(members) => leader(&client, &url.path, &members).await,
            Err(Error::NoNode) => Ok(None),
            Err(error) => Err(error.into()),
        }
    };
    let servers = url.servers.clone();
    match tokio::time::timeout(within, asked).await {
        Ok(Ok(Some(leader))) => Ok(leader),
        Ok(Ok(None)) => Err(AddressesError::Nobody { servers, path: url.path.clone() }),
        Ok(Err(why)) => Err(AddressesError::ZooKeeper { servers, source: why.into() }),
        Err(late) => Err(AddressesError::ZooKeeper { servers, source: late.into() }),
    }
}

fn tell(sender: &watch::Sender<Option<Address>>, leader: Option<Address>) {
    sender.send_if_modified(|known| {
        let new = *known != leader;
        *known = leader;
        new
    });
}

async fn leader(client: &Client, path: &str, members: &[String]) -> Result<Option<Address>, DetectError> {
    let Some(name) = first(members) else { return Ok(None) };
    let (data, _) = client.get_data(&format!("{path}/{name}")).await?;
    address(name, &data).map(Some).ok_or_else(|| DetectError::Member(format!("{path}/{name}")))
}

/// The member with the smallest number; names without a number are no members.
fn first(members: &[String]) -> Option<&String> {
    let number = |name: &&String| name.rsplit('_').next().and_then(|digits| digits.parse::<i32>().ok());
    members.iter().filter(|name| number(name).is_some()).min_by_key(|name| number(name))
}

/// What a member's data say of its address: JSON, protobuf or a pid, by its label.
fn address(name: &str, data: &[u8]) -> Option<Address> {
    let label = name.split_once('_').map_or("", |(label, _)| label);
    let of_pid = |pid: &str| pid.trim().split_once('@')?.1.parse::<Address>().ok();
    match label {
        "json.info" => {
            let info: serde_json::Value = serde_json::from_slice(data).ok()?;
            of_pid(info.get("pid")?.as_str()?)
        }
        "info" => of_pid(protos::mesos::MasterInfo::decode(data).ok()?.pid.as_deref()?),
        "" => of_pid(std::str::from_utf8(data).ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let url: Url = "zk://u:p@s@a:1,b:2/mesos/x/".parse().unwrap();
        assert_eq!((url.servers.as_str(), url.path.as_str()), ("a:1,b:2", "/mesos/x"));
        assert_eq!(url.credential.as_deref(), Some("u:p@s"));
        assert_eq!(format!("{url:?}"), "zk://a:1,b:2/mesos/x");
        for text in ["zk://", "zk://a:1", "zk://a:1/", "zk:///mesos", "zk://a/mesos", "zk://u@a:1/mesos"] {
            assert!(text.parse::<Url>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_smallest_number_leads_whatever_its_label() {
        let members = ["log_replicas", "json.info_0000000012", "info_0000000003", "json.info_0000000004"];
        let members = members.map(str::to_owned);
        assert_eq!(first(&members).unwrap(), "info_0000000003");
        assert_eq!(first(&members[..1]), None);
    }

    #[test]
    fn members_of_all_ages() {
        let expected: Address = "10.0.0.1:5050".parse().unwrap();
        let pid = "master@10.0.0.1:5050";
        let json = format!(r#"{{"pid":"{pid}","hostname":"m1"}}"#);
        assert_eq!(address("json.info_0000000001", json.as_bytes()), Some(expected.clone()));
        let info = protos::mesos::MasterInfo { pid: Some(pid.into()), ..Default::default() };
        assert_eq!(address("info_0000000001", &info.encode_to_vec()), Some(expected.clone()));
        assert_eq!(address("0000000001", pid.as_bytes()), Some(expected));
        assert_eq!(address("json.info_0000000001", b"{}"), None);
        assert_eq!(address("other_0000000001", pid.as_bytes()), None);
    }
}
