//! Who leads: what `--master` says.
//!
//! It knows one fixed master; leader election through ZooKeeper is not here.

use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::Arc;

use agent::{Agent, Input};
use base::Pid;
use tokio::sync::Notify;

use crate::driver::Driver;
use crate::flags::{FlagError, Flags};
use crate::host;

/// Reads `--master`: `host:port`, or `file:///path` of a file that holds that.
///
/// # Errors
/// It is missing, cannot be read, or names a host that does not exist.
pub(super) fn master(flags: &Flags) -> Result<Pid, FlagError> {
    const NAME: &str = "master";
    let refused = |why: String| FlagError::Refused { name: NAME, why };
    let given = flags.required(NAME, "")?;
    let from_file = given.strip_prefix("file://").or(given.starts_with('/').then_some(given));
    let text = match from_file {
        Some(path) => std::fs::read_to_string(Path::new(path)).map_err(|source| FlagError::File {
            name: NAME,
            path: path.to_owned(),
            source,
        })?,
        None => given.to_owned(),
    };
    let text = text.trim();
    if text.starts_with("zk://") {
        return Err(refused("finding the leader through ZooKeeper is not supported by this version of tepui".into()));
    }
    let address = text.strip_prefix("master@").unwrap_or(text);
    let wrong = || refused(format!("'{text}' is not of the form <host>:<port>"));
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let ip = host::resolve(host).ok_or_else(|| refused(format!("the host '{host}' is not known")))?;
    Ok(Pid::new("master", SocketAddrV4::new(ip, port)))
}

/// Tells the core its master, now and whenever it asks anew.
pub(super) fn watch(master: Pid, driver: Driver<Agent>, ask: Arc<Notify>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            driver.submit(Input::Detected { master: Some(master.clone()) });
            ask.notified().await;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    fn of(value: &str) -> Result<Pid, FlagError> {
        let mut flags = Flags::defaults(Part::Agent);
        flags.set("master", value).unwrap();
        master(&flags)
    }

    #[test]
    fn forms() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "127.0.0.1:7\n").unwrap();
        for (value, pid) in [
            ("127.0.0.1:5050", "master@127.0.0.1:5050"),
            ("master@127.0.0.1:5050", "master@127.0.0.1:5050"),
            ("localhost:1", "master@127.0.0.1:1"),
            (&format!("file://{}", file.path().display()), "master@127.0.0.1:7"),
        ] {
            assert_eq!(of(value).unwrap().to_string(), pid);
        }
        for value in ["127.0.0.1", "127.0.0.1:x", "zk://h:2181/mesos", "file:///nowhere", "no.such.host.invalid:1"] {
            assert!(of(value).unwrap_err().to_string().contains("'--master'"), "{value}");
        }
    }
}
