//! Messages between a job's driver and its workers: binary frames, each preceded by its length.
//!
//! This module opens no connection. A frame that is too long or invalid ends its connection.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::learn::Shape;

/// Version of these frames; both sides must have the same.
pub const VERSION: u32 = 3;
/// Maximum length of a frame, in bytes.
pub const LENGTH_MAX: usize = 256 << 20;
/// Maximum length of the first frame of a connection, whose sender is unknown, in bytes.
pub const HELLO_MAX: usize = 4096;

/// A message from a worker to its driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToDriver {
    /// First frame of a connection.
    Hello {
        /// Version of the worker's frames, [`VERSION`].
        version: u32,
        /// Name of the job for which the worker works.
        job: String,
        /// Secret that authenticates the worker for the job.
        token: String,
        /// Id of the worker's task.
        task: String,
        /// Number of cores that the worker uses.
        cores: u32,
    },
    /// Partial result of a shard.
    Partial {
        /// Number of the round.
        round: u64,
        /// Number of the shard.
        shard: u32,
        /// Time that a core computed, in microseconds.
        micros: u64,
        /// Numbers of the partial result.
        values: Vec<f64>,
    },
    /// Line of output of the user's program.
    Line {
        /// Number of the line, from 1.
        number: u64,
        /// Text of the line, without its end.
        text: String,
    },
    /// The user's program has ended.
    Ended {
        /// Exit status of the program; `None` if a signal ended it.
        code: Option<i32>,
        /// Number of the signal that ended the program; `None` if it exited.
        signal: Option<i32>,
    },
    /// The worker cannot work, and retrying would not help.
    Failed {
        /// Reason, in words.
        why: String,
    },
}

/// A message from a driver to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToWorker {
    /// Answer to a hello: the description of the job.
    Setup {
        /// Job, as JSON.
        job: String,
        /// Shape of the job's data.
        shape: Shape,
    },
    /// Request to compute shards.
    Compute {
        /// Number of the round.
        round: u64,
        /// Numbers of the shards.
        shards: Vec<u32>,
        /// Parameters of the round.
        parameters: Vec<f64>,
    },
    /// Request to start the job's program; a program that is running ends first.
    Run {
        /// First line for the program's standard input.
        line: String,
    },
    /// Request to write a line to the program's standard input.
    Say {
        /// Text of the line, without its end.
        line: String,
    },
    /// Sign of life of the driver, without content.
    Ping,
    /// The job does not need this worker any more.
    Leave,
    /// The job does not need this worker any more, but another job does: the worker must connect to that job's driver.
    Move {
        /// Name of the other job.
        job: String,
        /// Secret with which the worker authenticates from now on.
        token: String,
    },
    /// The worker's hello is not accepted.
    Refused {
        /// Reason, in words.
        why: String,
    },
}

/// An error for bytes that are not frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame is longer than the limit.
    #[error("a frame of {0} bytes is longer than the {1} that are allowed")]
    TooLong(usize, usize),
    /// A frame cannot be decoded.
    #[error("a frame cannot be read: {0}")]
    Unreadable(String),
}

/// Encodes a frame, preceded by its length.
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

/// Returns the length of the frame that follows these four bytes.
///
/// # Errors
/// The frame is longer than `most` bytes.
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
