//! Writes the audit log to systemd's journal: datagrams to its native socket.
//!
//! The values contain no line feeds, so each field is one line of the datagram.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Path of the socket of journald.
pub(super) const SOCKET: &str = "/run/systemd/journal/socket";

/// A connection to journald.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    socket: UnixDatagram,
}

impl Journal {
    /// Connects to journald at `path`.
    ///
    /// # Errors
    /// An error of the system: no journald receives at the path.
    pub(super) fn open(path: &Path) -> io::Result<Journal> {
        Ok(Journal { path: path.to_owned(), socket: connect(path)? })
    }

    /// Sends a line. `fields` are the names and values of further fields of the journal.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn write(&mut self, line: &str, identifier: &str, fields: &[(&str, &str)]) -> io::Result<()> {
        let mut datagram = format!("MESSAGE={line}\nPRIORITY=5\nSYSLOG_IDENTIFIER={identifier}\n");
        for (name, value) in fields {
            datagram.push_str(&format!("{name}={value}\n"));
        }
        if self.socket.send(datagram.as_bytes()).is_err() {
            // journald may have been restarted.
            self.socket = connect(&self.path)?;
            self.socket.send(datagram.as_bytes())?;
        }
        Ok(())
    }
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sent_with_their_fields_also_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        assert!(Journal::open(&path).is_err());
        let receive = |socket: &UnixDatagram| {
            let mut buffer = [0; 1000];
            let length = socket.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..length].to_vec()).unwrap()
        };
        let first = UnixDatagram::bind(&path).unwrap();
        let mut journal = Journal::open(&path).unwrap();
        journal.write("{}", "tepui-master", &[("TEPUI_CALL", "ACCEPT")]).unwrap();
        let expected = "MESSAGE={}\nPRIORITY=5\nSYSLOG_IDENTIFIER=tepui-master\nTEPUI_CALL=ACCEPT\n";
        assert_eq!(receive(&first), expected);
        drop(first);
        std::fs::remove_file(&path).unwrap();
        assert!(journal.write("{}", "tepui-master", &[]).is_err());
        let second = UnixDatagram::bind(&path).unwrap();
        journal.write("[]", "tepui-master", &[]).unwrap();
        assert!(receive(&second).starts_with("MESSAGE=[]\n"));
    }
}
