//! The little of HTTP/1.1 that load needs: requests over a connection that stays, chunked streams, pipelined calls.
//!
//! Blocking and without copies where it counts, so that the daemon is what is measured.

use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::time::Duration;

/// How long a read may take before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer, whole.
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Headers as they came.
    pub head: String,
    /// The body, decoded.
    pub body: Vec<u8>,
}

/// A connection with a read buffer.
pub struct Connection {
    stream: TcpStream,
    /// What came and was not taken is in `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// As of the socket.
    pub fn open(address: SocketAddrV4) -> io::Result<Connection> {
        Connection::over(TcpStream::connect(address)?)
    }

    /// A connection over an open socket.
    ///
    /// # Errors
    /// As of the socket.
    pub fn over(stream: TcpStream) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection { stream, buffer: vec![0; 1 << 18], start: 0, end: 0 })
    }

    /// The socket, for a writer of its own.
    ///
    /// # Errors
    /// As of the socket.
    pub fn socket(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Bytes that came and were not taken.
    pub fn waiting(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes the first `count` bytes of what waits.
    pub fn take(&mut self, count: usize) {
        self.start += count;
    }

    /// Reads some more.
    ///
    /// # Errors
    /// The socket's, or the other side closed.
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

    /// GET of a path.
    ///
    /// # Errors
    /// The socket's.
    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes())?;
        self.answer()
    }

    /// Gets a path and discards the body, at the least cost to this side. Returns the length of the body.
    ///
    /// # Errors
    /// The socket's.
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

    /// Reads an answer to its end.
    ///
    /// # Errors
    /// The socket's, or it is not an answer.
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

    /// Reads an answer's status and headers.
    ///
    /// # Errors
    /// The socket's, or it is not an answer.
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

    /// Reads a chunk and appends it; false at the last one.
    ///
    /// # Errors
    /// The socket's, or it is not a chunk.
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

    /// Whether a whole chunk waits already.
    pub fn has_chunk(&self) -> bool {
        whole_chunk(self.waiting()).is_some()
    }
}

/// Where the data of the first chunk is, and where the chunk ends, if it is all there.
pub fn whole_chunk(bytes: &[u8]) -> Option<(std::ops::Range<usize>, usize)> {
    let line = find(&bytes[..bytes.len().min(20)], b"\r\n")?;
    let length = usize::from_str_radix(std::str::from_utf8(&bytes[..line]).ok()?, 16).ok()?;
    let data = line + 2..line + 2 + length;
    (bytes.len() >= data.end + 2).then_some((data.clone(), data.end + 2))
}

/// Whether the headers say that the body is chunked.
pub fn is_chunked(head: &str) -> bool {
    header(head, "transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"))
}

/// The value of a header.
pub fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().filter_map(|l| l.split_once(':')).find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim())
}

/// Where `what` first is.
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
