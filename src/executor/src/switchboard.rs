//! The switchboard between a task's terminal and its clients: it writes the terminal's output to a file and to every
//! client, and writes the clients' input to the terminal.
//!
//! It outlives the agent, so that a task with a terminal does, too. Standard input is the terminal's near end, standard
//! output the file, standard error the listening socket; so it cannot print error messages.
//!
//! Clients receive plain bytes. They send frames: a byte for the kind, the length (four bytes, big-endian), and the
//! content. `0`: input. `1`: two numbers of four bytes, rows and columns. Any other kind ends the client's connection.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use containers::{read_some, resize_terminal, set_nonblocking, write_some};
use rustix::event::PollFlags;
use rustix::stdio::{stderr as door, stdin as terminal, stdout as file};

use crate::clock;
use crate::poller::{Idleness, Poller};

const TERMINAL: u64 = 0;
const DOOR: u64 = 1;
/// First token of clients.
const CLIENTS: u64 = 2;

/// Maximum number of bytes of one read.
const PIECE: usize = 16 * 1024;
/// Maximum number of bytes that wait to be written to the terminal; clients are not read meanwhile.
const TYPED_MAX: usize = 64 * 1024;
/// Maximum number of bytes of a client's unread output; beyond that it is disconnected, since a task does not wait for
/// clients.
const UNREAD_MAX: usize = 1 << 20;
const CLIENTS_MAX: usize = 16;
/// Maximum length of a frame.
const FRAME_MAX: usize = 64 * 1024;
const HEAD: usize = 5;
/// Time in which clients must read the last output.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

struct Client {
    fd: OwnedFd,
    /// Bytes of an incomplete frame.
    partial: Vec<u8>,
    unread: Vec<u8>,
}

#[derive(Default)]
struct Switchboard {
    clients: Vec<Client>,
    typed: Vec<u8>,
    /// Time since which no process has the terminal open.
    over: Option<Instant>,
}

pub(super) fn main() -> ExitCode {
    // Both may be shared with another process; a large read or write must not block this one.
    if [terminal(), door()].into_iter().any(|fd| set_nonblocking(fd).is_err()) {
        return ExitCode::FAILURE;
    }
    let mut board = Switchboard::default();
    let mut idleness = Idleness::default();
    while !board.is_done() {
        let until = board.over.map(|over| over + DRAIN_LIMIT);
        for (token, found) in board.poller().wait(idleness.before_wait(until)) {
            idleness.busy();
            board.on_ready(token, found);
        }
        // Clients that are gone are removed after all events were handled, since tokens are positions.
        board.clients.retain(|client| client.unread.len() <= UNREAD_MAX);
    }
    ExitCode::SUCCESS
}

impl Switchboard {
    fn is_done(&self) -> bool {
        let late = |over: Instant| clock::now() >= over + DRAIN_LIMIT;
        self.over.is_some_and(|over| late(over) || self.clients.iter().all(|client| client.unread.is_empty()))
    }

    fn poller(&self) -> Poller<'_> {
        let mut poller = Poller::default();
        if self.over.is_none() {
            let out = if self.typed.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            poller.add(TERMINAL, terminal(), PollFlags::IN | out);
            poller.add(DOOR, door(), PollFlags::IN);
        }
        for (token, client) in (CLIENTS..).zip(&self.clients) {
            let input = if self.typed.len() < TYPED_MAX { PollFlags::IN } else { PollFlags::empty() };
            let out = if client.unread.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            poller.add(token, client.fd.as_fd(), input | out);
        }
        poller
    }

    fn on_ready(&mut self, token: u64, found: PollFlags) {
        match token {
            TERMINAL => {
                if found.contains(PollFlags::OUT) {
                    self.type_in();
                }
                if found.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                    self.print();
                }
            }
            DOOR => {
                if let Ok(fd) = rustix::net::accept(door())
                    && self.clients.len() < CLIENTS_MAX
                    && set_nonblocking(&fd).is_ok()
                {
                    self.clients.push(Client { fd, partial: Vec::new(), unread: Vec::new() });
                }
            }
            _ => {
                let index = usize::try_from(token - CLIENTS).unwrap_or(usize::MAX);
                let Some(client) = self.clients.get_mut(index) else { return };
                let alive = !found.contains(PollFlags::OUT) || client.send();
                let heard = !found.intersects(PollFlags::IN | PollFlags::HUP) || client.hear(&mut self.typed);
                if !alive || !heard {
                    client.send_away();
                }
            }
        }
    }

    /// Copies output from the terminal to the file and the clients.
    fn print(&mut self) {
        let mut buffer = [0; PIECE];
        match read_some(terminal(), &mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A terminal that no process has open any more returns an error.
            Ok(0) | Err(_) => self.over = Some(clock::now()),
            Ok(length) => {
                append(&buffer[..length]);
                for client in &mut self.clients {
                    client.unread.extend_from_slice(&buffer[..length]);
                    if !client.send() {
                        client.send_away();
                    }
                }
            }
        }
    }

    fn type_in(&mut self) {
        match write_some(terminal(), &self.typed) {
            Ok(length) => drop(self.typed.drain(..length)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.typed.clear(),
        }
    }
}

/// Appends output to the file. With a full disk it is lost; the task does not wait for it.
fn append(mut bytes: &[u8]) {
    while let Ok(length @ 1..) = write_some(file(), bytes) {
        bytes = &bytes[length..];
    }
}

impl Client {
    /// Marks a client for removal.
    fn send_away(&mut self) {
        self.unread = vec![0; UNREAD_MAX + 1];
    }

    /// Sends output to the client. Returns `false` if it is gone.
    fn send(&mut self) -> bool {
        while !self.unread.is_empty() {
            match write_some(&self.fd, &self.unread) {
                Ok(length) => drop(self.unread.drain(..length)),
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }

    /// Reads frames of the client. Returns `false` if it is gone, or sends an invalid frame.
    fn hear(&mut self, typed: &mut Vec<u8>) -> bool {
        let mut buffer = [0; PIECE];
        match read_some(&self.fd, &mut buffer) {
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            Ok(0) => return false,
            Ok(length) => self.partial.extend_from_slice(&buffer[..length]),
        }
        while let Some(frame) = next(&mut self.partial) {
            match frame {
                Ok(Frame::Typed(bytes)) => typed.extend_from_slice(&bytes),
                // An error is ignored: a terminal without a size works as well.
                Ok(Frame::Size(rows, columns)) => drop(resize_terminal(terminal(), rows, columns)),
                Err(InvalidFrame) => return false,
            }
        }
        true
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Frame {
    Typed(Vec<u8>),
    Size(u32, u32),
}

#[derive(Debug, PartialEq, Eq)]
struct InvalidFrame;

/// Removes the first complete frame and returns it.
fn next(bytes: &mut Vec<u8>) -> Option<Result<Frame, InvalidFrame>> {
    let (kind, length) = (*bytes.first()?, number(bytes.get(1..HEAD)?)? as usize);
    if length > FRAME_MAX {
        return Some(Err(InvalidFrame));
    }
    let body = bytes.get(HEAD..HEAD + length)?.to_vec();
    bytes.drain(..HEAD + length);
    Some(match kind {
        0 => Ok(Frame::Typed(body)),
        1 => match (body.get(..4).and_then(number), body.get(4..8).and_then(number)) {
            (Some(rows), Some(columns)) => Ok(Frame::Size(rows, columns)),
            _ => Err(InvalidFrame),
        },
        _ => Err(InvalidFrame),
    })
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames() {
        let mut bytes = vec![0, 0, 0, 0, 2, b'a', b'b', 1, 0, 0, 0, 8, 0, 0, 0, 24, 0, 0, 0, 80, 0, 0, 0, 0];
        assert_eq!(next(&mut bytes), Some(Ok(Frame::Typed(b"ab".to_vec()))));
        assert_eq!(next(&mut bytes), Some(Ok(Frame::Size(24, 80))));
        // Four bytes of a head are not a frame yet.
        assert_eq!((next(&mut bytes), bytes.len()), (None, 4));
        for nonsense in [&[2, 0, 0, 0, 0][..], &[0, 1, 0, 0, 0], &[1, 0, 0, 0, 1, 0]] {
            assert_eq!(next(&mut nonsense.to_vec()), Some(Err(InvalidFrame)), "{nonsense:?}");
        }
    }
}
