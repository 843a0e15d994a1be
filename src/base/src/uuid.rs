//! UUIDs (RFC 9562): all are generated here, and received ones are checked as Mesos checks them.
//!
//! On the wire and on disk a UUID is 16 bytes, or their text. Mesos ends its process when one that it should act on is
//! invalid.

use thiserror::Error;
use uuid::{Builder, Uuid};

/// The error for bytes that are not a UUID: there are not 16 of them, or the version is not one of RFC 4122.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("Not a valid UUID")]
pub struct InvalidUuid;

/// Generates the next UUID and advances `state`. UUIDs of one state are distinct; they are not for secrets.
pub fn uuid(state: &mut u64) -> [u8; 16] {
    uuid_from(Uuid::from_u64_pair(crate::split_mix(state), crate::split_mix(state)).into_bytes())
}

/// Makes a UUID of version 4 of these bytes; six bits become version and variant.
pub fn uuid_from(bytes: [u8; 16]) -> [u8; 16] {
    Builder::from_random_bytes(bytes).into_uuid().into_bytes()
}

/// Formats a UUID: lower case, 8-4-4-4-12.
pub fn uuid_text(uuid: [u8; 16]) -> String {
    Uuid::from_bytes(uuid).hyphenated().to_string()
}

/// Converts bytes to a UUID. As in Mesos, versions 1 to 5 are valid, and the variant is ignored.
///
/// # Errors
/// There are not 16 bytes, or the version is not 1 to 5. So the nil UUID is invalid.
pub fn valid_uuid(bytes: &[u8]) -> Result<[u8; 16], InvalidUuid> {
    let uuid = Uuid::from_slice(bytes).map_err(|_| InvalidUuid)?;
    if (1..=5).contains(&uuid.get_version_num()) { Ok(uuid.into_bytes()) } else { Err(InvalidUuid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_version_and_variant_and_its_text() {
        let mut state = 1;
        for _ in 0..100 {
            let one = uuid(&mut state);
            assert_eq!((one[6] >> 4, one[8] >> 6), (4, 2));
            assert_eq!(valid_uuid(&one), Ok(one));
            assert_ne!(one, uuid(&mut state));
        }
        assert_eq!(uuid_text([0xab; 16]), "abababab-abab-abab-abab-abababababab");
        assert_eq!(uuid_text(uuid_from([0; 16])), "00000000-0000-4000-8000-000000000000");
    }

    #[test]
    fn versions_1_to_5_are_valid() {
        for version in 0..16_u8 {
            let mut bytes = [0; 16];
            bytes[6] = version << 4;
            assert_eq!(valid_uuid(&bytes).is_ok(), (1..=5).contains(&version), "{version}");
        }
        for length in [0, 15, 17] {
            assert_eq!(valid_uuid(&vec![0x44; length]), Err(InvalidUuid));
        }
        assert_eq!(InvalidUuid.to_string(), "Not a valid UUID");
    }
}
