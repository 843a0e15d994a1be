//! Reads and writes frames: length, kind, body. `request.rs` parses the bodies.

use std::io::{self, Read, Write};

/// Maximum size of a frame that is read, kind and body, in bytes.
pub const MOST_FRAME: usize = 64 << 20;

/// Reads a frame into `body` and returns its kind; `None` if the input ends between two frames.
///
/// # Errors
/// Returns the system's error; `InvalidData` for a length that is 0 or above [`MOST_FRAME`]; `UnexpectedEof` within a
/// frame.
pub fn read_frame(input: &mut dyn Read, body: &mut Vec<u8>) -> io::Result<Option<u8>> {
    let mut head = [0; 5];
    let mut have = 0;
    while have < head.len() {
        match input.read(&mut head[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => have += more,
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if !(1..=MOST_FRAME).contains(&length) {
        let rule = format!("invalid frame: length {length} must be 1 to {MOST_FRAME}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, rule));
    }
    body.clear();
    // Memory grows with the bytes that arrive, not with the declared length.
    let read = input.take(length as u64 - 1).read_to_end(body)?;
    if read < length - 1 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(head[4]))
}

/// Writes a frame of several pieces, without copying them.
///
/// # Errors
/// Returns the system's error; `InvalidInput` for more than 4 GiB.
pub fn write_frame(output: &mut dyn Write, kind: u8, pieces: &[&[u8]]) -> io::Result<()> {
    let length = 1 + pieces.iter().map(|piece| piece.len()).sum::<usize>();
    let length = u32::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    output.write_all(&length.to_le_bytes())?;
    output.write_all(&[kind])?;
    pieces.iter().try_for_each(|piece| output.write_all(piece))?;
    output.flush()
}
