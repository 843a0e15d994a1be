//! Limits of everything that can grow. It does not enforce them.

use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Limits of a server and of a [`Network`](crate::libprocess::Network). Sizes are in bytes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Request line and headers together; longer ones get 431. Mesos's parser stops at 80 KiB, too. At least 8 KiB.
    pub head: usize,
    /// A request's body as it is after decompression; a longer one gets 413. Mesos has no such limit.
    pub body: usize,
    /// The bodies of all requests and messages together that are being read and handled, without those up to 16 KiB;
    /// one more gets 503. Bodies from one address may have half of it.
    pub bodies: usize,
    /// What may wait for a stream's reader before the reader is cut off.
    pub stream: usize,
    /// What may wait for the readers of all streams together; then those are cut off that do not read.
    pub streams: usize,
    /// What may wait for one libprocess peer before the connection to it is given up.
    pub peer: usize,
    /// How long an answer may wait for a client that reads nothing of it, and a request for the next byte of its body;
    /// then the connection is closed. Streams of answers are bounded by bytes instead, streamed bodies are not bounded.
    pub stalled: Duration,
    /// How long a request's head may take from its first byte to its last.
    pub request_head: Duration,
    /// How long an HTTP connection may be idle after a request. Connections without any request have no such limit:
    /// Mesos's library for frameworks and executors opens a connection for calls long before the first one, and takes
    /// its end for the end of the subscription. For the same reason connections of libprocess peers, and those over
    /// which a scheduler or an executor has made a call, have no limit.
    pub keep_alive: Duration,
    /// How long a connection attempt of ours may take.
    pub connect: Duration,
    /// How long a stop waits for answers that are under way. Streams end at once.
    pub stop: Duration,
    /// Maximum number of connections that are open at once; see [`Connections`](crate::Connections). A server or a
    /// network that is given its connections does not look here.
    pub connections: usize,
    /// Bytes that the kernel keeps for a connection's peer; what it finds right if absent. Less shows earlier that a
    /// peer does not read.
    pub send_buffer: Option<u32>,
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
            request_head: Duration::from_secs(30),
            keep_alive: Duration::from_secs(300),
            connect: Duration::from_secs(10),
            stop: Duration::from_millis(200),
            connections: 1 << 20,
            send_buffer: None,
        }
    }
}

impl Limits {
    /// How often connections are checked for timeouts.
    pub(crate) fn check_interval(&self) -> Duration {
        let shortest = self.stalled.min(self.request_head).min(self.keep_alive);
        (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(5))
    }
}

/// How many files this process may have open: the soft limit.
///
/// # Errors
/// The system's error.
pub fn open_files_limit() -> std::io::Result<u64> {
    Ok(getrlimit(Resource::RLIMIT_NOFILE)?.0)
}

/// Raises the soft limit of open files to the hard one and returns it: every agent costs a master two sockets.
///
/// # Errors
/// The system's error, when it refuses; the old limit then stays.
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
