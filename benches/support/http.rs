//! The part of HTTP/1.1 that load needs: requests over a persistent connection, chunked streams, pipelined calls.
//!
//! Blocking and without copies where that matters, so that the daemon is measured and not the load.

use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::time::Duration;

/// Maximum time of a read before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A complete response.
pub struct Answer {
    /// Status code of the response.
    pub status: u16,
    /// Headers as they were received.
    pub head: String,
    /// Decoded body.
    pub body: Vec<u8>,
}

/// A connection with a read buffer.
pub struct Connection {
    stream: TcpStream,
    /// Read buffer; received bytes that were not consumed are in `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Connection {
    /// Connects to a server.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn open(address: SocketAddrV4) -> io::Result<Connection> {
        Connection::over(TcpStream::connect(address)?)
    }

    /// Creates a connection over an open socket.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn over(stream: TcpStream) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection { stream, buffer: vec![0; 1 << 18], start: 0, end: 0 })
    }

    /// Returns the socket, for a writer of its own.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn socket(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Returns the received bytes that were not consumed.
    pub fn waiting(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Consumes the first `count` received bytes.
    pub fn take(&mut self, count: usize) {
        self.start += count;
    }

    /// Reads further bytes.
    ///
    /// # Errors
    /// Those of the socket, or the other side closed.
    pub fn read_more(&mut self) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.buffer.len() - self.end < self.buffer.len() / 4 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end > self.buffer.len() / 2 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        let read = self.stream.read(&mut self.buffer[self.end..])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.end += read;
        Ok(())
    }

    /// Sends a GET request for a path and returns the response.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes())?;
        self.answer()
    }

    /// Sends a GET request for a path and discards the body, at the least cost to this side. Returns the length of the
    /// body.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn skip(&mut self, path: &str) -> io::Result<usize> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes())?;
        let (_, head) = self.head()?;
        if is_chunked(&head) {
            let mut body = Vec::new();
            while self.chunk(&mut body)? {}
            return Ok(body.len());
        }
        let length = header(&head, "content-length").and_then(|v| v.parse().ok()).unwrap_or(0);
        let mut left: usize = length;
        loop {
            let taken = left.min(self.waiting().len());
            self.take(taken);
            left -= taken;
            if left == 0 {
                return Ok(length);
            }
            self.read_more()?;
        }
    }

    /// Reads a complete response.
    ///
    /// # Errors
    /// Those of the socket, or it is not a response.
    pub fn answer(&mut self) -> io::Result<Answer> {
        let (status, head) = self.head()?;
        let mut body = Vec::new();
        if is_chunked(&head) {
            while self.chunk(&mut body)? {}
        } else {
            let length = header(&head, "content-length").and_then(|v| v.parse().ok()).unwrap_or(0);
            while self.waiting().len() < length {
                self.read_more()?;
            }
            body.extend_from_slice(&self.waiting()[..length]);
            self.take(length);
        }
        Ok(Answer { status, head, body })
    }

    /// Reads the status and the headers of a response.
    ///
    /// # Errors
    /// Those of the socket, or it is not a response.
    pub fn head(&mut self) -> io::Result<(u16, String)> {
        let end = loop {
            if let Some(end) = find(self.waiting(), b"\r\n\r\n") {
                break end;
            }
            self.read_more()?;
        };
        let head = String::from_utf8_lossy(&self.waiting()[..end]).into_owned();
        self.take(end + 4);
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        Ok((status, head))
    }

    /// Reads a chunk and appends it. Returns `false` for the last one.
    ///
    /// # Errors
    /// Those of the socket, or it is not a chunk.
    pub fn chunk(&mut self, body: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            match whole_chunk(self.waiting()) {
                Some((data, all)) => {
                    let last = data.is_empty();
                    body.extend_from_slice(&self.waiting()[data]);
                    self.take(all);
                    return Ok(!last);
                }
                None => self.read_more()?,
            }
        }
    }

    /// Returns whether a complete chunk was received already.
    pub fn has_chunk(&self) -> bool {
        whole_chunk(self.waiting()).is_some()
    }
}

/// Returns the range of the first chunk's data, and the end of the chunk, if it is complete.
pub fn whole_chunk(bytes: &[u8]) -> Option<(std::ops::Range<usize>, usize)> {
    let line = find(&bytes[..bytes.len().min(20)], b"\r\n")?;
    let length = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).ok()?, 16).ok()?;
    let data = line + 2..line + 2 + length;
    (bytes.len() >= data.end + 2).then_some((data.clone(), data.end + 2))
}

/// Returns whether the headers state that the body is chunked.
pub fn is_chunked(head: &str) -> bool {
    header(head, "transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"))
}

/// Returns the value of a header.
pub fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().filter_map(|l| l.split_once(':')).find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim())
}

/// Returns the first position of `what`.
pub fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    let first = *what.first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|b| *b == first) {
        if bytes[from + at..].starts_with(what) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}
