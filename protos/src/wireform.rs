//! prost as the generated types see it: the same, but for maps.
//!
//! prost leaves out a map entry's value when it equals its type's default. A `Value.Scalar` of 0 is such a value, and
//! its number is required: a C++ reader refuses the whole message without it. So every entry is written whole, as C++ does.

pub(crate) use ::prost::*;

pub(crate) mod encoding {
    pub(crate) use ::prost::encoding::*;

    pub(crate) mod btree_map {
        use std::collections::BTreeMap;

        use ::prost::bytes::BufMut;
        pub(crate) use ::prost::encoding::btree_map::merge;
        use ::prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

        /// Writes the entries, each with its key and its value.
        pub(crate) fn encode<K, V, B: BufMut>(
            key_encode: impl Fn(u32, &K, &mut B),
            key_encoded_len: impl Fn(u32, &K) -> usize,
            value_encode: impl Fn(u32, &V, &mut B),
            value_encoded_len: impl Fn(u32, &V) -> usize,
            tag: u32,
            values: &BTreeMap<K, V>,
            buf: &mut B,
        ) {
            for (key, value) in values {
                let length = key_encoded_len(1, key) + value_encoded_len(2, value);
                encode_key(tag, WireType::LengthDelimited, buf);
                encode_varint(length as u64, buf);
                key_encode(1, key, buf);
                value_encode(2, value, buf);
            }
        }

        /// How many bytes [`encode`] writes.
        pub(crate) fn encoded_len<K, V>(
            key_encoded_len: impl Fn(u32, &K) -> usize,
            value_encoded_len: impl Fn(u32, &V) -> usize,
            tag: u32,
            values: &BTreeMap<K, V>,
        ) -> usize {
            let one = |(key, value): (&K, &V)| {
                let length = key_encoded_len(1, key) + value_encoded_len(2, value);
                encoded_len_varint(length as u64) + length
            };
            key_len(tag) * values.len() + values.iter().map(one).sum::<usize>()
        }
    }
}
