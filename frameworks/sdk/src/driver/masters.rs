//! The order in which masters are tried: the last one that accepted the subscription, then the others in turn.

use std::str::FromStr;
use std::time::Duration;

#[cfg(feature = "zookeeper")]
use detector::{Detector, Known, Leader, Url};
use wire::client::Address;

/// What Mesos's own clients ask ZooKeeper for.
#[cfg(feature = "zookeeper")]
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// A text that names no masters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MastersError {
    /// One of the parts is no address.
    #[error("'{0}' is not of the form <host>:<port>; give the master as for example 127.0.0.1:5050")]
    Address(String),
    /// An invalid ZooKeeper URL.
    #[cfg(feature = "zookeeper")]
    #[error(transparent)]
    ZooKeeperUrl(#[from] detector::UrlError),
    /// A ZooKeeper URL, without the feature `zookeeper`.
    #[error("masters cannot be found through ZooKeeper here; give their addresses, as host:port,host:port")]
    NoZooKeeper,
}

/// Reasons why no master is known.
#[derive(Debug, thiserror::Error)]
pub enum AddressesError {
    /// The text is wrong.
    #[error(transparent)]
    Text(#[from] MastersError),
    /// ZooKeeper does not answer, or its answer is invalid.
    #[error("ZooKeeper at {servers} does not say who leads")]
    ZooKeeper {
        /// Which servers were asked.
        servers: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// ZooKeeper knows no leader.
    #[error(
        "no master leads: ZooKeeper at {servers} has none in {path}; is that the path that the masters have in --zk?"
    )]
    Nobody {
        /// Which servers were asked.
        servers: String,
        /// For which group.
        path: String,
    },
}

/// Returns the addresses of masters that a text names, as in [`Options::new`](super::Options::new), or that of the
/// leading master in ZooKeeper, which is asked once and for this long at most. For programs that need a master without
/// being frameworks.
///
/// # Errors
/// The text is invalid, or ZooKeeper knows no leader.
pub async fn addresses(masters: &str, within: Duration) -> Result<Vec<Address>, AddressesError> {
    let masters: Masters = masters.parse()?;
    #[cfg(feature = "zookeeper")]
    if let Some(ZooKeeper::Url(url)) = &masters.zookeeper {
        return ask(url, within).await.map(|leader| vec![leader]);
    }
    let _ = within;
    Ok(masters.named)
}

/// Who leads now, by ZooKeeper.
#[cfg(feature = "zookeeper")]
async fn ask(url: &Url, within: Duration) -> Result<Address, AddressesError> {
    let servers = url.servers().to_owned();
    match tokio::time::timeout(within, detector::ask(url, SESSION_TIMEOUT)).await {
        Ok(Ok(Some(leader))) => Ok(address(&leader)),
        Ok(Ok(None)) => Err(AddressesError::Nobody { servers, path: url.path().to_owned() }),
        Ok(Err(why)) => Err(AddressesError::ZooKeeper { servers, source: why.into() }),
        Err(late) => Err(AddressesError::ZooKeeper { servers, source: late.into() }),
    }
}

#[cfg(feature = "zookeeper")]
fn address(leader: &Leader) -> Address {
    let address = leader.pid.address();
    Address::new(&address.ip().to_string(), address.port())
}

/// Port of a master that is named without one.
const DEFAULT_PORT: u16 = 5050;

/// The masters of a cluster.
#[derive(Debug)]
pub(super) struct Masters {
    named: Vec<Address>,
    /// Which of `named` the next try begins with.
    next: usize,
    /// Who leads, as far as is known.
    leader: Option<Address>,
    #[cfg(feature = "zookeeper")]
    zookeeper: Option<ZooKeeper>,
}

/// Before and after the start.
#[cfg(feature = "zookeeper")]
#[derive(Debug)]
enum ZooKeeper {
    Url(Url),
    Watching(Detector),
}

impl FromStr for Masters {
    type Err = MastersError;

    fn from_str(text: &str) -> Result<Masters, MastersError> {
        if text.starts_with("zk://") {
            return Masters::in_zookeeper(text);
        }
        Ok(Masters::of(text.split(',').map(named).collect::<Result<Vec<Address>, _>>()?))
    }
}

/// One address of a list; the port is that of Mesos's masters if none is given.
fn named(part: &str) -> Result<Address, MastersError> {
    let text = part.trim();
    let has_port = !text.is_empty() && (text.contains(['/', ' ']) || (text.contains(':') && !text.ends_with(']')));
    let address = if has_port { text.parse() } else { format!("{text}:{DEFAULT_PORT}").parse() };
    address.map_err(|_| MastersError::Address(part.to_owned()))
}

impl Masters {
    fn of(named: Vec<Address>) -> Masters {
        Masters {
            named,
            next: 0,
            leader: None,
            #[cfg(feature = "zookeeper")]
            zookeeper: None,
        }
    }

    #[cfg(feature = "zookeeper")]
    fn in_zookeeper(url: &str) -> Result<Masters, MastersError> {
        Ok(Masters { zookeeper: Some(ZooKeeper::Url(url.parse()?)), ..Masters::of(Vec::new()) })
    }

    #[cfg(not(feature = "zookeeper"))]
    fn in_zookeeper(_: &str) -> Result<Masters, MastersError> {
        Err(MastersError::NoZooKeeper)
    }

    /// Starts the detection of the leading master, if the text needs it. Requires a runtime.
    pub(super) fn start(&mut self, seed: u64) {
        #[cfg(feature = "zookeeper")]
        if let Some(ZooKeeper::Url(url)) = &self.zookeeper {
            self.zookeeper = Some(ZooKeeper::Watching(Detector::start(url.clone(), SESSION_TIMEOUT, seed)));
        }
        #[cfg(not(feature = "zookeeper"))]
        let _ = seed;
    }

    /// Returns when another master leads; `true` if it is not the one that accepted the subscription.
    pub(super) async fn changed(&mut self) -> bool {
        #[cfg(feature = "zookeeper")]
        if let Some(ZooKeeper::Watching(detector)) = &mut self.zookeeper {
            let leader = loop {
                detector.changed().await;
                match detector.known() {
                    // The former leader may still lead, and answers accordingly.
                    Known::Nothing => {}
                    known => break known.leader().map(address),
                }
            };
            let other = leader.is_some() && self.leader.is_some() && leader != self.leader;
            self.named = leader.into_iter().collect();
            return other;
        }
        std::future::pending().await
    }

    /// The masters in the order in which to try them now.
    pub(super) fn in_order(&self) -> Vec<Address> {
        let (before, after) = self.named.split_at(self.next);
        let mut order: Vec<Address> = self.leader.iter().chain(after).chain(before).cloned().collect();
        order.dedup();
        order
    }

    /// This one took us in.
    pub(super) fn found(&mut self, leader: Address) {
        self.leader = Some(leader);
    }

    /// Nobody leads as far as is known; the next try begins with another master.
    pub(super) fn lost(&mut self) {
        if self.leader.take().is_none() {
            self.next = (self.next + 1) % self.named.len().max(1);
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
    fn the_leader_first_then_each_in_turn() {
        let mut masters: Masters = "a:1, b:2,c:3".parse().unwrap();
        assert_eq!(order(&masters), ["a:1", "b:2", "c:3"]);
        masters.found("x:9".parse().unwrap());
        assert_eq!(order(&masters), ["x:9", "a:1", "b:2", "c:3"]);
        masters.lost();
        assert_eq!(order(&masters), ["a:1", "b:2", "c:3"]);
        masters.lost();
        assert_eq!(order(&masters), ["b:2", "c:3", "a:1"]);
    }

    #[test]
    fn a_master_without_a_port_has_that_of_mesos() {
        let masters: Masters = "localhost, a:1,[::1],http://b:2".parse().unwrap();
        assert_eq!(order(&masters), ["localhost:5050", "a:1", "[::1]:5050", "b:2"]);
    }

    #[test]
    fn refuses() {
        for text in ["", "a:", "a b", "http://a", "a:1,", "a:1,,b:2", "zk://a:1"] {
            assert!(text.parse::<Masters>().is_err(), "{text}");
        }
    }
}
