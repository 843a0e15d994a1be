//! prost's functions for the generated types, with changes for maps, short texts, lists of large messages, and the
//! encoding of lengths.
//!
//! prost omits a map entry's value when it equals its type's default. A `Value.Scalar` of 0 is such a value, and its
//! number is required: a C++ reader rejects the whole message without it. So every entry is written completely, as C++
//! does.
//!
//! Some fields are a [`crate::Text`] (`build.rs` has the list). For the derive they are strings, or bytes where they
//! are required, because the derive initialises a required string with `String`, and required bytes with their default.

pub(crate) use ::prost::*;

pub(crate) mod encoding {
    pub(crate) use ::prost::encoding::*;

    use ::prost::DecodeError;
    use ::prost::bytes::{Buf, BufMut};

    use crate::Text;

    /// Writes a field's key and the number of bytes that follow. Mostly each is one byte, and both are written
    /// together.
    #[inline]
    fn encode_head(tag: u32, length: usize, buf: &mut impl BufMut) {
        match (u8::try_from(tag), u8::try_from(length)) {
            (Ok(tag @ ..16), Ok(length @ ..128)) => {
                buf.put_slice(&[(tag << 3) | WireType::LengthDelimited as u8, length]);
            }
            _ => {
                encode_key(tag, WireType::LengthDelimited, buf);
                encode_varint(length as u64, buf);
            }
        }
    }

    pub(crate) mod message {
        use ::prost::bytes::{Buf, BufMut};
        pub(crate) use ::prost::encoding::message::{encoded_len, encoded_len_repeated, merge};
        use ::prost::encoding::{DecodeContext, WireType};
        use ::prost::{DecodeError, Message};

        use super::encode_head;

        /// Size in bytes above which messages are large: those of tasks and statuses are.
        const LARGE: usize = 256;

        /// Decodes one more message of a list. A list of large ones starts with capacity for one: a vector would
        /// allocate four, and most lists of statuses have one.
        pub(crate) fn merge_repeated<M: Message + Default>(
            wire: WireType,
            messages: &mut Vec<M>,
            buf: &mut impl Buf,
            context: DecodeContext,
        ) -> Result<(), DecodeError> {
            if size_of::<M>() > LARGE && messages.is_empty() {
                messages.reserve_exact(1);
            }
            ::prost::encoding::message::merge_repeated(wire, messages, buf, context)
        }

        pub(crate) fn encode<M: Message>(tag: u32, message: &M, buf: &mut impl BufMut) {
            encode_head(tag, message.encoded_len(), buf);
            message.encode_raw(buf);
        }
    }

    /// Returns the text at the beginning of `bytes`, and its length together with its length prefix. Returns `None` if
    /// the prefix has more than one byte, or if the text is cut off or not UTF-8.
    fn text_at(bytes: &[u8]) -> Option<(&str, usize)> {
        let (length, rest) = bytes.split_first().filter(|(length, _)| **length < 128)?;
        let text = rest.get(..usize::from(*length))?;
        Some((std::str::from_utf8(text).ok()?, 1 + text.len()))
    }

    /// A value that is encoded as a length and this many bytes.
    pub(crate) trait Delimited {
        fn write(&self, tag: u32, buf: &mut impl BufMut);
        fn read(&mut self, wire: WireType, buf: &mut impl Buf, context: DecodeContext) -> Result<(), DecodeError>;
        fn written_len(&self, tag: u32) -> usize;
    }

    impl Delimited for Text {
        fn write(&self, tag: u32, buf: &mut impl BufMut) {
            encode_head(tag, self.len(), buf);
            buf.put_slice(self.as_bytes());
        }

        /// Reads a short text directly from the buffer, without allocating memory in between.
        fn read(&mut self, wire: WireType, buf: &mut impl Buf, context: DecodeContext) -> Result<(), DecodeError> {
            if let (WireType::LengthDelimited, Some((text, length))) = (wire, text_at(buf.chunk())) {
                *self = text.into();
                buf.advance(length);
                return Ok(());
            }
            let mut text = String::new();
            ::prost::encoding::string::merge(wire, &mut text, buf, context)?;
            *self = text.into();
            Ok(())
        }

        fn written_len(&self, tag: u32) -> usize {
            key_len(tag) + encoded_len_varint(self.len() as u64) + self.len()
        }
    }

    /// prost's functions for a length-delimited kind, for [`Text`] as well.
    macro_rules! delimited {
        ($module:ident, $kind:ty $(, $list:ident)*) => {
            impl Delimited for $kind {
                #[inline]
                fn write(&self, tag: u32, buf: &mut impl BufMut) {
                    encode_head(tag, self.len(), buf);
                    buf.put_slice(self.as_ref());
                }

                #[inline]
                fn read(&mut self, wire: WireType, buf: &mut impl Buf, context: DecodeContext) -> Result<(), DecodeError> {
                    ::prost::encoding::$module::merge(wire, self, buf, context)
                }

                #[inline]
                fn written_len(&self, tag: u32) -> usize {
                    ::prost::encoding::$module::encoded_len(tag, self)
                }
            }

            pub(crate) mod $module {
                use ::prost::DecodeError;
                use ::prost::bytes::{Buf, BufMut};
                $(pub(crate) use ::prost::encoding::$module::$list;)*
                use ::prost::encoding::{DecodeContext, WireType};

                use super::Delimited;

                #[inline]
                pub(crate) fn encode<T: Delimited, B: BufMut>(tag: u32, value: &T, buf: &mut B) {
                    value.write(tag, buf);
                }

                #[inline]
                pub(crate) fn merge<T: Delimited, B: Buf>(
                    wire: WireType,
                    value: &mut T,
                    buf: &mut B,
                    context: DecodeContext,
                ) -> Result<(), DecodeError> {
                    value.read(wire, buf, context)
                }

                #[inline]
                pub(crate) fn encoded_len<T: Delimited>(tag: u32, value: &T) -> usize {
                    value.written_len(tag)
                }
            }
        };
    }

    delimited!(string, String, encode_repeated, encoded_len_repeated, merge_repeated);
    delimited!(bytes, Vec<u8>);

    pub(crate) mod btree_map {
        use std::collections::BTreeMap;

        use ::prost::bytes::BufMut;
        pub(crate) use ::prost::encoding::btree_map::merge;
        use ::prost::encoding::{encoded_len_varint, key_len};

        use super::encode_head;

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
                encode_head(tag, length, buf);
                key_encode(1, key, buf);
                value_encode(2, value, buf);
            }
        }

        /// Returns the number of bytes that [`encode`] writes.
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

#[cfg(test)]
mod tests {
    use prost::Message;

    use crate::mesos::{Resource, TaskId, resource::AllocationInfo};

    #[test]
    fn short_texts_stand_on_the_wire_as_strings_do() {
        for text in ["", "t", "a text that is longer than what fits in its place"] {
            let id = TaskId { value: text.into() };
            let bytes = id.encode_to_vec();
            assert_eq!(bytes, [&[10, text.len() as u8], text.as_bytes()].concat());
            assert_eq!(bytes.len(), id.encoded_len());
            assert_eq!(TaskId::decode(bytes.as_slice()), Ok(id));
            let allocation_info = Some(AllocationInfo { role: Some(text.into()) });
            let resource = Resource { name: text.into(), allocation_info, ..Resource::default() };
            assert_eq!(Resource::decode(resource.encode_to_vec().as_slice()), Ok(resource));
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        for bytes in [&[10, 2, 0xff, 0xfe][..], &[10, 3, b'a'], &[8, 1]] {
            assert!(TaskId::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
