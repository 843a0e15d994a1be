//! Decides the order in which masters are tried: first the one that last accepted the subscription, then the one that
//! was given. Of several masters only the leading one is tried, which the crate `detector` finds.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "zookeeper")]
use detector::Url;
use detector::{DetectionState, Detector, ListError, MasterList, NoLeader, RequestIntervals};
use wire::client::Address;

use super::reports::ConnectionError;

/// ZooKeeper session timeout, as in Mesos's own clients.
#[cfg(feature = "zookeeper")]
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// An error of parsing the address of the masters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MastersError {
    /// A part of the text is not an address.
    #[error("'{0}' is not of the form <host>:<port>; give the master as for example 127.0.0.1:5050")]
    Address(String),
    /// The list of masters is invalid.
    #[error(transparent)]
    List(#[from] ListError),
    /// The ZooKeeper URL is invalid.
    #[cfg(feature = "zookeeper")]
    #[error(transparent)]
    ZooKeeperUrl(#[from] detector::UrlError),
    /// The text is a ZooKeeper URL, and the feature `zookeeper` is off.
    #[error("masters cannot be found through ZooKeeper here; give their addresses, as host:port,host:port")]
    NoZooKeeper,
}

/// An error of finding the leading master.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The text is invalid.
    #[error(transparent)]
    Text(#[from] MastersError),
    /// No master of a list leads.
    #[error(transparent)]
    NoLeader(#[from] NoLeader),
    /// ZooKeeper does not answer, or its answer is invalid.
    #[error("ZooKeeper at {servers} names no leading master")]
    ZooKeeper {
        /// The servers of the ZooKeeper URL.
        servers: String,
        /// The underlying error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// ZooKeeper has no leader.
    #[error(
        "no master leads: ZooKeeper at {servers} has none in {path}; is that the path that the masters have in --zk?"
    )]
    NoneInZooKeeper {
        /// The servers of the ZooKeeper URL.
        servers: String,
        /// Path of the group of masters.
        path: String,
    },
}

/// Returns the address of the master that `masters` names, in the form of [`Options::new`](super::Options::new). That
/// is the given address itself, or the leader of several, which are asked once. ZooKeeper is asked for `within` at
/// most. For programs that need a master without being frameworks.
///
/// # Errors
/// The text is invalid, or there is no leader.
pub async fn address(masters: &str, within: Duration) -> Result<Address, AddressError> {
    let masters: Masters = masters.parse()?;
    let _ = within;
    match masters.source {
        Source::Address(address) => Ok(address),
        Source::List(list) => Ok(detector::find(&list).await?.address),
        #[cfg(feature = "zookeeper")]
        Source::ZooKeeper(url) => ask(&url, within).await,
    }
}

/// Asks ZooKeeper for the leader.
#[cfg(feature = "zookeeper")]
async fn ask(url: &Url, within: Duration) -> Result<Address, AddressError> {
    let servers = url.servers().to_owned();
    match tokio::time::timeout(within, detector::ask(url, SESSION_TIMEOUT)).await {
        Ok(Ok(Some(leader))) => Ok(leader.address),
        Ok(Ok(None)) => Err(AddressError::NoneInZooKeeper { servers, path: url.path().to_owned() }),
        Ok(Err(why)) => Err(AddressError::ZooKeeper { servers, source: why.into() }),
        Err(late) => Err(AddressError::ZooKeeper { servers, source: late.into() }),
    }
}

/// Port of a master whose address has none.
const DEFAULT_PORT: u16 = 5050;

/// The masters of a cluster.
#[derive(Debug)]
pub(super) struct Masters {
    source: Source,
    detector: Option<Detector>,
    /// Leader that the detector reported last.
    detected: Option<Address>,
    /// The master that accepted the subscription.
    leader: Option<Address>,
}

/// Parsed form of the address of the masters.
#[derive(Debug)]
enum Source {
    /// A single master. If it does not lead, it names the leader.
    Address(Address),
    List(MasterList),
    #[cfg(feature = "zookeeper")]
    ZooKeeper(Url),
}

impl FromStr for Masters {
    type Err = MastersError;

    fn from_str(text: &str) -> Result<Masters, MastersError> {
        let source = match text.split_once(',') {
            _ if text.starts_with("zk://") => in_zookeeper(text)?,
            None => Source::Address(named(text)?),
            Some(_) => Source::List(MasterList::new(text.split(',').map(named).collect::<Result<_, _>>()?)?),
        };
        Ok(Masters { source, detector: None, detected: None, leader: None })
    }
}

/// Parses one address; the default port is that of Mesos's masters.
fn named(part: &str) -> Result<Address, MastersError> {
    let text = part.trim();
    let has_port = !text.is_empty() && (text.contains(['/', ' ']) || (text.contains(':') && !text.ends_with(']')));
    let address = if has_port { text.parse() } else { format!("{text}:{DEFAULT_PORT}").parse() };
    address.map_err(|_| MastersError::Address(part.to_owned()))
}

#[cfg(feature = "zookeeper")]
fn in_zookeeper(url: &str) -> Result<Source, MastersError> {
    Ok(Source::ZooKeeper(url.parse()?))
}

#[cfg(not(feature = "zookeeper"))]
fn in_zookeeper(_: &str) -> Result<Source, MastersError> {
    Err(MastersError::NoZooKeeper)
}

impl Masters {
    /// Starts the detection of the leading master, unless the source is a single address. Requires a runtime.
    pub(super) fn start(&mut self, seed: u64) {
        self.detector = match &self.source {
            Source::Address(_) => None,
            Source::List(list) => {
                Some(Detector::follow(list.clone(), RequestIntervals::FRAMEWORKS, seed, Arc::default()))
            }
            #[cfg(feature = "zookeeper")]
            Source::ZooKeeper(url) => Some(Detector::start(url.clone(), SESSION_TIMEOUT, seed)),
        };
    }

    /// Waits until another leader is detected. Returns `true` if it is not the master that accepted the subscription.
    pub(super) async fn changed(&mut self) -> bool {
        let Some(detector) = &mut self.detector else { return std::future::pending().await };
        let leader = loop {
            detector.changed().await;
            match detector.known() {
                // The former leader may still lead; if not, it says so when it is called.
                DetectionState::Unknown => {}
                known => break known.leader().map(|leader| leader.address.clone()),
            }
        };
        let other = leader.is_some() && self.leader.is_some() && leader != self.leader;
        self.detected = leader;
        other
    }

    /// Returns the masters in the order in which to try them now.
    pub(super) fn in_order(&self) -> Vec<Address> {
        let given = match &self.source {
            Source::Address(address) => Some(address),
            _ => self.detected.as_ref(),
        };
        let mut order: Vec<Address> = self.leader.iter().chain(given).cloned().collect();
        order.dedup();
        order
    }

    /// Returns the reason why there is no master to try.
    pub(super) fn error(&self) -> ConnectionError {
        let reason = self.detector.as_ref().map(Detector::no_leader_reason).filter(|reason| !reason.is_empty());
        reason.map_or(ConnectionError::NoMaster, ConnectionError::Detection)
    }

    /// Records that this master accepted the subscription.
    pub(super) fn found(&mut self, leader: Address) {
        self.leader = Some(leader);
    }

    /// Records that the master that accepted the subscription, or that was tried, is gone or does not lead.
    pub(super) fn lost(&mut self) {
        self.leader = None;
        if let Some(detector) = &self.detector {
            detector.recheck_leader();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(masters: &Masters) -> Vec<String> {
        masters.in_order().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_master_that_accepted_the_subscription_is_first() {
        let mut masters: Masters = "a:1".parse().unwrap();
        assert_eq!(order(&masters), ["a:1"]);
        masters.found("x:9".parse().unwrap());
        assert_eq!(order(&masters), ["x:9", "a:1"]);
        masters.lost();
        assert_eq!(order(&masters), ["a:1"]);
        masters.found("a:1".parse().unwrap());
        assert_eq!(order(&masters), ["a:1"]);
    }

    #[test]
    fn of_several_masters_the_detected_one_is_tried() {
        let mut masters: Masters = "a:1,b:2".parse().unwrap();
        assert!(order(&masters).is_empty() && matches!(masters.error(), ConnectionError::NoMaster));
        masters.detected = Some("b:2".parse().unwrap());
        assert_eq!(order(&masters), ["b:2"]);
    }

    #[test]
    fn a_master_without_a_port_has_that_of_mesos() {
        let text = |text: &str| match text.parse::<Masters>().unwrap().source {
            Source::Address(address) => address.to_string(),
            Source::List(list) => list.to_string(),
            #[cfg(feature = "zookeeper")]
            Source::ZooKeeper(url) => url.to_string(),
        };
        assert_eq!(text("localhost"), "localhost:5050");
        assert_eq!(text("localhost, a:1,[::1],http://b:2"), "localhost:5050,a:1,[::1]:5050,b:2");
    }

    #[test]
    fn refuses() {
        for text in ["", "a:", "a b", "http://a", "a:1,", "a:1,,b:2", "a:1,a:1", "zk://a:1"] {
            assert!(text.parse::<Masters>().is_err(), "{text}");
        }
    }
}
