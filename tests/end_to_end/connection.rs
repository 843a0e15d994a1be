//! A connection to the API for schedulers or executors, in JSON, for tests that act as one of these.
//!
//! A scheduler has two: one for its events and one for its calls.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::PATIENCE;

/// A connection for calls and streams, in JSON.
pub struct Connection {
    stream: BufReader<TcpStream>,
    path: &'static str,
    pub stream_id: Option<String>,
}

impl Connection {
    /// Opens a connection for calls to this path.
    pub fn open(address: &str, path: &'static str) -> Connection {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Connection { stream: BufReader::new(stream), path, stream_id: None }
    }

    /// Sends a call.
    pub fn send(&mut self, call: &Value) {
        let body = call.to_string();
        let id = self.stream_id.as_ref().map(|id| format!("Mesos-Stream-Id: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json\r\n{id}Content-Length: {}\r\n\r\n",
            self.path,
            body.len()
        );
        self.stream.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
    }

    /// Returns the status of the next answer. The body of a stream follows; any other body is read and dropped.
    pub fn status(&mut self) -> u16 {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            if line.trim().is_empty() {
                break;
            }
            lines.push(line);
        }
        let value = |name: &str| {
            let found = lines.iter().find(|line| line.to_lowercase().starts_with(&format!("{name}:")));
            found.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        self.stream_id = self.stream_id.take().or_else(|| value("mesos-stream-id"));
        if let Some(length) = value("content-length") {
            self.stream.read_exact(&mut vec![0; length.parse().unwrap()]).unwrap();
        }
        lines[0].split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Returns the next event of a stream; `None` at its end.
    pub fn event(&mut self) -> Option<Value> {
        // Each event is a record in one or several chunks; the sizes of chunks are on lines of their own.
        let mut record: Vec<u8> = Vec::new();
        loop {
            let mut size = String::new();
            self.stream.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).ok()?;
            record.extend_from_slice(&chunk[..size]);
            let Some(start) = record.iter().position(|byte| *byte == b'\n').map(|at| at + 1) else { continue };
            let length: usize = std::str::from_utf8(&record[..start - 1]).ok()?.parse().ok()?;
            if record.len() >= start + length {
                return serde_json::from_slice(&record[start..start + length]).ok();
            }
        }
    }
}
