//! Reads a whole HTTP response and blocks meanwhile: for processes that have nothing else to do.

use std::io::{self, Read};

use crate::http::{AnswerReader, HttpError, Part};

/// An error of a response that is missing or incomplete.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("The connection is lost")]
    Lost(#[from] io::Error),
    #[error("The answer cannot be read")]
    Malformed(#[from] HttpError),
    #[error("No answer was received")]
    None,
}

/// Passes the pieces of a response with its status to `sink`, until `sink` returns `true` or the response has ended.
/// Returns the status.
pub(crate) fn read(socket: &mut dyn Read, sink: &mut dyn FnMut(u16, &[u8]) -> bool) -> Result<u16, NoAnswer> {
    let mut reader = AnswerReader::new();
    let (mut status, mut ended, mut enough) = (0, false, false);
    let mut buffer = [0; 16 * 1024];
    while !ended && !enough {
        let length = match socket.read(&mut buffer) {
            Ok(0) if status == 0 => return Err(NoAnswer::None),
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        reader.feed(&buffer[..length], &mut |part| match part {
            Part::Head(code) => {
                status = code;
                enough |= sink(code, b"");
            }
            Part::Data(data) => enough |= sink(status, data),
            Part::End => ended = true,
        })?;
    }
    Ok(status)
}
