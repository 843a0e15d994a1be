//! The listening address of a daemon, and the address and host name that it advertises: `--ip`,
//! `--ip_discovery_command`, `--port`, `--advertise_*`, `--hostname`.
//!
//! It binds no socket.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::flags::{FlagError, NetworkFlags};
use crate::host;

/// Name of the flag with a command that prints the address.
const DISCOVERY: &str = "ip_discovery_command";

/// The addresses of a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Address to listen on; with port 0 the system chooses a free one.
    pub bind: SocketAddrV4,
    /// The advertised address; its port is 0 while it is unknown.
    pub advertise: SocketAddrV4,
    /// The advertised host name.
    pub hostname: String,
}

/// Determines a daemon's addresses.
///
/// # Errors
/// An invalid address or port.
pub fn identity(flags: &NetworkFlags, port: u64) -> Result<Identity, FlagError> {
    let name = host::host_name();
    let command = flags.ip_discovery_command.as_deref().filter(|command| !command.is_empty());
    let bind_ip = match (flags.ip.as_deref(), command) {
        (Some(_), Some(_)) => {
            return Err(FlagError::Refused { name: DISCOVERY, why: "excludes --ip".to_owned() });
        }
        (Some(text), None) => parse_ip("ip", text)?,
        (None, Some(command)) => discover(command)?,
        (None, None) => Ipv4Addr::UNSPECIFIED,
    };
    let port = parse_port("port", port)?;
    let advertise_ip = match &flags.advertise_ip {
        Some(text) => parse_ip("advertise_ip", text)?,
        None if bind_ip.is_unspecified() => host::resolve(&name).unwrap_or(Ipv4Addr::LOCALHOST),
        None => bind_ip,
    };
    let advertise_port = flags.advertise_port.map_or(Ok(port), |given| parse_port("advertise_port", given))?;
    let hostname = match &flags.hostname {
        Some(name) => name.clone(),
        None if !flags.hostname_lookup => advertise_ip.to_string(),
        None if advertise_ip.is_loopback() => "localhost".to_owned(),
        None => name,
    };
    Ok(Identity {
        bind: SocketAddrV4::new(bind_ip, port),
        advertise: SocketAddrV4::new(advertise_ip, advertise_port),
        hostname,
    })
}

impl Identity {
    /// Returns the addresses after the socket was bound to `port`.
    #[must_use]
    pub fn bound_to(mut self, port: u16) -> Identity {
        if self.advertise.port() == 0 {
            self.advertise.set_port(port);
        }
        self.bind.set_port(port);
        self
    }
}

/// Returns the address that a command of the operator prints.
fn discover(command: &str) -> Result<Ipv4Addr, FlagError> {
    let refused = |why: String| FlagError::Refused { name: DISCOVERY, why };
    let output =
        std::process::Command::new("/bin/sh").args(["-c", command]).stdin(std::process::Stdio::null()).output();
    let output = output.map_err(|error| refused(format!("'{command}' cannot be run: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(refused(format!("'{command}' has ended with {}: {}", output.status, said.trim())));
    }
    parse_ip(DISCOVERY, String::from_utf8_lossy(&output.stdout).trim())
}

fn parse_ip(name: &'static str, text: &str) -> Result<Ipv4Addr, FlagError> {
    text.parse().map_err(|_| FlagError::Refused { name, why: format!("'{text}' is not an IPv4 address") })
}

fn parse_port(name: &'static str, number: u64) -> Result<u16, FlagError> {
    u16::try_from(number).map_err(|_| FlagError::Refused { name, why: format!("{number} is not a port") })
}

/// Converts an IPv4 address to the form of `MasterInfo.ip` and libmesos: the bytes in network order, read as a
/// little-endian number.
pub fn ip_number(ip: Ipv4Addr) -> u32 {
    u32::from_le_bytes(ip.octets())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MasterFlags;

    fn of(pairs: &[(&str, &str)]) -> Result<Identity, FlagError> {
        let flags = MasterFlags::with(pairs);
        identity(&flags.network, flags.identity.port)
    }

    #[test]
    fn addresses() {
        let found = of(&[("ip", "127.0.0.1"), ("port", "5050")]).unwrap();
        assert_eq!(found.advertise, "127.0.0.1:5050".parse().unwrap());
        assert_eq!(found.hostname, "localhost");
        let found = of(&[("ip", "0.0.0.0"), ("advertise_ip", "10.0.0.1"), ("advertise_port", "80"), ("hostname", "h")]);
        assert_eq!(found.unwrap().advertise, "10.0.0.1:80".parse().unwrap());
        let found = of(&[("ip", "127.0.0.1"), ("port", "0"), ("hostname_lookup", "false")]).unwrap();
        assert_eq!((found.bound_to(7).advertise.port(), ip_number(Ipv4Addr::LOCALHOST)), (7, 16_777_343));
    }

    #[test]
    fn refused() {
        let discovered = |command| of(&[(DISCOVERY, command)]).map(|found| found.bind.ip().to_string());
        assert_eq!(discovered("echo 127.0.0.9").unwrap(), "127.0.0.9");
        for (command, said) in [("echo where", "'where' is not"), ("echo no >&2; exit 3", "exit status: 3: no")] {
            assert!(discovered(command).unwrap_err().to_string().contains(said), "{command}");
        }
        assert!(of(&[("ip", "127.0.0.1"), (DISCOVERY, "echo")]).unwrap_err().to_string().contains("excludes --ip"));
        assert!(of(&[("ip", "somewhere")]).unwrap_err().to_string().contains("'--ip'"));
        assert!(of(&[("port", "70000")]).unwrap_err().to_string().contains("70000 is not a port"));
    }
}
