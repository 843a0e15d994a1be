//! The TCP ports that processes listen on, from `/proc`.
//!
//! It only reads.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The state TCP_LISTEN, as `/proc/net/tcp` writes it.
const LISTEN: &str = "0A";
/// The beginning of a socket's link among a process's descriptors.
const SOCKET: &str = "socket:[";

/// The listening TCP sockets of this process's network namespace, at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// Ports, by the inodes of the sockets.
    ports: BTreeMap<u64, u16>,
}

impl Listeners {
    /// Reads the listening sockets of this process's network namespace; those of other namespaces are not included.
    ///
    /// # Errors
    /// If `/proc/net` cannot be read.
    pub fn scan() -> io::Result<Listeners> {
        let mut found = Listeners::default();
        found.add(&std::fs::read_to_string("/proc/net/tcp")?);
        // A kernel without IPv6 has no such file.
        found.add(&std::fs::read_to_string("/proc/net/tcp6").unwrap_or_default());
        Ok(found)
    }

    fn add(&mut self, table: &str) {
        let entry = |line: &str| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let (_, port) = words.get(1)?.rsplit_once(':')?;
            let listens = *words.get(3)? == LISTEN;
            let (port, inode) = (u16::from_str_radix(port, 16).ok()?, words.get(9)?.parse().ok()?);
            listens.then_some((inode, port))
        };
        self.ports.extend(table.lines().skip(1).filter_map(entry));
    }

    /// Returns whether there are no listening sockets.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Returns the ports that a process listens on; none for a process that has ended.
    pub fn of(&self, pid: i32) -> BTreeSet<u16> {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let port = |entry: std::fs::DirEntry| {
            let link = std::fs::read_link(entry.path()).ok()?;
            let inode = link.to_str()?.strip_prefix(SOCKET)?.strip_suffix(']')?.parse().ok()?;
            self.ports.get(&inode).copied()
        };
        descriptors.filter_map(port).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_table() {
        let mut found = Listeners::default();
        found.add(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1 0 100 0 0 10 0\n   \
             1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 78 1 0 20 4 30 10 -1\n   \
             2: nonsense\n",
        );
        assert_eq!(found.ports, [(77, 8080)].into());
    }

    #[test]
    fn this_process() {
        let here = i32::try_from(std::process::id()).unwrap();
        let (old, new) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("[::1]:0"));
        let ports = Listeners::scan().unwrap().of(here);
        for listener in [Some(&old), new.as_ref().ok()].into_iter().flatten() {
            assert!(ports.contains(&listener.local_addr().unwrap().port()), "{ports:?}");
        }
        assert_eq!(Listeners::scan().unwrap().of(i32::MAX), BTreeSet::new());
    }
}
