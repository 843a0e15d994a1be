//! Properties of the host: processors, load, mounts, names, boot id.
//!
//! It changes nothing on the host.

use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::path::Path;

use nix::unistd::{Gid, Group, Uid, User};

/// Returns the name of a user, or the number as text if it has none.
pub fn user_name(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => user.name,
        _ => uid.to_string(),
    }
}

/// Returns the name of a group, or the number as text if it has none.
pub fn group_name(gid: u32) -> String {
    match Group::from_gid(Gid::from_raw(gid)) {
        Ok(Some(group)) => group.name,
        _ => gid.to_string(),
    }
}

/// Returns the number of processors that this process may use.
pub fn processors() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
}

/// Returns the load averages over 1, 5 and 15 minutes; zeroes if they cannot be read.
pub fn load() -> [f64; 3] {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse().unwrap_or(0.0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0.0))
}

/// Returns whether a file system is mounted at exactly this path, which must contain no links.
pub fn is_mount_point(path: &Path) -> bool {
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = text.lines().filter_map(|line| line.split(' ').nth(4));
    points.map(unescaped).any(|point| Path::new(&point) == path)
}

/// Decodes a path of mountinfo, in which spaces, line feeds and backslashes are octal numbers.
fn unescaped(text: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(text.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

/// Returns the id of this boot of the kernel, trimmed; empty if it cannot be read.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Returns the name of this host.
pub fn host_name() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_else(|| "localhost".to_owned())
}

/// Returns the first IPv4 address of a host name.
pub fn resolve(name: &str) -> Option<Ipv4Addr> {
    if let Ok(address) = name.parse() {
        return Some(address);
    }
    let addresses = (name, 0).to_socket_addrs().ok()?;
    addresses.into_iter().find_map(|address| match address.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    })
}

/// Returns a name for an address, without a network request: `localhost`, the name of this host, or the address itself.
pub fn name_of(ip: Ipv4Addr) -> String {
    if ip.is_loopback() {
        return "localhost".to_owned();
    }
    let own = host_name();
    if resolve(&own) == Some(ip) { own } else { ip.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine() {
        assert!(processors() >= 1);
        assert_eq!(user_name(0), "root");
        assert_eq!(user_name(3_999_999_999), "3999999999");
        assert_eq!(boot_id().len(), 36);
        assert_eq!(resolve("127.0.0.1"), Some(Ipv4Addr::LOCALHOST));
    }
}
