//! A client that writes and reads bytes, and does nothing more.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest time that a test waits for an expected event, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Waits for an expected event.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("timed out: {what}"),
    }
}

/// Polls until a condition holds.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    soon(what, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// A response in the form in which it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawResponse {
    pub(crate) status_line: String,
    /// Headers in order, with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl RawResponse {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn status(&self) -> u16 {
        self.status_line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// A connection of the client.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    /// Bytes that were read and not used yet.
    pub(crate) buffer: Vec<u8>,
}

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Raw {
        Raw { stream: TcpStream::connect(address).await.unwrap(), buffer: Vec::new() }
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Reads more bytes. Returns `false` at the end of the connection.
    async fn more(&mut self) -> bool {
        let mut part = vec![0; 64 << 10];
        match soon("bytes", self.stream.read(&mut part)).await {
            Ok(0) | Err(_) => false,
            Ok(length) => {
                self.buffer.extend_from_slice(&part[..length]);
                true
            }
        }
    }

    /// Reads and returns everything up to a marker, with the marker.
    pub(crate) async fn take_until(&mut self, marker: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.buffer.windows(marker.len()).position(|window| window == marker) {
                return self.buffer.drain(..at + marker.len()).collect();
            }
            assert!(self.more().await, "closed early: {:?}", String::from_utf8_lossy(&self.buffer));
        }
    }

    pub(crate) async fn take(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            assert!(self.more().await, "closed early: {:?}", String::from_utf8_lossy(&self.buffer));
        }
        self.buffer.drain(..length).collect()
    }

    /// Reads and returns everything until the server closes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        while self.more().await {}
        std::mem::take(&mut self.buffer)
    }

    /// Reads the head of the next response.
    pub(crate) async fn head(&mut self) -> RawResponse {
        let head = String::from_utf8(self.take_until(b"\r\n\r\n").await).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status_line = lines.next().unwrap().to_owned();
        let headers = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        RawResponse { status_line, headers, body: Vec::new() }
    }

    /// Reads the next response, whose body has a `Content-Length`.
    pub(crate) async fn response(&mut self) -> RawResponse {
        let mut response = self.head().await;
        let length = response.header("content-length").map_or(0, |length| length.parse().unwrap());
        response.body = self.take(length).await;
        response
    }

    /// Writes a request and reads its response. The response, and the end of the connection, may come before all is
    /// written.
    pub(crate) async fn ask(&mut self, request: impl AsRef<[u8]>) -> RawResponse {
        let _ = self.stream.write_all(request.as_ref()).await;
        self.response().await
    }

    /// Reads one chunk of a chunked body, without its framing.
    pub(crate) async fn chunk(&mut self) -> Vec<u8> {
        let size = String::from_utf8(self.take_until(b"\r\n").await).unwrap();
        let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
        let mut chunk = self.take(size + 2).await;
        assert!(chunk.ends_with(b"\r\n"));
        chunk.truncate(size);
        chunk
    }
}

/// Writes a request on a connection of its own, and reads everything until the server closes.
pub(crate) async fn dialogue(address: SocketAddr, request: impl AsRef<[u8]>) -> Vec<u8> {
    let mut raw = Raw::connect(address).await;
    raw.write(request).await;
    raw.rest().await
}
