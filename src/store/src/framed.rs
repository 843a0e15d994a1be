//! Framed messages: a length of four bytes, little endian, and then that many bytes of protobuf (docs/mesos/disk.md).

use prost::Message;

/// An error of a complete frame that does not contain a message of the expected type.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the record at byte {offset} is damaged")]
pub struct FrameError {
    /// Offset of the frame.
    pub offset: usize,
    /// The decoder's error.
    pub source: prost::DecodeError,
}

/// Returns one framed message. Messages are below 4 GiB: the network protocol allows no longer ones.
pub fn frame(message: &impl Message) -> Vec<u8> {
    let body = message.encode_to_vec();
    let mut bytes = Vec::with_capacity(4 + body.len());
    bytes.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// Returns the messages of all complete frames, and the number of bytes of these frames, which is less than the length
/// of `bytes` if the last frame is torn.
///
/// # Errors
/// A complete frame does not contain a message of this type.
pub fn read_frames<M: Message + Default>(bytes: &[u8]) -> Result<(Vec<M>, usize), FrameError> {
    let mut messages = Vec::new();
    let mut offset = 0;
    while let Some((head, rest)) = bytes[offset..].split_first_chunk::<4>() {
        let Some(body) = rest.get(..u32::from_le_bytes(*head) as usize) else { break };
        messages.push(M::decode(body).map_err(|source| FrameError { offset, source })?);
        offset += 4 + body.len();
    }
    Ok((messages, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use protos::mesos::TaskId;

    proptest! {
        /// However many bytes of the end are missing, all complete frames before are read, and nothing else.
        #[test]
        fn torn_ends_lose_only_themselves(values in prop::collection::vec("[a-z]{0,20}", 0..10), cut in 0usize..400) {
            let mut bytes = Vec::new();
            let mut ends = vec![0];
            for value in &values {
                bytes.extend(frame(&TaskId { value: value.into() }));
                ends.push(bytes.len());
            }
            let kept = bytes.len().saturating_sub(cut);
            let (messages, length) = read_frames::<TaskId>(&bytes[..kept]).unwrap();
            let whole = ends.iter().filter(|end| **end <= kept).count() - 1;
            prop_assert_eq!(length, ends[whole]);
            let read: Vec<_> = messages.into_iter().map(|m| m.value).collect();
            prop_assert_eq!(read, &values[..whole]);
        }
    }

    #[test]
    fn rubbish_in_a_whole_frame_is_an_error() {
        let mut bytes = frame(&TaskId { value: "a".into() });
        bytes.extend([1, 0, 0, 0, 0xff]);
        assert_eq!(read_frames::<TaskId>(&bytes).unwrap_err().offset, 7);
    }
}
