//! What is typed into a session: one request whose body goes on for as long as there is input.
//!
//! It is written by hand: a client for whole calls cannot send a body that is not there yet.

use std::io::Read;

use anyhow::Result;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use wire::client::Address;

const PIECE: usize = 4096;
/// How many pieces may wait for the agent.
const AHEAD: usize = 16;

/// Sends what comes on standard input, and the terminal's size when it changes; ends with the input.
pub(super) async fn send(address: Address, container: Value, tty: bool) -> Result<()> {
    let mut stream = TcpStream::connect((address.host(), address.port())).await?;
    let head = format!(
        "POST /api/v1 HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/recordio\r\n\
         Message-Content-Type: application/json\r\nAccept: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&chunk(json!({"type": "CONTAINER_ID", "container_id": container}))).await?;
    let mut typed = read();
    let mut resized = signal(SignalKind::window_change())?;
    loop {
        tokio::select! {
            piece = typed.recv() => match piece {
                Some(bytes) => stream.write_all(&chunk(data(&bytes))).await?,
                None => break,
            },
            _ = resized.recv(), if tty => {
                let (rows, columns) = super::terminal::size();
                let control = json!({"type": "TTY_INFO", "tty_info": {"window_size": {"rows": rows, "columns": columns}}});
                let message = json!({"type": "CONTROL", "control": control});
                stream.write_all(&chunk(json!({"type": "PROCESS_IO", "process_io": message}))).await?;
            }
        }
    }
    // An empty piece ends the command's input.
    stream.write_all(&chunk(data(&[]))).await?;
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(())
}

fn data(bytes: &[u8]) -> Value {
    let data = json!({"type": "STDIN", "data": BASE64_STANDARD.encode(bytes)});
    json!({"type": "PROCESS_IO", "process_io": {"type": "DATA", "data": data}})
}

/// A record as one HTTP chunk.
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
