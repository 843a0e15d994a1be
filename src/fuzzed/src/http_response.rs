//! Checks the parser with which executors read responses of an agent and of the Docker daemon.

use executor::{AnswerReader, Part};

/// Result of an input: the statuses, all bodies with their ends, and whether it is invalid.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    statuses: Vec<u16>,
    bodies: Vec<u8>,
    ends: Vec<usize>,
    is_invalid: bool,
}

fn read(data: &[u8], size: usize) -> Seen {
    let (mut reader, mut seen) = (AnswerReader::new(), Seen::default());
    for piece in data.chunks(size) {
        let fed = reader.feed(piece, &mut |part| match part {
            Part::Head(status) => seen.statuses.push(status),
            Part::Data(data) => seen.bodies.extend_from_slice(data),
            Part::End => seen.ends.push(seen.bodies.len()),
        });
        if fed.is_err() {
            seen.is_invalid = true;
            break;
        }
    }
    seen
}

/// Checks that the responses do not depend on how the bytes are split, and have no more bytes than the input.
pub fn http_response(data: &[u8]) {
    let whole = read(data, usize::MAX);
    assert!(whole.bodies.len() <= data.len() && whole.ends.len() <= whole.statuses.len());
    for size in [1, 5] {
        assert_eq!(read(data, size), whole, "cut in parts of {size}");
    }
}
