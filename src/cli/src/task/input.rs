//! Sends the input of a session: one request whose body lasts as long as there is input.
//!
//! The request is written directly to the socket, as the HTTP client sends complete bodies only.

use std::io::Read;

use anyhow::Result;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use wire::client::Address;

use super::keys::Keys;

const PIECE: usize = 4096;
/// Maximum number of pieces of input that wait for the agent.
const AHEAD: usize = 16;

/// The reason why the input has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputEnd {
    /// Standard input has ended.
    All,
    /// The detach keys were typed.
    Detached,
}

/// The destination of the input: an agent and a container.
pub(super) struct InputTarget {
    pub(super) address: Address,
    pub(super) container: Value,
    /// Whether the container has a terminal, whose size changes are sent.
    pub(super) tty: bool,
    /// Whether the terminal's size is also sent at the start.
    pub(super) size_first: bool,
    pub(super) keys: Keys,
}

/// Sends standard input and the terminal's size. Ends with the input, or with the detach keys.
///
/// # Errors
/// The agent does not accept input any more.
pub(super) async fn send(target: InputTarget) -> Result<InputEnd> {
    let InputTarget { address, container, tty, size_first, mut keys } = target;
    let mut stream = wire::client::connect(&address).await?;
    let head = format!(
        "POST /api/v1 HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/recordio\r\n\
         Message-Content-Type: application/json\r\nAccept: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&chunk(json!({"type": "CONTAINER_ID", "container_id": container}))).await?;
    if tty && size_first {
        stream.write_all(&chunk(size())).await?;
    }
    let mut typed = read();
    let mut resized = signal(SignalKind::window_change())?;
    loop {
        // TLS buffers bytes.
        stream.flush().await?;
        tokio::select! {
            piece = typed.recv() => match piece {
                Some(bytes) => {
                    let (bytes, detach) = keys.take(&bytes);
                    if !bytes.is_empty() {
                        stream.write_all(&chunk(data(&bytes))).await?;
                    }
                    if detach {
                        // This is not the end of the input; the task continues.
                        stream.write_all(b"0\r\n\r\n").await?;
                        stream.flush().await?;
                        return Ok(InputEnd::Detached);
                    }
                }
                None => break,
            },
            _ = resized.recv(), if tty => stream.write_all(&chunk(size())).await?,
        }
    }
    // An empty piece ends the command's input.
    stream.write_all(&chunk(data(&[]))).await?;
    stream.write_all(b"0\r\n\r\n").await?;
    stream.flush().await?;
    Ok(InputEnd::All)
}

fn size() -> Value {
    let (rows, columns) = super::terminal::size();
    let control = json!({"type": "TTY_INFO", "tty_info": {"window_size": {"rows": rows, "columns": columns}}});
    json!({"type": "PROCESS_IO", "process_io": {"type": "CONTROL", "control": control}})
}

fn data(bytes: &[u8]) -> Value {
    let data = json!({"type": "STDIN", "data": BASE64_STANDARD.encode(bytes)});
    json!({"type": "PROCESS_IO", "process_io": {"type": "DATA", "data": data}})
}

/// Encodes a record as one HTTP chunk.
fn chunk(body: Value) -> Vec<u8> {
    let call = json!({"type": "ATTACH_CONTAINER_INPUT", "attach_container_input": body}).to_string();
    let mut record = Vec::new();
    protos::recordio::encode(call.as_bytes(), &mut record);
    let mut all = format!("{:x}\r\n", record.len()).into_bytes();
    all.extend(record);
    all.extend(b"\r\n");
    all
}

/// Reads standard input on a thread of its own, which ends with the process.
fn read() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let mut buffer = [0; PIECE];
        while let Ok(length @ 1..) = std::io::stdin().read(&mut buffer) {
            if sender.blocking_send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}
