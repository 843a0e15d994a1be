//! A message that many messages have in common, such as the framework of all the tasks that it launches.
//!
//! In binary and JSON it is a message like any other; here a copy of it only increments a reference count.

use std::ops::Deref;
use std::sync::Arc;

use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType};
use prost::{DecodeError, Message};

/// A message that several messages can share. Decoding into it makes a copy if it is shared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Returns the message in its `Arc`, to share it further.
    #[must_use]
    pub fn into_arc(self) -> Arc<T> {
        self.0
    }
}

impl<T: Clone> Shared<T> {
    /// Returns the message; it is cloned if it is shared.
    #[must_use]
    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.0)
    }

    /// Returns the message for a change; it is cloned first if it is shared.
    pub(crate) fn own(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for Shared<T> {
    fn from(message: T) -> Shared<T> {
        Shared(Arc::new(message))
    }
}

impl<T> From<Arc<T>> for Shared<T> {
    fn from(message: Arc<T>) -> Shared<T> {
        Shared(message)
    }
}

impl<T: Message + Clone + Default> Message for Shared<T> {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.0.encode_raw(buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.own().merge_field(tag, wire, buf, context)
    }

    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }

    fn clear(&mut self) {
        self.0 = Arc::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesos::{FrameworkInfo, internal::RunTaskMessage};

    #[test]
    fn is_a_message_like_any_other_and_reading_leaves_other_holders_alone() {
        let info = Arc::new(FrameworkInfo { user: "u".to_owned(), name: "n".to_owned(), ..FrameworkInfo::default() });
        let message = RunTaskMessage { framework: Arc::clone(&info).into(), ..RunTaskMessage::default() };
        let bytes = message.encode_to_vec();
        assert_eq!(RunTaskMessage::decode(&bytes[..]).unwrap(), message);
        let mut other = message.clone();
        let more = RunTaskMessage {
            framework: FrameworkInfo { user: "v".to_owned(), name: "n".to_owned(), ..FrameworkInfo::default() }.into(),
            ..RunTaskMessage::default()
        };
        other.merge(&more.encode_to_vec()[..]).unwrap();
        assert_eq!((other.framework.user.as_str(), message.framework.user.as_str()), ("v", "u"));
        assert_eq!(info.user, "u");
    }
}
