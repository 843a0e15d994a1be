//! Encoding of framed messages: a length of four bytes, little endian, and then that many bytes of protobuf.

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use protos::mesos::internal::{StatusUpdate, StatusUpdateRecord, status_update_record};

/// Returns one message in a frame.
pub(crate) fn frame(message: &impl Message) -> Vec<u8> {
    let length = message.encoded_len();
    let mut bytes = Vec::with_capacity(4 + length);
    // The wire does not carry messages of 4 GiB.
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    message.encode_raw(&mut bytes);
    bytes
}

/// Returns the framed record of a received update: a [`StatusUpdateRecord`], without a copy of the update.
pub(crate) fn frame_update(update: &StatusUpdate) -> Vec<u8> {
    let kind =
        StatusUpdateRecord { r#type: status_update_record::Type::Update as i32, ..StatusUpdateRecord::default() };
    let update_length = update.encoded_len();
    let length = kind.encoded_len() + key_len(2) + encoded_len_varint(update_length as u64) + update_length;
    let mut bytes = Vec::with_capacity(4 + length);
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    kind.encode_raw(&mut bytes);
    encode_key(2, WireType::LengthDelimited, &mut bytes);
    encode_varint(update_length as u64, &mut bytes);
    update.encode_raw(&mut bytes);
    bytes
}

/// Decodes the framed messages of a file. Returns them with the length of the part that consists of whole frames.
///
/// # Errors
/// When a whole frame does not contain such a message.
pub(crate) fn unframe<M: Message + Default>(bytes: &[u8]) -> Result<(Vec<M>, usize), prost::DecodeError> {
    let mut messages = Vec::new();
    let mut offset = 0;
    while let Some(head) = bytes.get(offset..offset + 4) {
        // The slice has four bytes.
        let length = u32::from_le_bytes(head.try_into().expect("four bytes")) as usize;
        let Some(body) = bytes.get(offset + 4..).and_then(|rest| rest.get(..length)) else {
            break;
        };
        messages.push(M::decode(body)?);
        offset += 4 + length;
    }
    Ok((messages, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protos::mesos::TaskId;

    #[test]
    fn a_record_of_an_update_is_as_the_message_says() {
        let update = StatusUpdate { timestamp: 1.5, uuid: Some(vec![7; 16]), ..StatusUpdate::default() };
        let record = StatusUpdateRecord {
            r#type: status_update_record::Type::Update as i32,
            update: Some(update.clone()),
            uuid: None,
        };
        assert_eq!(frame_update(&update), frame(&record));
    }

    #[test]
    fn frames_follow_each_other_and_a_torn_one_ends_them() {
        let mut bytes = frame(&TaskId { value: "a".into() });
        assert_eq!(bytes, [3, 0, 0, 0, 10, 1, b'a']);
        bytes.extend(frame(&TaskId { value: "bc".into() }));
        let whole = bytes.len();
        bytes.extend(&frame(&TaskId { value: "def".into() })[..6]);
        let (messages, length) = unframe::<TaskId>(&bytes).unwrap();
        assert_eq!(messages.iter().map(|m| m.value.as_str()).collect::<Vec<_>>(), ["a", "bc"]);
        assert_eq!(length, whole);
    }

    #[test]
    fn a_whole_frame_of_rubbish_is_an_error() {
        assert!(unframe::<TaskId>(&[1, 0, 0, 0, 0xff]).is_err());
    }
}
