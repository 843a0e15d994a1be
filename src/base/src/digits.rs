//! Numbers as text, for code that formats millions of them: `format!` takes ten times as long.

use std::net::Ipv4Addr;

/// Formats an IPv4 address.
#[must_use]
pub fn ip_text(ip: Ipv4Addr) -> String {
    let mut digits = [itoa::Buffer::new(); 4];
    let [first, second, third, fourth] = &mut digits;
    let [a, b, c, d] = ip.octets();
    [first.format(a), ".", second.format(b), ".", third.format(c), ".", fourth.format(d)].concat()
}

/// Returns `before`, the decimal number and `behind` as one text.
#[must_use]
pub fn numbered(before: &str, number: u64, behind: &str) -> String {
    [before, itoa::Buffer::new().format(number), behind].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_like_the_standard_form() {
        for ip in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 255, 0, 99), Ipv4Addr::BROADCAST] {
            assert_eq!(ip_text(ip), ip.to_string());
        }
        assert_eq!(numbered("m-O", 120, "."), "m-O120.");
        assert_eq!(numbered("", u64::MAX, ""), u64::MAX.to_string());
    }
}
