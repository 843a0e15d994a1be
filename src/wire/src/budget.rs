//! A limit on the bytes that many holders have together. It holds no bytes itself.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::connections;
use crate::sync::lock;

/// Length up to which bodies are not counted.
pub(crate) const UNCOUNTED: usize = 16 << 10;

/// A limit on one kind of bytes of a process. Clones share it. A single [source] may use half of it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: Arc<Mutex<Used>>,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    by_source: FxHashMap<IpAddr, usize>,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Budget {
        Budget { limit, used: Arc::default() }
    }

    /// Returns an empty share for bytes from this address.
    pub(crate) fn share(&self, ip: IpAddr) -> Share {
        Share { budget: self.clone(), source: source(ip), bytes: 0 }
    }
}

/// Returns the source that the use of a limit by an address counts for: an IPv4 address, the /64 network of an IPv6
/// address, and one for all loopback addresses, of which every process of this host has millions.
pub fn source(ip: IpAddr) -> IpAddr {
    if ip.to_canonical().is_loopback() { Ipv4Addr::LOCALHOST.into() } else { connections::source(ip) }
}

/// A holder's share of a budget, which is released when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Budget,
    source: IpAddr,
    bytes: usize,
}

impl Share {
    /// Increases the share to this many bytes. Returns `false`, and changes nothing, if the budget has too few left.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return true };
        let limit = self.budget.limit;
        let used = &mut *lock(&self.budget.used);
        let of_source = used.by_source.get(&self.source).copied().unwrap_or(0);
        if used.total.saturating_add(more) > limit || of_source.saturating_add(more) > limit / 2 {
            return false;
        }
        used.total += more;
        used.by_source.insert(self.source, of_source + more);
        self.bytes = bytes;
        true
    }

    /// Returns whether the share has no bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Releases all bytes of the share.
    pub(crate) fn clear(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let used = &mut *lock(&self.budget.used);
        let bytes = std::mem::take(&mut self.bytes);
        used.total -= bytes;
        if let Some(of_source) = used.by_source.get_mut(&self.source) {
            *of_source -= bytes;
            if *of_source == 0 {
                used.by_source.remove(&self.source);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_limited_together_and_by_source() {
        let budget = Budget::new(100);
        let source = |last| IpAddr::from([10, 0, 0, last]);
        let (mut a, mut b, mut c) = (budget.share(source(1)), budget.share(source(1)), budget.share(source(2)));
        assert!(a.grow_to(30) && a.grow_to(20), "a share does not shrink");
        assert!(b.grow_to(20));
        assert!(!b.grow_to(21), "half of the budget is what a source may have");
        assert!(c.grow_to(50));
        let mut d = budget.share(source(3));
        assert!(!d.grow_to(1));
        drop(a);
        assert!(d.grow_to(30) && !d.grow_to(31));
        drop((b, c, d));
        let used = lock(&budget.used);
        assert_eq!((used.total, used.by_source.len()), (0, 0));
    }

    #[test]
    fn the_addresses_of_a_host_are_one_source() {
        for addresses in [
            ["127.0.0.1", "127.0.0.2", "127.9.8.7", "::1", "::ffff:127.0.0.3"].as_slice(),
            &["2001:db8:1:2:3::1", "2001:db8:1:2:ffff::"],
            &["10.1.2.3", "::ffff:10.1.2.3"],
        ] {
            let budget = Budget::new(100);
            let mut shares: Vec<Share> = addresses.iter().map(|ip| budget.share(ip.parse().unwrap())).collect();
            assert!(shares[0].grow_to(50));
            assert!(shares[1..].iter_mut().all(|share| !share.grow_to(1)), "{addresses:?}");
            assert!(budget.share([10, 0, 0, 1].into()).grow_to(50), "another host has the other half");
        }
    }
}
