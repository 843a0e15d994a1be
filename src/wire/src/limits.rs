//! Limits of everything that can grow. This file does not enforce them.

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Limits of a server and of a [`Network`](crate::libprocess::Network). Sizes are in bytes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum length of the request line and headers together; a longer head gets 431. Mesos's parser stops at 80 KiB,
    /// too. At least 8 KiB.
    pub head: usize,
    /// Maximum length of a request's body after decompression; a longer one gets 413. Mesos has no such limit.
    pub body: usize,
    /// Maximum length of all bodies of requests and messages together that are being read and handled, without those up
    /// to 16 KiB; a further one gets 503. Bodies from one address may use half of it.
    pub bodies: usize,
    /// Number of bytes that may wait for a stream's reader before the reader is cut off.
    pub stream: usize,
    /// Number of bytes that may wait for the readers of all streams together; beyond it those are cut off that do not
    /// read.
    pub streams: usize,
    /// Number of bytes that may wait for one libprocess peer before the connection to it is closed.
    pub peer: usize,
    /// Time that a response may wait for a client that reads nothing of it, and a request for the next byte of its
    /// body, before the connection is closed. Streams are limited by bytes instead; streamed bodies are not limited.
    pub stalled: Duration,
    /// Rate that a request's body must keep on average, in bytes a second; at least 1. A body that is behind it by
    /// `stalled` closes the connection: each byte extends the time by its share of a second, to at most `stalled` from
    /// then. So a fast beginning does not pay for a slow rest. Streamed bodies are not limited.
    pub body_rate: u64,
    /// Time that a request's head may take from its first byte to its last.
    pub request_head: Duration,
    /// Time that an HTTP connection may be idle after a request.
    ///
    /// Connections without any request have no such limit: Mesos's library for frameworks and executors opens a
    /// connection for calls long before the first one, and takes its end for the end of the subscription. For the same
    /// reason connections of libprocess peers, and those over which a scheduler or an executor has made a call, have no
    /// limit except `stalled` and `body_rate` within a body.
    pub keep_alive: Duration,
    /// Time that a connection attempt of this process may take.
    pub connect: Duration,
    /// Time that a stop waits for responses in progress. Streams end at once.
    pub stop: Duration,
    /// Maximum number of open connections; see [`Connections`](crate::Connections). Unused by a server or a network
    /// that is given its connections.
    pub connections: usize,
    /// Send buffer of a connection in the kernel, in bytes; `None`: the kernel chooses. A smaller one shows earlier
    /// that a peer does not read.
    pub send_buffer: Option<u32>,
    /// Maximum number of unsent bytes of a connection in the kernel (`TCP_NOTSENT_LOWAT`); `None`: those of the send
    /// buffer.
    pub unsent: Option<u32>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: 80 << 10,
            body: 64 << 20,
            bodies: 144 << 20,
            stream: 64 << 20,
            streams: 256 << 20,
            peer: 64 << 20,
            stalled: Duration::from_secs(60),
            body_rate: 1 << 10,
            request_head: Duration::from_secs(30),
            keep_alive: Duration::from_secs(300),
            connect: Duration::from_secs(10),
            stop: Duration::from_millis(200),
            connections: 1 << 20,
            send_buffer: None,
            unsent: None,
        }
    }
}

impl Limits {
    /// Returns the interval between checks of connections for timeouts.
    pub(crate) fn check_interval(&self) -> Duration {
        let shortest = self.stalled.min(self.request_head).min(self.keep_alive);
        (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(5))
    }

    /// Returns the time by which this many bytes of a body extend its time.
    pub(crate) fn time_for(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / self.body_rate.max(1))
    }
}

/// Returns the soft limit of open files of this process.
///
/// # Errors
/// The system's error.
pub fn open_files_limit() -> std::io::Result<u64> {
    Ok(getrlimit(Resource::RLIMIT_NOFILE)?.0)
}

/// Raises the soft limit of open files to the hard one and returns it, because every agent costs a master two sockets.
///
/// # Errors
/// The system's error; the old limit remains then.
pub fn raise_open_files_limit() -> std::io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

#[cfg(test)]
mod tests {
    #[test]
    fn open_files_reach_the_hard_limit() {
        let limit = super::raise_open_files_limit().unwrap();
        assert_eq!(super::getrlimit(super::Resource::RLIMIT_NOFILE).unwrap(), (limit, limit));
    }
}
