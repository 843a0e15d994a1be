//! Messages between a job's driver and its workers: binary frames, each after its length.
//!
//! This module opens no connection. A frame that is too long or invalid ends its connection.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::learn::Shape;

/// The version of these frames; both sides must have the same.
pub const VERSION: u32 = 3;
/// The longest frame, in bytes.
pub const LENGTH_MAX: usize = 256 << 20;
/// Limit of the first frame of a connection, whose sender is unknown.
pub const HELLO_MAX: usize = 4096;

/// A message of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToDriver {
    /// The first frame.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// Which job it works for.
        job: String,
        /// What shows that it may.
        token: String,
        /// The id of the task that it is.
        task: String,
        /// How many cores it uses.
        cores: u32,
    },
    /// The partial result of a shard.
    Partial {
        /// In which round.
        round: u64,
        /// Of which shard.
        shard: u32,
        /// How long a core computed, in microseconds.
        micros: u64,
        /// The result.
        values: Vec<f64>,
    },
    /// A line of the program of the user's own.
    Line {
        /// Its number, from 1.
        number: u64,
        /// The line, without its end.
        text: String,
    },
    /// The program has ended.
    Ended {
        /// Its exit status; none if a signal has ended it.
        code: Option<i32>,
        /// Which signal.
        signal: Option<i32>,
    },
    /// It cannot work, and never will.
    Failed {
        /// Why, in words.
        why: String,
    },
}

/// A message of a driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToWorker {
    /// What the job is; the answer to a hello.
    Setup {
        /// The job, as JSON.
        job: String,
        /// The shape of its data.
        shape: Shape,
    },
    /// Shards to compute.
    Compute {
        /// In which round.
        round: u64,
        /// Which shards.
        shards: Vec<u32>,
        /// The round's parameters.
        parameters: Vec<f64>,
    },
    /// Run the job's program from its beginning; one that runs ends.
    Run {
        /// Its first line.
        line: String,
    },
    /// Write a line to the program's standard input.
    Say {
        /// The line, without its end.
        line: String,
    },
    /// Nothing: the driver is still there.
    Ping,
    /// The job needs this worker no more.
    Leave,
    /// The job does not need this worker any more, but another one does: it must connect to that job's driver.
    Move {
        /// Which job.
        job: String,
        /// What the worker proves itself with from now on.
        token: String,
    },
    /// The hello is not accepted.
    Refused {
        /// Why, in words.
        why: String,
    },
}

/// Why bytes are not frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame exceeds the limit.
    #[error("a frame of {0} bytes is longer than the {1} that are allowed")]
    TooLong(usize, usize),
    /// A frame's bytes mean nothing.
    #[error("a frame cannot be read: {0}")]
    Unreadable(String),
}

/// A frame as bytes, its length before it.
///
/// # Errors
/// It is longer than [`LENGTH_MAX`].
pub fn encode(frame: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let unreadable = |error: postcard::Error| FrameError::Unreadable(error.to_string());
    let bytes = postcard::to_extend(frame, vec![0; 4]).map_err(unreadable)?;
    let length = bytes.len() - 4;
    match u32::try_from(length) {
        Ok(prefix) if length <= LENGTH_MAX => {
            let mut bytes = bytes;
            bytes[..4].copy_from_slice(&prefix.to_le_bytes());
            Ok(bytes)
        }
        _ => Err(FrameError::TooLong(length, LENGTH_MAX)),
    }
}

/// How long the frame is that follows these four bytes; at most `most`.
///
/// # Errors
/// It is longer.
pub fn length(prefix: [u8; 4], most: usize) -> Result<usize, FrameError> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length <= most { Ok(length) } else { Err(FrameError::TooLong(length, most)) }
}

/// Decodes the bytes that follow a frame's length.
///
/// # Errors
/// The bytes are not such a frame.
pub fn decode<F: DeserializeOwned>(bytes: &[u8]) -> Result<F, FrameError> {
    let unreadable = |error: postcard::Error| FrameError::Unreadable(error.to_string());
    let (frame, rest) = postcard::take_from_bytes(bytes).map_err(unreadable)?;
    if rest.is_empty() { Ok(frame) } else { Err(FrameError::Unreadable("there are bytes after its end".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_comes_back_as_it_was() {
        let frame = ToWorker::Compute { round: 7, shards: vec![0, 300], parameters: vec![0.1, -2.0, f64::MAX] };
        let bytes = encode(&frame).unwrap();
        let length = length([bytes[0], bytes[1], bytes[2], bytes[3]], LENGTH_MAX).unwrap();
        assert_eq!(length, bytes.len() - 4);
        assert_eq!(decode::<ToWorker>(&bytes[4..]), Ok(frame));
        assert!(decode::<ToWorker>(&bytes[4..bytes.len() - 1]).is_err());
        let longer = [&bytes[4..], &[0]].concat();
        assert!(decode::<ToWorker>(&longer).is_err());
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_anything_is_read() {
        assert_eq!(length([0, 0, 0, 255], LENGTH_MAX), Err(FrameError::TooLong(0xFF00_0000, LENGTH_MAX)));
        assert!(length([1, 32, 0, 0], HELLO_MAX).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode::<ToDriver>(&bytes);
            let _ = decode::<ToWorker>(&bytes);
        }
    }
}
