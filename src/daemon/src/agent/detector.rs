//! Detects the leading master that `--master` leads to, and reports it to the core.
//!
//! The crate `detector` finds it through ZooKeeper, or among the masters of a list.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, Input};
use base::Pid;
use detector::{Detector, Leader, LeaderActivity, ListError, MasterList, RequestIntervals, Url};
use tokio::sync::Notify;
use wire::libprocess::{Network, SenderToken};

use crate::driver::Driver;
use crate::flags::FlagError;
use crate::flags::agent::RegistrationFlags;
use crate::{host, zookeeper};

const NAME: &str = "master";
const FORMS: &str = "<host>:<port>, several of them separated by commas, zk://[user:password@]host:port,.../path, or \
                     file:///path of a file that holds one of these";

/// The value of `--master`: a master, or where to detect the leading one.
#[derive(Debug)]
pub(super) enum Masters {
    /// The address of the only master.
    Fixed(Pid),
    /// A list of masters; each names the leader.
    List(MasterList),
    /// A ZooKeeper group, and the timeout of the session.
    ZooKeeper(Url, Duration),
}

impl Masters {
    /// Returns whether agents detect a new leader by asking masters, each at a different time, instead of all at once.
    pub(super) fn are_tried_in_turn(&self) -> bool {
        matches!(self, Masters::List(_))
    }
}

/// Reads `--master` and `--zk_session_timeout`.
///
/// # Errors
/// No flag names a master, a module is required, or the value is invalid. The message contains no password.
pub(super) fn masters(flags: &RegistrationFlags) -> Result<Masters, FlagError> {
    let given = flags.master.as_deref().map(str::trim).filter(|text| !text.is_empty());
    if flags.master_detector.as_deref().is_some_and(|module| !module.is_empty()) {
        let why = match given {
            Some(_) => "cannot be used together with '--master', and is not supported: leave it out".to_owned(),
            None => format!("no modules can be loaded; set --master: {FORMS}"),
        };
        return Err(FlagError::Refused { name: "master_detector", why });
    }
    let Some(given) = given else {
        let why = ": <host>:<port>, several of them separated by commas, zk://host:port,.../path, or file:///path of a \
                   file that holds one of these";
        return Err(FlagError::Missing { name: NAME, why });
    };
    let text = zookeeper::text(NAME, given)?;
    if text.starts_with("zk://") {
        let group = zookeeper::group(NAME, &text, flags.zk_session_timeout);
        return group.map(|(url, timeout)| Masters::ZooKeeper(url, timeout));
    }
    match text.contains(',') {
        true => text.parse().map(Masters::List).map_err(|error: ListError| refused(error.to_string())),
        false => fixed(&text).map(Masters::Fixed),
    }
}

fn refused(why: String) -> FlagError {
    FlagError::Refused { name: NAME, why }
}

fn fixed(text: &str) -> Result<Pid, FlagError> {
    let address = text.strip_prefix("master@").unwrap_or(text);
    let wrong = || {
        // The text before an '@' may be the password of a misspelt URL.
        let shown = address.rsplit_once('@').map_or(address, |(_, rest)| rest);
        refused(format!("'{shown}' is none of: {FORMS}"))
    };
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    if host.contains(['@', '/']) {
        return Err(wrong());
    }
    let ip = host::resolve(host).ok_or_else(|| refused(format!("the host '{host}' is not known")))?;
    Ok(Pid::new("master", SocketAddrV4::new(ip, port)))
}

/// The receivers of a detected leader: the core and the network.
pub(super) struct LeaderReceiver {
    pub(super) driver: Driver<Agent>,
    pub(super) network: Network,
    /// Session token in the agent's messages to masters; replies with it are the master's and not forged.
    pub(super) sender_token: SenderToken,
    /// Last sign of life of the leading master, such as a ping.
    pub(super) leader_activity: Arc<LeaderActivity>,
}

impl LeaderReceiver {
    fn report(&self, master: Option<Pid>) {
        if let Some(master) = &master {
            self.network.set_sender_token(master.address(), Some(self.sender_token));
        }
        self.driver.submit(Input::Detected { master });
    }
}

/// Reports the leading master to the core, at each change and whenever the core asks. `seed` is for the jitter of
/// delays.
pub(super) fn watch(
    masters: Masters,
    seed: u64,
    found: LeaderReceiver,
    ask: Arc<Notify>,
) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        match masters {
            Masters::Fixed(master) => loop {
                found.report(Some(master.clone()));
                ask.notified().await;
            },
            Masters::List(list) => {
                tracing::info!("looking for the leading master among {list}");
                follow(
                    Detector::follow(list, RequestIntervals::AGENTS, seed, found.leader_activity.clone()),
                    &found,
                    &ask,
                )
                .await;
            }
            Masters::ZooKeeper(url, timeout) => {
                tracing::info!("looking for the leading master through ZooKeeper at {}", url.servers());
                follow(Detector::start(url, timeout, seed), &found, &ask).await;
            }
        }
    })
}

async fn follow(mut detector: Detector, found: &LeaderReceiver, ask: &Notify) {
    let mut reported: Option<Leader> = None;
    loop {
        let is_asked = tokio::select! {
            () = detector.changed() => false,
            () = ask.notified() => {
                detector.recheck_leader();
                true
            }
        };
        let leader = detector.known().leader().cloned();
        if leader == reported && !is_asked {
            continue;
        }
        if leader != reported {
            match &leader {
                Some(leader) => tracing::info!("the leading master is {}", leader.pid),
                None => {
                    tracing::warn!(
                        "no leading master is known; tasks continue, and their status updates wait for the next leader"
                    )
                }
            }
        }
        found.report(leader.as_ref().map(|leader| leader.pid.clone()));
        reported = leader;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::AgentFlags;

    fn of(flags: &[(&str, &str)]) -> Result<String, String> {
        match masters(&AgentFlags::with(flags).registration) {
            Ok(Masters::Fixed(pid)) => Ok(pid.to_string()),
            Ok(Masters::List(list)) => Ok(format!("list {list}")),
            Ok(Masters::ZooKeeper(url, timeout)) => Ok(format!("{url} {}", base::format_duration(timeout))),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn forms() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "127.0.0.1:7\n").unwrap();
        let of_group = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(of_group.path(), "zk://user:secret@h:1/mesos\n").unwrap();
        for (value, master) in [
            ("127.0.0.1:5050", "master@127.0.0.1:5050"),
            ("master@127.0.0.1:5050", "master@127.0.0.1:5050"),
            ("localhost:1", "master@127.0.0.1:1"),
            ("h1:5050, h2:5050,127.0.0.1:7", "list h1:5050,h2:5050,127.0.0.1:7"),
            (&format!("file://{}", file.path().display()), "master@127.0.0.1:7"),
            ("zk://h:2181,i:2181/mesos/", "zk://h:2181,i:2181/mesos 10secs"),
            (&format!("file://{}", of_group.path().display()), "zk://h:1/mesos 10secs"),
        ] {
            assert_eq!(of(&[("master", value)]).unwrap(), master);
        }
        let quick = of(&[("master", "zk://h:1/m"), ("zk_session_timeout", "250ms")]);
        assert_eq!(quick.unwrap(), "zk://h:1/m 250ms");
    }

    #[test]
    fn refusals_name_the_flag_the_item_and_the_rule_and_no_password() {
        for (value, reported) in [
            ("127.0.0.1", "'127.0.0.1' is none of"),
            ("127.0.0.1:x", "'127.0.0.1:x' is none of"),
            ("no.such.host.invalid:1", "'no.such.host.invalid' is not known"),
            ("h1:5050,h2", "'h2' is not of the form <host>:<port>"),
            ("h1:5050,h1:5050", "'h1:5050' is listed more than once"),
            ("h1:5050,u:secret@h2:5050", "'h2:5050' is not of the form"),
            ("file:///nowhere", "'/nowhere', which cannot be read"),
            ("zk://h:2181", "the path of the group is missing"),
            ("zk://u:secret@h/mesos", "the server 'h' is not of the form host:port"),
            ("zk:/u:secret@h:1/mesos", "'h:1/mesos' is none of"),
            ("ZK://u:secret@h:1", "'h:1' is none of"),
        ] {
            let error = of(&[("master", value)]).unwrap_err();
            assert!(error.contains("'--master'") && error.contains(reported), "{value}: {error}");
            assert!(!error.contains("secret"), "{value}: {error}");
        }
        for value in ["0secs", "25hrs"] {
            let error = of(&[("master", "zk://h:1/m"), ("zk_session_timeout", value)]).unwrap_err();
            assert!(error.contains("'--zk_session_timeout': ") && error.contains("at most 1days"), "{error}");
        }
    }

    #[test]
    fn one_flag_says_where_the_master_is() {
        let module = ("master_detector", "org_apache_example");
        assert!(of(&[]).unwrap_err().contains("'--master' is required: <host>:<port>, several"));
        assert!(of(&[("master", "")]).unwrap_err().contains("'--master' is required"));
        let error = of(&[module]).unwrap_err();
        assert!(error.contains("'--master_detector': no modules") && error.contains("set --master: <host>"), "{error}");
        let error = of(&[module, ("master", "127.0.0.1:1")]).unwrap_err();
        assert!(error.contains("'--master_detector': cannot be used together with '--master'"), "{error}");
    }
}
