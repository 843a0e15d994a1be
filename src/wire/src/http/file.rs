//! The content of a file as the body of a response, read in pieces as the client takes them: a large file takes no more
//! memory than a small one. It opens no files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use tokio::task::JoinHandle;

/// Maximum length of a piece. hyper holds about two for a client that does not read, and one more is read ahead.
const PIECE: usize = 64 << 10;

/// A file that is being sent.
#[derive(Debug)]
pub(crate) struct FileBody {
    file: Arc<File>,
    /// Offset of the next piece.
    offset: u64,
    /// Length of the file when the response began; what is appended later is not sent.
    length: u64,
    /// Reading of the next piece, on a thread that may block.
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FileBody {
    /// Creates the body of the first `length` bytes of a file. Nothing is read before hyper asks for it.
    pub(super) fn new(file: File, length: u64) -> FileBody {
        FileBody { file: Arc::new(file), offset: 0, length, reading: None }
    }

    /// Returns the number of bytes that hyper has not received yet.
    pub(super) fn left(&self) -> u64 {
        self.length - self.offset
    }

    /// Returns the next piece. It is an error if the file has become shorter: the connection then closes, by which the
    /// client recognizes that bytes are missing.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left() == 0 {
            return Poll::Ready(None);
        }
        let mut reading = self.reading.take().unwrap_or_else(|| self.read());
        let Poll::Ready(read) = Pin::new(&mut reading).poll(cx) else {
            self.reading = Some(reading);
            return Poll::Pending;
        };
        match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(piece) if piece.is_empty() => {
                tracing::debug!("a file has become shorter while it was sent; connection closed");
                Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())))
            }
            Ok(piece) => {
                self.offset += piece.len() as u64;
                if self.left() > 0 {
                    self.reading = Some(self.read());
                }
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read a file while it is sent; connection closed");
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    /// Starts to read the next piece. Disks may be slow, so this is done on another thread than the reactor's.
    fn read(&self) -> JoinHandle<io::Result<Bytes>> {
        let (file, offset) = (self.file.clone(), self.offset);
        let length = usize::try_from(self.left()).map_or(PIECE, |left| left.min(PIECE));
        tokio::task::spawn_blocking(move || -> io::Result<Bytes> {
            let mut piece = vec![0; length];
            let length = file.read_at(&mut piece, offset)?;
            piece.truncate(length);
            Ok(piece.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Opens a file of several pieces: the program of this test. Returns it and its length.
    fn program() -> (File, u64) {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let length = file.metadata().unwrap().len();
        assert!(length > 2 * PIECE as u64);
        (file, length)
    }

    /// Reads a body. Returns its bytes, and whether it has come to its proper end.
    async fn read(mut body: FileBody) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        while let Some(piece) = poll_fn(|cx| body.poll_piece(cx)).await {
            let Ok(frame) = piece else { return (all, false) };
            let piece = frame.into_data().ok().unwrap();
            assert!(!piece.is_empty() && piece.len() <= PIECE, "{}", piece.len());
            all.extend_from_slice(&piece);
            assert_eq!(body.left(), body.length - all.len() as u64);
        }
        (all, true)
    }

    #[tokio::test]
    async fn the_pieces_are_the_file() {
        let (file, length) = program();
        let (sent, is_whole) = read(FileBody::new(file, length)).await;
        assert!(is_whole && sent == std::fs::read(std::env::current_exe().unwrap()).unwrap());
        let (sent, is_whole) = read(FileBody::new(program().0, PIECE as u64 + 1)).await;
        assert!(is_whole && sent.len() == PIECE + 1);
        assert_eq!(read(FileBody::new(program().0, 0)).await, (Vec::new(), true));
    }

    #[tokio::test]
    async fn a_file_that_becomes_shorter_has_no_proper_end() {
        let (file, length) = program();
        let (sent, is_whole) = read(FileBody::new(file, length + 1)).await;
        assert!(!is_whole && sent.len() as u64 == length);
    }
}
