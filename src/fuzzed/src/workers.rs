//! Checks frames between a training job's driver and its workers.

use std::fmt::Debug;

use quality::frame::{self, ToDriver, ToWorker};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum length of a frame in this check.
const LENGTH_MAX: usize = 1 << 16;

/// Parses frames. Each is rejected, or is the same after writing and reading.
pub fn workers(data: &[u8]) {
    let mut rest = data;
    while let Some((prefix, after)) = rest.split_first_chunk::<4>() {
        let Ok(length) = frame::length(*prefix, LENGTH_MAX) else { return };
        assert!(length <= LENGTH_MAX);
        let (body, after) = after.split_at(length.min(after.len()));
        same::<ToDriver>(body);
        same::<ToWorker>(body);
        rest = after;
    }
}

fn same<F: Serialize + DeserializeOwned + Debug>(body: &[u8]) {
    let Ok(read) = frame::decode::<F>(body) else { return };
    let written = frame::encode(&read).expect("a frame");
    let (prefix, body) = written.split_first_chunk::<4>().expect("a length");
    assert_eq!(frame::length(*prefix, frame::LENGTH_MAX), Ok(body.len()));
    let again: F = frame::decode(body).expect("what was written is read");
    // Texts are compared, since a value may be NaN.
    assert_eq!(format!("{again:?}"), format!("{read:?}"));
}
