//! Finds every UUID in the messages of a world by the names of its fields, and checks its version and variant. For
//! tests only.

use std::collections::BTreeMap;

use uuid::{Uuid, Variant, Version};

/// The UUIDs that were found in messages.
#[derive(Debug, Default)]
pub(crate) struct Uuids {
    /// Number of UUIDs by the names of their fields.
    pub seen: BTreeMap<String, usize>,
    /// UUIDs that are not of version 4 and the variant of RFC 9562.
    pub wrong: Vec<String>,
}

impl Uuids {
    /// Searches a message, in the form of its derived `Debug`, for UUIDs.
    pub fn look(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find("uuid: ") {
            let name = rest[..at].rsplit(|c: char| c != '_' && !c.is_ascii_lowercase()).next().unwrap_or_default();
            let name = format!("{name}uuid");
            rest = &rest[at + "uuid: ".len()..];
            let value = rest.trim_start_matches("Some(").trim_start_matches("Uuid { value: ");
            // A nested message has a UUID field of its own, which is found later.
            let Some(list) = value.strip_prefix('[').and_then(|value| value.split_once(']')) else { continue };
            *self.seen.entry(name.clone()).or_default() += 1;
            let bytes: Vec<u8> = list.0.split(", ").filter_map(|byte| byte.parse().ok()).collect();
            let is_right =
                |uuid: Uuid| (uuid.get_version(), uuid.get_variant()) == (Some(Version::Random), Variant::RFC4122);
            if !Uuid::from_slice(&bytes).is_ok_and(is_right) {
                self.wrong.push(format!("{name}: {bytes:02x?}"));
            }
        }
    }
}

#[test]
fn fields_are_found_and_bits_are_looked_at() {
    let mut uuids = Uuids::default();
    let good = format!("{:?}", base::uuid_from([7; 16]));
    uuids.look(&format!("A {{ uuid: None, status_uuid: Uuid {{ value: {good} }}, b: B {{ uuid: Some({good}) }} }}"));
    assert_eq!((uuids.seen.len(), uuids.wrong.len()), (2, 0));
    uuids.look(&format!("A {{ operation_uuid: Some(Uuid {{ value: {:?} }}) }}", [7; 16]));
    uuids.look("A { uuid: [1, 2] }");
    assert_eq!((uuids.seen["operation_uuid"], uuids.wrong.len()), (1, 2));
}
